/* SPDX-License-Identifier: MIT */
/* A ready thread drawn at random, for a quantum. Runs with the same seed draw the same threads. `state` counts the numbers drawn. */
#include "map/sched/sched.h"

static uint64_t random_draw(struct scheduler *s)
{
    uint64_t v = s->config.seed * 0xd6e8feb86659fd93 + ++s->state;

    for (int i = 0; i < 3; i++) {
        v ^= v >> 32;
        v *= 0xd6e8feb86659fd93;
    }
    return v >> 32;
}

static struct sched_thread *random_pick(struct scheduler *s, unsigned hw_thread, uint64_t now)
{
    struct sched_thread *c = s->first;

    (void)hw_thread;
    (void)now;
    for (uint64_t skip = random_draw(s) % s->count; skip > 0; skip--)
        c = c->next;
    return sched_remove(s, c);
}

const struct sched_kind sched_random = { .name = "random",
                                         .summary = "a ready thread drawn at random",
                                         .pick = random_pick };
