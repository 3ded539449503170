/* SPDX-License-Identifier: MIT */
/* Machine code of x86-64, as much of it as code.c needs. Operands are 64 bits wide where nothing else is said. */
#ifndef SIM_EXEC_JIT_EMIT_H
#define SIM_EXEC_JIT_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A buffer for machine code. Offsets in the code are counted from its start. */
struct emit {
    uint8_t *bytes;
    size_t used, room; /* bytes; used > room: the code did not fit, and `bytes` is invalid */
};

enum emit_register { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

/* Between a register and memory, or two registers; of EMIT_LEA, the address. */
enum emit_op {
    EMIT_ADD_TO = 0x01, /* memory */
    EMIT_ADD = 0x03,
    EMIT_OR = 0x0b,
    EMIT_ADD_CARRY = 0x13,
    EMIT_SUB_BORROW = 0x1b,
    EMIT_AND_TO = 0x21, /* memory */
    EMIT_AND = 0x23,
    EMIT_SUBTRACT_FROM = 0x29, /* memory */
    EMIT_SUB = 0x2b,
    EMIT_XOR = 0x33,
    EMIT_COMPARE = 0x3b,
    EMIT_LOAD = 0x8b,
    EMIT_STORE_BYTE = 0x88,
    EMIT_STORE = 0x89,
    EMIT_LEA = 0x8d,
    EMIT_MULTIPLY = 0xfaf,
    EMIT_LOAD_BYTE = 0xfb6
};
enum emit_condition { IF_BELOW = 2, IF_NOT_BELOW, IF_EQUAL, IF_NOT_EQUAL, IF_NOT_ABOVE, IF_ABOVE };

static inline void emit_byte(struct emit *e, unsigned byte)
{
    if (e->used < e->room)
        e->bytes[e->used] = (uint8_t)byte;
    e->used++;
}

static inline void emit_bytes(struct emit *e, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        emit_byte(e, (unsigned)(value >> 8 * i) & 0xff);
}

static inline bool emit_is_short(int64_t value) /* it fits into a byte, with its sign */
{
    return value >= -128 && value < 128;
}

enum { EMIT_TIMES_4 = 2 << 4, EMIT_TIMES_8 = 3 << 4 }; /* with an index */

/* reg, [base + index + disp]; index RSP: none. wide: 64 bits, else 32. */
static inline void emit_memory(struct emit *e, bool wide, unsigned op, unsigned reg, unsigned base, unsigned index,
                               int64_t disp)
{
    unsigned rex = 0x40u | (unsigned)wide << 3 | reg >> 3 << 2 | (index >> 3 & 1) << 1 | base >> 3;
    bool has_sib = index != RSP || (base & 7) == RSP;
    unsigned mode = disp == 0 && (base & 7) != RBP ? 0 : emit_is_short(disp) ? 1 : 2;

    emit_byte(e, rex);
    if (op > 0xff)
        emit_byte(e, op >> 8);
    emit_byte(e, op & 0xff);
    emit_byte(e, mode << 6 | (reg & 7) << 3 | (has_sib ? RSP : base & 7));
    if (has_sib)
        emit_byte(e, index >> 4 << 6 | (index & 7) << 3 | (base & 7));
    emit_bytes(e, (uint64_t)disp, mode == 0 ? 0 : mode == 1 ? 1 : 4);
}

static inline void emit_at(struct emit *e, unsigned op, unsigned reg, unsigned base, int64_t disp)
{
    emit_memory(e, true, op, reg, base, RSP, disp);
}

static inline void emit_registers(struct emit *e, unsigned op, unsigned reg, unsigned other)
{
    emit_byte(e, 0x48 | reg >> 3 << 2 | other >> 3);
    if (op > 0xff)
        emit_byte(e, op >> 8);
    emit_byte(e, op & 0xff);
    emit_byte(e, 0xc0 | (reg & 7) << 3 | (other & 7));
}

/* A move of 10 bytes, so that any other constant can be patched in. */
static inline void emit_constant_wide(struct emit *e, unsigned reg, uint64_t value)
{
    emit_byte(e, 0x48 | reg >> 3);
    emit_byte(e, 0xb8 | (reg & 7));
    emit_bytes(e, value, 8);
}

static inline void emit_constant(struct emit *e, unsigned reg, uint64_t value)
{
    if (value > UINT32_MAX) {
        emit_constant_wide(e, reg, value);
        return;
    }
    emit_byte(e, 0x40 | reg >> 3);
    emit_byte(e, 0xb8 | (reg & 7));
    emit_bytes(e, value, 4);
}

/* With a constant, which has a sign. */
enum emit_with { WITH_ADD = 0xc0, WITH_ADD_CARRY = 0xd0, WITH_AND = 0xe0, WITH_COMPARE = 0xf8 };
static inline void emit_with(struct emit *e, enum emit_with op, unsigned reg, int32_t value)
{
    bool is_short = emit_is_short(value);

    emit_byte(e, 0x48 | reg >> 3);
    emit_byte(e, is_short ? 0x83 : 0x81);
    emit_byte(e, (unsigned)op | (reg & 7));
    emit_bytes(e, (uint64_t)value, is_short ? 1 : 4);
}

static inline void emit_add_constant(struct emit *e, unsigned reg, int32_t value)
{
    if (value)
        emit_with(e, WITH_ADD, reg, value);
}

static inline void emit_and_constant(struct emit *e, unsigned reg, uint32_t value) /* clears the upper 32 bits */
{
    bool is_short = value < 128;

    emit_byte(e, 0x40 | reg >> 3);
    emit_byte(e, is_short ? 0x83 : 0x81);
    emit_byte(e, 0xe0 | (reg & 7));
    emit_bytes(e, value, is_short ? 1 : 4);
}

static inline void emit_test_constant(struct emit *e, unsigned reg, uint32_t value) /* of the low 32 bits */
{
    emit_byte(e, 0x40 | reg >> 3);
    emit_byte(e, 0xf7);
    emit_byte(e, 0xc0 | (reg & 7));
    emit_bytes(e, value, 4);
}

static inline void emit_shift(struct emit *e, unsigned reg, bool left, unsigned by)
{
    if (by == 0)
        return;
    emit_byte(e, 0x48 | reg >> 3);
    emit_byte(e, 0xc1);
    emit_byte(e, (left ? 0xe0 : 0xe8) | (reg & 7));
    emit_byte(e, by);
}

/* Shifts to the left by that number of bits; a negative number, to the right. */
static inline void emit_scale(struct emit *e, unsigned reg, int by)
{
    emit_shift(e, reg, by > 0, (unsigned)(by > 0 ? by : -by));
}

/* to = from * value */
static inline void emit_multiply_constant(struct emit *e, unsigned to, unsigned from, int32_t value)
{
    emit_byte(e, 0x48 | to >> 3 << 2 | from >> 3);
    emit_byte(e, 0x69);
    emit_byte(e, 0xc0 | (to & 7) << 3 | (from & 7));
    emit_bytes(e, (uint64_t)value, 4);
}

/* rdx, rax = rax * [base + disp] */
static inline void emit_multiply_wide(struct emit *e, unsigned base, int64_t disp)
{
    emit_memory(e, true, 0xf7, 4, base, RSP, disp);
}

/* to = the unsigned minimum of both */
static inline void emit_least(struct emit *e, unsigned to, unsigned other)
{
    emit_registers(e, EMIT_COMPARE, other, to);
    emit_registers(e, 0xf42, to, other); /* cmovb */
}

static inline void emit_not(struct emit *e, unsigned reg)
{
    emit_byte(e, 0x48 | reg >> 3);
    emit_byte(e, 0xf7);
    emit_byte(e, 0xd0 | (reg & 7));
}

/* [base + disp] += value. */
static inline void emit_add_to(struct emit *e, unsigned base, int64_t disp, int32_t value)
{
    bool is_short = emit_is_short(value);

    emit_memory(e, true, is_short ? 0x83 : 0x81, 0, base, RSP, disp);
    emit_bytes(e, (uint64_t)value, is_short ? 1 : 4);
}

/* [base + index + disp] += 1 */
static inline void emit_increment(struct emit *e, unsigned base, unsigned index, int64_t disp)
{
    emit_memory(e, true, 0x83, 0, base, index, disp);
    emit_byte(e, 1);
}

/* With a value that fits into a byte, with its sign. */
static inline void emit_compare_short(struct emit *e, unsigned base, unsigned index, int64_t disp, int8_t value)
{
    emit_memory(e, true, 0x83, 7, base, index, disp);
    emit_byte(e, (uint8_t)value);
}

/* [base + index + disp] = value, which has a sign. */
static inline void emit_store_constant(struct emit *e, bool wide, unsigned base, unsigned index, int64_t disp,
                                       int32_t value)
{
    emit_memory(e, wide, 0xc7, 0, base, index, disp);
    emit_bytes(e, (uint64_t)value, 4);
}

static inline void emit_compare_byte(struct emit *e, unsigned base, unsigned index, int64_t disp, uint8_t value)
{
    emit_memory(e, false, 0x80, 7, base, index, disp);
    emit_byte(e, value);
}

static inline void emit_store_byte(struct emit *e, unsigned base, unsigned index, int64_t disp, uint8_t value)
{
    emit_memory(e, false, 0xc6, 0, base, index, disp);
    emit_byte(e, value);
}

static inline void emit_push(struct emit *e, unsigned reg)
{
    emit_byte(e, 0x40 | reg >> 3);
    emit_byte(e, 0x50 | (reg & 7));
}

static inline void emit_pop(struct emit *e, unsigned reg)
{
    emit_byte(e, 0x40 | reg >> 3);
    emit_byte(e, 0x58 | (reg & 7));
}

static inline void emit_return(struct emit *e)
{
    emit_byte(e, 0xc3);
}

/* The displacement of a jump or call to the offset `to`; 0: emit_here or emit_link sets it later. Returns the offset of the displacement, for
 * these functions; emit_jump and emit_jump_if do, too. */
static inline size_t emit_displacement(struct emit *e, size_t to)
{
    emit_bytes(e, to ? to - (e->used + 4) : 0, 4);
    return e->used - 4;
}

static inline size_t emit_jump(struct emit *e, size_t to)
{
    emit_byte(e, 0xe9);
    return emit_displacement(e, to);
}

static inline size_t emit_jump_if(struct emit *e, enum emit_condition c, size_t to)
{
    emit_byte(e, 0x0f);
    emit_byte(e, 0x80 | (unsigned)c);
    return emit_displacement(e, to);
}

static inline void emit_call(struct emit *e, size_t to)
{
    emit_byte(e, 0xe8);
    emit_displacement(e, to);
}

static inline void emit_jump_at(struct emit *e, unsigned base, int64_t disp) /* to where [base + disp] says */
{
    emit_memory(e, false, 0xff, 4, base, RSP, disp);
}

static inline void emit_jump_register(struct emit *e, unsigned reg)
{
    emit_byte(e, 0x40 | reg >> 3);
    emit_byte(e, 0xff);
    emit_byte(e, 0xe0 | (reg & 7));
}

static inline void emit_call_register(struct emit *e, unsigned reg)
{
    emit_byte(e, 0x40 | reg >> 3);
    emit_byte(e, 0xff);
    emit_byte(e, 0xd0 | (reg & 7));
}

/* Lets the jump with that displacement go to the current end of the code. */
static inline void emit_here(struct emit *e, size_t displacement)
{
    int32_t by = (int32_t)(e->used - (displacement + 4));

    if (e->used <= e->room)
        memcpy(e->bytes + displacement, &by, sizeof by);
}

/* Jumps to one target that is not known yet form a list: each displacement has the offset of the one before; 0: none. */
static inline void emit_link(struct emit *e, size_t displacement, size_t before)
{
    uint32_t chain = (uint32_t)before;

    if (e->used <= e->room)
        memcpy(e->bytes + displacement, &chain, sizeof chain);
}

/* Lets all jumps of the list that begins with that displacement go to the current end of the code. */
static inline void emit_all_here(struct emit *e, size_t displacement)
{
    uint32_t before;

    for (; displacement && e->used <= e->room; displacement = before) {
        memcpy(&before, e->bytes + displacement, sizeof before);
        emit_here(e, displacement);
    }
}

#endif
