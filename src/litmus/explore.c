/* SPDX-License-Identifier: MIT */
/* The operational explorer. Each thread's buffer has all of its accesses from the beginning, so that a load can be delayed, too; a
 * step lets one of them perform. A state is: which accesses are pending, what the locations hold, and what those loads read
 * whose values are still needed. Every state is visited once. Where an access meets none of what other threads have yet to
 * do, it performs at once, and its alternatives are left out: it commutes with all of them. */
#include "litmus/explore.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "litmus/state_set.h"

enum { EXPLORE_BYTES = 4, EXPLORE_STRIDE = 8 }; /* of a location: its size, the distance of addresses */

/* A load or store in the buffer of a thread; an atomic that is no fence is two of them. */
struct explore_access {
    const struct litmus_instruction *instruction;
    uint32_t number;   /* index of the instruction in its thread */
    uint8_t access;    /* ORDER_LOAD, ORDER_STORE or ORDER_ATOMIC */
    uint32_t location; /* index in litmus_test.location */
};

/* A thread of the test: all its accesses are issued at once, and perform in any order that the buffer allows. */
struct explore_thread {
    struct order_buffer buffer;
    struct explore_access access[ORDER_SLOTS]; /* by slot of the buffer */
    uint64_t touches[LITMUS_MAX_LOCATIONS];    /* by location: a bit for each slot with an access to it */
    uint64_t writes[LITMUS_MAX_LOCATIONS];     /* likewise, of stores */
    uint32_t word, shift;                    /* word and first bit of a state at which the thread's pending slots are */
    uint64_t all;                            /* a bit for each slot in use */
    uint32_t value[LITMUS_MAX_ACCESSES];     /* by load: index of its value in a state; NO_VALUE: it is not needed */
    uint64_t needed_by[LITMUS_MAX_ACCESSES]; /* by load: a bit for each slot that uses it; all: the outcome, too */
};

/* A depth-first search of all states of a test. */
struct explorer {
    const struct litmus_test *t;
    struct explore_thread *thread;
    uint32_t pending_words, words; /* 64-bit words of a state: for pending slots; all */
    uint64_t most_states;          /* 0: no limit */
    struct state_set visited, outcomes;
    uint64_t *frame;             /* a state for each depth */
    struct litmus_step *path;    /* a step for each depth */
    uint64_t *outcome;           /* of a final state: an int32_t for each observed */
    struct litmus_step *witness; /* an execution to be shown; valid if has_witness */
    uint32_t witness_steps;
    bool has_witness;
    int error; /* 0, or a code of peet_err */
};

enum { NO_VALUE = UINT32_MAX };

static int32_t *explore_values(const struct explorer *e, uint64_t *state)
{
    return (int32_t *)(void *)(state + e->pending_words);
}

static uint64_t explore_pending(const struct explore_thread *h, const uint64_t *state)
{
    return state[h->word] >> h->shift & h->all;
}

static int32_t explore_operand(const struct explore_thread *h, const struct litmus_operand *o, const int32_t *value)
{
    return o->is_loaded ? value[h->value[o->load]] : o->constant;
}

/* What a store writes; `old` is what an atomic has read. */
static int32_t explore_stored(const struct explore_thread *h, const struct litmus_instruction *i, int32_t old,
                              const int32_t *value)
{
    int32_t v = explore_operand(h, &i->value, value);

    if (i->kind != LITMUS_ATOMIC)
        return v;
    return litmus_atomic_result(i->atomic, old, v,
                                i->atomic == LITMUS_ATOMIC_cmpxchg ? explore_operand(h, &i->other, value) : 0);
}

/* What an atomic's load has read, if its store needs it. */
static int32_t explore_old(const struct explore_thread *h, const struct litmus_instruction *i, const int32_t *value)
{
    return i->kind == LITMUS_ATOMIC && h->value[i->load] != NO_VALUE ? value[h->value[i->load]] : 0;
}

/* What a load reads now; *forwarded: from a store of its thread that is pending. */
static int32_t explore_read(const struct explore_thread *h, int slot, const int32_t *value, bool *forwarded)
{
    int source = order_source(&h->buffer, h->buffer.sources[slot]);

    *forwarded = source != ORDER_NONE;
    if (source == ORDER_NONE)
        return value[h->access[slot].location];
    const struct litmus_instruction *i = h->access[source].instruction;
    return explore_stored(h, i, explore_old(h, i, value), value);
}

