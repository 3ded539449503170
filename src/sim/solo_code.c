/* SPDX-License-Identifier: MIT */
/* Items that are executed often become machine code: what solo.c does for a block or a loop, with everything that the schema says as constants. It does what is
 * easy, and calls solo_refer.c for each group that is not; so it makes the same references in the same order.
 *
 * One item jumps to the next as their words come, and back to solo.c where one comes that has no code. Registers, between any two instructions that
 * call nobody:
 *   rbx  struct solo                        r12  the word with the item's name
 *   rbp  number of the next touch           r13  entries of the first cache
 *   r14  time                               r15  number since which lines count as used
 *   rdi  the stretch                        rax, rcx, rdx, r10  scratch
 *   r9   in trips of a loop: in how many more of them all references stay on their lines
 * A stretch's own references are numbered from rbp on, which grows only behind them. Counts of trips are on the stack. */
#include <sys/mman.h>

#include "format/contexts.h"
#include "format/trace.h"
#include "sim/emit.h"
#include "sim/solo_state.h"

#define AT(member) ((int64_t)offsetof(struct solo, member))
#define STRETCH_AT(member) ((int64_t)offsetof(struct solo_stretch, member))

enum { CODE_ROOM = 32 << 20, MOST_GROUPS = 512, MOST_STUBS = 2 * MOST_GROUPS + LOOP_MAX_NODES, STUB_WAYS = 4 };
enum { FRAME = 8 * PEET_LOOP_DEPTH + 8, ENTRY_BITS = 5, EXIT = 64 };
_Static_assert(sizeof(struct solo_entry) == 1 << ENTRY_BITS, "what an entry's number is shifted by");

static const uint8_t KEPT[] = { RBX, RBP, R12, R13, R14, R15 };

/* Behind an item: what hardly ever happens in it. */
struct stub {
    size_t way[STUB_WAYS]; /* jumps here, */
    size_t back;           /*   and where it goes on then */
    struct solo_stretch *stretch;
    const struct solo_group *group; /* NULL: the stretch is to be entered */
    bool is_elsewhere;              /* that is all */
    bool keeps_base;                /* the next group has the same */
    uint8_t ways;
};

struct gen {
    struct solo *s;
    struct emit e;
    bool in_words;        /* slots are where the words are, not among the sources */
    bool is_even;         /* this is a trip of a loop in which sources grow by as much each time, */
    int64_t step[PEET_SOURCES]; /*   and that much */
    unsigned stubs;
    struct stub stub[MOST_STUBS];
};

/* ---- what code calls ---- */

static void call_compute(struct solo *s, const struct peet_block *b, const uint64_t *slots)
{
    memcpy(s->src + PEET_SRC_SLOT, slots, b->slots * sizeof *slots);
    block_compute(b, s->src);
}

/* The slots of a loop, and whether it ends before there is something else to do. */
static bool call_loop(struct solo *s, const struct solo_item *it, const uint64_t *slots)
{
    uint64_t *to = s->src + PEET_SRC_SLOT, insns, references;

    memcpy(to, slots, it->slots * sizeof *slots);
    words_settle(it->trips, it->slots, s->words->names, it->name, to);
    if (s->until == UINT64_MAX)
        return true;
    const struct item *item = it->item;
    if (item->linear && to[item->count] >> LINEAR_TRIP_BITS == 0)
        references = item->references + to[item->count] * item->trip_references;
    else if (!loop_totals(s->trace->schema, item->loop, to + item->loop->values, &insns, &references))
        return false;
    return references < s->until - s->number;
}

/* ---- pieces ---- */

static bool fits(uint64_t value)
{
    return (uint64_t)(int32_t)value == value;
}

static void load(struct gen *g, unsigned reg, unsigned source)
{
    if (source == PEET_SRC_ZERO)
        emit_constant(&g->e, reg, 0);
    else if (g->in_words && source >= PEET_SRC_SLOT && source < PEET_SRC_TEMP)
        emit_at(&g->e, EMIT_LOAD, reg, R12, 8 * (1 + (int64_t)source - PEET_SRC_SLOT));
    else
        emit_at(&g->e, EMIT_LOAD, reg, RBX, AT(src) + 8 * (int64_t)source);
}

static void store(struct gen *g, unsigned reg, unsigned source)
{
    emit_at(&g->e, EMIT_STORE, reg, RBX, AT(src) + 8 * (int64_t)source);
}

