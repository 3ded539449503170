/* SPDX-License-Identifier: MIT */
/* A trace while its precedence is read: precedence.c reads threads, and precedence_cut.c cuts them into pieces. */
#ifndef STUDY_GRAPH_PRECEDENCE_IN_H
#define STUDY_GRAPH_PRECEDENCE_IN_H

#include "base/err.h"
#include "study/graph/precedence.h"

struct held_lock {
    uint32_t object, depth;
    bool shared;
};

/* A parallel loop, or an iteration of it, that has begun in this thread. */
struct open_loop {
    bool is_loop;
    uint32_t fork;   /* the piece that ended with it */
    size_t finished; /* where its iterations begin in track.finished */
};

/* A thread while it is read. Numbers of pieces are its own. */
struct thread_reader {
    struct graph_thread thread;
    struct graph_segment *segment;
    size_t segments, segment_room;
    struct function_share *share;
    size_t shares, share_room;
    struct graph_arc *arc;
    size_t arcs, arc_room;
    struct held_lock *held;
    size_t helds, held_room;
    struct open_loop *open;
    size_t opens, open_room;
    uint32_t *finished; /* last pieces of iterations whose loop goes on */
    size_t finisheds, finished_room;
    uint64_t begun, begun_references; /* where the piece at hand began */
    uint64_t *count;                  /* instructions of the piece at hand, by function */
    size_t counts;
    uint32_t *touched; /* functions whose count is not 0 */
    size_t touches, touched_room;
};

/* Which function a block is in, by process: 0 is not known yet, else one more than the function's number. */
struct block_functions {
    uint32_t process, *of_block;
    uint32_t blocks;
};

struct graph_reader {
    struct precedence *p;
    struct thread_reader **reader;
    size_t readers, reader_room, last;
    struct block_functions *code;
    size_t codes, code_room;
    struct map uses;  /* by barrier and lane: somebody was there */
    struct map waits; /* by condition and thread: how often it waited there */
    struct peet_err *err;
};

static inline int precedence_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for the precedence graph");
}

/* Makes room for one more element of an array that is called NAME, whose number is NAMEs and whose capacity is ROOM. */
#define GROW(owner, name, number, capacity, error) \
    __extension__({ \
        void *bigger_ = array_room((owner)->name, (owner)->number, &(owner)->capacity, sizeof *(owner)->name); \
        if (!bigger_) \
            return precedence_no_memory(error); \
        (owner)->name = bigger_; \
        &(owner)->name[(owner)->number++]; \
    })

/* An event may end the piece at hand. */
int precedence_event(struct graph_reader *r, struct thread_reader *t, const struct peet_event *e);
/* Ends the piece at hand with an event. */
int precedence_cut(struct graph_reader *r, struct thread_reader *t, const struct peet_event *e, uint32_t object,
                   uint64_t value);

#endif
