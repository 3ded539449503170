/* SPDX-License-Identifier: MIT */
#include "format/text/put.h"

#include <inttypes.h>
#include <string.h>

/* ---- words ---- */

void text_put_decimal(FILE *out, uint64_t v)
{
    char digits[20];
    size_t n = sizeof digits;

    do
        digits[--n] = (char)('0' + v % 10);
    while (v /= 10);
    fwrite(digits + n, 1, sizeof digits - n, out);
}

void text_put_hex(FILE *out, uint64_t v)
{
    char digits[18];
    size_t n = sizeof digits;

    do
        digits[--n] = "0123456789abcdef"[v & 15];
    while (v >>= 4);
    digits[--n] = 'x';
    digits[--n] = '0';
    fwrite(digits + n, 1, sizeof digits - n, out);
}

/* What is added to a source, with its sign; nothing for 0. */
static void put_addend(FILE *out, int64_t add)
{
    uint64_t size = add < 0 ? -(uint64_t)add : (uint64_t)add;

    if (add)
        fprintf(out, size < 1024 ? "%c%" PRIu64 : "%c0x%" PRIx64, add < 0 ? '-' : '+', size);
}

void text_put_quoted(FILE *out, const char *s)
{
    putc('"', out);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", out);
        else if (c == '\t')
            fputs("\\t", out);
        else if (c < 32 || c == 127)
            fprintf(out, "\\x%02x", c);
        else
            putc(c, out);
    }
    putc('"', out);
}

/* "r0", "s3", "t1"; the constant is "0". */
static void put_source(FILE *out, unsigned src)
{
    if (src >= PEET_SRC_TEMP)
        fprintf(out, "t%u", src - PEET_SRC_TEMP);
    else if (src >= PEET_SRC_SLOT)
        fprintf(out, "s%u", src - PEET_SRC_SLOT);
    else if (src >= PEET_SRC_REGISTER)
        fprintf(out, "r%u", src - PEET_SRC_REGISTER);
    else
        putc('0', out);
}

/* base + index * 2^scale + add; a single index always has its factor, which distinguishes it from a base. */
static void put_sum(FILE *out, unsigned base, unsigned index, unsigned scale, int64_t add)
{
    if (!base && !index) {
        text_put_hex(out, (uint64_t)add);
        return;
    }
    if (base)
        put_source(out, base);
    if (index) {
        if (base)
            putc('+', out);
        put_source(out, index);
        if (!base || scale)
            fprintf(out, "*%" PRIu64, (uint64_t)1 << scale);
    }
    put_addend(out, add);
}

/* ---- what runs ---- */

static void put_protection(FILE *out, uint32_t p)
{
    if (p < 8)
        fprintf(out, "%c%c%c", p & 4 ? 'r' : '-', p & 2 ? 'w' : '-', p & 1 ? 'x' : '-');
    else
        fprintf(out, "%" PRIu32, p);
}

void text_put_meta(FILE *out, const char *key, const char *value)
{
    fputs("meta ", out);
    text_put_quoted(out, key);
    putc(' ', out);
    text_put_quoted(out, value);
    putc('\n', out);
}

void text_put_process(FILE *out, const struct peet_process *p)
{
    fprintf(out, "process %" PRIu32 " parent %" PRIu32 " program ", p->id, p->parent);
    text_put_quoted(out, p->program);
    fputs(" command ", out);
    text_put_quoted(out, p->command);
    putc('\n', out);
}

void text_put_module(FILE *out, const struct peet_module *m)
{
    fprintf(out, "module process %" PRIu32 " path ", m->process);
    text_put_quoted(out, m->path);
    fputs(" build ", out);
    text_put_quoted(out, m->build_id);
    fprintf(out, " bias 0x%" PRIx64 "\n", m->bias);
    for (uint32_t i = 0; i < m->segments; i++) {
        const struct peet_segment *s = &m->segment[i];
        fprintf(out, "  segment 0x%" PRIx64 " 0x%" PRIx64 " offset 0x%" PRIx64 " ", s->start, s->size, s->offset);
        put_protection(out, s->protection);
        putc('\n', out);
    }
    for (uint32_t i = 0; i < m->symbols; i++) {
        const struct peet_symbol *s = &m->symbol[i];
        fprintf(out, "  symbol 0x%" PRIx64 " 0x%" PRIx64 " %s ", s->addr, s->size, s->code ? "code" : "data");
        text_put_quoted(out, s->name);
        putc('\n', out);
    }
}

