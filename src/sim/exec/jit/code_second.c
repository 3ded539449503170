/* SPDX-License-Identifier: MIT */
/* Machine code for a fill from the second of two levels, as in two_levels.c: one routine for groups that only read, one for those that write. Rare
 * cases are left, before anything is changed. */
#include "sim/exec/jit/code.h"

enum { MOST_WAYS = 16 };

bool code_has_second(const struct exec_blocks *s)
{
    return blocks_has_two_levels(s) && s->cache.level[1].order && code_is_power(s->cache.level[0].ways)
           && code_is_power(s->cache.level[1].ways) && s->cache.level[0].ways > 1 && s->cache.level[0].ways <= MOST_WAYS
           && code_fits(s->fill.fixed_stall);
}

/* rcx: the LRU entry of the set of the line at rdx. As in l1_victim, stamp and way are compared in one word. */
static void find_oldest(struct gen *g)
{
    static const uint8_t LEAST[2] = { R8, R10 };
    const struct exec_level *l = &g->s->cache.level[0];
    struct emit *e = &g->e;

    emit_registers(e, EMIT_LOAD, RCX, RDX);
    emit_shift(e, RCX, false, g->s->cache.shift);
    emit_and_constant(e, RCX, (uint32_t)l->mask);
    emit_shift(e, RCX, true, CODE_ENTRY_BITS + (unsigned)__builtin_ctz(l->ways));
    for (unsigned i = 0; i < l->ways; i++) {
        unsigned to = i < 2 ? LEAST[i] : RAX;
        emit_memory(e, true, EMIT_LOAD, to, R13, RCX, ENTRY_AT(stamp) + (int64_t)sizeof(struct l1_entry) * i);
        emit_shift(e, to, true, STAMP_WAY_BITS);
        emit_add_constant(e, to, (int32_t)i);
        if (i >= 2)
            emit_least(e, LEAST[i % 2], RAX);
    }
    emit_least(e, R8, R10);
    emit_and_constant(e, R8, (1 << STAMP_WAY_BITS) - 1);
    emit_shift(e, R8, true, CODE_ENTRY_BITS);
    emit_registers(e, EMIT_ADD, RCX, R8);
}

/* r12: the state with which the line is filled; jumps to `stop` if it cannot be written then. */
static void find_state(struct gen *g, bool is_write, size_t stop)
{
    struct emit *e = &g->e;

    emit_memory(e, false, EMIT_LOAD, RAX, RSI, RSP, LINE_AT(entry[1]));
    emit_constant(e, R12, (uintptr_t)g->s->cache.level[1].state);
    emit_memory(e, false, EMIT_LOAD_BYTE, R12, R12, RAX, -1);
    if (!is_write)
        return;
    emit_memory(e, true, EMIT_LEA, RAX, R12, R12, 0);
    emit_compare_byte(e, RBX, RAX, AT(cache.allows) + 1, 0);
    size_t can = emit_jump_if(e, IF_NOT_EQUAL, 0);
    emit_memory(e, false, EMIT_LOAD_BYTE, R12, RBX, R12, AT(cache.silent));
    emit_memory(e, true, EMIT_LEA, RAX, R12, R12, 0);
    emit_compare_byte(e, RBX, RAX, AT(cache.allows) + 1, 0); /* state 0, absent, cannot be written either */
    emit_jump_if(e, IF_EQUAL, stop);
    emit_here(e, can);
}

/* As exec_level_touch. */
static void second_touch_l2(struct gen *g)
{
    const struct exec_level *l = &g->s->cache.level[1];
    struct emit *e = &g->e;

    emit_push(e, RCX);
    emit_memory(e, false, EMIT_LOAD, R8, RSI, RSP, LINE_AT(entry[1]));
    emit_add_constant(e, R8, -1);
    emit_and_constant(e, R8, l->ways - 1); /* the way */
    emit_registers(e, EMIT_LOAD, RCX, RDX);
    emit_shift(e, RCX, false, g->s->cache.shift);
    emit_and_constant(e, RCX, (uint32_t)l->mask);
    emit_constant(e, R10, (uintptr_t)l->order);
    emit_memory(e, true, EMIT_LEA, R10, R10, RCX | EMIT_TIMES_8, 0); /* address of its set's LRU order */
    emit_at(e, EMIT_LOAD, RAX, R10, 0);
    emit_constant(e, R11, LRU_ORDER_ONES);
    emit_registers(e, EMIT_LOAD, RCX, R11);
    emit_registers(e, EMIT_MULTIPLY, RCX, R8);
    emit_registers(e, EMIT_XOR, RCX, RAX);
    emit_not(e, RCX);
    emit_registers(e, EMIT_ADD, R11, RCX); /* with this, and the other way round: what differs, less the ones */
    emit_not(e, R11);
    emit_registers(e, EMIT_AND, R11, RCX);
    emit_constant(e, RCX, LRU_ORDER_ONES << 3);
    emit_registers(e, EMIT_AND, R11, RCX);
    emit_at(e, EMIT_LEA, RCX, R11, -1);
    emit_registers(e, EMIT_XOR, RCX, R11); /* bits up to those of the way */
    emit_registers(e, EMIT_LOAD, R11, RAX);
    emit_shift(e, R11, true, 4);
    emit_registers(e, EMIT_OR, R11, R8);
    emit_registers(e, EMIT_XOR, R11, RAX);
    emit_registers(e, EMIT_AND, R11, RCX);
    emit_registers(e, EMIT_XOR, RAX, R11);
    emit_at(e, EMIT_STORE, RAX, R10, 0);
    emit_pop(e, RCX);
}

