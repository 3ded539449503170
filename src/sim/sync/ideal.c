/* SPDX-License-Identifier: MIT */
/* A lock and a barrier without references to memory, as if the machine had hardware for them.
 *
 * A release passes the lock to one of the threads that wait at that time, chosen by the setting `grant`; a thread that arrives later cannot
 * overtake it. Acquisition and release cost `cost` cycles each. The barrier opens `cost` cycles after the last arrival. */
#include <stddef.h>

#include "sim/sync/parts.h"

enum { WAITS, IS_GRANTED };

static uint64_t ideal_attempt(struct sync_lock *l, struct sync_waiter *p, bool is_new, uint64_t now,
                              enum sync_outcome *ret)
{
    if (is_new ? !l->taken : p->phase == IS_GRANTED) {
        l->taken = true;
        *ret = SYNC_DONE;
        return cycle_later(now, l->free_at) + l->config->cost;
    }
    if (is_new) {
        p->phase = WAITS;
        p->ready = now;
        waiters_append(&l->first, &l->last, p);
    }
    *ret = SYNC_PARKED;
    return now;
}

static struct sync_waiter *ideal_random(const struct sync_lock *l)
{
    struct sync_waiter *p = l->first;
    uint64_t n = 0;

    for (; p; p = p->next)
        n++;
    p = l->first;
    for (uint64_t skip = n > 1 ? l->host->random(l->host->self) % n : 0; skip > 0; skip--)
        p = p->next;
    return p;
}

/* The waiter that gets the lock. The queue is in order of arrival: of two with equal priority, the first. */
static struct sync_waiter *ideal_grant(const struct sync_lock *l)
{
    struct sync_waiter *best = l->first;

    switch ((enum lock_grant)l->config->grant) {
    case GRANT_FIFO: return l->first;
    case GRANT_LIFO: return l->last;
    case GRANT_RANDOM: return ideal_random(l);
    case GRANT_PRIORITY:
        for (struct sync_waiter *p = l->first; p; p = p->next)
            best = p->priority > best->priority ? p : best;
    }
    return best;
}

static void ideal_remove(struct sync_lock *l, struct sync_waiter *p)
{
    struct sync_waiter *before = NULL;

    for (struct sync_waiter *q = l->first; q != p; q = q->next)
        before = q;
    if (before)
        before->next = p->next;
    else
        l->first = p->next;
    if (l->last == p)
        l->last = before;
}

static uint64_t ideal_release(struct sync_lock *l, struct sync_waiter *holder, uint64_t now)
{
    struct sync_waiter *p = ideal_grant(l);

    (void)holder;
    l->free_at = now + l->config->cost;
    l->taken = p != NULL;
    if (p) {
        ideal_remove(l, p);
        p->phase = IS_GRANTED;
        waiter_wake(l->host, p, l->free_at);
    }
    return l->free_at;
}

const struct lock_kind lock_ideal = { .name = "ideal",
                                      .summary = "without memory; a policy says which thread is next",
                                      .attempt = ideal_attempt,
                                      .release = ideal_release };

const struct barrier_kind barrier_ideal = { .name = "ideal",
                                            .summary = "without memory; all continue at the same time",
                                            .arrive = barrier_arrive_wired };