/* to = from + value */
static void sum(struct gen *g, unsigned to, unsigned from, uint64_t value)
{
    if (fits(value)) {
        emit_at(&g->e, EMIT_LEA, to, from, (int64_t)value);
    } else {
        emit_constant(&g->e, to, value);
        emit_registers(&g->e, EMIT_ADD, to, from);
    }
}

static void call(struct gen *g, uintptr_t function)
{
    emit_constant(&g->e, RAX, function);
    emit_call_register(&g->e, RAX);
}

static struct stub *add_stub(struct gen *g, struct solo_stretch *x, const struct solo_group *of)
{
    struct stub *stub = &g->stub[g->stubs++];

    *stub = (struct stub){ .stretch = x, .group = of };
    return stub;
}

static void stub_if(struct gen *g, struct stub *stub, enum emit_condition c)
{
    stub->way[stub->ways++] = emit_jump_if(&g->e, c, 0);
}

/* ---- stretches ---- */

static void enter(struct gen *g, struct solo_stretch *x)
{
    struct stub *stub = add_stub(g, x, NULL);

    emit_constant(&g->e, RDI, (uintptr_t)x);
    if (x->turn == SOLO_MOVES) {
        stub->way[stub->ways++] = emit_jump(&g->e, 0);
    } else {
        emit_compare_byte(&g->e, RBX, AT(turn), SOLO_ON);
        stub_if(g, stub, IF_NOT_EQUAL);
        emit_at(&g->e, EMIT_LOAD, RAX, RBX, AT(current));
        emit_at(&g->e, EMIT_COMPARE, RAX, RDI, STRETCH_AT(current));
        stub_if(g, stub, IF_NOT_EQUAL);
        if (x->turn)
            emit_store_byte(&g->e, RBX, AT(turn), x->turn);
        emit_at(&g->e, EMIT_STORE, RDI, RBX, AT(last));
    }
    stub->back = g->e.used;
}

static void load_base(struct gen *g, const struct solo_group *of)
{
    load(g, RAX, of->base);
    if (of->index != PEET_SRC_ZERO) {
        load(g, RCX, of->index);
        emit_shift(&g->e, RCX, true, of->scale);
        emit_registers(&g->e, EMIT_ADD, RAX, RCX);
    }
}

static bool have_same_base(const struct solo_group *a, const struct solo_group *b)
{
    return a->base == b->base && a->index == b->index && a->scale == b->scale;
}

/* A mask of address bits that are 0 in references of a group that are in one line, if all that were made so far have them 0; 0: that cannot be seen so. */
static uint32_t alignment(const struct solo_group *of, uint64_t line)
{
    uint64_t size = of->last - of->first + 1, places = of->places;

    if ((size & (size - 1)) || size > line || size > 64 || !places)
        return 0;
    for (; places; places &= places - 1)
        if (((uint64_t)__builtin_ctzll(places) + of->first) & (size - 1))
            return 0;
    return (uint32_t)(size - 1);
}

/* rdx: the line of a group whose base is in rax; rcx: its low bits, of a direct-mapped cache those that tell the entry. */
static void find_line(struct gen *g, const struct solo_group *of, struct stub *stub)
{
    uint32_t mask = alignment(of, g->s->length);
    struct emit *e = &g->e;

    sum(g, RDX, RAX, of->first);
    if (mask) {
        emit_test_constant(e, RDX, mask);
        stub_if(g, stub, IF_NOT_EQUAL);
    } else if (of->first != of->last) {
        sum(g, RCX, RAX, of->last);
        emit_registers(e, EMIT_XOR, RCX, RDX);
        emit_shift(e, RCX, false, g->s->shift);
        stub_if(g, stub, IF_NOT_EQUAL);
    }
}

static int64_t step_of(const struct gen *g, const struct solo_group *of)
{
    return g->step[of->base] + (int64_t)((uint64_t)g->step[of->index] << of->scale);
}

static bool is_power(uint64_t value)
{
    return (value & (value - 1)) == 0;
}

/* r9: at most in how many more trips the group, whose first address is in rdx, stays on its line. */
static void see_trips(struct gen *g, const struct solo_group *of)
{
    int64_t step = step_of(g, of);
    struct emit *e = &g->e;

    if (step == 0)
        return;
    if (step > 0) {
        sum(g, R10, RDX, of->last - of->first);
        emit_not(e, R10);
    } else {
        emit_registers(e, EMIT_LOAD, R10, RDX);
    }
    emit_and_constant(e, R10, (uint32_t)g->s->length - 1);
    emit_shift(e, R10, false, (unsigned)__builtin_ctzll((uint64_t)step));
    emit_least(e, R9, R10);
}

