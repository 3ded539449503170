/* SPDX-License-Identifier: MIT */
/* The schema: definitions and their checks. The checks serve two purposes: they report to a producer its
 * mistakes, and they let the decoder run without looking at sources, sizes and counts again. */
#include "format/schema/schema.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static int schema_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for the schema");
}

struct schema *schema_new(void)
{
    return calloc(1, sizeof(struct schema));
}

void schema_free(struct schema *s)
{
    if (!s)
        return;
    struct vector *all[] = { &s->blocks, &s->metas, &s->processes, &s->modules, &s->ranges, &s->threads, &s->strings };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->at);
    for (size_t i = 0; i < sizeof s->segment / sizeof *s->segment; i++)
        free(s->segment[i]);
    arena_release(&s->arena);
    free(s);
}

static int vector_room(struct vector *v, size_t count)
{
    if (count > v->room) {
        size_t room = v->room * 2 > count ? v->room * 2 : count + 16;
        void **at = realloc(v->at, room * sizeof *at);
        if (!at)
            return -1;
        memset(at + v->room, 0, (room - v->room) * sizeof *at);
        v->at = at;
        v->room = room;
    }
    return 0;
}

static int vector_push(struct vector *v, void *p, struct peet_err *err)
{
    if (!p || vector_room(v, v->count + 1) < 0)
        return schema_no_memory(err);
    v->at[v->count++] = p;
    return 0;
}

static void *schema_copy(struct schema *s, const void *from, size_t bytes)
{
    void *to = arena_alloc(&s->arena, bytes);

    return to && bytes ? memcpy(to, from, bytes) : to;
}

static const char *copy_string(struct schema *s, const char *text)
{
    return arena_string(&s->arena, text, strlen(text));
}

/* Makes room for item `number`, which must be new. */
static int schema_reserve(struct schema *s, uint32_t number, struct item **ret, struct peet_err *err)
{
    if (number == 0 || number >= SCHEMA_MAX_ITEMS)
        return err_set(err, PEET_ERR_LIMIT, "item %" PRIu32 ": numbers go from 1 to %" PRIu32, number,
                       SCHEMA_MAX_ITEMS - 1);
    if (schema_item(s, number))
        return err_set(err, PEET_ERR_FORMAT, "item %" PRIu32 " is defined twice", number);
    struct item *segment = s->segment[number / ITEM_SEGMENT];
    if (!segment) {
        segment = calloc(ITEM_SEGMENT, sizeof *segment);
        if (!segment)
            return schema_no_memory(err);
        atomic_store_explicit(&s->segment[number / ITEM_SEGMENT], segment, memory_order_release);
    }
    *ret = &segment[number % ITEM_SEGMENT];
    return 0;
}

/* Makes the item visible to other threads. */
static void schema_publish(struct schema *s, uint32_t number)
{
    uint32_t items = atomic_load_explicit(&s->items, memory_order_relaxed);

    atomic_store_explicit(&s->items, number >= items ? number + 1 : items, memory_order_release);
}

/* ---- blocks ---- */

static bool source_is_known(unsigned src, unsigned slots, unsigned temps)
{
    if (src >= PEET_SRC_TEMP)
        return src - PEET_SRC_TEMP < temps;
    return src < PEET_SRC_SLOT || src - PEET_SRC_SLOT < slots;
}

static int check_insns(const struct peet_block *b, struct peet_err *err)
{
    if (b->insns == 0 || b->insns > BLOCK_MAX_INSNS)
        return err_set(err, PEET_ERR_LIMIT, "block %" PRIu32 ": %u instructions; 1 to %d are possible", b->id, b->insns,
                       BLOCK_MAX_INSNS);
    for (unsigned i = 0; i < b->insns; i++)
        if (b->insn[i].class >= PEET_CLASS_COUNT)
            return err_set(err, PEET_ERR_FORMAT, "block %" PRIu32 ": instruction %u: no class %u", b->id, i,
                           b->insn[i].class);
    return 0;
}

