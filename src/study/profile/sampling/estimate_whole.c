/* SPDX-License-Identifier: MIT */
/* Estimates of the whole run from its windows (docs/design/sampling.md). */
#include "study/profile/sampling/estimate_whole.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

enum {
    SPARE_LINES = 64,    /* lines of an object outside its blocks, at most */
    SPARE_OTHERS = 1024, /* lines of data to which no window refers, at most: variables, stacks, data of libraries */
    BLOCK_HEAD = 24,     /* bytes that an allocator adds to a block, at most */
    WORDS_OF_LINE = 4,   /* references to each line of data that is written for the first time, at least */
};

/* Part of the lines of a run that any other run of the program uses, at least: an allocator may reuse more memory there. */
static const double LEAST_AGAIN = 0.99;
static const double MODEST = 0.1; /* part of all misses: an error of an object up to that is acceptable */

/* ---- results ---- */

struct sample_counts sampled_counts(const struct sampled *s)
{
    return sample_counts(s->source, SAMPLE_ALL);
}

const struct sample_config *sampled_config(const struct sampled *s)
{
    return &s->config;
}

static double ratio_or_1(double a, double b)
{
    return b > 0 ? a / b : 1;
}

/* Factors, at least 1, from counts in windows to the whole run. */
struct scales {
    double references;   /* also from observed to all sets, by references */
    double misses;       /* also from observed to all sets, by number of sets */
    double instructions; /* windows only, since all blocks are executed; cycles of compute and fetch, too */
};

static struct scales sampled_scales(const struct sampled *s)
{
    struct sample_counts c = sampled_counts(s);
    double time = ratio_or_1((double)(c.observed + c.between), (double)c.observed);

    return (struct scales){ time * ratio_or_1((double)c.observed, (double)(c.observed - c.other_sets)),
                            time * ratio_or_1((double)c.sets, (double)c.sampled_sets),
                            c.instructions
                                ? ratio_or_1((double)(c.instructions + c.gap_instructions), (double)c.instructions)
                                : time };
}

static void sampled_add_sets(struct sampled_object *to, const struct estimate_sets *x)
{
    to->sets.ratio += x->ratio;
    to->sets.fraction += x->fraction;
    to->sets.ratio_error = sqrt(to->sets.ratio_error * to->sets.ratio_error + x->ratio_error * x->ratio_error);
    to->sets.fraction_error =
        sqrt(to->sets.fraction_error * to->sets.fraction_error + x->fraction_error * x->fraction_error);
}

uint64_t sampled_maybe_cold(const struct sampled *s)
{
    return (uint64_t)llround((double)s->maybe_cold * sampled_scales(s).misses);
}

bool sampled_has_left_out(const struct sampled *s)
{
    return sample_has_gaps(s->source);
}

/* ---- objects ---- */

/* Estimates for an object, added up over the cores. */
struct object_sum {
    double known, unknown,
        unknown_misses; /* misses, references; misses by the age estimator; in windows and sampled sets */
    double low, high;   /* bounds of unknown_misses by intervals within windows */
    double
        squares;  /* sum over cores: squares of half the interval of the run's misses, by differences between windows */
    double fresh; /* lines that were missed at least once */
};

static void sampled_add_core(struct sampled *s, const struct core_estimator *f, uint32_t object,
                             const struct scales *scale, struct object_sum *sum, struct sampled_object *ret)
{
    struct sample_counts c = sampled_counts(s);
    double part = ratio_or_1((double)c.sampled_sets, (double)c.sets), n = (double)estimate_references(f->estimate);
    struct estimate_result r;

    estimate_result(f->estimate, object, &r);
    if (n <= 0) /* the core had no window: its spread is not a number */
        return;
    ret->observed += r.references;
    ret->unknown += r.unknown;
    sum->known += (double)r.misses;
    sum->unknown += (double)r.unknown;
    sum->unknown_misses += r.mu[ESTIMATE_age] * (double)r.unknown;
    sum->low += fmin(r.mu_low, r.mu[ESTIMATE_age]) * (double)r.unknown;
    sum->high += fmax(r.mu_high, r.mu[ESTIMATE_age]) * (double)r.unknown;
    sum->fresh += (double)r.fresh;
    double spread = r.spread[ESTIMATE_age] * n * scale->misses;
    sum->squares += spread * spread;
    if (c.sampled_sets < c.sets && (object == ESTIMATE_ALL || object < estimate_objects(f->estimate))) {
        struct estimate_sets sets;
        estimate_sets(f->estimate, object, ESTIMATE_age, part, n * scale->references, &sets);
        /* The estimate has no counts of references to other sets; the source has. */
        sets.fraction *= scale->misses * part / scale->references;
        sets.fraction_error *= scale->misses * part / scale->references;
        sampled_add_sets(ret, &sets);
    }
}