static void refer(struct gen *g, struct solo_stretch *x, const struct solo_group *of)
{
    struct stub *stub = add_stub(g, x, of), *elsewhere = of->is_simple ? add_stub(g, x, of) : stub;
    const struct solo_level *l = &g->s->level[0];
    int64_t at = (const char *)of - (const char *)x;
    unsigned shift = g->s->shift;
    struct emit *e = &g->e;

    if (of == x->group || !have_same_base(of, of - 1))
        load_base(g, of);
    if (&x->group[of->owner] == of) {
        emit_registers(e, EMIT_LOAD, RDX, RAX);
        emit_at(e, EMIT_SUB, RDX, RDI, at + (int64_t)offsetof(struct solo_group, low));
        emit_at(e, EMIT_COMPARE, RDX, RDI, at + (int64_t)offsetof(struct solo_group, span));
        stub_if(g, stub, IF_NOT_BELOW);
    }
    find_line(g, of, stub);
    if (g->is_even)
        see_trips(g, of);
    if (l->ways == 1) {
        emit_registers(e, EMIT_LOAD, RCX, RDX);
        emit_shift(e, RCX, shift < ENTRY_BITS, shift < ENTRY_BITS ? ENTRY_BITS - shift : shift - ENTRY_BITS);
        emit_and_constant(e, RCX, (uint32_t)(l->mask << ENTRY_BITS));
    } else {
        emit_memory(e, false, EMIT_LOAD, RCX, RDI, RSP, at + (int64_t)offsetof(struct solo_group, hint));
        emit_shift(e, RCX, true, ENTRY_BITS);
    }
    emit_shift(e, RDX, false, shift);
    emit_memory(e, true, EMIT_COMPARE, RDX, R13, RCX,
                (int64_t)offsetof(struct solo_entry, seen) + 8 * (int64_t)of->is_write);
    stub_if(g, elsewhere, IF_NOT_EQUAL);
    emit_memory(e, true, EMIT_COMPARE, R15, R13, RCX, (int64_t)offsetof(struct solo_entry, stamp));
    stub_if(g, elsewhere, IF_ABOVE);
    emit_at(e, EMIT_LEA, RDX, RBP, of->from + of->sites - 1);
    emit_memory(e, true, EMIT_STORE, RDX, R13, RCX, (int64_t)offsetof(struct solo_entry, stamp));
    stub->back = elsewhere->back = e->used;
    elsewhere->is_elsewhere = elsewhere != stub;
    stub->keeps_base = elsewhere->keeps_base = of + 1 < x->group + x->groups && have_same_base(of, of + 1);
}

/* Behind this, its groups are what they are. */
static void join(struct gen *g, struct solo_stretch *x)
{
    if (!x->has_code)
        solo_join_groups(g->s, x);
    x->has_code = true;
}

static void run(struct gen *g, struct solo_stretch *x)
{    for (unsigned i = 0; i < x->groups; i++)
        refer(g, x, &x->group[i]);
    emit_add_to(&g->e, RDI, STRETCH_AT(runs), 1);
    emit_add_constant(&g->e, RBP, (int32_t)x->sites);
    emit_add_constant(&g->e, R14, (int32_t)x->cycles);
}

static void end_stub(struct gen *g, const struct stub *stub)
{
    struct emit *e = &g->e;

    for (unsigned i = 0; i < stub->ways; i++)
        emit_here(e, stub->way[i]);
    if (stub->group) {
        const struct solo_group *of = stub->group;
        emit_registers(e, EMIT_LOAD, RCX, RAX);
        emit_at(e, EMIT_LEA, RDX, RDI, (const char *)of - (const char *)stub->stretch);
        emit_at(e, EMIT_LEA, RAX, RBP, of->from);
        emit_at(e, EMIT_STORE, RAX, RBX, AT(number));
        emit_call(e, stub->is_elsewhere ? g->s->code.elsewhere : g->s->code.group);
        emit_add_constant(e, RBP, -(int32_t)(of->from + of->sites));
        emit_constant(e, R9, 0);
        if (stub->keeps_base)
            load_base(g, of);
    } else {
        emit_call(e, g->s->code.enter);
    }
    emit_jump(e, stub->back);
}

