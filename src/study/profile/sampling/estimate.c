/* SPDX-License-Identifier: MIT */
/* The cache of a sample (docs/design/sampling.md). The lines of a set are in the order of their last use. A set is emptied at its first reference in a sample. */
#include "study/profile/sampling/estimate.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "study/profile/sampling/estimate_in.h"

#define TURN UINT32_C(0x85ebca6b) /* added to the hash of sets from sample to sample, so that other sets are logged */

enum {
    FINE_BITS = 4,          /* log2 of the bins for a doubling of time, in direct-mapped caches */
    COARSE_BITS = 2,        /* log2 of those in other caches, which have bins for each way */
    ONE_IN_MOST = 32,       /* sets of which one is logged, at most */
    LOGGED_SETS_LEAST = 32, /* logged sets, at least */
};

static inline size_t bin_in(size_t bins, unsigned fine, uint64_t time)
{
    uint64_t steps = (uint64_t)1 << fine;
    size_t bin = (size_t)time;

    if (time >= steps) {
        unsigned doublings = 63 - (unsigned)__builtin_clzll(time) - fine;
        bin = (size_t)(doublings * steps + (time >> doublings));
    }
    return bin < bins ? bin : bins - 1;
}

static inline size_t bin_of(const struct estimate *e, uint64_t time)
{
    return bin_in(e->bins, e->fine, time);
}

/* ---- references ---- */

static void age_bins_init(const struct estimate *e, struct age_bins *a)
{
    size_t n = e->config.ways * (e->bins + 1);

    a->dead = mem_alloc(n, sizeof *a->dead);
    a->live = mem_alloc(n, sizeof *a->live);
    a->open = mem_alloc(n, sizeof *a->open);
    a->unknown = mem_alloc(n, sizeof *a->unknown);
}

static struct object_tally *object_tally_new(struct estimate *e, uint32_t object)
{
    while (e->objects <= object) {
        e->tally = mem_room(e->tally, e->objects, sizeof *e->tally);
        e->tally[e->objects++] = (struct object_tally){ 0 };
    }
    struct object_tally *t = &e->tally[object];
    if (!t->ages.dead)
        age_bins_init(e, &t->ages);
    return t;
}

/* The weight of an interval in a sample of `length` references: longer intervals fit less often into it. */
static inline double interval_weight(uint64_t length, uint64_t interval)
{
    return interval < length ? 1 / (double)(int64_t)(length - interval) : 1;
}

/* whole: references of the interval; part: those at its end after the line before it in the order of use was used last. */
static inline void interval_mass_add(struct interval_mass *m, uint64_t length, uint64_t whole, uint64_t part,
                                     double weight)
{
    if (MASS_PARTS * whole > (MASS_PARTS - 1) * length)
        return;
    m->sum += weight * (double)(int64_t)part;
    m->squares += weight * (double)(int64_t)part * weight * (double)(int64_t)part;
}

/* Adds the intervals that a reference ends: for each j, the one in which j other lines of its set were used and its own line was not.
 * at: position of its line in the order of use; the number of known lines if it is none of them. */
static void estimate_add_intervals(const struct estimate *e, struct object_tally *t, const struct sample_set *s,
                                   const struct sample_way *way, uint32_t at, uint64_t now)
{
    const struct age_bins *a = &t->ages;
    uint64_t before = 0;
    bool is_live = at < s->known, is_dead = !is_live && s->known == e->config.ways;
    double *to = is_live ? a->live : is_dead ? a->dead : a->open;

    for (uint32_t j = 0; j <= at && j < s->known; j++, to += e->bins + 1) {
        uint64_t whole = now - way[j].last;
        double weight = interval_weight(e->length, whole) * e->times;
        if (is_live || is_dead)
            interval_mass_add(is_live ? &t->live_mass : &t->dead_mass, e->length, whole, whole - before, weight);
        weight *= e->part;
        to[j ? bin_of(e, before) : 0] += weight;
        to[bin_of(e, whole) + 1] -= weight;
        before = whole;
    }
}

