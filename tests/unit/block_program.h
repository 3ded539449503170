/* SPDX-License-Identifier: MIT */
/* Random programs for tests of the block engine, as traces: blocks of all kinds, loops, and events that name and move data. A program uses few bytes,
 * so that small caches have some of its lines. */
#ifndef TESTS_UNIT_BLOCK_PROGRAM_H
#define TESTS_UNIT_BLOCK_PROGRAM_H

#include "peet/trace.h"
#include "tests/unit/check.h"
#include "tests/unit/random.h"

enum { BLOCKS = 24, LOOPS = 16, NODES = 8, VALUES = 5, OPERANDS = 100, INSNS = 6, SLOTS = 6, TEMPS = 4, ITEMS = 260 };
enum { NEAT = 4 }; /* the first blocks, and the first loops, which are made of them */
#define HOME UINT64_C(0x100000)
#define FAR UINT64_C(0x7f0000000000)

/* ---- programs ---- */

/* What a block may have. Those of the first two kinds may stand in loops. */
enum style { PLAIN, COMPUTES, CHANGES, VARIES, MANY, STYLES };

struct program {
    uint64_t random;
    struct peet_writer *w;
    uint32_t block[BLOCKS], loop[LOOPS], event[PEET_EVENT_KINDS], name;
    enum style style[BLOCKS];
    uint8_t end[BLOCKS]; /* the class of its last instruction */
    unsigned slots[BLOCKS], values[LOOPS];
    uint64_t last[BLOCKS][SLOTS]; /* slots of its last execution */
    uint64_t next_insn;           /* address of the next block; blocks are contiguous, so that calls return to them */
    uint64_t size;                /* bytes that are used most */
};

/* Slots, registers and temporaries with even numbers have addresses, others small numbers. */
static inline uint8_t source_of(struct program *p, unsigned slots, unsigned temps, bool is_number)
{
    unsigned odd = is_number;

    switch (draw(&p->random, 4)) {
    case 0:
        if (temps > odd)
            return (uint8_t)(PEET_SRC_TEMP + draw(&p->random, (temps + 1 - odd) / 2) * 2 + odd);
        break;
    case 1: return (uint8_t)(PEET_SRC_REGISTER + draw(&p->random, 3) * 2 + odd);
    default: break;
    }
    if (slots > odd)
        return (uint8_t)(PEET_SRC_SLOT + draw(&p->random, (slots + 1 - odd) / 2) * 2 + odd);
    return (uint8_t)(PEET_SRC_REGISTER + odd);
}

static inline struct peet_operand random_operand(struct program *p, const struct peet_block *b, enum style style)
{
    uint64_t *r = &p->random;
    struct peet_operand o = { .kind = (uint8_t)(PEET_LOAD + (draw(r, 2) ? 0 : draw(r, 4))),
                              .size = draw(r, 40) ? 1u << draw(r, 5) : 1 + (unsigned)draw(r, 300),
                              .disp = (int64_t)draw(r, draw(r, 3) ? 48 : 600) - 16 };

    o.disp &= draw(r, 3) ? ~INT64_C(15) : ~INT64_C(0);
    o.base = source_of(p, b->slots, b->computes, false);
    if (draw(r, 6) == 0) {
        o.index = source_of(p, b->slots, b->computes, true);
        o.scale = (uint8_t)draw(r, 4);
    }
    if (style != VARIES)
        return o;
    if (draw(r, 2)) {
        o.predicate = source_of(p, b->slots, b->computes, true);
        o.predicate_bit = (uint8_t)draw(r, 6);
    }
    if (draw(r, 3) == 0) {
        o.size_src = source_of(p, b->slots, b->computes, true);
        o.down = draw(r, 2) != 0;
    }
    return o;
}

/* One that is never in two lines, and alone with its base. */
static inline void neaten(struct peet_operand *o, unsigned number)
{
    o->size = 8;
    o->disp = 0;
    o->index = 0;
    o->base = (uint8_t)(PEET_SRC_SLOT + number % 3 * 2);
}

static inline void random_machine_code(struct program *p, struct peet_block *b, struct peet_compute *compute,
                                       struct peet_effect *effect, bool changes)
{
    uint64_t *r = &p->random;

