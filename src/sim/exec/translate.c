/* SPDX-License-Identifier: MIT */
/* From items of the schema to translated blocks: made once for each, when it is executed first. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "format/file/trace.h"
#include "sim/exec/exec_state.h"

static void *translate_alloc(struct exec_blocks *s, size_t count, size_t size)
{
    void *p = arena_alloc(&s->translated.arena, count * size + 1);

    assert(p); /* these tables are small beside what is simulated */
    return p;
}

/* ---- operands and groups ---- */

static void add_operand(struct tblock *x, const struct plan_op *op, uint64_t issued)
{
    x->operand[x->operands++] =
        (struct tb_operand){ .disp = (int64_t)op->record.addr,
                             .insn = op->record.id,
                             .size = op->record.size,
                             .kind = op->record.kind,
                             .is_write = op->record.kind == PEET_STORE || op->record.kind == PEET_UPDATE,
                             .base = op->base,
                             .index = op->index,
                             .scale = op->scale,
                             .issued = issued,
                             .fixed_used = UINT32_C(1)
                                           << miss_bucket_index(0), /* the bucket for no offset and no remover */
                             .part = (uint16_t)(x->parts - 1) };
    x->kinds[op->record.kind]++;
}

static void add_part(struct exec_blocks *s, struct tblock *x, const struct peet_record *head)
{
    const struct peet_block *b = peet_trace_block(s->trace, head->id);
    struct tb_block *p = &x->part[x->parts++];

    *p = (struct tb_block){ .head = *head };
    for (uint32_t i = 0; i < b->insns; i++)
        p->cycles += s->config.cost[b->insn[i].class];
    x->cost.instructions += p->cycles;
    x->insns += head->size;
    const struct peet_insn *last = &b->insn[b->insns - 1];
    enum path_exit how = paths_exit_of((enum peet_class)last->class);
    x->exit = how > x->exit ? (uint8_t)how : x->exit;
    if (x->parts == 1) {
        x->entry.addr = head->addr;
        x->entry.is_function = paths_is_entry(s->observer.paths, s->path.calls->process, head->addr);
        x->call = (struct path_call){ .site = last->addr, .back = last->addr + last->length };
        x->stack.slot = NO_OPERAND;
    }
}

static void make_groups(struct tblock *x)
{
    for (uint16_t i = 0; i < x->operands; i++) {
        const struct tb_operand *operand = &x->operand[i];
        x->group[x->groups++] = (struct base_group){ .first = (uint64_t)operand->disp,
                                                     .last = (uint64_t)operand->disp + operand->size - 1,
                                                     .base = operand->base,
                                                     .index = operand->index,
                                                     .scale = operand->scale,
                                                     .is_write = operand->is_write,
                                                     .is_simple = operand->kind != PEET_PREFETCH,
                                                     .from = i,
                                                     .operands = 1 };
    }
}

static void find_owners(struct tblock *x)
{
    uint16_t extents = 0;

    for (uint16_t i = 0; i < x->groups; i++) {
        struct base_group *g = &x->group[i];
        uint16_t k = 0;
        while (x->group[k].base != g->base || x->group[k].index != g->index || x->group[k].scale != g->scale)
            k++;
        g->owner = k;
        struct base_group *owner = &x->group[k];
        if (k == i) {
            g->extent = extents++;
            x->extent[g->extent].span = 0; /* it is to be looked up */
        }
        owner->least = k == i || (int64_t)(g->first - owner->least) < 0 ? g->first : owner->least;
        owner->most = k == i || (int64_t)(g->last - owner->most) > 0 ? g->last : owner->most;
    }
}

/* Whether two addresses have always been in one line, from where a base was. */
static bool were_together(const struct exec_blocks *s, uint64_t base_residues, uint64_t first, uint64_t last)
{
    for (; base_residues; base_residues &= base_residues - 1) {
        uint64_t base = (uint64_t)__builtin_ctzll(base_residues);
        if ((base + first) >> s->cache.shift != (base + last) >> s->cache.shift)
            return false;
    }
    return true;
}

/* Joins the group `more` into `g`, if all their references lie in one line. */
static bool group_join(const struct exec_blocks *s, struct base_group *g, const struct base_group *more)
{
    uint64_t first = (int64_t)(more->first - g->first) < 0 ? more->first : g->first; /* all modulo 2^64 */
    uint64_t last = (int64_t)(more->last - g->last) > 0 ? more->last : g->last;

    if (g->base != more->base || g->index != more->index || g->scale != more->scale || last - first >= s->cache.length
        || (g->is_write != more->is_write && !s->cache.is_readable) || !were_together(s, g->base_residues, first, last))
        return false;
    g->first = first;
    g->last = last;
    g->is_simple &= more->is_simple;
    g->is_write |= more->is_write;
    g->operands = (uint16_t)(g->operands + more->operands);
    return true;
}

void tblock_join_groups(struct exec_blocks *s, struct tblock *x)
{
    unsigned groups = 0;

    for (unsigned i = 0; i < x->groups; i++)
        if (groups == 0 || !group_join(s, &x->group[groups - 1], &x->group[i]))
            x->group[groups++] = x->group[i];
    x->groups = groups;
    find_owners(x);
}

/* ---- translated blocks ---- */

static struct tblock *begin_tblock(struct exec_blocks *s, size_t parts, size_t operands)
{
    struct tblock *x = translate_alloc(s, 1, sizeof *x + operands * (sizeof *x->extent + sizeof *x->group));

