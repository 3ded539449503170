/* SPDX-License-Identifier: MIT */
/* Plans: summarised loops prepared once, and then expanded as fast as blocks.
 *
 * The values of a loop are the slots of its item, which are among the sources. An operand of a block in the loop is a sum of the block's slots. In
 * a plan it becomes a sum of the loop's values, so that the block's slots need not be computed. Walks (loop.c) expand what plans cannot:
 * blocks that compute, and blocks with slots that are sums of two values. */
#include <stdlib.h>
#include <string.h>

#include "format/schema/loop.h"
#include "format/schema/schema.h"

/* ---- making a plan ---- */

/* The loop's value that a source of a block's operand stands for; *add: the constant that is added to it. */
static uint16_t loop_plan_source(const struct peet_loop_node *n, uint16_t source, uint64_t *add)
{
    if (source < PEET_SRC_SLOT)
        return source;
    const struct peet_assign *a = &n->assign[source - PEET_SRC_SLOT];
    *add = (uint64_t)a->add;
    return a->src == PEET_LOOP_ZERO ? PEET_SRC_ZERO : (uint16_t)(PEET_SRC_SLOT + a->src);
}

static struct plan_op loop_plan_operand(const struct peet_loop_node *n, const struct plan_op *op)
{
    struct plan_op to = *op;
    uint64_t base = 0, index = 0;

    to.base = loop_plan_source(n, op->base, &base);
    to.index = loop_plan_source(n, op->index, &index);
    to.record.addr += base + (index << op->scale);
    return to;
}

static bool loop_plan_fits(const struct item *item, const struct peet_loop_node *n)
{
    if (item->block->computes || item->dynamic)
        return false;
    for (unsigned i = 0; i < n->assigns; i++)
        if (n->assign[i].plus)
            return false;
    return true;
}

static bool loop_plan_block(struct arena *arena, const struct item *item, const struct peet_loop_node *n,
                            struct plan_node *to)
{
    unsigned operands = item->block->operands;
    struct plan_op *op = arena_alloc(arena, (operands + PLAN_PAD) * sizeof *op);

    if (!op || !loop_plan_fits(item, n))
        return false;
    for (unsigned i = 0; i < operands; i++)
        op[i] = loop_plan_operand(n, &item->plan[i]);
    to->op = op;
    to->operands = operands;
    to->indexed = item->indexed;
    to->head = block_record(item->block);
    to->instructions = item->insns;
    return true;
}

/* What each value grows by per iteration; 0 for values that the loop does not assign. */
static void find_value_steps(const struct peet_loop_node *n, const uint64_t *value, unsigned values, uint64_t *step)
{
    memset(step, 0, values * sizeof *step);
    for (unsigned i = n->enters; i < n->assigns; i++)
        step[n->assign[i].dst] += (uint64_t)n->assign[i].add + (n->assign[i].plus ? value[n->assign[i].plus - 1] : 0);
}

static void find_record_steps(const struct plan_node *n, const uint64_t *value_step, uint64_t *step)
{
    for (unsigned i = 0; i < n->operands; i++) {
        const struct plan_op *op = &n->op[i];
        step[i] = (op->base >= PEET_SRC_SLOT ? value_step[op->base - PEET_SRC_SLOT] : 0)
                  + (op->index >= PEET_SRC_SLOT ? value_step[op->index - PEET_SRC_SLOT] << op->scale : 0);
    }
}

/* Whether each value grows by a constant per iteration; *ret_varies: such a constant depends on other values. */
static bool loop_steps_evenly(const struct peet_loop_node *n, bool *ret_varies)
{
    bool steps[PEET_LOOP_ZERO + 1] = { false };

    *ret_varies = false;
    for (unsigned i = n->enters; i < n->assigns; i++) {
        if (n->assign[i].dst != n->assign[i].src)
            return false;
        steps[n->assign[i].dst] = true;
    }
    for (unsigned i = n->enters; i < n->assigns; i++) {
        *ret_varies |= n->assign[i].plus != 0;
        if (n->assign[i].plus && steps[n->assign[i].plus - 1])
            return false;
    }
    return true;
}

/* If the body of a loop has only blocks, which are planned: plans the records of an iteration. False: no memory. */
static bool loop_plan_flat(struct arena *arena, struct loop_plan *p, unsigned number)
{
    struct plan_node *to = &p->node[number];
    const struct peet_loop_node *n = to->node;
    static const uint64_t NOTHING[PEET_SLOTS];
    unsigned records = 0, at = 0;
    uint64_t value_step[PEET_SLOTS];
    bool varies;

    for (unsigned i = number + 1; i < n->end; i++)
        if (p->node[i].kind == PLAN_BLOCK)
            records += 1 + p->node[i].operands;
        else
            return true;
    if (records == 0 || records > FLAT_RECORDS || !loop_steps_evenly(n, &varies))
        return true;
    struct plan_op *op = arena_alloc(arena, records * sizeof *op);
    uint64_t *step = arena_alloc(arena, records * sizeof *step);
    if (!op || !step)
        return false;
    for (unsigned i = number + 1; i < n->end; i++) {
        const struct plan_node *b = &p->node[i];
        op[at++].record = b->head;
        memcpy(op + at, b->op, b->operands * sizeof *op);
        at += b->operands;
        to->instructions += b->instructions;
        to->indexed |= b->indexed;
    }
    to->kind = PLAN_FLAT;
    to->op = op;
    to->operands = records;
    if (!varies) {
        find_value_steps(n, NOTHING, p->loop->values, value_step);
        find_record_steps(to, value_step, step);
        to->step = step;
    }
    return true;
}