    for (unsigned i = 0; i < TEMPS; i++) { /* an address, then a number, and so on */
        compute[i] = (struct peet_compute){ .op = i % 2 ? PEET_OP_and : PEET_OP_add, .width = 8 };
        compute[i].a = source_of(p, b->slots, i, i % 2);
        compute[i].b = i % 2 ? PEET_SRC_ZERO : source_of(p, b->slots, i, true);
        compute[i].imm = i % 2 ? 63 : (int64_t)draw(r, 100) - 50;
        compute[i].shift = i % 2 ? 0 : (uint8_t)draw(r, 4);
        b->computes++;
    }
    for (unsigned i = 0; changes && i < 2; i++) {
        effect[i] = (struct peet_effect){ .reg = (uint8_t)(draw(r, 3) * 2 + i) };
        effect[i].src = source_of(p, b->slots, b->computes, i);
        effect[i].add = i ? 0 : (int64_t)draw(r, 64) - 32;
        b->effects++;
    }
}

static inline void define_block(struct program *p, unsigned number)
{
    static const uint8_t ENDS[] = { PEET_CL_branch, PEET_CL_jump,   PEET_CL_branch, PEET_CL_call,         PEET_CL_plain,
                                    PEET_CL_branch, PEET_CL_return, PEET_CL_branch, PEET_CL_call_indirect };
    uint64_t *r = &p->random;
    enum style style = number < 8 ? PLAIN : number < 10 ? MANY : (enum style)draw(r, MANY);
    struct peet_insn insn[INSNS];
    struct peet_operand operand[OPERANDS];
    struct peet_compute compute[TEMPS];
    struct peet_effect effect[2];
    struct peet_block b = { .insn = insn, .operand = operand, .compute = compute, .effect = effect };
    struct peet_err err;

    p->style[number] = style;
    b.slots = (uint16_t)(p->slots[number] = number < NEAT ? SLOTS : (unsigned)draw(r, SLOTS + 1));
    b.insns = (uint16_t)(1 + draw(r, INSNS));
    b.operands = (uint16_t)(style == MANY ? 30 + draw(r, OPERANDS - 30) : number < NEAT ? 1 + draw(r, 3) : draw(r, 6));
    for (unsigned i = 0; i < b.insns; i++) {
        insn[i] = (struct peet_insn){ .addr = p->next_insn, .length = 4, .class = (uint8_t)draw(r, PEET_CL_branch) };
        p->next_insn += 4;
    }
    insn[b.insns - 1].class = p->end[number] = ENDS[number < 4 ? 0 : draw(r, sizeof ENDS)];
    if (style == COMPUTES || style == CHANGES || (style == VARIES && draw(r, 2)))
        random_machine_code(p, &b, compute, effect, style != COMPUTES);
    for (unsigned i = 0; i < b.operands; i++) {
        operand[i] = random_operand(p, &b, style);
        if (number < NEAT)
            neaten(&operand[i], i);
        operand[i].insn = (uint16_t)(i * b.insns / b.operands);
    }
    CHECK_EQ(peet_writer_block(p->w, &b, &p->block[number], &err), 0);
}

/* A block of a loop: its slots, from the loop's values, the last of which is a number. */
static inline struct peet_loop_node block_node(struct program *p, unsigned values, unsigned most,
                                               struct peet_assign *assign)
{
    uint64_t *r = &p->random;
    unsigned block;

    do
        block = (unsigned)draw(r, most);
    while (p->style[block] == CHANGES || p->style[block] == VARIES);
    for (unsigned i = 0; i < p->slots[block]; i++) {
        assign[i] = (struct peet_assign){ .dst = (uint8_t)i, .src = (uint8_t)draw(r, values - 1) };
        assign[i].add = (int64_t)(draw(r, 2) ? 0 : draw(r, 100)) & (most == NEAT ? ~7 : ~0);
        if (i % 2)
            assign[i].src = draw(r, 3) ? PEET_LOOP_ZERO : (uint8_t)(values - 1);
        else if (most == BLOCKS && draw(r, 4) == 0)
            assign[i].plus = (uint8_t)values;
    }
    return (struct peet_loop_node){ .block = p->block[block], .assigns = (uint16_t)p->slots[block], .assign = assign };
}

static inline struct peet_loop_node loop_node(struct program *p, unsigned values, unsigned end, unsigned count,
                                              struct peet_assign *assign)
{
    static const int64_t STEPS[] = { 0,   0,    1,   4,    4,    8,   8,   8,   16,   24,    32,   48,
                                     64,  100,  128, 144,  -4,   -8,  -8,  -24, -32,  -64,   -100, -128,
                                     512, 1024, 520, -512, 4096, 328, 264, -72, 1000, -1000, 36,   2048 };
    uint64_t *r = &p->random;
    struct peet_loop_node n = { .end = (uint16_t)end, .assign = assign, .counted = draw(r, 4) != 0, .trips = count };