static void estimate_end_generation(struct object_tally *t, const struct sample_way *way, uint64_t now)
{
    if (way->filled == 0)
        return;
    t->generations++;
    t->generation += now + 1 - way->filled;
    t->dead += now - way->last;
}

static inline struct sample_set *estimate_enter_set(struct estimate *e, uint64_t line)
{
    struct sample_set *s = &e->set[line & (e->config.sets - 1)];

    if (s->sample != e->sample) {
        s->sample = e->sample;
        s->known = 0;
        if (s->group == 0)
            s->group = (uint8_t)(1 + e->last_group++ % ESTIMATE_GROUPS);
    }
    return s;
}

static inline struct object_tally *object_tally_of(struct estimate *e, uint32_t object)
{
    return object < e->objects && e->tally[object].ages.dead ? &e->tally[object] : object_tally_new(e, object);
}

enum estimate_outcome estimate_refer(struct estimate *e, uint64_t line, uint32_t object, uint64_t now)
{
    uint32_t ways = e->config.ways, at = 0;
    struct sample_set *s = estimate_enter_set(e, line);
    struct sample_way *way = &e->way[(line & (e->config.sets - 1)) * ways];
    struct object_tally *t = object_tally_of(e, object);
    struct set_group *g = &t->group[s->group - 1];
    enum estimate_outcome result = OUTCOME_HIT;

    assert(e->is_open);
    t->references++;
    g->references++;
    while (at < s->known && way[at].line != line)
        at++;
    estimate_add_intervals(e, t, s, way, at, now);
    struct sample_way entry = { line, now, 0, object };
    if (at < s->known) {
        entry.filled = way[at].filled;
    } else if (s->known < ways) {
        result = OUTCOME_UNKNOWN;
        e->unknown_at = s->known * (e->bins + 1) + bin_of(e, now);
        t->ages.unknown[e->unknown_at]++;
        t->unknown++;
        g->unknown++;
        s->known++;
    } else {
        result = OUTCOME_MISS;
        at = ways - 1;
        estimate_end_generation(t, &way[at], now);
        entry.filled = now + 1;
        t->misses++;
        g->misses++;
    }
    for (; at > 0; at--)
        way[at] = way[at - 1];
    way[0] = entry;
    return result;
}

/* Brings a set into the order of last uses, as the clock reports them. Returns the position of the line; the number of known lines if it is none of them. */
static uint32_t estimate_order_set(struct estimate *e, uint64_t line, const struct estimate_clock *c)
{
    const struct sample_set *s = estimate_enter_set(e, line);
    struct sample_way *way = &e->way[(line & (e->config.sets - 1)) * e->config.ways];
    uint32_t at = 0;

    if (e->config.ways == 1) {
        bool is_here = s->known && way->line == line;
        way->last = s->known && (!is_here || c->wait) ? c->last(c->context, way->line) : way->last;
        way->last = way->last < c->now ? way->last : c->now;
        return s->known && !is_here;
    }
    for (uint32_t i = 0; i < s->known; i++) {
        struct sample_way x = way[i];
        uint32_t k = i;
        if (x.line != line || c->wait) /* the line of a miss is used now */
            x.last = c->last(c->context, x.line);
        x.last = x.last < c->now ? x.last : c->now;
        for (; k > 0 && way[k - 1].last < x.last; k--)
            way[k] = way[k - 1];
        way[k] = x;
    }
    while (at < s->known && way[at].line != line)
        at++;
    return at;
}

/* The members of an estimate that a loop over log entries needs, for sets of one way. */
struct direct_sets {
    struct sample_set *set;
    struct sample_way *way;
    uint64_t mask, length;
    size_t bins;
    uint32_t sample, one_in;
    double times, part; /* as in struct estimate */
};

