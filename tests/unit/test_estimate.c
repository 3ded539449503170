/* SPDX-License-Identifier: MIT */
/* Estimates from samples, against a cache that is never forgotten; on references with known behaviour. */
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "map/source/set_sample.h"
#include "study/profile/sampling/estimate.h"
#include "study/profile/sampling/interval.h"
#include "tests/unit/random.h"

static uint64_t state = 1;

/* ---- the oracle: a cache, slow and obvious ---- */

struct cache {
    uint64_t sets, now;
    unsigned ways;
    uint64_t *line, *used; /* line: 1 + its number, 0: none */
};

static struct cache *cache_new(uint64_t sets, unsigned ways)
{
    struct cache *c = calloc(1, sizeof *c);

    *c = (struct cache){ sets, 0, ways, calloc(sets * ways, 8), calloc(sets * ways, 8) };
    return c;
}

static void cache_free(struct cache *c)
{
    free(c->line);
    free(c->used);
    free(c);
}

/* Whether it was there. */
static bool cache_refer(struct cache *c, uint64_t line)
{
    uint64_t first = (line & (c->sets - 1)) * c->ways, oldest = first;

    c->now++;
    for (uint64_t i = first; i < first + c->ways; i++) {
        if (c->line[i] == line + 1) {
            c->used[i] = c->now;
            return true;
        }
        if (c->used[i] < c->used[oldest])
            oldest = i;
    }
    c->line[oldest] = line + 1;
    c->used[oldest] = c->now;
    return false;
}

/* ---- truth and estimate of a run ---- */

enum { OBJECTS = 8 };

struct truth {
    uint64_t references[OBJECTS + 1], misses[OBJECTS + 1]; /* in samples; the last is all */
    uint64_t unknown[OBJECTS + 1], unknown_misses[OBJECTS + 1];
    uint64_t run, run_misses; /* of all of the time */
};

struct run {
    struct estimate_config config;
    uint64_t every, total, from; /* from: of the first sample in its period */
    uint64_t (*next)(uint64_t now, uint32_t *object);
    bool tells_cold; /* estimate_set_cold is called for lines without an earlier use */
};

enum { FEW_LINES = 1 << 15 }; /* accepted in a run with estimate_set_cold */

static void count_truth(struct truth *t, uint32_t object, bool is_miss, enum estimate_outcome outcome)
{
    t->references[object]++;
    t->misses[object] += is_miss;
    t->unknown[object] += outcome == OUTCOME_UNKNOWN;
    t->unknown_misses[object] += outcome == OUTCOME_UNKNOWN && is_miss;
}

/* All that is known must be so. */
static struct estimate *run(const struct run *r, struct truth *t)
{
    struct cache *c = cache_new(r->config.sets, r->config.ways);
    struct estimate *e = NULL;
    struct peet_err err;
    uint64_t wrong = 0;
    static bool is_used[FEW_LINES];

    memset(is_used, 0, sizeof is_used);
    *t = (struct truth){ .run = r->total };
    CHECK_EQ(estimate_new(&r->config, &e, &err), 0);
    for (uint64_t i = 0; i < r->total; i++) {
        uint64_t at = (i + r->every - r->from) % r->every;
        uint32_t object = 0;
        uint64_t line = r->next(i, &object);
        bool is_miss = !cache_refer(c, line), is_cold = r->tells_cold && !is_used[line % FEW_LINES];
        is_used[line % FEW_LINES] = true;
        t->run_misses += is_miss;
        if (i < r->from)
            continue;
        if (at == 0)
            estimate_begin(e);
        if (at < r->config.length) {
            enum estimate_outcome outcome = estimate_refer(e, line, object, at);
            if (outcome == OUTCOME_UNKNOWN && is_cold) {
                estimate_set_cold(e, line, object, at);
                outcome = OUTCOME_MISS;
            }
            wrong += outcome != OUTCOME_UNKNOWN && (outcome == OUTCOME_MISS) != is_miss;
            count_truth(t, object, is_miss, outcome);
            count_truth(t, OBJECTS, is_miss, outcome);
        }
        if (at == r->config.length - 1)
            estimate_end(e, 0);
    }
    CHECK_EQ(wrong, 0);
    cache_free(c);
    return e;
}