    if (!n.counted)
        n.trips = draw(r, 12);
    if (draw(r, 3) == 0) {
        assign[n.assigns++] =
            (struct peet_assign){ .dst = (uint8_t)draw(r, values - 1), .src = (uint8_t)draw(r, values - 1), .add = 8 };
        n.enters++;
    }
    for (unsigned i = 0; i + 1 < values; i++) {
        struct peet_assign *a = &assign[n.assigns++];
        *a = (struct peet_assign){ .dst = (uint8_t)i, .src = (uint8_t)i };
        a->add = STEPS[draw(r, sizeof STEPS / sizeof *STEPS)];
        if (draw(r, 10) == 0)
            a->plus = (uint8_t)values;
        if (draw(r, 30) == 0)
            a->src = (uint8_t)draw(r, values - 1);
    }
    return n;
}

/* One loop, or two inside each other, over a few blocks. */
static inline void define_loop(struct program *p, unsigned number)
{
    struct peet_assign assign[NODES][VALUES + SLOTS];
    struct peet_loop_node node[NODES];
    unsigned values = 2 + (unsigned)draw(&p->random, VALUES - 1), most = number < NEAT ? NEAT
                                                                         : number < 10 ? 8
                                                                         : number < 12 ? 10
                                                                                       : BLOCKS;
    unsigned nodes = 2 + (unsigned)draw(&p->random, 3), inner = number % 3 == 2 ? nodes : 0;
    struct peet_loop l = { .values = (uint16_t)values, .counts = 2, .node = node };
    struct peet_err err;

    p->values[number] = values;
    for (unsigned i = 1; i < nodes; i++)
        node[i] = block_node(p, values, most, assign[i]);
    if (inner) {
        unsigned end = inner + 2 + (unsigned)draw(&p->random, 2);
        node[inner] = loop_node(p, values, end, 1, assign[inner]);
        for (nodes = inner + 1; nodes < end; nodes++)
            node[nodes] = block_node(p, values, most, assign[nodes]);
        if (draw(&p->random, 2) && nodes < NODES) {
            node[nodes] = block_node(p, values, most, assign[nodes]);
            nodes++;
        }
    }
    node[0] = loop_node(p, values, nodes, 0, assign[0]);
    l.nodes = (uint16_t)nodes;
    CHECK_EQ(peet_writer_loop(p->w, &l, &p->loop[number], &err), 0);
}

static inline void define(struct program *p)
{
    struct peet_err err;

    p->next_insn = 0x401000;
    p->size = draw(&p->random, 2) ? 1024 : 6000;
    for (unsigned i = 0; i < BLOCKS; i++)
        define_block(p, i);
    for (unsigned i = 0; i < LOOPS; i++)
        define_loop(p, i);
    for (uint32_t i = 0; i < PEET_EVENT_KINDS; i++)
        CHECK_EQ(peet_writer_event(p->w, i, 0x402000 + 16 * i, &p->event[i], &err), 0);
    CHECK_EQ(peet_writer_string(p->w, "named", &p->name, &err), 0);
}

static inline uint64_t random_addr(struct program *p)
{
    uint64_t addr = draw(&p->random, 12) ? HOME + draw(&p->random, p->size) : FAR + draw(&p->random, 1 << 18);

    return draw(&p->random, 3) ? addr & ~UINT64_C(7) : addr;
}

/* ---- threads ---- */

static inline void put(struct peet_stream *s, uint32_t item, const uint64_t *slots)
{
    struct peet_err err;

    if (!CHECK_EQ(peet_stream_put(s, item, slots, &err), 0))
        printf("# %s\n", err.text);
}

static inline void put_block(struct program *p, struct peet_stream *s, unsigned block)
{
    uint64_t *slot = p->last[block];

    for (unsigned i = 0; i < SLOTS; i++)
        if (i % 2)
            slot[i] = draw(&p->random, 64);
        else
            slot[i] = slot[i] && draw(&p->random, 5) ? slot[i] + draw(&p->random, 3) * 8 : random_addr(p);
    put(s, p->block[block], slot);
}

static inline void put_loop(struct program *p, struct peet_stream *s, unsigned loop)
{
    uint64_t slot[VALUES + 2];
    unsigned n = p->values[loop];

    for (unsigned i = 0; i + 1 < n; i++)
        slot[i] = random_addr(p) & (loop < NEAT ? ~UINT64_C(7) : ~UINT64_C(0));
    slot[n - 1] = draw(&p->random, 64) & (loop < NEAT ? ~UINT64_C(7) : ~UINT64_C(0));
    slot[n] = draw(&p->random, draw(&p->random, 8) ? 24 : 100);
    slot[n + 1] = draw(&p->random, 12);
    put(s, p->loop[loop], slot);
}