static inline struct direct_sets direct_sets_of(const struct estimate *e)
{
    return (struct direct_sets){ e->set,    e->way,        e->config.sets - 1, e->length, e->bins,
                                 e->sample, e->log.one_in, e->log.one_in,      e->part };
}

/* Adds a weight to the bins from 0 to that of the interval. */
static inline void direct_add_interval(const struct direct_sets *x, double *to, uint64_t interval, double weight)
{
    to[0] += weight;
    to[bin_in(x->bins, FINE_BITS, interval) + 1] -= weight;
}

/* A miss replaces the line of a set, which was used last at time `last`. */
static inline void direct_set_replace(const struct direct_sets *x, const struct sample_set *s, struct sample_way *way,
                                      struct object_tally *t, const struct sample_way *new, uint64_t last)
{
    uint64_t whole = new->last - last;

    double weight = interval_weight(x->length, whole) * x->times;
    interval_mass_add(&t->dead_mass, x->length, whole, whole, weight);
    direct_add_interval(x, t->ages.dead, whole, weight * x->part);
    if (way->filled) {
        t->generations += x->one_in;
        t->generation += (new->last + 1 - way->filled) * x->one_in;
        t->dead += whole * x->one_in;
    }
    t->misses++;
    t->group[s->group - 1].misses++;
    *way = *new;
}

/* The first reference to a set in this sample: its result is unknown. */
static void estimate_log_unknown(struct estimate *e, uint64_t line, uint32_t object, uint64_t now)
{
    struct sample_set *s = estimate_enter_set(e, line);
    struct object_tally *t = object_tally_of(e, object);

    assert(s->known == 0);
    e->unknown_at = bin_of(e, now);
    t->ages.unknown[e->unknown_at]++;
    t->unknown++;
    t->group[s->group - 1].unknown++;
    s->known = 1;
    e->way[line & (e->config.sets - 1)] = (struct sample_way){ line, now, 0, object };
}

/* estimate_miss for sets of one way: short, because most direct-mapped caches miss often. */
static enum estimate_outcome direct_miss(struct estimate *e, uint64_t line, uint32_t object,
                                         const struct estimate_clock *c)
{
    struct sample_set *s = estimate_enter_set(e, line);
    struct sample_way *way = &e->way[line & (e->config.sets - 1)];

    if (s->known == 0) {
        estimate_log_unknown(e, line, object, c->now);
        return OUTCOME_UNKNOWN;
    }
    if (!logged_sets_has(e->log.sets, line & (e->config.sets - 1))) {
        estimate_add_misses(e, object, 1);
        return OUTCOME_MISS;
    }
    uint64_t last = way->line == line ? way->last : c->last(c->context, way->line);
    struct direct_sets x = direct_sets_of(e);
    direct_set_replace(&x, s, way, object_tally_of(e, object), &(struct sample_way){ line, c->now, c->now + 1, object },
                       last < c->now ? last : c->now);
    return OUTCOME_MISS;
}

enum estimate_outcome estimate_miss(struct estimate *e, uint64_t line, uint32_t object, const struct estimate_clock *c)
{
    if (e->config.ways == 1)
        return direct_miss(e, line, object, c);
    const struct sample_set *s = estimate_enter_set(e, line);
    bool was_here =
        estimate_order_set(e, line, c) < s->known; /* an inclusive level may have removed what this cache would hold */
    enum estimate_outcome result = estimate_refer(e, line, object, c->now);
    struct object_tally *t = &e->tally[object];
    struct set_group *g = &t->group[s->group - 1];

    t->references--;
    g->references--;
    t->misses += was_here;
    g->misses += was_here;
    return was_here ? OUTCOME_MISS : result;
}

