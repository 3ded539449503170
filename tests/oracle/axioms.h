/* SPDX-License-Identifier: MIT */
/* Outcomes of a litmus test by axioms: every choice of which store each load reads (rf) and of an order of the stores to each
 * location (co) is an execution. It counts if it is coherent, keeps atomics atomic, and the model's order has no cycle. Slow, and without
 * code of src/sim/order and src/litmus but for the data of a test. At most 64 events. */
#ifndef TESTS_AXIOMS_H
#define TESTS_AXIOMS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "litmus/litmus.h"

enum { AXIOMS_EVENTS = 64, AXIOMS_NONE = -1 };
enum axioms_model { AXIOMS_SC, AXIOMS_TSO, AXIOMS_PSO, AXIOMS_RMO, AXIOMS_RCSC, AXIOMS_RCPC, AXIOMS_MODELS };

struct axioms_event {
    bool is_read, is_write, is_fence, is_initial;
    bool acquires, releases;
    enum order_fence fence;
    int thread, location;
    int partner; /* of an atomic: its other half */
    const struct litmus_instruction *instruction;
    uint64_t needs; /* reads that a write's value needs */
};

/* A relation: bit b of row a says that a is before b. */
struct axioms_relation {
    uint64_t row[AXIOMS_EVENTS];
};

/* What happens at one location: an order of its writes, and what each of its reads reads. */
struct axioms_history {
    uint8_t order[AXIOMS_EVENTS], source[AXIOMS_EVENTS]; /* source: by read */
    uint32_t writes;
};

struct axioms {
    const struct litmus_test *t;
    struct axioms_event event[AXIOMS_EVENTS];
    int events;
    struct axioms_relation po; /* within threads, transitive */
    struct axioms_history *history[LITMUS_MAX_LOCATIONS];
    size_t histories[LITMUS_MAX_LOCATIONS];
    enum axioms_model model;
    const struct axioms_history *chosen[LITMUS_MAX_LOCATIONS];
    int32_t *outcome; /* distinct ones after axioms_run, sorted */
    size_t outcomes, room;
};

static inline bool axioms_before(const struct axioms_relation *r, int a, int b)
{
    return r->row[a] >> b & 1;
}

static inline void axioms_relate(struct axioms_relation *r, int a, int b)
{
    r->row[a] |= UINT64_C(1) << b;
}

/* Takes away events without a successor until none is left, or only cycles are. */
static inline bool axioms_acyclic(const struct axioms_relation *r, int events)
{
    uint64_t left = events == 64 ? UINT64_MAX : (UINT64_C(1) << events) - 1;

    for (bool changed = true; changed && left;) {
        changed = false;
        for (uint64_t i = left; i; i &= i - 1) {
            int a = __builtin_ctzll(i);
            if (!(r->row[a] & left)) {
                left &= ~(UINT64_C(1) << a);
                changed = true;
            }
        }
    }
    return !left;
}

static inline int axioms_event(struct axioms *x, struct axioms_event e)
{
    assert(x->events < AXIOMS_EVENTS);
    for (int i = 0; i < x->events; i++)
        if (!e.is_initial && x->event[i].thread == e.thread)
            axioms_relate(&x->po, i, x->events);
    x->event[x->events] = e;
    return x->events++;
}

static inline void axioms_instruction(struct axioms *x, int thread, const struct litmus_instruction *i, int *read_of)
{
    struct axioms_event e = {
        .thread = thread, .location = (int)i->location, .partner = AXIOMS_NONE, .instruction = i
    };
    uint64_t needs = 0;

    if (i->kind == LITMUS_FENCE) {
        e.is_fence = true;
        e.fence = i->fence;
        e.location = AXIOMS_NONE;
        axioms_event(x, e);
    }
    if (i->kind == LITMUS_FENCE || i->kind == LITMUS_REGISTER)
        return;
    if (i->kind != LITMUS_LOAD && i->value.is_loaded)
        needs |= UINT64_C(1) << read_of[i->value.load];
    if (i->kind == LITMUS_ATOMIC && i->atomic == LITMUS_ATOMIC_cmpxchg && i->other.is_loaded)
        needs |= UINT64_C(1) << read_of[i->other.load];
    int read = AXIOMS_NONE;
    if (i->kind != LITMUS_STORE) {
        e.is_read = true;
        e.acquires = i->flags & ORDER_ACQUIRE;
        read = read_of[i->load] = axioms_event(x, e);
    }
    if (i->kind == LITMUS_LOAD)
        return;
    if (i->kind == LITMUS_ATOMIC && i->atomic != LITMUS_ATOMIC_xchg)
        needs |= UINT64_C(1) << read;
    e.is_read = e.acquires = false;
    e.is_write = true;
    e.releases = i->flags & ORDER_RELEASE;
    e.needs = needs;
    e.partner = read;
    int write = axioms_event(x, e);
    if (read != AXIOMS_NONE)
        x->event[read].partner = write;
}

