/* SPDX-License-Identifier: MIT */
/* Steps of a thread through a strided loop: for fast_forward.c and lookahead.c. */
#ifndef SIM_ENGINE_LOOP_H
#define SIM_ENGINE_LOOP_H

#include "sim/engine/simulation.h"

/* Passes over iterations in which no reference changes its line. */
static inline void thread_skip_iterations(struct sim_thread *t, uint64_t iterations)
{
    t->loop.iteration += iterations;
    t->loop.crossings.iteration += t->loop.is_small ? 0 : iterations;
}

static inline void thread_begin_iteration(struct sim_thread *t, const struct hw_thread *hw)
{
    t->loop.misses_next = t->loop.filled = 0;
    t->loop.changes = hw->filter->epoch;
}

static inline void thread_end_iteration(struct sim_thread *t)
{
    if (t->loop.iteration == thread_loop(t)->times) {
        t->loop.iteration = 0;
        t->at++;
    }
}

/* A reference of an iteration was no MRU hit. Notes whether it would be one if it were repeated at once. */
static inline void thread_note_slow_hit(const struct sim *s, struct sim_thread *t, const struct hw_thread *hw,
                                        const struct peet_record *r, uint64_t addr)
{
    if (s->mode.keeps_recent && !t->loop.is_streaming && l1_filter_has(hw->filter, addr, r->size, r->kind))
        t->loop.filled++;
    else
        t->loop.misses_next++;
}

/* Whether the iteration that has just ended would hit everywhere if it were repeated. */
static inline bool thread_is_steady(const struct sim *s, const struct hw_thread *hw)
{
    const struct sim_thread *t = hw->thread;

    return t->loop.misses_next == 0 && t->loop.record == 0 && t->loop.iteration > 0
           && t->loop.changes == hw->filter->epoch && !t->loop.is_streaming
           && (t->loop.filled == 0 || loop_lines_present(s, hw));
}

#endif
