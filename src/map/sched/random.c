/* SPDX-License-Identifier: MIT */
/* Anybody who is ready, for a quantum; the same one in every run with the same seed. `state` counts the numbers that were drawn. */
#include "map/sched/sched.h"

static uint64_t draw(struct scheduler *s)
{
    uint64_t v = s->config.seed * 0xd6e8feb86659fd93 + ++s->state;

    for (int i = 0; i < 3; i++) {
        v ^= v >> 32;
        v *= 0xd6e8feb86659fd93;
    }
    return v >> 32;
}

static struct sched_thread *pick(struct scheduler *s, unsigned hw_thread, uint64_t now)
{
    struct sched_thread *c = s->first;

    (void)hw_thread;
    (void)now;
    for (uint64_t skip = draw(s) % s->count; skip > 0; skip--)
        c = c->next;
    return sched_remove(s, c);
}

const struct sched_kind sched_random = { .name = "random", .summary = "anybody, by a seed", .pick = pick };
