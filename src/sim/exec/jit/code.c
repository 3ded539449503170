/* SPDX-License-Identifier: MIT */
/* Compiles items that are executed often. The code of an item does what exec_blocks.c does, with all that the schema says as constants. It makes the
 * same references in the same order: plain hits itself, other groups by the functions of access.c. The code jumps from item to item, and returns
 * at an item without code. Registers, between instructions that call no function: docs/design/blocks.md, "Machine code". */
#include <assert.h>
#include <stdlib.h>

#include "sim/exec/jit/code.h"
#include "sim/exec/miss_buffer.h"
#include "sim/exec/uses.h"

enum { CODE_ROOM = 32 << 20 };
enum { FRAME = 8 * PEET_LOOP_DEPTH + 8 };

static const uint8_t SAVED_REGISTERS[] = { RBX, RBP, R12, R13, R14, R15 };

/* ---- what code calls ---- */

static void call_compute(struct exec_blocks *s, const struct peet_block *b, const uint64_t *slots)
{
    memcpy(s->src + PEET_SRC_SLOT, slots, b->slots * sizeof *slots);
    block_compute(b, s->src);
}

static void call_uses_end(struct exec_blocks *s)
{
    epoch_shadow_end_access(s);
}

struct slow_path *code_slow_path(struct gen *g, enum slow_path_kind kind, struct tblock *x, const struct base_group *of)
{
    struct slow_path *slow_path = &g->slow_path[g->slow_paths++];

    *slow_path =
        (struct slow_path){ .kind = (uint8_t)kind, .tblock = x, .group = of, .is_fast_forward = g->is_fast_forward };
    return slow_path;
}

void code_slow_path_if(struct gen *g, struct slow_path *slow_path, enum emit_condition c)
{
    size_t displacement = emit_jump_if(&g->e, c, 0);

    emit_link(&g->e, displacement, slow_path->jumps);
    slow_path->jumps = displacement;
}

/* ---- translated blocks ---- */

/* rax = a + (b << by) */
static void load_both(struct gen *g, unsigned a, unsigned b, unsigned by)
{
    code_load(g, RAX, a);
    if (b != PEET_SRC_ZERO) {
        code_load(g, RCX, b);
        emit_shift(&g->e, RCX, true, by);
        emit_registers(&g->e, EMIT_ADD, RAX, RCX);
    }
}

void code_load_base(struct gen *g, const struct base_group *of)
{
    load_both(g, of->base, of->index, of->scale);
}

static bool have_same_base(const struct base_group *a, const struct base_group *b)
{
    return a->base == b->base && a->index == b->index && a->scale == b->scale;
}

/* A mask of address bits that are 0 in references of a group that lie in one line. 0: there is none, or an earlier reference had such a bit set. */
static uint32_t group_alignment(const struct base_group *of, uint64_t line)
{
    uint64_t size = of->last - of->first + 1, base_residues = of->base_residues;

    if ((size & (size - 1)) || size > line || size > 64 || !base_residues)
        return 0;
    for (; base_residues; base_residues &= base_residues - 1)
        if (((uint64_t)__builtin_ctzll(base_residues) + of->first) & (size - 1))
            return 0;
    return (uint32_t)(size - 1);
}

/* rdx: the first address of a group. Returns the mask that makes it the address of its line. The mask of an aligned group keeps the bits that have to
 * be 0: if one is set, no line matches. A group that may not be aligned is compared with its last address first. */
static int32_t find_first(struct gen *g, const struct base_group *of, struct slow_path *slow_path)
{
    uint32_t mask = group_alignment(of, g->s->cache.length);
    struct emit *e = &g->e;

    code_sum(g, RDX, RAX, of->first);
    if (!mask && of->first != of->last) {
        code_sum(g, RCX, RAX, of->last);
        emit_registers(e, EMIT_XOR, RCX, RDX);
        emit_shift(e, RCX, false, g->s->cache.shift);
        code_slow_path_if(g, slow_path, IF_NOT_EQUAL);
    }
    return (int32_t)(-(uint32_t)g->s->cache.length | mask);
}

int64_t code_step(const struct gen *g, const struct base_group *of)
{
    return (int64_t)((uint64_t)g->step[of->base] + ((uint64_t)g->step[of->index] << of->scale));
}

