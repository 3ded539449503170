/* SPDX-License-Identifier: MIT */
/* Gangs (Ousterhout 1982): the threads of a group run at the same time, for a quantum. The next group is that of the thread that has
 * waited longest, so that no group starves.
 *
 * Hardware threads that the group does not need run other threads, in the order in which these wait. Such a thread stops as soon as a
 * thread of the group is ready, so that the group loses nothing. A group with more threads than hardware threads runs in parts. A thread of
 * the group is not interrupted before it has run for a quantum, even if the group's turn began later. Without a quantum, a turn
 * lasts until no thread of the group is ready.
 *
 * `state` is 1 + the group that has its turn, `since` the cycle at which the turn began. */
#include "map/sched/sched.h"

static struct sched_thread *gang_ready_member(const struct scheduler *s)
{
    struct sched_thread *c = s->first;

    while (c && c->group + (uint64_t)1 != s->state)
        c = c->next;
    return c;
}

/* Hardware threads ask not exactly in the order of time, so now may be before the turn began. */
static void gang_take_turns(struct scheduler *s, uint64_t now)
{
    bool is_due = s->config.quantum > 0 ? now > s->since && now - s->since >= s->config.quantum : !gang_ready_member(s);

    if (s->state == 0 || is_due) {
        s->state = s->first->group + (uint64_t)1;
        s->since = now;
    }
}

static struct sched_thread *gang_pick(struct scheduler *s, unsigned hw_thread, uint64_t now)
{
    (void)hw_thread;
    gang_take_turns(s, now);
    struct sched_thread *c = gang_ready_member(s);
    return sched_remove(s, c ? c : s->first);
}

static bool gang_is_over(struct scheduler *s, const struct sched_thread *c, unsigned hw_thread, uint64_t ran,
                         uint64_t now)
{
    (void)hw_thread;
    if (s->config.quantum == 0)
        return false;
    gang_take_turns(s, now);
    if (!gang_ready_member(s))
        return false;
    return c->group + (uint64_t)1 != s->state || ran >= s->config.quantum;
}

const struct sched_kind sched_gang = {
    .name = "gang", .summary = "the members of a group at the same time", .pick = gang_pick, .is_over = gang_is_over
};
