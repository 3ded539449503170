/* SPDX-License-Identifier: MIT */
/* Estimates of a program that is periodic with its samples, as the source that samples cuts them. */
#include <math.h>
#include <stdlib.h>

#include "map/source/source_sample.h"
#include "study/profile/sampling/estimate.h"
#include "tests/unit/check.h"

enum { PERIOD = 50000, LENGTH = 5000, PERIODS = 400 };

struct periodic {
    struct source source;
    struct source_thread context;
    struct peet_record record[2 * 1000];
    uint64_t now;
};

/* The tenth in the middle of each period misses, the rest hits. */
static int next_of_periodic(struct source *s, uint32_t context, uint64_t reply, struct peet_batch *ret,
                            struct peet_err *err)
{
    struct periodic *p = (struct periodic *)(void *)s;

    (void)context, (void)reply, (void)err;
    if (p->now == (uint64_t)PERIOD * PERIODS)
        return 0;
    for (unsigned i = 0; i < 1000; i++, p->now++) {
        bool misses = p->now % PERIOD >= (PERIOD - LENGTH) / 2 && p->now % PERIOD < (PERIOD + LENGTH) / 2;
        p->record[2 * i] = (struct peet_record){ .addr = 0x1000, .id = 1, .size = 2, .kind = PEET_BLOCK };
        p->record[2 * i + 1] = (struct peet_record){ .addr = misses ? 0x10000000 + p->now * 64 : p->now % 64 * 64,
                                                     .size = 8,
                                                     .kind = PEET_LOAD };
    }
    *ret = (struct peet_batch){ .count = 2000, .records = p->record };
    return 1;
}

static void free_periodic(struct source *s)
{
    free(s);
}

static double estimate_periodic(bool is_random)
{
    static const struct source_kind KIND = { .next = next_of_periodic, .free = free_periodic };
    struct periodic *p = calloc(1, sizeof *p);
    struct sample_config config = { LENGTH, PERIOD, .is_random = is_random, .seed = 3, .line_bytes = 64 };
    struct estimate *e;
    struct estimate_result r;
    struct source *s;
    struct peet_batch b;
    struct peet_err err;
    uint64_t at = 0;

    p->source = (struct source){ &KIND, NULL, &p->context, 1, 1, false, false, false };
    CHECK_EQ(source_take_sample(&p->source, &config, &s, &err), 0);
    CHECK_EQ(estimate_new(&(struct estimate_config){ 256, 1, LENGTH }, &e, &err), 0);
    estimate_begin(e);
    while (source_next(s, 0, 0, &b, &err) == 1)
        for (size_t i = 0; i < b.count; i++)
            if (b.records[i].kind == PEET_EVENT) {
                if (at > 0) {
                    estimate_end(e, 0);
                    estimate_begin(e);
                }
                at = 0;
            } else if (b.records[i].kind == PEET_LOAD) {
                estimate_refer(e, b.records[i].addr / 64, 0, at++);
            }
    estimate_end(e, 0);
    estimate_result(e, ESTIMATE_ALL, &r);
    printf("# %s windows: %.4f ± %.4f misses a reference\n", is_random ? "random" : "fixed", r.share[ESTIMATE_age],
           r.spread[ESTIMATE_age]);
    if (is_random) /* and it is known how right it is */
        CHECK(fabs(r.share[ESTIMATE_age] - 0.1) < r.spread[ESTIMATE_age]);
    estimate_free(e);
    source_free(s);
    return r.share[ESTIMATE_age];
}

static void fixed_windows_are_wrong_on_a_program_of_their_period_and_random_ones_right(void)
{
    CHECK(estimate_periodic(false) > 0.9);
    CHECK(fabs(estimate_periodic(true) - 0.1) < 0.05);
}

int main(void)
{
    RUN(fixed_windows_are_wrong_on_a_program_of_their_period_and_random_ones_right);
    return check_done();
}