/* r9: lowered to the number of further iterations in which the group, whose first address is in rdx, stays on its line. */
static void see_iterations(struct gen *g, const struct base_group *of)
{
    int64_t step = code_step(g, of);
    struct emit *e = &g->e;

    if (step == 0)
        return;
    if (step > 0) {
        code_sum(g, R10, RDX, of->last - of->first);
        emit_not(e, R10);
    } else {
        emit_registers(e, EMIT_LOAD, R10, RDX);
    }
    emit_and_constant(e, R10, (uint32_t)g->s->cache.length - 1);
    emit_shift(e, R10, false, (unsigned)__builtin_ctzll((uint64_t)step));
    emit_least(e, R9, R10);
}

void code_compare_span(struct gen *g, const struct base_group *of)
{
    emit_at(&g->e, EMIT_COMPARE, RDX, RDI, TBLOCK_AT(extent[of->extent].span));
}

void code_compare_base(struct gen *g, const struct base_group *of)
{
    emit_registers(&g->e, EMIT_LOAD, RDX, RAX);
    emit_at(&g->e, EMIT_SUB, RDX, RDI, TBLOCK_AT(extent[of->extent].low));
    code_compare_span(g, of);
}

void code_way_hint(struct gen *g, unsigned reg)
{
    emit_registers(&g->e, EMIT_LOAD, reg, RDX);
    emit_shift(&g->e, reg, false, g->s->cache.shift);
    emit_and_constant(&g->e, reg, WAY_HINTS - 1);
}

static void code_reference(struct gen *g, struct tblock *x, const struct base_group *of)
{
    struct slow_path *slow_path = code_slow_path(g, SLOW_PATH_GROUP, x, of), *hint_miss = slow_path, *miss = slow_path;
    const struct exec_level *l = &g->s->cache.level[0];
    unsigned shift = g->s->cache.shift;
    struct emit *e = &g->e;

    if (of->is_simple) {
        hint_miss = code_slow_path(g, g->has_old_epoch ? SLOW_PATH_OLD_EPOCH : SLOW_PATH_HINT_MISS, x, of);
        miss = code_slow_path(g,
                              g->has_misses ? SLOW_PATH_MISS
                              : l->ways > 1 ? SLOW_PATH_FIND
                                            : SLOW_PATH_HINT_MISS,
                              x, of);
        miss->instead = slow_path;
    }
    if (of == x->group || !have_same_base(of, of - 1))
        code_load_base(g, of);
    if (&x->group[of->owner] == of && !g->is_bound) {
        struct slow_path *locate = code_slow_path(g, SLOW_PATH_BIND, x, of);
        code_compare_base(g, of);
        code_slow_path_if(g, locate, IF_NOT_BELOW);
        locate->back = e->used;
        locate->instead = slow_path;
    }
    int32_t left = find_first(g, of, slow_path);
    if (g->is_fast_forward)
        see_iterations(g, of);
    if (l->ways == 1) {
        emit_registers(e, EMIT_LOAD, RCX, RDX);
        emit_scale(e, RCX, CODE_ENTRY_BITS - (int)shift);
        emit_and_constant(e, RCX, (uint32_t)(l->mask << CODE_ENTRY_BITS));
    } else {
        code_way_hint(g, RCX);
        emit_memory(e, false, EMIT_LOAD, RCX, RBX, RCX | EMIT_TIMES_4, AT(cache.way_hint));
    }
    emit_with(e, WITH_AND, RDX, left);
    emit_memory(e, true, EMIT_COMPARE, RDX, R13, RCX,
                (int64_t)offsetof(struct l1_entry, tag) + 8 * (int64_t)of->is_write);
    code_slow_path_if(g, miss, IF_NOT_EQUAL);
    miss->found = e->used;
    emit_memory(e, true, EMIT_COMPARE, R15, R13, RCX, (int64_t)offsetof(struct l1_entry, stamp));
    code_slow_path_if(g, hint_miss, IF_ABOVE);
    unsigned last = of->from + of->operands - 1u, stamp = last ? RDX : RBP;
    if (last)
        emit_at(e, EMIT_LEA, RDX, RBP, last);
    emit_memory(e, true, EMIT_STORE, stamp, R13, RCX, (int64_t)offsetof(struct l1_entry, stamp));
    bool keeps_base = of + 1 < x->group + x->groups && have_same_base(of, of + 1);
    slow_path->back = hint_miss->back = miss->back = e->used;
    slow_path->keeps_base = hint_miss->keeps_base = miss->keeps_base = keeps_base;
}

