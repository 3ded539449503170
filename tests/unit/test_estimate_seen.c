/* SPDX-License-Identifier: MIT */
/* Estimates from the sample log of a direct-mapped cache, against estimates from all references. */
#include <math.h>

#include "check.h"
#include "study/profile/sampling/estimate.h"
#include "tests/unit/random.h"

enum { SETS_MOST = 1024, OBJECTS = 3, SEEN_MOST = 100 };
#define FROM UINT64_C(1000)

struct teller {
    struct estimate *estimate;
    uint64_t sets;
    struct logged_sets choice; /* the sets that it logs */
    uint64_t line[SETS_MOST], last[SETS_MOST];
    bool is_known[SETS_MOST];
    struct sample_entry seen[SEEN_MOST];
    size_t count;
    uint64_t told, untold; /* misses */
};

static uint64_t state = 1;

static void tell_seen(struct teller *t)
{
    estimate_add_log(t->estimate, t->seen, t->count, FROM);
    t->count = 0;
}

static void tell_reference(struct teller *t, uint64_t line, uint32_t object, uint64_t now)
{
    uint64_t set = line % t->sets;
    struct sample_entry seen = { line, FROM + now, FROM + t->last[set], object };
    bool is_use = t->line[set] == line;

    if (!t->is_known[set] || t->count == SEEN_MOST)
        tell_seen(t);
    if (!t->is_known[set]) {
        CHECK_EQ(estimate_miss(t->estimate, line, object, &(struct estimate_clock){ .now = now }), OUTCOME_UNKNOWN);
    } else if (logged_sets_has(t->choice, set)) {
        seen.what = is_use ? SAMPLE_USE | 1 : object;
        t->seen[t->count++] = seen;
        t->told += !is_use;
    } else if (!is_use) {
        estimate_add_misses(t->estimate, object, 1);
        t->untold++;
    }
    t->is_known[set] = true;
    t->line[set] = line;
    t->last[set] = now;
}

/* Samples of random references to lines, of which some are used more often, for both. */
static void make_samples(struct estimate *all, struct teller *t, unsigned samples, uint64_t length, bool has_choice,
                         uint64_t hot, uint64_t lines)
{
    uint64_t references[OBJECTS] = { 0 };

    for (unsigned i = 0; i < samples; i++) {
        t->choice = has_choice ? estimate_choose_logged_sets(t->estimate) : (struct logged_sets){ 0, UINT32_MAX };
        estimate_begin(all);
        estimate_begin(t->estimate);
        memset(t->is_known, 0, sizeof t->is_known);
        for (uint64_t now = 0; now < length; now++) {
            uint64_t line = draw(&state, draw(&state, 3) ? hot : lines);
            uint32_t object = (uint32_t)line % OBJECTS;
            references[object]++;
            estimate_refer(all, line, object, now);
            tell_reference(t, line, object, now);
        }
        tell_seen(t);
        estimate_add_references(t->estimate, length);
        estimate_end(all, 0);
        estimate_end(t->estimate, 0);
    }
    for (uint32_t i = 0; i < OBJECTS; i++)
        estimate_add_object_references(t->estimate, i, references[i]);
}

/* Their estimators, as far as they may be off. */
static void compare_results(struct estimate *a, struct estimate *b, uint32_t object, double off)
{
    struct estimate_result x, y;

    estimate_result(a, object, &x);
    estimate_result(b, object, &y);
    CHECK_EQ(x.references, y.references);
    CHECK_EQ(x.misses, y.misses);
    CHECK_EQ(x.unknown, y.unknown);
    CHECK(fabs((double)x.generations - (double)y.generations) <= 2 * off * (double)x.generations);
    CHECK(fabs(x.mu_low - y.mu_low) < 3 * off + 1e-9 && fabs(x.mu_high - y.mu_high) < 3 * off + 1e-9);
    for (unsigned i = 0; i < ESTIMATORS_COUNT; i++)
        CHECK(fabs(x.mu[i] - y.mu[i]) < off + 1e-9 && fabs(x.spread[i] - y.spread[i]) < off + 1e-9);
}

static void compare_all(struct teller *t, struct estimate *all, double off)
{
    for (uint32_t i = 0; i < OBJECTS; i++)
        compare_results(all, t->estimate, i, off);
    compare_results(all, t->estimate, ESTIMATE_ALL, off);
    estimate_free(all);
    estimate_free(t->estimate);
}

static void what_a_cache_tells_is_as_good_as_all_references(void)
{
    struct estimate_config c = { 64, 1, 3000 };
    static struct teller t = { .sets = 64 };
    struct estimate *all;
    struct peet_err err;

    if (!CHECK_EQ(estimate_new(&c, &all, &err), 0) || !CHECK_EQ(estimate_new(&c, &t.estimate, &err), 0))
        return;
    make_samples(all, &t, 7, 3000, false, 40, 200);
    CHECK(t.told > 1000 && t.untold == 0);
    compare_all(&t, all, 0);
}

/* Most misses are in sets that are not logged. */
static void some_sets_stand_for_all(void)
{
    struct estimate_config c = { SETS_MOST, 1, 60000 };
    static struct teller t = { .sets = SETS_MOST };
    struct estimate *all;
    struct peet_err err;

    if (!CHECK_EQ(estimate_new(&c, &all, &err), 0) || !CHECK_EQ(estimate_new(&c, &t.estimate, &err), 0))
        return;
    make_samples(all, &t, 12, 60000, true, SETS_MOST, 6000);
    CHECK(t.told > 12 * SETS_MOST && t.untold > 4 * t.told);
    compare_all(&t, all, 0.03);
}

/* After a sample with few misses, the next one logs all sets; also where sets have groups. */
static void few_misses_are_told_all(void)
{
    static const uint8_t GROUP[SETS_MOST];
    struct estimate_config c = { SETS_MOST, 1, 60000 };

    for (unsigned is_dealt = 0; is_dealt < 2; is_dealt++) {
        static struct teller t;
        struct estimate *all;
        struct peet_err err;
        t = (struct teller){ .sets = SETS_MOST };
        if (!CHECK_EQ(estimate_new(&c, &all, &err), 0) || !CHECK_EQ(estimate_new(&c, &t.estimate, &err), 0))
            return;
        if (is_dealt)
            estimate_set_groups(t.estimate, GROUP);
        make_samples(all, &t, 6, is_dealt ? 60000 : 3000, true, SETS_MOST, 6000);
        CHECK(t.told > 1000 && t.untold == 0);
        compare_all(&t, all, 0);
    }
}

int main(void)
{
    RUN(what_a_cache_tells_is_as_good_as_all_references);
    RUN(some_sets_stand_for_all);
    RUN(few_misses_are_told_all);
    return check_done();
}
