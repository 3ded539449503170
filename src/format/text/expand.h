/* SPDX-License-Identifier: MIT */
/* Expanded blocks: the same instructions, with a separate slot for each operand's address, element count and value, so that the
 * text of an execution has effective addresses.
 *
 * If the operands need more slots than an item may have, the block is split between instructions into several pieces. */
#ifndef FORMAT_TEXT_EXPAND_H
#define FORMAT_TEXT_EXPAND_H

#include <stdint.h>

#include "base/arena.h"
#include "peet/err.h"
#include "peet/schema.h"

/* A piece of an expanded block. */
struct text_piece {
    struct peet_block block;
    uint16_t first_operand; /* number of its first operand in the original block */
    uint32_t name;          /* number of its name in the text, set by the writer; 0: not written yet */
};

/* The pieces of an expanded block. */
struct text_expansion {
    uint16_t pieces;
    struct text_piece *piece;
};

/* Fails with PEET_ERR_LIMIT when one instruction alone needs too many slots. */
int text_expand(const struct peet_block *b, struct arena *arena, struct text_expansion *ret, struct peet_err *err);

/* The slots of one execution of a piece. src: sources of the original block, with temporaries. The address of an operand that
 * is not executed is 0. */
void text_expand_slots(const struct peet_block *b, const struct text_piece *piece, const uint64_t *src,
                       uint64_t *ret_slots);

#endif
