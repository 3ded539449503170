/* SPDX-License-Identifier: MIT */
/* The whole run, from what was seen in windows. */
#include "study/profile/sampling/estimate_whole.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

enum {
    SPARE_LINES = 64,    /* of an object, beside its blocks; */
    SPARE_OTHERS = 1024, /*   and of data that no window has seen: variables, stacks, and what libraries allocate */
    BLOCK_HEAD = 24,     /* bytes that an allocator adds to a block, at most */
    WORDS_OF_LINE = 4,   /* of lines that are filled in a row: one reference at least to each */
};

/* Of lines that a run uses, as many are used by another run at the least, in which blocks may follow each other in the same memory. */
static const double LEAST_AGAIN = 0.99;
static const double MODEST = 0.1; /* of all misses: an error of an object that is not larger is of use */

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

/* By how much the run is more than what was seen of it. */
struct scales {
    double references, misses, instructions;
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

/* What processors have seen of an object, added up. */
struct object_sum {
    double known, unknown, unknown_misses; /* in windows and chosen sets; unknown_misses: as the age estimator says */
    double low, high;                      /* unknown references that miss: between which the windows show that to be */
    double squares; /* of half of the interval of the misses of the run, by differences between windows */
    double fresh;   /* lines that were missed at least once */
};

static void sampled_add_core(struct sampled *s, const struct core_estimator *f, uint32_t object,
                             const struct scales *scale, struct object_sum *sum, struct sampled_object *ret)
{
    struct sample_counts c = sampled_counts(s);
    double part = ratio_or_1((double)c.sampled_sets, (double)c.sets), n = (double)estimate_references(f->estimate);
    struct estimate_result r;

    estimate_result(f->estimate, object, &r);
    if (n <= 0) /* the processor has had no window: it adds nothing, and its spread is not a number */
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
        /* It was not told of other sets' references, window by window; the source knows them all. */
        sets.fraction *= scale->misses * part / scale->references;
        sets.fraction_error *= scale->misses * part / scale->references;
        sampled_add_sets(ret, &sets);
    }
}

/* Lines that may have come into the cache for the first time where no window was: those of a block in a row, so that windows see all of them, or none. */
struct fresh_lines {
    double lines;           /* of all blocks */
    double hidden, squares; /* as many as fit between two windows, of each block; and the sum of their squares */
};

/* Between two windows; a line has WORDS_OF_LINE words, of which each is referred to. */
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

/* How many misses of fresh lines an estimate may lack, with 95 %: of a part `seen` of the run. */
static double fresh_error(const struct fresh_lines *x, double seen)
{
    return seen > 0 && seen < 1 ? fmin(x->hidden, 2 * sqrt(x->squares * (1 - seen) / seen)) : 0;
}

/* The interval by windows: NAN where there are too few. */
static void sampled_find_interval(const struct sampled *s, const struct object_sum *sum,
                                  const struct fresh_lines *fresh, struct sampled_object *ret)
{
    struct scales scale = sampled_scales(s);
    double chance = sqrt(sum->squares);
    double sets = hypot(ret->sets.fraction_error,
                        ret->sets.fraction - ret->sets.ratio); /* both are right of sets that are alike */

    ret->misses = (sum->known + sum->unknown_misses) * scale.misses;
    chance = s->config.every ? hypot(chance, sets) : sets;
    ret->from = ret->misses - chance - (sum->unknown_misses - sum->low) * scale.misses;
    ret->to = ret->misses + chance + (sum->high - sum->unknown_misses) * scale.misses
              + fresh_error(fresh, ratio_or_1(1, scale.references));
}

/* The interval also holds what is known of lines: each one that was seen was missed at least once; and if all that was ever allocated fits into the
 * cache, none was missed more often. */
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

/* Tables and interval agree: mu is moved until the estimate is inside of the interval, as far as mu can be moved. */
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

/* All of them together: their estimate is the sum of those of the objects. */
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

/* How long unknown references wait, beyond a hit in the first cache: those that are taken for misses, and the others, which may be in any of the processor's own
 * caches. */
struct waits {
    double miss, hit;
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

/* Of unknown references, the same becomes misses as in cells. */
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

/* What is neither by cell nor by path. */
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

/* What the machine took the windows for: of unknown references it knows how long they waited, and the profile does not. */
static uint64_t time_simulated(const struct sim_result *r)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < r->hw_threads; i++)
        sum += r->hw_thread[i].time[TIME_compute] + r->hw_thread[i].time[TIME_stall] + r->hw_thread[i].time[TIME_bus]
               + r->hw_thread[i].time[TIME_fetch] - r->hw_thread[i].sync;
    return sum;
}

/* How long a known miss waited, on average; of some the cause is unknown, since their lines may have been used between windows. */
static double profile_stall_of_miss(const struct profile *p)
{
    uint64_t stall = 0;

    for (size_t i = 0; i < p->accesses; i++)
        for (unsigned k = 0; k < CAUSES; k++)
            stall += k == CAUSE_farther || k == CAUSE_upgrade ? 0 : p->access[i].stall[k];
    return p->misses ? (double)stall / (double)p->misses : (double)p->machine.fabric.memory;
}

/* What an unknown reference waits that does not miss: between nothing and the latency of the processor's last own cache. */
static double machine_stall_of_hit(const struct machine_config *m)
{
    double last = 0;

    for (unsigned i = 1; i < CONFIG_LEVELS && m->level[i].bytes && !m->level[i].is_shared; i++)
        last = (double)m->level[i].latency;
    return last / 2;
}

/* How far cycles may be off: by differences between windows; by misses that are not known, in windows and beside them; and by hits that waited somewhere between the first
 * cache and the last. */
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

/* How much of the run windows have seen is known now. */
static void sampled_end_windows(struct sampled *s, const struct profile *p)
{
    struct sample_counts c = sampled_counts(s);
    double missed = (double)c.missed / (double)(c.observed + c.missed + 1);

    for (unsigned i = 0; i < s->cpus; i++) {
        sampled_close(s, &s->core[i]);
        estimate_set_run(s->core[i].estimate,
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
