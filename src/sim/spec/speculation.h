/* SPDX-License-Identifier: MIT */
/* Threads that continue before a barrier opens: checkpoints, conflicts, roll-backs and confirmations. docs/design/speculation.md.
 *
 * Takes for granted: a recorded trace of one process, one hardware thread in each core, the record executor without strided loops. */
#ifndef SIM_SPEC_SPECULATION_H
#define SIM_SPEC_SPECULATION_H

#include "sim/engine/simulation.h"
#include "sim/spec/record_hold.h"

/* What a thread does between two barriers. RUNS: its accesses are speculative; HELD: it waits for the confirmation, before an event that cannot
 * be undone; UNDONE: it was rolled back and waits. */
enum speculation_phase { SPECULATION_NONE, SPECULATION_RUNS, SPECULATION_HELD, SPECULATION_UNDONE };

/* The speculation of a thread. */
struct thread_speculation {
    uint8_t phase;               /* enum speculation_phase */
    bool has_ended;              /* the source has no more records of the thread */
    struct sync_object *barrier; /* at which it arrived last */
    struct checkpoint start;
    uint64_t references; /* since the checkpoint */
    uint64_t bus;        /* of the hardware thread's time account, at the checkpoint */
    uint64_t
        overlap; /* cycles from its last arrival to the confirmation in which it ran; 0: none, or the next barrier has counted them */
    uint64_t repeats; /* references that were undone, and are still to be made again */
    struct record_hold hold;
};

/* What speculation at a barrier was worth to a hardware thread. */
struct barrier_score {
    uint64_t gain; /* cycles by which its successful speculations let the next barrier open earlier */
    uint64_t
        cost; /* cycles to save and restore its state, and twice the misses of undone sections: their lines are fetched again */
};

/* All speculation of a run. */
struct speculation {
    struct thread_speculation *thread; /* by number */
    struct speculation_counts *counts; /* by hardware thread */
    uint64_t undone_references;        /* of all roll-backs */
    uint32_t active;                   /* threads that run speculatively, or are held */
    struct sync_object *barrier;       /* at which these arrived */
    struct map scores;        /* struct barrier_score, by barrier and hardware thread; of the policy "adaptive" */
    struct sync_object **due; /* barriers at which all have arrived, and that have not opened */
    size_t dues;
};

struct speculation *speculation_new(const struct sim *s);
void speculation_free(struct speculation *x, uint32_t threads);

/* After the machine's memory was made. An error if the source cannot be undone. */
int speculation_begin(struct sim *s, struct peet_err *err);

/* The hardware thread's thread arrives at a barrier. */
void speculation_arrive(struct sim *s, struct hw_thread *hw, struct sync_object *o);

/* Cycle at which the next barrier opens; UINT64_MAX: not known. Opens it. */
uint64_t speculation_due(const struct sim *s);
void speculation_confirm(struct sim *s);

/* No thread can continue: the barrier opens for those that have arrived. */
void speculation_force(struct sim *s, struct sync_object *o);

/* There are more threads than hardware threads: no thread speculates any more. */
void speculation_make_room(struct sim *s);

/* A step of a thread, by the executor's function. */
typedef int speculation_advance(struct sim *s, struct hw_thread *hw, uint64_t limit, struct peet_err *err);
int speculation_step(struct sim *s, struct hw_thread *hw, uint64_t limit, speculation_advance *advance,
                     struct peet_err *err);

/* The next batch of the hardware thread's thread, as source_next. After its end, a speculating thread does not run any more. */
int speculation_next(struct sim *s, struct hw_thread *hw, struct peet_err *err);

/* Whether the thread has to wait for its confirmation before this event; it waits then. */
bool speculation_holds(struct sim *s, struct hw_thread *hw, const struct peet_event *e);

void speculation_result(const struct sim *s, struct sim_result *ret);

#endif
