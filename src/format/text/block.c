/* SPDX-License-Identifier: MIT */
/* Reads the lines of a block: instructions with operands, computes, effects. Only the grammar is checked here; sources and
 * sizes are checked by the schema, as for all blocks. */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "format/text/def.h"
#include "format/text/put.h"

/* A sum in the text: base + index * 2^scale + add. */
struct sum {
    uint8_t base, index, scale; /* PEET_SRC_… of base and index; bits */
    int64_t add;
};

/* r0 …, s0 …, t0 …: 1; 0 when there is none; or an error. */
static int scan_source(struct text_scan *s, struct text_block_def *b, uint8_t *ret)
{
    static const struct {
        char letter;
        unsigned first, count;
    } KINDS[] = { { 'r', PEET_SRC_REGISTER, PEET_REGISTERS },
                  { 's', PEET_SRC_SLOT, PEET_SLOTS },
                  { 't', PEET_SRC_TEMP, PEET_TEMPS } };
    uint64_t n;

    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        if (!text_scan_name(s, KINDS[i].letter, &n))
            continue;
        if (n >= KINDS[i].count)
            return text_scan_wrong(s, "%c%" PRIu64 " found, %c0 to %c%u expected", KINDS[i].letter, n, KINDS[i].letter,
                                   KINDS[i].letter, KINDS[i].count - 1);
        *ret = (uint8_t)(KINDS[i].first + n);
        if (KINDS[i].letter == 's' && n >= b->used)
            b->used = (unsigned)n + 1;
        return 1;
    }
    return 0;
}

static int need_source(struct text_scan *s, struct text_block_def *b, uint8_t *ret)
{
    int r = scan_source(s, b, ret);

    if (r == 0 && text_scan_take(s, "0")) {
        *ret = PEET_SRC_ZERO;
        return 0;
    }
    return r < 0 ? r : r ? 0 : text_scan_expected(s, "a source (r0, s0, t0 or 0)");
}

/* Reads "*8" after a source: 1 and the power of two; 0: there is none; or an error. */
static int scan_scale(struct text_scan *s, uint8_t *ret)
{
    uint64_t factor;

    if (!text_scan_take(s, "*"))
        return 0;
    int r = text_scan_number(s, UINT64_MAX, "a factor", &factor);
    if (r < 0)
        return r;
    if (factor == 0 || factor & (factor - 1))
        return text_scan_wrong(s, "the factor %" PRIu64 " found, a power of two expected", factor);
    *ret = (uint8_t)__builtin_ctzll(factor);
    return 1;
}

/* Reads a term of a sum, after its sign. */
static int scan_term(struct text_scan *s, struct text_block_def *b, bool negative, struct sum *sum)
{
    uint8_t src, scale = 0;
    uint64_t v;
    int r = negative ? 0 : scan_source(s, b, &src);

    if (r < 0)
        return r;
    if (r == 0) {
        if ((r = text_scan_number(s, UINT64_MAX, negative ? "a number" : "a source or a number", &v)) == 0)
            sum->add = (int64_t)((uint64_t)sum->add + (negative ? -v : v));
        return r;
    }
    if ((r = scan_scale(s, &scale)) < 0)
        return r;
    if (r == 0 && !sum->base && !sum->index) {
        sum->base = src;
    } else if (!sum->index) {
        sum->index = src;
        sum->scale = scale;
    } else {
        return text_scan_wrong(s,
                               "a third source found in a sum, at most two expected, of which one may have a factor");
    }
    return 0;
}

static int scan_sum(struct text_scan *s, struct text_block_def *b, struct sum *ret)
{
    struct sum sum = { 0 };
    bool negative = text_scan_take(s, "-");
    int r;

    for (;;) {
        if ((r = scan_term(s, b, negative, &sum)) < 0)
            return r;
        negative = text_scan_take(s, "-");
        if (!negative && !text_scan_take(s, "+"))
            break;
    }
    *ret = sum;
    return 0;
}

/* ---- lines ---- */

int text_block_begin(struct text_scan *s, struct text_block_def *b)
{
    uint64_t slots;
    int r;

    b->insns = b->operands = b->computes = b->effects = 0;
    b->slots = b->used = 0;
    b->line = s->line;
    if (!text_scan_name(s, 'b', &b->name))
        return text_scan_expected(s, "a block's name (b1)");
    b->slots_said = text_scan_take(s, "slots");
    if (b->slots_said) {
        if ((r = text_scan_number(s, PEET_SLOTS, "the number of slots", &slots)) < 0)
            return r;
        b->slots = (unsigned)slots;
    }
    return text_scan_end(s);
}

