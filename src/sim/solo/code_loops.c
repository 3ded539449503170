/* SPDX-License-Identifier: MIT */
/* Machine code of loops: nests of trips, whose values are among the sources. Trips of a loop in which no reference comes to another line are counted together. */
#include "format/contexts.h"
#include "format/trace.h"
#include "sim/solo/code.h"

/* The slots of a loop, and whether it ends before there is something else to do. */
static bool call_loop(struct solo *s, const struct solo_item *it, const uint64_t *slots)
{
    uint64_t *to = s->src + PEET_SRC_SLOT, insns, references;

    memcpy(to, slots, it->slots * sizeof *slots);
    words_settle(it->trips, it->slots, s->words->names, it->name, to);
    if (s->until == UINT64_MAX)
        return true;
    const struct item *item = it->item;
    if (item->linear && to[item->count] >> LINEAR_TRIP_BITS == 0)
        references = item->references + to[item->count] * item->trip_references;
    else if (!loop_totals(s->trace->schema, item->loop, to + item->loop->values, &insns, &references))
        return false;
    return references < s->until - s->number;
}

static void assign(struct gen *g, const struct peet_assign *a, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned from = a[i].src == PEET_LOOP_ZERO ? PEET_SRC_ZERO : PEET_SRC_SLOT + a[i].src;
        if (a[i].dst == a[i].src && !a[i].plus && code_fits((uint64_t)a[i].add)) {
            emit_add_to(&g->e, RBX, AT(src) + 8 * (int64_t)from, (int32_t)a[i].add);
            continue;
        }
        code_load(g, RAX, from);
        if (a[i].plus) {
            code_load(g, RCX, PEET_SRC_SLOT + a[i].plus - 1u);
            emit_registers(&g->e, EMIT_ADD, RAX, RCX);
        }
        code_sum(g, RCX, RAX, (uint64_t)a[i].add);
        code_store(g, RCX, PEET_SRC_SLOT + a[i].dst);
    }
}

/* Whether trips of a loop in which nothing changes can be counted together: all references go on by parts of a line, or not at all. */
static bool goes_evenly(struct gen *g, const struct peet_loop_node *n, const struct solo_stretch *x)
{
    memset(g->step, 0, sizeof g->step);
    for (unsigned i = n->enters; i < n->assigns; i++) {
        const struct peet_assign *a = &n->assign[i];
        if (a->dst != a->src || a->plus || !code_fits((uint64_t)a->add))
            return false;
        g->step[PEET_SRC_SLOT + a->dst] += a->add;
    }
    uint64_t moving = 0, longest = 1;
    for (unsigned i = 0; i < x->groups; i++) {
        uint64_t step = (uint64_t)code_step(g, &x->group[i]), size = step >> 63 ? -step : step;
        if (size > g->s->length / 4 || !code_is_power(size))
            return false;
        moving += size > 0;
        longest = size > longest ? size : longest;
    }
    return moving <= g->s->length / longest; /* of more, some come to another line in almost every trip */
}

/* Behind a trip in which all references were easy: r9 more are, if their bases stay in their objects. Lines keep the numbers of this one: in
 * what order they were used last is the same. */
static void skip(struct gen *g, const struct peet_loop_node *n, const struct solo_stretch *x, unsigned depth,
                 size_t again)
{
    struct emit *e = &g->e;

    emit_at(e, EMIT_LOAD, RCX, RSP, 8 * (int64_t)depth);
    emit_least(e, R9, RCX);
    emit_registers(e, EMIT_OR, R9, R9);
    emit_jump_if(e, IF_EQUAL, again);
    if (g->s->watch.use) { /* a sample wants to know when lines were used last: the last trip is made */
        emit_add_constant(e, R9, -1);
        emit_jump_if(e, IF_EQUAL, again);
    }
    for (unsigned i = 0; i < x->groups; i++) {
        const struct solo_group *of = &x->group[i];
        int64_t at = (const char *)of - (const char *)x, step = code_step(g, of);
        if (of->owner != i || step == 0)
            continue;
        code_load_base(g, of);
        emit_multiply_constant(e, RDX, R9, (int32_t)step);
        emit_registers(e, EMIT_ADD, RDX, RAX);
        emit_at(e, EMIT_LEA, RDX, RDX, -step); /* the bases are those of the next trip */
        emit_at(e, EMIT_SUB, RDX, RDI, at + (int64_t)offsetof(struct solo_group, low));
        emit_at(e, EMIT_COMPARE, RDX, RDI, at + (int64_t)offsetof(struct solo_group, span));
        emit_jump_if(e, IF_NOT_BELOW, again);
    }
    emit_multiply_constant(e, RAX, R9, (int32_t)x->sites);
    emit_registers(e, EMIT_ADD, RBP, RAX);
    emit_multiply_constant(e, RAX, R9, (int32_t)x->cycles);
    emit_registers(e, EMIT_ADD, R14, RAX);
    emit_at(e, EMIT_ADD_TO, R9, RDI, STRETCH_AT(runs));
    for (unsigned i = n->enters; i < n->assigns; i++) {
        emit_multiply_constant(e, RAX, R9, (int32_t)n->assign[i].add);
        emit_at(e, EMIT_ADD_TO, RAX, RBX, AT(src) + 8 * (int64_t)(PEET_SRC_SLOT + n->assign[i].dst));
    }
    emit_at(e, EMIT_SUBTRACT_FROM, R9, RSP, 8 * (int64_t)depth);
    emit_jump_if(e, IF_NOT_EQUAL, again);
}