/* Lines of an object whose first reference may lie between windows. A program writes the lines of a block one after another, so that windows contain all or none of them. */
struct fresh_lines {
    double lines;   /* of all blocks */
    double hidden;  /* sum over blocks: lines, at most those that can be used first between two windows */
    double squares; /* sum of the squares of these */
};

/* The lines that can be used for the first time between two windows, at most. */
static double sampled_most_between(const struct sampled *s)
{
    double most = 0;

    for (unsigned i = 0; i < s->cpus; i++)
        most = fmax(most, estimate_largest(s->core[i].estimate));
    return most * (sampled_scales(s).references - 1) / WORDS_OF_LINE;
}

static struct fresh_lines sampled_lines(const struct sampled *s, uint32_t object)
{
    const struct object_info *f = objects_info(s->objects, object);
    double line = (double)s->config.line_bytes, most = sampled_most_between(s),
           blocks = (double)(f->blocks ? f->blocks : 1);
    double lines = ((double)f->bytes + BLOCK_HEAD * blocks) / line,
           squares = f->squares > 0 ? f->squares / line / line : lines * lines;

    if (f->kind == OBJECT_STACK || f->kind == OBJECT_UNKNOWN)
        return (struct fresh_lines){ 0 };
    return (struct fresh_lines){ lines, fmin(lines, blocks * most),
                                 fmin(squares, fmin(most * lines, blocks * most * most)) };
}

/* The misses of fresh lines that an estimate from a part `observed` of the run may lack, with 95 %. */
static double fresh_error(const struct fresh_lines *x, double observed)
{
    return observed > 0 && observed < 1 ? fmin(x->hidden, 2 * sqrt(x->squares * (1 - observed) / observed)) : 0;
}

/* Finds the interval of 95 % by differences between windows; NAN where there are too few. */
static void sampled_find_interval(const struct sampled *s, const struct object_sum *sum,
                                  const struct fresh_lines *fresh, struct sampled_object *ret)
{
    struct scales scale = sampled_scales(s);
    double chance = sqrt(sum->squares);
    double sets =
        hypot(ret->sets.fraction_error, ret->sets.fraction - ret->sets.ratio); /* they are equal if sets are alike */

    ret->misses = (sum->known + sum->unknown_misses) * scale.misses;
    chance = s->config.every ? hypot(chance, sets) : sets;
    ret->from = ret->misses - chance - (sum->unknown_misses - sum->low) * scale.misses;
    ret->to = ret->misses + chance + (sum->high - sum->unknown_misses) * scale.misses
              + fresh_error(fresh, ratio_or_1(1, scale.references));
}

/* Narrows the interval by what is certain: each line with a reference in a window was missed at least once; and if all memory that was ever allocated fits
 * into the cache, each line was missed at most once. */
static void sampled_bound_interval(const struct sampled *s, const struct object_sum *sum,
                                   const struct fresh_lines *fresh, struct sampled_object *ret)
{
    double least = fmax(sum->fresh, sum->known);

    if (s->has_footprint && !s->footprint.is_larger && fresh->lines > 0) {
        double most = fmax(sum->fresh, fresh->lines + SPARE_LINES);
        least *= LEAST_AGAIN;
        ret->to = fmin(ret->to, most); /* also for NAN */
        ret->from = isnan(ret->from) ? least : ret->from;
        ret->misses = (fmax(ret->from, least) + ret->to) / 2;
    }
    if (!isnan(ret->from)) {
        ret->from = fmax(ret->from, least);
        ret->to = fmax(ret->to, ret->from);
    }
}

