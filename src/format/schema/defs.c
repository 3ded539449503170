/* SPDX-License-Identifier: MIT */
/* Definition records as bytes: each is its kind, its length and its fields, so that a reader can pass over kinds that it
 * does not know. All numbers are LEB128, signed ones zigzag; strings are their length and their bytes. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "format/schema/schema.h"

enum def_kind {
    DEF_META = 1,
    DEF_PROCESS,
    DEF_MODULE,
    DEF_RANGE,
    DEF_THREAD,
    DEF_STRING,
    DEF_BLOCK,
    DEF_LOOP,
    DEF_EVENT,
};

/* Which of an operand's rarer fields follow. */
enum { HAS_SIZE_SRC = 1, HAS_DOWN = 2, HAS_PREDICATE = 4, HAS_VALUE = 8 };

/* ---- writing ---- */

/* Appends a definition record with the bytes of body, and frees body. */
static void defs_begin(struct buf *out, enum def_kind kind, struct buf *body)
{
    buf_leb(out, kind);
    buf_leb(out, body->size);
    buf_bytes(out, body->data, body->size);
    out->failed |= body->failed;
    buf_release(body);
}

static void defs_put_insns(struct buf *b, const struct peet_block *block)
{
    uint64_t expected = 0;

    buf_leb(b, block->insns);
    for (unsigned i = 0; i < block->insns; i++) {
        const struct peet_insn *in = &block->insn[i];
        buf_sleb(b, (int64_t)(in->addr - expected));
        buf_leb(b, in->length);
        buf_leb(b, in->class);
        buf_leb(b, in->flags);
        buf_leb(b, in->target != 0);
        if (in->target)
            buf_sleb(b, (int64_t)(in->target - in->addr));
        expected = in->addr + in->length;
    }
}

static void defs_put_operand(struct buf *b, const struct peet_operand *o)
{
    unsigned has = (o->size_src ? HAS_SIZE_SRC : 0) | (o->down ? HAS_DOWN : 0) | (o->predicate ? HAS_PREDICATE : 0)
                   | (o->value ? HAS_VALUE : 0);

    buf_leb(b, o->insn);
    buf_leb(b, o->kind);
    buf_leb(b, o->size);
    buf_leb(b, o->base);
    buf_leb(b, o->index);
    buf_leb(b, o->scale);
    buf_sleb(b, o->disp);
    buf_leb(b, has);
    if (o->size_src)
        buf_leb(b, o->size_src);
    if (o->predicate) {
        buf_leb(b, o->predicate);
        buf_leb(b, o->predicate_bit);
    }
    if (o->value)
        buf_leb(b, o->value);
}

void defs_put_block(struct buf *out, const struct peet_block *block)
{
    struct buf b = { 0 };

    buf_leb(&b, block->id);
    buf_leb(&b, block->slots);
    defs_put_insns(&b, block);
    buf_leb(&b, block->operands);
    for (unsigned i = 0; i < block->operands; i++)
        defs_put_operand(&b, &block->operand[i]);
    buf_leb(&b, block->computes);
    for (unsigned i = 0; i < block->computes; i++) {
        const struct peet_compute *c = &block->compute[i];
        buf_leb(&b, c->op);
        buf_leb(&b, c->a);
        buf_leb(&b, c->b);
        buf_leb(&b, c->shift);
        buf_leb(&b, c->width);
        buf_sleb(&b, c->imm);
    }
    buf_leb(&b, block->effects);
    for (unsigned i = 0; i < block->effects; i++) {
        buf_leb(&b, block->effect[i].reg);
        buf_leb(&b, block->effect[i].src);
        buf_sleb(&b, block->effect[i].add);
    }
    defs_begin(out, DEF_BLOCK, &b);
}

void defs_put_loop(struct buf *out, const struct peet_loop *l)
{
    struct buf b = { 0 };

    buf_leb(&b, l->id);
    buf_leb(&b, l->values);
    buf_leb(&b, l->counts);
    buf_leb(&b, l->nodes);
    for (unsigned i = 0; i < l->nodes; i++) {
        const struct peet_loop_node *n = &l->node[i];
        buf_leb(&b, n->block);
        if (!n->block) {
            buf_leb(&b, n->end);
            buf_leb(&b, n->counted);
            buf_leb(&b, n->trips);
            buf_leb(&b, n->enters);
        }
        buf_leb(&b, n->assigns);
        for (unsigned j = 0; j < n->assigns; j++) {
            buf_leb(&b, n->assign[j].dst);
            buf_leb(&b, (uint64_t)n->assign[j].plus << 8 | n->assign[j].src);
            buf_sleb(&b, n->assign[j].add);
        }
    }
    defs_begin(out, DEF_LOOP, &b);
}

