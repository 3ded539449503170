/* SPDX-License-Identifier: MIT */
/* A source that turns iterations of parallel loops, which one thread ran one after the other, into threads that run at the same time. */
#ifndef MAP_SOURCE_SOURCE_DOALL_H
#define MAP_SOURCE_SOURCE_DOALL_H

#include "map/source/source.h"

enum { DOALL_MAX_WINDOW = 1024 };

/* How iterations are distributed. */
struct doall_config {
    uint32_t window; /* iterations of a loop that are open at the same time, at least 1 */
    uint64_t limit;  /* records that may be kept for an iteration thread; a loop that needs more is an error */
};

/* The new source owns `inner`, also after a failure. */
int source_take_doall(struct source *inner, const struct doall_config *config, struct source **ret,
                      struct peet_err *err);

/* The most records that were kept for one iteration thread; for a source made by source_take_doall. */
uint64_t source_doall_peak(const struct source *s);

/* Whether a trace has marked iterations. */
bool trace_has_doall(const struct peet_trace *t);

#endif
