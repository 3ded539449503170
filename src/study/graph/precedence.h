/* SPDX-License-Identifier: MIT */
/* The precedence graph of a run: what had to come before what, from the streams alone.
 *
 * Nodes are pieces: what a thread does between two events that other threads can wait for, or that wait for others. Streams
 * have no common order, so an arc stands here only if events force it: a thread is created before it starts and ends before it is
 * joined; a value is posted before a wait for it is over; a semaphore is given as often as it is taken. Barriers are meetings:
 * schedule.h finds who met whom. What is decided under the mutex of a condition has the arcs of map/source/conditions.h. Other locks have no
 * arcs: that two critical sections exclude each other is known, but not which came first.
 *
 * Assumes: abstract events cost nothing; what is between two iterations of a parallel loop is loop control, which each iteration
 * could do by itself. Leaves out: waiting by spinning on a word, signals, files and pipes, a parent that waits for its child process. */
#ifndef STUDY_GRAPH_PRECEDENCE_H
#define STUDY_GRAPH_PRECEDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/progress.h"
#include "peet/trace.h"

#define SEGMENT_NONE UINT32_MAX

/* What the events of a piece's end are about. */
enum graph_object_class { GRAPH_LOCK, GRAPH_BARRIER, GRAPH_SEMAPHORE, GRAPH_CONDITION, GRAPH_POST, GRAPH_ONCE };

struct graph_object {
    uint64_t addr;
    uint32_t process;
    enum graph_object_class class;
    uint64_t inits, initial; /* semaphore: how often it was initialised, and the sum of the values */
    uint32_t users;          /* barrier: threads that wait there */
    uint64_t arrivals;       /* barrier: the smallest count that it was waited at with */
};

struct graph_segment {
    uint64_t instructions, references;
    uint64_t position; /* the thread's instructions before it */
    uint64_t events;   /* of the thread, up to and with the one that ends it: to find the place in the stream again */
    uint64_t value,
        site; /* of the event that ends it; of an unlock: 1 exclusive, 0 shared; of a wait at a condition: which one */
    uint64_t share;                /* its first share; the last one is before the next piece's first */
    uint32_t thread, object, lock; /* lock: that a wait at a condition gives up meanwhile, or SEGMENT_NONE */
    uint8_t end;                   /* enum peet_event_kind; PEET_EV_thread_end for the last one of every thread */
    bool detached;                 /* does not wait for the piece before it: control between two iterations */
};

/* A thread; its pieces are first … first + pieces - 1, at least one, in program order. */
struct graph_thread {
    uint32_t id, process;
    const char *name; /* or NULL */
    uint32_t first, segments;
    uint64_t instructions, references, events;
};

enum arc_level {
    ARC_CERTAIN, /* events force it */
    ARC_COUNTED, /* a section that found what it would have waited for: by counting (map/source/conditions.h) */
    ARC_ASSUMED, /* one possibility of several */
};

/* From the end of a piece to the begin of another, besides program order. */
struct graph_arc {
    uint32_t from, to;
    uint8_t
        kind; /* the event at its head: PEET_EV_thread_create, _thread_join, _sem_wait, _wait, _once, _doall_join, _cond_wait, … */
    uint8_t level; /* enum arc_level */
};

/* Whether the arc is part of the order that is known. */
static inline bool arc_is_known(const struct graph_arc *a)
{
    return a->level <= ARC_COUNTED;
}

/* Instructions of a function in a piece. */
struct function_share {
    uint64_t instructions;
    uint32_t function;
};

/* Bytes that have a name: told by the program, allocated in one place, mapped. */
struct named_range {
    uint64_t start, size, site;
    uint64_t string; /* with PEET_EV_name_data: number of a string */
    uint32_t process, thread;
    uint8_t kind; /* PEET_EV_name_data, PEET_EV_map, PEET_EV_malloc … */
};

struct precedence {
    struct peet_trace *trace;
    struct graph_thread *thread;
    size_t threads, thread_room;
    struct graph_segment *segment;
    uint32_t segments;
    struct graph_arc *arc; /* by their `from`; those of piece i are arc[first_arc[i]] … arc[first_arc[i + 1] - 1] */
    uint64_t *first_arc;
    size_t arcs, arc_room;
    struct graph_object *object;
    size_t objects, object_room;
    struct function_share *share;
    size_t shares;
    const char **function; /* names, by number; 0 is unknown */
    size_t functions, function_room;
    struct named_range *named;
    size_t named_count, named_room;
    uint64_t instructions, references;
    uint64_t damaged;       /* parts that could not be read */
    uint64_t gaps, missing; /* events that say so, and instructions that they stand for */
    uint64_t unmatched;     /* waits whose partner is not forced or not there */
    uint64_t spins;         /* waits on a word of memory: nobody knows for whom */
    uint64_t unneeded;      /* sections that would have waited at a condition if they had come earlier */
    bool has_unknown_order; /* there are conditions, and the trace does not tell the order of their critical sections */
    struct map objects_by_name, functions_by_name, threads_by_id;
};

/* Reads the whole trace; loops are counted, not expanded. Damage is no error: `damaged` counts it. */
int precedence_read(struct precedence *p, struct peet_trace *t, struct progress *progress, struct peet_err *err);
void precedence_release(struct precedence *p); /* also after a failure, and of zeros */

/* For precedence_read: all arcs that need to know the whole run, and the index. */
int precedence_connect(struct precedence *p, struct peet_err *err);
int precedence_arc(struct precedence *p, struct graph_arc arc, struct peet_err *err);

const struct graph_thread *precedence_thread(const struct precedence *p,
                                             uint64_t id); /* NULL: there is no such thread */

static inline const struct function_share *segment_shares(const struct precedence *p, uint32_t segment,
                                                          size_t *ret_count)
{
    uint64_t end = segment + 1 < p->segments ? p->segment[segment + 1].share : p->shares;

    *ret_count = (size_t)(end - p->segment[segment].share);
    return p->share + p->segment[segment].share;
}

/* Whether the piece behind it is of the same thread and waits for it. */
static inline bool segment_has_next(const struct precedence *p, uint32_t segment)
{
    const struct graph_thread *l = &p->thread[p->segment[segment].thread];

    return segment + 1 < l->first + l->segments && !p->segment[segment + 1].detached;
}

/* The function with most instructions in a piece, "?" when it is not known. */
const char *segment_function(const struct precedence *p, uint32_t segment);

/* Room for one more; NULL when there is no memory, and then the array is as it was. */
void *array_room(void *array, size_t count, size_t *room, size_t size);

/* "symbol+0x10", or "0x…" where there is no symbol; in buffer. */
const char *addr_text(const struct peet_trace *t, uint32_t process, uint64_t addr, char buffer[120]);

#endif