/* Moves mu, within 0 to 1, until the estimate lies in the interval, so that tables and interval agree. */
static void sampled_clip_mu(const struct object_sum *sum, double scale, struct sampled_object *ret)
{
    double wanted = isnan(ret->from) ? ret->misses : fmin(ret->to, fmax(ret->from, ret->misses));

    ret->mu = sum->unknown > 0 ? fmin(1, fmax(0, (wanted / scale - sum->known) / sum->unknown)) : 0;
    ret->misses = (sum->known + ret->mu * sum->unknown) * scale;
    ret->error = isnan(ret->from) ? (double)NAN : fmax(0, fmax(ret->misses - ret->from, ret->to - ret->misses));
}

static struct object_sum sampled_count_object(struct sampled *s, uint32_t object, struct sampled_object *ret)
{
    struct object_sum sum = { 0 };
    struct scales scale = sampled_scales(s);

    *ret = (struct sampled_object){ 0 };
    for (unsigned i = 0; i < s->cpus; i++)
        sampled_add_core(s, &s->core[i], object, &scale, &sum, ret);
    ret->references = (uint64_t)llround((double)ret->observed * scale.references);
    double larger = fmax(ret->sets.ratio, ret->sets.fraction), smaller = fmin(ret->sets.ratio, ret->sets.fraction);
    ret->sets.disagree = larger > smaller / 0.9;
    ret->low = (uint64_t)llround(sum.known);
    ret->high = (uint64_t)llround(sum.known + sum.unknown);
    return sum;
}

/* Estimates all objects together; their misses are the sum over the objects. */
static void sampled_count_all(struct sampled *s, struct fresh_lines *fresh, double misses)
{
    struct sampled_object *all = &s->object[s->counted];
    struct object_sum sum = sampled_count_object(s, ESTIMATE_ALL, all);

    fresh->lines += SPARE_OTHERS;
    sampled_find_interval(s, &sum, fresh, all);
    sampled_bound_interval(s, &sum, fresh, all);
    all->misses = misses;
    if (!isnan(all->from)) {
        all->from = fmin(all->from, misses);
        all->to = fmax(all->to, misses);
    }
    sampled_clip_mu(&sum, sampled_scales(s).misses, all);
}

static void sampled_count_objects(struct sampled *s)
{
    struct scales scale = sampled_scales(s);
    struct fresh_lines all = { 0 };
    double misses = 0;

    s->counted = objects_count(s->objects);
    s->object = mem_alloc(s->counted + 1, sizeof *s->object);
    for (uint32_t i = 0; i < s->counted; i++) {
        struct object_sum sum = sampled_count_object(s, i, &s->object[i]);
        struct fresh_lines fresh = sampled_lines(s, i);
        sampled_find_interval(s, &sum, &fresh, &s->object[i]);
        sampled_bound_interval(s, &sum, &fresh, &s->object[i]);
        sampled_clip_mu(&sum, scale.misses, &s->object[i]);
        misses += s->object[i].misses;
        all.lines += fresh.lines;
        all.hidden += fresh.hidden;
        all.squares += fresh.squares;
    }
    sampled_count_all(s, &all, misses);
}

void sampled_object(struct sampled *s, uint32_t object, struct sampled_object *ret)
{
    assert(s->object && (object == ESTIMATE_ALL || object < s->counted));
    *ret = s->object[object == ESTIMATE_ALL ? s->counted : object];
}

bool sampled_is_significant(struct sampled *s, const struct sampled_object *o)
{
    const struct sampled_object *all = &s->object[s->counted];

    return o->error <= o->misses || (o != all && o->error <= MODEST * all->misses);
}

/* ---- the profile of the whole run ---- */

