/* SPDX-License-Identifier: MIT */
/* What a hardware thread and its thread have done so far, so that they can be set back to it. Caches are not part of it: they have an undo log.
 * Threads of event words, and scheduling, are not part of it either. docs/design/engine.md. */
#ifndef SIM_ENGINE_CHECKPOINT_H
#define SIM_ENGINE_CHECKPOINT_H

#include <string.h>

#include "sim/engine/thread.h"

/* Saves the state of a hardware thread that has a thread. */
static inline void checkpoint_take(struct checkpoint *c, const struct hw_thread *hw)
{
    const struct sim_thread *t = hw->thread;
    const struct l1_filter *f = hw->filter;

    *c = (struct checkpoint){ .at = t->at,
                              .loop_record = t->loop.record,
                              .loop_iteration = t->loop.iteration,
                              .misses_next = t->loop.misses_next,
                              .filled = t->loop.filled,
                              .changes = t->loop.changes,
                              .clock = hw->clock,
                              .compute = hw->account.time[TIME_compute],
                              .stall = hw->account.time[TIME_stall],
                              .instructions = hw->account.instructions };
    memcpy(c->hits, f->hits, sizeof c->hits);
    memcpy(c->silent_upgrades, f->silent_upgrades, sizeof c->silent_upgrades);
    memcpy(c->l2_hits, f->l2_hits, sizeof c->l2_hits);
}

/* Sets a hardware thread back to the state that was saved; it has the same thread, whose batch is the same. The thread may be in another loop
 * than before: loop_refresh. */
static inline void checkpoint_restore(const struct checkpoint *c, struct hw_thread *hw)
{
    struct sim_thread *t = hw->thread;
    struct l1_filter *f = hw->filter;

    t->at = c->at;
    t->loop.record = c->loop_record;
    t->loop.iteration = c->loop_iteration;
    t->loop.misses_next = c->misses_next;
    t->loop.filled = c->filled;
    t->loop.changes = c->changes;
    hw->clock = c->clock;
    hw->account.time[TIME_compute] = c->compute;
    hw->account.time[TIME_stall] = c->stall;
    hw->account.instructions = c->instructions;
    memcpy(f->hits, c->hits, sizeof c->hits);
    memcpy(f->silent_upgrades, c->silent_upgrades, sizeof c->silent_upgrades);
    memcpy(f->l2_hits, c->l2_hits, sizeof c->l2_hits);
}

#endif
