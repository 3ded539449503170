/* SPDX-License-Identifier: MIT */
/* Gangs (Ousterhout 1982): the members of a group run at the same time, for a quantum; then it is the turn of the group of the one
 * who waits longest, so that nobody is forgotten.
 *
 * Places that the group does not need take others, in the order in which they wait, and give way as soon as a member of the group is
 * ready: nothing is idle, and the group loses nothing by it. A group with more members than there are hw_threads runs in parts. A
 * member that runs in its turn is not interrupted before it has run for a quantum, even if the turn began later. Without a quantum, a turn lasts
 * as long as members of the group are ready.
 *
 * `state` is 1 + the group whose turn it is, and `since` when that began. */
#include "map/sched/sched.h"

static struct sched_thread *member(const struct scheduler *s)
{
    struct sched_thread *c = s->first;

    while (c && c->group + (uint64_t)1 != s->state)
        c = c->next;
    return c;
}

/* Places are not asked in the exact order of time, so now may be before the turn began. */
static void take_turns(struct scheduler *s, uint64_t now)
{
    bool is_due = s->config.quantum > 0 ? now > s->since && now - s->since >= s->config.quantum : !member(s);

    if (s->state == 0 || is_due) {
        s->state = s->first->group + (uint64_t)1;
        s->since = now;
    }
}

static struct sched_thread *pick(struct scheduler *s, unsigned hw_thread, uint64_t now)
{
    (void)hw_thread;
    take_turns(s, now);
    struct sched_thread *c = member(s);
    return sched_remove(s, c ? c : s->first);
}

static bool is_over(struct scheduler *s, const struct sched_thread *c, unsigned hw_thread, uint64_t ran, uint64_t now)
{
    (void)hw_thread;
    if (s->config.quantum == 0)
        return false;
    take_turns(s, now);
    if (!member(s))
        return false;
    return c->group + (uint64_t)1 != s->state || ran >= s->config.quantum;
}

const struct sched_kind sched_gang = {
    .name = "gang", .summary = "the members of a group at the same time", .pick = pick, .is_over = is_over
};