void code_join(struct gen *g, struct tblock *x)
{
    if (!x->has_code)
        tblock_join_groups(g->s, x);
    x->has_code = true;
}

void code_refer(struct gen *g, struct tblock *x)
{
    for (unsigned i = 0; i < x->groups; i++)
        code_reference(g, x, &x->group[i]);
}

void code_run(struct gen *g, struct tblock *x)
{
    code_refer(g, x);
    emit_add_to(&g->e, RDI, TBLOCK_AT(runs), 1);
    emit_add_constant(&g->e, RBP, (int32_t)x->operands);
    emit_add_constant(&g->e, R14, (int32_t)x->cost.all_hit);
}

void code_return_fast_forward(struct gen *g, const struct slow_path *slow_path)
{
    if (slow_path->keeps_base)
        code_load_base(g, slow_path->group);
    emit_jump(&g->e, slow_path->back);
}

void code_return(struct gen *g, const struct slow_path *slow_path)
{
    if (slow_path->is_fast_forward)
        emit_constant(&g->e, R9, 0);
    code_return_fast_forward(g, slow_path);
}

/* Executes the group by a function of access.c. */
static void call_group(struct gen *g, const struct slow_path *slow_path)
{
    const struct base_group *of = slow_path->group;
    struct emit *e = &g->e;

    emit_registers(e, EMIT_LOAD, RCX, RAX);
    emit_at(e, EMIT_LEA, RDX, RDI, (const char *)of - (const char *)slow_path->tblock);
    emit_at(e, EMIT_LEA, RAX, RBP, of->from);
    emit_at(e, EMIT_STORE, RAX, RBX, AT(number));
    emit_call(e, slow_path->kind == SLOW_PATH_GROUP ? g->s->code.routine.group : g->s->code.routine.group_miss);
    emit_add_constant(e, RBP, -(int32_t)(of->from + of->operands));
    code_return(g, slow_path);
}

/* Binds the operands with the base in rax, and continues if the base is in bounds then. */
static void code_bind_base(struct gen *g, const struct slow_path *slow_path)
{
    const struct base_group *of = slow_path->group;
    struct emit *e = &g->e;

    emit_registers(e, EMIT_LOAD, RCX, RAX);
    emit_at(e, EMIT_LEA, RDX, RDI, (const char *)of - (const char *)slow_path->tblock);
    emit_call(e, g->s->code.routine.bind);
    code_load_base(g, of);
    code_compare_base(g, of);
    emit_jump_if(e, IF_BELOW, slow_path->back);
    emit_jump(e, slow_path->instead->begin);
}

/* After a way-hint miss of an aligned group: if rdx is no address of a line, the group is not aligned. */
static void check_alignment(struct gen *g, const struct slow_path *slow_path)
{
    if (!group_alignment(slow_path->group, g->s->cache.length))
        return;
    emit_test_constant(&g->e, RDX, (uint32_t)g->s->cache.length - 1);
    emit_jump_if(&g->e, IF_NOT_EQUAL, slow_path->instead->begin);
}

static void end_slow_path(struct gen *g, struct slow_path *slow_path)
{
    struct emit *e = &g->e;
    size_t slow = e->used;

    if (slow_path->kind >= SLOW_PATH_OLD_EPOCH)
        call_group(g, slow_path);
    slow_path->begin = e->used;
    emit_all_here(e, slow_path->jumps);
    if (slow_path->instead && slow_path->kind != SLOW_PATH_BIND)
        check_alignment(g, slow_path);
    if (slow_path->kind == SLOW_PATH_MISS) {
        code_miss(g, slow_path, slow);
    } else if (slow_path->kind == SLOW_PATH_FIND) {
        code_find(g, slow_path, slow);
    } else if (slow_path->kind == SLOW_PATH_OLD_EPOCH) {
        code_old_epoch(g, slow_path, slow);
    } else if (slow_path->kind == SLOW_PATH_ITERATIONS) {
        code_iterations(g, slow_path);
    } else if (slow_path->kind == SLOW_PATH_ENTER) {
        emit_call(e, g->s->code.routine.enter[slow_path->tblock->exit]);
        emit_jump(e, slow_path->back);
    } else if (slow_path->kind == SLOW_PATH_BIND) {
        code_bind_base(g, slow_path);
    } else {
        call_group(g, slow_path);
    }
}