/* ---- blocks ---- */

static bool is_sum(const struct peet_compute *c)
{
    return c->op == PEET_OP_add;
}

static void compute(struct gen *g, const struct peet_block *b)
{
    bool are_sums = true;

    for (unsigned i = 0; i < b->computes; i++)
        are_sums &= is_sum(&b->compute[i]);
    if (!are_sums) {
        emit_registers(&g->e, EMIT_LOAD, RDI, RBX);
        emit_constant(&g->e, RSI, (uintptr_t)b);
        emit_at(&g->e, EMIT_LEA, RDX, R12, 8);
        call(g, (uintptr_t)call_compute);
        return;
    }
    for (unsigned i = 0; i < b->computes; i++) {
        const struct peet_compute *c = &b->compute[i];
        load(g, RAX, c->a);
        if (c->b != PEET_SRC_ZERO) {
            load(g, RCX, c->b);
            emit_shift(&g->e, RCX, true, c->shift);
            emit_registers(&g->e, EMIT_ADD, RAX, RCX);
        }
        sum(g, RCX, RAX, (uint64_t)c->imm);
        if (c->width == 4)
            emit_and_constant(&g->e, RCX, UINT32_MAX);
        store(g, RCX, PEET_SRC_TEMP + i);
    }
}

static void have_effects(struct gen *g, const struct peet_block *b)
{
    for (unsigned i = 0; i < b->effects; i++) {
        load(g, RAX, b->effect[i].src);
        sum(g, RCX, RAX, (uint64_t)b->effect[i].add);
        store(g, RCX, PEET_SRC_REGISTER + b->effect[i].reg);
    }
}

static void make_block(struct gen *g, const struct solo_item *it)
{
    g->in_words = true;
    compute(g, it->item->block);
    enter(g, it->stretch);
    join(g, it->stretch);
    run(g, it->stretch);
    have_effects(g, it->item->block);
}

/* ---- loops ---- */

static void assign(struct gen *g, const struct peet_assign *a, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned from = a[i].src == PEET_LOOP_ZERO ? PEET_SRC_ZERO : PEET_SRC_SLOT + a[i].src;
        if (a[i].dst == a[i].src && !a[i].plus && fits((uint64_t)a[i].add)) {
            emit_add_to(&g->e, RBX, AT(src) + 8 * (int64_t)from, (int32_t)a[i].add);
            continue;
        }
        load(g, RAX, from);
        if (a[i].plus) {
            load(g, RCX, PEET_SRC_SLOT + a[i].plus - 1u);
            emit_registers(&g->e, EMIT_ADD, RAX, RCX);
        }
        sum(g, RCX, RAX, (uint64_t)a[i].add);
        store(g, RCX, PEET_SRC_SLOT + a[i].dst);
    }
}

/* Whether trips of a loop in which nothing changes can be counted together: all references go on by parts of a line, or not at all. */
static bool goes_evenly(struct gen *g, const struct peet_loop_node *n, const struct solo_stretch *x)
{
    memset(g->step, 0, sizeof g->step);
    for (unsigned i = n->enters; i < n->assigns; i++) {
        const struct peet_assign *a = &n->assign[i];
        if (a->dst != a->src || a->plus || !fits((uint64_t)a->add))
            return false;
        g->step[PEET_SRC_SLOT + a->dst] += a->add;
    }
    for (unsigned i = 0; i < x->groups; i++) {
        int64_t step = step_of(g, &x->group[i]), size = step < 0 ? -step : step;
        if ((uint64_t)size > g->s->length / 4 || !is_power((uint64_t)size))
            return false;
    }
    return !g->s->watch.use && fits(x->cycles); /* a sample wants to know when lines were used last */
}

/* Behind a trip in which all references were easy: r9 more are, if their bases stay in their objects. Lines keep the numbers of this one: in
 * what order they were used last is the same. */