static const char *operand_fault(const struct peet_block *b, const struct peet_operand *o)
{
    unsigned words = (o->size + 7) / 8;

    if (o->insn >= b->insns)
        return "it belongs to no instruction";
    if (o->kind < PEET_LOAD || o->kind > PEET_PREFETCH)
        return "its kind is none of load, store, update, prefetch";
    if (o->size == 0 || o->size > PEET_MAX_SIZE)
        return "its size is not between 1 and 2^24-1";
    if (!source_is_known(o->base, b->slots, b->computes) || !source_is_known(o->index, b->slots, b->computes)
        || !source_is_known(o->size_src, b->slots, b->computes)
        || !source_is_known(o->predicate, b->slots, b->computes))
        return "it uses a source that the block does not have";
    if (o->scale > 63 || o->predicate_bit > 63)
        return "its scale or predicate bit is above 63";
    if (o->down > 1)
        return "its direction is neither 0 nor 1";
    if (o->value && (o->value < PEET_SRC_SLOT || o->value + words > (unsigned)PEET_SRC_SLOT + b->slots || o->size_src))
        return "its value is not in slots";
    return NULL;
}

static int check_operands(const struct peet_block *b, struct peet_err *err)
{
    if (b->operands > BLOCK_MAX_OPERANDS || b->slots > PEET_SLOTS)
        return err_set(err, PEET_ERR_LIMIT,
                       "block %" PRIu32 ": %u operands and %u slots; %d and %d are possible: split it", b->id,
                       b->operands, b->slots, BLOCK_MAX_OPERANDS, PEET_SLOTS);
    for (unsigned i = 0; i < b->operands; i++) {
        const char *fault = operand_fault(b, &b->operand[i]);
        if (fault)
            return err_set(err, PEET_ERR_FORMAT, "block %" PRIu32 ": operand %u: %s", b->id, i, fault);
        if (i && b->operand[i].insn < b->operand[i - 1].insn)
            return err_set(err, PEET_ERR_FORMAT, "block %" PRIu32 ": operand %u: not in the order of instructions",
                           b->id, i);
    }
    return 0;
}

static int check_machine(const struct peet_block *b, struct peet_err *err)
{
    if (b->computes > PEET_TEMPS)
        return err_set(err, PEET_ERR_LIMIT, "block %" PRIu32 ": %u computes; %d are possible", b->id, b->computes,
                       PEET_TEMPS);
    for (unsigned i = 0; i < b->computes; i++) {
        const struct peet_compute *c = &b->compute[i];
        if (c->op >= PEET_OP_COUNT || c->shift > 63 || (c->width != 4 && c->width != 8)
            || !source_is_known(c->a, b->slots, i) || !source_is_known(c->b, b->slots, i))
            return err_set(err, PEET_ERR_FORMAT, "block %" PRIu32 ": compute %u: unknown operation, width or source",
                           b->id, i);
    }
    for (unsigned i = 0; i < b->effects; i++)
        if (b->effect[i].reg >= PEET_REGISTERS || !source_is_known(b->effect[i].src, b->slots, b->computes))
            return err_set(err, PEET_ERR_FORMAT, "block %" PRIu32 ": effect %u: unknown register or source", b->id, i);
    return 0;
}

static struct plan_op *schema_plan_operands(struct schema *s, const struct peet_block *b)
{
    unsigned padded = (b->operands + PLAN_PAD - 1u) / PLAN_PAD * PLAN_PAD;
    struct plan_op *plan = arena_alloc(&s->arena, padded * sizeof *plan);

    for (unsigned i = 0; plan && i < b->operands; i++) {
        const struct peet_operand *o = &b->operand[i];
        plan[i] = (struct plan_op){ .record = { .addr = (uint64_t)o->disp,
                                                .id = b->first_insn + o->insn,
                                                .size = o->size & PEET_MAX_SIZE,
                                                .kind = o->kind },
                                    .base = o->base,
                                    .index = o->index,
                                    .scale = o->scale };
    }
    return plan;
}

int schema_add_block(struct schema *s, const struct peet_block *b, struct peet_err *err)
{
    struct item *item;
    int r;

    if ((r = schema_reserve(s, b->id, &item, err)) < 0 || (r = check_insns(b, err)) < 0
        || (r = check_operands(b, err)) < 0 || (r = check_machine(b, err)) < 0)
        return r;
    if (s->insns > UINT32_MAX - b->insns)
        return err_set(err, PEET_ERR_LIMIT, "block %" PRIu32 ": more than 2^32 instructions in the schema", b->id);
    struct peet_block *n = schema_copy(s, b, sizeof *b);
    if (!n)
        return schema_no_memory(err);
    n->first_insn = s->insns;
    n->insn = schema_copy(s, b->insn, b->insns * sizeof *b->insn);
    n->operand = schema_copy(s, b->operand, b->operands * sizeof *b->operand);
    n->compute = schema_copy(s, b->compute, b->computes * sizeof *b->compute);
    n->effect = schema_copy(s, b->effect, b->effects * sizeof *b->effect);
    struct item made = { .kind = ITEM_BLOCK,
                         .slots = b->slots,
                         .insns = b->insns,
                         .references = b->operands,
                         .effects = b->effects > 0,
                         .block = n,
                         .plan = schema_plan_operands(s, n) };
    for (unsigned i = 0; i < b->operands; i++) {
        made.dynamic |= b->operand[i].size_src || b->operand[i].predicate;
        made.indexed |= b->operand[i].index != 0;
    }
    if (!n->insn || !n->operand || !n->compute || !n->effect || !made.plan)
        return schema_no_memory(err);
    if ((r = vector_push(&s->blocks, n, err)) < 0)
        return r;
    s->insns += b->insns;
    *item = made;
    schema_publish(s, b->id);
    return 0;
}