static double true_mu(const struct truth *t, unsigned object)
{
    return t->unknown[object] ? (double)t->unknown_misses[object] / (double)t->unknown[object] : 0;
}

static double true_rate(const struct truth *t, unsigned object)
{
    return t->references[object] ? (double)t->misses[object] / (double)t->references[object] : 0;
}

static void check_bounds(struct estimate *e, const struct truth *t)
{
    for (unsigned i = 0; i <= OBJECTS; i++) {
        struct estimate_result r;
        double rate = true_rate(t, i);
        estimate_result(e, i < OBJECTS ? i : ESTIMATE_ALL, &r);
        CHECK_EQ(r.references, t->references[i]);
        CHECK_EQ(r.unknown, t->unknown[i]);
        CHECK(r.low <= rate && rate <= r.high);
        CHECK_EQ(r.misses + t->unknown_misses[i], t->misses[i]);
        for (unsigned k = 0; k < ESTIMATORS_COUNT; k++)
            CHECK(r.mu[k] >= 0 && r.mu[k] <= 1 && r.low <= r.rate[k] && r.rate[k] <= r.high);
    }
}

/* ---- bounds ---- */

static uint64_t lines, stride;

static uint64_t any_line(uint64_t now, uint32_t *object)
{
    *object = (uint32_t)draw(&state, OBJECTS);
    switch (*object) {
    case 0: return now / 4;
    case 1: return draw(&state, lines);
    case 2: return now * stride % lines;
    default: return draw(&state, 1 + draw(&state, lines / 4 + 1));
    }
}

static void the_truth_is_always_between_the_bounds(void)
{
    for (unsigned round = 0; round < 300; round++) {
        uint64_t length = 1 + draw(&state, 2000);
        struct run r = { { (uint64_t)1 << draw(&state, 7), 1 + (uint32_t)draw(&state, 5), length },
                         length + draw(&state, 4000),
                         (1 + draw(&state, 20)) * 6000,
                         0,
                         any_line,
                         round % 2 == 1 };
        struct truth t;
        lines = 1 + draw(&state, 2000);
        stride = draw(&state, 100);
        r.total -= r.total % r.every;
        if (r.total == 0)
            continue;
        struct estimate *e = run(&r, &t);
        check_bounds(e, &t);
        estimate_free(e);
    }
}

/* ---- estimators, exactly, where there is little to count ---- */

static void the_estimators_of_a_short_sample_are_what_one_reckons_by_hand(void)
{
    /* Set 0 of a direct-mapped cache: lines 0, 2, 2, 0, 0, 2 at times 0, 1, 3, 6, 7, 8; set 1: line 1 at time 4. */
    static const uint64_t LINE[] = { 0, 2, 2, 0, 1, 0, 2 }, AT[] = { 0, 1, 3, 6, 4, 7, 8 };
    static const enum estimate_outcome IS[] = { OUTCOME_UNKNOWN, OUTCOME_MISS, OUTCOME_HIT, OUTCOME_MISS,
                                                OUTCOME_UNKNOWN, OUTCOME_HIT,  OUTCOME_MISS };
    struct estimate *e;
    struct estimate_result r;
    struct peet_err err;

    CHECK_EQ(estimate_new(&(struct estimate_config){ 2, 1, 10 }, &e, &err), 0);
    estimate_begin(e);
    for (unsigned i = 0; i < 7; i++)
        CHECK_EQ(estimate_refer(e, LINE[i], 0, AT[i]), IS[i]);
    estimate_end(e, 0);
    estimate_result(e, ESTIMATE_ALL, &r);
    CHECK_EQ(r.misses, 3);
    CHECK_EQ(r.unknown, 2);
    CHECK(fabs(r.rate[ESTIMATE_half] - 4.0 / 7) < 1e-12);
    CHECK(fabs(r.low - 3.0 / 7) < 1e-12 && fabs(r.high - 5.0 / 7) < 1e-12);
    /* Generations: 1 to 6, used last at 3; 6 to 8, used last at 7. */
    CHECK_EQ(r.generations, 2);
    CHECK(fabs(r.mu[ESTIMATE_generation] - 4.0 / 7) < 1e-12);
    CHECK(fabs(r.quality - 1) < 1e-12);
    CHECK(fabs(r.touched - 1) < 1e-12);
    /* Intervals: dead 1, 3, 1; live 2, 1. At t = 0 all of them cover the unknown reference, at t = 4 none does, and t = 3 is the last that
     * is known: the dead one of 3. */
    double dead = 1.0 / 9 + 1.0 / 7 + 1.0 / 9, live = 1.0 / 8 + 1.0 / 9;
    CHECK(fabs(r.mu[ESTIMATE_age] - (dead / (dead + live) + 1) / 2) < 1e-12);
    CHECK(isnan(r.spread[ESTIMATE_half]));
    estimate_free(e);
}

