/* SPDX-License-Identifier: MIT */
/* The queue lock of Mellor-Crummey and Scott (1991): each thread waits on a separate word, which its predecessor writes.
 *
 * The lock's word points to the last node of the queue. A thread has a node per lock: a word to wait on, and a pointer to the next node, in
 * one line. Acquisition clears the pointer and swaps the lock's word. With a predecessor it then sets the own word and the predecessor's
 * pointer, and waits. Release reads the pointer and writes the successor's word; without one it swaps the lock's word back. Since calls are
 * atomic, no release comes between swap and pointer. sync_lock.serving is the thread that has the lock, or to which it was passed. */
#include "sim/sync/parts.h"

enum { WAITS, IS_GRANTED };

static uint64_t mcs_word(const struct sync_lock *l, uint32_t number)
{
    return sync_word(l->addr, number, USE_NODE);
}

static uint64_t mcs_pointer(const struct sync_lock *l, uint32_t number)
{
    return mcs_word(l, number) + 8;
}

static uint64_t mcs_enter(struct sync_lock *l, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret)
{
    uint32_t before = l->first ? l->last->number : (uint32_t)l->serving;

    now = waiter_refer(l->host, l->addr, p, mcs_pointer(l, p->number), PEET_STORE, now);
    now = waiter_refer(l->host, l->addr, p, word_at(l->addr), PEET_UPDATE, now);
    if (!l->taken) {
        l->taken = true;
        l->serving = p->number;
        *ret = SYNC_DONE;
        return cycle_later(now, l->free_at);
    }
    now = waiter_refer(l->host, l->addr, p, mcs_word(l, p->number), PEET_STORE, now);
    now = waiter_refer(l->host, l->addr, p, mcs_pointer(l, before), PEET_STORE, now);
    p->ready = waiter_refer(l->host, l->addr, p, mcs_word(l, p->number), PEET_LOAD, now);
    p->phase = WAITS;
    waiters_append(&l->first, &l->last, p);
    *ret = SYNC_PARKED;
    return p->ready;
}

static uint64_t mcs_attempt(struct sync_lock *l, struct sync_waiter *p, bool is_new, uint64_t now,
                            enum sync_outcome *ret)
{
    if (is_new)
        return mcs_enter(l, p, now, ret);
    p->ready = waiter_refer(l->host, l->addr, p, mcs_word(l, p->number), PEET_LOAD, now);
    *ret = p->phase == IS_GRANTED ? SYNC_DONE : SYNC_PARKED;
    return p->ready;
}

static uint64_t mcs_release(struct sync_lock *l, struct sync_waiter *holder, uint64_t now)
{
    struct sync_waiter *p = l->first;

    now = waiter_refer(l->host, l->addr, holder, mcs_pointer(l, holder->number), PEET_LOAD, now);
    if (!p) {
        l->taken = false;
        l->free_at = waiter_refer(l->host, l->addr, holder, word_at(l->addr), PEET_UPDATE, now);
        return l->free_at;
    }
    l->free_at = waiter_refer(l->host, l->addr, holder, mcs_word(l, p->number), PEET_STORE, now);
    l->first = p->next;
    l->serving = p->number;
    p->phase = IS_GRANTED;
    waiter_wake(l->host, p, l->free_at);
    return l->free_at;
}

const struct lock_kind lock_mcs = { .name = "mcs",
                                    .summary = "a queue in which each waits on a separate word",
                                    .attempt = mcs_attempt,
                                    .release = mcs_release };
