/* SPDX-License-Identifier: MIT */
#include "study/profile/estimate_profile.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "map/chosen.h"
#include "sim/solo/solo.h"

struct front { /* a processor */
    struct estimate *estimate;
    bool is_open;
    uint32_t thread;
    uint64_t gaps; /* of the thread, when it came here */
    uint64_t now;  /* references in the sample */
    uint64_t seen; /* and in all before it */
};

struct sampled {
    struct source *source;
    bool is_watched; /* there is one processor, and it tells less */
    struct sample_config config;
    struct front *front;
    unsigned cpus;
    uint64_t *gaps; /* by thread */
    uint32_t threads;
    uint64_t maybe_cold; /* misses of lines that were not seen before, but perhaps used */
    struct map seen;     /* lines that were referred to in windows, by process */
    struct map unknown;  /* uint64_t: references, by leaf and object */
};

/* ---- life ---- */

static const struct level_config *last_own(const struct machine_config *m)
{
    const struct level_config *last = NULL;

    for (unsigned i = 0; i < CONFIG_LEVELS && m->level[i].bytes && !m->level[i].is_shared; i++)
        last = &m->level[i];
    return last;
}

int sampled_geometry(const struct machine_config *machine, struct sample_config *ret, struct peet_err *err)
{
    const struct level_config *level = last_own(machine);
    uint64_t sets = level ? level->bytes / level->line / level_ways(level) : 0;

    if (!level)
        return err_set(
            err, PEET_ERR_USAGE,
            "machine %s: a processor with a cache of its own was expected for sampling; choose another one, or no --sample",
            machine->name);
    if (sets & (sets - 1))
        return err_set(err, PEET_ERR_USAGE,
                       "machine %s: %" PRIu64
                       " sets in a processor's last own cache; a power of two was expected for sampling",
                       machine->name, sets);
    ret->line_bytes = level->line;
    ret->sets = ret->one_in > 1 ? sets : 0;
    return 0;
}

/* Sets beside each other are alike. If they were put into groups in turn, as a program comes to them, groups would be more alike than samples of sets are: those that are chosen are
 * drawn at random, and so are those of a group. */
static int deal_sets(struct sampled *s, uint64_t sets, struct peet_err *err)
{
    uint8_t *group = mem_alloc(sets, sizeof *group);
    int r = chosen_deal(sets, s->config.seed, ESTIMATE_GROUPS, group) < 0
                ? err_set(err, PEET_ERR_MEMORY, "no memory for the sets of a sample")
                : 0;

    for (unsigned i = 0; i < s->cpus && r == 0; i++)
        estimate_deal(s->front[i].estimate, group);
    free(group);
    return r;
}

int sampled_new(const struct machine_config *machine, struct source *source, const struct sample_config *config,
                struct sampled **ret, struct peet_err *err)
{
    const struct level_config *level = last_own(machine);
    uint64_t length = config->most ? config->most : config->length;
    struct estimate_config cache = { level->bytes / level->line / level_ways(level), level_ways(level),
                                     config->every ? length : UINT32_MAX };
    struct sampled *s = mem_alloc(1, sizeof *s);
    bool has_sets = config->sets && config->one_in > 1;
    int r = 0;

