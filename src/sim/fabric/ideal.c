/* SPDX-License-Identifier: MIT */
/* A fabric without contention: a transaction takes the latency of its supplier. Requests and data take no time, and occupy nothing. */
#include "sim/fabric/fabric.h"

static struct fabric_time ideal_transact(struct fabric *f, const struct transaction *t, uint64_t now)
{
    (void)f;
    return (struct fabric_time){ .done = now + t->latency };
}

const struct fabric_kind fabric_ideal = { .name = "ideal",
                                          .summary = "latency only, without contention",
                                          .transact = ideal_transact };
