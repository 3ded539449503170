/* SPDX-License-Identifier: MIT */
/* The schema: what is said once about a program, so that its stream can be short.
 *
 * An item is anything a stream can execute: a block, a summarised loop or an event at a call site. Each execution
 * carries the item's slots: the 64-bit words that the schema cannot compute. All else follows from sources.
 *
 * A source is a number: 0 is the constant zero; then come 16 registers that live as long as the thread (by custom
 * r0 is the stack pointer and r1 the thread pointer), the item's slots, and the temporaries that its computes define. */
#ifndef PEET_SCHEMA_H
#define PEET_SCHEMA_H

#include <stdint.h>

#include "peet/record.h"

enum { PEET_REGISTERS = 16, PEET_SLOTS = 64, PEET_TEMPS = 64 };
enum {
    PEET_SRC_ZERO = 0,
    PEET_SRC_REGISTER = 1,
    PEET_SRC_SLOT = PEET_SRC_REGISTER + PEET_REGISTERS,
    PEET_SRC_TEMP = PEET_SRC_SLOT + PEET_SLOTS,
    PEET_SOURCES = PEET_SRC_TEMP + PEET_TEMPS
};

/* X(name): what an instruction does to control, and what it costs a simple processor. */
/* clang-format off */
#define PEET_CLASSES(X) \
    X(plain) X(mul) X(div) X(fp) X(fpdiv) X(vector) \
    X(branch) X(jump) X(jump_indirect) X(call) X(call_indirect) X(return) \
    X(syscall) X(fence) X(pause) X(nop) X(trap)
/* clang-format on */
enum peet_class {
#define X(name) PEET_CL_##name,
    PEET_CLASSES(X) PEET_CLASS_COUNT
#undef X
};

/* Flags of an instruction. */
enum {
    PEET_FL_ATOMIC = 1, /* its references are indivisible */
    PEET_FL_ACQUIRE = 2,
    PEET_FL_RELEASE = 4,
    PEET_FL_STRING = 8, /* repeated string operation */
    PEET_FL_FENCE_LL = 16,
    PEET_FL_FENCE_SS = 32,
    PEET_FL_FENCE_FULL = 64,
    PEET_FL_KERNEL = 128, /* executed by the operating system on behalf of the thread */
};

/* An instruction. */
struct peet_insn {
    uint64_t addr;
    uint64_t target; /* of a direct branch, jump or call; else 0 */
    uint16_t length; /* bytes up to the next instruction, with those that a producer has inserted after this one */
    uint16_t flags;  /* PEET_FL_… */
    uint8_t class;   /* enum peet_class */
};

/* addr = base + (index << scale) + disp. The values of all sources are those at the block's entry. */
struct peet_operand {
    int64_t disp;
    uint32_t size; /* bytes; with size_src: bytes per element */
    uint16_t insn; /* index in the block */
    uint8_t kind;  /* PEET_LOAD … PEET_PREFETCH */
    uint8_t base, index, scale;
    uint8_t size_src;  /* not 0: this source is the number of elements, 0 elements is no reference */
    uint8_t down;      /* elements go to falling addresses; base is the address of the first (highest) element */
    uint8_t predicate; /* not 0: done only if bit predicate_bit of this source is set */
    uint8_t predicate_bit;
    uint8_t value; /* not 0: the slot source that holds the first of (size + 7) / 8 words moved */
};

/* temporary = a OP (b + imm); `add` takes a + (b << shift) + imm. Width 4 truncates operands and result to 32 bits. */
#define PEET_OPS(X) X(add) X(sub) X(mul) X(and) X(or) X(xor) X(shl) X(shr) X(sar) X(sext) X(zext)
enum peet_op {
#define X(name) PEET_OP_##name,
    PEET_OPS(X) PEET_OP_COUNT
#undef X
};

/* The computation of a temporary; the i-th one of a block defines temporary i. */
struct peet_compute {
    int64_t imm;
    uint8_t op;           /* enum peet_op */
    uint8_t a, b;         /* sources, PEET_SRC_… */
    uint8_t shift, width; /* bits; bytes: 4 or 8 */
};

/* A change of a trace register at the end of a block, in order: register = src + add. */
struct peet_effect {
    int64_t add;
    uint8_t reg; /* number of the register */
    uint8_t src; /* source, PEET_SRC_… */
};