    if (has_sets) /* time is counted in what is seen */
        cache.length = cache.length / config->one_in + 1;
    s->unknown.value_size = sizeof(uint64_t);
    s->source = source;
    s->config = *config;
    s->cpus = machine->cpus;
    s->front = mem_alloc(machine->cpus, sizeof *s->front);
    for (unsigned i = 0; i < s->cpus && r == 0; i++)
        r = estimate_new(&cache, &s->front[i].estimate, err);
    if (r == 0 && has_sets)
        r = deal_sets(s, cache.sets, err);
    if (r < 0) {
        sampled_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void sampled_free(struct sampled *s)
{
    if (!s)
        return;
    for (unsigned i = 0; i < s->cpus; i++) {
        if (s->front[i].is_open)
            estimate_end(s->front[i].estimate, 0);
        estimate_free(s->front[i].estimate);
    }
    map_release(&s->seen);
    map_release(&s->unknown);
    free(s->front);
    free(s->gaps);
    free(s);
}

/* ---- while it runs ---- */

static uint64_t *gaps_of(struct sampled *s, uint32_t thread)
{
    while (s->threads <= thread) {
        s->gaps = mem_room(s->gaps, s->threads, sizeof *s->gaps);
        s->gaps[s->threads++] = 0;
    }
    return &s->gaps[thread];
}

static void close_front(struct sampled *s, struct front *f)
{
    if (f->is_open && s->is_watched)
        estimate_count(f->estimate, sampled_counts(s).seen - f->seen);
    if (f->is_open)
        estimate_end(f->estimate, 0);
    f->is_open = false;
}

void sampled_gap(struct sampled *s, uint32_t thread, const struct peet_event *e)
{
    if (!s->is_watched) {
        ++*gaps_of(s, thread);
        return;
    }
    close_front(s, &s->front[0]);
    s->front[0].thread = thread;
    if (e->args) /* else it was passed over, and the source knows */
        sample_left_out(s->source, thread, e->arg[1]);
}

/* A window of a thread begins on a processor. */
static void begin_window(const struct sampled *s, const struct front *f)
{
    uint64_t length = s->config.most ? sample_window_length(s->source, f->thread) : 0;

    if (length && s->config.sets && s->config.one_in > 1)
        length = length / s->config.one_in + 1;
    if (length)
        estimate_begin_of(f->estimate, length);
    else
        estimate_begin(f->estimate);
}

static struct front *enter(struct sampled *s, const struct sampled_reference *r)
{
    struct front *f = &s->front[r->cpu];
    uint64_t gaps = *gaps_of(s, r->thread);

    if (f->is_open && f->thread == r->thread && f->gaps == gaps)
        return f;
    close_front(s, f);
    *f = (struct front){ f->estimate, true, r->thread, gaps, 0, 0 };
    begin_window(s, f);
    return f;
}

bool sampled_was_touched(const struct sampled *s, const struct sim_reference *r)
{
    return sample_was_touched(s->source, r->context, r->own_line);
}

enum estimate_outcome sampled_refer(struct sampled *s, const struct sampled_reference *r, uint32_t object)
{
    struct front *f = enter(s, r);
    uint64_t now = r->is_first ? f->now++ : f->now - 1;
    enum estimate_outcome outcome = estimate_refer(f->estimate, r->line, object, now);

    if (!r->is_first)
        estimate_join(f->estimate, object, r->line);
    if (outcome == OUTCOME_HIT)
        return outcome;
    size_t before = s->seen.count;
    void *there = map_put(&s->seen, r->line, s->source->context[r->thread].process);
    assert(there); /* as small as the lines that windows refer to */
    s->maybe_cold += s->seen.count != before && sample_has_left_out(s->source);
    if (outcome == OUTCOME_MISS || s->seen.count == before || sample_was_touched(s->source, r->thread, r->own_line))
        return outcome;
    estimate_was_cold(f->estimate, r->line, object, now);
    return OUTCOME_MISS;
}

void sampled_unknown(struct sampled *s, uint32_t object, uint32_t leaf)
{
    uint64_t *count = map_put(&s->unknown, leaf, object);

    assert(count);
    ++*count;
}

/* ---- from a machine that tells less ---- */

void sampled_watch(struct sampled *s)
{
    assert(s->cpus == 1 && s->source->kind->words);
    s->is_watched = true;
}

static struct front *front_at(struct sampled *s, uint64_t number)
{
    struct front *f = &s->front[0];

    if (!f->is_open) {
        *f = (struct front){ .estimate = f->estimate, .is_open = true, .thread = f->thread, .now = number };
        f->seen = sampled_counts(s).seen;
        begin_window(s, f);
    }
    return f;
}

/* When a line was used last, in the sample. */
struct clock {
    struct solo *by;
    uint64_t from;
};

static uint64_t last_use(const void *context, uint64_t line)
{
    const struct clock *c = context;
    uint64_t last = solo_last_use(c->by, line);

    return last > c->from ? last - c->from : 0;
}

bool sampled_knows(struct sampled *s, struct solo *by, uint32_t object, uint64_t line, bool is_new, uint64_t number)
{
    struct front *f = front_at(s, number);
    const struct clock clock = { by, f->now };
    const struct estimate_clock use = { number - f->now, 0, last_use, &clock };
    enum estimate_outcome outcome = estimate_miss(f->estimate, line, object, &use);

    bool may_be_cold = is_new && sample_has_left_out(s->source);
    s->maybe_cold += may_be_cold;
    if (outcome != OUTCOME_UNKNOWN || !is_new || may_be_cold)
        return outcome != OUTCOME_UNKNOWN;
    estimate_was_cold(f->estimate, line, object, number - f->now); /* it has been seen from the beginning */
    return true;
}

void sampled_use(struct sampled *s, struct solo *by, uint64_t line, uint64_t number, uint64_t wait)
{
    struct front *f = &s->front[0];
    const struct clock clock = { by, f->now };

    if (f->is_open && number > f->now)
        estimate_use(f->estimate, line, &(struct estimate_clock){ number - f->now, wait, last_use, &clock });
}

void sampled_see(struct sampled *s, const struct solo_seen *seen, size_t n)
{
    while (n > 0 && !s->front[0].is_open && seen->what & SOLO_USES) { /* of lines that a lock has brought */
        seen++;
        n--;
    }
    if (n > 0) {
        const struct front *f = front_at(s, seen->number);
        s->maybe_cold += estimate_see(f->estimate, seen, n, f->now);
    }
}

void sampled_missed(struct sampled *s, uint32_t object, uint64_t misses)
{
    estimate_missed(front_at(s, s->front[0].now)->estimate, object, misses);
}

void sampled_add_cold(struct sampled *s, uint64_t maybe_cold)
{
    s->maybe_cold += maybe_cold;
}

struct solo_choice sampled_choose(struct sampled *s)
{
    return estimate_choose(s->front[0].estimate);
}

/* ---- results ---- */

struct sample_counts sampled_counts(const struct sampled *s)
{
    return sample_counts(s->source, SAMPLE_ALL);
}

const struct sample_config *sampled_config(const struct sampled *s)
{
    return &s->config;
}

static double by(double a, double b)
{
    return b > 0 ? a / b : 1;
}

/* By how much the run is more than what was seen of it. */
struct scales {
    double references, misses, instructions;
};

static struct scales scales_of(const struct sampled *s)
{
    struct sample_counts c = sampled_counts(s);
    double time = by((double)(c.seen + c.between), (double)c.seen);

    return (struct scales){ time * by((double)c.seen, (double)(c.seen - c.other_sets)),
                            time * by((double)c.sets, (double)c.chosen),
                            c.instructions ? by((double)(c.instructions + c.gap_instructions), (double)c.instructions)
                                           : time };
}

static void add_sets(struct sampled_object *to, const struct estimate_sets *x)
{
    to->sets.ratio += x->ratio;
    to->sets.fraction += x->fraction;
    to->sets.ratio_error = sqrt(to->sets.ratio_error * to->sets.ratio_error + x->ratio_error * x->ratio_error);
    to->sets.fraction_error =
        sqrt(to->sets.fraction_error * to->sets.fraction_error + x->fraction_error * x->fraction_error);
}

uint64_t sampled_maybe_cold(const struct sampled *s)
{
    return (uint64_t)llround((double)s->maybe_cold * scales_of(s).misses);
}

bool sampled_has_left_out(const struct sampled *s)
{
    return sample_has_left_out(s->source);
}

void sampled_object(struct sampled *s, uint32_t object, struct sampled_object *ret)
{
    struct scales scale = scales_of(s);
    struct sample_counts c = sampled_counts(s);
    double part = by((double)c.chosen, (double)c.sets), unknown_misses = 0, squares = 0;

    *ret = (struct sampled_object){ 0 };
    for (unsigned i = 0; i < s->cpus; i++) {
        struct front *f = &s->front[i];
        struct estimate_result r;
        struct estimate_sets sets;
        close_front(s, f);
        estimate_result(f->estimate, object, &r);
        if (r.references == 0) /* nobody knows how windows of a processor differ that has none, and nobody has to */
            continue;
        double n = (double)estimate_references(f->estimate);
        ret->seen += r.references;
        ret->unknown += r.unknown;
        unknown_misses += r.mu[ESTIMATE_age] * (double)r.unknown;
        ret->misses += r.share[ESTIMATE_age] * n * scale.misses;
        ret->low += r.share_low * n * scale.misses;
        ret->high += r.share_high * n * scale.misses;
        squares += r.spread[ESTIMATE_age] * r.spread[ESTIMATE_age] * n * n * scale.misses * scale.misses;
        if (c.chosen < c.sets) {
            estimate_sets(f->estimate, object, ESTIMATE_age, part, n * scale.references, &sets);
            /* It was not told of other sets' references, window by window; the source knows them all. */
            sets.fraction *= scale.misses * part / scale.references;
            sets.fraction_error *= scale.misses * part / scale.references;
            add_sets(ret, &sets);
        }
    }
    ret->references = (uint64_t)llround((double)ret->seen * scale.references);
    ret->mu = ret->unknown ? unknown_misses / (double)ret->unknown : 0;
    ret->error = sqrt(squares);
    double larger = fmax(ret->sets.ratio, ret->sets.fraction), smaller = fmin(ret->sets.ratio, ret->sets.fraction);
    ret->sets.disagree = larger > smaller / 0.9;
    if (s->config.every == 0)
        ret->error = ret->sets.fraction_error;
}

/* ---- the profile of the whole run ---- */

static uint64_t times(uint64_t a, double by_what)
{
    return (uint64_t)llround((double)a * by_what);
}

static void scale_cell(struct profile_cell *c, double mu, double stall, const struct scales *scale)
{
    double misses = mu * (double)c->unknown;

    c->unknown = times(c->unknown, scale->references);
    c->references = times(c->references, scale->references);
    c->writes = times(c->writes, scale->references);
    c->compute = times(c->compute, scale->instructions);
    for (unsigned i = 0; i < CAUSES; i++) {
        c->cause[i] = times(c->cause[i], scale->misses);
        c->stall[i] = times(c->stall[i], scale->misses);
    }
    c->cause[CAUSE_unknown] += (uint64_t)llround(misses * scale->misses);
    c->stall[CAUSE_unknown] += (uint64_t)llround(misses * stall * scale->misses);
    c->misses = times(c->misses, scale->misses) + (uint64_t)llround(misses * scale->misses);
}

/* Of unknown references, the same becomes misses as in cells. */
static void scale_leaves(struct sampled *s, struct profile *p, const double *mu, double stall,
                         const struct scales *scale)
{
    double *misses = mem_alloc(p->leaves + 1, sizeof *misses);
    uint64_t leaf, *count;
    uint32_t object;

    for (size_t at = 0; (count = map_next(&s->unknown, &at, &leaf, &object));)
        misses[leaf] += mu[object] * (double)*count;
    for (size_t i = 0; i < p->leaves; i++) {
        struct profile_leaf *l = &p->leaf[i];
        l->compute = times(l->compute, scale->instructions);
        l->stall = (uint64_t)llround(((double)l->stall + misses[i] * stall) * scale->misses);
        l->misses = (uint64_t)llround(((double)l->misses + misses[i]) * scale->misses);
    }
    free(misses);
}

/* What is neither by cell nor by leaf. */
static void scale_rest(struct profile *p, const struct scales *scale)
{
    for (size_t i = 0; i < p->pairs; i++) {
        p->pair[i].misses = times(p->pair[i].misses, scale->misses);
        p->pair[i].stall = times(p->pair[i].stall, scale->misses);
    }
    for (uint32_t i = 0; i < p->codes; i++)
        for (uint32_t k = 0; k < p->code[i].items; k++) {
            struct profile_block *b = &p->code[i].block[k];
            *b = (struct profile_block){ times(b->runs, scale->instructions), times(b->fetch, scale->instructions) };
        }
    p->compute = times(p->compute, scale->instructions);
    p->fetch = times(p->fetch, scale->instructions);
    p->result.instructions = times(p->result.instructions, scale->instructions);
}

/* What the machine took the windows for: of unknown references it knows how long they waited, and the profile does not. */
static uint64_t time_seen(const struct sim_result *r)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < r->places; i++)
        sum += r->place[i].time[TIME_compute] + r->place[i].time[TIME_stall] + r->place[i].time[TIME_bus];
    return sum;
}

