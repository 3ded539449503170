/* SPDX-License-Identifier: MIT */
#include "sim/memory/line_info.h"

#include <assert.h>
#include <string.h>

void line_table_init(struct line_table *h, unsigned cpus, uint32_t line)
{
    *h = (struct line_table){ .cpus = cpus,
                              .words = (line + 63) / 64,
                              .full = line < 64 ? ((uint64_t)1 << line) - 1 : UINT64_MAX,
                              .groups.value_size = sizeof(struct line_info *) };
}

void line_table_release(struct line_table *h)
{
    map_release(&h->groups);
    arena_release(&h->arena);
}

static struct line_info *new_group(struct line_table *h)
{
    enum { LINES = 1 << LINE_GROUP_BITS };
    struct line_info *group = arena_alloc(&h->arena, LINES * sizeof *group);

    assert(group); /* without memory for tables that grow with the program, a run cannot continue */
    return group;
}

struct line_info *line_table_group(struct line_table *h, uint64_t number)
{
    struct line_info **group = map_put(&h->groups, number, 0);

    assert(group);
    if (!*group)
        *group = new_group(h);
    h->recent_group[number % LINE_GROUP_CACHE].key = number + 1;
    h->recent_group[number % LINE_GROUP_CACHE].group = *group;
    return *group;
}

enum miss_cause line_info_cause(const struct line_table *table, const struct line_info *info, unsigned cpu,
                                struct line_bytes b)
{
    if (!(info->had >> cpu & 1))
        return MISS_cold;
    if (!(info->invalidated >> cpu & 1))
        return MISS_replaced;
    for (uint32_t w = b.first / 64; w * 64 < b.first + b.count; w++)
        if (line_info_written(table, info, cpu)[w] & line_bytes_in(b, w))
            return MISS_true_sharing;
    return MISS_false_sharing;
}

void line_info_fill(struct line_info *info, unsigned cpu)
{
    info->had |= (uint64_t)1 << cpu;
    info->present |= (uint64_t)1 << cpu;
    info->invalidated &= ~((uint64_t)1 << cpu);
}

void line_info_remove(struct line_table *table, struct line_info *info, unsigned cpu, enum line_removal how,
                      uint32_t tag)
{
    size_t masks = (size_t)table->cpus * table->words * sizeof *info->removed;

    info->present &= ~((uint64_t)1 << cpu);
    info->invalidated &= ~((uint64_t)1 << cpu);
    if (how == REMOVED_EVICTED && !table->keeps_tags)
        return;
    if (!info->removed)
        info->removed = arena_alloc(&table->arena, masks + table->keeps_tags * table->cpus * sizeof tag);
    assert(info->removed);
    if (table->keeps_tags && tag)
        line_info_tags(table, info)[cpu] = tag;
    if (how == REMOVED_EVICTED)
        return;
    info->invalidated |= (uint64_t)1 << cpu;
    memset(line_info_written(table, info, cpu), 0, table->words * sizeof *info->removed);
}

void line_info_expire(struct line_table *table, struct line_info *info, unsigned cpu)
{
    line_info_remove(table, info, cpu, REMOVED_INVALIDATED, 0);
    info->present |= (uint64_t)1 << cpu;
}

void line_info_drop(struct line_info *info, unsigned cpu)
{
    info->present &= ~((uint64_t)1 << cpu);
}

void line_info_write(const struct line_table *table, const struct line_info *info, unsigned cpu, struct line_bytes b)
{
    for (uint64_t left = info->invalidated & ~((uint64_t)1 << cpu); left; left &= left - 1)
        for (uint32_t w = b.first / 64; w * 64 < b.first + b.count; w++)
            line_info_written(table, info, (unsigned)__builtin_ctzll(left))[w] |= line_bytes_in(b, w);
}

bool line_info_is_tracked(const struct line_table *table, const struct line_info *info, unsigned cpu)
{
    for (uint64_t left = info->invalidated & ~((uint64_t)1 << cpu); left; left &= left - 1)
        for (uint32_t w = 0; w < table->words; w++)
            if (line_info_written(table, info, (unsigned)__builtin_ctzll(left))[w] != table->full)
                return true;
    return false;
}
