/* SPDX-License-Identifier: MIT */
/* One line of memory in a few caches whose cores speculate past a barrier, by a protocol with speculative states (sim/coherence/step.h), and
 * all that can happen to it. There is no time and no capacity. Instead of values, a bit for each word says whether a copy has the newest
 * version of those that are not speculative.
 *
 * A core is before the barrier, speculates after it, or waits there. When no core is before it, the barrier opens: what speculating cores
 * have written is final then. A core reads all words at once and writes one. */
#ifndef TESTS_SPECULATIVE_H
#define TESTS_SPECULATIVE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/coherence/step.h"

enum { SPEC_CACHES = 3, SPEC_WORDS = 2, SPEC_ALL = (1 << SPEC_WORDS) - 1, SPEC_MEMORY = -1 };
enum spec_mode { MODE_BEFORE, MODE_SPECULATES, MODE_WAITS };

struct spec_line {
    unsigned caches;
    uint8_t state[SPEC_CACHES], mode[SPEC_CACHES];
    uint8_t newest[SPEC_CACHES];  /* a bit for each word of which the copy has the newest version */
    uint8_t written[SPEC_CACHES]; /* a bit for each word that the core has written speculatively */
    bool has_read[SPEC_CACHES];   /* speculatively */
    uint8_t memory;               /* a bit for each word of which memory has the newest version */
};

/* What a step did. */
struct spec_did {
    uint8_t op;               /* enum bus_op */
    int supplier;             /* cache that supplied the line, or SPEC_MEMORY */
    unsigned flushes;         /* lines that snooping caches put into memory */
    unsigned rolled_back;     /* a bit for each core */
    uint8_t answer;           /* 0: alone, 1: shared, 2: old */
    uint8_t snooped[BUS_OPS]; /* by transaction: a bit for each state in which a cache snooped it */
    const char *complaint;    /* NULL: none */
};

struct spec_walk {
    const struct protocol *p;
    struct spec_line *s;
    struct spec_did *did;
    enum bulk_event roll_back;
    unsigned op;
    uint8_t word, line; /* word: the bit of the written word; line: the newest words of the line that is supplied */
    bool speculates;
};

static inline uint64_t spec_holders(void *caches, unsigned cpu, unsigned op)
{
    const struct spec_walk *w = caches;
    uint64_t holders = 0;

    (void)op;
    for (unsigned i = 0; i < w->s->caches; i++)
        holders |= (uint64_t)(i != cpu && w->s->state[i] != PROTOCOL_ABSENT) << i;
    return holders;
}

static inline unsigned spec_snooped(void *caches, unsigned other, unsigned op)
{
    struct spec_walk *w = caches;

    w->op = op;
    w->did->snooped[op] |= (uint8_t)(1u << w->s->state[other]);
    return w->s->state[other];
}

static inline void spec_supply(void *caches, unsigned other)
{
    struct spec_walk *w = caches;

    w->did->supplier = (int)other;
    w->line = w->s->newest[other];
}

static inline void spec_flush(void *caches, unsigned other)
{
    struct spec_walk *w = caches;

    w->did->flushes++;
    w->s->memory = w->s->newest[other];
}

static inline void spec_update(void *caches, unsigned other)
{
    (void)other;
    ((struct spec_walk *)caches)->did->complaint = "a word is sent";
}

static inline void spec_put(struct spec_line *s, unsigned cpu, unsigned state)
{
    s->state[cpu] = (uint8_t)state;
    if (state == PROTOCOL_ABSENT)
        s->newest[cpu] = 0;
}

static inline void spec_enter(void *caches, unsigned other, unsigned state)
{
    spec_put(((struct spec_walk *)caches)->s, other, state);
}

static inline void spec_issue(void *caches, unsigned cpu, const struct coherence_bus *bus)
{
    struct spec_walk *w = caches;
    unsigned op = coherence_untagged(bus->op);

    w->did->op = bus->op;
    w->did->answer = bus->old ? 2 : bus->shared;
    if (op == BUS_READ || op == BUS_READ_OWN)
        w->s->newest[cpu] = w->did->supplier == SPEC_MEMORY ? w->s->memory : w->line;
    else if (op == BUS_WRITE_BACK)
        w->s->memory = w->s->newest[cpu];
}