void defs_put_event(struct buf *out, const struct peet_event_item *e)
{
    struct buf b = { 0 };

    buf_leb(&b, e->id);
    buf_string(&b, peet_event_name(e->kind));
    buf_leb(&b, (uint64_t)peet_event_arity(e->kind));
    buf_leb(&b, e->site);
    defs_begin(out, DEF_EVENT, &b);
}

void defs_put_process(struct buf *out, const struct peet_process *p)
{
    struct buf b = { 0 };

    buf_leb(&b, p->id);
    buf_leb(&b, p->parent);
    buf_string(&b, p->program);
    buf_string(&b, p->command);
    defs_begin(out, DEF_PROCESS, &b);
}

void defs_put_module(struct buf *out, const struct peet_module *m)
{
    struct buf b = { 0 };
    uint64_t last = 0;

    buf_leb(&b, m->process);
    buf_string(&b, m->path);
    buf_string(&b, m->build_id);
    buf_leb(&b, m->bias);
    buf_leb(&b, m->segments);
    for (uint32_t i = 0; i < m->segments; i++) {
        buf_leb(&b, m->segment[i].start);
        buf_leb(&b, m->segment[i].size);
        buf_leb(&b, m->segment[i].offset);
        buf_leb(&b, m->segment[i].protection);
    }
    buf_leb(&b, m->symbols);
    for (uint32_t i = 0; i < m->symbols; i++) {
        buf_leb(&b, m->symbol[i].addr - last);
        buf_leb(&b, m->symbol[i].size);
        buf_leb(&b, m->symbol[i].code);
        buf_string(&b, m->symbol[i].name);
        last = m->symbol[i].addr;
    }
    defs_begin(out, DEF_MODULE, &b);
}

void defs_put_range(struct buf *out, const struct peet_range *r)
{
    struct buf b = { 0 };

    buf_leb(&b, r->process);
    buf_leb(&b, r->start);
    buf_leb(&b, r->size);
    buf_leb(&b, r->protection);
    buf_string(&b, r->name);
    defs_begin(out, DEF_RANGE, &b);
}

void defs_put_thread(struct buf *out, const struct peet_thread *t)
{
    struct buf b = { 0 };

    buf_leb(&b, t->id);
    buf_leb(&b, t->process);
    buf_leb(&b, t->parent);
    buf_leb(&b, t->ordinal);
    buf_string(&b, t->name);
    defs_begin(out, DEF_THREAD, &b);
}

void defs_put_meta(struct buf *out, const char *key, const char *value)
{
    struct buf b = { 0 };

    buf_string(&b, key);
    buf_string(&b, value);
    defs_begin(out, DEF_META, &b);
}

void defs_put_string(struct buf *out, uint32_t scratch_number, const char *text)
{
    struct buf b = { 0 };

    buf_leb(&b, scratch_number);
    buf_string(&b, text);
    defs_begin(out, DEF_STRING, &b);
}

/* ---- reading ---- */

/* A record being read, and memory for it until the schema has copied it. */
struct scratch {
    struct byte_reader w;
    struct arena arena;
};

static uint64_t scratch_number(struct scratch *x, uint64_t most)
{
    uint64_t v = reader_leb(&x->w);

    if (v > most) {
        x->w.bad = 1;
        return 0;
    }
    return v;
}

static uint8_t scratch_byte(struct scratch *x)
{
    return (uint8_t)scratch_number(x, UINT8_MAX);
}

static uint16_t scratch_half(struct scratch *x)
{
    return (uint16_t)scratch_number(x, UINT16_MAX);
}

static uint32_t scratch_word(struct scratch *x)
{
    return (uint32_t)scratch_number(x, UINT32_MAX);
}

static const char *scratch_string(struct scratch *x)
{
    uint64_t n = reader_leb(&x->w);
    const uint8_t *p = reader_bytes(&x->w, n);
    const char *s = p && !memchr(p, 0, n) ? arena_string(&x->arena, (const char *)p, n) : NULL;

    x->w.bad |= !s;
    return s ? s : "";
}

/* An array of n elements, each of at least one byte of the record; NULL: the record is too short, and x->w.bad is set. */
static void *scratch_array(struct scratch *x, uint64_t n, size_t element)
{
    void *p = n <= (uint64_t)(x->w.end - x->w.p) ? arena_alloc(&x->arena, n * element) : NULL;

    x->w.bad |= !p;
    return p;
}

static struct peet_insn *read_insns(struct scratch *x, uint16_t n)
{
    struct peet_insn *insn = scratch_array(x, n, sizeof *insn);
    uint64_t expected = 0;

