/* SPDX-License-Identifier: MIT */
#include "sim/sync/sync.h"

#include <stddef.h>
#include <string.h>

#include "sim/sync/parts.h"

#define X(name) &lock_##name,
const struct lock_kind *const lock_kinds[] = { LOCK_KINDS(X) NULL };
#undef X
#define X(name) &barrier_##name,
const struct barrier_kind *const barrier_kinds[] = { BARRIER_KINDS(X) NULL };
#undef X

const struct lock_kind *lock_kind_find(const char *name)
{
    for (size_t i = 0; lock_kinds[i]; i++)
        if (!strcmp(lock_kinds[i]->name, name))
            return lock_kinds[i];
    return NULL;
}

const struct barrier_kind *barrier_kind_find(const char *name)
{
    for (size_t i = 0; barrier_kinds[i]; i++)
        if (!strcmp(barrier_kinds[i]->name, name))
            return barrier_kinds[i];
    return NULL;
}

/* A bijection that mixes all bits. */
static uint64_t sync_mix(uint64_t v)
{
    for (int i = 0; i < 3; i++) {
        v ^= v >> 31;
        v *= 0xd6e8feb86659fd93;
    }
    return v ^ v >> 32;
}

/* Bit 59 is set and none above it: beyond the addresses of all processors that can be recorded, and low enough for caches to store a few
 * bits beside a line's number. The 51 bits below depend on all arguments: among 10^5 words, two share a line in one of half a million runs. */
uint64_t sync_word(uint64_t object, uint32_t thread, unsigned use)
{
    uint64_t v = sync_mix(sync_mix(object) + ((uint64_t)thread << 32 | use));

    return (uint64_t)1 << 59 | v >> 13 << 8;
}

bool sync_is_word(uint64_t addr)
{
    return addr >> 59 == 1;
}

void waiters_wake(const struct sync_host *h, struct sync_waiter **first, struct sync_waiter **last, uint64_t when)
{
    struct sync_waiter *p = *first;

    *first = *last = NULL;
    while (p) {
        struct sync_waiter *next = p->next;
        waiter_wake(h, p, when);
        p = next;
    }
}

static bool barrier_slot_is_free(const struct sync_barrier *b, uint64_t slot)
{
    for (const struct sync_waiter *p = b->first; p; p = p->next)
        if (p->round == b->round && p->slot == slot)
            return false;
    return true;
}

uint64_t barrier_free_slot(const struct sync_barrier *b, uint32_t number)
{
    uint64_t slot = number % b->expected;

    while (!barrier_slot_is_free(b, slot))
        slot = (slot + 1) % b->expected;
    return slot;
}

uint64_t barrier_arrive_wired(struct sync_barrier *b, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret)
{
    p->ready = now;
    b->opens = b->arrived ? cycle_later(b->opens, now) : now;
    if (++b->arrived < b->expected) {
        waiters_append(&b->first, &b->last, p);
        *ret = SYNC_PARKED;
        return now;
    }
    uint64_t opens = b->opens + b->config->cost;
    b->arrived = 0;
    b->round++;
    waiters_wake(b->host, &b->first, &b->last, opens);
    *ret = SYNC_DONE;
    return opens;
}