static void a_sample_may_be_longer_than_was_said(void)
{
    for (uint32_t ways = 1; ways <= 3; ways++)
        for (uint64_t length = 1; length < 40; length += 3) {
            struct estimate *e;
            struct estimate_result r;
            struct peet_err err;
            CHECK_EQ(estimate_new(&(struct estimate_config){ 4, ways, length }, &e, &err), 0);
            estimate_begin(e);
            for (uint64_t i = 0; i < 1000; i++)
                estimate_refer(e, draw(&state, 40), 0, i);
            estimate_end(e, 0);
            estimate_result(e, ESTIMATE_ALL, &r);
            CHECK_EQ(r.references, 1000);
            CHECK_EQ(r.unknown, 4 * ways);
            CHECK(r.mu[ESTIMATE_age] >= 0 && r.mu[ESTIMATE_age] <= 1);
            estimate_free(e);
        }
}

/* Two lines at a time: the reference counts once, and each of its lines has its own outcome. */
static void a_reference_to_two_lines_counts_once_and_each_line_has_its_outcome(void)
{
    struct estimate *e;
    struct estimate_result r;
    struct peet_err err;
    uint64_t count[3] = { 0 };

    CHECK_EQ(estimate_new(&(struct estimate_config){ 64, 2, 1000 }, &e, &err), 0);
    for (unsigned sample = 0; sample < 20; sample++) {
        estimate_begin(e);
        for (uint64_t i = 0; i < 1000; i++) {
            uint64_t line = draw(&state, 300);
            for (uint64_t k = line; k < line + 2; k++) {
                enum estimate_outcome outcome = estimate_refer(e, k, 0, i);
                if (k > line)
                    estimate_join_line(e, 0, k);
                if (outcome == OUTCOME_UNKNOWN && draw(&state, 4) == 0) {
                    estimate_set_cold(e, k, 0, i);
                    outcome = OUTCOME_MISS;
                }
                count[outcome]++;
            }
        }
        estimate_end(e, 0);
    }
    estimate_result(e, ESTIMATE_ALL, &r);
    CHECK_EQ(r.references, 20000);
    CHECK_EQ(count[OUTCOME_HIT] + count[OUTCOME_MISS] + count[OUTCOME_UNKNOWN], 40000);
    CHECK_EQ(r.misses, count[OUTCOME_MISS]);
    CHECK_EQ(r.unknown, count[OUTCOME_UNKNOWN]);
    CHECK(count[OUTCOME_UNKNOWN] > 100 && r.mu[ESTIMATE_age] >= 0 && r.mu[ESTIMATE_age] <= 1);
    estimate_free(e);
}

/* Samples of one set: one unknown reference, then misses, then hits. Their number of misses goes up and down. */
static unsigned misses_of(unsigned sample)
{
    return sample * 37 % 90;
}

