/* SPDX-License-Identifier: MIT */
/* All that can happen to one line in a few caches, by a search through the states of coherence.h; and protocols with a mistake. */
#ifndef TESTS_COHERENCE_EXPLORE_H
#define TESTS_COHERENCE_EXPLORE_H

#include <stdio.h>
#include <stdlib.h>

#include "coherence.h"

enum { CACHES = 3, MOST_CACHES = 4, MOST_NODES = 1 << 14, CACHE_BITS = 5, STATE_BITS = 3 };
_Static_assert(PROTOCOL_STATES == 1 << STATE_BITS && COHERENT_WORDS == CACHE_BITS - STATE_BITS, "a key holds a state");

static const struct action {
    const char *name;
    enum own_event event;
    unsigned word;
} ACTIONS[] = {
    { "reads", OWN_READ, 0 },
    { "writes word 0", OWN_WRITE, 0 },
    { "writes word 1", OWN_WRITE, 1 },
    { "evicts it", OWN_EVICT, 0 },
};
enum { KINDS = sizeof ACTIONS / sizeof *ACTIONS };

/* Which cells count for anything. */
struct used {
    bool own[PROTOCOL_STATES][OWN_BASE_EVENTS][2]; /* by snoop response: 0 alone, 1 shared */
    uint8_t snoop[BUS_BASE_OPS];                   /* a bit for each state */
    bool state[PROTOCOL_STATES];
};

struct exploration {
    const char *complaint; /* about the last node; NULL: all is well */
    unsigned nodes;
    struct used used;
    struct node {
        struct coherent s;
        unsigned from, cpu, action; /* what led here first */
    } node[MOST_NODES];
};

static inline uint32_t key_of(const struct coherent *s)
{
    uint32_t key = s->memory;

    for (unsigned i = 0; i < s->caches; i++)
        key = key << CACHE_BITS | (uint32_t)s->state[i] << COHERENT_WORDS | s->newest[i];
    return key;
}

static inline void note_use(struct used *u, unsigned state, enum own_event event, const struct coherent_did *did,
                            const struct coherent *after)
{
    for (unsigned i = 0; i < after->caches; i++)
        u->state[after->state[i]] = true;
    u->own[state][event][did->shared] = true;
    for (unsigned op = 0; op < BUS_BASE_OPS; op++)
        u->snoop[op] |= did->snooped[op];
}

/* What is wrong with what a step did, or where it led; NULL: nothing. */
static inline const char *complaint_about(const struct protocol *p, unsigned state, enum own_event event,
                                          const struct coherent_did *did, const struct coherent *after, unsigned cpu)
{
    unsigned silent = event == OWN_READ ? STATE_READABLE : event == OWN_WRITE ? STATE_WRITABLE : 0;

    if (did->torn)
        return "two caches supply different lines";
    if (event == OWN_READ && did->got != COHERENT_ALL)
        return "a read returns an old version";
    if (event == OWN_EVICT && after->state[cpu] != PROTOCOL_ABSENT)
        return "an evicted line is still there";
    if (p->flags[state] & silent && did->op != BUS_NONE)
        return "there is a transaction where none is needed";
    return coherent_complaint(p, after);
}

/* Whatever can happen next; new states become nodes. */
static inline void go_on(struct exploration *e, const struct protocol *p, unsigned at, bool *seen)
{
    for (unsigned i = 0; i < e->node[at].s.caches * KINDS && !e->complaint; i++) {
        struct coherent s = e->node[at].s;
        unsigned cpu = i / KINDS, state = s.state[cpu];
        const struct action *a = &ACTIONS[i % KINDS];
        if (a->event == OWN_EVICT && state == PROTOCOL_ABSENT)
            continue;
        struct coherent_did did = coherent_step(p, &s, cpu, a->event, a->word);
        note_use(&e->used, state, a->event, &did, &s);
        e->complaint = complaint_about(p, state, a->event, &did, &s, cpu);
        uint32_t key = key_of(&s);
        if (!e->complaint && seen[key])
            continue;
        seen[key] = true;
        e->node[e->nodes++] = (struct node){ .s = s, .from = at, .cpu = cpu, .action = i % KINDS };
    }
}

