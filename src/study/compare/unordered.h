/* SPDX-License-Identifier: MIT */
/* What a thread read that another one wrote in no certain order: where its stream may begin to depend on the interleaving.
 *
 * Assumes: what the precedence graph and the rounds of barriers say for certain (precedence.h, schedule.h) is all the order there is. Where
 * there is none, a lock that both held, or that both accesses were atomic, says that there is no data race, but not who came first.
 * Leaves out: memory that was given back and serves somebody else meanwhile, which looks shared; of each 8 bytes all but the last pieces in which the thread read
 * them; locks beyond the 62nd share a bit with another one, so that a race may be taken for a choice. */
#ifndef STUDY_COMPARE_UNORDERED_H
#define STUDY_COMPARE_UNORDERED_H

#include "study/graph/schedule.h"

enum unordered_kind {
    UNORDERED_NONE,   /* nothing of the kind was found */
    UNORDERED_CHOICE, /* under a common lock, or atomically */
    UNORDERED_RACE,   /* with nothing in common */
};

struct unordered_read {
    enum unordered_kind kind;
    uint64_t record; /* of the thread, from 0: the last such read; a race counts more than a choice */
    uint64_t addr, code;
    uint32_t writer;
    bool is_partial; /* there was more to be looked at than there was room for */
};

struct unordered {
    struct precedence p;
    struct schedule s;
};

int unordered_init(struct unordered *u, struct peet_trace *t, struct peet_err *err);
void unordered_release(struct unordered *u); /* also after a failure, and of zeros */

/* Of the thread's first `before` records. */
int unordered_find(const struct unordered *u, uint32_t thread, uint64_t before, struct unordered_read *ret,
                   struct peet_err *err);

#endif