static inline void spec_write(void *caches, unsigned cpu)
{
    struct spec_walk *w = caches;
    struct spec_line *s = w->s;

    if (w->speculates) {
        s->written[cpu] |= w->word;
        s->newest[cpu] &= (uint8_t)~w->word;
        return;
    }
    for (unsigned i = 0; i < s->caches; i++)
        s->newest[i] &= (uint8_t)~w->word;
    s->memory &= (uint8_t)~w->word;
    s->newest[cpu] |= w->word;
}

static inline void spec_roll_back(void *caches, unsigned cpu)
{
    struct spec_walk *w = caches;

    if (w->s->mode[cpu] != MODE_SPECULATES) {
        w->did->complaint = "a core is rolled back that does not speculate";
        return;
    }
    w->did->rolled_back |= 1u << cpu;
    w->s->mode[cpu] = MODE_WAITS;
    w->s->written[cpu] = 0;
    w->s->has_read[cpu] = false;
    spec_put(w->s, cpu, w->p->bulk[w->roll_back][w->s->state[cpu]]);
}

/* What is wrong with a state, whatever led there; NULL: nothing. */
static inline const char *spec_complaint(const struct protocol *p, const struct spec_line *s)
{
    unsigned copies = 0, final = 0, exclusive = 0, owned = 0, unsafe_written = 0, owner = 0;

    for (unsigned i = 0; i < s->caches; i++) {
        unsigned state = s->state[i], flags = p->flags[state];
        bool is_unsafe = flags & STATE_UNSAFE, is_written = is_unsafe && p->bulk[BULK_ROLL_BACK_WRITTEN][state] == 0;
        bool is_expiring = flags && !is_unsafe && p->bulk[BULK_ARRIVE][state] == 0;
        copies += state != PROTOCOL_ABSENT;
        final += state != PROTOCOL_ABSENT && !is_expiring;
        exclusive += (flags | p->flags[p->bulk[BULK_CONFIRM][state]]) & STATE_WRITABLE && !is_written;
        unsafe_written += is_written;
        owned += (flags & STATE_DIRTY) != 0;
        owner = flags & STATE_DIRTY ? i : owner;
        if (is_unsafe && s->mode[i] != MODE_SPECULATES)
            return "a line is unsafe in a core that does not speculate";
        if (flags && (s->newest[i] | (is_written ? s->written[i] : 0)) != SPEC_ALL)
            return "a copy is old";
        if (s->written[i] && s->mode[i] == MODE_SPECULATES && !is_written)
            return "a speculative write is lost";
        if (s->has_read[i] && s->mode[i] == MODE_SPECULATES && !is_unsafe)
            return "a speculative read has lost its mark";
    }
    if (exclusive && copies > 1)
        return "others have a line that one may write silently";
    if (unsafe_written && final > 1)
        return "a speculatively written line has another copy that does not expire";
    if (unsafe_written && s->memory != SPEC_ALL)
        return "memory does not have a line as before its speculative write";
    if (owned > 1 || (owned ? s->newest[owner] : s->memory) != SPEC_ALL)
        return "a write is lost";
    return NULL;
}

/* A core reads, writes that word, or its cache evicts the line, which it then has. */
static inline struct spec_did spec_step(const struct protocol *p, struct spec_line *s, unsigned cpu,
                                        enum own_event event, unsigned word, enum bulk_event roll_back)
{
    static const struct coherence_ops OPS = { spec_holders, spec_snooped, spec_supply, spec_flush,    spec_update,
                                              spec_enter,   spec_issue,   spec_write,  spec_roll_back };
    struct spec_did did = { .supplier = SPEC_MEMORY };
    struct spec_walk w = { .p = p,
                           .s = s,
                           .did = &did,
                           .roll_back = roll_back,
                           .word = (uint8_t)(1u << word),
                           .speculates = event == OWN_READ_SPEC || event == OWN_WRITE_SPEC };
    unsigned next = coherence_step(p, &OPS, &w, cpu, s->state[cpu], event);
    bool is_undone = did.rolled_back >> cpu & 1;

    spec_put(s, cpu, is_undone ? PROTOCOL_ABSENT : next);
    if (did.complaint)
        return did;
    if (event == OWN_READ && s->newest[cpu] != SPEC_ALL)
        did.complaint = "a read returns an old version";
    if (event == OWN_READ_SPEC && !is_undone) {
        s->has_read[cpu] = true;
        if ((s->newest[cpu] | s->written[cpu]) != SPEC_ALL)
            did.complaint = "a speculative read returns an old version";
    }
    for (unsigned i = 0; event == OWN_WRITE && i < s->caches; i++)
        if (s->mode[i] == MODE_SPECULATES && (s->has_read[i] || s->written[i] & w.word))
            did.complaint = "a write before the barrier does not roll back an access after it";
    if (event == OWN_EVICT && s->state[cpu] != PROTOCOL_ABSENT)
        did.complaint = "an evicted line is still there";
    did.complaint = did.complaint ? did.complaint : spec_complaint(p, s);
    return did;
}

