/* SPDX-License-Identifier: MIT */
/* Dissemination (Hensgen, Finkel and Manber 1988): in round k each party tells the one 2^k places on, and waits until the one 2^k places
 * back has told it; after the last round it knows of everybody. Each flag has a line of its own, and there are two of each, for even
 * and odd openings, as a fast party may be in the next one already.
 *
 * A party takes part from its arrival on: each arrival lets all who are there go on as far as they can now, one reference after the
 * other in the order of time. So no reference is made for a time that is long past, and when the last one arrives, all that is left
 * is to be done. Takes for granted that who waits stays on its processor: the rounds that it can go on with are made from there. */
#include <assert.h>
#include <stddef.h>

#include "sim/sync/parts.h"

enum { TELLS, LOOKS, WAITS, IS_THROUGH };

#define NEVER UINT64_MAX

static uint32_t rounds_of(uint32_t expected)
{
    return expected < 2 ? 0 : 32 - (uint32_t)__builtin_clz(expected - 1);
}

static uint64_t flag_of(const struct sync_barrier *b, uint64_t place, uint32_t k)
{
    return sync_word(b->addr, (uint32_t)place, USE_FLAG | (2 * k + (unsigned)(b->round & 1)) << USE_BITS);
}

static struct sync_waiter *party_at(const struct sync_barrier *b, uint64_t place)
{
    struct sync_waiter *p = b->first;

    while (p && p->place != place)
        p = p->next;
    return p;
}

static void tell(struct sync_barrier *b, struct sync_waiter *p)
{
    uint32_t k = p->level;
    uint64_t to = (p->place + ((uint64_t)1 << k)) % b->expected;
    struct sync_waiter *told = party_at(b, to);

    p->ready = p->flag[k] = refer(b->host, b->addr, p, flag_of(b, to, k), PEET_STORE, p->ready);
    p->phase = LOOKS;
    if (told && told->phase == WAITS && told->level == k) {
        told->ready = later(told->ready, p->ready);
        told->phase = LOOKS;
    }
}

static void look(struct sync_barrier *b, struct sync_waiter *p)
{
    uint32_t k = p->level;
    const struct sync_waiter *from = party_at(b, (p->place + b->expected - ((uint64_t)1 << k)) % b->expected);
    uint64_t told_at = from ? from->flag[k] : NEVER, now = p->ready;

    p->ready = refer(b->host, b->addr, p, flag_of(b, p->place, k), PEET_LOAD, now);
    if (told_at <= now)
        p->phase = ++p->level == rounds_of(b->expected) ? IS_THROUGH : TELLS;
    else if (told_at != NEVER)
        p->ready = later(p->ready, told_at);
    else
        p->phase = WAITS;
}

/* Who can do something, and is first to. */
static struct sync_waiter *find_next(const struct sync_barrier *b)
{
    struct sync_waiter *best = NULL;

    for (struct sync_waiter *p = b->first; p; p = p->next)
        if ((p->phase == TELLS || p->phase == LOOKS) && (!best || p->ready < best->ready))
            best = p;
    return best;
}

static void let_pass(struct sync_barrier *b, const struct sync_waiter *last)
{
    struct sync_waiter *p = b->first;

    b->first = b->last = NULL;
    b->arrived = 0;
    b->round++;
    while (p) {
        struct sync_waiter *next = p->next;
        assert(p->phase == IS_THROUGH);
        if (p != last)
            wake(b->host, p, p->ready);
        p = next;
    }
}

static uint64_t arrive(struct sync_barrier *b, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret)
{
    struct sync_waiter *next;
    uint32_t rounds = rounds_of(b->expected);

    p->round = b->round;
    p->place = place_for(b, p->number);
    p->ready = now;
    p->level = 0;
    p->phase = rounds > 0 ? TELLS : IS_THROUGH;
    for (uint32_t k = 0; k < rounds; k++)
        p->flag[k] = NEVER;
    line_up(&b->first, &b->last, p);
    b->arrived++;

    while ((next = find_next(b)))
        next->phase == TELLS ? tell(b, next) : look(b, next);
    *ret = b->arrived < b->expected ? SYNC_PARKED : SYNC_DONE;
    if (*ret == SYNC_DONE)
        let_pass(b, p);
    return p->ready;
}

const struct barrier_kind barrier_dissemination = { .name = "dissemination",
                                                    .summary = "each tells one after the other, in log2 rounds",
                                                    .arrive = arrive };
