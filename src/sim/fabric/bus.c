/* SPDX-License-Identifier: MIT */
/* An atomic bus. A transaction occupies it from its grant to its end: for its request (`address` bus cycles), until its supplier answers,
 * and for its data (`width` bytes in each bus cycle). Other transactions wait until its end, and are served in the order in which they were
 * issued, even if that is not the order of their times. A write-back is over when its data are on the bus.
 *
 * Leaves out: arbitration, which takes no time; bus cycles as a grid, for a transaction begins in any processor cycle. */
#include "sim/fabric/kind.h"

/* The only resource is the bus. */
struct fabric_state {
    uint64_t free_at; /* cycle in which the last transaction ends */
};

static size_t bus_state_size(const struct fabric_config *c)
{
    (void)c;
    return sizeof(struct fabric_state);
}

static struct fabric_time bus_transact(struct fabric *f, const struct transaction *t, uint64_t now)
{
    uint64_t *free_at = &f->state->free_at, grant = now > *free_at ? now : *free_at;
    uint64_t done = grant + fabric_address_cycles(&f->config) + t->latency + fabric_data_cycles(f, t->bytes);

    fabric_use_add(&f->use, grant, done);
    *free_at = done;
    return (struct fabric_time){ .done = done, .waited = grant - now };
}

const struct fabric_kind fabric_bus = { .name = "bus",
                                        .summary = "an atomic bus: one transaction at a time",
                                        .state_size = bus_state_size,
                                        .transact = bus_transact };
