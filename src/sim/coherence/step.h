/* SPDX-License-Identifier: MIT */
/* The interpreter of protocol tables: one step of one cache on one line. The simulator's memory system, the exhaustive exploration
 * of the unit tests and the check of docs/protocols.md read the tables through these functions alone.
 *
 * The interpreter owns no states. It calls the operations of struct coherence_ops, in this order, for each transaction of a step:
 * `snooped` for each other holder and, by that cache's table cell, `supply`, `flush`, `update`, `enter` and `roll_back`; then `issue`
 * once. A write takes place (`write`) before the transaction that carries its word, and after the one that fetches its line.
 * A step that rolls its own core back ends with `roll_back`.
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
    bool old;           /* another cache answered SNOOP_OLD */
    bool writes_memory; /* memory takes the word of this update */
};

/* The caches that may hold the line. `caches` is the caller's. */
struct coherence_ops {
    uint64_t (*holders)(void *caches, unsigned cpu, unsigned op);   /* other caches that snoop `op`: a bit each */
    unsigned (*snooped)(void *caches, unsigned other, unsigned op); /* state of the line in a holder that snoops `op` */
    void (*supply)(void *caches, unsigned other);                   /* the holder supplies the line */
    void (*flush)(void *caches, unsigned other);                    /* memory takes the line from the holder */
    void (*update)(void *caches, unsigned other);                   /* the holder takes the word of an update */
    void (*enter)(void *caches, unsigned other, unsigned state); /* the holder's state changes; ABSENT: invalidated */
    void (*issue)(void *caches, unsigned cpu, const struct coherence_bus *bus); /* the transaction takes place */
    void (*write)(void *caches, unsigned cpu);                                  /* the core writes its copy */
    void (*roll_back)(void *caches, unsigned cpu); /* the speculation of a core has failed */
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

    return state != PROTOCOL_ABSENT && cell->op == BUS_NONE && cell->alone == state && !cell->acts;
}

/* The state after an event that issues no transaction; PROTOCOL_ABSENT: the event issues one, or rolls its core back. */
static inline unsigned coherence_silent(const struct protocol *p, unsigned state, enum own_event event)
{
    return p->own[state][event].op == BUS_NONE ? p->own[state][event].alone : PROTOCOL_ABSENT;
}

/* The event of a core that speculates, or does not. */
static inline enum own_event coherence_event(bool is_write, bool is_speculative)
{
    return (is_speculative ? OWN_READ_SPEC : OWN_READ) + (enum own_event)is_write;
}

/* A transaction without the tag of a speculative write: what caches move for it. */
static inline unsigned coherence_untagged(unsigned op)
{
    return op == BUS_READ_OWN_SPEC ? BUS_READ_OWN : op == BUS_INVALIDATE_SPEC ? BUS_INVALIDATE : op;
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
        bus->old |= (cell->acts & SNOOP_OLD) != 0;
        if (cell->acts & SNOOP_SUPPLY)
            ops->supply(caches, other);
        if (cell->acts & SNOOP_FLUSH)
            ops->flush(caches, other);
        if (cell->acts & SNOOP_UPDATE)
            ops->update(caches, other);
        if (cell->next != state)
            ops->enter(caches, other, cell->next);
        if (cell->acts & SNOOP_ROLLS_BACK)
            ops->roll_back(caches, other);
    }
}

/* One transaction. Returns it, with the answers of other caches. */
COHERENCE_INLINE struct coherence_bus coherence_transact(const struct protocol *p, const struct coherence_ops *ops,
                                                         void *caches, unsigned cpu, unsigned op, unsigned acts)
{
    struct coherence_bus bus = { .op = (uint8_t)op, .writes_memory = op == BUS_UPDATE && acts & OWN_WRITES_MEMORY };

    coherence_snoop(p, ops, caches, cpu, &bus);
    ops->issue(caches, cpu, &bus);
    return bus;
}

/* One event of a cache in which the line has that state. Returns the next state, which is the caller's to enter. */
COHERENCE_INLINE unsigned coherence_step(const struct protocol *p, const struct coherence_ops *ops, void *caches,
                                         unsigned cpu, unsigned state, enum own_event event)
{
    const struct own_cell *cell = &p->own[state][event];
    bool is_write = event == OWN_WRITE || event == OWN_WRITE_SPEC;
    struct coherence_bus bus = { 0 };

    if (is_write && cell->op == BUS_UPDATE)
        ops->write(caches, cpu);
    if (cell->op != BUS_NONE)
        bus = coherence_transact(p, ops, caches, cpu, cell->op, cell->acts);
    if (is_write && cell->op != BUS_UPDATE)
        ops->write(caches, cpu);
    if (is_write && bus.shared && cell->then != BUS_NONE)
        bus = coherence_transact(p, ops, caches, cpu, cell->then, cell->acts);
    unsigned next = bus.old ? cell->old : bus.shared ? cell->shared : cell->alone;
    if (cell->acts & OWN_ROLLS_BACK && next == PROTOCOL_ABSENT)
        ops->roll_back(caches, cpu);
    return next;
}

#endif