/* ---- histories: coherence and atomicity ---- */

/* Adds rf, co and fr of a history; only_external leaves out what a thread reads from itself. */
static inline void axioms_add_history(const struct axioms *x, const struct axioms_history *h, int location,
                                      bool only_external, struct axioms_relation *r)
{
    uint32_t place[AXIOMS_EVENTS] = { 0 };

    for (uint32_t i = 0; i < h->writes; i++) {
        place[h->order[i]] = i;
        for (uint32_t j = i + 1; j < h->writes; j++)
            axioms_relate(r, h->order[i], h->order[j]);
    }
    for (int e = 0; e < x->events; e++) {
        if (!x->event[e].is_read || x->event[e].location != location)
            continue;
        int w = h->source[e];
        if (w == 0xff)
            continue; /* not decided yet */
        if (!only_external || x->event[w].thread != x->event[e].thread)
            axioms_relate(r, w, e);
        for (uint32_t j = place[w] + 1; j < h->writes; j++)
            axioms_relate(r, e, h->order[j]);
    }
}

static inline bool axioms_is_coherent(const struct axioms *x, const struct axioms_history *h, int location)
{
    struct axioms_relation r = { { 0 } };

    for (int a = 0; a < x->events; a++)
        for (int b = 0; b < x->events; b++)
            if (x->event[a].location == location && x->event[b].location == location && axioms_before(&x->po, a, b))
                axioms_relate(&r, a, b);
    axioms_add_history(x, h, location, false, &r);
    for (int e = 0; e < x->events; e++) {
        const struct axioms_event *v = &x->event[e];
        if (!v->is_write || v->location != location || v->partner == AXIOMS_NONE || h->source[v->partner] == 0xff)
            continue;
        for (uint32_t i = 1; i < h->writes; i++) /* the write comes right after what its read reads */
            if (h->order[i] == e && h->order[i - 1] != h->source[v->partner])
                return false;
        if (h->order[0] == e)
            return false;
    }
    return axioms_acyclic(&r, x->events);
}

/* Decides what the reads from event e on read. */
static inline void axioms_sources(struct axioms *x, struct axioms_history *h, int location, int e)
{
    while (e < x->events && (!x->event[e].is_read || x->event[e].location != location))
        e++;
    if (!axioms_is_coherent(x, h, location))
        return;
    if (e == x->events) {
        size_t n = x->histories[location]++;
        if (!(n & (n - 1)))
            x->history[location] = realloc(x->history[location], (n ? 2 * n : 1) * sizeof *h);
        assert(x->history[location]);
        x->history[location][n] = *h;
        return;
    }
    for (uint32_t i = 0; i < h->writes; i++) {
        h->source[e] = h->order[i];
        axioms_sources(x, h, location, e + 1);
    }
    h->source[e] = 0xff;
}

/* Decides which write comes next. */
static inline void axioms_orders(struct axioms *x, struct axioms_history *h, int location, uint64_t left)
{
    if (!left) {
        memset(h->source, 0xff, sizeof h->source);
        axioms_sources(x, h, location, 0);
        return;
    }
    for (uint64_t i = left; i; i &= i - 1) {
        int w = __builtin_ctzll(i);
        bool is_first = true;
        for (uint64_t j = left; j; j &= j - 1)
            is_first &= !axioms_before(&x->po, __builtin_ctzll(j), w);
        if (!is_first)
            continue;
        h->order[h->writes++] = (uint8_t)w;
        axioms_orders(x, h, location, left & ~(UINT64_C(1) << w));
        h->writes--;
    }
}

