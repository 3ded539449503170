/* SPDX-License-Identifier: MIT */
/* The precedence graph of a run: which parts of its threads had to end before which others could begin. See docs/design/studies.md.
 *
 * A node is a graph segment: what a thread executes between two events that order threads. An arc is added only where events force it:
 * creation and join of threads, posted values, semaphores. Rounds of barriers are found by schedule.h, arcs under the mutex of a condition
 * by map/source/conditions.h. Two critical sections of a lock have no arc, because their order is not known.
 *
 * Assumes: events take no time; code between two iterations of a parallel loop is loop control, which each iteration could execute.
 * Leaves out: spinning on a word, signals, files, pipes, a parent that waits for its child process. */
#ifndef STUDY_GRAPH_PRECEDENCE_H
#define STUDY_GRAPH_PRECEDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/progress.h"
#include "peet/trace.h"

#define SEGMENT_NONE UINT32_MAX

enum graph_object_class { GRAPH_LOCK, GRAPH_BARRIER, GRAPH_SEMAPHORE, GRAPH_CONDITION, GRAPH_POST, GRAPH_ONCE };

/* A lock, barrier or other object of synchronization, to which events refer by its address. */
struct graph_object {
    uint64_t addr;
    uint32_t process; /* number in the trace */
    enum graph_object_class class;
    uint64_t inits;    /* semaphore: initializations in the trace */
    uint64_t initial;  /* semaphore: sum of the initial values */
    uint32_t users;    /* barrier: threads that wait at it */
    uint64_t arrivals; /* barrier: least number of threads that an event gives for a round; 0: none so far */
};

/* A node of the graph: consecutive instructions of a thread, up to an event that orders threads. */
struct graph_segment {
    uint64_t instructions, references; /* of the segment */
    uint64_t position;                 /* instructions of the thread before the segment */
    uint64_t events;                   /* events of the thread up to and including the one that ends the segment */
    uint64_t
        value; /* of that event; of an unlock: 1 exclusive, 0 shared; of a wait at a condition: number of the wait */
    uint64_t site;   /* code address of that event; 0: unknown */
    uint64_t share;  /* index of its first function_share; the last one is before that of the next segment */
    uint32_t thread; /* index in precedence.thread */
    uint32_t object; /* index in precedence.object; SEGMENT_NONE: the event has none */
    uint32_t lock;   /* lock that a wait at a condition releases; SEGMENT_NONE: none */
    uint8_t end;     /* enum peet_event_kind; PEET_EV_thread_end: last segment of a thread */
    bool detached;   /* does not wait for the segment before it: control between two iterations */
};

/* A thread: segments [first, first + segments), at least one, in program order. */
struct graph_thread {
    uint32_t id, process;                      /* numbers in the trace */
    const char *name;                          /* NULL: none */
    uint32_t first, segments;                  /* index of the first segment; number of segments */
    uint64_t instructions, references, events; /* counts of the thread */
};

enum arc_level {
    ARC_CERTAIN, /* events force it */
    ARC_COUNTED, /* of a critical section that did not need to wait at a condition: by counting (map/source/conditions.h) */
    ARC_ASSUMED, /* one of several possible orders */
};

/* An arc between threads, from the end of a segment to the begin of another one. Program order has no arcs. */
struct graph_arc {
    uint32_t from, to; /* segments */
    uint8_t
        kind; /* enum peet_event_kind at its head: thread_create, thread_join, sem_wait, wait, once, doall_join, cond_wait … */
    uint8_t level; /* enum arc_level */
};

/* Whether the arc is part of the known order: certain or counted. */
static inline bool arc_is_known(const struct graph_arc *a)
{
    return a->level <= ARC_COUNTED;
}

/* Instructions of one function in a segment. */
struct function_share {
    uint64_t instructions;
    uint32_t function; /* index in precedence.function */
};

