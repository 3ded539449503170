/* SPDX-License-Identifier: MIT */
/* How the code of threads is executed: record by record, or by translated blocks. The engine uses this table, and does not know which
 * executor runs. docs/design/engine.md; docs/design/blocks.md. */
#ifndef SIM_ENGINE_EXECUTOR_H
#define SIM_ENGINE_EXECUTOR_H

#include "sim/engine/simulation.h"

/* A way to execute the code of threads. */
struct executor {
    const char *name;
    unsigned progress_steps; /* steps between two looks at progress and `stop` */

    /* Before the first step: makes the machine's memory. */
    int (*begin)(struct sim *s, struct peet_err *err);
    /* A step of the hardware thread's thread: up to an event, which it executes (sim_reach_event), or up to about cycle `limit`. */
    int (*step)(struct sim *s, struct hw_thread *hw, uint64_t limit, struct peet_err *err);
    /* A reference of library code (SIM_NO_INSN) to bytes of one line. */
    void (*library_access)(struct sim *s, struct hw_thread *hw, const struct peet_record *r);
    /* A reference of a lock or barrier, for thread t, to a word of the object at that address with its address space. Returns its cycles,
     * and in *ret what they are spent for. */
    uint64_t (*sync_access)(struct sim *s, const struct sim_thread *t, uint64_t object, const struct peet_record *r,
                            uint64_t now, struct sync_time *ret);
    /* A thread has reached an event, which the engine has not executed. */
    void (*event)(struct sim *s, uint32_t thread, const struct peet_event *e);
    /* Index of the path counts of a thread's current block (sim_wait); UINT32_MAX: none. */
    uint32_t (*path_counts)(struct sim *s, uint32_t thread);
    /* Cycle that the step in progress has reached; 0: that is the clock of its hardware thread. */
    uint64_t (*clock)(const struct sim *s);
    /* The program has ended in the last step. */
    int (*end)(struct sim *s, struct peet_err *err);
    /* Adds pending counts to the time accounts, and sets the counts of memory and fabric. May be called before `begin`. */
    void (*flush)(struct sim *s, struct sim_result *ret);
    void (*release)(struct sim *s);
};

extern const struct executor executor_records; /* executor_records.c */
extern const struct executor executor_blocks;  /* executor_blocks.c */

/* ---- for executors (sim.c) ---- */

/* Takes the answer of the source to a request for more code: registers new threads, and ends the hardware thread's thread if the answer is 0.
 * Returns the answer, or an error. */
int sim_take_answer(struct sim *s, struct hw_thread *hw, int answer, struct peet_err *err);

/* Executes an event of the hardware thread's thread. */
void sim_reach_event(struct sim *s, struct hw_thread *hw, const struct peet_event *e);

/* Cycle at which the quantum of the thread ends, if others are ready, or `limit`. A quantum that ended within an event ends with the next step. */
uint64_t sim_end_of_quantum(struct sim *s, const struct hw_thread *hw, uint64_t limit);

/* Takes the hardware thread from its thread if the quantum is over. */
void sim_check_quantum(struct sim *s, struct hw_thread *hw);

/* Spends the cycles of instructions. The hardware threads of a core issue in turn: one waits until the core is free. */
static inline void hw_thread_issue(struct sim *s, struct hw_thread *hw, uint64_t cycles)
{
    uint64_t *free_at = &s->order.issue_at[hw->cpu];

    if (s->config.core_threads > 1) {
        hw_thread_spend(hw, *free_at, TIME_issue);
        *free_at = hw->clock + cycles;
    }
    hw->clock += cycles;
    hw->account.time[TIME_compute] += cycles;
}

#endif