static inline void axioms_init(struct axioms *x, const struct litmus_test *t)
{
    *x = (struct axioms){ .t = t };
    for (uint32_t i = 0; i < t->locations; i++)
        axioms_event(x, (struct axioms_event){ .is_write = true,
                                               .is_initial = true,
                                               .thread = AXIOMS_NONE,
                                               .location = (int)i,
                                               .partner = AXIOMS_NONE });
    for (uint32_t u = 0; u < t->threads; u++) {
        int read_of[LITMUS_MAX_ACCESSES] = { 0 };
        for (uint32_t i = 0; i < t->thread[u].instructions; i++)
            axioms_instruction(x, (int)u, &t->thread[u].instruction[i], read_of);
    }
    for (uint32_t l = 0; l < t->locations; l++) {
        struct axioms_history h = { .order = { (uint8_t)l }, .writes = 1 };
        uint64_t left = 0;
        for (int e = 0; e < x->events; e++)
            left |= x->event[e].is_write && !x->event[e].is_initial && x->event[e].location == (int)l ? UINT64_C(1) << e
                                                                                                      : 0;
        axioms_orders(x, &h, (int)l, left);
    }
}

static inline void axioms_release(struct axioms *x)
{
    for (uint32_t l = 0; l < x->t->locations; l++)
        free(x->history[l]);
    free(x->outcome);
}

/* ---- models ---- */

/* Whether a model keeps an event of a thread before a later one of it, other than by what lies between them. */
static inline bool axioms_keeps(const struct axioms *x, int a, int b)
{
    const struct axioms_event *p = &x->event[a], *q = &x->event[b];
    bool has_atomic = p->partner != AXIOMS_NONE || q->partner != AXIOMS_NONE;

    if (p->is_fence || q->is_fence)
        return false;
    switch (x->model) {
    case AXIOMS_SC: return true;
    case AXIOMS_TSO: return p->is_read || q->is_write || has_atomic;
    case AXIOMS_PSO: return p->is_read;
    case AXIOMS_RMO: return false;
    case AXIOMS_RCSC: return p->acquires || q->releases || (p->releases && q->acquires);
    case AXIOMS_RCPC: return p->acquires || q->releases;
    case AXIOMS_MODELS: break;
    }
    return false;
}

static inline bool axioms_fenced(const struct axioms *x, int a, int b)
{
    for (int f = 0; f < x->events; f++)
        if (x->event[f].is_fence && axioms_before(&x->po, a, f) && axioms_before(&x->po, f, b)) {
            enum order_fence fence = x->event[f].fence;
            if (fence == ORDER_FENCE_FULL
                || (fence == ORDER_FENCE_STORES && x->event[a].is_write && x->event[b].is_write)
                || (fence == ORDER_FENCE_LOADS && x->event[a].is_read && x->event[b].is_read))
                return true;
        }
    return false;
}

/* The order within threads. A write comes after the reads that its value needs. */
static inline void axioms_program_order(const struct axioms *x, struct axioms_relation *r)
{
    for (int a = 0; a < x->events; a++)
        for (int b = 0; b < x->events; b++) {
            bool needs = x->event[b].needs >> a & 1;
            if (axioms_before(&x->po, a, b) && (needs || axioms_keeps(x, a, b) || axioms_fenced(x, a, b)))
                axioms_relate(r, a, b);
        }
}

/* ---- outcomes ---- */

static inline int32_t axioms_written(const struct axioms *x, int e);

static inline int32_t axioms_read(const struct axioms *x, int e)
{
    return axioms_written(x, x->chosen[x->event[e].location]->source[e]);
}

/* What the load of that number in a thread reads. */
static inline int32_t axioms_loaded(const struct axioms *x, int thread, uint32_t load)
{
    for (int e = 0; e < x->events; e++)
        if (x->event[e].is_read && x->event[e].thread == thread && x->event[e].instruction->load == load)
            return axioms_read(x, e);
    return 0;
}

static inline int32_t axioms_operand(const struct axioms *x, int thread, const struct litmus_operand *o)
{
    return o->is_loaded ? axioms_loaded(x, thread, o->load) : o->constant;
}

