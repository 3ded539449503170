/* SPDX-License-Identifier: MIT */
/* Names of bytes without DWARF: by the program (PEET_NAME_DATA), by data symbols, by allocating call, by mapping. The first of these that holds counts.
 * Where allocations overlap, because memory was freed and allocated again, the one with the greatest begin counts, and of equal ones the last. */
#ifndef STUDY_SHARING_DATA_NAMES_H
#define STUDY_SHARING_DATA_NAMES_H

#include "study/graph/precedence.h"

struct name_range;

/* Names of bytes. */
struct data_names {
    char **name;       /* by number; number 0: no name */
    uint32_t *process; /* by number of a name: number of its process in the trace */
    size_t count, room, process_room;
    struct name_range *range; /* sorted by class, process and start */
    size_t ranges, range_room;
    size_t first[8];    /* index of the first range of each class, and the end */
    struct map by_text; /* number of a name, by hash of its text, and process */
};

int data_names_init(struct data_names *n, const struct precedence *p, struct peet_err *err);
void data_names_release(struct data_names *n); /* also after a failure, and of zeros */

/* The number of the name of the byte at addr; it holds at least up to *ret_until. */
uint32_t data_names_find(const struct data_names *n, uint32_t process, uint64_t addr, uint64_t *ret_until);

#endif
