/* SPDX-License-Identifier: MIT */
/* Expanding a summarised loop many trips at a time: where the innermost body is a row of blocks, one trip's records are
 * worked out once, and each further trip only adds to their addresses. */
#ifndef FORMAT_LOOP_H
#define FORMAT_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peet/trace.h"

enum { FLAT_RECORDS = 512 };

struct flat_loop {
    uint64_t trips;        /* that are left */
    size_t records;        /* of one trip */
    uint64_t instructions; /* of one trip */
    struct peet_record record[FLAT_RECORDS];
    uint64_t step[FLAT_RECORDS];
};

/* If the walk has come to a loop that can be done so, takes all of its trips out of the walk and puts them into f. src holds
 * the registers; its slots are overwritten. */
bool loop_flatten(struct peet_loop_walk *w, uint64_t *src, struct flat_loop *f);

/* As many whole trips as fit into room records; returns how many. */
size_t loop_flat_trips(struct flat_loop *f, struct peet_record *out, size_t room);

/* Goes on to the next block, or to the end, without executing it. */
void loop_settle(struct peet_loop_walk *w);

#endif