/* Whether another thread's atomic keeps this access from memory. */
static bool explore_is_reserved(const struct explorer *e, uint32_t thread, uint32_t location)
{
    for (uint32_t u = 0; u < e->t->threads; u++)
        if (u != thread && order_reserves(&e->thread[u].buffer, (uint64_t)location * EXPLORE_STRIDE, EXPLORE_BYTES))
            return true;
    return false;
}

/* Lets an access perform on a state, and describes the step. False: it cannot, for an atomic of another thread is between its load
 * and its store. */
static bool explore_perform(const struct explorer *e, uint32_t thread, int slot, uint64_t *state,
                            struct litmus_step *step)
{
    struct explore_thread *h = &e->thread[thread];
    const struct explore_access *a = &h->access[slot];
    const struct litmus_instruction *i = a->instruction;
    int32_t *value = explore_values(e, state);
    uint64_t bit = UINT64_C(1) << slot;
    bool is_half = i->kind == LITMUS_ATOMIC && a->access == ORDER_LOAD;

    *step = (struct litmus_step){ .thread = thread, .instruction = a->number, .access = a->access };
    if (a->access & ORDER_LOAD)
        step->read = explore_read(h, slot, value, &step->forwarded);
    if ((a->access & ORDER_STORE || (is_half && !step->forwarded)) && explore_is_reserved(e, thread, a->location))
        return false;
    if (a->access & ORDER_STORE) {
        step->wrote = explore_stored(h, i, a->access & ORDER_LOAD ? step->read : explore_old(h, i, value), value);
        value[a->location] = step->wrote;
    }
    if (a->access & ORDER_LOAD && h->value[i->load] != NO_VALUE)
        value[h->value[i->load]] = step->read;
    state[h->word] &= ~(bit << h->shift);
    uint64_t pending = h->buffer.pending & ~bit;
    for (uint32_t n = 0; n < e->t->thread[thread].loads; n++)
        if (h->value[n] != NO_VALUE && h->needed_by[n] & bit && !(h->needed_by[n] & pending) && ~h->needed_by[n])
            value[h->value[n]] = 0;
    return true;
}

/* Whether no other thread has yet to do something that an access does not commute with. */
static bool explore_is_alone(const struct explorer *e, uint32_t thread, const struct explore_access *a)
{
    for (uint32_t u = 0; u < e->t->threads; u++) {
        const struct explore_thread *h = &e->thread[u];
        if (u != thread && h->buffer.pending & (a->access & ORDER_STORE ? h->touches : h->writes)[a->location])
            return false;
    }
    return true;
}

static void explore_outcome(struct explorer *e, uint32_t depth, uint64_t *state)
{
    const struct litmus_test *t = e->t;
    const int32_t *value = explore_values(e, state);
    int32_t *outcome = (int32_t *)(void *)e->outcome;

    for (uint32_t i = 0; i < t->observables; i++) {
        const struct litmus_observed *o = &t->observed[i];
        outcome[i] = o->is_register
                         ? explore_operand(&e->thread[o->thread], &t->thread[o->thread].reg[o->index].value, value)
                         : value[o->index];
    }
    if (t->filter && !litmus_satisfies(t->filter, outcome))
        return;
    if (state_set_add(&e->outcomes, e->outcome) < 0)
        e->error = PEET_ERR_MEMORY;
    if (!e->has_witness && litmus_satisfies(t->condition, outcome) == (t->quantifier != LITMUS_FORALL)) {
        e->has_witness = true;
        e->witness_steps = depth;
        memcpy(e->witness, e->path, depth * sizeof *e->path);
    }
}

/* The buffers as they are in a state; whether something is pending. */
static bool explore_enter(const struct explorer *e, const uint64_t *state)
{
    uint64_t any = 0;

    for (uint32_t u = 0; u < e->t->threads; u++)
        any |= e->thread[u].buffer.pending = explore_pending(&e->thread[u], state);
    return any != 0;
}

static void explore_visit(struct explorer *e, uint32_t depth);

/* Visits the state after a step of the one at depth. */
static void explore_step(struct explorer *e, uint32_t depth, uint32_t thread, int slot)
{
    uint64_t *from = e->frame + (size_t)depth * e->words, *to = from + e->words;

    memcpy(to, from, e->words * sizeof *to);
    if (explore_perform(e, thread, slot, to, &e->path[depth])) {
        explore_visit(e, depth + 1);
        explore_enter(e, from);
    }
}

