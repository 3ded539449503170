/* SPDX-License-Identifier: MIT */
/* Inserts arcs between critical sections (map/source/conditions.h) into the batches of a trace: an event arc_tail before the event with which a
 * thread releases a mutex, arc_head before the one with which another thread acquires it. A wait that a known signal ended becomes
 * mutex_unlock, its arc_heads, and mutex_lock: it needs no signal. */
#ifndef MAP_SOURCE_ARC_INSERTER_H
#define MAP_SOURCE_ARC_INSERTER_H

#include "map/source/source.h"

struct arc_inserter;

/* For the threads of a trace. *ret is NULL if there are no arcs and no waits. */
int arc_inserter_new(struct peet_trace *t, const struct source_thread *thread, uint32_t threads,
                     struct arc_inserter **ret, struct peet_err *err);
void arc_inserter_free(struct arc_inserter *k); /* NULL: does nothing */

/* Replaces the next batch of a thread by one with its arcs, whose arrays are valid until the next call for the same thread. */
int arc_inserter_apply(struct arc_inserter *k, uint32_t thread, struct peet_batch *batch, struct peet_err *err);

#endif
