/* SPDX-License-Identifier: MIT */
/* A crossbar. Each core has a port, and each bank of memory; line n is in bank n modulo `banks`. A message connects two ports and occupies both,
 * at the same time, for `port` cycles and its data. Requests go to the bank of the line. Memory answers from the bank's port, another cache
 * from the port of its core. Connections of different ports are independent. Between request and answer the ports are free for other
 * messages: a message takes the first time at which both of its ports are free for long enough. Write-backs, updates and invalidations are
 * over when the bank has them.
 *
 * Assumes that a bank has a directory of its lines. Leaves out: messages from the bank to supplier and sharers, which occupy no port; and the
 * time of a bank's accesses, which overlap. */
#include <assert.h>

#include "sim/fabric/kind.h"

/* Ports of cores and banks. */
struct fabric_state {
    size_t first_bank;      /* index of its port */
    struct calendar port[]; /* of cores, then of banks */
};

static size_t crossbar_state_size(const struct fabric_config *c)
{
    return sizeof(struct fabric_state) + ((size_t)c->cpus + c->banks) * sizeof(struct calendar);
}

static void crossbar_init(struct fabric *f)
{
    uint32_t cpus = f->config.cpus, banks = f->config.banks;

    assert(banks > 0);
    f->state->first_bank = cpus;
    /* A connection has one port of a core and one of a bank, or two of cores: the greatest number at a time. */
    f->use.parallel = cpus < banks ? cpus : (cpus + banks) / 2;
}

/* A message between two ports; advances *time to its end. */
static void crossbar_send(struct fabric *f, size_t a, size_t b, uint32_t bytes, struct fabric_time *time)
{
    struct calendar *one = &f->state->port[a], *other = &f->state->port[b];
    uint64_t length = f->config.port + fabric_data_cycles(f, bytes);
    uint64_t at = time->done, before;

    do { /* a time at which one port is free may be taken at the other */
        before = at;
        at = calendar_find(other, calendar_find(one, at, length), length);
    } while (at != before);
    calendar_take(one, at, length);
    calendar_take(other, at, length);
    fabric_use_add(&f->use, at, at + length);
    time->waited += at - time->done;
    time->done = at + length;
}

static struct fabric_time crossbar_transact(struct fabric *f, const struct transaction *t, uint64_t now)
{
    size_t bank = f->state->first_bank + (size_t)(t->line % f->config.banks);
    struct fabric_time time = { .done = now };

    crossbar_send(f, t->cpu, bank, fabric_is_answered(t) ? 0 : t->bytes, &time);
    time.done += t->latency;
    if (fabric_is_answered(t))
        crossbar_send(f, t->supplier == FABRIC_MEMORY ? bank : (size_t)t->supplier, t->cpu, t->bytes, &time);
    return time;
}

const struct fabric_kind fabric_crossbar = { .name = "crossbar",
                                             .summary = "a port for each processor and each bank of memory",
                                             .state_size = crossbar_state_size,
                                             .init = crossbar_init,
                                             .transact = crossbar_transact };
