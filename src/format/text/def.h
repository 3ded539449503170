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

/* A node of a loop, as far as counting its instructions goes. */
struct text_size {
    uint64_t trips;
    uint32_t insns; /* of a block; 0: a loop */
    uint16_t end;
    bool counted;
};

/* What a name stands for. The map from names has the letter, 'b' or 'l', as its tag. */
struct text_item {
    uint64_t line; /* where it was defined */
    uint32_t item; /* its number in the trace */
    uint16_t slots;
    uint16_t values;   /* loop: slots that are not counts */
    uint32_t insns;    /* block */
    uint16_t operands; /* block: whose addresses are sums of slots and constants; else 0 */
    const struct peet_operand *operand;
    uint16_t nodes;               /* loop */
    const struct text_size *size; /* loop: of its nodes */
};

/* How many instructions an execution is; UINT64_MAX when that is too many to count. */
uint64_t text_item_insns(const struct text_item *i, const uint64_t *slots);

struct text_block_def {
    uint64_t name, line;
    bool slots_said;
    unsigned slots, used; /* as said; one more than the greatest that is used */
    uint16_t insns, operands, computes, effects;
    struct peet_insn insn[BLOCK_MAX_INSNS];
    struct peet_operand operand[BLOCK_MAX_OPERANDS];
    struct peet_compute compute[PEET_TEMPS];
    struct peet_effect effect[UINT16_MAX];
};

/* The rest of the line that begins with "block". */
int text_block_begin(struct text_scan *s, struct text_block_def *b);
/* A line inside the block: 1; 0 when the line is none of a block's, and the definition ends before it; or an error. */
int text_block_line(struct text_scan *s, struct text_block_def *b);
/* The block points into b. */
int text_block_end(struct text_scan *s, const struct text_block_def *b, struct peet_block *ret);

struct text_loop_def {
    uint64_t name, line;
    uint16_t values, counts, nodes, depth;
    uint16_t open[PEET_LOOP_DEPTH]; /* the loops around the next node */
    struct peet_loop_node node[LOOP_MAX_NODES];
    struct text_size size[LOOP_MAX_NODES];
    struct peet_assign assign[UINT16_MAX]; /* of the line that is being read */
};

/* The same for loops; names maps to text_items, and what the definition needs until its end is in the arena. */
int text_loop_begin(struct text_scan *s, struct text_loop_def *l);
int text_loop_line(struct text_scan *s, struct text_loop_def *l, const struct map *names, struct arena *arena);
int text_loop_end(struct text_scan *s, const struct text_loop_def *l, struct peet_loop *ret);

#endif
