/* SPDX-License-Identifier: MIT */
/* Executed instructions become blocks of the schema, and slots of each execution (docs/design/instrumentation.md).
 * Blocks are kept in prefix trees. A node is an instruction after those on the path to its root, where the block
 * begins. A thread descends as it executes instructions; the node of the last one stands for the block. Each sequence
 * of instructions is defined once; the same address with other bytes is another node.
 * Slots hold registers rather than addresses where that takes no more slots. An operand needs no slot if its registers
 * are in slots, or differ from a slot by a constant. Of two registers of which neither is in a slot, their sum is one
 * slot, which serves other operands with the same two. Each execution asserts that the addresses from its slots equal
 * those from its registers. */
#ifndef CAPTURE_X86_LAYOUT_H
#define CAPTURE_X86_LAYOUT_H

#include "base/arena.h"
#include "base/map.h"
#include "capture/x86/insn.h"
#include "peet/trace.h"

/* Variants of an executed instruction: a string instruction with decreasing addresses; interrupted by a signal before
 * its end. */
enum { X86_DOWN = 1, X86_INTERRUPTED = 2 };

/* Variants of a block's first instruction, for producers that cannot read registers later: %rsp is the first slot; or
 * %rsp is in register X86_SP_REGISTER of the trace, as the block before left it. Both kinds of blocks leave %rsp there
 * if it is known at their end. */
enum { X86_SP_SLOT = 4, X86_SP_IN_REGISTER = 8, X86_SP_REGISTER = 0 };

/* Register of the trace that holds the base of %fs at a block's entry. */
enum { X86_FS_REGISTER = 1 };

enum { X86_VALUE_WORDS = 8 }; /* words of the longest value that is recorded */

enum x86_fill_kind {
    X86_FILL_REGISTER,
    X86_FILL_ADDRESS,
    X86_FILL_COUNT,
    X86_FILL_MASK,
    X86_FILL_ELEMENT,
    X86_FILL_VALUE
};

/* How a slot gets its value. */
struct x86_fill {
    uint8_t kind;   /* enum x86_fill_kind */
    uint8_t memory; /* operand of the instruction */
    uint8_t which;  /* register, element or word */
};

/* A known value of a general register: source + add. */
struct x86_track {
    int64_t add;
    uint8_t source; /* PEET_SRC_… */
    bool known;     /* the other fields are set */
};

/* A known sum of two registers that are unknown otherwise: base + (index << scale) = source + add. */
struct x86_pair {
    int64_t add;
    uint8_t base, index, scale; /* numbers of registers; bits */
    uint8_t source;             /* PEET_SRC_… */
};
enum { X86_PAIRS = 6 };

/* A node of a tree of blocks: the layout after an instruction, for the path that leads to it. */
struct x86_node {
    const struct x86_insn *insn;
    struct x86_node *parent, *child, *sibling; /* child: the newest; sibling: the next older child of the same parent */
    uint32_t item;                             /* of the block that ends here; 0: not defined yet */
    uint16_t depth, operands;           /* of the block: instructions and operands up to and including this node */
    uint8_t variant, slots;             /* X86_DOWN …, of the instruction; slots up to and including this node */
    uint8_t own_operands, own_slots;    /* that the instruction adds */
    const struct peet_operand *operand; /* own_operands of them */
    const struct x86_fill *fill;        /* own_slots of them */
    struct x86_track track[X86_GPRS];   /* after the instruction */
    struct x86_pair pair[X86_PAIRS];    /* newest first; source 0: end of the list */
    /* the node is a loop (path.h), after which the next block begins; NULL: an instruction */
    const struct x86_pass *pass;
};

/* Plans of blocks: trees of nodes. */
struct x86_layout {
    bool record_values;   /* set before use: record the values of references */
    bool all_addresses;   /* set before use: each operand has a slot for its address */
    bool no_operands;     /* set before use: no operands, and therefore no slots */
    bool strips_operands; /* set before use: blocks are defined without operands, however they were planned */
    struct arena arena;
    struct map roots; /* struct x86_node *, by the address of its struct x86_insn and its variant */
    struct peet_insn *insns;
    struct peet_operand *operands; /* room for the operands of a block */
    struct peet_effect effect;     /* the block's effect on X86_SP_REGISTER */
};

void x86_layout_release(struct x86_layout *l);

/* Appends an instruction to the path that ends at `from`; NULL: begins a block. 1: *ret is set; 0: the block has no
 * room for it; or PEET_ERR_MEMORY. */
int x86_layout_step(struct x86_layout *l, struct x86_node *from, const struct x86_insn *insn, unsigned variant,
                    struct x86_node **ret);

/* An executed instruction. */
struct x86_execution {
    const struct x86_state *before;
    const struct x86_vectors *vectors; /* if insn.needs_vectors */
    uint64_t count;                    /* elements, if insn.is_repeated */
    uint64_t value[X86_MAX_MEMORIES][X86_VALUE_WORDS];
};

/* References of an execution: their number, and the lowest address. */
struct x86_reference_sum {
    uint64_t references, lowest; /* count; address */
};

/* Sets the slots that the instruction adds, and asserts that the addresses that follow from them are right. */
struct x86_reference_sum x86_node_fill(const struct x86_node *n, const struct x86_execution *m, uint64_t *slots);

/* The slots up to n that the block that ends at n uses, one bit each. */
uint64_t x86_layout_slots(const struct x86_node *n);

struct schema_builder;

/* Defines the block that ends at n in the trace, unless it is defined. */
int x86_layout_define(struct x86_layout *l, struct x86_node *n, struct schema_builder *to, struct peet_err *err);

/* Defines the block of a single instruction, in a layout without operands. */
int x86_layout_define_one(struct x86_layout *l, const struct x86_insn *insn, struct schema_builder *to,
                          uint32_t *ret_item, struct peet_err *err);

#endif
