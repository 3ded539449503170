/* SPDX-License-Identifier: MIT */
/* Machine code of loops: nests of iterations, whose values are among the sources. Iterations in which no reference enters another line are counted
 * together. */
#include "format/codec/item_state.h"
#include "format/file/trace.h"
#include "sim/exec/jit/code.h"

/* Writes the slots of a loop into the sources. Returns whether it ends before `until`. */
static bool call_loop(struct exec_blocks *s, const struct tb_item *it, const uint64_t *slots)
{
    uint64_t *to = s->src + PEET_SRC_SLOT, insns, references;

    memcpy(to, slots, it->slots * sizeof *slots);
    loop_words_to_slots(it->iterations, it->slots, s->sample.words->names, it->key, to);
    if (s->run.until == UINT64_MAX)
        return true;
    return loop_item_totals(s->trace->schema, it->item, to, &insns, &references)
           && references < s->run.until - s->number;
}

static void loop_code_assign(struct gen *g, const struct peet_assign *a, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned from = a[i].src == PEET_LOOP_ZERO ? PEET_SRC_ZERO : PEET_SRC_SLOT + a[i].src;
        if (a[i].dst == a[i].src && !a[i].plus && code_fits((uint64_t)a[i].add)) {
            struct code_source at = code_source(g, from);
            emit_add_to(&g->e, at.base, at.disp, (int32_t)a[i].add);
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

/* Finds the increments of sources per iteration. False: they are not constant. */
static bool find_steps(struct gen *g, const struct peet_loop_node *n)
{
    memset(g->step, 0, sizeof g->step);
    for (unsigned i = n->enters; i < n->assigns; i++) {
        const struct peet_assign *a = &n->assign[i];
        if (a->dst != a->src || a->plus || !code_fits((uint64_t)a->add))
            return false;
        g->step[PEET_SRC_SLOT + a->dst] += a->add;
    }
    return true;
}

static bool have_short_steps(const struct gen *g, const struct tblock *x)
{
    for (unsigned i = 0; i < x->groups; i++)
        if (!code_fits((uint64_t)code_step(g, &x->group[i])))
            return false;
    return true;
}

/* Whether iterations can be counted together: each reference advances by less than a line, or not at all. */
static bool goes_evenly(const struct gen *g, const struct tblock *x)
{
    uint64_t moving = 0, longest = 1;

    for (unsigned i = 0; i < x->groups; i++) {
        uint64_t step = (uint64_t)code_step(g, &x->group[i]), size = step >> 63 ? -step : step;
        if (size > g->s->cache.length / 4 || !code_is_power(size))
            return false;
        moving += size > 0;
        longest = size > longest ? size : longest;
    }
    return moving <= g->s->cache.length / longest; /* with more of them, some cross a line in almost every iteration */
}

/* Jumps to the slow path if some base leaves its bounds in one of the iterations, whose number is on the stack. */
static void check_bases(struct gen *g, struct slow_path *slow_path)
{
    const struct tblock *x = slow_path->tblock;
    struct emit *e = &g->e;

    emit_at(e, EMIT_LOAD, R8, RSP, 8 * (int64_t)slow_path->depth);
    emit_add_constant(e, R8, -1);
    for (unsigned i = 0; i < x->groups; i++) {
        const struct base_group *of = &x->group[i];
        int64_t step = code_step(g, of);
        if (of->owner != i)
            continue;
        code_load_base(g, of);
        code_compare_base(g, of);
        code_slow_path_if(g, slow_path, IF_NOT_BELOW);
        if (step == 0)
            continue;
        emit_multiply_constant(e, RCX, R8, (int32_t)step);
        emit_registers(e, EMIT_ADD, RDX, RCX);
        code_compare_span(g, of);
        code_slow_path_if(g, slow_path, IF_NOT_BELOW);
    }
}

/* Multiplies a value by the r9 iterations; returns the register of the product, rax or r9. */
static unsigned times_iterations(struct gen *g, uint64_t value)
{
    if (value == 1)
        return R9;
    emit_multiply_constant(&g->e, RAX, R9, (int32_t)value);
    return RAX;
}

/* Counts iterations together in which no reference crosses a line: if one of them had hits alone, the next r9 have, too. Lines keep the stamps of the
 * first one, so that their LRU order is the same. */
static void make_together(struct gen *g, const struct slow_path *slow_path)
{
    const struct peet_loop_node *n = slow_path->node;
    struct tblock *x = slow_path->tblock;
    const int64_t left = 8 * (int64_t)slow_path->depth;
    struct emit *e = &g->e;
    size_t used_again = e->used;

    emit_at(e, EMIT_LOAD, R9, RSP, left);
    emit_add_constant(e, R9, -1);
    g->is_fast_forward = true;
    code_refer(g, x);
    g->is_fast_forward = false;
    if (g->s->observer.use) { /* a sample wants to know when lines were used last: the last one is made alone */
        emit_with(e, WITH_COMPARE, R9, 1);
        emit_with(e, WITH_ADD_CARRY, R9, 0);
    } else {
        emit_add_constant(e, R9, 1);
    }
    emit_registers(e, EMIT_ADD, RBP, times_iterations(g, x->operands));
    emit_registers(e, EMIT_ADD, R14, times_iterations(g, x->cost.all_hit));
    emit_at(e, EMIT_ADD_TO, R9, RDI, TBLOCK_AT(runs));
    for (unsigned i = n->enters; i < n->assigns; i++) {
        struct code_source at = code_source(g, PEET_SRC_SLOT + n->assign[i].dst);
        emit_at(e, EMIT_ADD_TO, times_iterations(g, (uint64_t)n->assign[i].add), at.base, at.disp);
    }
    emit_at(e, EMIT_SUBTRACT_FROM, R9, RSP, left);
    emit_jump_if(e, IF_NOT_EQUAL, used_again);
}

static void make_one_by_one(struct gen *g, const struct slow_path *slow_path)
{
    const struct peet_loop_node *n = slow_path->node;
    size_t used_again = g->e.used;

    code_run(g, slow_path->tblock);
    loop_code_assign(g, n->assign + n->enters, (unsigned)n->assigns - n->enters);
    emit_add_to(&g->e, RSP, 8 * (int64_t)slow_path->depth, -1);
    emit_jump_if(&g->e, IF_NOT_EQUAL, used_again);
}

void code_iterations(struct gen *g, const struct slow_path *slow_path)
{
    make_one_by_one(g, slow_path);
    emit_jump(&g->e, slow_path->back);
}

/* All iterations of a loop whose body is a translated block: their number is on the stack. */
static void make_iterations(struct gen *g, const struct peet_loop_node *n, struct tblock *x, unsigned depth)
{
    code_enter(g, x);
    code_join(g, x);
    if (!find_steps(g, n) || !have_short_steps(g, x)) {
        make_one_by_one(g, &(struct slow_path){ .node = n, .tblock = x, .depth = depth });
        return;
    }
    struct slow_path *slow_path = code_slow_path(g, SLOW_PATH_ITERATIONS, x, NULL);
    slow_path->node = n;
    slow_path->depth = depth;
    check_bases(g, slow_path);
    g->is_bound = true;
    if (goes_evenly(g, x))
        make_together(g, slow_path);
    else
        make_one_by_one(g, slow_path);
    g->is_bound = false;
    slow_path->back = g->e.used;
}

static unsigned make_node(struct gen *g, const struct tb_item *it, unsigned number, unsigned depth);

static void make_body(struct gen *g, const struct tb_item *it, unsigned number, unsigned depth)
{
    const struct peet_loop_node *n = it->plan->node[number].node;

    for (unsigned i = number + 1; i < n->end;)
        i = make_node(g, it, i, depth);
    loop_code_assign(g, n->assign + n->enters, (unsigned)n->assigns - n->enters);
}

/* A node, and all nodes in it; returns the number of the next node. */
static unsigned make_node(struct gen *g, const struct tb_item *it, unsigned number, unsigned depth)
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
    if (node->kind == PLAN_LOOP && !n->counted && n->trips == 1) {
        loop_code_assign(g, n->assign, n->enters);
        make_body(g, it, number, depth);
        return n->end;
    }
    if (n->counted)
        code_load(g, RDX, PEET_SRC_SLOT + it->item->loop->values + (unsigned)n->trips);
    else
        emit_constant(e, RDX, n->trips);
    loop_code_assign(g, n->assign, n->enters);
    emit_registers(e, EMIT_OR, RDX, RDX);
    size_t none = emit_jump_if(e, IF_EQUAL, 0);
    emit_at(e, EMIT_STORE, RDX, RSP, 8 * (int64_t)depth);
    if (node->kind == PLAN_FLAT) {
        make_iterations(g, n, it->node[number], depth);
    } else {
        size_t used_again = e->used;
        make_body(g, it, number, depth + 1);
        emit_add_to(e, RSP, 8 * (int64_t)depth, -1);
        emit_jump_if(e, IF_NOT_EQUAL, used_again);
    }
    emit_here(e, none);
    return n->end;
}

/* Reads the slots of a loop from its event words, and computes the slot with the number of iterations. False: that is not possible. */
static bool loop_count_in_words(struct gen *g, const struct tb_item *it)
{
    const struct peet_trips *t = it->iterations;
    struct emit *e = &g->e;

    if (!t)
        return false;
    emit_at(e, EMIT_LOAD, RAX, R12, 8 * (1 + (int64_t)t->end));
    if (t->start != PEET_LOOP_ZERO)
        emit_at(e, EMIT_SUB, RAX, R12, 8 * (1 + (int64_t)t->start));
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
    g->in_words = true;
    g->end = t->end;
    g->count = it->slots - 1u;
    code_store(g, RCX, PEET_SRC_SLOT + g->count);
    return true;
}

/* Writes the slots of a loop by call_loop; leaves the code if the loop may reach the border. */
static void loop_slots_by_call(struct gen *g, const struct tb_item *it)
{
    struct emit *e = &g->e;

    emit_at(e, EMIT_STORE, RBP, RBX, AT(number));
    emit_registers(e, EMIT_LOAD, RDI, RBX);
    emit_constant(e, RSI, (uintptr_t)it);
    emit_at(e, EMIT_LEA, RDX, R12, 8);
    code_call(g, (uintptr_t)call_loop);
    emit_and_constant(e, RAX, 1);
    emit_jump_if(e, IF_EQUAL, g->s->code.routine.leave);
}

/* Of a linear loop: leaves the code if `until` is reached before its end. */
static void loop_check_border(struct gen *g, const struct item *item)
{
    struct emit *e = &g->e;

    code_load(g, RAX, PEET_SRC_SLOT + item->count);
    emit_registers(e, EMIT_LOAD, RCX, RAX);
    emit_shift(e, RCX, false, LINEAR_TRIP_BITS);
    emit_jump_if(e, IF_NOT_EQUAL, g->s->code.routine.leave);
    emit_multiply_constant(e, RAX, RAX, (int32_t)item->trip_references);
    emit_add_constant(e, RAX, (int32_t)item->references);
    emit_registers(e, EMIT_ADD, RAX, RBP);
    emit_at(e, EMIT_COMPARE, RAX, RBX, AT(run.until));
    emit_jump_if(e, IF_NOT_BELOW, g->s->code.routine.leave);
}

void code_loop(struct gen *g, const struct tb_item *it)
{
    const struct item *item = it->item;
    bool has_border = g->s->observer.classify, is_small = item->linear && code_fits(item->references);

    g->in_words = false;
    if ((has_border && !is_small) || !loop_count_in_words(g, it))
        loop_slots_by_call(g, it);
    else if (has_border)
        loop_check_border(g, item);
    for (unsigned i = 0; i < item->loop->nodes;)
        i = make_node(g, it, i, 0);
}
