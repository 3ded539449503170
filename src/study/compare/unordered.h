/* SPDX-License-Identifier: MIT */
/* Reads of a thread whose value another thread wrote in no certain order: there its stream may begin to depend on the interleaving.
 *
 * Assumes that the precedence graph and rounds of barriers (precedence.h, schedule.h) are all the order there is. A lock that both held, or atomic
 * accesses, exclude a data race, but do not say which access came first.
 * Leaves out: freed memory that serves another purpose, which looks shared; for each 8 bytes, all but the last segments of the thread with a read; locks
 * beyond the 62nd share a bit with another one, so that a race can be taken for synchronized accesses. */
#ifndef STUDY_COMPARE_UNORDERED_H
#define STUDY_COMPARE_UNORDERED_H

#include "study/graph/schedule.h"

enum unordered_kind {
    UNORDERED_NONE,         /* no unordered read was found */
    UNORDERED_SYNCHRONIZED, /* under a common lock, or atomically */
    UNORDERED_RACE,         /* without a common lock */
};

/* The last unordered read of a thread. */
struct unordered_read {
    enum unordered_kind kind;
    uint64_t record;     /* number of the record in the thread, from 0; races precede synchronized reads */
    uint64_t addr, code; /* of the data; of the instruction */
    uint32_t writer;     /* number of the thread that wrote it */
    bool is_partial;     /* MOST_GRANULES was exceeded: later reads were not searched */
};

/* The order of a trace. */
struct unordered {
    struct precedence p;
    struct schedule s;
};

int unordered_init(struct unordered *u, struct peet_trace *t, struct peet_err *err);
void unordered_release(struct unordered *u); /* also after a failure, and of zeros */

/* Finds the last unordered read among the first `before` records of a thread. */
int unordered_find(const struct unordered *u, uint32_t thread, uint64_t before, struct unordered_read *ret,
                   struct peet_err *err);

#endif
