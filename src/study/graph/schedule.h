/* SPDX-License-Identifier: MIT */
/* When each piece of a precedence graph would run on a machine with as many processors as there is work for, on which
 * an instruction takes one unit of time and an event none.
 *
 * By what is certain, no machine whatsoever is faster: the span is a lower bound. With locks, critical sections
 * exclude each other in the order of arrival, semaphores and conditions have to be given first, and sections that did
 * not need to wait at a condition wait for all that came before them when the run was recorded: that is one order that
 * could have been, so that its span is an upper bound of the best one. */
#ifndef STUDY_GRAPH_SCHEDULE_H
#define STUDY_GRAPH_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "study/graph/precedence.h"

/* A round of a barrier: who arrives goes on when all have. */
struct barrier_round {
    uint32_t object, last; /* last: the piece that arrived last */
    uint64_t time;
    uint64_t arrivals;
};

struct schedule {
    uint64_t *start, *finish; /* of each piece */
    uint32_t *cause;          /* the piece whose end let it begin; SEGMENT_NONE for those that begin by themselves */
    uint32_t *round_of;       /* that its end arrives at, or SEGMENT_NONE */
    uint32_t *
        order; /* pieces in the order of their ends, unless waits were broken; who is waited for stands before who waits */
    struct barrier_round *round;
    uint32_t rounds;
    uint64_t span;
    uint8_t kind;    /* enum schedule_kind */
    uint32_t last;   /* the piece that ends last; SEGMENT_NONE when there is none */
    uint64_t forced; /* waits that nobody would have ended: they were left out */
};

enum schedule_kind {
    SCHEDULE_CERTAIN, /* arcs and barriers that are certain */
    SCHEDULE_KNOWN,   /* and what is known of conditions by counting */
    SCHEDULE_LOCKS,   /* and locks, semaphores, conditions, and all that is assumed */
};

int schedule_make(struct schedule *s, const struct precedence *p, enum schedule_kind kind, struct peet_err *err);
void schedule_release(struct schedule *s);

/* For each piece, the longest way from its end to the end of the run, by arcs of the kind of s that are known and by
 * its meetings; to be freed. */
int schedule_tails(const struct schedule *s, const struct precedence *p, uint64_t **ret, struct peet_err *err);

/* Epochs: a row of cuts through the run, each of which certainly comes after the one before, divides it into epochs.
 * Cuts are rounds of barriers, and points through which all paths go. A piece lies in the epochs from `from` to
 * `until` - 1: it certainly follows cut number `from` (0: the beginning of the run), and certainly precedes cut number
 * `until` (count: the end of the run). So piece a certainly precedes piece b of another thread if until[a] <= from[b];
 * otherwise the cuts do not tell. In a thread neither ever falls. */
struct epochs {
    uint32_t *from, *until; /* by piece */
    uint32_t count;         /* of epochs, at least 1 */
};

int epochs_make(struct epochs *e, const struct schedule *s, const struct precedence *p, struct peet_err *err);
void epochs_release(struct epochs *e); /* also after a failure, and of zeros */

#endif
