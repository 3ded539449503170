/* SPDX-License-Identifier: MIT */
/* Made-up programs for tests and benchmarks of the trace format: a random schema, and threads that execute it at random.
 *
 * Everything follows from a seed, so that a reader can be compared with a second run of the generator instead of with
 * stored data. The oracle, synthetic_expand, evaluates definitions in the slow and obvious way and shares no code with
 * the library. */
#ifndef TESTS_SYNTHETIC_H
#define TESTS_SYNTHETIC_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "peet/trace.h"

enum { SYN_BLOCKS = 200, SYN_LOOPS = 12, SYN_EVENTS = 60, SYN_OPERANDS = 8, SYN_RECORDS = 40000 };

/* How addresses move: the mix makes a stream easy or hard to foresee. */
struct synthetic_style {
    unsigned regular; /* of 16 slots, how many step by a constant */
    unsigned wander;  /* of 256 items, how many do not take their usual successor */
    unsigned loops;   /* of 4096 items, how many are summarised loops */
    unsigned events;  /* and how many are events */
    bool plain;       /* blocks have no registers, computes, predicates and element counts */
};

static const struct synthetic_style SYN_TYPICAL = { .regular = 13, .wander = 24, .loops = 8, .events = 8 };
static const struct synthetic_style SYN_RANDOM = { .regular = 0, .wander = 256, .loops = 8, .events = 100 };

struct synthetic_block {
    struct peet_block def;
    struct peet_insn insn[SYN_OPERANDS + 1];
    struct peet_operand operand[SYN_OPERANDS];
    struct peet_compute compute[4];
    struct peet_effect effect[2];
    uint32_t item;
    unsigned next;               /* the usual successor */
    uint8_t regular[PEET_SLOTS]; /* per slot: it steps by a constant */
    int64_t stride[PEET_SLOTS];
    uint64_t base[PEET_SLOTS];
};

struct synthetic_loop {
    struct peet_loop def;
    struct peet_loop_node node[4];
    struct peet_assign assign[4][PEET_SLOTS];
    unsigned block[2]; /* of the outer and the inner body */
    uint32_t item;
};

struct synthetic {
    struct synthetic_style style;
    uint64_t seed;
    struct synthetic_block block[SYN_BLOCKS];
    struct synthetic_loop loop[SYN_LOOPS];
    struct {
        uint32_t kind;
        uint64_t site;
        uint32_t item;
    } event[SYN_EVENTS];
    uint32_t set_register;
};

struct synthetic_thread {
    const struct synthetic *s;
    uint64_t random;
    unsigned now;
    uint64_t reg[PEET_REGISTERS];
    uint64_t last[SYN_BLOCKS][PEET_SLOTS];
};

static inline uint64_t synthetic_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline unsigned synthetic_below(uint64_t *state, unsigned n)
{
    return (unsigned)(synthetic_random(state) % n);
}

static inline uint8_t synthetic_source(uint64_t *r, const struct peet_block *b, unsigned temps, bool plain)
{
    unsigned k = synthetic_below(r, plain ? 2 : 4);
    if (k < 2 && b->slots)
        return (uint8_t)(PEET_SRC_SLOT + synthetic_below(r, b->slots));
    if (k == 2 && temps)
        return (uint8_t)(PEET_SRC_TEMP + synthetic_below(r, temps));
    return plain ? PEET_SRC_ZERO : (uint8_t)(PEET_SRC_REGISTER + synthetic_below(r, PEET_REGISTERS));
}