static bool loop_plan_make(struct arena *arena, const struct schema *s, struct loop_plan *p)
{
    const struct peet_loop *l = p->loop;

    for (unsigned i = 0; i < l->nodes; i++) {
        const struct peet_loop_node *n = &l->node[i];
        p->node[i] = (struct plan_node){ .kind = n->block ? PLAN_BLOCK : PLAN_LOOP, .node = n };
        if (n->block && !loop_plan_block(arena, schema_item(s, n->block), n, &p->node[i]))
            return false;
    }
    for (unsigned i = 0; i < l->nodes; i++)
        if (!l->node[i].block && !loop_plan_flat(arena, p, i))
            return false;
    return true;
}

static const struct loop_plan *loop_plan_add(struct loop_plans *x, const struct schema *s, const struct peet_loop *l)
{
    if (l->id >= x->room) {
        size_t room = ((size_t)l->id + 1) * 2;
        const struct loop_plan **of = realloc(x->of, room * sizeof(const struct loop_plan *));
        if (!of)
            return NULL;
        memset(of + x->room, 0, (room - x->room) * sizeof(const struct loop_plan *));
        x->of = of;
        x->room = room;
    }
    struct loop_plan *p = arena_alloc(&x->arena, sizeof *p + l->nodes * sizeof *p->node);
    if (!p)
        return NULL;
    p->loop = l;
    if (!loop_plan_make(&x->arena, s, p))
        p->loop = NULL;
    x->of[l->id] = p;
    return p;
}

const struct loop_plan *loop_plan(struct loop_plans *x, const struct schema *s, const struct peet_loop *l)
{
    const struct loop_plan *p = l->id < x->room ? x->of[l->id] : NULL;

    if (!p)
        p = loop_plan_add(x, s, l);
    return p && p->loop ? p : NULL;
}

void loop_plans_release(struct loop_plans *x)
{
    arena_release(&x->arena);
    free(x->of);
    *x = (struct loop_plans){ 0 };
}

/* ---- executing a plan ---- */

static void loop_plan_assign(uint64_t *value, const struct peet_assign *a, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        value[a[i].dst] = (a[i].src == PEET_LOOP_ZERO ? 0 : value[a[i].src]) + (a[i].plus ? value[a[i].plus - 1] : 0)
                          + (uint64_t)a[i].add;
}

void loop_run_init(struct loop_run *r, const struct loop_plan *p, uint64_t *src)
{
    const struct peet_loop_node *first = p->loop->node;

    r->plan = p;
    r->node = r->depth = 0;
    if (p->node[0].kind == PLAN_LOOP && !first->counted && first->trips == 1) { /* it only encloses the others */
        loop_plan_assign(src + PEET_SRC_SLOT, first->assign, first->enters);
        r->node = 1;
    }
}

const struct plan_node *loop_run_next(struct loop_run *r, uint64_t *src)
{
    const struct plan_node *nodes = r->plan->node;
    uint64_t *value = src + PEET_SRC_SLOT;

    for (;;) {
        while (r->depth > 0 && r->node == nodes[r->open[r->depth - 1]].node->end) { /* end of a body */
            const struct peet_loop_node *n = nodes[r->open[r->depth - 1]].node;
            loop_plan_assign(value, n->assign + n->enters, (unsigned)n->assigns - n->enters);
            if (--r->left[r->depth - 1] > 0)
                r->node = r->open[r->depth - 1] + 1u;
            else
                r->depth--;
        }
        if (r->node == r->plan->loop->nodes)
            return NULL;
        const struct plan_node *n = &nodes[r->node];
        if (n->kind == PLAN_BLOCK) {
            r->node++;
            return n;
        }
        uint64_t trips = n->node->counted ? value[r->plan->loop->values + n->node->trips] : n->node->trips;
        loop_plan_assign(value, n->node->assign, n->node->enters);
        if (n->kind == PLAN_FLAT || trips == 0) {
            r->node = n->node->end;
            r->trips = trips;
            if (trips > 0)
                return n;
            continue;
        }
        r->open[r->depth] = r->node;
        r->left[r->depth++] = trips;
        r->node++;
    }
}

void loop_run_flatten(const struct loop_run *r, const struct plan_node *n, uint64_t *src, struct flat_loop *f)
{
    const struct peet_loop_node *node = n->node;
    uint64_t *value = src + PEET_SRC_SLOT;

    f->trips = r->trips;
    f->records = n->operands;
    f->instructions = n->instructions;
    for (unsigned i = 0; i < n->operands; i++)
        plan_put(&n->op[i], src, true, &f->record[i]);
    f->step = n->step;
    if (!f->step) {
        uint64_t value_step[PEET_SLOTS];
        find_value_steps(node, value, r->plan->loop->values, value_step);
        find_record_steps(n, value_step, f->own_step);
        f->step = f->own_step;
    }
    for (unsigned i = node->enters; i < node->assigns; i++) /* values after the last iteration */
        value[node->assign[i].dst] +=
            ((uint64_t)node->assign[i].add + (node->assign[i].plus ? value[node->assign[i].plus - 1] : 0)) * r->trips;
}