/* ---- blocks ---- */

static void code_compute(struct gen *g, const struct peet_block *b)
{
    bool are_sums = true;

    for (unsigned i = 0; i < b->computes; i++)
        are_sums &= b->compute[i].op == PEET_OP_add;
    if (!are_sums) {
        emit_registers(&g->e, EMIT_LOAD, RDI, RBX);
        emit_constant(&g->e, RSI, (uintptr_t)b);
        emit_at(&g->e, EMIT_LEA, RDX, R12, 8);
        code_call(g, (uintptr_t)call_compute);
        return;
    }
    for (unsigned i = 0; i < b->computes; i++) {
        const struct peet_compute *c = &b->compute[i];
        load_both(g, c->a, c->b, c->shift);
        code_sum(g, RCX, RAX, (uint64_t)c->imm);
        if (c->width == 4)
            emit_and_constant(&g->e, RCX, UINT32_MAX);
        code_store(g, RCX, PEET_SRC_TEMP + i);
    }
}

static void have_effects(struct gen *g, const struct peet_block *b)
{
    for (unsigned i = 0; i < b->effects; i++) {
        code_load(g, RAX, b->effect[i].src);
        code_sum(g, RCX, RAX, (uint64_t)b->effect[i].add);
        code_store(g, RCX, PEET_SRC_REGISTER + b->effect[i].reg);
    }
}

static void make_block(struct gen *g, const struct tb_item *it)
{
    g->in_words = true;
    g->end = g->count = PEET_SLOTS;
    code_compute(g, it->item->block);
    code_enter(g, it->tblock);
    code_join(g, it->tblock);
    code_run(g, it->tblock);
    have_effects(g, it->item->block);
}

/* ---- items ---- */

/* Jumps to the code of the next item, which r12 points to, if it has code and no limit is reached. The first CHAIN_SLOTS different successors of an
 * item are compared with constants (chaining); all others are looked up. */
static void code_next_item(struct gen *g, struct tb_item *it)
{
    struct emit *e = &g->e;
    struct code_cache *c = &g->s->code;

    emit_at(e, EMIT_COMPARE, R12, RBX, AT(run.word_last));
    emit_jump_if(e, IF_NOT_BELOW, c->routine.tail);
    emit_at(e, EMIT_COMPARE, R14, RBX, AT(run.limit));
    emit_jump_if(e, IF_NOT_BELOW, c->routine.leave);
    if (g->s->observer.classify) { /* samples have borders */
        emit_at(e, EMIT_COMPARE, RBP, RBX, AT(run.until));
        emit_jump_if(e, IF_NOT_BELOW, c->routine.leave);
    }
    emit_at(e, EMIT_LOAD, RAX, R12, 0);
    it->chains = 0;
    for (unsigned i = 0; i < CHAIN_SLOTS; i++) {
        it->chain[i] = e->used;
        emit_constant(e, RCX, UINT64_MAX); /* no item */
        emit_registers(e, EMIT_COMPARE, RAX, RCX);
        emit_jump_if(e, IF_EQUAL, c->routine.leave);
    }
    it->chain[CHAIN_SLOTS] = e->used;
    size_t all = emit_jump(e, 0);
    emit_here(e, all);
    emit_constant(e, RSI, (uintptr_t)it);
    emit_jump(e, c->routine.chain);
}

/* Jumps to the code of the item whose key is in rax. */
static void code_dispatch(struct gen *g)
{
    struct emit *e = &g->e;

    emit_constant(e, RCX, EXEC_HASH_FACTOR);
    emit_registers(e, EMIT_MULTIPLY, RCX, RAX);
    emit_shift(e, RCX, false, 64 - ITEM_CACHE_BITS);
    emit_memory(e, true, EMIT_LOAD, RCX, RBX, RCX | EMIT_TIMES_8, AT(translated.by_key));
    emit_at(e, EMIT_COMPARE, RAX, RCX, (int64_t)offsetof(struct tb_item, key));
    emit_jump_if(e, IF_NOT_EQUAL, g->s->code.routine.leave);
    emit_jump_at(e, RCX, (int64_t)offsetof(struct tb_item, code));
}

