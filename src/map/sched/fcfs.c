/* SPDX-License-Identifier: MIT */
/* First come, first served: the thread that became ready first runs first, until it waits or ends. The configured quantum is ignored. */
#include "map/sched/sched.h"

static struct sched_thread *fcfs_pick(struct scheduler *s, unsigned hw_thread, uint64_t now)
{
    (void)hw_thread;
    (void)now;
    return sched_remove(s, s->first);
}

static bool fcfs_is_over(struct scheduler *s, const struct sched_thread *c, unsigned hw_thread, uint64_t ran,
                         uint64_t now)
{
    (void)s;
    (void)c;
    (void)hw_thread;
    (void)ran;
    (void)now;
    return false;
}

const struct sched_kind sched_fcfs = {
    .name = "fcfs", .summary = "first come, first served, until it waits", .pick = fcfs_pick, .is_over = fcfs_is_over
};