static inline void synthetic_operands(uint64_t *r, struct synthetic_block *b, bool plain)
{
    for (unsigned i = 0; i < b->def.operands; i++) {
        struct peet_operand *o = &b->operand[i];
        *o = (struct peet_operand){ .insn = (uint16_t)i,
                                    .kind = (uint8_t)(PEET_LOAD + synthetic_below(r, 4)),
                                    .size = 1u << synthetic_below(r, 7),
                                    .disp = (int64_t)synthetic_below(r, 4096) - 2048 };
        o->base = i < b->def.slots && (plain || synthetic_below(r, 4))
                      ? (uint8_t)(PEET_SRC_SLOT + i)
                      : synthetic_source(r, &b->def, b->def.computes, plain);
        if (!plain && synthetic_below(r, 4) == 0) {
            o->index = synthetic_source(r, &b->def, b->def.computes, plain);
            o->scale = (uint8_t)synthetic_below(r, 4);
        }
        if (!plain && b->def.slots > 4 && synthetic_below(r, 8) == 0) {
            o->predicate = (uint8_t)(PEET_SRC_SLOT + synthetic_below(r, b->def.slots));
            o->predicate_bit = (uint8_t)synthetic_below(r, 64);
        }
        if (!plain && b->def.slots == SYN_OPERANDS && synthetic_below(r, 4) == 0) {
            o->size_src = PEET_SRC_SLOT + SYN_OPERANDS - 1;
            o->size = 8;
            o->down = (uint8_t)synthetic_below(r, 2);
        } else if (!plain && b->def.slots >= 2 && o->size <= 8 && synthetic_below(r, 8) == 0) {
            o->value = PEET_SRC_SLOT + 1;
        }
    }
}

static inline void synthetic_machine(uint64_t *r, struct synthetic_block *b)
{
    b->def.computes = (uint16_t)synthetic_below(r, 4);
    for (unsigned i = 0; i < b->def.computes; i++) {
        b->compute[i] = (struct peet_compute){ .op = (uint8_t)synthetic_below(r, PEET_OP_COUNT),
                                               .imm = (int64_t)synthetic_random(r) >> synthetic_below(r, 63),
                                               .shift = (uint8_t)synthetic_below(r, 64),
                                               .width = synthetic_below(r, 2) ? 4 : 8 };
        b->compute[i].a = synthetic_source(r, &b->def, i, false);
        b->compute[i].b = synthetic_source(r, &b->def, i, false);
    }
    b->def.effects = (uint16_t)(synthetic_below(r, 3) == 0 ? 1 + synthetic_below(r, 2) : 0);
    for (unsigned i = 0; i < b->def.effects; i++)
        b->effect[i] = (struct peet_effect){ .add = (int64_t)synthetic_below(r, 256) - 128,
                                             .reg = (uint8_t)synthetic_below(r, PEET_REGISTERS),
                                             .src = synthetic_source(r, &b->def, b->def.computes, false) };
}

static inline void synthetic_block(uint64_t *r, struct synthetic *s, unsigned number, bool plain)
{
    struct synthetic_block *b = &s->block[number];
    uint64_t addr = 0x400000 + number * 64ul;

    b->def.slots = (uint16_t)synthetic_below(r, SYN_OPERANDS + 1);
    b->def.operands = (uint16_t)(plain ? b->def.slots : synthetic_below(r, SYN_OPERANDS + 1));
    b->def.insns = (uint16_t)(b->def.operands + 1);
    for (unsigned i = 0; i < b->def.insns; i++) {
        uint8_t length = (uint8_t)(1 + synthetic_below(r, 7));
        bool last = i + 1 == b->def.insns;
        b->insn[i] = (struct peet_insn){ .addr = addr,
                                         .length = length,
                                         .class = last ? PEET_CL_branch : PEET_CL_plain,
                                         .target = last ? 0x400000 + synthetic_below(r, SYN_BLOCKS) * 64ul : 0 };
        addr += length;
    }
    if (!plain)
        synthetic_machine(r, b);
    synthetic_operands(r, b, plain);
    b->def.insn = b->insn;
    b->def.operand = b->operand;
    b->def.compute = b->compute;
    b->def.effect = b->effect;
    b->next = synthetic_below(r, SYN_BLOCKS);
    for (unsigned i = 0; i < b->def.slots; i++) {
        b->regular[i] = synthetic_below(r, 16) < s->style.regular;
        b->stride[i] = (int64_t)synthetic_below(r, 17) * 8 - 64;
        b->base[i] = 0x7f0000000000 + (synthetic_random(r) & 0xfffffff8);
    }
}