/* The item at r12 followed that one: chains them. */
static void call_chain(struct exec_blocks *s, struct tb_item *it, const uint64_t *word)
{
    const struct tb_item *next = s->translated.by_key[*word * EXEC_HASH_FACTOR >> (64 - ITEM_CACHE_BITS)];
    struct emit e = { s->code.memory.write, 0, CODE_ROOM };

    if (next->key != *word || !next->has_code)
        return;
    e.used = it->chain[it->chains++];
    emit_constant_wide(&e, RCX, next->key);
    emit_registers(&e, EMIT_COMPARE, RAX, RCX);
    emit_jump_if(&e, IF_EQUAL, next->fast);
    if (it->chains == CHAIN_SLOTS) {
        e.used = it->chain[CHAIN_SLOTS];
        emit_jump(&e, s->code.routine.dispatch);
    }
    code_memory_sync(&s->code.memory);
}

/* Whether the constants of an item fit into instructions, and its groups into struct gen. */
static bool is_small(const struct tb_item *it)
{
    unsigned groups = 0;
    bool fits = true;

    if (it->kind != TB_LOOP)
        return it->tblock->groups <= CODE_GROUPS && code_fits(it->tblock->cost.all_hit);
    for (unsigned i = 0; it->plan && i < it->item->loop->nodes; i++) {
        groups += it->node[i] ? it->node[i]->groups : 0;
        fits &= !it->node[i] || code_fits(it->node[i]->cost.all_hit);
    }
    return it->plan && fits && groups <= CODE_GROUPS;
}

void jit_compile(struct exec_blocks *s, struct tb_item *it)
{
    struct code_cache *c = &s->code;
    struct gen *g = c->gen;

    if (!c->memory.write || it->kind == TB_VARYING || it->kind == TB_EVENT || !is_small(it))
        return;
    g->e = (struct emit){ c->memory.write, c->used, CODE_ROOM };
    g->slow_paths = 0;
    emit_at(&g->e, EMIT_LEA, RAX, R12, 8 * (1 + (int64_t)it->slots));
    emit_at(&g->e, EMIT_COMPARE, RAX, RBX, AT(run.word_end));
    emit_jump_if(&g->e, IF_ABOVE, c->routine.leave);
    size_t fast = g->e.used;
    if (it->kind == TB_LOOP)
        code_loop(g, it);
    else
        make_block(g, it);
    emit_add_constant(&g->e, R12, 8 * (1 + it->slots));
    code_next_item(g, it);
    for (unsigned i = 0; i < g->slow_paths; i++)
        end_slow_path(g, &g->slow_path[i]);
    if (g->e.used > CODE_ROOM)
        return;
    it->code = c->memory.run + c->used;
    it->fast = fast;
    it->has_code = true;
    c->used = g->e.used;
    c->widest = it->slots + 1u > c->widest ? it->slots + 1u : c->widest;
    code_memory_sync(&c->memory);
}

/* ---- routines that all items share ---- */

static void take_state(struct gen *g)
{
    emit_at(&g->e, EMIT_LOAD, RBP, RBX, AT(number));
    emit_at(&g->e, EMIT_LOAD, R14, RBX, AT(time.clock));
    emit_at(&g->e, EMIT_LOAD, R15, RBX, AT(recent.since));
}

/* Called by slow paths, with the translated block in rdi: function(executor, translated block, rdx, rcx). */
static void make_call(struct gen *g, uintptr_t function)
{
    emit_at(&g->e, EMIT_STORE, R14, RBX, AT(time.clock));
    emit_push(&g->e, RDI);
    emit_registers(&g->e, EMIT_LOAD, RSI, RDI);
    emit_registers(&g->e, EMIT_LOAD, RDI, RBX);
    code_call(g, function);
    emit_pop(&g->e, RDI);
}

