/* SPDX-License-Identifier: MIT */
/* Tickets (Reed and Kanodia 1979): draws a number, and waits until it is served. First come, first served.
 *
 * The word that numbers are drawn from is the program's; the one that says who is served lies in a line of its own, so that
 * drawing disturbs nobody who waits. Each release makes all who wait read that word again. */
#include "sim/sync/parts.h"

static uint64_t attempt(struct sync_lock *l, struct sync_waiter *p, bool is_new, uint64_t now, enum sync_outcome *ret)
{
    if (is_new) {
        now = refer(l->host, l->addr, p, word_at(l->addr), PEET_UPDATE, now);
        p->place = l->next++;
    }
    p->ready = refer(l->host, l->addr, p, sync_word(l->addr, 0, USE_SERVING), PEET_LOAD, now);
    if (p->place == l->serving) {
        l->taken = true;
        *ret = SYNC_DONE;
        return later(p->ready, l->free_at);
    }
    line_up(&l->first, &l->last, p);
    *ret = SYNC_PARKED;
    return p->ready;
}

static uint64_t release(struct sync_lock *l, struct sync_waiter *holder, uint64_t now)
{
    l->free_at = refer(l->host, l->addr, holder, sync_word(l->addr, 0, USE_SERVING), PEET_STORE, now);
    l->taken = false;
    l->serving++;
    wake_all(l->host, &l->first, &l->last, l->free_at);
    return l->free_at;
}

const struct lock_kind lock_ticket = {
    .name = "ticket", .summary = "draws a number and waits until it is served", .attempt = attempt, .release = release
};