/* Two nested loops over blocks without registers: outer block, inner block, inner step, outer step. */
static inline void synthetic_loop(uint64_t *r, struct synthetic *s, unsigned number)
{
    struct synthetic_loop *l = &s->loop[number];
    unsigned values = 3;

    for (int i = 0; i < 2; i++) {
        do
            l->block[i] = synthetic_below(r, SYN_BLOCKS / 2); /* the first half is plain */
        while (s->block[l->block[i]].def.slots == 0);
    }
    l->node[0] = (struct peet_loop_node){ .end = 4, .assigns = 2, .enters = 1, .counted = 1, .trips = 0 };
    l->assign[0][0] = (struct peet_assign){ 16, 2, PEET_LOOP_ZERO, 0 };
    l->assign[0][1] = (struct peet_assign){ 4096, 0, 0, 0 };
    l->node[1] = (struct peet_loop_node){ .block = 1 };
    l->node[2] = (struct peet_loop_node){ .end = 4,
                                          .assigns = 2,
                                          .enters = 1,
                                          .counted = number % 2 == 0,
                                          .trips = number % 2 == 0 ? 1 : synthetic_below(r, 9) };
    l->assign[2][0] = (struct peet_assign){ 8, 1, 0, 0 };
    l->assign[2][1] = (struct peet_assign){ 8 * (int64_t)(1 + synthetic_below(r, 4)), 1, 1, number % 3 ? 0 : 3 };
    l->node[3] = (struct peet_loop_node){ .block = 1 };
    for (int i = 0; i < 2; i++) {
        unsigned n = (unsigned)i * 2 + 1, slots = s->block[l->block[i]].def.slots;
        l->node[n].assigns = (uint16_t)slots;
        for (unsigned j = 0; j < slots; j++)
            l->assign[n][j] =
                (struct peet_assign){ (int64_t)j * 64, (uint8_t)j, (uint8_t)synthetic_below(r, values),
                                      (uint8_t)(synthetic_below(r, 3) ? 0 : 1 + synthetic_below(r, values)) };
    }
    for (int i = 0; i < 4; i++)
        l->node[i].assign = l->assign[i];
    l->def = (struct peet_loop){
        .values = (uint16_t)values, .counts = number % 2 == 0 ? 2 : 1, .nodes = 4, .node = l->node
    };
}

static inline struct synthetic *synthetic_new(uint64_t seed, const struct synthetic_style *style)
{
    struct synthetic *s = calloc(1, sizeof *s);
    uint64_t r = seed;

    if (!s)
        abort();
    s->style = *style;
    s->seed = seed;
    for (unsigned i = 0; i < SYN_BLOCKS; i++)
        synthetic_block(&r, s, i, style->plain || i < SYN_BLOCKS / 2);
    for (unsigned i = 0; i < SYN_LOOPS; i++)
        synthetic_loop(&r, s, i);
    for (unsigned i = 0; i < SYN_EVENTS; i++) {
        s->event[i].kind = i % (PEET_EV_set_register - 1);
        s->event[i].site = synthetic_below(&r, 2) ? 0x401000 + i * 16 : 0;
    }
    return s;
}

/* Defines everything in a trace. */
static inline int synthetic_define(struct synthetic *s, struct peet_writer *w, struct peet_err *err)
{
    int r = peet_writer_event(w, PEET_EV_set_register, 0, &s->set_register, err);

    for (unsigned i = 0; r == 0 && i < SYN_BLOCKS; i++)
        r = peet_writer_block(w, &s->block[i].def, &s->block[i].item, err);
    for (unsigned i = 0; r == 0 && i < SYN_LOOPS; i++) {
        for (int j = 0; j < 2; j++)
            s->loop[i].node[j * 2 + 1].block = s->block[s->loop[i].block[j]].item;
        r = peet_writer_loop(w, &s->loop[i].def, &s->loop[i].item, err);
    }
    for (unsigned i = 0; r == 0 && i < SYN_EVENTS; i++)
        r = peet_writer_event(w, s->event[i].kind, s->event[i].site, &s->event[i].item, err);
    return r;
}

static inline void synthetic_thread_init(struct synthetic_thread *t, const struct synthetic *s, uint32_t number)
{
    memset(t, 0, sizeof *t);
    t->s = s;
    t->random = s->seed * 31 + number * 0x1234567u + 1;
    for (unsigned i = 0; i < SYN_BLOCKS; i++)
        memcpy(t->last[i], s->block[i].base, sizeof t->last[i]);
}

/* What a thread executes next: kind 'b', 'l', 'e' or 'r', its index in the tables above, item and slots. */
struct synthetic_step {
    char kind;
    unsigned index;
    uint32_t item;
    unsigned slots;
    uint64_t slot[PEET_SLOTS];
    uint32_t s_kind; /* of an event: what the test compares */
    uint64_t s_site;
};