static uint64_t scale_count(uint64_t a, double by_what)
{
    return (uint64_t)llround((double)a * by_what);
}

/* Cycles that an unknown reference waits, beyond a first-level hit, if it is taken for a miss, and if not: it may hit in any private cache. */
struct waits {
    double miss, hit; /* cycles */
};

static void access_counts_scale(struct access_counts *c, double mu, const struct waits *wait,
                                const struct scales *scale)
{
    double misses = mu * (double)c->unknown, hits = wait->hit > 0 ? (double)c->unknown - misses : 0;

    c->unknown = scale_count(c->unknown, scale->references);
    c->references = scale_count(c->references, scale->references);
    c->writes = scale_count(c->writes, scale->references);
    c->compute = scale_count(c->compute, scale->instructions);
    for (unsigned i = 0; i < CAUSES; i++) {
        c->cause[i] = scale_count(c->cause[i], scale->misses);
        c->stall[i] = scale_count(c->stall[i], scale->misses);
    }
    c->cause[CAUSE_unknown] += (uint64_t)llround(misses * scale->misses);
    c->stall[CAUSE_unknown] += (uint64_t)llround(misses * wait->miss * scale->misses);
    c->cause[CAUSE_farther] += (uint64_t)llround(hits * scale->misses);
    c->stall[CAUSE_farther] += (uint64_t)llround(hits * wait->hit * scale->misses);
    c->misses = scale_count(c->misses, scale->misses) + (uint64_t)llround(misses * scale->misses);
}

/* Scales path counts; of their unknown references, the same part becomes misses as in access counts. */
static void profile_scale_paths(struct sampled *s, struct profile *p, const double *mu, const struct waits *wait,
                                const struct scales *scale)
{
    struct {
        double misses, stall;
    } *of = mem_alloc(p->by_paths + 1, sizeof *of);
    uint64_t path, *count;
    uint32_t object;

    for (size_t at = 0; (count = map_next(&s->unknown, &at, &path, &object));) {
        double misses = mu[object] * (double)*count;
        of[path].misses += misses;
        of[path].stall += misses * wait->miss + ((double)*count - misses) * wait->hit;
    }
    for (size_t i = 0; i < p->by_paths; i++) {
        struct path_counts *l = &p->by_path[i];
        l->compute = scale_count(l->compute, scale->instructions);
        l->stall = (uint64_t)llround(((double)l->stall + of[i].stall) * scale->misses);
        l->misses = (uint64_t)llround(((double)l->misses + of[i].misses) * scale->misses);
    }
    free(of);
}

/* Scales counts that are neither access counts nor path counts. */
static void profile_scale_rest(struct profile *p, const struct scales *scale)
{
    for (size_t i = 0; i < p->pairs; i++) {
        p->pair[i].misses = scale_count(p->pair[i].misses, scale->misses);
        p->pair[i].stall = scale_count(p->pair[i].stall, scale->misses);
    }
    for (uint32_t i = 0; i < p->codes; i++)
        for (uint32_t k = 0; k < p->code[i].items; k++) {
            struct block_counts *b = &p->code[i].block[k];
            *b = (struct block_counts){ scale_count(b->runs, scale->instructions),
                                        scale_count(b->fetch, scale->instructions) };
        }
    p->compute = scale_count(p->compute, scale->instructions);
    p->fetch = scale_count(p->fetch, scale->instructions);
    p->result.instructions = scale_count(p->result.instructions, scale->instructions);
}

/* Cycles of the windows, as simulated: these contain the stall of unknown references, which the profile lacks. */
static uint64_t time_simulated(const struct sim_result *r)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < r->hw_threads; i++)
        sum += r->hw_thread[i].time[TIME_compute] + r->hw_thread[i].time[TIME_stall] + r->hw_thread[i].time[TIME_bus]
               + r->hw_thread[i].time[TIME_fetch] - r->hw_thread[i].sync;
    return sum;
}

