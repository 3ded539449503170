/* SPDX-License-Identifier: MIT */
/* Shadow tags: a fully associative LRU directory of the size of a cache. A miss on an evicted line that is still here is a conflict miss,
 * otherwise a capacity miss. */
#ifndef SIM_MEMORY_SHADOW_TAGS_H
#define SIM_MEMORY_SHADOW_TAGS_H

#include <stdbool.h>
#include <stdint.h>

enum { SHADOW_LOOKUP = 1024 };

/* A line of the directory. */
struct shadow_line {
    uint64_t line; /* address / bytes of a line; UINT64_MAX: none */
    uint64_t used; /* time of the last use */
};

/* A use only notes its time. The oldest line is needed for an eviction: lines are sorted by time, and evicted in that order, except those used since. */
struct shadow_tags {
    struct shadow_line *line;       /* from 1; number 0 is no line */
    uint32_t count, most;           /* lines, and their limit */
    uint64_t now;                   /* time: uses so far */
    uint32_t lookup[SHADOW_LOOKUP]; /* by last bits of a line: number of the last such line */
    uint32_t *slot, mask;           /* hash table of numbers by line, 0: none; its size - 1 */
    uint32_t *order, *sorted_next;  /* numbers by time of use at `sorted`; room for the next pass of the sort */
    uint32_t next;                  /* elements of `order` that were taken */
    uint64_t sorted;                /* time of the last sort; 0: none */
    uint32_t *free, free_count;     /* numbers of lines that were dropped; how many */
};

void shadow_tags_init(struct shadow_tags *r, uint32_t most);
void shadow_tags_release(struct shadow_tags *r);
void shadow_tags_drop(struct shadow_tags *r, uint64_t line);

bool shadow_tags_use_slow(struct shadow_tags *r, uint64_t line);
/* Uses a line; returns whether it was there. */
static inline bool shadow_tags_use(struct shadow_tags *r, uint64_t line)
{
    struct shadow_line *l = &r->line[r->lookup[line % SHADOW_LOOKUP]];

    if (l->line != line)
        return shadow_tags_use_slow(r, line);
    l->used = ++r->now;
    return true;
}

#endif