/* The slots of a thread that may perform. */
static uint64_t explore_ready(const struct order_buffer *b)
{
    uint64_t ready = 0;

    for (uint64_t left = b->pending; left; left &= left - 1)
        ready |= order_may_perform(b, __builtin_ctzll(left)) ? left & -left : 0;
    return ready;
}

static void explore_visit(struct explorer *e, uint32_t depth)
{
    uint64_t *state = e->frame + (size_t)depth * e->words;
    uint32_t threads = e->t->threads, first = depth ? e->path[depth - 1].thread : 0;
    uint64_t ready[LITMUS_MAX_THREADS];

    if (e->error)
        return;
    int is_new = state_set_add(&e->visited, state);
    if (is_new < 0 || (e->most_states && e->visited.count > e->most_states))
        e->error = is_new < 0 ? PEET_ERR_MEMORY : PEET_ERR_LIMIT;
    if (is_new <= 0)
        return;
    if (!explore_enter(e, state)) {
        explore_outcome(e, depth, state);
        return;
    }
    for (uint32_t u = 0; u < threads; u++) {
        ready[u] = explore_ready(&e->thread[u].buffer);
        for (uint64_t left = ready[u]; left; left &= left - 1) {
            int slot = __builtin_ctzll(left);
            if (explore_is_alone(e, u, &e->thread[u].access[slot])) {
                explore_step(e, depth, u, slot);
                return;
            }
        }
    }
    for (uint32_t k = 0; k < threads; k++) {
        uint32_t u = (first + k) % threads;
        for (uint64_t left = ready[u]; left; left &= left - 1)
            explore_step(e, depth, u, __builtin_ctzll(left));
    }
}

/* ---- preparation ---- */

/* Puts an instruction's accesses into its thread's buffer; slot_of: the slots of the thread's loads so far. */
static void explore_issue(struct explore_thread *h, const struct litmus_instruction *i, uint32_t number,
                          uint64_t *slot_of)
{
    struct order_op op = { .address = (uint64_t)i->location * EXPLORE_STRIDE,
                           .size = EXPLORE_BYTES,
                           .flags = (uint8_t)i->flags };
    struct explore_access a = { .instruction = i, .number = number, .location = i->location };
    struct order_buffer *b = &h->buffer;

    if (i->kind == LITMUS_FENCE)
        order_fence(b, i->fence);
    if (i->kind == LITMUS_FENCE || i->kind == LITMUS_REGISTER)
        return;
    op.access = i->kind == LITMUS_LOAD ? ORDER_LOAD : i->kind == LITMUS_STORE ? ORDER_STORE : ORDER_ATOMIC;
    if (i->kind != LITMUS_STORE)
        slot_of[i->load] = UINT64_C(1) << b->next;
    if (i->kind != LITMUS_LOAD && i->value.is_loaded)
        op.needs |= slot_of[i->value.load];
    if (i->kind == LITMUS_ATOMIC && i->other.is_loaded)
        op.needs |= slot_of[i->other.load];
    if (i->kind == LITMUS_ATOMIC && i->atomic != LITMUS_ATOMIC_xchg)
        op.needs |= slot_of[i->load];
    uint64_t before = b->pending;
    order_issue(b, &op);
    for (uint64_t left = b->pending & ~before; left; left &= left - 1) {
        int slot = __builtin_ctzll(left);
        a.access = b->op[slot].access;
        h->access[slot] = a;
        h->touches[a.location] |= left & -left;
        h->writes[a.location] |= a.access & ORDER_STORE ? left & -left : 0;
        for (uint32_t n = 0; a.access & ORDER_STORE && n < LITMUS_MAX_ACCESSES; n++)
            h->needed_by[n] |= slot_of[n] && op.needs & slot_of[n] ? left & -left : 0;
    }
}

static void explore_prepare_thread(struct explorer *e, uint32_t thread, const struct order_model *order)
{
    const struct litmus_test *t = e->t;
    const struct litmus_thread *from = &t->thread[thread];
    struct explore_thread *h = &e->thread[thread];
    uint64_t slot_of[LITMUS_MAX_ACCESSES] = { 0 };

    order_init(&h->buffer, order, NULL);
    for (uint32_t i = 0; i < from->instructions; i++)
        explore_issue(h, &from->instruction[i], i, slot_of);
    h->all = h->buffer.pending;
    for (uint32_t i = 0; i < t->observables; i++) {
        const struct litmus_observed *o = &t->observed[i];
        if (o->is_register && o->thread == thread && from->reg[o->index].value.is_loaded)
            h->needed_by[from->reg[o->index].value.load] = UINT64_MAX;
    }
}

