/* SPDX-License-Identifier: MIT */
/* Round robin: who became ready first runs first, and goes to the end of the line after its quantum. */
#include "map/sched/sched.h"

static struct sched_thread *pick(struct scheduler *s, unsigned hw_thread, uint64_t now)
{
    (void)hw_thread;
    (void)now;
    return sched_remove(s, s->first);
}

const struct sched_kind sched_robin = { .name = "robin", .summary = "in turn, a quantum each", .pick = pick };