    *x = (struct tblock){ .part = translate_alloc(s, parts, sizeof *x->part),
                          .operand = translate_alloc(s, operands, sizeof *x->operand) };
    x->group = (struct base_group *)(void *)&x->extent[operands];
    x->number = ++s->translated.tblock_count; /* not 0, which means unused in path_cache */
    x->next = s->translated.tblocks;
    s->translated.tblocks = x;
    return x;
}

static void end_tblock(struct exec_blocks *s, struct tblock *x)
{
    x->cost.all_hit = x->cost.instructions + (x->operands - x->kinds[PEET_PREFETCH]) * s->cache.level[0].latency;
    for (uint64_t i = 0, hits = 0; !x->is_varying && i < x->operands; i++) {
        uint32_t hit = x->operand[i].kind == PEET_PREFETCH ? 0 : s->cache.level[0].latency;
        x->operand[i].issued += hits;
        x->part[x->operand[i].part].cycles += hit;
        hits += hit;
    }
    make_groups(x);
    find_owners(x);
}

/* The operand by which the call of a block stores the return address. */
static void tblock_find_slot(struct tblock *x, const struct peet_block *b)
{
    if (x->operands && paths_slot_operand(b))
        x->stack.slot = (uint16_t)(x->operands - 1);
}

struct tblock *tblock_of(struct exec_blocks *s, const struct peet_block *b)
{
    struct tblock **known = map_put(&s->translated.blocks, b->id, 0);

    assert(known);
    struct tblock *x = *known;
    if (x)
        return x;
    const struct item *item = schema_item(s->trace->schema, b->id);
    struct peet_record head = block_record(b);
    x = begin_tblock(s, 1, b->operands);
    x->is_varying = item->dynamic;
    add_part(s, x, &head);
    for (unsigned i = 0; i < b->operands; i++)
        add_operand(x, &item->plan[i], x->cost.instructions);
    x->stack.has_entry = x->entry.is_function && paths_entry_operand(b);
    tblock_find_slot(x, b);
    end_tblock(s, x);
    return *known = x;
}

/* A block of a loop, or a iteration of one, whose references are sums of the loop's values. */
static struct tblock *tblock_of_node(struct exec_blocks *s, const struct plan_node *n)
{
    size_t parts = n->kind == PLAN_BLOCK;

    for (unsigned i = 0; n->kind == PLAN_FLAT && i < n->operands; i++)
        parts += n->op[i].record.kind == PEET_BLOCK;
    struct tblock *x = begin_tblock(s, parts, n->operands);
    if (n->kind == PLAN_BLOCK)
        add_part(s, x, &n->head);
    for (unsigned i = 0; i < n->operands; i++)
        if (n->op[i].record.kind == PEET_BLOCK)
            add_part(s, x, &n->op[i].record);
        else
            add_operand(x, &n->op[i], x->cost.instructions);
    if (n->kind == PLAN_BLOCK)
        tblock_find_slot(x, peet_trace_block(s->trace, n->head.id));
    end_tblock(s, x);
    return x;
}

/* ---- items ---- */

static void plan_loop(struct exec_blocks *s, struct tb_item *to, const struct item *item)
{
    to->kind = TB_LOOP;
    to->plan = loop_plan(&s->translated.plans, s->trace->schema, item->loop);
    if (!to->plan)
        return;
    to->node = translate_alloc(s, item->loop->nodes, sizeof(struct tblock *));
    for (unsigned i = 0; i < item->loop->nodes; i++)
        if (to->plan->node[i].kind != PLAN_LOOP)
            to->node[i] = tblock_of_node(s, &to->plan->node[i]);
    for (unsigned i = 0; i < item->loop->nodes && to->plan; i++)
        if (to->plan->node[i].kind == PLAN_FLAT && to->node[i]->exit != PATH_NEXT)
            to->plan = NULL; /* what it calls has to be followed */
}

static void plan_block(struct exec_blocks *s, struct tb_item *to, const struct item *item)
{
    bool computes = item->block->computes || item->effects;

    to->kind = item->dynamic ? TB_VARYING : computes ? TB_COMPUTE : TB_BLOCK;
    to->tblock = tblock_of(s, item->block);
}

static struct tb_item *make_item(struct exec_blocks *s, const struct peet_names *names, uint64_t key, uint32_t number,
                                 struct peet_err *err)
{
    const struct item *item = schema_item(s->trace->schema, number);
    struct tb_item *to = translate_alloc(s, 1, sizeof *to);

    if (!item) {
        err_set(err, PEET_ERR_USAGE, "item %" PRIu32 " is not defined", number);
        return NULL;
    }
    *to = (struct tb_item){
        .key = key, .item = item, .slots = item->slots, .kind = TB_EVENT, .code = s->sentinel.no_item.code
    };
    if (item->kind == ITEM_BLOCK)
        plan_block(s, to, item);
    else if (item->kind == ITEM_LOOP)
        plan_loop(s, to, item);
    if (item->kind == ITEM_LOOP && names && names->trips)
        to->iterations = names->trips(names->context, key);
    return to;
}

struct tb_item *tb_item_find(struct exec_blocks *s, const struct peet_names *names, uint64_t key, struct peet_err *err)
{
    struct tb_item **known = map_put(&s->translated.items, key, 0);
    uint32_t number = (uint32_t)key;

    assert(known);
    struct tb_item *made = *known;
    if (made)
        return made;
    if (names && names->item(names->context, key, &number, err) < 0)
        return NULL;
    made = make_item(s, names, key, number, err);
    known = map_put(&s->translated.items, key, 0);
    return *known = made;
}
