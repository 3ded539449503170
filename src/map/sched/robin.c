/* SPDX-License-Identifier: MIT */
/* Round robin: the thread that became ready first runs first, and is appended to the queue after its quantum. */
#include "map/sched/sched.h"

static struct sched_thread *robin_pick(struct scheduler *s, unsigned hw_thread, uint64_t now)
{
    (void)hw_thread;
    (void)now;
    return sched_remove(s, s->first);
}

const struct sched_kind sched_robin = { .name = "robin", .summary = "in turn, a quantum each", .pick = robin_pick };