/* ---- loops ---- */

static bool is_from_values(const struct peet_loop *l, const struct peet_assign *a)
{
    return (a->src < l->values || a->src == PEET_LOOP_ZERO) && a->plus <= l->values;
}

static const char *block_node_fault(const struct schema *s, const struct peet_loop *l, const struct peet_loop_node *n)
{
    const struct item *item = schema_item(s, n->block);

    if (!item || item->kind != ITEM_BLOCK)
        return "it names a block that is not defined";
    if (item->dynamic || item->effects)
        return "its block has effects, element counts or predicates";
    if (n->assigns != item->slots)
        return "it does not set each of its block's slots";
    for (unsigned i = 0; i < n->assigns; i++)
        if (n->assign[i].dst != i || !is_from_values(l, &n->assign[i]))
            return "it sets its block's slots out of order or from unknown values";
    return NULL;
}

static const char *loop_node_fault(const struct peet_loop *l, const struct peet_loop_node *n, unsigned number,
                                   unsigned end)
{
    if (n->end <= number + 1 || n->end > end)
        return "its body is empty or not inside the loop around it";
    if (n->counted > 1 || (n->counted && n->trips >= l->counts))
        return "its trip count is not in a slot";
    if (n->enters > n->assigns)
        return "it has more assignments on entry than assignments";
    for (unsigned i = 0; i < n->assigns; i++)
        if (n->assign[i].dst >= l->values || !is_from_values(l, &n->assign[i]))
            return "it assigns to or from an unknown value";
    return NULL;
}

/* Checks nodes [first, end), the body of a loop, and all loops in it. */
static const char *body_fault(const struct schema *s, const struct peet_loop *l, unsigned first, unsigned end,
                              int depth, unsigned *ret_node)
{
    bool own_block = false;

    if (depth > PEET_LOOP_DEPTH)
        return "it is nested too deeply";
    for (unsigned i = first; i < end;) {
        const struct peet_loop_node *n = &l->node[i];
        const char *fault = n->block ? block_node_fault(s, l, n) : loop_node_fault(l, n, i, end);
        *ret_node = i;
        own_block |= n->block != 0;
        if (!fault && !n->block)
            fault = body_fault(s, l, i + 1, n->end, depth + 1, ret_node);
        if (fault)
            return fault;
        i = n->block ? i + 1 : n->end;
    }
    *ret_node = first;
    return depth && !own_block ? "no block stands in its loop directly" : NULL;
}

/* The totals of nodes [first, end) for one iteration. */
static bool body_totals(const struct schema *s, const struct peet_loop *l, const uint64_t *counts, unsigned first,
                        unsigned end, uint64_t total[2])
{
    total[0] = total[1] = 0;
    for (unsigned i = first; i < end; i = l->node[i].block ? i + 1 : l->node[i].end) {
        const struct peet_loop_node *n = &l->node[i];
        uint64_t one[2], trips = 1;
        if (n->block) {
            const struct item *item = schema_item(s, n->block);
            one[0] = item->insns;
            one[1] = item->references;
        } else {
            trips = n->counted ? counts[n->trips] : n->trips;
            if (!body_totals(s, l, counts, i + 1, n->end, one))
                return false;
        }
        for (int j = 0; j < 2; j++)
            if (__builtin_mul_overflow(one[j], trips, &one[j]) || __builtin_add_overflow(total[j], one[j], &total[j])
                || total[j] >> 63)
                return false;
    }
    return true;
}

bool loop_totals(const struct schema *s, const struct peet_loop *l, const uint64_t *counts, uint64_t *ret_insns,
                 uint64_t *ret_references)
{
    uint64_t total[2];

    if (!body_totals(s, l, counts, 0, l->nodes, total))
        return false;
    *ret_insns = total[0];
    *ret_references = total[1];
    return true;
}

