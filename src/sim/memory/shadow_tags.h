/* SPDX-License-Identifier: MIT */
/* The lines that a cache of that size would have if it could keep any: what tells conflicts from capacity. The one that was used last
 * is always there; of the others, those that were used before too many others are not. */
#ifndef SIM_MEMORY_SHADOW_TAGS_H
#define SIM_MEMORY_SHADOW_TAGS_H

#include <stdbool.h>
#include <stdint.h>

enum { SHADOW_LOOKUP = 1024 };

struct shadow_line {
    uint64_t line; /* UINT64_MAX: none */
    uint64_t used; /* last */
};

/* To use a line is to note when. Which one is the oldest is asked seldom: they are sorted then, and as long as there are some that were not used since, these go, one after the
 * other. */
struct shadow_tags {
    struct shadow_line *line; /* number 0 has none */
    uint32_t count, most;
    uint64_t now;                   /* uses so far */
    uint32_t lookup[SHADOW_LOOKUP]; /* by lines' last bits: the number that such a line had last */
    uint32_t *slot, mask;           /* numbers, by hashes of lines; 0: none */
    uint32_t *order, *sorted_next;  /* numbers, the oldest first, */
    uint32_t next;                  /*   of which so many have been looked at; */
    uint64_t sorted;                /*   that was then */
    uint32_t *free, free_count;     /* numbers of lines that were dropped */
};

void shadow_tags_init(struct shadow_tags *r, uint32_t most);
void shadow_tags_release(struct shadow_tags *r);
void shadow_tags_drop(struct shadow_tags *r, uint64_t line);

bool shadow_tags_use_slow(struct shadow_tags *r, uint64_t line);
static inline bool shadow_tags_use(struct shadow_tags *r, uint64_t line) /* whether it was there */
{
    struct shadow_line *l = &r->line[r->lookup[line % SHADOW_LOOKUP]];

    if (l->line != line)
        return shadow_tags_use_slow(r, line);
    l->used = ++r->now;
    return true;
}

#endif
