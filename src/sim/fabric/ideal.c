/* SPDX-License-Identifier: MIT */
/* Whoever answers is reached at once, and everybody at the same time: a transaction takes as long as its supplier, and no more.
 * Nothing is occupied, so nobody waits; requests and data take no time, however long they are. */
#include "sim/fabric/fabric.h"

static struct fabric_time transact(struct fabric *f, const struct transaction *t, uint64_t now)
{
    (void)f;
    return (struct fabric_time){ .done = now + t->latency };
}

const struct fabric_kind fabric_ideal = { .name = "ideal",
                                          .summary = "latency only: nobody waits for anybody",
                                          .transact = transact };