static void make_common(struct gen *g)
{
    struct code_cache *c = &g->s->code;
    struct emit *e = &g->e;

    for (unsigned i = 0; i < sizeof SAVED_REGISTERS; i++) /* executor, words, code */
        emit_push(e, SAVED_REGISTERS[i]);
    emit_add_constant(e, RSP, -FRAME);
    emit_registers(e, EMIT_LOAD, RBX, RDI);
    emit_registers(e, EMIT_LOAD, R12, RSI);
    emit_at(e, EMIT_LOAD, R13, RBX, AT(cache.first));
    take_state(g);
    emit_jump_register(e, RDX);
    c->routine.leave = e->used;
    emit_at(e, EMIT_STORE, R12, RBX, AT(word));
    emit_at(e, EMIT_STORE, RBP, RBX, AT(number));
    emit_at(e, EMIT_STORE, R14, RBX, AT(time.clock));
    emit_add_constant(e, RSP, FRAME);
    for (unsigned i = sizeof SAVED_REGISTERS; i-- > 0;)
        emit_pop(e, SAVED_REGISTERS[i]);
    emit_return(e);
    c->routine.tail = e->used;
    emit_at(e, EMIT_COMPARE, R12, RBX, AT(run.word_end));
    emit_jump_if(e, IF_NOT_BELOW, c->routine.leave);
    emit_at(e, EMIT_COMPARE, R14, RBX, AT(run.limit));
    emit_jump_if(e, IF_NOT_BELOW, c->routine.leave);
    emit_at(e, EMIT_COMPARE, RBP, RBX, AT(run.until));
    emit_jump_if(e, IF_NOT_BELOW, c->routine.leave);
    emit_at(e, EMIT_LOAD, RAX, R12, 0);
    c->routine.dispatch = e->used;
    code_dispatch(g);
    c->routine.chain = e->used;
    emit_registers(e, EMIT_LOAD, RDI, RBX);
    emit_registers(e, EMIT_LOAD, RDX, R12);
    code_call(g, (uintptr_t)call_chain);
    emit_at(e, EMIT_LOAD, RAX, R12, 0);
    emit_jump(e, c->routine.dispatch);
    c->routine.bind = e->used;
    make_call(g, (uintptr_t)base_group_bind);
    emit_return(e);
    c->routine.group = e->used;
    make_call(g, (uintptr_t)group_run);
    take_state(g);
    emit_return(e);
    c->routine.group_miss = e->used;
    make_call(g, g->has_misses                 ? (uintptr_t)group_run_direct_mapped
                 : blocks_has_two_levels(g->s) ? (uintptr_t)group_run_two_levels
                                               : (uintptr_t)group_run_hint_miss);
    take_state(g);
    emit_return(e);
    for (unsigned i = 0; i < sizeof c->routine.enter / sizeof *c->routine.enter; i++) {
        c->routine.enter[i] = e->used;
        code_make_enter(g, (enum path_exit)i);
        make_call(g, (uintptr_t)tblock_enter);
        emit_return(e);
    }
    c->routine.end_access = e->used;
    make_call(g, (uintptr_t)call_uses_end);
    take_state(g);
    emit_return(e);
    c->routine.first_use = e->used;
    code_make_first_use(g);
    c->routine.add_offset = e->used;
    code_make_offset(g);
    for (unsigned i = 0; i < 2 && g->has_second; i++)
        c->routine.second[i] = code_make_second(g, i);
    c->used = e->used;
}

void jit_init(struct exec_blocks *s)
{
#ifdef __x86_64__
    struct code_cache *c = &s->code;

    if (s->cache.level[0].mask >= UINT32_MAX >> (CODE_ENTRY_BITS + 1))
        return;
    struct gen *g = calloc(1, sizeof *g);
    if (!g || !code_memory_map(&c->memory, CODE_ROOM)) { /* exec_blocks.c can execute every item */
        free(g);
        return;
    }
    c->gen = g;
    g->s = s;
    g->has_misses = code_has_misses(s);
    g->has_second = code_has_second(s);
    g->has_old_epoch = !s->observer.use || s->sample.log;
    g->e = (struct emit){ c->memory.write, 0, CODE_ROOM };
    make_common(g);
    code_memory_sync(&c->memory);
    s->sentinel.no_item = (struct tb_item){ .key = UINT64_MAX, .code = c->memory.run + c->routine.leave };
#endif
    (void)s;
}

void jit_release(struct exec_blocks *s)
{
    code_memory_release(&s->code.memory);
    free(s->code.gen);
}

uint64_t *jit_run(struct exec_blocks *s, const struct tb_item *it, uint64_t *word, const uint64_t *end, uint64_t limit)
{
    void (*begin)(struct exec_blocks * s, uint64_t * word, const void *code);

    memcpy(&begin, &s->code.memory.run, sizeof begin);
    s->run.word_end = end;
    s->run.word_last = (uintptr_t)end - 8 * s->code.widest;
    s->run.limit = limit;
    s->run.until = s->sample.border == UINT64_MAX ? UINT64_MAX : s->sample.border + s->non_program_touches;
    assert(s->run.until == UINT64_MAX || s->observer.classify);
    begin(s, word, it->code);
    return s->word;
}
