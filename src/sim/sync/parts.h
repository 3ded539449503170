/* SPDX-License-Identifier: MIT */
/* Operations that the modules of locks and barriers share. */
#ifndef SIM_SYNC_PARTS_H
#define SIM_SYNC_PARTS_H

#include "sim/sync/sync.h"

/* Uses of extra words (sync_word); a level or round is in the bits above USE_BITS. */
enum sync_use { USE_SERVING, USE_NODE, USE_COUNTER, USE_FLAG, USE_BITS = 8 };

static inline uint64_t cycle_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The word of a program's object: the SYNC_WORD bytes that contain its address. A pthread_spinlock_t is no larger, so that the word
 * contains no byte of the next variable. */
static inline uint64_t word_at(uint64_t addr)
{
    return addr & ~(uint64_t)(SYNC_WORD - 1);
}

/* A reference to a word of an object; returns the cycle in which it is done. */
static inline uint64_t waiter_refer(const struct sync_host *h, uint64_t object, const struct sync_waiter *p,
                                    uint64_t addr, enum peet_kind kind, uint64_t now)
{
    return cycle_later(h->access(h->self, p, object, addr, kind, now), now);
}

/* Appends a waiter to a queue. */
static inline void waiters_append(struct sync_waiter **first, struct sync_waiter **last, struct sync_waiter *p)
{
    p->next = NULL;
    if (*first)
        (*last)->next = p;
    else
        *first = p;
    *last = p;
}

/* Wakes a waiter at cycle `when`, but not before its last reference is done. */
static inline void waiter_wake(const struct sync_host *h, struct sync_waiter *p, uint64_t when)
{
    h->wake(h->self, p, cycle_later(when, p->ready));
}

/* Wakes all waiters of a queue, and empties it. */
void waiters_wake(const struct sync_host *h, struct sync_waiter **first, struct sync_waiter **last, uint64_t when);

/* A slot below `expected` that no waiter of this round has. Threads with consecutive numbers have the same slots in all rounds. */
uint64_t barrier_free_slot(const struct sync_barrier *b, uint32_t number);

/* `arrive` of barriers without references. */
uint64_t barrier_arrive_wired(struct sync_barrier *b, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret);

/* Cycles until the next attempt after that number of failures. */
static inline uint64_t lock_backoff(const struct sync_config *c, uint64_t failures)
{
    return (uint64_t)c->backoff << (failures < 7 ? failures - 1 : 6);
}

#endif
