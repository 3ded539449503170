/* SPDX-License-Identifier: MIT */
/* One line of memory in a few caches that step through a protocol (sim/coherence/step.h): the states of the caches, and which of
 * them has the newest version of which word. There is no time, no capacity and no data, so that all steps can be explored.
 *
 * A core reads all words of the line at once and writes one. If several caches supply the line, the one with the highest number
 * counts. */
#ifndef TESTS_COHERENCE_H
#define TESTS_COHERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/coherence/step.h"

enum { COHERENT_CACHES = 8, COHERENT_WORDS = 2, COHERENT_ALL = (1 << COHERENT_WORDS) - 1, COHERENT_MEMORY = -1 };

struct coherent {
    unsigned caches;
    uint8_t state[COHERENT_CACHES];
    uint8_t newest[COHERENT_CACHES]; /* per cache, a bit for each word of which it has the newest version */
    uint8_t memory;                  /* a bit for each word of which memory has the newest version */
};

/* What a step did. */
struct coherent_did {
    uint8_t op, then;              /* enum bus_op: its transactions */
    bool shared;                   /* a cache answered the last transaction that it keeps a copy */
    int supplier;                  /* cache that supplied the line, or COHERENT_MEMORY */
    bool torn;                     /* several caches supplied it, in different versions */
    uint8_t got;                   /* a bit for each word of which the core sees the newest version */
    uint32_t invalidated;          /* a bit for each cache that lost the line */
    uint32_t updated;              /* a bit for each cache that took the word */
    uint8_t flushes;               /* lines that other caches put into memory */
    uint8_t snooped[BUS_BASE_OPS]; /* by transaction: a bit for each state in which a cache snooped it */
};

/* A step while it is taken. */
struct coherent_walk {
    struct coherent *s;
    struct coherent_did *did;
    unsigned cpu, op;
    uint8_t word, line; /* word: the bit of the written word; line: the newest words of the line that is supplied */
};

/* At first the line is in memory only. */
static inline struct coherent coherent_begin(unsigned caches)
{
    return (struct coherent){ .caches = caches, .memory = COHERENT_ALL };
}

static inline uint64_t coherent_holders(void *caches, unsigned cpu, unsigned op)
{
    const struct coherent_walk *w = caches;
    uint64_t holders = 0;

    (void)op;
    for (unsigned i = 0; i < w->s->caches; i++)
        holders |= (uint64_t)(i != cpu && w->s->state[i] != PROTOCOL_ABSENT) << i;
    return holders;
}

static inline unsigned coherent_snooped(void *caches, unsigned other, unsigned op)
{
    struct coherent_walk *w = caches;

    w->op = op;
    w->did->snooped[op] |= (uint8_t)(1u << w->s->state[other]);
    return w->s->state[other];
}

static inline bool coherent_is_fetch(unsigned op)
{
    return op == BUS_READ || op == BUS_READ_OWN;
}

static inline void coherent_supply(void *caches, unsigned other)
{
    struct coherent_walk *w = caches;

    if (!coherent_is_fetch(w->op))
        return;
    w->did->torn |= w->did->supplier != COHERENT_MEMORY && w->line != w->s->newest[other];
    w->did->supplier = (int)other;
    w->line = w->s->newest[other];
}

static inline void coherent_flush(void *caches, unsigned other)
{
    struct coherent_walk *w = caches;

    w->did->flushes++;
    w->s->memory = w->s->newest[other];
}

static inline void coherent_update(void *caches, unsigned other)
{
    struct coherent_walk *w = caches;

    if (w->op != BUS_UPDATE)
        return;
    w->did->updated |= 1u << other;
    w->s->newest[other] = (uint8_t)((w->s->newest[other] & ~w->word) | (w->s->newest[w->cpu] & w->word));
}

static inline void coherent_enter(void *caches, unsigned other, unsigned state)
{
    struct coherent_walk *w = caches;

    w->s->state[other] = (uint8_t)state;
    if (state != PROTOCOL_ABSENT)
        return;
    w->did->invalidated |= 1u << other;
    w->s->newest[other] = 0;
}

static inline void coherent_issue(void *caches, unsigned cpu, const struct coherence_bus *bus)
{
    struct coherent_walk *w = caches;
    struct coherent *s = w->s;

    if (w->did->op == BUS_NONE)
        w->did->op = bus->op;
    else
        w->did->then = bus->op;
    w->did->shared = bus->shared;
    if (coherent_is_fetch(bus->op))
        s->newest[cpu] = w->line;
    else if (bus->op == BUS_WRITE_BACK)
        s->memory = s->newest[cpu];
    else if (bus->writes_memory)
        s->memory = (uint8_t)((s->memory & ~w->word) | (s->newest[cpu] & w->word));
    w->line = s->memory;
}

static inline void coherent_write(void *caches, unsigned cpu)
{
    struct coherent_walk *w = caches;

    for (unsigned i = 0; i < w->s->caches; i++)
        w->s->newest[i] &= (uint8_t)~w->word;
    w->s->memory &= (uint8_t)~w->word;
    w->line &= (uint8_t)~w->word;
    w->s->newest[cpu] |= w->word;
}

/* No core speculates. */
static inline void coherent_roll_back(void *caches, unsigned cpu)
{
    (void)caches, (void)cpu;
    assert(false);
}

/* A core reads, writes that word, or its cache evicts the line, which it then has. */
static inline struct coherent_did coherent_step(const struct protocol *p, struct coherent *s, unsigned cpu,
                                                enum own_event event, unsigned word)
{
    static const struct coherence_ops OPS = { coherent_holders, coherent_snooped, coherent_supply,
                                              coherent_flush,   coherent_update,  coherent_enter,
                                              coherent_issue,   coherent_write,   coherent_roll_back };
    struct coherent_did did = { .supplier = COHERENT_MEMORY };
    struct coherent_walk w = { s, &did, cpu, BUS_NONE, (uint8_t)(1u << word), s->memory };
    unsigned next = coherence_step(p, &OPS, &w, cpu, s->state[cpu], event);

    did.got = s->newest[cpu];
    s->state[cpu] = (uint8_t)next;
    if (next == PROTOCOL_ABSENT)
        s->newest[cpu] = 0;
    return did;
}

/* What is wrong with a state, whatever led there; NULL: nothing. */
static inline const char *coherent_complaint(const struct protocol *p, const struct coherent *s)
{
    unsigned copies = 0, writable = 0, dirty = 0, owner = 0;

    for (unsigned i = 0; i < s->caches; i++) {
        copies += s->state[i] != PROTOCOL_ABSENT;
        writable += (p->flags[s->state[i]] & STATE_WRITABLE) != 0;
        dirty += (p->flags[s->state[i]] & STATE_DIRTY) != 0;
        owner = p->flags[s->state[i]] & STATE_DIRTY ? i : owner;
    }
    if (writable && copies > 1)
        return "others have a line that one may write silently";
    if (dirty > 1)
        return "two caches would write the line back";
    if ((dirty ? s->newest[owner] : s->memory) != COHERENT_ALL)
        return "a write is lost";
    for (unsigned i = 0; i < s->caches; i++)
        if (s->state[i] != PROTOCOL_ABSENT && s->newest[i] != COHERENT_ALL)
            return dirty ? "a copy is not as its owner's" : "a clean copy is not as in memory";
    return NULL;
}

#endif
