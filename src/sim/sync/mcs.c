/* SPDX-License-Identifier: MIT */
/* The queue of Mellor-Crummey and Scott (1991): each waits on a word of its own, which the one before it writes.
 *
 * The lock's word points to the last node of the queue. A context has a node per lock: a word to wait on, and a pointer to the next
 * node, in one line. Who comes clears its pointer and swaps the lock's word; if there was somebody, it sets its own word, tells
 * the one before it, and waits. Who leaves looks at its pointer and writes the word of the next, or, if there is none, swaps the lock's
 * word back. Calls are whole steps, so nobody leaves while another one is between its swap and its pointer.
 *
 * `serving` is the context that has the lock, or that it was given to. */
#include "sim/sync/parts.h"

enum { WAITS, IS_GRANTED };

static uint64_t word_of(const struct sync_lock *l, uint32_t number)
{
    return sync_word(l->addr, number, USE_NODE);
}

static uint64_t pointer_of(const struct sync_lock *l, uint32_t number)
{
    return word_of(l, number) + 8;
}

static uint64_t come(struct sync_lock *l, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret)
{
    uint32_t before = l->first ? l->last->number : (uint32_t)l->serving;

    now = refer(l->host, l->addr, p, pointer_of(l, p->number), PEET_STORE, now);
    now = refer(l->host, l->addr, p, word_at(l->addr), PEET_UPDATE, now);
    if (!l->taken) {
        l->taken = true;
        l->serving = p->number;
        *ret = SYNC_DONE;
        return later(now, l->free_at);
    }
    now = refer(l->host, l->addr, p, word_of(l, p->number), PEET_STORE, now);
    now = refer(l->host, l->addr, p, pointer_of(l, before), PEET_STORE, now);
    p->ready = refer(l->host, l->addr, p, word_of(l, p->number), PEET_LOAD, now);
    p->phase = WAITS;
    line_up(&l->first, &l->last, p);
    *ret = SYNC_PARKED;
    return p->ready;
}

static uint64_t attempt(struct sync_lock *l, struct sync_waiter *p, bool is_new, uint64_t now, enum sync_outcome *ret)
{
    if (is_new)
        return come(l, p, now, ret);
    p->ready = refer(l->host, l->addr, p, word_of(l, p->number), PEET_LOAD, now);
    *ret = p->phase == IS_GRANTED ? SYNC_DONE : SYNC_PARKED;
    return p->ready;
}

static uint64_t release(struct sync_lock *l, struct sync_waiter *holder, uint64_t now)
{
    struct sync_waiter *p = l->first;

    now = refer(l->host, l->addr, holder, pointer_of(l, holder->number), PEET_LOAD, now);
    if (!p) {
        l->taken = false;
        l->free_at = refer(l->host, l->addr, holder, word_at(l->addr), PEET_UPDATE, now);
        return l->free_at;
    }
    l->free_at = refer(l->host, l->addr, holder, word_of(l, p->number), PEET_STORE, now);
    l->first = p->next;
    l->serving = p->number;
    p->phase = IS_GRANTED;
    wake(l->host, p, l->free_at);
    return l->free_at;
}

const struct lock_kind lock_mcs = {
    .name = "mcs", .summary = "a queue in which each waits on a word of its own", .attempt = attempt, .release = release
};
