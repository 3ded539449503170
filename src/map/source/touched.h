/* SPDX-License-Identifier: MIT */
/* Lines that were referred to, by process: a bit for each. */
#ifndef MAP_SOURCE_TOUCHED_H
#define MAP_SOURCE_TOUCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

enum { TOUCHED_AT_HAND = 64, TOUCHED_NEAR = 512 };

struct touched {
    struct map pages; /* struct touched_page *, by number and process */
    struct {
        uint64_t number; /* 1 + its number; 0: none */
        uint32_t process;
        struct touched_page *page;
    } at_hand[TOUCHED_AT_HAND];
    struct {
        uint64_t line; /* 1 + its number; 0: none */
        uint32_t process;
    } near[TOUCHED_NEAR]; /* by their last bits: the lines that were last added by themselves */
};

void touched_init(struct touched *t);
void touched_release(struct touched *t);

int touched_add_range(struct touched *t, uint32_t process, uint64_t first, uint64_t last);
static inline int touched_add(struct touched *t, uint32_t process, uint64_t first,
                              uint64_t last) /* lines; -1: no memory */
{
    if (first == last && t->near[first % TOUCHED_NEAR].line == first + 1
        && t->near[first % TOUCHED_NEAR].process == process)
        return 0;
    return touched_add_range(t, process, first, last);
}
bool touched_has(const struct touched *t, uint32_t process, uint64_t line);

#endif
