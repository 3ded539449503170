/* SPDX-License-Identifier: MIT */
/* One line of memory in a few caches, coherent as sim/coherence/protocol.h says it: states, and who has the newest version of which
 * word. There is no time, no capacity and no data, so that all that can happen can be explored, and a simulator compared.
 *
 * A processor reads all words of the line at once and writes one. A write takes place behind the transaction that brings the line,
 * and before the one that tells others of the word. If several caches give the line, the one with the highest number counts. */
#ifndef TESTS_COHERENCE_H
#define TESTS_COHERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/coherence/protocol.h"

enum { COHERENT_CACHES = 8, COHERENT_WORDS = 2, COHERENT_ALL = (1 << COHERENT_WORDS) - 1, COHERENT_MEMORY = -1 };

struct coherent {
    unsigned caches;
    uint8_t state[COHERENT_CACHES];
    uint8_t newest[COHERENT_CACHES]; /* a bit for each word of which it has the newest version */
    uint8_t memory;                  /* the same, of memory */
};

/* What a step did. */
struct coherent_did {
    uint8_t op, then;      /* enum bus_op: its transactions */
    bool shared;           /* what the last one heard */
    int supplier;          /* cache that gave the line, or COHERENT_MEMORY */
    bool torn;             /* several gave it, and not the same */
    uint8_t got;           /* a bit for each word of which the processor has the newest version in its hands */
    uint32_t lost;         /* a bit for each cache whose line was taken away */
    uint32_t updated;      /*   and for each that took the word */
    uint8_t flushes;       /* lines that others put into memory on the way */
    uint8_t seen[BUS_OPS]; /* a bit for each state in which others saw such a transaction */
};

/* At first the line is in memory only. */
static inline struct coherent coherent_begin(unsigned caches)
{
    return (struct coherent){ .caches = caches, .memory = COHERENT_ALL };
}

static inline void coherent_write(struct coherent *s, unsigned cpu, unsigned word)
{
    uint8_t bit = (uint8_t)(1u << word), others = (uint8_t)~bit;

    for (unsigned i = 0; i < s->caches; i++)
        s->newest[i] &= others;
    s->memory &= others;
    s->newest[cpu] |= bit;
}

/* All others see a transaction; then whoever it brings something has it. */
static inline void coherent_transact(const struct protocol *p, struct coherent *s, unsigned cpu, unsigned op,
                                     unsigned word, bool writes_memory, struct coherent_did *did)
{
    uint8_t line = s->memory, bit = (uint8_t)(1u << word), others = (uint8_t)~bit, sent = s->newest[cpu] & bit;
    bool fetches = op == BUS_READ || op == BUS_READ_OWN;

    did->shared = false;
    for (unsigned i = 0; i < s->caches; i++) {
        const struct snoop_cell *cell = &p->snoop[s->state[i]][op];
        if (i == cpu || s->state[i] == PROTOCOL_ABSENT)
            continue;
        did->seen[op] |= (uint8_t)(1u << s->state[i]);
        did->shared |= (cell->acts & SNOOP_SHARED) != 0;
        if (fetches && cell->acts & SNOOP_SUPPLY) {
            did->torn |= did->supplier != COHERENT_MEMORY && line != s->newest[i];
            did->supplier = (int)i;
            line = s->newest[i];
        }
        if (cell->acts & SNOOP_FLUSH) {
            did->flushes++;
            s->memory = s->newest[i];
        }
        if (op == BUS_UPDATE && cell->acts & SNOOP_UPDATE) {
            did->updated |= 1u << i;
            s->newest[i] = (s->newest[i] & others) | sent;
        }
        s->state[i] = cell->next;
        if (cell->next == PROTOCOL_ABSENT) {
            did->lost |= 1u << i;
            s->newest[i] = 0;
        }
    }
    if (fetches)
        s->newest[cpu] = line;
    else if (op == BUS_WRITE_BACK)
        s->memory = s->newest[cpu];
    else if (op == BUS_UPDATE && writes_memory)
        s->memory = (s->memory & others) | sent;
}

/* A processor reads, writes that word, or its cache pushes the line out, which it then has. */
static inline struct coherent_did coherent_step(const struct protocol *p, struct coherent *s, unsigned cpu,
                                                enum own_event event, unsigned word)
{
    const struct own_cell *cell = &p->own[s->state[cpu]][event];
    struct coherent_did did = { .op = cell->op, .supplier = COHERENT_MEMORY };
    bool to_memory = cell->acts & OWN_WRITES_MEMORY, is_write = event == OWN_WRITE;

    if (is_write && cell->op == BUS_UPDATE)
        coherent_write(s, cpu, word);
    if (cell->op != BUS_NONE)
        coherent_transact(p, s, cpu, cell->op, word, to_memory, &did);
    if (is_write && cell->op != BUS_UPDATE)
        coherent_write(s, cpu, word);
    if (is_write && did.shared && cell->then != BUS_NONE) {
        did.then = cell->then;
        coherent_transact(p, s, cpu, cell->then, word, to_memory, &did);
    }
    did.got = s->newest[cpu];
    s->state[cpu] = did.shared ? cell->shared : cell->alone;
    if (s->state[cpu] == PROTOCOL_ABSENT)
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
