/* SPDX-License-Identifier: MIT */
/* An atomic bus. A transaction has it from its grant to its end: for its request (`address` bus cycles), until its supplier answers,
 * and for its data (`width` bytes in each bus cycle). All others wait meanwhile, and are served in the order in which they were
 * issued; who was issued late for its time waits, too. A write-back is over when its data are on the bus.
 *
 * Leaves out: arbitration, which takes no time; bus cycles as a grid, for a transaction begins in any processor cycle. */
#include "sim/fabric/kind.h"

struct fabric_state {
    uint64_t free_at;
};

static size_t state_size(const struct fabric_config *c)
{
    (void)c;
    return sizeof(struct fabric_state);
}

static struct fabric_time transact(struct fabric *f, const struct transaction *t, uint64_t now)
{
    uint64_t *free_at = &f->state->free_at, grant = now > *free_at ? now : *free_at;
    uint64_t done = grant + fabric_address_cycles(&f->config) + t->latency + fabric_data_cycles(f, t->bytes);

    fabric_use_add(&f->use, grant, done);
    *free_at = done;
    return (struct fabric_time){ .done = done, .waited = grant - now };
}

const struct fabric_kind fabric_bus = {
    .name = "bus", .summary = "an atomic bus: one transaction at a time", .state_size = state_size, .transact = transact
};
