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

/* One to one. */
static uint64_t stir(uint64_t v)
{
    for (int i = 0; i < 3; i++) {
        v ^= v >> 31;
        v *= 0xd6e8feb86659fd93;
    }
    return v ^ v >> 32;
}

/* Bit 59 is set and none above it: too high for a program, not canonical on any processor that is recorded, and low enough for caches
 * to keep a few bits with the number of a line. Below it stand 51 bits that depend on everything, so that 10^5 words share a line
 * with each other once in half a million runs. */
uint64_t sync_word(uint64_t object, uint32_t party, unsigned use)
{
    uint64_t v = stir(stir(object) + ((uint64_t)party << 32 | use));

    return (uint64_t)1 << 59 | v >> 13 << 8;
}

bool sync_is_word(uint64_t addr)
{
    return addr >> 59 == 1;
}

void wake_all(const struct sync_host *h, struct sync_waiter **first, struct sync_waiter **last, uint64_t when)
{
    struct sync_waiter *p = *first;

    *first = *last = NULL;
    while (p) {
        struct sync_waiter *next = p->next;
        wake(h, p, when);
        p = next;
    }
}

static bool is_free(const struct sync_barrier *b, uint64_t place)
{
    for (const struct sync_waiter *p = b->first; p; p = p->next)
        if (p->round == b->round && p->place == place)
            return false;
    return true;
}

uint64_t place_for(const struct sync_barrier *b, uint32_t number)
{
    uint64_t place = number % b->expected;

    while (!is_free(b, place))
        place = (place + 1) % b->expected;
    return place;
}

uint64_t arrive_without_memory(struct sync_barrier *b, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret)
{
    p->ready = now;
    b->opens = b->arrived ? later(b->opens, now) : now;
    if (++b->arrived < b->expected) {
        line_up(&b->first, &b->last, p);
        *ret = SYNC_PARKED;
        return now;
    }
    uint64_t opens = b->opens + b->config->cost;
    b->arrived = 0;
    b->round++;
    wake_all(b->host, &b->first, &b->last, opens);
    *ret = SYNC_DONE;
    return opens;
}
