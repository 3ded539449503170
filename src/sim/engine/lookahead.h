/* SPDX-License-Identifier: MIT */
/* Blocks that a core simulates ahead of the global clock, since its private caches answer all their references. docs/design/engine.md, "Lookahead". */
#ifndef SIM_ENGINE_LOOKAHEAD_H
#define SIM_ENGINE_LOOKAHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peet/record.h"

struct sim;
struct hw_thread;

/* The state of a hardware thread and its thread at some time (checkpoint.h). The undo log has the state of the caches. */
struct checkpoint {
    size_t at;                                             /* index of the next record of the batch */
    size_t loop_record;                                    /* next record of the iteration */
    uint64_t loop_iteration, misses_next, filled, changes; /* of struct loop_position */
    uint64_t clock;                                        /* cycles; of the hardware thread */
    uint64_t compute, stall;          /* cycles; of its time account: the only kinds that lookahead changes */
    uint64_t instructions;            /* of its time account */
    uint64_t hits[PEET_PREFETCH + 1]; /* by kind: l1_filter.hits, before hierarchy_flush_counts */
    uint64_t silent_upgrades[PEET_PREFETCH + 1]; /* likewise */
    uint64_t l2_hits[PEET_PREFETCH + 1];         /* likewise */
};

/* A hardware thread's lookahead, and how far it may go. */
struct lookahead {
    bool is_on;              /* blocks were simulated ahead and can be rolled back */
    uint32_t most;           /* blocks that a lookahead may have; 0: not yet chosen. Doubles after one that had as many,
                            halves after a roll back */
    uint32_t failed;         /* calls to skip after an attempt that found nothing; 0: the last attempt succeeded */
    uint32_t rest;           /* calls still to skip */
    uint64_t references;     /* made ahead */
    struct checkpoint start; /* state before its first block */
};

/* Simulates the hardware thread's next blocks ahead of the global clock, as far as its private caches answer their references. */
void sim_look_ahead(struct sim *s, struct hw_thread *hw);

/* Rolls back the blocks that come after the step of hardware thread `number` at cycle `time`. */
void lookahead_roll_back(struct sim *s, struct hw_thread *hw, uint64_t time, unsigned number);

#endif
