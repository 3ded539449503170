/* SPDX-License-Identifier: MIT */
/* Ticket lock (Reed and Kanodia 1979): a thread draws a ticket and waits until it is served, first come, first served.
 *
 * Tickets are drawn from the program's word. The ticket that is served is in a separate line, so that drawing invalidates no copy of a
 * waiting thread. After each release, all waiting threads read it again. */
#include "sim/sync/parts.h"

static uint64_t ticket_attempt(struct sync_lock *l, struct sync_waiter *p, bool is_new, uint64_t now,
                               enum sync_outcome *ret)
{
    if (is_new) {
        now = waiter_refer(l->host, l->addr, p, word_at(l->addr), PEET_UPDATE, now);
        p->slot = l->next++;
    }
    p->ready = waiter_refer(l->host, l->addr, p, sync_word(l->addr, 0, USE_SERVING), PEET_LOAD, now);
    if (p->slot == l->serving) {
        l->taken = true;
        *ret = SYNC_DONE;
        return cycle_later(p->ready, l->free_at);
    }
    waiters_append(&l->first, &l->last, p);
    *ret = SYNC_PARKED;
    return p->ready;
}

static uint64_t ticket_release(struct sync_lock *l, struct sync_waiter *holder, uint64_t now)
{
    l->free_at = waiter_refer(l->host, l->addr, holder, sync_word(l->addr, 0, USE_SERVING), PEET_STORE, now);
    l->taken = false;
    l->serving++;
    waiters_wake(l->host, &l->first, &l->last, l->free_at);
    return l->free_at;
}

const struct lock_kind lock_ticket = { .name = "ticket",
                                       .summary = "draws a number and waits until it is served",
                                       .attempt = ticket_attempt,
                                       .release = ticket_release };
