/* SPDX-License-Identifier: MIT */
/* When each piece of a precedence graph would run on a machine with as many processors as there is work for, on which an
 * instruction takes one unit of time and an event none.
 *
 * Without locks, only what is certain delays a piece, and no machine whatsoever is faster: the span is a lower bound. With locks,
 * critical sections exclude each other in the order of arrival, semaphores and conditions have to be given first: that is one order that
 * could have been, so that its span is an upper bound of the best one. */
#ifndef STUDY_SCHEDULE_H
#define STUDY_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "study/precedence.h"

/* A round of a barrier: who arrives goes on when all have. */
struct meeting {
    uint32_t object, last; /* last: the piece that arrived last */
    uint64_t time;
    uint64_t parties;
};

struct schedule {
    uint64_t *start, *finish; /* of each piece */
    uint32_t *cause;          /* the piece whose end let it begin; PIECE_NONE for those that begin by themselves */
    uint32_t *meeting;        /* that its end arrives at, or PIECE_NONE */
    uint32_t *
        order; /* pieces in the order of their ends, unless waits were broken; who is waited for stands before who waits */
    struct meeting *met;
    uint32_t meetings;
    uint64_t span;
    uint32_t last;   /* the piece that ends last; PIECE_NONE when there is none */
    uint64_t broken; /* waits that nobody would have ended: they were left out */
};

int schedule_make(struct schedule *s, const struct precedence *p, bool locks, struct peet_err *err);
void schedule_release(struct schedule *s);

/* For each piece, the longest way from its end to the end of the run, by certain arcs and the meetings of s; to be freed. */
int schedule_tails(const struct schedule *s, const struct precedence *p, uint64_t **ret, struct peet_err *err);

/* Epochs: parts of the run each of which lies as a whole before the next. They end where all paths go through one point: a barrier at
 * which all meet, a piece beside which nothing can run. *ret_epoch: that of each piece, from 0, never falling in a thread; to be freed. */
int schedule_epochs(const struct schedule *s, const struct precedence *p, uint32_t **ret_epoch, uint32_t *ret_count,
                    struct peet_err *err);

#endif