/* All trips of a loop whose body is a stretch: their number is on the stack. */
static void make_trips(struct gen *g, const struct peet_loop_node *n, struct solo_stretch *x, unsigned depth)
{
    struct emit *e = &g->e;

    code_enter(g, x);
    code_join(g, x);
    g->is_even = goes_evenly(g, n, x);
    size_t again = e->used;
    if (g->is_even)
        emit_constant(e, R9, UINT32_MAX);
    code_run(g, x);
    assign(g, n->assign + n->enters, (unsigned)n->assigns - n->enters);
    emit_add_to(e, RSP, 8 * (int64_t)depth, -1);
    if (g->is_even) {
        size_t done = emit_jump_if(e, IF_EQUAL, 0);
        skip(g, n, x, depth, again);
        emit_here(e, done);
    } else {
        emit_jump_if(e, IF_NOT_EQUAL, again);
    }
    g->is_even = false;
}

/* A node, and all that is in it; returns the number of the one behind it. */
static unsigned make_node(struct gen *g, const struct solo_item *it, unsigned number, unsigned depth)
{
    const struct plan_node *node = &it->plan->node[number];
    const struct peet_loop_node *n = node->node;
    struct emit *e = &g->e;

    if (node->kind == PLAN_BLOCK) {
        code_enter(g, it->node[number]);
        code_join(g, it->node[number]);
        code_run(g, it->node[number]);
        return number + 1;
    }
    if (n->counted)
        code_load(g, RDX, PEET_SRC_SLOT + it->item->loop->values + (unsigned)n->trips);
    else
        emit_constant(e, RDX, n->trips);
    assign(g, n->assign, n->enters);
    emit_registers(e, EMIT_OR, RDX, RDX);
    size_t none = emit_jump_if(e, IF_EQUAL, 0);
    emit_at(e, EMIT_STORE, RDX, RSP, 8 * (int64_t)depth);
    if (node->kind == PLAN_FLAT) {
        make_trips(g, n, it->node[number], depth);
    } else {
        size_t again = e->used;
        for (unsigned i = number + 1; i < n->end;)
            i = make_node(g, it, i, depth + 1);
        assign(g, n->assign + n->enters, (unsigned)n->assigns - n->enters);
        emit_add_to(e, RSP, 8 * (int64_t)depth, -1);
        emit_jump_if(e, IF_NOT_EQUAL, again);
    }
    emit_here(e, none);
    return n->end;
}

/* Whether code can make slots of a loop's words by itself; they are copied then, and its trips are counted. */
static bool settle(struct gen *g, const struct solo_item *it)
{
    const struct peet_trips *t = it->trips;
    struct emit *e = &g->e;

    if (!t)
        return false;
    g->in_words = true;
    code_load(g, RAX, PEET_SRC_SLOT + t->end);
    if (t->start != PEET_LOOP_ZERO) {
        code_load(g, RCX, PEET_SRC_SLOT + t->start);
        emit_registers(e, EMIT_SUB, RAX, RCX);
    }
    code_sum(g, RCX, RAX, -(uint64_t)t->add);
    emit_shift(e, RCX, false, t->shift);
    if (t->inverse != 1) {
        emit_constant(e, RAX, t->inverse);
        emit_registers(e, EMIT_MULTIPLY, RCX, RAX);
    }
    if (t->mask != UINT64_MAX) {
        emit_constant(e, RAX, t->mask);
        emit_registers(e, EMIT_AND, RCX, RAX);
    }
    code_store(g, RCX, PEET_SRC_SLOT + it->slots - 1u);
    for (unsigned i = 0; i + 1u < it->slots; i++) {
        code_load(g, RAX, PEET_SRC_SLOT + i + (i >= t->end));
        code_store(g, RAX, PEET_SRC_SLOT + i);
    }
    return true;
}

/* The same by a call, if the loop ends before there is something else to do. */
static void settle_apart(struct gen *g, const struct solo_item *it)
{
    struct emit *e = &g->e;

    emit_at(e, EMIT_STORE, RBP, RBX, AT(number));
    emit_registers(e, EMIT_LOAD, RDI, RBX);
    emit_constant(e, RSI, (uintptr_t)it);
    emit_at(e, EMIT_LEA, RDX, R12, 8);
    code_call(g, (uintptr_t)call_loop);
    emit_and_constant(e, RAX, 1);
    emit_jump_if(e, IF_EQUAL, g->s->code.leave);
}

/* Of a linear loop: leaves it to solo.c if there is something else to do before it ends. */
static void see_border(struct gen *g, const struct item *item)
{
    struct emit *e = &g->e;

    g->in_words = false;
    code_load(g, RAX, PEET_SRC_SLOT + item->count);
    emit_registers(e, EMIT_LOAD, RCX, RAX);
    emit_shift(e, RCX, false, LINEAR_TRIP_BITS);
    emit_jump_if(e, IF_NOT_EQUAL, g->s->code.leave);
    emit_multiply_constant(e, RAX, RAX, (int32_t)item->trip_references);
    emit_add_constant(e, RAX, (int32_t)item->references);
    emit_registers(e, EMIT_ADD, RAX, RBP);
    emit_at(e, EMIT_COMPARE, RAX, RBX, AT(until));
    emit_jump_if(e, IF_NOT_BELOW, g->s->code.leave);
}

void code_loop(struct gen *g, const struct solo_item *it)
{
    const struct item *item = it->item;
    bool has_border = g->s->watch.knows, is_small = item->linear && code_fits(item->references);

    if ((has_border && !is_small) || !settle(g, it))
        settle_apart(g, it);
    else if (has_border)
        see_border(g, item);
    g->in_words = false;
    for (unsigned i = 0; i < item->loop->nodes;)
        i = make_node(g, it, i, 0);
}
