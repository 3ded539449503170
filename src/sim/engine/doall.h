/* SPDX-License-Identifier: MIT */
/* Iterations of DOALL and DOACROSS loops, which run as threads (map/source/source_doall.h). docs/design/engine.md, "DOALL loops". */
#ifndef SIM_ENGINE_DOALL_H
#define SIM_ENGINE_DOALL_H

#include "sim/engine/wait.h"

/* A thread's part in parallel loops: it takes iterations of another thread's loop, or has a loop whose iterations others take. */
struct doall_part {
    struct sim_thread *forker;     /* of a thread that takes iterations: whose loop; NULL: it takes none */
    struct sim_thread *takers;     /* threads that take iterations of this thread's loop; NULL: none */
    struct sim_thread *next_taker; /* of the same forker; NULL: the last */
    uint64_t begun;                /* iterations of this thread's loop that have begun in its current execution */
    int64_t first_iteration;       /* number of the first of them */
    uint64_t sequence;             /* of the iteration that this thread takes: how many began before it */
    uint32_t depth;                /* nested starts that this thread is in; 0: it is in no iteration */
};

/* A thread that takes iterations was created, possibly again. */
void sim_loop_created(struct sim_thread *t, struct sim_thread *forker);

/* The thread begins an iteration; has finished it; all iterations of the forker's loop are over. */
void sim_loop_start(struct sim_thread *t, uint64_t iteration);
void sim_loop_finish(struct sim *s, struct sim_thread *t, uint64_t now);
void sim_loop_join(struct sim *s, struct sim_thread *forker);

/* An iteration posts a value; whether an iteration that waits for a value may continue. */
void sim_loop_post(struct sim *s, struct sim_thread *t, struct sync_object *o, uint64_t value);
bool sim_loop_may_continue(const struct sim_thread *t, const struct sync_object *o, uint64_t value);

void sim_loop_release(struct sim *s);

#endif
