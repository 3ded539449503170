/* SPDX-License-Identifier: MIT */
/* Walks: executions of a summarised loop, block by block. */
#include <string.h>

#include "format/schema/loop.h"
#include "format/file/trace.h"

static uint64_t loop_iterations_of(const struct peet_loop_walk *w, const struct peet_loop_node *n)
{
    return n->counted ? w->counts[n->trips] : n->trips;
}

static uint64_t loop_value_of(const struct peet_loop_walk *w, const struct peet_assign *a)
{
    return (a->src == PEET_LOOP_ZERO ? 0 : w->value[a->src]) + (a->plus ? w->value[a->plus - 1] : 0) + (uint64_t)a->add;
}

static void loop_assign(struct peet_loop_walk *w, const struct peet_assign *a, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        w->value[a[i].dst] = loop_value_of(w, &a[i]);
}

void peet_loop_walk_init(struct peet_loop_walk *w, const struct peet_trace *t, const struct peet_loop_run *run)
{
    w->trace = t;
    w->loop = run->loop;
    memcpy(w->value, run->value, run->loop->values * sizeof *run->value);
    memcpy(w->counts, run->count, run->loop->counts * sizeof *run->count);
    w->node = 0;
    w->depth = 0;
}

void loop_settle(struct peet_loop_walk *w)
{
    const struct peet_loop_node *nodes = w->loop->node;

    for (;;) {
        /* end of a body: assign, and begin the next iteration or leave the loop */
        while (w->depth > 0 && w->node == nodes[w->open[w->depth - 1]].end) {
            const struct peet_loop_node *n = &nodes[w->open[w->depth - 1]];
            loop_assign(w, n->assign + n->enters, (unsigned)n->assigns - n->enters);
            if (--w->left[w->depth - 1] > 0)
                w->node = (uint16_t)(w->open[w->depth - 1] + 1);
            else
                w->depth--;
        }
        if (w->node == w->loop->nodes || nodes[w->node].block)
            return;
        const struct peet_loop_node *n = &nodes[w->node];
        uint64_t trips = loop_iterations_of(w, n);
        loop_assign(w, n->assign, n->enters);
        if (trips == 0) {
            w->node = n->end;
            continue;
        }
        w->open[w->depth] = w->node;
        w->left[w->depth++] = trips;
        w->node++;
    }
}

static void loop_set_slots(const struct peet_loop_walk *w, const struct peet_loop_node *n, uint64_t *slot)
{
    for (unsigned i = 0; i < n->assigns; i++)
        slot[i] = loop_value_of(w, &n->assign[i]);
}

const struct peet_block *peet_loop_walk_next(struct peet_loop_walk *w, const uint64_t **ret_slots)
{
    loop_settle(w);
    if (w->node == w->loop->nodes)
        return NULL;
    const struct peet_loop_node *n = &w->loop->node[w->node];
    loop_set_slots(w, n, w->slot);
    w->node++;
    *ret_slots = w->slot;
    return schema_item(w->trace->schema, n->block)->block;
}

/* ---- many iterations at once ---- */

/* Whether each value grows by a constant per iteration, independent of the others; *step has these constants, then. */
static bool loop_find_steps(const struct peet_loop_walk *w, const struct peet_loop_node *outer, uint64_t *step)
{
    memset(step, 0, w->loop->values * sizeof *step);
    for (unsigned i = outer->enters; i < outer->assigns; i++) {
        const struct peet_assign *a = &outer->assign[i];
        if (a->dst != a->src)
            return false;
        step[a->dst] += (uint64_t)a->add + (a->plus ? w->value[a->plus - 1] : 0);
    }
    for (unsigned i = outer->enters; i < outer->assigns; i++)
        if (outer->assign[i].plus && step[outer->assign[i].plus - 1] != 0)
            return false;
    return true;
}

/* Whether all nodes are blocks without computes. */
static bool loop_is_flat(const struct peet_loop_walk *w, const struct peet_loop_node *outer, size_t *ret_records)
{
    size_t records = 0;

    for (unsigned i = w->node; i < outer->end; i++) {
        if (!w->loop->node[i].block)
            return false;
        const struct item *item = schema_item(w->trace->schema, w->loop->node[i].block);
        if (item->block->computes)
            return false;
        records += 1u + item->block->operands;
    }
    *ret_records = records;
    return records <= FLAT_RECORDS;
}

/* Adds the records of a block in the first iteration, and their steps. */
static void loop_add_block(const struct peet_loop_walk *w, const struct peet_loop_node *n, const uint64_t *step,
                           uint64_t *src, struct flat_loop *f)
{
    const struct item *item = schema_item(w->trace->schema, n->block);
    uint64_t slot_step[PEET_SLOTS];

    loop_set_slots(w, n, src + PEET_SRC_SLOT);
    for (unsigned i = 0; i < n->assigns; i++)
        slot_step[i] = (n->assign[i].src == PEET_LOOP_ZERO ? 0 : step[n->assign[i].src])
                       + (n->assign[i].plus ? step[n->assign[i].plus - 1] : 0);
    f->record[f->records] = block_record(item->block);
    f->own_step[f->records++] = 0;
    f->instructions += item->insns;
    for (unsigned i = 0; i < item->block->operands; i++) {
        const struct plan_op *op = &item->plan[i];
        struct peet_record *r = &f->record[f->records];
        uint64_t base = op->base >= PEET_SRC_SLOT ? slot_step[op->base - PEET_SRC_SLOT] : 0;
        uint64_t index = op->index >= PEET_SRC_SLOT ? slot_step[op->index - PEET_SRC_SLOT] : 0;
        plan_put(op, src, true, r);
        f->own_step[f->records++] = base + (index << op->scale);
    }
}

bool loop_flatten(struct peet_loop_walk *w, uint64_t *src, struct flat_loop *f)
{
    uint64_t step[PEET_SLOTS];
    size_t records;

    loop_settle(w);
    if (w->depth == 0 || w->node != w->open[w->depth - 1] + 1)
        return false;
    const struct peet_loop_node *outer = &w->loop->node[w->open[w->depth - 1]];
    if (!loop_is_flat(w, outer, &records) || !loop_find_steps(w, outer, step))
        return false;
    f->records = 0;
    f->step = f->own_step;
    f->instructions = 0;
    f->trips = w->left[w->depth - 1];
    for (unsigned i = w->node; i < outer->end; i++)
        loop_add_block(w, &w->loop->node[i], step, src, f);
    /* the walk continues after the last iteration */
    for (unsigned i = 0; i < w->loop->values; i++)
        w->value[i] += step[i] * f->trips;
    w->node = outer->end;
    w->depth--;
    return true;
}

size_t loop_flat_trips(struct flat_loop *f, struct peet_record *out, size_t room)
{
    uint64_t trips = room / f->records < f->trips ? room / f->records : f->trips;

    for (uint64_t n = 0; n < trips; n++)
        for (size_t i = 0; i < f->records; i++) {
            *out++ = f->record[i];
            f->record[i].addr += f->step[i];
        }
    f->trips -= trips;
    return (size_t)trips;
}