void sampled_scale(struct sampled *s, struct profile *p)
{
    struct scales scale = scales_of(s);
    uint64_t missed_stall = 0, misses = p->misses, time = time_seen(&p->result);

    for (size_t i = 0; i < p->cells; i++)
        for (unsigned k = 0; k < CAUSE_farther; k++)
            missed_stall += p->cell[i].stall[k];
    double stall = misses ? (double)missed_stall / (double)misses : (double)p->machine.fabric.memory;
    p->references = p->misses = p->stall = 0;
    for (unsigned i = 0; i < s->cpus; i++)
        close_front(s, &s->front[i]);
    for (size_t i = 0; s->is_watched && i < p->cells; i++)
        estimate_count_object(s->front[0].estimate, p->cell[i].object, p->cell[i].references);
    double *mu = mem_alloc(objects_count(p->objects) + 1, sizeof *mu);
    for (uint32_t i = 0; i < objects_count(p->objects); i++) {
        struct sampled_object o;
        sampled_object(s, i, &o);
        mu[i] = o.mu;
    }
    for (size_t i = 0; i < p->cells; i++) {
        struct profile_cell *c = &p->cell[i];
        scale_cell(c, mu[c->object], stall, &scale);
        p->references += c->references;
        p->misses += c->misses;
        for (unsigned k = 0; k < CAUSES; k++)
            p->stall += c->stall[k];
    }
    scale_leaves(s, p, mu, stall, &scale);
    free(mu);
    scale_rest(p, &scale);
    p->result.cycles = p->machine.cpus == 1
                           ? p->compute + p->stall + p->fetch
                           : times(p->result.cycles, by((double)(p->compute + p->stall + p->fetch), (double)time));
}

/* ---- from a source ---- */

int profile_open_source(struct source *inner, const struct machine_config *machine,
                        const struct sample_config *sampling, struct source **ret_source, struct profile **ret,
                        struct peet_err *err)
{
    int r = 0;

    *ret_source = NULL;
    if (!sampling)
        *ret_source = inner;
    else if ((r = source_take_sample(inner, sampling, ret_source, err)) < 0)
        return r; /* and the inner one is gone, too */
    r = profile_new(machine, *ret_source, ret, err);
    return r == 0 && sampling ? profile_set_sample(*ret, sampling, err) : r;
}

int profile_open_trace(struct peet_trace *t, const struct machine_config *machine, const struct sample_config *sampling,
                       struct source **ret_source, struct profile **ret, struct peet_err *err)
{
    struct source *inner;
    int r = source_open_trace(t, sampling != NULL, &inner, err);

    *ret_source = NULL;
    return r < 0 ? r : profile_open_source(inner, machine, sampling, ret_source, ret, err);
}
