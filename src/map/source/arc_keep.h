/* SPDX-License-Identifier: MIT */
/* Puts arcs between critical sections (map/source/conditions.h) into what is replayed: arc_tail before the event with which a
 * thread gives a mutex up, arc_head before the one with which another one takes it. A wait whose end is known becomes
 * mutex_unlock, its arc_heads, and mutex_lock: it needs no signal. */
#ifndef MAP_SOURCE_ARC_KEEP_H
#define MAP_SOURCE_ARC_KEEP_H

#include "map/source/source.h"

struct keep;

/* Of the contexts of a trace. *ret_keep is NULL if there are no arcs and no waits. */
int keep_new(struct peet_trace *t, const struct source_thread *context, uint32_t contexts, struct keep **ret_keep,
             struct peet_err *err);
void keep_free(struct keep *k); /* NULL: does nothing */

/* The next batch of a context, with its arcs; what it points to is valid until the next call for the context. */
int keep_arcs(struct keep *k, uint32_t context, struct peet_batch *batch, struct peet_err *err);

#endif