static void skip(struct gen *g, const struct peet_loop_node *n, const struct solo_stretch *x, unsigned depth,
                 size_t again)
{
    struct emit *e = &g->e;

    emit_at(e, EMIT_LOAD, RCX, RSP, 8 * (int64_t)depth);
    emit_least(e, R9, RCX);
    emit_registers(e, EMIT_OR, R9, R9);
    emit_jump_if(e, IF_EQUAL, again);
    for (unsigned i = 0; i < x->groups; i++) {
        const struct solo_group *of = &x->group[i];
        int64_t at = (const char *)of - (const char *)x, step = step_of(g, of);
        if (of->owner != i || step == 0)
            continue;
        load_base(g, of);
        emit_multiply_constant(e, RDX, R9, (int32_t)step);
        emit_registers(e, EMIT_ADD, RDX, RAX);
        emit_at(e, EMIT_LEA, RDX, RDX, -step); /* the bases are those of the next trip */
        emit_at(e, EMIT_SUB, RDX, RDI, at + (int64_t)offsetof(struct solo_group, low));
        emit_at(e, EMIT_COMPARE, RDX, RDI, at + (int64_t)offsetof(struct solo_group, span));
        emit_jump_if(e, IF_NOT_BELOW, again);
    }
    emit_multiply_constant(e, RAX, R9, (int32_t)x->sites);
    emit_registers(e, EMIT_ADD, RBP, RAX);
    emit_multiply_constant(e, RAX, R9, (int32_t)x->cycles);
    emit_registers(e, EMIT_ADD, R14, RAX);
    emit_at(e, EMIT_ADD_TO, R9, RDI, STRETCH_AT(runs));
    for (unsigned i = n->enters; i < n->assigns; i++) {
        emit_multiply_constant(e, RAX, R9, (int32_t)n->assign[i].add);
        emit_at(e, EMIT_ADD_TO, RAX, RBX, AT(src) + 8 * (int64_t)(PEET_SRC_SLOT + n->assign[i].dst));
    }
    emit_at(e, EMIT_SUBTRACT_FROM, R9, RSP, 8 * (int64_t)depth);
    emit_jump_if(e, IF_NOT_EQUAL, again);
}

/* All trips of a loop whose body is a stretch: their number is on the stack. */
static void make_trips(struct gen *g, const struct peet_loop_node *n, struct solo_stretch *x, unsigned depth)
{
    struct emit *e = &g->e;

    enter(g, x);
    join(g, x);
    g->is_even = goes_evenly(g, n, x);
    size_t again = e->used;
    if (g->is_even)
        emit_constant(e, R9, UINT32_MAX);
    run(g, x);
    assign(g, n->assign + n->enters, (unsigned)n->assigns - n->enters);
    emit_add_to(e, RSP, 8 * (int64_t)depth, -1);
    if (g->is_even) {
        size_t done = emit_jump_if(e, IF_EQUAL, 0);
        skip(g, n, x, depth, again);
        emit_here(e, done);
    } else {
        emit_jump_if(e, IF_NOT_EQUAL, again);
    }
    g->is_even = false;
}

/* A node, and all that is in it; returns the number of the one behind it. */
static unsigned make_node(struct gen *g, const struct solo_item *it, unsigned number, unsigned depth)
{
    const struct plan_node *node = &it->plan->node[number];
    const struct peet_loop_node *n = node->node;
    struct emit *e = &g->e;

    if (node->kind == PLAN_BLOCK) {
        enter(g, it->node[number]);
        join(g, it->node[number]);
        run(g, it->node[number]);
        return number + 1;
    }
    if (n->counted)
        load(g, RDX, PEET_SRC_SLOT + it->item->loop->values + (unsigned)n->trips);
    else
        emit_constant(e, RDX, n->trips);
    assign(g, n->assign, n->enters);
    emit_registers(e, EMIT_OR, RDX, RDX);
    size_t none = emit_jump_if(e, IF_EQUAL, 0);
    emit_at(e, EMIT_STORE, RDX, RSP, 8 * (int64_t)depth);
    if (node->kind == PLAN_FLAT) {
        make_trips(g, n, it->node[number], depth);
    } else {
        size_t again = e->used;
        for (unsigned i = number + 1; i < n->end;)
            i = make_node(g, it, i, depth + 1);
        assign(g, n->assign + n->enters, (unsigned)n->assigns - n->enters);
        emit_add_to(e, RSP, 8 * (int64_t)depth, -1);
        emit_jump_if(e, IF_NOT_EQUAL, again);
    }
    emit_here(e, none);
    return n->end;
}

