/* SPDX-License-Identifier: MIT */
/* Which processor had which line, and how it was lost: what tells the cause of a miss. The bytes of a line are told apart. */
#ifndef SIM_MEMORY_LINE_INFO_H
#define SIM_MEMORY_LINE_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"

/* X(name, title): what can be the cause of a miss. */
/* clang-format off */
#define MISS_CAUSES(X) \
    X(cold, "cold") X(replaced, "replacement") X(true_sharing, "true sharing") X(false_sharing, "false sharing")
/* clang-format on */
enum miss_cause {
#define X(name, title) MISS_##name,
    MISS_CAUSES(X) MISS_KINDS
#undef X
};

enum line_removal { REMOVED_EVICTED, REMOVED_INVALIDATED };

/* All of a line, for all processors. What most misses need is little. */
struct line_info {
    uint64_t present;     /* a bit for each processor that has it, */
    uint64_t had;         /*   for each that ever had it, */
    uint64_t invalidated; /*   and for each that lost it because another one wrote */
    uint64_t *written; /* by processor: a mask (history_mask) of bytes that others wrote since it was invalidated there;
                             NULL: it never was */
};

/* Bytes of one line that a reference touches: `count` of them, 0 in a reference of size 0, behind the first `first` ones. */
struct line_bytes {
    uint32_t first, count;
};

/* Of neighbouring lines, which are often used together, they lie together. */
enum { LINE_GROUP_BITS = 8, LINE_GROUP_CACHE = 1024 };
struct line_table {
    unsigned cpus, words; /* words: 64-bit words of a mask that has a bit for each byte of a line */
    uint64_t full;        /* each word of the mask of all bytes */
    struct {
        uint64_t key; /* 1 + number of the group; 0: none */
        struct line_info *group;
    } near[LINE_GROUP_CACHE]; /* groups that were used last */
    struct map groups;        /* struct history *, by number */
    struct arena arena;
};

void line_table_init(struct line_table *h, unsigned cpus, uint32_t line); /* line: bytes, a power of two */
void line_table_release(struct line_table *h);
struct line_info *line_table_group(struct line_table *h, uint64_t number); /* from the map; new if need be */

/* Of a line; lives as long as the histories. */
static inline struct line_info *line_info_at(struct line_table *h, uint64_t line)
{
    uint64_t number = line >> LINE_GROUP_BITS, at = line & ((1 << LINE_GROUP_BITS) - 1);
    struct line_info *group = h->near[number % LINE_GROUP_CACHE].group;

    return (h->near[number % LINE_GROUP_CACHE].key == number + 1 ? group : line_table_group(h, number)) + at;
}

/* The bytes of a line that others wrote since a processor lost it: bit b of word w is byte 64 w + b. */
static inline uint64_t *line_info_written(const struct line_table *table, const struct line_info *info, unsigned cpu)
{
    return info->written + (size_t)cpu * table->words;
}

/* Those of the bytes that are in word number `word` of a mask, which is not behind the last of them. */
static inline uint64_t line_bytes_in(struct line_bytes b, uint32_t word)
{
    uint32_t low = word * 64, end = b.first + b.count - low;

    return (b.first > low ? UINT64_MAX << (b.first - low) : UINT64_MAX)
           & (end < 64 ? ((uint64_t)1 << end) - 1 : UINT64_MAX);
}

/* Why a processor does not have a line of which it wants these bytes. */
enum miss_cause line_info_cause(const struct line_table *table, const struct line_info *info, unsigned cpu,
                                struct line_bytes b);

void line_info_fill(struct line_info *info, unsigned cpu);
void line_info_remove(struct line_table *table, struct line_info *info, unsigned cpu, enum line_removal how);

/* A processor writes bytes: those that have lost the line see them when they come back. */
void line_info_write(const struct line_table *table, const struct line_info *info, unsigned cpu, struct line_bytes b);

/* Whether a write to the line could still change what is kept for a processor that has lost it. */
bool line_info_is_tracked(const struct line_table *table, const struct line_info *info, unsigned cpu);

#endif
