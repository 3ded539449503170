/* SPDX-License-Identifier: MIT */
/* From executed instructions to blocks of the schema, and to the slots of each execution.
 *
 * Blocks are kept as trees: a node is an instruction behind those on the way to its root, where the block begins. A thread
 * goes down a tree as it executes instructions in a row, and each node says which slots its instruction adds and how they
 * get their values; where the row ends, the node is the block. So a block is defined once for each row of instructions
 * that has been executed, and the same address with other bytes is another node.
 *
 * Slots are registers rather than addresses where that is as short: an operand whose registers are in slots already, or
 * differ from such a value by a constant that the instructions between them say, needs no slot of its own. Of two registers of
 * which neither is in a slot, the address is one; it serves other operands with the same two. Each execution
 * compares the addresses that follow from its slots with those that follow from the registers, by assertion. */
#ifndef CAPTURE_X86_LAYOUT_H
#define CAPTURE_X86_LAYOUT_H

#include "base/arena.h"
#include "base/map.h"
#include "capture/x86/insn.h"
#include "peet/trace.h"

/* Variants of an execution: a string went downwards; it was left before its end, by a signal. */
enum { X86_DOWN = 1, X86_CUT = 2 };

/* Variants of a block's first instruction, for who cannot ask for registers later: %rsp is the first slot; it is in
 * register X86_STACK_REGISTER of the trace, where the block before left it. Blocks of both kinds leave it there, if they
 * know it at their end. */
enum { X86_STACK_SLOT = 4, X86_STACK_CARRIED = 8, X86_STACK_REGISTER = 0 };

/* The register of the trace that holds the base of %fs at a block's entry. */
enum { X86_FS_REGISTER = 1 };

enum { X86_VALUE_WORDS = 8 }; /* the longest value that is recorded */

enum x86_fill_kind {
    X86_FILL_REGISTER,
    X86_FILL_ADDRESS,
    X86_FILL_COUNT,
    X86_FILL_MASK,
    X86_FILL_ELEMENT,
    X86_FILL_VALUE
};

struct x86_fill {
    uint8_t kind;   /* enum x86_fill_kind */
    uint8_t memory; /* which operand of the instruction */
    uint8_t which;  /* register, element or word */
};

/* What is known of a general register: source + add. */
struct x86_track {
    int64_t add;
    uint8_t source;
    bool known;
};

/* What is known of two registers of which nothing else is: base + (index << scale) = source + add. */
struct x86_pair {
    int64_t add;
    uint8_t base, index, scale, source;
};
enum { X86_PAIRS = 6 };

struct x86_node {
    const struct x86_insn *insn;
    struct x86_node *parent, *child, *sibling; /* child: the newest; sibling: the one before it */
    uint32_t item;                             /* the block that ends here; 0: none has yet */
    uint16_t depth, operands; /* of the block: instructions and operands up to here, this one included */
    uint8_t variant, slots;   /* slots up to here */
    uint8_t own_operands, own_slots;
    const struct peet_operand *operand; /* own */
    const struct x86_fill *fill;        /* own, slot by slot */
    struct x86_track track[X86_GPRS];   /* behind it */
    struct x86_pair pair[X86_PAIRS];    /* the newest first; source 0: none */
    const struct x86_pass *pass; /* not an instruction but a loop, capture/x86/path: the next block begins behind it */
};

struct x86_layout {
    bool values;    /* to be set before use: record the words that were moved */
    bool addresses; /* …: a slot for the address of each operand, even if it follows from others */
    bool bare;      /* …: no operands, and so no slots */
    bool strips;    /* …: blocks are defined without what `bare` leaves out, however they were planned */
    struct arena arena;
    struct map roots; /* struct x86_node *, by the address of its struct x86_insn, and its variant */
    struct peet_insn *insns;
    struct peet_operand *operands; /* room for a block */
    struct peet_effect effect;     /* what the block does to X86_STACK_REGISTER */
};

void x86_layout_release(struct x86_layout *l);

/* From one instruction to the next: `from` is NULL at a block's beginning. 1, and *ret; 0: the block has no room for it;
 * or PEET_ERR_MEMORY. */
int x86_layout_step(struct x86_layout *l, struct x86_node *from, const struct x86_insn *insn, unsigned variant,
                    struct x86_node **ret);

/* An instruction as it was executed. */
struct x86_moment {
    const struct x86_state *before;
    const struct x86_vectors *vectors; /* for instructions that want them */
    uint64_t count;                    /* elements, for those that repeat */
    uint64_t value[X86_MAX_MEMORIES][X86_VALUE_WORDS];
};

/* What an execution touched: how many references, and the lowest address of all. */
struct x86_touched {
    uint64_t references, lowest;
};

/* Sets those of a block's slots that the instruction adds, and checks what follows from them. */
struct x86_touched x86_node_fill(const struct x86_node *n, const struct x86_moment *m, uint64_t *slots);

/* Which of the slots up to here the block that ends at n has. */
uint64_t x86_layout_slots(const struct x86_node *n);

/* Sees to it that the block that ends at n is defined. */
int x86_layout_define(struct x86_layout *l, struct x86_node *n, struct peet_writer *w, struct peet_err *err);

/* The block of one instruction alone, in a layout that strips. */
int x86_layout_define_one(struct x86_layout *l, const struct x86_insn *insn, struct peet_writer *w, uint32_t *ret_item,
                          struct peet_err *err);

#endif
