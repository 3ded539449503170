/* SPDX-License-Identifier: MIT */
/* A thread's position in a strided loop, and iterations that are counted without being simulated. docs/design/engine.md, "Fast-forward". */
#ifndef SIM_ENGINE_FAST_FORWARD_H
#define SIM_ENGINE_FAST_FORWARD_H

#include "sim/engine/line_crossings.h"
#include "sim/engine/sim.h"

struct hw_thread;
struct sim_thread;

/* One iteration of a strided loop whose references are all MRU hits. It is the same for all loops with equal records, whatever their addresses. */
enum { HIT_ITERATION_RECORDS = 16 };
struct hit_iteration {
    uint64_t kinds[PEET_PREFETCH + 1];         /* references, by enum peet_kind */
    uint64_t blocks, references, instructions; /* how many it executes */
    uint64_t compute, fetch;                   /* cycles */
    uint64_t cycles;                           /* compute + fetch */
    uint64_t fetches;                          /* lines of instructions */
    size_t records; /* of the iteration; 0: more than HIT_ITERATION_RECORDS, which are not compared */
    uint64_t record[HIT_ITERATION_RECORDS]; /* its records, without their addresses */
};

/* A thread's position in a strided loop, and what its current iteration did to the first-level cache. */
struct loop_position {
    uint64_t iteration;   /* number of the current one, from 0 on */
    size_t record;        /* index of its next record */
    uint64_t misses_next; /* reasons why a repetition of the iteration might not hit everywhere; 0: none */
    uint64_t filled;  /* references that were no MRU hits, and would be; their fills may have evicted its other lines */
    uint64_t changes; /* l1_filter.epoch when the iteration began */
    bool is_small;    /* at most 7 records: `crossings` is not used */
    bool is_streaming;        /* is_small, and a reference has another line in each iteration */
    struct hit_iteration hit; /* of this loop */
    struct line_crossings crossings;
};

/* Iterations that a hardware thread has counted ahead of the global clock and that can be rolled back. */
struct fast_forward {
    uint64_t iterations; /* 0: none */
    uint64_t since;      /* cycle in which the first of them began */
    size_t at;           /* index of their loop's record in the batch */
};

/* Runs the next block of a strided loop. If the following iterations change nothing, it counts all that end before cycle `limit`, or, if
 * they can be rolled back, all of them. */
void sim_run_loop(struct sim *s, struct hw_thread *hw, uint64_t limit);

/* Another hardware thread is about to change this one's caches, in a step at cycle `time` by hardware thread `number`: rolls back what was
 * done ahead of that step. */
void sim_roll_back(struct sim *s, struct hw_thread *hw, uint64_t time, unsigned number);

/* Prepares the thread's loop: `begin` before its first iteration, `refresh` at any position. */
void loop_begin(struct sim *s, struct sim_thread *t);
void loop_refresh(struct sim *s, struct sim_thread *t);

/* Adds iterations that hit everywhere to clock and counts; a negative number (modulo 2^64) subtracts them. */
void loop_account(struct sim *s, struct hw_thread *hw, uint64_t iterations);

/* Whether the first-level cache still has all lines of the iteration that has just ended; some of them were filled in it. */
bool loop_lines_present(const struct sim *s, const struct hw_thread *hw);

/* After a steady iteration: the number of next iterations in which no reference changes its line. Unless the loop is small, `crossings` is
 * then valid. */
uint64_t loop_iterations_to_crossing(struct sim *s, const struct hw_thread *hw);

#endif
