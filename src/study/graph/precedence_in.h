/* SPDX-License-Identifier: MIT */
/* A trace while its precedence graph is made: precedence.c reads threads, precedence_cut.c cuts them into segments. */
#ifndef STUDY_GRAPH_PRECEDENCE_IN_H
#define STUDY_GRAPH_PRECEDENCE_IN_H

#include "base/err.h"
#include "study/graph/precedence.h"

/* A lock that a thread holds. */
struct held_lock {
    uint32_t object; /* index in precedence.object */
    uint32_t depth;  /* acquisitions not yet released, of a recursive lock */
    bool shared;     /* held for reading */
};

/* A parallel loop, or an iteration of one, that has begun in a thread and not ended. */
struct open_loop {
    bool is_loop;    /* false: an iteration */
    uint32_t fork;   /* segment that ended with its begin */
    size_t finished; /* index in thread_reader.finished of its first iteration */
};

/* A thread while it is read. Segment numbers count from 0 in each thread. */
struct thread_reader {
    struct graph_thread thread;
    struct graph_segment *segment;
    size_t segments, segment_room;
    struct function_share *share;
    size_t shares, share_room;
    struct graph_arc *arc; /* between segments of this thread: parallel loops */
    size_t arcs, arc_room;
    struct held_lock *held;
    size_t helds, held_room;
    struct open_loop *open; /* the innermost one last */
    size_t opens, open_room;
    uint32_t *finished; /* last segments of iterations whose loop has not ended */
    size_t finisheds, finished_room;
    struct {
        uint64_t instructions, references;
    } start;         /* of the current segment: counts of the thread at its begin */
    uint64_t *count; /* instructions of the current segment, by function */
    size_t counts;
    uint32_t *touched; /* functions with a count above 0 */
    size_t touches, touched_room;
};

/* The function of each block of a process. */
struct block_functions {
    uint32_t process;   /* number in the trace */
    uint32_t *of_block; /* 1 + index in precedence.function; 0: not looked up yet */
    uint32_t blocks;    /* elements of of_block */
};

/* A graph while the trace is read. */
struct graph_reader {
    struct precedence *p;
    struct thread_reader **reader; /* by thread, in the order of their first event */
    size_t readers, reader_room;
    size_t last;                  /* index of the reader that was used last */
    struct block_functions *code; /* by process */
    size_t codes, code_room;
    struct map uses;  /* uint8_t: 1, by barrier and thread that waited at it */
    struct map waits; /* uint64_t: waits so far, by condition and thread */
    struct peet_err *err;
};

static inline int precedence_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for the precedence graph");
}

/* Appends an element to the array owner->name with owner->number elements and room for owner->capacity; returns from the caller without memory. */
#define GROW(owner, name, number, capacity, error) \
    __extension__({ \
        void *bigger_ = array_room((owner)->name, (owner)->number, &(owner)->capacity, sizeof *(owner)->name); \
        if (!bigger_) \
            return precedence_no_memory(error); \
        (owner)->name = bigger_; \
        &(owner)->name[(owner)->number++]; \
    })

/* Handles an event of a thread, which may end the current segment. */
int precedence_event(struct graph_reader *r, struct thread_reader *t, const struct peet_event *e);
/* Ends the current segment with an event. */
int precedence_cut(struct graph_reader *r, struct thread_reader *t, const struct peet_event *e, uint32_t object,
                   uint64_t value);

#endif