/* Skips the next word, if it is one of n names, and returns its index; -1: it is none of them. */
static int scan_word_of(struct text_scan *s, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text_scan_take(s, names[i]))
            return (int)i;
    return -1;
}

/* "if s2.5", "value s3", "down", in any order. */
static int scan_modifiers(struct text_scan *s, struct text_block_def *b, struct peet_operand *o)
{
    uint64_t bit;
    int r = 0;

    while (r == 0) {
        if (text_scan_take(s, "down")) {
            o->down = 1;
        } else if (text_scan_take(s, "if")) {
            if ((r = need_source(s, b, &o->predicate)) == 0 && (r = text_scan_need(s, ".")) == 0
                && (r = text_scan_number(s, 63, "a bit's number", &bit)) == 0)
                o->predicate_bit = (uint8_t)bit;
        } else if (text_scan_take(s, "value")) {
            if ((r = need_source(s, b, &o->value)) == 0 && o->value >= PEET_SRC_SLOT && o->value < PEET_SRC_TEMP) {
                uint64_t end = o->value - PEET_SRC_SLOT + ((uint64_t)o->size + 7) / 8;
                b->used = end > b->used ? (unsigned)end : b->used;
            }
        } else {
            break;
        }
    }
    return r;
}

static int scan_operand(struct text_scan *s, struct text_block_def *b)
{
    static const char *const KINDS[] = { "load", "store", "update", "prefetch" };
    struct peet_operand o = { .insn = (uint16_t)(b->insns - 1) };
    struct sum sum;
    uint64_t size;
    int r, kind = scan_word_of(s, KINDS, sizeof KINDS / sizeof *KINDS);

    if (kind < 0)
        return text_scan_expected(s, "load, store, update or prefetch");
    if (b->operands == BLOCK_MAX_OPERANDS)
        return text_scan_wrong(s, "block b%" PRIu64 " has more than %d operands", b->name, BLOCK_MAX_OPERANDS);
    o.kind = (uint8_t)(PEET_LOAD + kind);
    if ((r = text_scan_number(s, PEET_MAX_SIZE, "a size in bytes", &size)) < 0)
        return r;
    o.size = (uint32_t)size;
    if (text_scan_take(s, "*") && (r = need_source(s, b, &o.size_src)) < 0)
        return r;
    if ((r = text_scan_need(s, "[")) < 0 || (r = scan_sum(s, b, &sum)) < 0 || (r = text_scan_need(s, "]")) < 0)
        return r;
    o.base = sum.base;
    o.index = sum.index;
    o.scale = sum.scale;
    o.disp = sum.add;
    if ((r = scan_modifiers(s, b, &o)) < 0)
        return r;
    b->operand[b->operands++] = o;
    return 0;
}

static int scan_flags(struct text_scan *s, struct peet_insn *in)
{
    uint64_t flags;
    int flag;

    while ((flag = scan_word_of(s, TEXT_FLAG_NAMES, TEXT_FLAG_COUNT)) >= 0)
        in->flags = (uint16_t)(in->flags | 1u << flag);
    if (text_scan_take(s, "flags")) {
        int r = text_scan_number(s, UINT16_MAX, "flags", &flags);
        if (r < 0)
            return r;
        in->flags = (uint16_t)(in->flags | flags);
    }
    return 0;
}

static int insn_line(struct text_scan *s, struct text_block_def *b)
{
    struct peet_insn in = { 0 };
    uint64_t length;
    int r, class;

    if (b->insns == BLOCK_MAX_INSNS)
        return text_scan_wrong(s, "block b%" PRIu64 " has more than %d instructions", b->name, BLOCK_MAX_INSNS);
    if ((r = text_scan_number(s, UINT64_MAX, "an address", &in.addr)) < 0
        || (r = text_scan_number(s, UINT16_MAX, "an instruction's length", &length)) < 0)
        return r;
    in.length = (uint16_t)length;
    if ((class = scan_word_of(s, TEXT_CLASS_NAMES, PEET_CLASS_COUNT)) < 0)
        return text_scan_expected(s, "an instruction's class (plain, branch, call ...)");
    in.class = (uint8_t) class;
    if ((r = scan_flags(s, &in)) < 0)
        return r;
    if (text_scan_take(s, "->") && (r = text_scan_number(s, UINT64_MAX, "a target address", &in.target)) < 0)
        return r;
    b->insn[b->insns++] = in;
    while (text_scan_take(s, ","))
        if ((r = scan_operand(s, b)) < 0)
            return r;
    return text_scan_at_end(s) ? 0 : text_scan_expected(s, "a flag, '->', ',' or the end of the line");
}