/* With more samples than there is room for, neighbours are added up. */
static void the_spread_is_that_of_the_samples(void)
{
    enum { LENGTH = 101, MOST = 200, ROOM = 64 };
    static const unsigned SAMPLES[] = { 5, 6, ROOM, MOST };

    for (unsigned k = 0; k < 4; k++) {
        double references[MOST] = { 0 }, held[MOST] = { 0 };
        unsigned samples = SAMPLES[k], each = samples > 2 * ROOM ? 4 : samples > ROOM ? 2 : 1;
        struct estimate *e;
        struct estimate_result r;
        struct peet_err err;
        CHECK_EQ(estimate_new(&(struct estimate_config){ 1, 1, LENGTH }, &e, &err), 0);
        for (unsigned s = 0; s < samples; s++) {
            estimate_begin(e);
            for (unsigned i = 0; i < LENGTH; i++)
                estimate_refer(e, i < misses_of(s) ? i : misses_of(s), 0, i);
            estimate_end(e, 0);
            references[s / each] += LENGTH;
            held[s / each] += misses_of(s) + 0.5;
        }
        estimate_set_run(e, &(struct estimate_run){ 0.2, 0.01 });
        estimate_result(e, ESTIMATE_ALL, &r);
        double want = interval_error(
            &(struct interval_windows){ (samples + each - 1) / each, samples, references, held, LENGTH, 0.2, 0.01, 0 });
        CHECK(samples < 6 ? isnan(r.spread[ESTIMATE_half]) : fabs(r.spread[ESTIMATE_half] - want) < 1e-12);
        estimate_free(e);
    }
}

/* ---- workloads of which it is known what they do ---- */

/* All is a quarter of what section 5 of the paper has: the cache, and the samples. */
enum { KB = 4, MB = 4 << 10, SAMPLE = 125000, EVERY = 1250000, RUN_LENGTH = 12 * EVERY };

static uint64_t streams_and_hot(uint64_t now, uint32_t *object)
{
    static uint64_t at;

    *object = now % 3 == 0;
    return *object ? MB * 1000 + draw(&state, 256 * KB) : at++ / 8 % (32 * MB);
}

static double zipf_sum[8 * MB];

