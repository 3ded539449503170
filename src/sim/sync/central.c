/* SPDX-License-Identifier: MIT */
/* A central barrier with sense reversal: one counter and one flag. A thread that arrives increments the counter and waits on its cached copy of
 * the flag. The last one resets the counter and inverts the flag, and all read it again. */
#include "sim/sync/parts.h"

static uint64_t central_flag(const struct sync_barrier *b)
{
    return sync_word(b->addr, 0, USE_FLAG);
}

static uint64_t central_arrive(struct sync_barrier *b, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret)
{
    now = waiter_refer(b->host, b->addr, p, word_at(b->addr), PEET_UPDATE, now);
    b->opens = b->arrived ? cycle_later(b->opens, now) : now;
    if (++b->arrived < b->expected) {
        p->ready = waiter_refer(b->host, b->addr, p, central_flag(b), PEET_LOAD, now);
        waiters_append(&b->first, &b->last, p);
        *ret = SYNC_PARKED;
        return p->ready;
    }
    now = waiter_refer(b->host, b->addr, p, word_at(b->addr), PEET_STORE, b->opens);
    now = waiter_refer(b->host, b->addr, p, central_flag(b), PEET_STORE, now);
    b->arrived = 0;
    b->round++;
    waiters_wake(b->host, &b->first, &b->last, now);
    *ret = SYNC_DONE;
    return now;
}

static uint64_t central_resume(struct sync_barrier *b, struct sync_waiter *p, uint64_t now)
{
    return waiter_refer(b->host, b->addr, p, central_flag(b), PEET_LOAD, now);
}

const struct barrier_kind barrier_central = { .name = "central",
                                              .summary = "one counter, and a flag that all wait on",
                                              .arrive = central_arrive,
                                              .resume = central_resume };