static inline int32_t axioms_written(const struct axioms *x, int e)
{
    const struct axioms_event *v = &x->event[e];
    const struct litmus_instruction *i = v->instruction;

    if (v->is_initial)
        return x->t->location[v->location].initial;
    uint32_t value = (uint32_t)axioms_operand(x, v->thread, &i->value);
    if (i->kind != LITMUS_ATOMIC || i->atomic == LITMUS_ATOMIC_xchg)
        return (int32_t)value;
    uint32_t old = (uint32_t)axioms_read(x, v->partner);
    if (i->atomic == LITMUS_ATOMIC_cmpxchg)
        return (int32_t)(old == (uint32_t)axioms_operand(x, v->thread, &i->other) ? value : old);
    return (int32_t)(i->atomic == LITMUS_ATOMIC_add   ? old + value
                     : i->atomic == LITMUS_ATOMIC_sub ? old - value
                     : i->atomic == LITMUS_ATOMIC_and ? (old & value)
                     : i->atomic == LITMUS_ATOMIC_or  ? (old | value)
                     : i->atomic == LITMUS_ATOMIC_xor ? (old ^ value)
                     : i->atomic == LITMUS_ATOMIC_not ? ~old
                                                      : -old);
}

static inline int axioms_compare(const void *a, const void *b, void *n)
{
    const int32_t *p = a, *q = b;

    for (uint32_t i = 0; i < *(uint32_t *)n; i++)
        if (p[i] != q[i])
            return p[i] < q[i] ? -1 : 1;
    return 0;
}

/* Sorts the outcomes and removes those that occur twice. */
static inline void axioms_distinct(struct axioms *x)
{
    uint32_t n = x->t->observables;
    size_t kept = 0;

    qsort_r(x->outcome, x->outcomes, n * sizeof *x->outcome, axioms_compare, &n);
    for (size_t i = 0; i < x->outcomes; i++)
        if (!kept || axioms_compare(x->outcome + (kept - 1) * n, x->outcome + i * n, &n))
            memmove(x->outcome + kept++ * n, x->outcome + i * n, n * sizeof *x->outcome);
    x->outcomes = kept;
}

static inline void axioms_outcome(struct axioms *x)
{
    const struct litmus_test *t = x->t;

    if (x->outcomes == x->room) {
        axioms_distinct(x);
        if (2 * x->outcomes >= x->room)
            x->room = x->room ? 2 * x->room : 1024;
        x->outcome = realloc(x->outcome, x->room * t->observables * sizeof *x->outcome);
        assert(x->outcome);
    }
    int32_t *outcome = x->outcome + x->outcomes++ * t->observables;
    for (uint32_t i = 0; i < t->observables; i++) {
        const struct litmus_observed *o = &t->observed[i];
        const struct axioms_history *h = o->is_register ? NULL : x->chosen[o->index];
        outcome[i] = o->is_register ? axioms_operand(x, (int)o->thread, &t->thread[o->thread].reg[o->index].value)
                                    : axioms_written(x, h->order[h->writes - 1]);
    }
}

/* Chooses a history for the location and those after it; r: the model's order as far as it is decided. */
static inline void axioms_choose(struct axioms *x, uint32_t location, const struct axioms_relation *r)
{
    if (location == x->t->locations) {
        axioms_outcome(x);
        return;
    }
    for (size_t i = 0; i < x->histories[location]; i++) {
        const struct axioms_history *h = &x->history[location][i];
        struct axioms_relation with = *r;
        axioms_add_history(x, h, (int)location, x->model != AXIOMS_SC, &with);
        for (int e = 0; e < x->events; e++) /* a read of a write's value needs what that value needs */
            if (x->event[e].is_read && x->event[e].location == (int)location)
                for (uint64_t needs = x->event[h->source[e]].needs; needs; needs &= needs - 1)
                    axioms_relate(&with, __builtin_ctzll(needs), e);
        x->chosen[location] = h;
        if (axioms_acyclic(&with, x->events))
            axioms_choose(x, location + 1, &with);
    }
}

/* All outcomes under a model. */
static inline void axioms_run(struct axioms *x, enum axioms_model model)
{
    struct axioms_relation r = { { 0 } };

    x->model = model;
    x->outcomes = 0;
    axioms_program_order(x, &r);
    axioms_choose(x, 0, &r);
    if (x->outcomes)
        axioms_distinct(x);
}

#endif
