/* SPDX-License-Identifier: MIT */
/* What the bytes of a program are called: by the program itself, by its symbols for data, by the place that allocated them, by what
 * was mapped there. Where several names hold, the first of these counts. Memory that was given out again keeps the name with the
 * greatest address below, and of two with the same the one that came last. */
#ifndef STUDY_SYMBOLS_NAMES_H
#define STUDY_SYMBOLS_NAMES_H

#include "study/graph/precedence.h"

struct names_extent;

struct names {
    char **name; /* number 0 is what has none */
    uint32_t *process;
    size_t count, room, process_room;
    struct names_extent *extent; /* sorted by class, process and start */
    size_t extents, extent_room;
    size_t first[8]; /* of each class, and the end */
    struct map by_text;
};

int names_init(struct names *n, const struct precedence *p, struct peet_err *err);
void names_release(struct names *n); /* also after a failure, and of zeros */

/* The number of the name of the byte at addr; *ret_until: up to there, or farther, it is the same. */
uint32_t names_find(const struct names *n, uint32_t process, uint64_t addr, uint64_t *ret_until);

#endif
