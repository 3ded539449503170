/* SPDX-License-Identifier: MIT */
/* Heap blocks that other threads allocate later in a replay. Only certain events order threads there, so that a thread may refer to a block before
 * the thread that allocates it gets there. The trace is searched for blocks once, at the first byte that belongs to nothing else. It is
 * expanded once, for their call paths, if a byte is in such a block. */
#ifndef STUDY_OBJECTS_LATER_BLOCKS_H
#define STUDY_OBJECTS_LATER_BLOCKS_H

#include "peet/trace.h"
#include "study/objects/heap_blocks.h"

enum { LATER_CALLS = 16 }; /* calls of a path that are kept, as OBJECT_PATH */

/* An allocating event of the trace. path: its calls, the innermost first, 0 at the end. Returns the number that later_blocks_find gives. */
typedef uint32_t later_blocks_note(void *context, const struct peet_event *e, const uint64_t path[LATER_CALLS]);

/* A heap block of the trace, with the event that allocates it. */
struct later_block {
    uint64_t event;  /* number of the thread's events of objects_wants before the one that allocates it */
    uint32_t thread; /* that allocates it: number in the trace */
    uint32_t number; /* what `note` returned for it; 0 until is_named */
};

/* All heap blocks of a trace, for references that come before the allocation in the replay. */
struct later_blocks {
    struct peet_trace *trace;  /* NULL: nothing is looked up */
    bool is_read;              /* `blocks` has the blocks of the whole trace */
    bool is_named;             /* elements of `block` have their numbers */
    struct heap_blocks blocks; /* heap_block.object: index in `block` */
    struct later_block *block; /* thread by thread, in the order of a thread's events */
    uint32_t count;            /* elements of `block` */
    struct map passed; /* uint64_t: events of objects_wants that a thread has passed, by its number in the trace */
};

/* Does nothing for traces of one thread, or of several processes. */
void later_blocks_init(struct later_blocks *l, struct peet_trace *t);
void later_blocks_release(struct later_blocks *l);

void later_blocks_pass(struct later_blocks *l, uint32_t thread); /* an event of objects_wants */

/* The block of a byte that another thread is to allocate: its bounds, with the number of `note` as object. False: there is none; *ret then has the
 * bounds of a range where that holds. */
bool later_blocks_find(struct later_blocks *l, uint32_t thread, uint64_t addr, later_blocks_note *note, void *context,
                       struct heap_block *ret);

#endif