void text_put_range(FILE *out, const struct peet_range *r)
{
    fprintf(out, "range process %" PRIu32 " 0x%" PRIx64 " 0x%" PRIx64 " ", r->process, r->start, r->size);
    put_protection(out, r->protection);
    fputs(" name ", out);
    text_put_quoted(out, r->name);
    putc('\n', out);
}

void text_put_thread(FILE *out, const struct peet_thread *t)
{
    fprintf(out, "thread %" PRIu32 " process %" PRIu32 " parent %" PRIu32 " ordinal %" PRIu32 " name ", t->id,
            t->process, t->parent, t->ordinal);
    text_put_quoted(out, t->name);
    putc('\n', out);
}

/* ---- blocks ---- */

const char *const TEXT_CLASS_NAMES[PEET_CLASS_COUNT] = {
#define X(name) #name,
    PEET_CLASSES(X)
#undef X
};

const char *const TEXT_FLAG_NAMES[TEXT_FLAG_COUNT] = {
#define X(name) #name,
    TEXT_FLAGS(X)
#undef X
};

const char *const TEXT_OP_NAMES[PEET_OP_COUNT] = {
#define X(name) #name,
    PEET_OPS(X)
#undef X
};

static void text_put_insn(FILE *out, const struct peet_insn *in)
{
    enum { NAMED = TEXT_FLAG_COUNT };

    fprintf(out, "  0x%" PRIx64 " %u %s", in->addr, in->length, TEXT_CLASS_NAMES[in->class]);
    for (unsigned i = 0; i < NAMED; i++)
        if (in->flags >> i & 1)
            fprintf(out, " %s", TEXT_FLAG_NAMES[i]);
    if (in->flags >> NAMED)
        fprintf(out, " flags 0x%x", (unsigned)(in->flags >> NAMED << NAMED));
    if (in->target)
        fprintf(out, " -> 0x%" PRIx64, in->target);
}

static void text_put_operand(FILE *out, const struct peet_operand *o)
{
    static const char *const KINDS[] = {
        [PEET_LOAD] = "load", [PEET_STORE] = "store", [PEET_UPDATE] = "update", [PEET_PREFETCH] = "prefetch"
    };

    fprintf(out, ", %s %" PRIu32, KINDS[o->kind], o->size);
    if (o->size_src) {
        putc('*', out);
        put_source(out, o->size_src);
    }
    fputs(" [", out);
    put_sum(out, o->base, o->index, o->scale, o->disp);
    putc(']', out);
    if (o->down)
        fputs(" down", out);
    if (o->predicate) {
        fputs(" if ", out);
        put_source(out, o->predicate);
        fprintf(out, ".%u", o->predicate_bit);
    }
    if (o->value) {
        fputs(" value ", out);
        put_source(out, o->value);
    }
}

static void put_compute(FILE *out, const struct peet_compute *c, unsigned number)
{
    fprintf(out, "  t%u = %s ", number, TEXT_OP_NAMES[c->op]);
    put_source(out, c->a);
    putc(' ', out);
    put_sum(out, c->shift ? 0 : c->b, c->shift ? c->b : 0, c->shift, c->imm);
    if (c->width != 8)
        fprintf(out, " width %u", c->width);
    putc('\n', out);
}

void text_put_block(FILE *out, const struct peet_block *b, uint32_t name, const char *comment)
{
    unsigned o = 0;

    fprintf(out, "block b%" PRIu32 " slots %u", name, b->slots);
    if (comment)
        fprintf(out, "  # %s", comment);
    putc('\n', out);
    for (unsigned i = 0; i < b->computes; i++)
        put_compute(out, &b->compute[i], i);
    for (unsigned i = 0; i < b->insns; i++) {
        text_put_insn(out, &b->insn[i]);
        for (; o < b->operands && b->operand[o].insn == i; o++)
            text_put_operand(out, &b->operand[o]);
        putc('\n', out);
    }
    for (unsigned i = 0; i < b->effects; i++) {
        fprintf(out, "  r%u = ", b->effect[i].reg);
        put_sum(out, b->effect[i].src, 0, 0, b->effect[i].add);
        putc('\n', out);
    }
}

