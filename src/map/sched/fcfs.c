/* SPDX-License-Identifier: MIT */
/* First come, first served: who became ready first runs first, until it waits or ends. There is no quantum, whatever was asked for. */
#include "map/sched/sched.h"

static struct sched_context *pick(struct scheduler *s, unsigned place, uint64_t now)
{
    (void)place;
    (void)now;
    return sched_take(s, s->first);
}

static bool is_over(struct scheduler *s, const struct sched_context *c, unsigned place, uint64_t ran, uint64_t now)
{
    (void)s;
    (void)c;
    (void)place;
    (void)ran;
    (void)now;
    return false;
}

const struct sched_kind sched_fcfs = {
    .name = "fcfs", .summary = "first come, first served, until it waits", .pick = pick, .is_over = is_over
};
