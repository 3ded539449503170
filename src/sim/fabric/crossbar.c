/* SPDX-License-Identifier: MIT */
/* A crossbar. Each processor has a port, and each bank of memory; line n is in bank n modulo `banks`. A message connects two ports
 * and has both of them, at the same time, for `port` cycles and its data. Requests go to the bank of the line. An answer from
 * memory goes from there to who asked; one from another cache goes from port to port of the two processors. Connections of different
 * ports do not hinder each other. Between request and answer ports are free for others, and a message takes the first time at which
 * both of its ports are free for long enough. Write-backs, updates and invalidations are over when the bank has them.
 *
 * Assumes that a bank knows who has its lines. Leaves out: how it tells them (supplier and those who lose the line), for which no
 * port is occupied; and how long a bank is busy by itself, for its accesses overlap. */
#include <assert.h>

#include "sim/fabric/kind.h"

struct fabric_state {
    size_t first_bank;
    struct calendar port[]; /* of processors, then of banks */
};

static size_t state_size(const struct fabric_config *c)
{
    return sizeof(struct fabric_state) + ((size_t)c->cpus + c->banks) * sizeof(struct calendar);
}

static void init(struct fabric *f)
{
    uint32_t cpus = f->config.cpus, banks = f->config.banks;

    assert(banks > 0);
    f->state->first_bank = cpus;
    /* A connection has one port of a processor and one of a bank, or two of processors: so many at a time. */
    f->use.parallel = cpus < banks ? cpus : (cpus + banks) / 2;
}

/* A message between two ports; its time goes on to its end. */
static void connect(struct fabric *f, size_t a, size_t b, uint32_t bytes, struct fabric_time *time)
{
    struct calendar *one = &f->state->port[a], *other = &f->state->port[b];
    uint64_t length = f->config.port + fabric_data_cycles(f, bytes);
    uint64_t at = time->done, before;

    do { /* what one has free the other may not have */
        before = at;
        at = calendar_find(other, calendar_find(one, at, length), length);
    } while (at != before);
    calendar_take(one, at, length);
    calendar_take(other, at, length);
    fabric_use_add(&f->use, at, at + length);
    time->waited += at - time->done;
    time->done = at + length;
}

static struct fabric_time transact(struct fabric *f, const struct transaction *t, uint64_t now)
{
    size_t bank = f->state->first_bank + (size_t)(t->line % f->config.banks);
    struct fabric_time time = { .done = now };

    connect(f, t->cpu, bank, fabric_is_answered(t) ? 0 : t->bytes, &time);
    time.done += t->latency;
    if (fabric_is_answered(t))
        connect(f, t->supplier == FABRIC_MEMORY ? bank : (size_t)t->supplier, t->cpu, t->bytes, &time);
    return time;
}

const struct fabric_kind fabric_crossbar = { .name = "crossbar",
                                             .summary = "a port for each processor and each bank of memory",
                                             .state_size = state_size,
                                             .init = init,
                                             .transact = transact };
