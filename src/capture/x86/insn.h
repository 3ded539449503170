/* SPDX-License-Identifier: MIT */
/* One x86-64 instruction, as a producer sees it: what the schema says of it, where its memory operands are as functions
 * of the registers before it, and which registers it changes.
 *
 * Assumes 64-bit mode. What counts as a reference: every operand that is read or written, implicit ones of the stack and
 * of string instructions included; a load comes before a store. One that is read and written is one update, also if the
 * write depends (cmpxchg). No references: lea, nop, cache-line flushes, what the kernel does in a system call.
 * Leaves out: what enter copies when it nests, clzero, AMX tiles; masks of AVX-512 other than in gathers, scatters and
 * moves: such an operand counts whole. */
#ifndef CAPTURE_X86_INSN_H
#define CAPTURE_X86_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peet/schema.h"

enum { X86_MAX_BYTES = 15, X86_MAX_MEMORIES = 2, X86_MAX_MOVES = 2, X86_MAX_ELEMENTS = 64 };

/* General registers, as instructions number them. */
enum {
    X86_RAX,
    X86_RCX,
    X86_RDX,
    X86_RBX,
    X86_RSP,
    X86_RBP,
    X86_RSI,
    X86_RDI,
    X86_GPRS = 16, /* r8 to r15 stand before */
    X86_NONE = X86_GPRS
};

enum { X86_FLAG_DIRECTION = 0x400, X86_FLAG_TRAP = 0x100 };

/* The registers of a thread that addresses depend on. */
struct x86_state {
    uint64_t gpr[X86_GPRS];
    uint64_t rip, flags, fs_base, gs_base;
};

/* Those that masked operands depend on. */
struct x86_vectors {
    uint8_t zmm[32][64];
    uint8_t mm[8][8];
    uint64_t k[8];
};

enum x86_form {
    X86_PLAIN,    /* base + index * scale + disp */
    X86_REPEATED, /* so many elements in a row, up or down */
    X86_MASKED,   /* elements in a row, those of which the mask has a bit */
    X86_GATHERED, /* elements at base + their index * scale + disp, those of which the mask has a bit */
    X86_BIT,      /* bt and kin: a register tells the bit, from the plain address on, also backwards */
    X86_BYTE,     /* xlat: the index is the lowest byte of its register */
};

enum x86_segment { X86_FLAT, X86_FS, X86_GS };
enum x86_mask { X86_MASK_SIGNS, X86_MASK_K, X86_MASK_MM }; /* sign bits of a vector's elements; k; bytes of an mm */

struct x86_memory {
    int64_t disp;
    uint32_t size;              /* bytes; of one element, if there may be several */
    uint8_t kind;               /* PEET_LOAD … PEET_PREFETCH */
    uint8_t form;               /* enum x86_form */
    uint8_t base, index, scale; /* general registers or X86_NONE; scale is a shift. GATHERED: index is a vector */
    uint8_t bit;                /* BIT: the register */
    uint8_t segment;            /* enum x86_segment */
    bool narrow;                /* addresses have 32 bits */
    uint8_t elements;           /* MASKED, GATHERED */
    uint8_t index_size;         /* GATHERED: bytes of an index */
    uint8_t mask, mask_kind;    /* number of the register, enum x86_mask */
};

/* A change that is known: to = from + (other << shift) + add, or with - in front of other; with the values of registers before
 * the instruction (X86_NONE: 0). A narrow one is known of the lower 32 bits; the upper ones are 0 then. */
struct x86_move {
    int64_t add;
    uint8_t to, from, other, shift;
    bool minus, narrow;
};

/* What a tracer has to know of some instructions. */
enum x86_special { X86_ORDINARY, X86_SYSCALL, X86_PUSHF, X86_TRAP_SIGNAL, X86_UNKNOWN };

struct x86_insn {
    struct peet_insn insn;
    uint8_t bytes[X86_MAX_BYTES]; /* those of the instruction, and what was given behind them */
    uint8_t special;              /* enum x86_special */
    bool repeats;                 /* rep: stepping stops after each element */
    bool wants_vectors;           /* its operands depend on struct x86_vectors */
    bool ends;                    /* no instruction may follow it in a block */
    bool narrow_count;            /* repeats, counting in ecx */
    uint8_t memories, moves;
    uint16_t changes; /* a bit for each general register that it may change, those in `move` included */
    uint16_t reads;   /* and for each that it reads, apart from addresses */
    bool sets_flags;  /* those that branches look at */
    bool kills_flags; /* all of them, whatever its operands are, */
    bool reads_flags; /*   and looks at one before */
    bool takes_stack; /* it may put an address of the stack into another register than %rsp, or into memory: */
    int64_t taken;    /*   %rsp plus this, or more */
    uint8_t loaded;   /* the general register that gets all 64 bits from memory[0] as they are, or X86_NONE */
    struct x86_memory memory[X86_MAX_MEMORIES];
    struct x86_move move[X86_MAX_MOVES];
};

/* Decodes the instruction at the beginning of n bytes, which stand at addr. One that nobody knows gets the length 1, the
 * class trap, and X86_UNKNOWN. */
void x86_decode(const uint8_t *bytes, size_t n, uint64_t addr, struct x86_insn *ret);

/* The class of an instruction and its flags; for x86_decode. */
struct ZydisDecodedInstruction_;
struct ZydisDecodedOperand_;
void x86_classify(const struct ZydisDecodedInstruction_ *in, const struct ZydisDecodedOperand_ *op,
                  struct peet_insn *ret);

/* Where the operand is: PLAIN, BIT and BYTE; of REPEATED and MASKED the first element. */
uint64_t x86_address(const struct x86_memory *m, const struct x86_state *s);

/* The mask of MASKED and GATHERED, a bit per element, and where element i of GATHERED is. */
uint64_t x86_mask(const struct x86_memory *m, const struct x86_vectors *v);
uint64_t x86_element(const struct x86_memory *m, const struct x86_state *s, const struct x86_vectors *v, unsigned i);

#endif
