/* SPDX-License-Identifier: MIT */
/* Iterations of parallel loops that one thread ran one after the other, as contexts that run at the same time. */
#ifndef MAP_SOURCE_SOURCE_DOALL_H
#define MAP_SOURCE_SOURCE_DOALL_H

#include "map/source/source.h"

enum { DOALL_MAX_WINDOW = 1024 };

struct doall_config {
    uint32_t window; /* iterations of a loop that are open at a time, at least 1 */
    uint64_t limit;  /* records of a context that are kept until it wants them; a loop that needs more is an error */
};

/* Stands before `inner`, which it owns from now on, also if it fails. */
int source_take_doall(struct source *inner, const struct doall_config *config, struct source **ret,
                      struct peet_err *err);

/* The most records that were kept for one context, of a source made by source_take_doall. */
uint64_t source_doall_peak(const struct source *s);

/* Whether a trace has iterations at all. */
bool trace_has_doall(const struct peet_trace *t);

#endif