/* Whether code can make slots of a loop's words by itself; they are copied then, and its trips are counted. */
static bool settle(struct gen *g, const struct solo_item *it)
{
    const struct peet_trips *t = it->trips;
    struct emit *e = &g->e;

    if (!t)
        return false;
    g->in_words = true;
    load(g, RAX, PEET_SRC_SLOT + t->end);
    if (t->start != PEET_LOOP_ZERO) {
        load(g, RCX, PEET_SRC_SLOT + t->start);
        emit_registers(e, EMIT_SUB, RAX, RCX);
    }
    sum(g, RCX, RAX, -(uint64_t)t->add);
    emit_shift(e, RCX, false, t->shift);
    if (t->inverse != 1) {
        emit_constant(e, RAX, t->inverse);
        emit_registers(e, EMIT_MULTIPLY, RCX, RAX);
    }
    if (t->mask != UINT64_MAX) {
        emit_constant(e, RAX, t->mask);
        emit_registers(e, EMIT_AND, RCX, RAX);
    }
    store(g, RCX, PEET_SRC_SLOT + it->slots - 1u);
    for (unsigned i = 0; i + 1u < it->slots; i++) {
        load(g, RAX, PEET_SRC_SLOT + i + (i >= t->end));
        store(g, RAX, PEET_SRC_SLOT + i);
    }
    return true;
}

static void make_loop(struct gen *g, const struct solo_item *it)
{
    struct emit *e = &g->e;
    size_t is_ready = 0;

    emit_constant(e, RAX, UINT64_MAX);
    emit_at(e, EMIT_COMPARE, RAX, RBX, AT(until));
    size_t is_short = emit_jump_if(e, IF_NOT_EQUAL, 0);
    if (settle(g, it))
        is_ready = emit_jump(e, 0);
    g->in_words = false;
    emit_here(e, is_short);
    emit_at(e, EMIT_STORE, RBP, RBX, AT(number));
    emit_registers(e, EMIT_LOAD, RDI, RBX);
    emit_constant(e, RSI, (uintptr_t)it);
    emit_at(e, EMIT_LEA, RDX, R12, 8);
    call(g, (uintptr_t)call_loop);
    emit_and_constant(e, RAX, 1);
    emit_jump_if(e, IF_EQUAL, g->s->code.leave);
    if (is_ready)
        emit_here(e, is_ready);
    for (unsigned i = 0; i < it->item->loop->nodes;)
        i = make_node(g, it, i, 0);
}

/* ---- items ---- */

/* From r12 on: to the code of the next item, if it has one, and if there is nothing else to do before. */
static void go_on(struct gen *g)
{
    struct emit *e = &g->e;
    size_t leave = g->s->code.leave;

    emit_at(e, EMIT_COMPARE, R12, RBX, AT(word_end));
    emit_jump_if(e, IF_NOT_BELOW, leave);
    emit_at(e, EMIT_COMPARE, R14, RBX, AT(limit));
    emit_jump_if(e, IF_NOT_BELOW, leave);
    emit_at(e, EMIT_COMPARE, RBP, RBX, AT(until));
    emit_jump_if(e, IF_NOT_BELOW, leave);
    emit_at(e, EMIT_LOAD, RAX, R12, 0);
    emit_constant(e, RCX, SOLO_NAME_FACTOR);
    emit_registers(e, EMIT_MULTIPLY, RCX, RAX);
    emit_shift(e, RCX, false, 64 - SOLO_NAME_BITS);
    emit_shift(e, RCX, true, 3);
    emit_memory(e, true, EMIT_LOAD, RCX, RBX, RCX, AT(by_name));
    emit_at(e, EMIT_COMPARE, RAX, RCX, (int64_t)offsetof(struct solo_item, name));
    emit_jump_if(e, IF_NOT_EQUAL, leave);
    emit_jump_at(e, RCX, (int64_t)offsetof(struct solo_item, code));
}

static bool is_small(const struct solo_item *it)
{
    unsigned groups = 0;

    if (it->kind != SOLO_LOOP)
        return it->stretch->groups <= MOST_GROUPS;
    for (unsigned i = 0; it->plan && i < it->item->loop->nodes; i++)
        groups += it->node[i] ? it->node[i]->groups : 0;
    return it->plan && groups <= MOST_GROUPS;
}