/* The core arrives at the barrier. */
static inline const char *spec_arrive(const struct protocol *p, struct spec_line *s, unsigned cpu, bool speculates)
{
    if (p->flags[s->state[cpu]] & STATE_UNSAFE)
        return "a line is unsafe at an arrival";
    spec_put(s, cpu, p->bulk[BULK_ARRIVE][s->state[cpu]]);
    s->mode[cpu] = speculates ? MODE_SPECULATES : MODE_WAITS;
    return spec_complaint(p, s);
}

/* All cores have arrived. */
static inline const char *spec_confirm(const struct protocol *p, struct spec_line *s)
{
    for (unsigned i = 0; i < s->caches; i++) {
        for (unsigned k = 0; s->written[i] && k < s->caches; k++)
            s->newest[k] &= (uint8_t)~s->written[i];
        s->memory &= (uint8_t)~s->written[i];
        if (s->state[i] != PROTOCOL_ABSENT)
            s->newest[i] |= s->written[i];
    }
    for (unsigned i = 0; i < s->caches; i++) {
        spec_put(s, i, p->bulk[BULK_CONFIRM][s->state[i]]);
        s->mode[i] = MODE_BEFORE;
        s->written[i] = 0;
        s->has_read[i] = false;
    }
    return spec_complaint(p, s);
}

/* ---- exploration ---- */

/* Which cells count for anything. */
struct spec_used {
    uint8_t own[PROTOCOL_STATES][OWN_EVENTS]; /* a bit for each answer */
    uint8_t snoop[BUS_OPS];                   /* a bit for each state */
    uint8_t bulk[BULK_EVENTS];                /* a bit for each state */
    bool state[PROTOCOL_STATES];
};

enum { SPEC_NODES = 1 << 14, SPEC_SLOTS = 1 << 16 };

struct spec_exploration {
    const char *complaint; /* NULL: all is well */
    unsigned nodes;
    struct spec_used used;
    struct spec_line node[SPEC_NODES];
    uint64_t seen[SPEC_SLOTS]; /* 1 + key; 0: free */
};

static inline uint64_t spec_key(const struct spec_line *s)
{
    uint64_t key = s->memory;

    for (unsigned i = 0; i < s->caches; i++)
        key =
            key << 10
            | (uint64_t)(s->state[i] | s->mode[i] << 3 | s->newest[i] << 5 | s->written[i] << 7 | s->has_read[i] << 9);
    return key + 1;
}

static inline void spec_add(struct spec_exploration *e, const struct spec_line *s)
{
    uint64_t key = spec_key(s), at = key * 0x9e3779b97f4a7c15 >> 48;

    for (; e->seen[at] && e->seen[at] != key; at = (at + 1) % SPEC_SLOTS) {}
    if (e->seen[at])
        return;
    if (e->nodes == SPEC_NODES) {
        e->complaint = "there are too many states";
        return;
    }
    e->seen[at] = key;
    for (unsigned i = 0; i < s->caches; i++)
        e->used.state[s->state[i]] = true;
    e->node[e->nodes++] = *s;
}

static inline void spec_go_on(struct spec_exploration *e, const struct protocol *p, const struct spec_line *from,
                              unsigned cpu, enum bulk_event roll_back)
{
    static const enum own_event EVENTS[][3] = { { OWN_READ, OWN_WRITE, OWN_EVICT },
                                                { OWN_READ_SPEC, OWN_WRITE_SPEC, OWN_EVICT } };
    unsigned mode = from->mode[cpu], state = from->state[cpu];

    for (unsigned i = 0; i < 3 && mode != MODE_WAITS && !e->complaint; i++)
        for (unsigned word = 0; word < (i == 1 ? SPEC_WORDS : 1); word++) {
            enum own_event event = EVENTS[mode == MODE_SPECULATES][i];
            struct spec_line s = *from;
            if (event == OWN_EVICT && state == PROTOCOL_ABSENT)
                continue;
            struct spec_did did = spec_step(p, &s, cpu, event, word, roll_back);
            e->used.own[state][event] |= (uint8_t)(1u << did.answer);
            for (unsigned op = 0; op < BUS_OPS; op++)
                e->used.snoop[op] |= did.snooped[op];
            for (unsigned k = 0; k < s.caches; k++)
                if (did.rolled_back >> k & 1)
                    e->used.bulk[roll_back] |= (uint8_t)(1u << from->state[k]);
            e->complaint = did.complaint;
            if (!e->complaint)
                spec_add(e, &s);
        }
    for (unsigned speculates = 0; mode == MODE_BEFORE && speculates < 2 && !e->complaint; speculates++) {
        struct spec_line s = *from;
        e->used.bulk[BULK_ARRIVE] |= (uint8_t)(1u << state);
        if (!(e->complaint = spec_arrive(p, &s, cpu, speculates)))
            spec_add(e, &s);
    }
}

