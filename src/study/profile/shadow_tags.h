/* SPDX-License-Identifier: MIT */
/* The lines that a cache of that size would have if it could keep any: what tells conflicts from capacity. The one that was used last
 * is always there; of the others, those that were used before too many others are not. */
#ifndef STUDY_PROFILE_SHADOW_TAGS_H
#define STUDY_PROFILE_SHADOW_TAGS_H

#include <stdbool.h>
#include <stdint.h>

enum { RECENT_NEAR = 1024 };

struct recent_line {
    uint64_t line; /* UINT64_MAX: none */
    uint64_t used; /* last */
};

/* To use a line is to note when. Which one is the oldest is asked seldom: they are sorted then, and as long as there are some that were not used since, these go, one after the
 * other. */
struct recent {
    struct recent_line *line; /* number 0 has none */
    uint32_t count, most;
    uint64_t now;               /* uses so far */
    uint32_t near[RECENT_NEAR]; /* by lines' last bits: the number that such a line had last */
    uint32_t *cell, mask;       /* numbers, by hashes of lines; 0: none */
    uint32_t *order, *other;    /* numbers, the oldest first, */
    uint32_t next;              /*   of which so many have been looked at; */
    uint64_t sorted;            /*   that was then */
    uint32_t *free, frees;      /* numbers of lines that were dropped */
};

void recent_init(struct recent *r, uint32_t most);
void recent_release(struct recent *r);
void recent_drop(struct recent *r, uint64_t line);

bool recent_use_other(struct recent *r, uint64_t line);
static inline bool recent_use(struct recent *r, uint64_t line) /* whether it was there */
{
    struct recent_line *l = &r->line[r->near[line % RECENT_NEAR]];

    if (l->line != line)
        return recent_use_other(r, line);
    l->used = ++r->now;
    return true;
}

#endif