/* ---- loops ---- */

/* "v1 = v0+8"; the letter is that of what is assigned to. */
static void put_assign(FILE *out, char letter, const struct peet_assign *a)
{
    uint8_t first = a->src, second = a->plus;

    fprintf(out, "%c%u = ", letter, a->dst);
    if (first == PEET_LOOP_ZERO && second) {
        first = (uint8_t)(second - 1);
        second = 0;
    }
    if (first == PEET_LOOP_ZERO) {
        text_put_hex(out, (uint64_t)a->add);
        return;
    }
    fprintf(out, "v%u", first);
    if (second)
        fprintf(out, "+v%u", second - 1u);
    put_addend(out, a->add);
}

static void put_node(FILE *out, const struct peet_loop_node *n, const uint32_t *names)
{
    if (n->block)
        fprintf(out, "b%" PRIu32, names[n->block]);
    else if (n->counted)
        fprintf(out, "repeat c%" PRIu64, n->trips);
    else
        fprintf(out, "repeat %" PRIu64, n->trips);
    for (unsigned i = 0; i < n->assigns; i++) {
        fputs(n->block ? ", " : i < n->enters ? ", enter " : ", step ", out);
        put_assign(out, n->block ? 's' : 'v', &n->assign[i]);
    }
    putc('\n', out);
}

void text_put_loop(FILE *out, const struct peet_loop *l, uint32_t name, const uint32_t *names)
{
    uint16_t open[PEET_LOOP_DEPTH + 1];
    int depth = 0;

    fprintf(out, "loop l%" PRIu32 " values %u counts %u\n", name, l->values, l->counts);
    for (uint16_t i = 0; i <= l->nodes; i++) {
        for (; depth > 0 && open[depth - 1] == i; depth--)
            fprintf(out, "%*sdone\n", 2 * depth, "");
        if (i == l->nodes)
            break;
        fprintf(out, "%*s", 2 * depth + 2, "");
        put_node(out, &l->node[i], names);
        if (!l->node[i].block)
            open[depth++] = l->node[i].end;
    }
}

/* ---- events ---- */

bool text_event_has_string(uint32_t kind)
{
    return kind == PEET_EV_exec || kind == PEET_EV_region_begin || kind == PEET_EV_region_end || kind == PEET_EV_mark
           || kind == PEET_EV_name_data;
}

/* Whether an argument of this name (n characters) counts something; all others are addresses. */
static bool is_count(const char *name, size_t n)
{
    static const char *const COUNTS[] = {
        "child",  "parent",     "value",        "how",        "code",     "result", "count",
        "ran",    "iterations", "iteration",    "size",       "number",   "align",  "protection",
        "signal", "process",    "instructions", "references", "register",
    };

    for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++)
        if (strlen(COUNTS[i]) == n && !memcmp(COUNTS[i], name, n))
            return true;
    return false;
}

/* In decimal unless that would be a long number; what a system call returns may be negative. */
static void put_count(FILE *out, uint64_t v)
{
    const uint64_t LARGE = (uint64_t)1 << 48;

    if (v < LARGE) {
        text_put_decimal(out, v);
    } else if (-v < LARGE) {
        putc('-', out);
        text_put_decimal(out, -v);
    } else {
        text_put_hex(out, v);
    }
}

void text_put_arguments(FILE *out, uint32_t kind, const uint64_t *arg, int first)
{
    const char *name = peet_event_args(kind);

    for (int i = 0; i < peet_event_arity(kind); i++) {
        size_t n = strcspn(name, " ");
        if (i >= first) {
            putc(' ', out);
            if (is_count(name, n) && !(kind == PEET_EV_set_register && i == 1))
                put_count(out, arg[i]);
            else
                text_put_hex(out, arg[i]);
        }
        name += n + (name[n] == ' ');
    }
}