/* Line of rank r is as likely as 1 / (r + 1) to a power. */
static uint64_t zipf(uint64_t now, uint32_t *object)
{
    static const double POWER = 1.05;
    uint64_t low = 0, high = 8 * MB - 1;

    (void)object;
    if (now == 0)
        for (uint64_t i = 0; i < 8 * MB; i++)
            zipf_sum[i] = (i ? zipf_sum[i - 1] : 0) + pow((double)(i + 1), -POWER);
    double x = (double)draw(&state, 1u << 30) / (1u << 30) * zipf_sum[8 * MB - 1];
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (zipf_sum[middle] < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low * 40503 % (8 * MB); /* ranks are scattered; the factor is odd, so that none meet */
}

/* A block of 256 KB is used for a long time, then the next of six; one reference in twenty is to lines that push each other out. */
static uint64_t blocked(uint64_t now, uint32_t *object)
{
    static uint64_t turn;
    uint64_t block = now / 1750000 % 6;

    (void)object;
    if (draw(&state, 20) == 0)
        return 100 * MB + turn++ % 128 * MB + 700 * KB;
    return block * 256 * KB + draw(&state, 256 * KB);
}

/* All is there but for two lines that push each other out, now and then. */
static uint64_t low_miss(uint64_t now, uint32_t *object)
{
    static uint64_t turn;

    (void)now;
    (void)object;
    if (draw(&state, 12000) == 0)
        turn++;
    else
        return draw(&state, 512 * KB);
    return 100 * MB + turn % 2 * MB + 900 * KB + turn / 16 % 8;
}

struct row {
    const char *name;
    uint64_t (*next)(uint64_t now, uint32_t *object);
};

static struct estimate *run_row(const struct row *w, uint32_t ways, struct truth *t, struct estimate_result *r)
{
    struct run x = { { MB / ways, ways, SAMPLE }, EVERY, RUN_LENGTH, EVERY / 2, w->next, false };
    struct estimate *e = run(&x, t);

    estimate_result(e, ESTIMATE_ALL, r);
    printf("# %-12s %u ways: mu true %.3f generation %.3f age %.3f; g %.2f; m true %.4f half %.4f generation %.4f age "
           "%.4f; mu in %.4f to %.4f\n",
           w->name, ways, true_mu(t, OBJECTS), r->mu[ESTIMATE_generation], r->mu[ESTIMATE_age], r->quality,
           100 * true_rate(t, OBJECTS), 100 * r->rate[ESTIMATE_half], 100 * r->rate[ESTIMATE_generation],
           100 * r->rate[ESTIMATE_age], r->mu_low, r->mu_high);
    check_bounds(e, t);
    return e;
}

static const struct row ROWS[] = {
    { "streams+hot", streams_and_hot }, { "zipf", zipf }, { "blocked", blocked }, { "low-miss", low_miss }
};

static void ages_tell_unknown_misses_where_generations_and_half_do_not(void)
{
    for (unsigned i = 0; i < 4; i++) {
        struct truth t;
        struct estimate_result r;
        estimate_free(run_row(&ROWS[i], 1, &t, &r));
        double mu = true_mu(&t, OBJECTS), off = fabs(r.mu[ESTIMATE_age] - mu);
        CHECK(off < 0.05);
        CHECK(r.mu_low <= mu && mu <= r.mu_high);
        CHECK(off < fabs(0.5 - mu));
        if (i >= 2) {
            CHECK(off < fabs(r.mu[ESTIMATE_generation] - mu) / 4);
            CHECK(fabs(r.rate[ESTIMATE_age] - true_rate(&t, OBJECTS)) < 0.0005);
        }
        if (i == 3) { /* as with ESPRESSO in the paper */
            CHECK(r.mu[ESTIMATE_generation] > 0.9 && mu < 0.01 && r.quality < 0.1);
            CHECK(r.rate[ESTIMATE_half] > 20 * true_rate(&t, OBJECTS));
        }
    }
}

static void ages_work_in_sets_of_several_ways(void)
{
    for (unsigned i = 0; i < 4; i++) {
        struct truth t;
        struct estimate_result r;
        estimate_free(run_row(&ROWS[i], 4, &t, &r));
        CHECK(fabs(r.mu[ESTIMATE_age] - true_mu(&t, OBJECTS)) < 0.1);
        CHECK(r.mu_low <= true_mu(&t, OBJECTS) && true_mu(&t, OBJECTS) <= r.mu_high);
    }
}

/* Samples are so short that no line comes again in them: whether it is still there, they cannot know. */
static uint64_t in_turn(uint64_t now, uint32_t *object)
{
    (void)object;
    return now % lines;
}

static void what_no_sample_shows_may_be_all_or_nothing(void)
{
    for (lines = 2000; lines <= 8000; lines += 6000) { /* all of them are hits, and then all are misses */
        struct run x = { { 4096, 1, 1000 }, 10000, 1000000, 5000, in_turn, false };
        struct truth t;
        struct estimate_result r;
        struct estimate *e = run(&x, &t);
        estimate_result(e, ESTIMATE_ALL, &r);
        CHECK(r.mu_low <= true_mu(&t, OBJECTS) && true_mu(&t, OBJECTS) <= r.mu_high);
        CHECK(r.mu_low == 0 && r.mu_high == 1);
        estimate_free(e);
    }
}

/* ---- objects ---- */

/* Object 0 streams, 1 stays, 2 is somewhere between. */
static uint64_t mix_of_objects(uint64_t now, uint32_t *object)
{
    static uint64_t at;

    *object = (uint32_t)(now % 4 < 2 ? 1 : now % 4 == 2 ? 0 : 2);
    switch (*object) {
    case 0: at++; return 200 * MB + at / 16 / (256 * KB) % 16 * MB + at / 16 % (256 * KB);
    case 1: return 512 * KB + draw(&state, 256 * KB);
    default: return 768 * KB + draw(&state, 2) * MB + draw(&state, 256 * KB);
    }
}

static void mu_by_object_beats_one_mu_for_all(void)
{
    struct run x = { { MB, 1, SAMPLE }, EVERY, RUN_LENGTH, EVERY / 2, mix_of_objects, false };
    struct truth t;
    struct estimate *e = run(&x, &t);
    double pooled = estimate_pooled_age(e), off = 0, off_pooled = 0;

    for (unsigned i = 0; i < 3; i++) {
        struct estimate_result r;
        estimate_result(e, i, &r);
        printf("# object %u: mu true %.3f, its own %.3f, one for all %.3f\n", i, true_mu(&t, i), r.mu[ESTIMATE_age],
               pooled);
        off += fabs(r.mu[ESTIMATE_age] - true_mu(&t, i));
        off_pooled += fabs(pooled - true_mu(&t, i));
        CHECK(fabs(r.mu[ESTIMATE_age] - true_mu(&t, i)) < 0.1);
    }
    CHECK(off < off_pooled / 3);
    check_bounds(e, &t);
    estimate_free(e);
}

/* ---- sets ---- */

enum { SETS = 4096, CLASSES = 16, SET_RUN = 3000000 };

static uint64_t scrambled(uint64_t x)
{
    x = (x + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
    return x ^ x >> 32;
}

static uint64_t class_of(uint64_t line, bool is_hashed)
{
    uint64_t set = line % SETS;

    return (is_hashed ? scrambled(set) : set) % CLASSES;
}

static uint64_t only_streams(uint64_t now, uint32_t *object)
{
    (void)object;
    return now % 3 * 40 * MB + now / 24 % (8 * MB);
}

static uint64_t hot_and_random(uint64_t now, uint32_t *object)
{
    (void)object;
    return now % 10 ? now % 4 * 1111 : draw(&state, 8 * MB);
}

static uint64_t two_kb_stride(uint64_t now, uint32_t *object)
{
    (void)object;
    return now * 32 % (64 * MB);
}

/* Mean relative errors of both estimators over the classes of sets; and how often they disagreed. */
static void sample_sets(uint64_t (*next)(uint64_t, uint32_t *), bool is_hashed, double ret[2], unsigned *ret_disagree)
{
    struct cache *c = cache_new(SETS, 4);
    struct estimate *e[CLASSES];
    struct peet_err err;
    uint64_t misses = 0, given[CLASSES] = { 0 }, sets[CLASSES] = { 0 };

    for (unsigned i = 0; i < CLASSES; i++) {
        CHECK_EQ(estimate_new(&(struct estimate_config){ SETS, 4, SET_RUN }, &e[i], &err), 0);
        estimate_begin(e[i]);
    }
    for (uint64_t i = 0; i < SETS; i++)
        sets[class_of(i, is_hashed)]++;
    for (uint64_t i = 0; i < SET_RUN; i++) {
        uint32_t object = 0;
        uint64_t line = next(i, &object), class = class_of(line, is_hashed);
        misses += !cache_refer(c, line);
        if (estimate_refer(e[class], line, object, i) == OUTCOME_UNKNOWN)
            estimate_set_cold(e[class], line, object, i); /* at the beginning the cache is empty */
        given[class]++;
    }
    ret[0] = ret[1] = *ret_disagree = 0;
    for (unsigned i = 0; i < CLASSES; i++) {
        struct estimate_sets s;
        estimate_end(e[i], SET_RUN - given[i]);
        estimate_sets(e[i], ESTIMATE_ALL, ESTIMATE_half, (double)sets[i] / SETS, SET_RUN, &s);
        ret[0] += fabs(s.ratio / (double)misses - 1) / CLASSES;
        ret[1] += fabs(s.fraction / (double)misses - 1) / CLASSES;
        *ret_disagree += s.disagree;
        estimate_free(e[i]);
    }
    cache_free(c);
}

static void samples_of_sets_err_where_they_are_known_to(void)
{
    static const struct {
        const char *name;
        uint64_t (*next)(uint64_t, uint32_t *);
        double most[4], least[4];               /* bits: ratio, fraction; hashed: ratio, fraction */
        unsigned disagree_most, disagree_least; /* hashed, of 16 */
    } CASE[] = {
        { "streams", only_streams, { 0.02, 0.02, 0.02, 0.02 }, { 0, 0, 0, 0 }, 0, 0 },
        { "zipf", zipf, { 0.6, 0.02, 0.6, 0.02 }, { 0.05, 0, 0.05, 0 }, 16, 4 },
        { "hot", hot_and_random, { 20, 0.02, 20, 0.02 }, { 0.5, 0, 0.5, 0 }, 16, 12 },
        { "stride", two_kb_stride, { 1, 2, 0.02, 0.6 }, { 0.9, 1.8, 0, 0.05 }, 16, 4 },
    };

    for (unsigned i = 0; i < 4; i++)
        for (unsigned hashed = 0; hashed < 2; hashed++) {
            double off[2];
            unsigned disagree;
            sample_sets(CASE[i].next, hashed, off, &disagree);
            printf("# %-8s %s: ratio off by %.1f %%, fraction by %.1f %%, disagree %u\n", CASE[i].name,
                   hashed ? "hashed" : "bits  ", 100 * off[0], 100 * off[1], disagree);
            for (unsigned k = 0; k < 2; k++)
                CHECK(off[k] <= CASE[i].most[2 * hashed + k] && off[k] >= CASE[i].least[2 * hashed + k]);
            if (hashed)
                CHECK(disagree <= CASE[i].disagree_most && disagree >= CASE[i].disagree_least);
        }
}

enum { REGULAR = 4 };

/* Some data go through all sets a few times and end somewhere, and nothing stays in the cache. Counts the objects whose misses are
 * not in the interval. */
static void miss_regularly(uint64_t seed, unsigned ret_off[REGULAR])
{
    static const uint64_t LINES[REGULAR] = { 9 * SETS + 3000, 3 * SETS + 20, SETS - 40, SETS / 2 };
    enum { PASSES = 3, ONE_IN = 16 };
    uint8_t group[SETS];
    struct estimate *e;
    struct set_sample set;
    struct peet_err err;
    uint64_t given = 0, run = 0;

    CHECK_EQ(set_sample_init(&set, SETS, ONE_IN, seed, 5), 0);
    CHECK_EQ(set_sample_groups(SETS, seed, ESTIMATE_GROUPS, group), 0);
    CHECK_EQ(estimate_new(&(struct estimate_config){ SETS, 1, SET_RUN }, &e, &err), 0);
    estimate_set_groups(e, group);
    estimate_begin(e);
    for (unsigned pass = 0; pass < PASSES; pass++)
        for (uint32_t object = 0; object < REGULAR; object++)
            for (uint64_t i = 0; i < LINES[object]; i++, run++) {
                uint64_t line = object * 64 * SETS + i;
                if (!set_sample_has(&set, line % SETS))
                    continue;
                if (estimate_refer(e, line, object, given) == OUTCOME_UNKNOWN)
                    estimate_set_cold(e, line, object, given);
                given++;
            }
    estimate_end(e, run - given);
    for (uint32_t object = 0; object < REGULAR; object++) {
        struct estimate_sets s;
        estimate_sets(e, object, ESTIMATE_half, 1.0 / ONE_IN, (double)run, &s);
        ret_off[object] += fabs(s.fraction - (double)(PASSES * LINES[object])) > s.fraction_error;
    }
    estimate_free(e);
    set_sample_release(&set);
}

static void sets_of_regular_programs_say_how_much_they_may_be_off(void)
{
    unsigned off[REGULAR] = { 0 };

    for (uint64_t seed = 1; seed <= 100; seed++)
        miss_regularly(seed, off);
    printf("# not in the interval: %u, %u, %u and %u of 100\n", off[0], off[1], off[2], off[3]);
    for (unsigned i = 0; i < REGULAR; i++)
        CHECK(off[i] <= 10);
}

static void caches_that_cannot_be_are_refused(void)
{
    static const struct estimate_config BAD[] = { { 0, 1, 10 }, { 3, 1, 10 }, { 4, 0, 10 }, { 4, 1, 0 } };
    struct estimate *e = NULL;
    struct peet_err err;

    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(estimate_new(&BAD[i], &e, &err), PEET_ERR_USAGE);
        CHECK(!e && strstr(err.text, "expected"));
    }
}

int main(void)
{
    RUN(the_truth_is_always_between_the_bounds);
    RUN(the_estimators_of_a_short_sample_are_what_one_reckons_by_hand);
    RUN(a_sample_may_be_longer_than_was_said);
    RUN(a_reference_to_two_lines_counts_once_and_each_line_has_its_outcome);
    RUN(the_spread_is_that_of_the_samples);
    RUN(ages_tell_unknown_misses_where_generations_and_half_do_not);
    RUN(ages_work_in_sets_of_several_ways);
    RUN(what_no_sample_shows_may_be_all_or_nothing);
    RUN(mu_by_object_beats_one_mu_for_all);
    RUN(samples_of_sets_err_where_they_are_known_to);
    RUN(sets_of_regular_programs_say_how_much_they_may_be_off);
    RUN(caches_that_cannot_be_are_refused);
    return check_done();
}
