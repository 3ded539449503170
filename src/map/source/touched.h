/* SPDX-License-Identifier: MIT */
/* A set of lines that processes have referred to, as a bit for each line. */
#ifndef MAP_SOURCE_TOUCHED_H
#define MAP_SOURCE_TOUCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

enum { TOUCHED_AT_HAND = 64, TOUCHED_RECENT = 512 };

struct touched_lines {
    struct map pages; /* struct touched_page *, by number and process */
    struct {
        uint64_t number;  /* 1 + number of the page; 0: the entry is empty */
        uint32_t process; /* number in the trace */
        struct touched_page *page;
    } at_hand[TOUCHED_AT_HAND]; /* lookup cache of `pages`, direct-mapped by number */
    struct {
        uint64_t line; /* 1 + number of the line; 0: the entry is empty */
        uint32_t process;
    } recent[TOUCHED_RECENT]; /* single lines added last, direct-mapped by number */
};

void touched_init(struct touched_lines *t);
void touched_release(struct touched_lines *t);

/* Adds the lines [first, last]; 0, or -1: no memory. */
int touched_add_range(struct touched_lines *t, uint32_t process, uint64_t first, uint64_t last);
static inline int touched_add(struct touched_lines *t, uint32_t process, uint64_t first, uint64_t last)
{
    if (first == last && t->recent[first % TOUCHED_RECENT].line == first + 1
        && t->recent[first % TOUCHED_RECENT].process == process)
        return 0;
    return touched_add_range(t, process, first, last);
}
bool touched_has(const struct touched_lines *t, uint32_t process, uint64_t line);

#endif