/* A block: instructions that execute together, and the references that they make. */
struct peet_block {
    uint32_t id;                                 /* its item number */
    uint32_t first_insn;                         /* number of its first instruction in the schema; set by the library */
    uint16_t insns, operands, computes, effects; /* elements of the arrays below */
    uint16_t slots;                              /* values that each execution carries */
    const struct peet_insn *insn;
    const struct peet_operand *operand;
    const struct peet_compute *compute;
    const struct peet_effect *effect;
};

/* A summarised loop nest, as a preorder of nodes. An execution carries values and trip counts in its slots, first the
 * values. Node 0 is a loop. A loop node does `enter` once, then count times: its children in order, then `step`.
 * A block node executes a block whose slot i is `slot[i]`; registers and effects work as in streams. The body of each loop has at
 * least one block node. Value number PEET_LOOP_ZERO is the constant 0. */
enum { PEET_LOOP_ZERO = 255, PEET_LOOP_DEPTH = 8 };

/* value[dst] = value[src] + value[plus - 1] + add, plus being 0 for none; in a block node: slot[dst] = … */
struct peet_assign {
    int64_t add;
    uint8_t dst, src; /* numbers of values; of a block node, dst: number of a slot */
    uint8_t plus;     /* 1 + number of a value; 0: none */
};

/* A node of a loop: an inner loop, or a block. */
struct peet_loop_node {
    uint32_t block;   /* a block's id, or 0: this is a loop */
    uint16_t end;     /* loop: number of the first node after its body */
    uint16_t assigns; /* elements of `assign`: of enter and step, or of slot */
    uint16_t enters;  /* loop: the first of these, which are enter; the rest is step */
    uint8_t counted;  /* loop: 1: trips is the number of a count slot; 0: trips is the trip count itself */
    uint64_t trips;   /* loop: as `counted` says */
    const struct peet_assign *assign;
};

/* A loop. */
struct peet_loop {
    uint32_t id;             /* its item number */
    uint16_t values, counts; /* slots with values; after them, slots with trip counts */
    uint16_t nodes;          /* elements of `node` */
    const struct peet_loop_node *node;
};

/* An execution of a loop. */
struct peet_loop_run {
    const struct peet_loop *loop;
    const uint64_t *value; /* loop->values elements */
    const uint64_t *count; /* loop->counts elements: trip counts */
};

/* An item that stands for events of one kind and site. */
struct peet_event_item {
    uint32_t id;   /* its item number */
    uint32_t kind; /* enum peet_event_kind */
    uint64_t site; /* address of the call; 0: not known */
};

/* What was run, and where its pieces were in memory. All strings are UTF-8 or whatever the system gave, never NULL. */
struct peet_process {
    uint32_t id, parent;           /* numbers in the trace; parent: its own number, if it has none */
    const char *program, *command; /* path; command line */
};
/* A part of a module, in memory. */
struct peet_segment {
    uint64_t start, size; /* address at run time; bytes */
    uint64_t offset;      /* byte in the file at which it begins */
    uint32_t protection;  /* 1 execute, 2 write, 4 read */
};
/* A name of an address range. */
struct peet_symbol {
    uint64_t addr, size; /* address at run time; bytes */
    const char *name;
    uint8_t code; /* 1 function, 0 data */
};
/* A program or library in the memory of a process. */
struct peet_module {
    uint32_t process; /* number of the process */
    const char *path;
    const char *build_id; /* lower-case hexadecimal, "" when it has none */
    uint64_t bias;        /* run-time address minus address in the file */
    uint32_t segments, symbols;
    const struct peet_segment *segment;
    const struct peet_symbol *symbol; /* rising addresses, as at run time */
};
/* Memory of a process that belongs to no module. */
struct peet_range {
    uint32_t process;     /* number of the process */
    uint64_t start, size; /* address at run time; bytes */
    uint32_t protection;  /* 1 execute, 2 write, 4 read */
    const char *name;
};
/* A thread. */
struct peet_thread {
    uint32_t id, process, parent; /* numbers; parent: the creating thread, or its own number: none */
    uint32_t ordinal; /* position among the children of its parent, from 0: with parent a name that no timing changes */
    const char *name;
};

#endif