/* The mean stall of a known miss, in cycles; misses without a cause count, too: their lines may have been used between windows. */
static double profile_stall_of_miss(const struct profile *p)
{
    uint64_t stall = 0;

    for (size_t i = 0; i < p->accesses; i++)
        for (unsigned k = 0; k < CAUSES; k++)
            stall += k == CAUSE_farther || k == CAUSE_upgrade ? 0 : p->access[i].stall[k];
    return p->misses ? (double)stall / (double)p->misses : (double)p->machine.fabric.memory;
}

/* The stall of an unknown reference that hits, in cycles: half of the latency of the core's last private cache. */
static double machine_stall_of_hit(const struct machine_config *m)
{
    double last = 0;

    for (unsigned i = 1; i < CONFIG_LEVELS && m->level[i].bytes && !m->level[i].is_shared; i++)
        last = (double)m->level[i].latency;
    return last / 2;
}

/* Finds the errors of cycles: differences between windows, the error of misses, and hits of unknown references in any private cache. */
static void sampled_find_time(struct sampled *s, const struct profile *p, const struct waits *wait)
{
    const struct sampled_object *all = &s->object[s->counted];
    struct scales scale = sampled_scales(s);
    double squares = 0, mean = 0;

    for (unsigned i = 0; i < s->cpus; i++) {
        double here = (double)estimate_references(s->core[i].estimate), spread;
        if (here <= 0)
            continue;
        mean += estimate_time(s->core[i].estimate, all->mu, wait->miss - wait->hit, &spread) * here;
        squares += spread * spread * here * here;
    }
    double part = mean > 0 ? sqrt(squares) / mean : (double)NAN; /* of the cycles */
    double hits = (1 - all->mu) * (double)all->unknown * scale.misses * wait->hit;

    s->time.error = part * (double)p->result.cycles + all->error * wait->miss + hits;
    s->time.stall_error = part * (double)p->stall + all->error * wait->miss + hits;
    s->time.compute_error = part * (double)(p->compute + p->fetch);
}

struct sampled_time sampled_time(const struct sampled *s)
{
    return s->time;
}

/* Ends the windows, and passes the part of the run that they are to the estimators. */
static void sampled_end_windows(struct sampled *s, const struct profile *p)
{
    struct sample_counts c = sampled_counts(s);
    double missed = (double)c.missed / (double)(c.observed + c.missed + 1);

    for (unsigned i = 0; i < s->cpus; i++) {
        sampled_close(s, &s->core[i]);
        estimate_set_run(
            s->core[i].estimate,
            &(struct estimate_run){ ratio_or_1((double)c.observed, (double)(c.observed + c.between)), missed });
    }
    for (size_t i = 0; s->by_blocks && i < p->accesses; i++)
        estimate_add_object_references(s->core[0].estimate, p->access[i].object, p->access[i].references);
}

void sampled_scale(struct sampled *s, struct profile *p)
{
    struct scales scale = sampled_scales(s);
    uint64_t time = time_simulated(&p->result);
    const struct waits wait = { profile_stall_of_miss(p), machine_stall_of_hit(&p->machine) };

    sampled_end_windows(s, p);
    sampled_count_objects(s);
    p->references = p->misses = p->stall = 0;
    double *mu = mem_alloc(s->counted + 1, sizeof *mu);
    for (uint32_t i = 0; i < s->counted; i++)
        mu[i] = s->object[i].mu;
    for (size_t i = 0; i < p->accesses; i++) {
        struct access_counts *c = &p->access[i];
        access_counts_scale(c, mu[c->object], &wait, &scale);
        p->references += c->references;
        p->misses += c->misses;
        for (unsigned k = 0; k < CAUSES; k++)
            p->stall += c->stall[k];
    }
    profile_scale_paths(s, p, mu, &wait, &scale);
    free(mu);
    profile_scale_rest(p, &scale);
    p->result.cycles =
        p->machine.cpus == 1
            ? p->compute + p->stall + p->fetch
            : scale_count(p->result.cycles, ratio_or_1((double)(p->compute + p->stall + p->fetch), (double)time));
    sampled_find_time(s, p, &wait);
}
