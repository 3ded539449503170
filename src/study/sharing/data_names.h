/* SPDX-License-Identifier: MIT */
/* What the bytes of a program are called: by the program itself, by its symbols for data, by the place that allocated them, by what
 * was mapped there. Where several names hold, the first of these counts. Memory that was given out again keeps the name with the
 * greatest address below, and of two with the same the one that came last. */
#ifndef STUDY_SHARING_DATA_NAMES_H
#define STUDY_SHARING_DATA_NAMES_H

#include "study/graph/precedence.h"

struct name_range;

struct data_names {
    char **name; /* number 0 is what has none */
    uint32_t *process;
    size_t count, room, process_room;
    struct name_range *range; /* sorted by class, process and start */
    size_t ranges, range_room;
    size_t first[8]; /* of each class, and the end */
    struct map by_text;
};

int data_names_init(struct data_names *n, const struct precedence *p, struct peet_err *err);
void data_names_release(struct data_names *n); /* also after a failure, and of zeros */

/* The number of the name of the byte at addr; *ret_until: up to there, or farther, it is the same. */
uint32_t data_names_find(const struct data_names *n, uint32_t process, uint64_t addr, uint64_t *ret_until);

#endif