/* Reads the rest of "t0 = and s0 0xff", after its name. */
static int compute_line(struct text_scan *s, struct text_block_def *b, uint64_t number)
{
    struct peet_compute c = { .width = 8 };
    struct sum sum;
    uint64_t width;
    int r, op;

    if (b->computes == PEET_TEMPS)
        return text_scan_wrong(s, "block b%" PRIu64 " has more than %d computes", b->name, PEET_TEMPS);
    if (number != b->computes)
        return text_scan_wrong(s, "t%" PRIu64 " found, t%u expected: temporaries are defined in order", number,
                               b->computes);
    if ((r = text_scan_need(s, "=")) < 0)
        return r;
    if ((op = scan_word_of(s, TEXT_OP_NAMES, PEET_OP_COUNT)) < 0)
        return text_scan_expected(s, "an operation (add, sub, and, shl ...)");
    if ((r = need_source(s, b, &c.a)) < 0 || (r = scan_sum(s, b, &sum)) < 0)
        return r;
    if (sum.base && sum.index)
        return text_scan_wrong(s, "two sources found in the second operand, one expected");
    c.op = (uint8_t)op;
    c.b = sum.base ? sum.base : sum.index;
    c.shift = sum.scale;
    c.imm = sum.add;
    if (text_scan_take(s, "width")) {
        if ((r = text_scan_number(s, UINT8_MAX, "a width", &width)) < 0)
            return r;
        c.width = (uint8_t)width;
    }
    b->compute[b->computes++] = c;
    return text_scan_end(s);
}

/* Reads the rest of "r0 = r0-32", after its name. */
static int effect_line(struct text_scan *s, struct text_block_def *b, uint64_t reg)
{
    struct sum sum;
    int r = text_scan_need(s, "=");

    if (r < 0 || (r = scan_sum(s, b, &sum)) < 0)
        return r;
    if (reg >= PEET_REGISTERS)
        return text_scan_wrong(s, "r%" PRIu64 " found, r0 to r%d expected", reg, PEET_REGISTERS - 1);
    if (sum.index)
        return text_scan_wrong(s, "a factor or two sources found, a source and a number expected");
    if (b->effects == UINT16_MAX)
        return text_scan_wrong(s, "block b%" PRIu64 " has more than %d effects", b->name, UINT16_MAX);
    b->effect[b->effects++] = (struct peet_effect){ sum.add, (uint8_t)reg, sum.base };
    return text_scan_end(s);
}

int text_block_line(struct text_scan *s, struct text_block_def *b)
{
    uint64_t n;
    int r;

    if (text_scan_is_digit(s) && s->at[0] == '0' && s->at[1] == 'x')
        r = insn_line(s, b);
    else if (text_scan_name(s, 't', &n))
        r = compute_line(s, b, n);
    else if (text_scan_name(s, 'r', &n))
        r = effect_line(s, b, n);
    else
        return 0;
    return r < 0 ? r : 1;
}

int text_block_end(struct text_scan *s, const struct text_block_def *b, struct peet_block *ret)
{
    if (b->slots_said && b->used > b->slots)
        return err_set(s->err, PEET_ERR_FORMAT,
                       "%s:%" PRIu64 ": block b%" PRIu64 " uses s%u, but says that it has %u slots", s->name, b->line,
                       b->name, b->used - 1, b->slots);
    *ret = (struct peet_block){
        .insns = b->insns,
        .operands = b->operands,
        .computes = b->computes,
        .effects = b->effects,
        .slots = (uint16_t)(b->slots_said ? b->slots : b->used),
        .insn = b->insn,
        .operand = b->operand,
        .compute = b->compute,
        .effect = b->effect,
    };
    return 0;
}
