/* SPDX-License-Identifier: MIT */
/* The interpreter of protocol tables: one step of one cache on one line. The simulator's memory system, the exhaustive exploration
 * of the unit tests and the check of docs/protocols.md read the tables through these functions alone.
 *
 * The interpreter owns no states. It calls the operations of struct coherence_ops, in this order, for each transaction of a step:
 * `snooped` for each other holder and, by that cache's table cell, `supply`, `flush`, `update` and `enter`; then `issue` once. A
 * write takes place (`write`) before the transaction that carries its word, and after the one that fetches its line.
 *
 * The functions are inlined, so that a caller with a constant struct coherence_ops pays for no indirect call. */
#ifndef SIM_COHERENCE_STEP_H
#define SIM_COHERENCE_STEP_H

#include <assert.h>
#include <stdbool.h>

#include "sim/coherence/protocol.h"

/* A transaction and its answer. */
struct coherence_bus {
    uint8_t op;         /* enum bus_op */
    bool shared;        /* another cache answered that it keeps a copy */
    bool writes_memory; /* memory takes the word of this update */
};

/* The caches that may hold the line. `caches` is the caller's. */
struct coherence_ops {
    uint64_t (*holders)(void *caches, unsigned cpu, unsigned op);   /* other caches that snoop `op`: a bit each */
    unsigned (*snooped)(void *caches, unsigned other, unsigned op); /* state of the line in a holder that snoops `op` */
    void (*supply)(void *caches, unsigned other);
    void (*flush)(void *caches, unsigned other);
    void (*update)(void *caches, unsigned other);
    void (*enter)(void *caches, unsigned other, unsigned state); /* the holder's state changes; ABSENT: invalidated */
    void (*issue)(void *caches, unsigned cpu, const struct coherence_bus *bus);
    void (*write)(void *caches, unsigned cpu);
};

#define COHERENCE_INLINE static inline __attribute__((always_inline))

/* The transaction that a cache in `state` issues first for an event; BUS_NONE: the event concerns this cache alone. */
static inline unsigned coherence_op(const struct protocol *p, unsigned state, enum own_event event)
{
    return p->own[state][event].op;
}

/* Whether an event in that state issues no transaction and leaves the state as it is. */
static inline bool coherence_is_hit(const struct protocol *p, unsigned state, enum own_event event)
{
    const struct own_cell *cell = &p->own[state][event];

    return state != PROTOCOL_ABSENT && cell->op == BUS_NONE && cell->alone == state;
}

/* The state after an event that issues no transaction; PROTOCOL_ABSENT: the event issues one. */
static inline unsigned coherence_silent(const struct protocol *p, unsigned state, enum own_event event)
{
    return p->own[state][event].op == BUS_NONE ? p->own[state][event].alone : PROTOCOL_ABSENT;
}

/* Whether no cache, whatever its state, acts or changes its state when it snoops this transaction. */
bool coherence_is_ignored(const struct protocol *p, unsigned op);

/* Whether a cache that may read a line still may after it has snooped this transaction, in every state. */
bool coherence_keeps_readable(const struct protocol *p, unsigned op);

COHERENCE_INLINE void coherence_snoop(const struct protocol *p, const struct coherence_ops *ops, void *caches,
                                      unsigned cpu, struct coherence_bus *bus)
{
    for (uint64_t left = ops->holders(caches, cpu, bus->op); left; left &= left - 1) {
        unsigned other = (unsigned)__builtin_ctzll(left), state = ops->snooped(caches, other, bus->op);
        const struct snoop_cell *cell = &p->snoop[state][bus->op];
        assert(state != PROTOCOL_ABSENT);
        bus->shared |= (cell->acts & SNOOP_SHARED) != 0;
        if (cell->acts & SNOOP_SUPPLY)
            ops->supply(caches, other);
        if (cell->acts & SNOOP_FLUSH)
            ops->flush(caches, other);
        if (cell->acts & SNOOP_UPDATE)
            ops->update(caches, other);
        if (cell->next != state)
            ops->enter(caches, other, cell->next);
    }
}

/* One transaction. Returns whether another cache keeps a copy. */
COHERENCE_INLINE bool coherence_transact(const struct protocol *p, const struct coherence_ops *ops, void *caches,
                                         unsigned cpu, unsigned op, unsigned acts)
{
    struct coherence_bus bus = { .op = (uint8_t)op, .writes_memory = op == BUS_UPDATE && acts & OWN_WRITES_MEMORY };

    coherence_snoop(p, ops, caches, cpu, &bus);
    ops->issue(caches, cpu, &bus);
    return bus.shared;
}

/* One event of a cache in which the line has that state. Returns the next state, which is the caller's to enter. */
COHERENCE_INLINE unsigned coherence_step(const struct protocol *p, const struct coherence_ops *ops, void *caches,
                                         unsigned cpu, unsigned state, enum own_event event)
{
    const struct own_cell *cell = &p->own[state][event];
    bool is_write = event == OWN_WRITE, shared = false;

    if (is_write && cell->op == BUS_UPDATE)
        ops->write(caches, cpu);
    if (cell->op != BUS_NONE)
        shared = coherence_transact(p, ops, caches, cpu, cell->op, cell->acts);
    if (is_write && cell->op != BUS_UPDATE)
        ops->write(caches, cpu);
    if (is_write && shared && cell->then != BUS_NONE)
        shared = coherence_transact(p, ops, caches, cpu, cell->then, cell->acts);
    return shared ? cell->shared : cell->alone;
}

#endif