/* Data get other names, move, and are moved by others. */
static inline void put_event(struct program *p, struct peet_stream *s)
{
    uint64_t *r = &p->random, block = HOME + draw(r, 8) * (p->size / 8), at = random_addr(p), to = random_addr(p);
    uint64_t size = draw(r, p->size / 4), lock = HOME + draw(r, 4) * 64;

    switch (draw(r, 9)) {
    case 0: put(s, p->event[PEET_EV_name_data], (uint64_t[]){ p->name, block + draw(r, 40), 100 }); break;
    case 1: put(s, p->event[PEET_EV_malloc], (uint64_t[]){ block, 1 + draw(r, p->size / 8) }); break;
    case 2: put(s, p->event[PEET_EV_free], &block); break;
    case 3: put(s, p->event[PEET_EV_range_copy], (uint64_t[]){ at, to, size }); break;
    case 4: put(s, p->event[PEET_EV_range_write], (uint64_t[]){ at, size }); break;
    case 5: put(s, p->event[PEET_EV_realloc], (uint64_t[]){ block, block, 1 + draw(r, p->size / 4) }); break;
    case 6: put(s, p->event[PEET_EV_set_register], (uint64_t[]){ draw(r, 3) * 2, at }); break;
    case 7: put(s, p->event[PEET_EV_map], (uint64_t[]){ FAR + (draw(r, 32) << 13), 1 << 13, 6 }); break;
    default:
        put(s, p->event[PEET_EV_mutex_lock], &lock);
        put_block(p, s, 0);
        put(s, p->event[PEET_EV_mutex_unlock], &lock);
        break;
    }
}

/* Call stack: the blocks that called. */
struct callers {
    unsigned block[64], depth;
};

/* Chooses the next block: mostly the one after `block`; if that returns, mostly the one after its caller. */
static inline unsigned next_block(struct program *p, unsigned block, struct callers *c)
{
    bool is_call = p->end[block] == PEET_CL_call || p->end[block] == PEET_CL_call_indirect;

    if (p->end[block] == PEET_CL_return && c->depth && draw(&p->random, 4))
        block = c->block[--c->depth];
    else if (is_call && c->depth < sizeof c->block / sizeof *c->block)
        c->block[c->depth++] = block;
    return draw(&p->random, 3) ? (block + 1) % BLOCKS : (unsigned)draw(&p->random, BLOCKS);
}

static inline void write_thread(struct program *p, uint32_t thread, unsigned threads)
{
    struct peet_thread t = { .id = thread, .process = 1, .ordinal = thread - 1, .name = "t" };
    struct peet_stream *s;
    struct peet_err err;
    struct callers callers = { .depth = 0 };
    unsigned block = 0;

    if (!CHECK_EQ(peet_stream_open(p->w, &t, &s, &err), 0))
        return;
    for (unsigned i = 0; i < 6; i++)
        put(s, p->event[PEET_EV_set_register], (uint64_t[]){ i, i % 2 ? draw(&p->random, 64) : random_addr(p) });
    for (unsigned i = 0; i < ITEMS; i++) {
        uint64_t dice = draw(&p->random, 20);
        if (i % 64 == 63)
            put(s, p->event[PEET_EV_barrier_wait], (uint64_t[]){ HOME + 512, threads });
        block = next_block(p, block, &callers);
        if (dice < 3)
            put_loop(p, s, (unsigned)draw(&p->random, draw(&p->random, 3) ? LOOPS : NEAT));
        else if (dice < 4)
            put_event(p, s);
        else
            for (unsigned k = dice < 6 ? 4 : 1; k > 0; k--)
                put_block(p, s, block);
    }
    put(s, p->event[PEET_EV_thread_end], (uint64_t[]){ 0, 0 });
    CHECK_EQ(peet_stream_close(s, &err), 0);
}

static inline struct peet_trace *write_program(const char *path, uint64_t seed, unsigned threads)
{
    struct program p = { .random = seed };
    struct peet_trace *t = NULL;
    struct peet_err err;

    if (!CHECK_EQ(peet_writer_open(path, NULL, &p.w, &err), 0))
        return NULL;
    define(&p);
    CHECK_EQ(peet_writer_process(p.w, &(struct peet_process){ .id = 1, .program = "a", .command = "a" }, &err), 0);
    for (uint32_t i = 1; i <= threads; i++)
        write_thread(&p, i, threads);
    CHECK_EQ(peet_writer_close(p.w, &err), 0);
    CHECK_EQ(peet_trace_open(path, &t, &err), 0);
    return t;
}

#endif
