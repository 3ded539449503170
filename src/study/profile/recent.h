/* SPDX-License-Identifier: MIT */
/* The lines that a cache of that size would have if it could keep any: what tells conflicts from capacity. The one that was used last
 * is always there; of the others, those that were used before too many others are not. */
#ifndef STUDY_PROFILE_RECENT_H
#define STUDY_PROFILE_RECENT_H

#include <stdbool.h>
#include <stdint.h>

struct recent_line {
    uint64_t line;
    uint32_t newer, older;
};

struct recent {
    struct recent_line *line; /* in a ring, the newest first; number 0 is its beginning */
    uint32_t count, most;
    uint64_t newest;
    uint32_t *cell; /* numbers, by hashes of lines; 0: none */
    uint32_t mask;
};

void recent_init(struct recent *r, uint32_t most);
void recent_release(struct recent *r);
void recent_drop(struct recent *r, uint64_t line);

bool recent_use_other(struct recent *r, uint64_t line);
static inline bool recent_use(struct recent *r, uint64_t line) /* whether it was there */
{
    return line == r->newest || recent_use_other(r, line);
}

#endif