    for (unsigned i = 0; i < n && !x->w.bad; i++) {
        struct peet_insn *in = &insn[i];
        in->addr = expected + (uint64_t)reader_sleb(&x->w);
        in->length = scratch_half(x);
        in->class = scratch_byte(x);
        in->flags = scratch_half(x);
        if (scratch_number(x, 1))
            in->target = in->addr + (uint64_t)reader_sleb(&x->w);
        expected = in->addr + in->length;
    }
    return insn;
}

static struct peet_operand *read_operands(struct scratch *x, uint16_t n)
{
    struct peet_operand *operand = scratch_array(x, n, sizeof *operand);

    for (unsigned i = 0; i < n && !x->w.bad; i++) {
        struct peet_operand *o = &operand[i];
        o->insn = scratch_half(x);
        o->kind = scratch_byte(x);
        o->size = scratch_word(x);
        o->base = scratch_byte(x);
        o->index = scratch_byte(x);
        o->scale = scratch_byte(x);
        o->disp = reader_sleb(&x->w);
        unsigned has = scratch_byte(x);
        if (has & HAS_SIZE_SRC)
            o->size_src = scratch_byte(x);
        o->down = has & HAS_DOWN ? 1 : 0;
        if (has & HAS_PREDICATE) {
            o->predicate = scratch_byte(x);
            o->predicate_bit = scratch_byte(x);
        }
        if (has & HAS_VALUE)
            o->value = scratch_byte(x);
        x->w.bad |= has > 15;
    }
    return operand;
}

static int read_block(struct schema *s, struct scratch *x, struct peet_err *err)
{
    struct peet_block b = { .id = scratch_word(x) };

    b.slots = scratch_half(x);
    b.insns = scratch_half(x);
    b.insn = read_insns(x, b.insns);
    b.operands = scratch_half(x);
    b.operand = read_operands(x, b.operands);
    b.computes = scratch_half(x);
    struct peet_compute *compute = scratch_array(x, b.computes, sizeof *compute);
    for (unsigned i = 0; i < b.computes && !x->w.bad; i++) {
        uint8_t op = scratch_byte(x), a = scratch_byte(x), c = scratch_byte(x), shift = scratch_byte(x),
                width = scratch_byte(x);
        compute[i] = (struct peet_compute){ reader_sleb(&x->w), op, a, c, shift, width };
    }
    b.effects = scratch_half(x);
    struct peet_effect *effect = scratch_array(x, b.effects, sizeof *effect);
    for (unsigned i = 0; i < b.effects && !x->w.bad; i++) {
        uint8_t reg = scratch_byte(x), src = scratch_byte(x);
        effect[i] = (struct peet_effect){ reader_sleb(&x->w), reg, src };
    }
    b.compute = compute;
    b.effect = effect;
    return x->w.bad ? 0 : schema_add_block(s, &b, err);
}

static int read_loop(struct schema *s, struct scratch *x, struct peet_err *err)
{
    struct peet_loop l = { .id = scratch_word(x) };

    l.values = scratch_half(x);
    l.counts = scratch_half(x);
    l.nodes = scratch_half(x);
    struct peet_loop_node *node = scratch_array(x, l.nodes, sizeof *node);
    for (unsigned i = 0; i < l.nodes && !x->w.bad; i++) {
        struct peet_loop_node *n = &node[i];
        n->block = scratch_word(x);
        if (!n->block) {
            n->end = scratch_half(x);
            n->counted = scratch_byte(x);
            n->trips = reader_leb(&x->w);
            n->enters = scratch_half(x);
        }
        n->assigns = scratch_half(x);
        struct peet_assign *assign = scratch_array(x, n->assigns, sizeof *assign);
        for (unsigned j = 0; j < n->assigns && !x->w.bad; j++) {
            uint8_t dst = scratch_byte(x);
            uint16_t src = scratch_half(x);
            assign[j] = (struct peet_assign){ reader_sleb(&x->w), dst, (uint8_t)src, (uint8_t)(src >> 8) };
        }
        n->assign = assign;
    }
    l.node = node;
    return x->w.bad ? 0 : schema_add_loop(s, &l, err);
}

/* Kinds are stored by name, so that a reader can distinguish an event of a later version from a damaged one. Such an event is kept as an
 * item, so that streams which use it can be read, and is reported as an error. */
static int read_event(struct schema *s, struct scratch *x, struct peet_err *err)
{
    struct peet_event_item e = { .id = scratch_word(x) };
    const char *name = scratch_string(x);
    uint64_t arity = scratch_number(x, PEET_SLOTS);
    int kind = peet_event_find(name);

    e.site = reader_leb(&x->w);
    if (x->w.bad)
        return 0;
    bool known = kind >= 0 && arity == (uint64_t)peet_event_arity((uint32_t)kind);
    e.kind = known ? (uint32_t)kind : PEET_EVENT_KINDS;
    int r = schema_add_event(s, &e, (unsigned)arity, err);
    if (r == 0 && !known)
        return err_set(err, PEET_ERR_FORMAT,
                       "item %" PRIu32 ": event '%s' with %" PRIu64 " arguments is not known; passed over", e.id, name,
                       arity);
    return r;
}

