/* SPDX-License-Identifier: MIT */
/* What locks and barriers have in common, for them alone. */
#ifndef SIM_SYNC_PARTS_H
#define SIM_SYNC_PARTS_H

#include "sim/sync/sync.h"

/* What the words are for that a program does not have; levels and rounds stand above these bits. */
enum sync_use { USE_SERVING, USE_NODE, USE_COUNTER, USE_FLAG, USE_BITS = 8 };

static inline uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The word of a program's object: SYNC_WORD bytes in the same line as the object, wherever that begins. A pthread_spinlock_t is no
 * larger, so that a variable behind it shares no byte with it. */
static inline uint64_t word_at(uint64_t addr)
{
    return addr & ~(uint64_t)(SYNC_WORD - 1);
}

/* A reference of a party to a word of the object at that address. */
static inline uint64_t refer(const struct sync_host *h, uint64_t object, const struct sync_waiter *p, uint64_t addr,
                             enum peet_kind kind, uint64_t now)
{
    return later(h->access(h->context, p, object, addr, kind, now), now);
}

/* A party at the end of a line, since it cannot go on. */
static inline void line_up(struct sync_waiter **first, struct sync_waiter **last, struct sync_waiter *p)
{
    p->next = NULL;
    if (*first)
        (*last)->next = p;
    else
        *first = p;
    *last = p;
}

/* Nobody goes on before its own last reference is over. */
static inline void wake(const struct sync_host *h, struct sync_waiter *p, uint64_t when)
{
    h->wake(h->context, p, later(when, p->ready));
}

/* Everybody in a line, which is empty then. */
void wake_all(const struct sync_host *h, struct sync_waiter **first, struct sync_waiter **last, uint64_t when);

/* A place between 0 and expected - 1 that nobody has in this round. Contexts with consecutive numbers have the same in all rounds. */
uint64_t place_for(const struct sync_barrier *b, uint32_t number);

/* arrive() of barriers that need no memory. */
uint64_t arrive_without_memory(struct sync_barrier *b, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret);

/* How long who has failed that often leaves the lock alone. */
static inline uint64_t backoff_after(const struct sync_config *c, uint64_t failures)
{
    return (uint64_t)c->backoff << (failures < 7 ? failures - 1 : 6);
}

#endif
