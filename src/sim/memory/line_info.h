/* SPDX-License-Identifier: MIT */
/* What is known of each line: the cores that have it, those that had it, how and by which access each of them lost it, and the bytes
 * that others have written since. From this follows why a core misses. See docs/design/memory.md. */
#ifndef SIM_MEMORY_LINE_INFO_H
#define SIM_MEMORY_LINE_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "sim/memory/access.h"

/* How a line left all private caches of a core. */
enum line_removal { REMOVED_EVICTED, REMOVED_INVALIDATED };

/* One line, for all cores. */
struct line_info {
    uint64_t present;     /* a bit for each core that has the line */
    uint64_t had;         /* a bit for each core that ever had it */
    uint64_t invalidated; /* a bit for each core that lost it by an invalidation, and has not fetched it again */
    /* By core: mask of the bytes that others wrote since the invalidation. After all masks, by core: tag of the removal (line_info_tags). NULL:
     * no core has lost the line in a way that is kept. */
    uint64_t *removed;
};

/* Bytes [first, first + count) of a line that an access touches. */
struct line_bytes {
    uint32_t first, count; /* count: 0 in an access of size 0 */
};

enum { LINE_GROUP_BITS = 8, LINE_GROUP_CACHE = 1024 };

/* All lines, in groups of neighbours. */
struct line_table {
    unsigned cpus, words; /* cores; 64-bit words of a mask that has a bit for each byte of a line */
    uint64_t full;        /* each word of the mask of all bytes */
    bool keeps_tags;      /* tags of removals are kept; set before the first removal */
    struct {
        uint64_t key; /* 1 + number of the group; 0: unused */
        struct line_info *group;
    } recent_group[LINE_GROUP_CACHE]; /* lookup cache of groups, by number */
    struct map groups;                /* struct line_info *: first line of a group, by number */
    struct arena arena;               /* memory of groups and masks */
};

void line_table_init(struct line_table *h, unsigned cpus, uint32_t line); /* line: bytes, a power of two */
void line_table_release(struct line_table *h);
struct line_info *line_table_group(struct line_table *h, uint64_t number); /* from the map; made if there is none */

/* The descriptor of a line; valid as long as the table. */
static inline struct line_info *line_info_at(struct line_table *h, uint64_t line)
{
    uint64_t number = line >> LINE_GROUP_BITS, at = line & ((1 << LINE_GROUP_BITS) - 1);
    struct line_info *group = h->recent_group[number % LINE_GROUP_CACHE].group;

    return (h->recent_group[number % LINE_GROUP_CACHE].key == number + 1 ? group : line_table_group(h, number)) + at;
}

/* Mask of the bytes that other cores wrote since a core lost the line: bit b of word w is byte 64 w + b. */
static inline uint64_t *line_info_written(const struct line_table *table, const struct line_info *info, unsigned cpu)
{
    return info->removed + (size_t)cpu * table->words;
}

/* Tags of removals, by core; only if the table keeps tags, and info->removed is not NULL. */
static inline uint32_t *line_info_tags(const struct line_table *table, const struct line_info *info)
{
    return (uint32_t *)(info->removed + (size_t)table->cpus * table->words);
}

/* Tag of the access that removed the line from a core last; 0: no access with a tag has. */
static inline uint32_t line_info_removed_by(const struct line_table *table, const struct line_info *info, unsigned cpu)
{
    return table->keeps_tags && info->removed ? line_info_tags(table, info)[cpu] : 0;
}

/* The bytes b that are in word number `word` of a mask; that word is not after the last of them. */
static inline uint64_t line_bytes_in(struct line_bytes b, uint32_t word)
{
    uint32_t low = word * 64, end = b.first + b.count - low;

    return (b.first > low ? UINT64_MAX << (b.first - low) : UINT64_MAX)
           & (end < 64 ? ((uint64_t)1 << end) - 1 : UINT64_MAX);
}

/* Why a core that accesses these bytes does not have the line. */
enum miss_cause line_info_cause(const struct line_table *table, const struct line_info *info, unsigned cpu,
                                struct line_bytes b);

/* A core fetches the line. */
void line_info_fill(struct line_info *info, unsigned cpu);
/* A core loses the line to the access with that tag; tag 0: the tag of the previous removal is kept. */
void line_info_remove(struct line_table *table, struct line_info *info, unsigned cpu, enum line_removal how,
                      uint32_t tag);

/* A core's copy expires: it stays, but is old as if it were invalidated. */
void line_info_expire(struct line_table *table, struct line_info *info, unsigned cpu);
/* The core loses an expired copy. */
void line_info_drop(struct line_info *info, unsigned cpu);

/* A core writes bytes: noted for the cores that have lost the line by an invalidation. */
void line_info_write(const struct line_table *table, const struct line_info *info, unsigned cpu, struct line_bytes b);

/* Whether a write to the line can still change the mask of a core other than this one. */
bool line_info_is_tracked(const struct line_table *table, const struct line_info *info, unsigned cpu);

#endif
