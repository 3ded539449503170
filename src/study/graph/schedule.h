/* SPDX-License-Identifier: MIT */
/* The times at which the segments of a precedence graph run on an ideal machine: unlimited processors, one time unit per instruction,
 * none per event. See docs/design/studies.md.
 *
 * SCHEDULE_CERTAIN gives a lower bound of the span: no machine is faster. SCHEDULE_LOCKS is one order that was possible, so that its span is
 * an upper bound of the best one: critical sections exclude each other in order of arrival, semaphores and conditions are given before they are
 * taken. A section that did not need to wait at a condition is not entered before what came before it in the recorded run. */
#ifndef STUDY_GRAPH_SCHEDULE_H
#define STUDY_GRAPH_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "study/graph/precedence.h"

/* A round of a barrier: the threads that wait for each other and continue together. */
struct barrier_round {
    uint32_t object;   /* index in precedence.object */
    uint32_t last;     /* segment that arrived last */
    uint64_t time;     /* of its arrival */
    uint64_t arrivals; /* threads so far */
};

enum schedule_kind {
    SCHEDULE_CERTAIN, /* certain arcs, and barriers */
    SCHEDULE_KNOWN,   /* also counted arcs of conditions */
    SCHEDULE_LOCKS,   /* also locks, semaphores, conditions, and assumed arcs */
};

/* When each segment runs on the ideal machine. */
struct schedule {
    uint64_t *start, *finish; /* time units, by segment */
    uint32_t *cause;          /* by segment: segment whose end let it begin; SEGMENT_NONE: it waited for none */
    uint32_t *round_of;       /* by segment: index of the round at which its end arrives; SEGMENT_NONE: none */
    uint32_t *order; /* segments by their ends; a segment is after those for which it waits, unless waits were forced */
    struct barrier_round *round;
    uint32_t rounds;
    uint64_t span;   /* time at which the last segment ends */
    uint8_t kind;    /* enum schedule_kind */
    uint32_t last;   /* segment that ends last; SEGMENT_NONE: there are no segments */
    uint64_t forced; /* waits that no event would have ended, and that were left out */
};

int schedule_make(struct schedule *s, const struct precedence *p, enum schedule_kind kind, struct peet_err *err);
void schedule_release(struct schedule *s);

/* By segment, the longest path from its end to the end of the run, by known arcs of the schedule's kind and by rounds. *ret is to be freed. */
int schedule_tails(const struct schedule *s, const struct precedence *p, uint64_t **ret, struct peet_err *err);

/* Epochs: a sequence of cuts through the run, each certainly after the one before. A cut is a round of a barrier, or a point through which all
 * paths lead. Segment a certainly precedes segment b of another thread if until[a] <= from[b]; otherwise their order is unknown.
 * Within a thread, neither number decreases. */
struct epochs {
    uint32_t *from;  /* by segment: number of the last cut that it certainly follows; 0: the begin of the run */
    uint32_t *until; /* by segment: number of the first cut that it certainly precedes; count: the end of the run */
    uint32_t count;  /* epochs, at least 1 */
};

int epochs_make(struct epochs *e, const struct schedule *s, const struct precedence *p, struct peet_err *err);
void epochs_release(struct epochs *e); /* also after a failure, and of zeros */

#endif
