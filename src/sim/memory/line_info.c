/* SPDX-License-Identifier: MIT */
#include "sim/memory/line_info.h"

#include <assert.h>
#include <string.h>

void histories_init(struct histories *h, unsigned cpus, uint32_t line)
{
    *h = (struct histories){ .cpus = cpus,
                             .words = (line + 63) / 64,
                             .full = line < 64 ? ((uint64_t)1 << line) - 1 : UINT64_MAX,
                             .groups.value_size = sizeof(struct history *) };
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

enum miss_cause history_cause(const struct histories *all, const struct history *h, unsigned cpu, struct line_bytes b)
{
    if (!(h->had >> cpu & 1))
        return MISS_cold;
    if (!(h->invalidated >> cpu & 1))
        return MISS_replaced;
    for (uint32_t w = b.first / 64; w * 64 < b.first + b.count; w++)
        if (history_mask(all, h, cpu)[w] & line_bytes_in(b, w))
            return MISS_true_sharing;
    return MISS_false_sharing;
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
        h->written = arena_alloc(&all->arena, (size_t)all->cpus * all->words * sizeof *h->written);
    assert(h->written);
    h->invalidated |= (uint64_t)1 << cpu;
    memset(history_mask(all, h, cpu), 0, all->words * sizeof *h->written);
}

void history_write(const struct histories *all, const struct history *h, unsigned cpu, struct line_bytes b)
{
    for (uint64_t left = h->invalidated & ~((uint64_t)1 << cpu); left; left &= left - 1)
        for (uint32_t w = b.first / 64; w * 64 < b.first + b.count; w++)
            history_mask(all, h, (unsigned)__builtin_ctzll(left))[w] |= line_bytes_in(b, w);
}

bool history_is_watched(const struct histories *all, const struct history *h, unsigned cpu)
{
    for (uint64_t left = h->invalidated & ~((uint64_t)1 << cpu); left; left &= left - 1)
        for (uint32_t w = 0; w < all->words; w++)
            if (history_mask(all, h, (unsigned)__builtin_ctzll(left))[w] != all->full)
                return true;
    return false;
}