static int read_module(struct schema *s, struct scratch *x, struct peet_err *err)
{
    struct peet_module m = { .process = scratch_word(x) };
    uint64_t last = 0;

    m.path = scratch_string(x);
    m.build_id = scratch_string(x);
    m.bias = reader_leb(&x->w);
    m.segments = scratch_word(x);
    struct peet_segment *segment = scratch_array(x, m.segments, sizeof *segment);
    for (uint32_t i = 0; i < m.segments && !x->w.bad; i++) {
        segment[i].start = reader_leb(&x->w);
        segment[i].size = reader_leb(&x->w);
        segment[i].offset = reader_leb(&x->w);
        segment[i].protection = scratch_word(x);
    }
    m.symbols = scratch_word(x);
    struct peet_symbol *symbol = scratch_array(x, m.symbols, sizeof *symbol);
    for (uint32_t i = 0; i < m.symbols && !x->w.bad; i++) {
        last = symbol[i].addr = last + reader_leb(&x->w);
        symbol[i].size = reader_leb(&x->w);
        symbol[i].code = scratch_byte(x);
        symbol[i].name = scratch_string(x);
    }
    m.segment = segment;
    m.symbol = symbol;
    return x->w.bad ? 0 : schema_add_module(s, &m, err);
}

static int read_meta(struct schema *s, struct scratch *x, struct peet_err *err)
{
    const char *key = scratch_string(x);
    const char *value = scratch_string(x);

    return x->w.bad ? 0 : schema_add_meta(s, key, value, err);
}

static int read_string(struct schema *s, struct scratch *x, struct peet_err *err)
{
    uint32_t n = scratch_word(x);
    const char *text = scratch_string(x);

    return x->w.bad ? 0 : schema_add_string(s, n, text, err);
}

static int read_process(struct schema *s, struct scratch *x, struct peet_err *err)
{
    struct peet_process p = { .id = scratch_word(x) };

    p.parent = scratch_word(x);
    p.program = scratch_string(x);
    p.command = scratch_string(x);
    return x->w.bad ? 0 : schema_add_process(s, &p, err);
}

static int read_range(struct schema *s, struct scratch *x, struct peet_err *err)
{
    struct peet_range r = { .process = scratch_word(x) };

    r.start = reader_leb(&x->w);
    r.size = reader_leb(&x->w);
    r.protection = scratch_word(x);
    r.name = scratch_string(x);
    return x->w.bad ? 0 : schema_add_range(s, &r, err);
}

static int read_thread(struct schema *s, struct scratch *x, struct peet_err *err)
{
    struct peet_thread t = { .id = scratch_word(x) };

    t.process = scratch_word(x);
    t.parent = scratch_word(x);
    t.ordinal = scratch_word(x);
    t.name = scratch_string(x);
    return x->w.bad ? 0 : schema_add_thread(s, &t, err);
}

/* By kind. Each returns 0 with x->w.bad set when its bytes make no sense. */
static int (*const READERS[])(struct schema *s, struct scratch *x, struct peet_err *err) = {
    [DEF_META] = read_meta,   [DEF_PROCESS] = read_process, [DEF_MODULE] = read_module,
    [DEF_RANGE] = read_range, [DEF_THREAD] = read_thread,   [DEF_STRING] = read_string,
    [DEF_BLOCK] = read_block, [DEF_LOOP] = read_loop,       [DEF_EVENT] = read_event,
};

int defs_read(struct schema *s, const uint8_t *bytes, size_t n, struct peet_err *err)
{
    struct byte_reader w = { bytes, bytes + n, 0 };
    struct scratch x = { 0 };
    struct peet_err why;
    int first = 0;

    while (first != PEET_ERR_MEMORY && w.p < w.end) {
        size_t at = (size_t)(w.p - bytes);
        uint64_t kind = reader_leb(&w), length = reader_leb(&w);
        const uint8_t *body = reader_bytes(&w, length);
        int r = 0;
        if (body && kind < sizeof READERS / sizeof *READERS && READERS[kind]) {
            x.w = (struct byte_reader){ body, body + length, 0 };
            r = READERS[kind](s, &x, &why);
        }
        if (r == 0 && (w.bad || x.w.bad))
            r = err_set(&why, PEET_ERR_DAMAGED, "definition record at byte %zu (kind %" PRIu64 ") makes no sense", at,
                        kind);
        if (r < 0 && (first == 0 || r == PEET_ERR_MEMORY))
            first = err_set(err, r, "%s", why.text);
        x.w.bad = 0;
        arena_reset(&x.arena);
    }
    arena_release(&x.arena);
    return first;
}