void estimate_use(struct estimate *e, uint64_t line, const struct estimate_clock *c)
{
    const struct sample_set *s = estimate_enter_set(e, line);
    const struct sample_way *way = &e->way[(line & (e->config.sets - 1)) * e->config.ways];
    uint32_t at = estimate_order_set(e, line, c);

    if (at == s->known || way[at].last >= c->now)
        return;
    uint64_t length = c->now - way[at].last;
    uint32_t object = way[at].object;
    e->times = length < c->wait ? (double)c->wait / (double)length : 1;
    estimate_refer(e, line, object, c->now);
    e->times = 1;
    e->tally[object].references--;
    e->tally[object].group[s->group - 1].references--;
}

static inline void estimate_log_miss(struct estimate *e, const struct direct_sets *x, const struct sample_entry *entry,
                                     uint64_t last, uint64_t now)
{
    const struct sample_way new = { entry->line, now, now + 1, (uint32_t)entry->what };
    struct sample_set *s = &x->set[entry->line & x->mask];
    struct sample_way *way = &x->way[entry->line & x->mask];
    struct object_tally *t = object_tally_of(e, new.object);

    if (__builtin_expect(s->sample != x->sample, 0))
        estimate_enter_set(e, entry->line);
    e->log.misses++;
    if (s->known) {
        direct_set_replace(x, s, way, t, &new, last < now ? last : now);
        return;
    }
    t->misses++; /* the line that it replaced was used by no reference of the sample: no interval ends */
    t->group[s->group - 1].misses++;
    s->known = 1;
    *way = new;
}

static inline void estimate_log_use(struct estimate *e, const struct direct_sets *x, const struct sample_entry *entry,
                                    uint64_t last, uint64_t now)
{
    const struct sample_set *s = &x->set[entry->line & x->mask];
    struct sample_way *way = &x->way[entry->line & x->mask];
    uint64_t length = now - last, wait = entry->what & ~SAMPLE_USE;

    if (s->sample != x->sample || !s->known || way->line != entry->line || last >= now)
        return;
    double weight = interval_weight(x->length, length) * (length < wait ? (double)wait / (double)length : 1) * x->times;
    struct object_tally *t = &e->tally[way->object];
    interval_mass_add(&t->live_mass, x->length, length, length, weight);
    direct_add_interval(x, t->ages.live, length, weight * x->part);
    way->last = now;
}

uint64_t estimate_add_log(struct estimate *e, const struct sample_entry *entry, size_t n, uint64_t from)
{
    const struct direct_sets x = direct_sets_of(e);
    uint64_t maybe_cold = 0;

    assert(e->is_open && e->config.ways == 1 && e->fine == FINE_BITS);
    for (size_t i = 0; i < n; i++) {
        uint64_t now = entry[i].number - from, last = entry[i].last > from ? entry[i].last - from : 0;
        if (entry[i].what & SAMPLE_USE) {
            estimate_log_use(e, &x, &entry[i], last, now);
            continue;
        }
        if (entry[i].what & SAMPLE_MAYBE_COLD) {
            maybe_cold++;
            object_tally_of(e, (uint32_t)entry[i].what)->fresh++;
        }
        if (entry[i].what & SAMPLE_UNKNOWN)
            estimate_log_unknown(e, entry[i].line, (uint32_t)entry[i].what, now);
        else
            estimate_log_miss(e, &x, &entry[i], last, now);
    }
    return maybe_cold;
}

void estimate_add_misses(struct estimate *e, uint32_t object, uint64_t misses)
{
    assert(e->is_open);
    object_tally_of(e, object)->misses += misses;
}

/* The fewest sets that would have had as many misses in the sample before as there are sets in all, within the limits. */
struct logged_sets estimate_choose_logged_sets(struct estimate *e)
{
    assert(!e->is_open);
    e->log.one_in = 1;
    while (!e->has_groups && e->log.one_in < ONE_IN_MOST && e->config.sets / e->log.one_in > LOGGED_SETS_LEAST
           && e->log.misses_before / e->log.one_in >= 2 * e->config.sets)
        e->log.one_in *= 2;
    e->log.sets = (struct logged_sets){ e->sample * TURN, UINT32_MAX / e->log.one_in };
    return e->log.sets;
}

