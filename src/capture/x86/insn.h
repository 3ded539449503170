/* SPDX-License-Identifier: MIT */
/* A decoded x86-64 instruction: its class, its memory operands as functions of the registers before it, and the
 * registers that it changes. Assumes 64-bit mode.
 * References: each operand that is read or written, implicit ones of the stack and of string instructions included;
 * loads come before stores. An operand that is read and written is one update, also if the write is conditional
 * (cmpxchg). No references: lea, nop, cache-line flushes, memory that the kernel uses in a system call.
 * Leaves out: copies of a nested enter, clzero, AMX tiles, and AVX-512 masks except in gathers, scatters and moves:
 * such an operand counts whole. */
#ifndef CAPTURE_X86_INSN_H
#define CAPTURE_X86_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peet/schema.h"

enum { X86_MAX_BYTES = 15, X86_MAX_MEMORIES = 2, X86_MAX_MOVES = 2, X86_MAX_ELEMENTS = 64 };

/* General registers, with the numbers that instructions use. */
enum {
    X86_RAX,
    X86_RCX,
    X86_RDX,
    X86_RBX,
    X86_RSP,
    X86_RBP,
    X86_RSI,
    X86_RDI,
    X86_GPRS = 16, /* r8 to r15 are 8 to 15 */
    X86_NONE = X86_GPRS
};

enum { X86_FLAG_DIRECTION = 0x400, X86_FLAG_TRAP = 0x100 };

/* Registers of a thread on which addresses depend. */
struct x86_state {
    uint64_t gpr[X86_GPRS];
    uint64_t rip, flags, fs_base, gs_base;
};

/* Registers on which masked operands depend. */
struct x86_vectors {
    uint8_t zmm[32][64];
    uint8_t mm[8][8];
    uint64_t k[8];
};

enum x86_form {
    X86_PLAIN,    /* base + index * scale + disp */
    X86_REPEATED, /* a number of contiguous elements, upwards or downwards */
    X86_MASKED,   /* those contiguous elements whose bit in the mask is set */
    X86_GATHERED, /* elements at base + index[i] * scale + disp whose bit in the mask is set */
    X86_BIT,      /* bt, bts, btr, btc: a register holds a signed bit offset from the plain address */
    X86_BYTE,     /* xlat: the index is the lowest byte of its register */
};

enum x86_segment { X86_FLAT, X86_FS, X86_GS };
/* sign bits of a vector's elements; a k register; sign bits of an mm register's bytes */
enum x86_mask { X86_MASK_SIGNS, X86_MASK_K, X86_MASK_MM };

/* A memory operand of an instruction. */
struct x86_memory {
    int64_t disp;
    uint32_t size;              /* bytes; of one element if there may be several */
    uint8_t kind;               /* PEET_LOAD … PEET_PREFETCH */
    uint8_t form;               /* enum x86_form */
    uint8_t base, index, scale; /* general registers or X86_NONE; scale is a shift. GATHERED: index is a vector */
    uint8_t bit;                /* X86_BIT: the register with the bit offset */
    uint8_t segment;            /* enum x86_segment */
    bool narrow;                /* addresses have 32 bits */
    uint8_t elements;           /* X86_MASKED, X86_GATHERED: number of elements */
    uint8_t index_size;         /* X86_GATHERED: bytes of an index */
    uint8_t mask, mask_kind;    /* mask: number of the register; mask_kind: enum x86_mask */
};

/* A known change of a register: to = from + (other << shift) + add, or from - (other << shift) + add if minus is set.
 * Registers have their values from before the instruction; X86_NONE is 0. If narrow is set, only the lower 32 bits are
 * known, and the upper ones are 0. */
struct x86_move {
    int64_t add;
    uint8_t to, from, other, shift;
    bool minus, narrow;
};

/* Instructions that a tracer treats differently. */
enum x86_special { X86_ORDINARY, X86_SYSCALL, X86_PUSHF, X86_TRAP_SIGNAL, X86_UNKNOWN };

/* A decoded instruction. */
struct x86_insn {
    struct peet_insn insn;
    uint8_t bytes[X86_MAX_BYTES]; /* the instruction's, then the bytes after it that the decoder was given */
    uint8_t special;              /* enum x86_special */
    bool is_repeated;             /* rep prefix: single-stepping stops after each element */
    bool needs_vectors;           /* an operand depends on struct x86_vectors */
    bool ends_block;              /* no instruction may follow it in a block */
    bool narrow_count;            /* is_repeated, counting in ecx */
    uint8_t memories, moves;      /* elements of `memory` and `move` in use */
    uint16_t changes;             /* bit r: general register r may change, by `move` or otherwise */
    uint16_t reads;               /* bit r: general register r is read other than for an address */
    bool sets_flags;              /* a flag that branches test */
    bool sets_all_flags;          /* all these flags, whatever its operands are */
    bool reads_flags;             /* one of these flags, as it was before the instruction */
    bool leaks_sp;                /* it may copy an address of the stack to a register other than %rsp, or to memory */
    int64_t leak_offset;          /* leaks_sp: the lowest such address, relative to %rsp */
    uint8_t load_reg;             /* general register that receives all 64 bits of memory[0], or X86_NONE */
    struct x86_memory memory[X86_MAX_MEMORIES];
    struct x86_move move[X86_MAX_MOVES];
};

/* Decodes the instruction at the beginning of n bytes, whose address is addr. Unknown ones have length 1, class trap,
 * and X86_UNKNOWN. */
void x86_decode(const uint8_t *bytes, size_t n, uint64_t addr, struct x86_insn *ret);

/* The class of an instruction and its flags. Called by x86_decode. */
struct ZydisDecodedInstruction_;
struct ZydisDecodedOperand_;
void x86_classify(const struct ZydisDecodedInstruction_ *in, const struct ZydisDecodedOperand_ *op,
                  struct peet_insn *ret);

/* Address of an operand. Of X86_REPEATED and X86_MASKED: of the first element. */
uint64_t x86_address(const struct x86_memory *m, const struct x86_state *s);

/* The mask of X86_MASKED and X86_GATHERED, one bit per element; the address of element i of X86_GATHERED. */
uint64_t x86_mask(const struct x86_memory *m, const struct x86_vectors *v);
uint64_t x86_element(const struct x86_memory *m, const struct x86_state *s, const struct x86_vectors *v, unsigned i);

#endif
