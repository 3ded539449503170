/* SPDX-License-Identifier: MIT */
#include "sim/history.h"

#include <assert.h>

void histories_init(struct histories *h, unsigned cpus, uint64_t all_words)
{
    *h = (struct histories){ .cpus = cpus, .all_words = all_words, .groups.value_size = sizeof(struct history *) };
}

void histories_release(struct histories *h)
{
    map_release(&h->groups);
    arena_release(&h->arena);
}

static struct history *new_group(struct histories *h)
{
    enum { LINES = 1 << HISTORY_GROUP_BITS };
    struct history *group = arena_alloc(&h->arena, LINES * sizeof *group);

    assert(group); /* like all tables that grow with the program, it is not worth to go on without */
    return group;
}

struct history *histories_group(struct histories *h, uint64_t number)
{
    struct history **group = map_put(&h->groups, number, 0);

    assert(group);
    if (!*group)
        *group = new_group(h);
    h->near[number % HISTORY_NEAR].key = number + 1;
    h->near[number % HISTORY_NEAR].group = *group;
    return *group;
}

enum miss_cause history_cause(const struct history *h, unsigned cpu, uint64_t words)
{
    if (!(h->had >> cpu & 1))
        return MISS_cold;
    if (!(h->invalidated >> cpu & 1))
        return MISS_replaced;
    return h->written[cpu] & words ? MISS_true_sharing : MISS_false_sharing;
}

void history_come(struct history *h, unsigned cpu)
{
    h->had |= (uint64_t)1 << cpu;
    h->present |= (uint64_t)1 << cpu;
    h->invalidated &= ~((uint64_t)1 << cpu);
}

void history_go(struct histories *all, struct history *h, unsigned cpu, enum lost how)
{
    h->present &= ~((uint64_t)1 << cpu);
    h->invalidated &= ~((uint64_t)1 << cpu);
    if (how == REPLACED)
        return;
    if (!h->written)
        h->written = arena_alloc(&all->arena, all->cpus * sizeof *h->written);
    assert(h->written);
    h->invalidated |= (uint64_t)1 << cpu;
    h->written[cpu] = 0;
}

void history_write(struct history *h, unsigned cpu, uint64_t words)
{
    for (uint64_t left = h->invalidated & ~((uint64_t)1 << cpu); left; left &= left - 1)
        h->written[__builtin_ctzll(left)] |= words;
}

bool history_is_watched(const struct histories *all, const struct history *h, unsigned cpu)
{
    for (uint64_t left = h->invalidated & ~((uint64_t)1 << cpu); left; left &= left - 1)
        if (h->written[__builtin_ctzll(left)] != all->all_words)
            return true;
    return false;
}