static inline void synthetic_next(struct synthetic_thread *t, struct synthetic_step *x)
{
    const struct synthetic *s = t->s;
    uint64_t *r = &t->random, dice = synthetic_random(r);
    unsigned rare = (unsigned)(dice >> 32 & 4095);

    if (rare < s->style.loops) {
        const struct synthetic_loop *l = &s->loop[x->index = (unsigned)(dice % SYN_LOOPS)];
        x->kind = 'l';
        x->item = l->item;
        x->slots = (unsigned)(l->def.values + l->def.counts);
        for (unsigned i = 0; i < l->def.values; i++)
            x->slot[i] = 0x600000 + (synthetic_random(r) & 0xfff8);
        for (unsigned i = 0; i < l->def.counts; i++)
            x->slot[l->def.values + i] = synthetic_below(r, 20);
    } else if (rare < s->style.loops + s->style.events) {
        x->index = (unsigned)(dice % SYN_EVENTS);
        x->kind = 'e';
        x->item = s->event[x->index].item;
        x->slots = (unsigned)peet_event_arity(s->event[x->index].kind);
        for (unsigned i = 0; i < x->slots; i++)
            x->slot[i] = synthetic_random(r) >> (dice >> 44 & 63);
    } else if (rare == 4095 && !s->style.plain) {
        x->kind = 'r';
        x->item = s->set_register;
        x->slots = 2;
        x->slot[0] = synthetic_below(r, PEET_REGISTERS);
        x->slot[1] = synthetic_random(r);
    } else {
        t->now = (dice & 255) < s->style.wander ? (unsigned)(dice >> 8 & 0xffff) % SYN_BLOCKS : s->block[t->now].next;
        const struct synthetic_block *b = &s->block[x->index = t->now];
        x->kind = 'b';
        x->item = b->item;
        x->slots = b->def.slots;
        for (unsigned i = 0; i < x->slots; i++) {
            uint64_t *last = &t->last[t->now][i];
            *last = b->regular[i] ? *last + (uint64_t)b->stride[i] : b->base[i] + (synthetic_random(r) & 0x3fffffff);
            x->slot[i] = *last;
        }
        if (x->slots == SYN_OPERANDS && !s->style.plain)
            x->slot[SYN_OPERANDS - 1] &= (dice >> 50 & 7) ? 0x7f : 0x3ffffff; /* it serves as element count */
    }
}

/* ---- the oracle ---- */

static inline uint64_t synthetic_value(const struct synthetic_thread *t, const uint64_t *slot, const uint64_t *temp,
                                       unsigned src)
{
    if (src == 0)
        return 0;
    if (src < PEET_SRC_SLOT)
        return t->reg[src - PEET_SRC_REGISTER];
    return src < PEET_SRC_TEMP ? slot[src - PEET_SRC_SLOT] : temp[src - PEET_SRC_TEMP];
}

static inline uint64_t synthetic_compute(const struct peet_compute *c, uint64_t a, uint64_t b)
{
    bool narrow = c->width == 4;
    uint64_t x = narrow ? (uint32_t)a : a, second = narrow ? (uint32_t)b : b, y = second + (uint64_t)c->imm, v = 0;
    unsigned bits = narrow ? 32 : 64, by = (unsigned)(y % bits);

    switch (c->op) {
    case PEET_OP_add: v = x + (second << c->shift) + (uint64_t)c->imm; break;
    case PEET_OP_sub: v = x - y; break;
    case PEET_OP_mul: v = x * y; break;
    case PEET_OP_and: v = x & y; break;
    case PEET_OP_or: v = x | y; break;
    case PEET_OP_xor: v = x ^ y; break;
    case PEET_OP_shl: v = x << by; break;
    case PEET_OP_shr: v = x >> by; break;
    case PEET_OP_sar:
        v = x >> by;
        if (x >> (bits - 1) & 1)
            for (unsigned i = bits - by; i < bits; i++)
                v |= (uint64_t)1 << i;
        break;
    case PEET_OP_sext:
    case PEET_OP_zext:
        v = x;
        for (unsigned i = by; by && i < 64; i++) {
            uint64_t bit = c->op == PEET_OP_sext ? x >> (by - 1) & 1 : 0;
            v = (v & ~((uint64_t)1 << i)) | bit << i;
        }
        break;
    default: abort();
    }
    return narrow ? (uint32_t)v : v;
}

