/* SPDX-License-Identifier: MIT */
/* Records executed with store buffers: references and fences in the order of their instructions. docs/design/orders.md, "Time". */
#ifndef SIM_ENGINE_ORDERED_H
#define SIM_ENGINE_ORDERED_H

#include "sim/engine/simulation.h"

/* An instruction of a block that orders memory. */
struct ordering_insn {
    uint32_t insn;  /* its number in the schema */
    uint16_t flags; /* PEET_FL_ATOMIC, … */
};

/* Finds those of a block. */
void ordered_find_insns(struct sim *s, const struct peet_block *b, struct block_info *f);

/* Blocks and their references, from the next record on, until another hardware thread has the least local time. */
void ordered_execute(struct sim *s, struct hw_thread *hw, struct sim_thread *t, uint64_t limit);

/* A reference, of library code if it has no instruction. */
void ordered_refer(struct sim *s, struct hw_thread *hw, const struct peet_record *r, uint16_t flags);

/* Before an event of the thread, and after the end of its stream (NULL): executes the block's last fences, and empties the store buffer if the
 * event synchronizes. */
void ordered_event(struct sim *s, struct hw_thread *hw, struct sim_thread *t, const struct peet_event *e);

#endif