/* Gives each thread its bits and each needed value its number in a state. Returns the number of all accesses. */
static uint32_t explore_lay_out(struct explorer *e)
{
    uint32_t bits = 0, slots = 0, values = e->t->locations;

    for (uint32_t u = 0; u < e->t->threads; u++) {
        struct explore_thread *h = &e->thread[u];
        uint32_t n = (uint32_t)__builtin_popcountll(h->all);
        if (bits % 64 + n > 64)
            bits += 64 - bits % 64;
        h->word = n ? bits / 64 : 0;
        h->shift = n ? bits % 64 : 0;
        bits += n;
        slots += n;
        for (uint32_t i = 0; i < LITMUS_MAX_ACCESSES; i++)
            h->value[i] = h->needed_by[i] ? values++ : NO_VALUE;
    }
    e->pending_words = (bits + 63) / 64 + (bits == 0);
    e->words = e->pending_words + (values + 1) / 2;
    return slots;
}

static int explore_prepare(struct explorer *e, const struct order_model *order)
{
    const struct litmus_test *t = e->t;

    e->thread = calloc(t->threads + 1, sizeof *e->thread);
    if (!e->thread)
        return PEET_ERR_MEMORY;
    for (uint32_t u = 0; u < t->threads; u++)
        explore_prepare_thread(e, u, order);
    uint32_t slots = explore_lay_out(e);
    e->visited.words = e->words;
    e->outcomes.words = t->observables / 2 + 1;
    e->frame = calloc((size_t)(slots + 1) * e->words, sizeof *e->frame);
    e->path = calloc(slots + 1, sizeof *e->path);
    e->witness = calloc(slots + 1, sizeof *e->witness);
    e->outcome = calloc(e->outcomes.words, sizeof *e->outcome);
    if (!e->frame || !e->path || !e->witness || !e->outcome)
        return PEET_ERR_MEMORY;
    for (uint32_t u = 0; u < t->threads; u++)
        e->frame[e->thread[u].word] |= e->thread[u].all << e->thread[u].shift;
    for (uint32_t i = 0; i < t->locations; i++)
        explore_values(e, e->frame)[i] = t->location[i].initial;
    return 0;
}

/* ---- the result ---- */

static int explore_compare(const void *a, const void *b, void *observables)
{
    const int32_t *x = a, *y = b;

    for (uint32_t i = 0; i < *(const uint32_t *)observables; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static void explore_result(struct explorer *e, struct litmus_outcomes *ret)
{
    uint32_t n = e->t->observables;
    size_t count = e->outcomes.count;
    int32_t *value = mem_alloc(count * n + 1, sizeof *value);

    *ret = (struct litmus_outcomes){ .value = value, .count = count, .states = e->visited.count };
    for (size_t i = 0; i < count; i++) {
        memcpy(value + i * n, e->outcomes.state + i * e->outcomes.words, n * sizeof *value);
        ret->matching += litmus_satisfies(e->t->condition, value + i * n);
    }
    if (n)
        qsort_r(value, count, n * sizeof *value, explore_compare, &n);
    if (e->has_witness) {
        ret->step = e->witness;
        ret->steps = e->witness_steps;
        e->witness = NULL;
    }
}

int litmus_explore(const struct litmus_test *t, const struct explore_config *config, struct litmus_outcomes *ret,
                   struct peet_err *err)
{
    struct explorer e = { .t = t, .most_states = config->most_states };

    e.error = explore_prepare(&e, config->order);
    explore_visit(&e, 0);
    if (!e.error)
        explore_result(&e, ret);
    free(e.thread);
    free(e.frame);
    free(e.path);
    free(e.outcome);
    free(e.witness);
    state_set_release(&e.visited);
    state_set_release(&e.outcomes);
    if (e.error == PEET_ERR_LIMIT)
        return err_set(err, e.error, "%s: more than %llu states under %s", t->name,
                       (unsigned long long)config->most_states, config->order->name);
    return e.error ? err_set(err, e.error, "%s: no memory for its states under %s", t->name, config->order->name) : 0;
}

void litmus_outcomes_release(struct litmus_outcomes *o)
{
    free(o->value);
    free(o->step);
    *o = (struct litmus_outcomes){ 0 };
}

bool litmus_holds(const struct litmus_test *t, const struct litmus_outcomes *o)
{
    return t->quantifier == LITMUS_EXISTS   ? o->matching > 0
           : t->quantifier == LITMUS_FORALL ? o->matching == o->count
                                            : !o->matching;
}