static inline size_t synthetic_run_block(struct synthetic_thread *t, const struct peet_trace *trace,
                                         const struct synthetic_block *b, const uint64_t *slot, struct peet_record *out)
{
    uint64_t temp[4];
    size_t n = 0;
    uint32_t first = peet_trace_block(trace, b->item)->first_insn;

    for (unsigned i = 0; i < b->def.computes; i++)
        temp[i] = synthetic_compute(&b->compute[i], synthetic_value(t, slot, temp, b->compute[i].a),
                                    synthetic_value(t, slot, temp, b->compute[i].b));
    out[n++] = (struct peet_record){ .addr = b->insn[0].addr, .id = b->item, .size = b->def.insns, .kind = PEET_BLOCK };
    for (unsigned i = 0; i < b->def.operands; i++) {
        const struct peet_operand *o = &b->operand[i];
        uint64_t addr = synthetic_value(t, slot, temp, o->base) + (synthetic_value(t, slot, temp, o->index) << o->scale)
                        + (uint64_t)o->disp;
        uint64_t bytes = o->size_src ? o->size * synthetic_value(t, slot, temp, o->size_src) : o->size;
        if (o->predicate && !(synthetic_value(t, slot, temp, o->predicate) >> o->predicate_bit & 1))
            bytes = 0;
        if (o->down && bytes)
            addr = addr + o->size - bytes;
        for (uint64_t done = 0; done < bytes; done += PEET_MAX_SIZE) {
            uint64_t left = bytes - done;
            out[n++] = (struct peet_record){ .addr = addr + done,
                                             .id = first + o->insn,
                                             .size = (left < PEET_MAX_SIZE ? left : PEET_MAX_SIZE) & PEET_MAX_SIZE,
                                             .kind = o->kind };
        }
    }
    for (unsigned i = 0; i < b->def.effects; i++)
        t->reg[b->effect[i].reg] = synthetic_value(t, slot, temp, b->effect[i].src) + (uint64_t)b->effect[i].add;
    return n;
}

static inline size_t synthetic_run_loop(struct synthetic_thread *t, const struct peet_trace *trace,
                                        const struct synthetic_loop *l, const uint64_t *words, struct peet_record *out)
{
    uint64_t value[3], slot[PEET_SLOTS];
    const uint64_t *count = words + l->def.values;
    size_t n = 0;

    memcpy(value, words, sizeof value);
    value[2] = 16;
    for (uint64_t i = 0; i < count[0]; i++) {
        for (int body = 0; body < 2; body++) {
            const struct synthetic_block *b = &t->s->block[l->block[body]];
            uint64_t trips = body == 0 ? 1 : l->node[2].counted ? count[1] : l->node[2].trips;
            if (body)
                value[1] = value[0] + 8;
            for (uint64_t j = 0; j < trips; j++) {
                const struct peet_assign *a = l->assign[body * 2 + 1];
                for (unsigned k = 0; k < b->def.slots; k++)
                    slot[k] = value[a[k].src] + (a[k].plus ? value[a[k].plus - 1] : 0) + (uint64_t)a[k].add;
                n += synthetic_run_block(t, trace, b, slot, out + n);
                if (body)
                    value[1] += (uint64_t)l->assign[2][1].add + (l->assign[2][1].plus ? value[2] : 0);
            }
        }
        value[0] += 4096;
    }
    return n;
}

/* The records of one step; events are compared by the caller. out has room for SYN_RECORDS. */
static inline size_t synthetic_expand(struct synthetic_thread *t, const struct peet_trace *trace,
                                      const struct synthetic_step *x, struct peet_record *out)
{
    switch (x->kind) {
    case 'b': return synthetic_run_block(t, trace, &t->s->block[x->index], x->slot, out);
    case 'l': return synthetic_run_loop(t, trace, &t->s->loop[x->index], x->slot, out);
    case 'r': t->reg[x->slot[0]] = x->slot[1]; return 0;
    default: out[0] = (struct peet_record){ .addr = x->slots ? x->slot[0] : 0, .kind = PEET_EVENT }; return 1;
    }
}

#endif