/* Sets item->linear if the totals depend on one trip count only. */
static void find_linear(const struct schema *s, struct item *item)
{
    const struct peet_loop *l = item->loop;
    uint64_t counts[PEET_SLOTS] = { 0 }, fixed[2], one[2];
    unsigned counted = 0, count = 0;

    for (unsigned i = 0; i < l->nodes; i++)
        if (!l->node[i].block && l->node[i].counted) {
            count = (unsigned)l->node[i].trips;
            counted++;
        }
    if (counted != 1 || !loop_totals(s, l, counts, &fixed[0], &fixed[1]))
        return;
    counts[count] = 1;
    if (!loop_totals(s, l, counts, &one[0], &one[1]) || (one[0] | one[1]) >> LINEAR_BITS)
        return;
    item->linear = true;
    item->count = (uint16_t)(l->values + count);
    item->insns = (uint32_t)fixed[0];
    item->references = (uint32_t)fixed[1];
    item->trip_insns = (uint32_t)(one[0] - fixed[0]);
    item->trip_references = (uint32_t)(one[1] - fixed[1]);
}

int schema_add_loop(struct schema *s, const struct peet_loop *l, struct peet_err *err)
{
    struct item *item;
    unsigned at = 0;
    int r = schema_reserve(s, l->id, &item, err);

    if (r < 0)
        return r;
    if (l->values + l->counts > PEET_SLOTS || l->nodes == 0 || l->nodes > LOOP_MAX_NODES)
        return err_set(err, PEET_ERR_LIMIT,
                       "loop %" PRIu32 ": %u values and counts and %u nodes; %d and %d are possible", l->id,
                       l->values + l->counts, l->nodes, PEET_SLOTS, LOOP_MAX_NODES);
    const char *fault = l->node[0].block || l->node[0].end != l->nodes ? "it is not the one loop that holds all others"
                                                                       : body_fault(s, l, 0, l->nodes, 0, &at);
    if (fault)
        return err_set(err, PEET_ERR_FORMAT, "loop %" PRIu32 ": node %u: %s", l->id, at, fault);
    struct peet_loop *n = schema_copy(s, l, sizeof *l);
    struct peet_loop_node *nodes = schema_copy(s, l->node, l->nodes * sizeof *l->node);
    if (!n || !nodes)
        return schema_no_memory(err);
    for (unsigned i = 0; i < l->nodes; i++)
        if (!(nodes[i].assign = schema_copy(s, l->node[i].assign, l->node[i].assigns * sizeof *l->node[i].assign)))
            return schema_no_memory(err);
    n->node = nodes;
    *item = (struct item){ .kind = ITEM_LOOP, .slots = (uint16_t)(l->values + l->counts), .loop = n };
    find_linear(s, item);
    schema_publish(s, l->id);
    return 0;
}

/* ---- other definitions ---- */

int schema_add_event(struct schema *s, const struct peet_event_item *e, unsigned arguments, struct peet_err *err)
{
    struct item *item;
    int r = schema_reserve(s, e->id, &item, err);

    if (r < 0)
        return r;
    if (e->kind > PEET_EVENT_KINDS)
        return err_set(err, PEET_ERR_FORMAT, "item %" PRIu32 ": no event kind %" PRIu32, e->id, e->kind);
    const struct peet_event_item *n = schema_copy(s, e, sizeof *e);
    if (!n)
        return schema_no_memory(err);
    *item = (struct item){ .kind = ITEM_EVENT, .slots = (uint16_t)arguments, .event = n };
    schema_publish(s, e->id);
    return 0;
}

int schema_add_process(struct schema *s, const struct peet_process *p, struct peet_err *err)
{
    struct peet_process *n = schema_copy(s, p, sizeof *p);

    if (!n || !(n->program = copy_string(s, p->program)) || !(n->command = copy_string(s, p->command)))
        return schema_no_memory(err);
    return vector_push(&s->processes, n, err);
}

int schema_add_module(struct schema *s, const struct peet_module *m, struct peet_err *err)
{
    struct peet_module *n = schema_copy(s, m, sizeof *m);
    struct peet_symbol *symbols = schema_copy(s, m->symbol, m->symbols * sizeof *m->symbol);

    if (!n || !symbols || !(n->path = copy_string(s, m->path)) || !(n->build_id = copy_string(s, m->build_id))
        || !(n->segment = schema_copy(s, m->segment, m->segments * sizeof *m->segment)))
        return schema_no_memory(err);
    for (uint32_t i = 0; i < m->symbols; i++) {
        if (i && symbols[i].addr < symbols[i - 1].addr)
            return err_set(err, PEET_ERR_FORMAT, "module %s: its symbols are not in the order of addresses", m->path);
        if (!(symbols[i].name = copy_string(s, m->symbol[i].name)))
            return schema_no_memory(err);
    }
    n->symbol = symbols;
    return vector_push(&s->modules, n, err);
}

