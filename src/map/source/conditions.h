/* SPDX-License-Identifier: MIT */
/* What a recorded run decided on under the locks of its conditions, as arcs between its threads.
 *
 * A thread that waits at a condition decides on data that its mutex protects, and it decides whether or not it has to
 * wait. When the trace says in which order a mutex was taken (lock_turn), what each critical section read of what
 * others wrote is known byte by byte. From that follow arcs from the end of one critical section to the beginning of
 * another. All of them agree with the order of the recorded run, so that they have no cycle.
 *
 * A section that waited went on because of the signal that ended its wait. One that did not wait would have gone on
 * earlier, too: it is not recorded how much earlier. What is counted then (ARC_COUNTED) is as in a semaphore: if one
 * section more goes on for each section that signals, by the greatest constant distance that the run allows. With
 * signals the sections of all threads count together, with broadcasts each thread for itself.
 *
 * Assumes: a section that reads nothing which a signalling section has written did not decide on it. Sections that
 * take their lock where others did before they signalled would have signalled, too. Leaves out: conditions of mutexes
 * that several processes share. */
#ifndef MAP_SOURCE_CONDITIONS_H
#define MAP_SOURCE_CONDITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peet/trace.h"

enum condition_level {
    CONDITION_CERTAIN, /* a wait was over only then; or a signal was given because of what waiting threads had written */
    CONDITION_COUNTED,  /* a section that did not wait, by counting */
    CONDITION_RECORDED, /* the same, as late as in the recorded run */
};

/* Numbers of events count the events of a thread from 1. */
struct condition_arc {
    uint64_t from_event; /* with which a thread gives the mutex up: it comes to it before … */
    uint64_t to_event;   /* … another one goes on behind this one, with which it takes the mutex */
    uint64_t condition;  /* address */
    uint32_t from_thread, to_thread;
    uint8_t level; /* enum condition_level */
    bool meets;    /* to a signal, from the begin of a wait that it ended: of what waiting threads had written */
};

/* A wait at a condition of which it is known what ended it: the arcs to its event say it, all of them. */
struct condition_wait {
    uint64_t event;
    uint32_t thread;
};

struct condition_order {
    struct condition_arc *arc; /* by thread and event of their heads */
    size_t arcs;
    struct condition_wait *wait; /* by thread and event */
    size_t waits;
    uint64_t unneeded; /* sections that would have waited if they had come earlier */
    bool is_unknown;   /* there are conditions, and the trace does not say in which order their mutexes were taken */
};

/* Reads the trace twice if it has conditions, and not at all otherwise. A pipe is not read: its order is unknown. */
int condition_order_read(struct condition_order *o, struct peet_trace *t, struct peet_err *err);
void condition_order_release(struct condition_order *o); /* also after a failure, and of zeros */

#endif
