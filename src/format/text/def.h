/* SPDX-License-Identifier: MIT */
/* Definitions of blocks and loops in the text form, read line by line. */
#ifndef FORMAT_TEXT_DEF_H
#define FORMAT_TEXT_DEF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "format/schema/schema.h"
#include "format/text/scan.h"

/* What the instruction count of a loop needs of a node. */
struct text_size {
    uint64_t trips; /* as in struct peet_loop_node */
    uint32_t insns; /* of a block; 0: a loop */
    uint16_t end;   /* as in struct peet_loop_node */
    bool counted;
};

/* The item that a name stands for. In the map from names, its letter 'b' or 'l' is the tag. */
struct text_item {
    uint64_t line; /* number of the line that defines it */
    uint32_t item; /* its number in the trace */
    uint16_t slots;
    uint16_t values;   /* loop: slots that are not counts */
    uint32_t insns;    /* block: number of instructions */
    uint16_t operands; /* block with addresses that are sums of slots and constants: number of operands; else 0 */
    const struct peet_operand *operand;
    uint16_t nodes;               /* loop: number of nodes */
    const struct text_size *size; /* loop: its nodes */
};

/* Instructions of an execution; UINT64_MAX: too many to count. */
uint64_t text_item_insns(const struct text_item *i, const uint64_t *slots);

/* A definition of a block that is being read. */
struct text_block_def {
    uint64_t name, line;  /* number of b<number>; number of its first line */
    bool slots_said;      /* the definition gives the number of slots */
    unsigned slots, used; /* this number; 1 + the greatest slot that is used */
    uint16_t insns, operands, computes, effects;
    struct peet_insn insn[BLOCK_MAX_INSNS];
    struct peet_operand operand[BLOCK_MAX_OPERANDS];
    struct peet_compute compute[PEET_TEMPS];
    struct peet_effect effect[UINT16_MAX];
};

/* Reads the rest of a line that begins with "block". */
int text_block_begin(struct text_scan *s, struct text_block_def *b);
/* Reads a line of the block: 1; 0: the line is no line of a block, and ends the definition; or an error. */
int text_block_line(struct text_scan *s, struct text_block_def *b);
/* Ends the definition; *ret has pointers into b. */
int text_block_end(struct text_scan *s, const struct text_block_def *b, struct peet_block *ret);

/* A definition of a loop that is being read. */
struct text_loop_def {
    uint64_t name, line;                   /* number of l<number>; number of its first line */
    uint16_t values, counts, nodes, depth; /* so far, as in struct peet_loop; elements of `open` */
    uint16_t open[PEET_LOOP_DEPTH];        /* loops around the next node, the innermost last */
    struct peet_loop_node node[LOOP_MAX_NODES];
    struct text_size size[LOOP_MAX_NODES];
    struct peet_assign assign[UINT16_MAX]; /* of the current line */
};

/* Read the lines of a loop, as the functions above those of a block. names maps to struct text_item; the arena has memory of the definition. */
int text_loop_begin(struct text_scan *s, struct text_loop_def *l);
int text_loop_line(struct text_scan *s, struct text_loop_def *l, const struct map *names, struct arena *arena);
int text_loop_end(struct text_scan *s, const struct text_loop_def *l, struct peet_loop *ret);

#endif