static inline void spec_explore(struct spec_exploration *e, const struct protocol *p, unsigned caches,
                                enum bulk_event roll_back)
{
    struct spec_line first = { .caches = caches, .memory = SPEC_ALL };

    memset(e->seen, 0, sizeof e->seen);
    e->complaint = NULL;
    e->nodes = 0;
    e->used = (struct spec_used){ 0 };
    spec_add(e, &first);
    for (unsigned at = 0; at < e->nodes && !e->complaint; at++) {
        struct spec_line s = e->node[at];
        bool all = true;
        for (unsigned cpu = 0; cpu < caches && !e->complaint; cpu++) {
            spec_go_on(e, p, &e->node[at], cpu, roll_back);
            all &= s.mode[cpu] != MODE_BEFORE;
        }
        if (!all || e->complaint)
            continue;
        for (unsigned cpu = 0; cpu < caches; cpu++)
            e->used.bulk[BULK_CONFIRM] |= (uint8_t)(1u << s.state[cpu]);
        if (!(e->complaint = spec_confirm(p, &s)))
            spec_add(e, &s);
    }
}

/* ---- mistakes ---- */

struct spec_judge {
    void (*judge)(struct spec_judge *j, const struct protocol *wrong);
};

static inline void spec_vary(struct spec_judge *j, const struct protocol *p, uint8_t *byte, unsigned values,
                             bool is_state)
{
    uint8_t right = *byte;

    for (unsigned v = 0; v < values; v++)
        if (v != right && !(is_state && !p->state[v].name)) {
            *byte = (uint8_t)v;
            j->judge(j, p);
        }
    *byte = right;
}

static inline void spec_flip(struct spec_judge *j, const struct protocol *p, uint8_t *byte, unsigned bits)
{
    for (unsigned b = 1; b <= bits; b *= 2)
        if (bits & b) {
            *byte ^= (uint8_t)b;
            j->judge(j, p);
            *byte ^= (uint8_t)b;
        }
}

/* Every protocol that differs from p in one value of one cell, of those cells that are used. */
static inline void spec_make_mistakes(struct spec_judge *j, const struct protocol *p, const struct spec_used *used)
{
    struct protocol wrong = *p;

    for (unsigned s = 0; s < p->states; s++) {
        for (unsigned event = 0; event < OWN_EVENTS; event++) {
            struct own_cell *c = &wrong.own[s][event];
            uint8_t answers = used->own[s][event];
            if (!answers)
                continue;
            spec_vary(j, &wrong, &c->op, BUS_OPS, false);
            spec_vary(j, &wrong, &c->alone, answers & 1 ? p->states : 0, true);
            spec_vary(j, &wrong, &c->shared, answers & 2 ? p->states : 0, true);
            spec_vary(j, &wrong, &c->old, answers & 4 ? p->states : 0, true);
            if (!p->own[s][event].alone || (answers & 4 && !p->own[s][event].old)) /* else the act has no effect */
                spec_flip(j, &wrong, &c->acts, OWN_ROLLS_BACK);
        }
        for (unsigned op = 0; op < BUS_OPS; op++)
            if (used->snoop[op] >> s & 1) {
                spec_vary(j, &wrong, &wrong.snoop[s][op].next, p->states, true);
                spec_flip(j, &wrong, &wrong.snoop[s][op].acts,
                          SNOOP_SHARED | SNOOP_SUPPLY | SNOOP_FLUSH | SNOOP_OLD | SNOOP_ROLLS_BACK);
            }
        for (unsigned event = 0; event < BULK_EVENTS; event++)
            if (used->bulk[event] >> s & 1)
                spec_vary(j, &wrong, &wrong.bulk[event][s], p->states, true);
    }
}

#endif
