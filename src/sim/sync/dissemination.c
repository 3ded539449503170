/* SPDX-License-Identifier: MIT */
/* Dissemination barrier (Hensgen, Finkel and Manber 1988). In round k, the thread in slot i sets the flag of slot i + 2^k, and waits for its own
 * flag, which slot i - 2^k sets; slots are modulo their number. Each flag has a separate line. There are two flags for each slot and round, for
 * even and odd openings, since a fast thread may be in the next opening already.
 *
 * Each arrival advances all threads that are present as far as they can get, one reference after the other in order of time. So references
 * are made near their time. Assumes that a waiting thread stays on its core, which makes its references. */
#include <assert.h>
#include <stddef.h>

#include "sim/sync/parts.h"

enum { SETS_FLAG, READS_FLAG, WAITS, IS_DONE };

#define NEVER UINT64_MAX

static uint32_t dissemination_rounds(uint32_t expected)
{
    return expected < 2 ? 0 : 32 - (uint32_t)__builtin_clz(expected - 1);
}

static uint64_t dissemination_flag(const struct sync_barrier *b, uint64_t slot, uint32_t k)
{
    return sync_word(b->addr, (uint32_t)slot, USE_FLAG | (2 * k + (unsigned)(b->round & 1)) << USE_BITS);
}

static struct sync_waiter *dissemination_waiter(const struct sync_barrier *b, uint64_t slot)
{
    struct sync_waiter *p = b->first;

    while (p && p->slot != slot)
        p = p->next;
    return p;
}

static void dissemination_set_flag(struct sync_barrier *b, struct sync_waiter *p)
{
    uint32_t k = p->level;
    uint64_t to = (p->slot + ((uint64_t)1 << k)) % b->expected;
    struct sync_waiter *partner = dissemination_waiter(b, to);

    p->ready = p->flag[k] = waiter_refer(b->host, b->addr, p, dissemination_flag(b, to, k), PEET_STORE, p->ready);
    p->phase = READS_FLAG;
    if (partner && partner->phase == WAITS && partner->level == k) {
        partner->ready = cycle_later(partner->ready, p->ready);
        partner->phase = READS_FLAG;
    }
}

static void dissemination_read_flag(struct sync_barrier *b, struct sync_waiter *p)
{
    uint32_t k = p->level;
    const struct sync_waiter *from =
        dissemination_waiter(b, (p->slot + b->expected - ((uint64_t)1 << k)) % b->expected);
    uint64_t set_at = from ? from->flag[k] : NEVER, now = p->ready;

    p->ready = waiter_refer(b->host, b->addr, p, dissemination_flag(b, p->slot, k), PEET_LOAD, now);
    if (set_at <= now)
        p->phase = ++p->level == dissemination_rounds(b->expected) ? IS_DONE : SETS_FLAG;
    else if (set_at != NEVER)
        p->ready = cycle_later(p->ready, set_at);
    else
        p->phase = WAITS;
}

/* The waiter that can make a reference, earliest first; NULL: none can. */
static struct sync_waiter *dissemination_next(const struct sync_barrier *b)
{
    struct sync_waiter *best = NULL;

    for (struct sync_waiter *p = b->first; p; p = p->next)
        if ((p->phase == SETS_FLAG || p->phase == READS_FLAG) && (!best || p->ready < best->ready))
            best = p;
    return best;
}

static void dissemination_open(struct sync_barrier *b, const struct sync_waiter *last)
{
    struct sync_waiter *p = b->first;

    b->first = b->last = NULL;
    b->arrived = 0;
    b->round++;
    while (p) {
        struct sync_waiter *next = p->next;
        assert(p->phase == IS_DONE);
        if (p != last)
            waiter_wake(b->host, p, p->ready);
        p = next;
    }
}

static uint64_t dissemination_arrive(struct sync_barrier *b, struct sync_waiter *p, uint64_t now,
                                     enum sync_outcome *ret)
{
    struct sync_waiter *next;
    uint32_t rounds = dissemination_rounds(b->expected);

    p->round = b->round;
    p->slot = barrier_free_slot(b, p->number);
    p->ready = now;
    p->level = 0;
    p->phase = rounds > 0 ? SETS_FLAG : IS_DONE;
    for (uint32_t k = 0; k < rounds; k++)
        p->flag[k] = NEVER;
    waiters_append(&b->first, &b->last, p);
    b->arrived++;

    while ((next = dissemination_next(b)))
        next->phase == SETS_FLAG ? dissemination_set_flag(b, next) : dissemination_read_flag(b, next);
    *ret = b->arrived < b->expected ? SYNC_PARKED : SYNC_DONE;
    if (*ret == SYNC_DONE)
        dissemination_open(b, p);
    return p->ready;
}

const struct barrier_kind barrier_dissemination = { .name = "dissemination",
                                                    .summary = "each tells one after the other, in log2 rounds",
                                                    .arrive = dissemination_arrive };
