/* SPDX-License-Identifier: MIT */
/* Tables of what a run waits for: the critical path, barriers, locks. */
#ifndef STUDY_GRAPH_DELAYS_H
#define STUDY_GRAPH_DELAYS_H

#include "study/graph/schedule.h"
#include "study/table.h"

/* Adds tables "critical" and "functions": the longest path through s, and the functions on it; at most `rows` rows each. */
int delays_path(struct result *r, const struct precedence *p, const struct schedule *s, size_t rows,
                struct peet_err *err);

/* Adds table "barriers": time that threads wait for later ones, by code address. */
int delays_barriers(struct result *r, const struct precedence *p, const struct schedule *s, struct peet_err *err);

/* Adds table "locks": instructions executed while each lock is held; at most `rows` rows. *ret_bound: a lower bound of the span, because
 * critical sections of one lock cannot overlap. s: of kind SCHEDULE_CERTAIN. */
int delays_locks(struct result *r, const struct precedence *p, const struct schedule *s, size_t rows,
                 uint64_t *ret_bound, struct peet_err *err);

/* Adds notes on what is certain, what was left out, and what the trace lacks (schedule_notes.c). */
void schedule_notes(struct table *table, const struct precedence *p, const struct schedule *s);

#endif
