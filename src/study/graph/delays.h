/* SPDX-License-Identifier: MIT */
/* What a run waits for, as tables: the critical path, barriers, locks. */
#ifndef STUDY_GRAPH_DELAYS_H
#define STUDY_GRAPH_DELAYS_H

#include "study/graph/schedule.h"
#include "study/table.h"

/* "critical" and "functions": the longest path through s, and which functions are on it. rows: of each table at most, here and below. */
int delays_path(struct result *r, const struct precedence *p, const struct schedule *s, size_t rows,
                struct peet_err *err);

/* "barriers": what threads lose there because others come later, by the place in the program. */
int delays_barriers(struct result *r, const struct precedence *p, const struct schedule *s, struct peet_err *err);

/* "locks": how much is done while they are held. *ret_bound: no run can be shorter, for the critical sections of one lock cannot
 * overlap. s: by what is certain. */
int delays_locks(struct result *r, const struct precedence *p, const struct schedule *s, size_t rows,
                 uint64_t *ret_bound, struct peet_err *err);

#endif
