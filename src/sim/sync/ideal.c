/* SPDX-License-Identifier: MIT */
/* A lock and a barrier that memory does not see, as if the machine knew by itself who waits.
 *
 * The lock goes from who gives it back to the one whom `grant` says, among those who wait at that time: nobody who comes later can be
 * faster. Taking it costs `cost` cycles, and so does giving it back. The barrier opens `cost` cycles after the last arrival. */
#include <stddef.h>

#include "sim/sync/parts.h"

enum { WAITS, IS_GRANTED };

static uint64_t attempt(struct sync_lock *l, struct sync_waiter *p, bool is_new, uint64_t now, enum sync_outcome *ret)
{
    if (is_new ? !l->taken : p->phase == IS_GRANTED) {
        l->taken = true;
        *ret = SYNC_DONE;
        return later(now, l->free_at) + l->config->cost;
    }
    if (is_new) {
        p->phase = WAITS;
        p->ready = now;
        line_up(&l->first, &l->last, p);
    }
    *ret = SYNC_PARKED;
    return now;
}

static struct sync_waiter *any_of(const struct sync_lock *l)
{
    struct sync_waiter *p = l->first;
    uint64_t n = 0;

    for (; p; p = p->next)
        n++;
    p = l->first;
    for (uint64_t skip = n > 1 ? l->host->random(l->host->context) % n : 0; skip > 0; skip--)
        p = p->next;
    return p;
}

/* The line has them as they came, so of two that are equally urgent the first is found first. */
static struct sync_waiter *choose(const struct sync_lock *l)
{
    struct sync_waiter *best = l->first;

    switch ((enum lock_grant)l->config->grant) {
    case GRANT_FIFO: return l->first;
    case GRANT_LIFO: return l->last;
    case GRANT_RANDOM: return any_of(l);
    case GRANT_PRIORITY:
        for (struct sync_waiter *p = l->first; p; p = p->next)
            best = p->priority > best->priority ? p : best;
    }
    return best;
}

static void take_out(struct sync_lock *l, struct sync_waiter *p)
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

static uint64_t release(struct sync_lock *l, struct sync_waiter *holder, uint64_t now)
{
    struct sync_waiter *p = choose(l);

    (void)holder;
    l->free_at = now + l->config->cost;
    l->taken = p != NULL;
    if (p) {
        take_out(l, p);
        p->phase = IS_GRANTED;
        wake(l->host, p, l->free_at);
    }
    return l->free_at;
}

const struct lock_kind lock_ideal = {
    .name = "ideal", .summary = "without memory; a policy says who is next", .attempt = attempt, .release = release
};

const struct barrier_kind barrier_ideal = { .name = "ideal",
                                            .summary = "without memory; all go on at the same time",
                                            .arrive = arrive_without_memory };