/* A range of bytes that an event names: by the program, by the allocating call, by its mapping. */
struct named_range {
    uint64_t start, size;     /* address; bytes */
    uint64_t site;            /* code address of the call; 0: none */
    uint64_t string;          /* number of the string, of PEET_EV_name_data only */
    uint32_t process, thread; /* numbers in the trace */
    uint8_t kind;             /* PEET_EV_name_data, PEET_EV_map, PEET_EV_malloc … */
};

/* Counts of what the graph lacks, because the trace does not say it. */
struct graph_unknowns {
    uint64_t damaged;              /* parts of the trace that could not be read */
    uint64_t gaps;                 /* gap events */
    uint64_t missing_instructions; /* instructions in these gaps */
    uint64_t unmatched_waits;      /* waits whose partner is not forced, or not in the trace */
    uint64_t spin_waits;           /* waits on a word of memory; which thread ends them is unknown */
    uint64_t
        unneeded_waits; /* critical sections that would have waited at a condition if they had been entered earlier */
    bool has_unknown_order; /* there are conditions, and the trace lacks the order of their critical sections */
};

/* A precedence graph. Counts of arrays follow them; NAME_room is the capacity of an array. */
struct precedence {
    struct peet_trace *trace;
    struct graph_thread *thread; /* rising by id */
    size_t threads;
    struct graph_segment *segment; /* thread by thread, in program order */
    uint32_t segments;
    struct graph_arc *arc; /* sorted by `from`: arcs of segment i are arc[first_arc[i]] … arc[first_arc[i + 1] - 1] */
    uint64_t *first_arc;
    size_t arcs, arc_room;
    struct graph_object *object;
    size_t objects, object_room;
    struct function_share *share;
    size_t shares;
    const char **function; /* names; element 0 is NULL: unknown */
    size_t functions, function_room;
    struct named_range *named;
    size_t named_count, named_room;
    uint64_t instructions, references; /* of all threads */
    struct graph_unknowns unknown;
    struct {
        struct map objects;   /* uint32_t: index, by address with the class on top, and process */
        struct map functions; /* uint32_t: index, by the address of the symbol */
        struct map threads;   /* uint32_t: index, by id */
    } index;
};

/* Reads the whole trace; loops are counted, not expanded. Damage is no error, but counted in `unknown`. */
int precedence_read(struct precedence *p, struct peet_trace *t, struct progress *progress, struct peet_err *err);
void precedence_release(struct precedence *p); /* also after a failure, and of zeros */

/* Called by precedence_read: adds all arcs that depend on the whole run, and sorts them. */
int precedence_connect(struct precedence *p, struct peet_err *err);
int precedence_arc(struct precedence *p, struct graph_arc arc, struct peet_err *err);

const struct graph_thread *precedence_thread(const struct precedence *p, uint64_t id); /* NULL: there is none */

static inline const struct function_share *segment_shares(const struct precedence *p, uint32_t segment,
                                                          size_t *ret_count)
{
    uint64_t end = segment + 1 < p->segments ? p->segment[segment + 1].share : p->shares;

    *ret_count = (size_t)(end - p->segment[segment].share);
    return p->share + p->segment[segment].share;
}

/* Whether the segment after it is of the same thread and waits for it. */
static inline bool segment_has_next(const struct precedence *p, uint32_t segment)
{
    const struct graph_thread *l = &p->thread[p->segment[segment].thread];

    return segment + 1 < l->first + l->segments && !p->segment[segment + 1].detached;
}

/* The function with most instructions in a segment; "?": unknown. */
const char *segment_function(const struct precedence *p, uint32_t segment);

/* Makes room for one more element; NULL: no memory, and the array is unchanged. */
void *array_room(void *array, size_t count, size_t *room, size_t size);

/* Writes "symbol+0x10", or "0x…" where there is no symbol, to buffer, and returns it. */
const char *addr_text(const struct peet_trace *t, uint32_t process, uint64_t addr, char buffer[120]);

#endif