void estimate_add_references(struct estimate *e, uint64_t references)
{
    assert(e->is_open);
    e->bulk_references += references;
}

void estimate_add_time(struct estimate *e, double cycles)
{
    assert(e->is_open);
    e->time += cycles;
}

void estimate_add_fresh(struct estimate *e, uint32_t object)
{
    object_tally_of(e, object)->fresh++;
}

void estimate_add_object_references(struct estimate *e, uint32_t object, uint64_t references)
{
    object_tally_new(e, object)->references += references;
    e->has_all = false;
}

void estimate_set_cold(struct estimate *e, uint64_t line, uint32_t object, uint64_t now)
{
    struct sample_set *s = &e->set[line & (e->config.sets - 1)];
    struct sample_way *way = &e->way[(line & (e->config.sets - 1)) * e->config.ways];
    struct object_tally *t = &e->tally[object];
    struct set_group *g = &t->group[s->group - 1];

    assert(e->is_open && way->line == line && way->last == now && way->filled == 0);
    t->ages.unknown[e->unknown_at]--;
    t->unknown--;
    t->misses++;
    g->unknown--;
    g->misses++;
    way->filled = now + 1;
}

static struct set_group *set_group_of(struct estimate *e, uint32_t object, uint64_t line)
{
    return &e->tally[object].group[e->set[line & (e->config.sets - 1)].group - 1];
}

void estimate_join_line(struct estimate *e, uint32_t object, uint64_t line)
{
    e->tally[object].references--;
    set_group_of(e, object, line)->references--;
}

/* ---- life ---- */

int estimate_new(const struct estimate_config *config, struct estimate **ret, struct peet_err *err)
{
    struct estimate *e;

    if (config->sets == 0 || (config->sets & (config->sets - 1)) || config->ways == 0 || config->ways > UINT16_MAX)
        return err_set(err, PEET_ERR_USAGE,
                       "%" PRIu64 " sets of %" PRIu32
                       " ways; a power of two of sets, and at least one way was expected",
                       config->sets, config->ways);
    if (config->length == 0)
        return err_set(err, PEET_ERR_USAGE, "samples of no references; at least 1 was expected");
    e = calloc(1, sizeof *e);
    if (!e)
        return err_set(err, PEET_ERR_MEMORY, "no memory for the cache of a sample");
    e->config = *config;
    e->times = 1;
    e->log.one_in = e->batches.in_each = 1;
    e->log.sets.limit = UINT32_MAX;
    e->fine = config->ways == 1 ? FINE_BITS : COARSE_BITS;
    e->bins = SIZE_MAX;
    e->bins = bin_of(e, config->length) + 2;
    e->set = calloc(config->sets, sizeof *e->set);
    e->way = calloc(config->sets * config->ways, sizeof *e->way);
    if (!e->set || !e->way) {
        estimate_free(e);
        return err_set(err, PEET_ERR_MEMORY, "no memory for the cache of a sample");
    }
    age_bins_init(e, &e->all.ages);
    *ret = e;
    return 0;
}

void estimate_set_groups(struct estimate *e, const uint8_t *group)
{
    for (uint64_t i = 0; i < e->config.sets; i++)
        e->set[i].group = (uint8_t)(1 + group[i]);
    e->has_groups = true;
}

static void age_bins_release(struct age_bins *a)
{
    free(a->dead);
    free(a->live);
    free(a->open);
    free(a->unknown);
}

void estimate_free(struct estimate *e)
{
    if (!e)
        return;
    for (uint32_t i = 0; i < e->objects; i++)
        age_bins_release(&e->tally[i].ages);
    age_bins_release(&e->all.ages);
    free(e->tally);
    free(e->set);
    free(e->way);
    free(e);
}