/* Fills the line in rsi into the entry at rcx, in the state in r12. The victim is in the second level, too. r9: number of the last reference to the line. */
static void second_fill_l1(struct gen *g)
{
    const struct exec_level *l = g->s->cache.level;
    struct emit *e = &g->e;

    emit_memory(e, true, EMIT_LOAD, R10, R13, RCX, ENTRY_AT(info));
    emit_memory(e, true, EMIT_LOAD, RAX, R13, RCX, ENTRY_AT(stamp));
    emit_at(e, EMIT_STORE, RAX, R10, LINE_AT(stamp));
    emit_memory(e, false, EMIT_LOAD, R8, R10, RSP, LINE_AT(entry[1]));
    emit_registers(e, EMIT_LOAD, R10, RCX);
    emit_shift(e, R10, false, CODE_ENTRY_BITS);
    emit_constant(e, R11, (uintptr_t)l[0].state);
    emit_memory(e, false, EMIT_LOAD_BYTE, RAX, R11, R10, 0);
    emit_memory(e, false, EMIT_STORE_BYTE, R12, R11, R10, 0);
    emit_constant(e, R11, (uintptr_t)l[1].state);
    emit_memory(e, false, EMIT_STORE_BYTE, RAX, R11, R8, -1);
    emit_constant(e, R11, (uintptr_t)l[0].line);
    emit_registers(e, EMIT_LOAD, RAX, RDX);
    emit_shift(e, RAX, false, g->s->cache.shift);
    emit_memory(e, true, EMIT_STORE, RAX, R11, R10 | EMIT_TIMES_8, 0);
    emit_add_constant(e, R10, 1);
    emit_memory(e, false, EMIT_STORE, R10, RSI, RSP, LINE_AT(entry));
    emit_shift(e, R12, true, (unsigned)__builtin_ctzll(sizeof g->s->cache.perm_mask[0]));
    for (unsigned i = 0; i < 2; i++) {
        emit_memory(e, true, EMIT_LOAD, RAX, RBX, R12, AT(cache.perm_mask) + 8 * (int64_t)i);
        emit_registers(e, EMIT_OR, RAX, RDX);
        emit_memory(e, true, EMIT_STORE, RAX, R13, RCX, ENTRY_AT(tag) + 8 * (int64_t)i);
    }
    emit_memory(e, true, EMIT_STORE, R9, R13, RCX, ENTRY_AT(stamp));
    emit_memory(e, true, EMIT_STORE, RSI, R13, RCX, ENTRY_AT(info));
    code_way_hint(g, RAX);
    emit_memory(e, false, EMIT_STORE, RCX, RBX, RAX | EMIT_TIMES_4, AT(cache.way_hint));
}

static void second_pop(struct gen *g)
{
    emit_pop(&g->e, R12);
    emit_pop(&g->e, RAX);
}

size_t code_make_second(struct gen *g, bool is_write)
{
    struct emit *e = &g->e;
    size_t stop = e->used, begin;

    second_pop(g);
    emit_registers(e, EMIT_OR, RSP, RSP); /* not equal */
    emit_return(e);
    begin = e->used;
    emit_push(e, RAX);
    emit_push(e, R12);
    emit_memory(e, false, EMIT_LOAD, RAX, RSI, RSP, LINE_AT(entry[1]));
    emit_registers(e, EMIT_OR, RAX, RAX);
    emit_jump_if(e, IF_EQUAL, stop);
    find_oldest(g);
    emit_memory(e, true, EMIT_LOAD, R10, R13, RCX, ENTRY_AT(info));
    emit_registers(e, EMIT_OR, R10, R10);
    emit_jump_if(e, IF_EQUAL, stop);
    emit_memory(e, false, EMIT_LOAD, RAX, R10, RSP, LINE_AT(entry[1]));
    emit_registers(e, EMIT_OR, RAX, RAX);
    emit_jump_if(e, IF_EQUAL, stop);
    find_state(g, is_write, stop);
    emit_at(e, EMIT_LOAD, RAX, RSP, 8); /* as it came */
    emit_memory(e, false, EMIT_LOAD, R8, RSI, RSP, LINE_AT(remover));
    emit_registers(e, EMIT_ADD, R8, R8);
    code_count_fixed(g, stop);
    second_touch_l2(g);
    second_fill_l1(g);
    second_pop(g);
    emit_registers(e, EMIT_COMPARE, RAX, RAX); /* equal */
    emit_return(e);
    return begin;
}
