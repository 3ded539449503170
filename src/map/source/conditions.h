/* SPDX-License-Identifier: MIT */
/* Order between critical sections of condition variables, as arcs between threads of a recorded run.
 *
 * Before a thread waits at a condition, or does not, it reads data that the condition's mutex protects. When the trace has the order in which the
 * mutex was taken (lock_turn), the bytes that each critical section read from others are known. Arcs follow from them: from the end of
 * one critical section to the begin of another. docs/design/mapper.md has the rules, and what they assume. */
#ifndef MAP_SOURCE_CONDITIONS_H
#define MAP_SOURCE_CONDITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peet/trace.h"

enum condition_level {
    CONDITION_CERTAIN, /* the wait ended only then; or a signal was given because of data that waiting threads had written */
    CONDITION_COUNTED,  /* a section that did not wait, ordered by counting as in a semaphore */
    CONDITION_RECORDED, /* a section that did not wait, as late as in the recorded run */
};

/* An order between two events. Events are numbered in their thread, from 1. */
struct condition_arc {
    uint64_t from_event;             /* of the first thread: releases the mutex; happens before to_event */
    uint64_t to_event;               /* of the second thread: acquires the mutex */
    uint64_t condition;              /* address */
    uint32_t from_thread, to_thread; /* numbers in the trace */
    uint8_t level;                   /* enum condition_level */
    bool
        meets; /* from the begin of a wait to the signal that ended it, which read data that the waiting thread had written */
};

/* A wait that a known signal ended. In a simulation it ends when the tails of all arcs to its event are reached, and needs no signal. */
struct condition_wait {
    uint64_t event;  /* of its cond_wait event: number in the thread, from 1 */
    uint32_t thread; /* number in the trace */
};

/* The order between critical sections of a trace. */
struct condition_order {
    struct condition_arc *arc; /* by thread and event of their heads */
    size_t arcs;
    struct condition_wait *wait; /* by thread and event */
    size_t waits;
    uint64_t unneeded; /* sections that did not wait, and would have waited at an earlier time */
    bool is_unknown;   /* the trace has conditions, and lacks the order in which their mutexes were taken */
};

/* Reads the trace twice if it has conditions, else not at all. Of a trace from a pipe, the order is unknown. */
int condition_order_read(struct condition_order *o, struct peet_trace *t, struct peet_err *err);
void condition_order_release(struct condition_order *o); /* also after a failure, and of zeros */

#endif
