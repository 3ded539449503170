/* SPDX-License-Identifier: MIT */
/* A recorded run in which one synchronization is taken out or made weaker: the events of one barrier, lock, join or condition are left out or
 * replaced, and all else stays. The simulator needs no change for it. See docs/design/slack.md.
 *
 * Threads keep what they did when they were recorded, so that an event is identified by its thread and its number there. */
#ifndef MAP_SOURCE_SOURCE_RELAX_H
#define MAP_SOURCE_SOURCE_RELAX_H

#include "base/map.h"
#include "map/source/source.h"

/* What is changed. */
enum relax_class { RELAX_BARRIER, RELAX_LOCK, RELAX_RWLOCK, RELAX_JOIN, RELAX_CONDITION, RELAX_SEMAPHORE, RELAX_POST };

enum relax_change {
    RELAX_REMOVE,         /* its events are left out */
    RELAX_POINT_TO_POINT, /* a barrier: each thread posts its arrival, and waits for those of some threads only */
    RELAX_GROUPS,         /* a barrier: one for each group of threads */
    RELAX_SPLIT,          /* a lock: one for each part of its acquisitions */
    RELAX_READERS,        /* a lock: a reader-writer lock, taken for reading by acquisitions of part 1 */
};

/* A thread that arrives at a barrier needs an earlier arrival of another thread. Arrivals are numbered in their thread, from 1. */
struct relax_need {
    uint32_t arrival, from, from_arrival; /* from: number of the other thread in the source */
};

/* What differs from thread to thread. */
struct relax_thread {
    struct relax_need *need; /* POINT_TO_POINT: rising by arrival */
    size_t needs;
    bool is_needed;   /* POINT_TO_POINT: a need names the thread */
    uint32_t group;   /* GROUPS: number of its group */
    uint32_t members; /* GROUPS: threads of that group */
    uint32_t *part;   /* SPLIT, READERS: by acquisition of the thread; RELAX_NO_PART: it takes no lock */
    size_t parts;     /* further acquisitions take part 0 */
};

#define RELAX_NO_PART UINT32_MAX

struct relaxation {
    uint8_t class;               /* enum relax_class */
    uint8_t change;              /* enum relax_change */
    struct map addrs;            /* uint8_t: addresses of its objects, by process; none: all */
    struct map sites;            /* uint8_t: code addresses of its calls; none: all */
    struct relax_thread *thread; /* by number in the source */
    uint32_t threads;
};

/* The source with the change. It owns `inner` from then on; r is borrowed. The inner source must be a recording. */
struct source *source_take_relaxed(struct source *inner, const struct relaxation *r);

#endif