void solo_code_make(struct solo *s, struct solo_item *it)
{
    struct solo_code *c = &s->code;

    if (!c->bytes || it->kind == SOLO_VARYING || it->kind == SOLO_EVENT || !is_small(it))
        return;
    struct gen g = { .s = s, .e = { c->bytes, c->used, CODE_ROOM } };
    emit_at(&g.e, EMIT_LEA, RAX, R12, 8 * (1 + (int64_t)it->slots));
    emit_at(&g.e, EMIT_COMPARE, RAX, RBX, AT(word_end));
    emit_jump_if(&g.e, IF_ABOVE, c->leave);
    if (it->kind == SOLO_LOOP)
        make_loop(&g, it);
    else
        make_block(&g, it);
    emit_add_constant(&g.e, R12, 8 * (1 + it->slots));
    go_on(&g);
    for (unsigned i = 0; i < g.stubs; i++)
        end_stub(&g, &g.stub[i]);
    if (g.e.used > CODE_ROOM)
        return;
    it->code = c->bytes + c->used;
    it->has_code = true;
    c->used = g.e.used;
}

/* ---- what all of them use ---- */

static void take_state(struct gen *g)
{
    emit_at(&g->e, EMIT_LOAD, RBP, RBX, AT(number));
    emit_at(&g->e, EMIT_LOAD, R14, RBX, AT(time.clock));
    emit_at(&g->e, EMIT_LOAD, R15, RBX, AT(recent.since));
}

/* Called by stubs, with the stretch in rdi: function(solo, stretch, rdx, rcx). */
static void make_call(struct gen *g, uintptr_t function)
{
    emit_at(&g->e, EMIT_STORE, R14, RBX, AT(time.clock));
    emit_push(&g->e, RDI);
    emit_registers(&g->e, EMIT_LOAD, RSI, RDI);
    emit_registers(&g->e, EMIT_LOAD, RDI, RBX);
    call(g, function);
    emit_pop(&g->e, RDI);
}

static void make_common(struct gen *g)
{
    struct solo_code *c = &g->s->code;
    bool is_direct = g->s->is_lean && g->s->level[0].ways == 1 && !g->s->watch.knows && !g->s->watch.use;
    struct emit *e = &g->e;

    for (unsigned i = 0; i < sizeof KEPT; i++) /* solo, words, code */
        emit_push(e, KEPT[i]);
    emit_add_constant(e, RSP, -FRAME);
    emit_registers(e, EMIT_LOAD, RBX, RDI);
    emit_registers(e, EMIT_LOAD, R12, RSI);
    emit_at(e, EMIT_LOAD, R13, RBX, AT(first));
    take_state(g);
    emit_jump_register(e, RDX);
    c->leave = e->used;
    emit_at(e, EMIT_STORE, R12, RBX, AT(word));
    emit_at(e, EMIT_STORE, RBP, RBX, AT(number));
    emit_at(e, EMIT_STORE, R14, RBX, AT(time.clock));
    emit_add_constant(e, RSP, FRAME);
    for (unsigned i = sizeof KEPT; i-- > 0;)
        emit_pop(e, KEPT[i]);
    emit_return(e);
    c->group = e->used;
    make_call(g, (uintptr_t)solo_run_group);
    take_state(g);
    emit_return(e);
    c->elsewhere = e->used;
    make_call(g, is_direct ? (uintptr_t)solo_run_direct : (uintptr_t)solo_run_elsewhere);
    take_state(g);
    emit_return(e);
    c->enter = e->used;
    make_call(g, (uintptr_t)solo_enter);
    emit_return(e);
    c->used = e->used;
}

void solo_code_init(struct solo *s)
{
#ifdef __x86_64__
    struct solo_code *c = &s->code;

    if (s->level[0].mask >= UINT32_MAX >> (ENTRY_BITS + 1))
        return;
    void *p = mmap(NULL, CODE_ROOM, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                   0);
    if (p == MAP_FAILED)
        return; /* solo.c can do it all */
    c->bytes = p;
    struct gen g = { .s = s, .e = { c->bytes, 0, CODE_ROOM } };
    make_common(&g);
    s->nobody = (struct solo_item){ .name = UINT64_MAX, .code = c->bytes + c->leave };
#endif
    (void)s;
}

void solo_code_release(struct solo *s)
{
    if (s->code.bytes)
        munmap(s->code.bytes, CODE_ROOM);
}

uint64_t *solo_code_run(struct solo *s, const struct solo_item *it, uint64_t *word, const uint64_t *end, uint64_t limit)
{
    void (*begin)(struct solo *s, uint64_t *word, const void *code);

    memcpy(&begin, &s->code.bytes, sizeof begin);
    s->word_end = end;
    s->limit = limit;
    s->until = s->border == UINT64_MAX ? UINT64_MAX : s->border + s->apart;
    begin(s, word, it->code);
    return s->word;
}