static inline void explore(struct exploration *e, const struct protocol *p, unsigned caches)
{
    static bool seen[1 << (COHERENT_WORDS + MOST_CACHES * CACHE_BITS)]; /* left as it was found */

    e->complaint = NULL;
    e->nodes = 1;
    e->used = (struct used){ .state = { true } };
    e->node[0] = (struct node){ .s = coherent_begin(caches) };
    seen[key_of(&e->node[0].s)] = true;
    for (unsigned at = 0; at < e->nodes && e->nodes + caches * KINDS <= MOST_NODES && !e->complaint; at++)
        go_on(e, p, at, seen);
    if (!e->complaint && e->nodes + caches * KINDS > MOST_NODES)
        e->complaint = "there are too many states";
    for (unsigned i = 0; i < e->nodes; i++)
        seen[key_of(&e->node[i].s)] = false;
}

static inline struct exploration *new_exploration(const struct protocol *p, unsigned caches)
{
    struct exploration *e = malloc(sizeof *e);

    if (!e)
        abort();
    explore(e, p, caches);
    return e;
}

/* The shortest way to the last node. */
static inline void print_way(const struct exploration *e, const struct protocol *p, unsigned at)
{
    const struct node *n = &e->node[at];

    if (at == 0)
        return;
    print_way(e, p, n->from);
    printf("#   %u %s:", n->cpu, ACTIONS[n->action].name);
    for (unsigned i = 0; i < n->s.caches; i++)
        printf(" %s", p->state[n->s.state[i]].name);
    printf("\n");
}

/* ---- mistakes ---- */

/* What is to be done with a protocol that has one. */
struct judge {
    void (*judge)(struct judge *j, const struct protocol *wrong);
};

/* The byte, which is in p, has all its other values, one after the other. */
static inline void vary(struct judge *j, const struct protocol *p, uint8_t *byte, unsigned values)
{
    uint8_t right = *byte;

    for (unsigned v = 0; v < values; v++)
        if (v != right) {
            *byte = (uint8_t)v;
            j->judge(j, p);
        }
    *byte = right;
}

static inline void flip(struct judge *j, const struct protocol *p, uint8_t *byte, unsigned bits)
{
    for (unsigned b = 1; b < 1u << bits; b *= 2) {
        *byte ^= (uint8_t)b;
        j->judge(j, p);
        *byte ^= (uint8_t)b;
    }
}

/* Every protocol that differs from p in one value of one cell, of those cells that are used. */
static inline void make_mistakes(struct judge *j, const struct protocol *p, const struct used *used)
{
    enum { OWN_ACTS = 1, SNOOP_ACTS = 4 };
    struct protocol wrong = *p;

    for (unsigned s = 0; s < p->states; s++) {
        for (unsigned event = 0; event < OWN_BASE_EVENTS; event++) {
            struct own_cell *c = &wrong.own[s][event];
            const bool *response = used->own[s][event];
            if (!response[0] && !response[1])
                continue;
            vary(j, &wrong, &c->op, BUS_BASE_OPS);
            vary(j, &wrong, &c->alone, response[0] ? p->states : 0);
            vary(j, &wrong, &c->shared, response[1] ? p->states : 0);
            vary(j, &wrong, &c->then, event == OWN_WRITE ? BUS_BASE_OPS : 0);
            flip(j, &wrong, &c->acts, OWN_ACTS);
        }
        for (unsigned op = 0; op < BUS_BASE_OPS; op++)
            if (used->snoop[op] >> s & 1) {
                vary(j, &wrong, &wrong.snoop[s][op].next, p->states);
                flip(j, &wrong, &wrong.snoop[s][op].acts, SNOOP_ACTS);
            }
    }
}

#endif