int schema_add_range(struct schema *s, const struct peet_range *r, struct peet_err *err)
{
    struct peet_range *n = schema_copy(s, r, sizeof *r);

    if (!n || !(n->name = copy_string(s, r->name)))
        return schema_no_memory(err);
    return vector_push(&s->ranges, n, err);
}

int schema_add_thread(struct schema *s, const struct peet_thread *t, struct peet_err *err)
{
    if (t->id == UINT32_MAX)
        return err_set(err, PEET_ERR_LIMIT, "thread %" PRIu32 ": that number stands for all threads", t->id);
    if (schema_thread(s, t->id))
        return err_set(err, PEET_ERR_FORMAT, "thread %" PRIu32 " is defined twice", t->id);
    struct peet_thread *n = schema_copy(s, t, sizeof *t);
    if (!n || !(n->name = copy_string(s, t->name)))
        return schema_no_memory(err);
    return vector_push(&s->threads, n, err);
}

const struct peet_thread *schema_thread(const struct schema *s, uint32_t id)
{
    for (size_t i = s->threads.count; i-- > 0;) {
        const struct peet_thread *t = s->threads.at[i];
        if (t->id == id)
            return t;
    }
    return NULL;
}

int schema_add_meta(struct schema *s, const char *key, const char *value, struct peet_err *err)
{
    struct meta m = { copy_string(s, key), copy_string(s, value) };

    if (!m.key || !m.value)
        return schema_no_memory(err);
    return vector_push(&s->metas, schema_copy(s, &m, sizeof m), err);
}

int schema_add_string(struct schema *s, uint32_t number, const char *text, struct peet_err *err)
{
    if (number >= SCHEMA_MAX_ITEMS)
        return err_set(err, PEET_ERR_LIMIT, "string %" PRIu32 ": numbers end at %" PRIu32, number,
                       SCHEMA_MAX_ITEMS - 1);
    char *n = arena_string(&s->arena, text, strlen(text));
    if (!n || vector_room(&s->strings, number + 1) < 0)
        return schema_no_memory(err);
    if (s->strings.at[number])
        return err_set(err, PEET_ERR_FORMAT, "string %" PRIu32 " is defined twice", number);
    s->strings.at[number] = n;
    s->strings.count = number >= s->strings.count ? number + 1 : s->strings.count;
    return 0;
}

/* ---- executing a block ---- */

uint64_t compute_other(const struct peet_compute *c, uint64_t a, uint64_t b)
{
    uint64_t mask = c->width == 4 ? UINT32_MAX : UINT64_MAX, y = (b & mask) + (uint64_t)c->imm;
    unsigned by = (unsigned)(y & (c->width * 8u - 1));

    a &= mask;
    switch (c->op) {
    case PEET_OP_add: return (a + ((b & mask) << c->shift) + (uint64_t)c->imm) & mask;
    case PEET_OP_sub: return (a - y) & mask;
    case PEET_OP_mul: return (a * y) & mask;
    case PEET_OP_and: return a & y & mask;
    case PEET_OP_or: return (a | y) & mask;
    case PEET_OP_xor: return (a ^ y) & mask;
    case PEET_OP_shl: return a << by & mask;
    case PEET_OP_shr: return a >> by;
    case PEET_OP_sar: return c->width == 4 ? (uint32_t)((int32_t)(uint32_t)a >> by) : (uint64_t)((int64_t)a >> by);
    case PEET_OP_sext: return (by ? (uint64_t)((int64_t)(a << (64 - by)) >> (64 - by)) : a) & mask;
    default: return by ? a & (((uint64_t)1 << by) - 1) : a; /* zext */
    }
}

int64_t block_references(const struct peet_block *b, const uint64_t *src)
{
    int64_t n = 0;

    for (unsigned i = 0; i < b->operands; i++) {
        uint64_t bytes = operand_bytes(&b->operand[i], src);
        if (bytes >= OPERAND_MAX_BYTES)
            return -1;
        n += (int64_t)((bytes + PEET_MAX_SIZE - 1) / PEET_MAX_SIZE);
    }
    return n;
}
