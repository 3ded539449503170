/* SPDX-License-Identifier: MIT */
/* Blocks for people: the same instructions, but each operand's address, element count and value is a slot of its own,
 * so that what an execution carries are the effective addresses.
 *
 * A block whose operands need more slots than an item may have becomes several blocks, cut between instructions. */
#ifndef FORMAT_TEXT_EXPAND_H
#define FORMAT_TEXT_EXPAND_H

#include <stdint.h>

#include "base/arena.h"
#include "peet/err.h"
#include "peet/schema.h"

struct text_part {
    struct peet_block block;
    uint16_t first_operand; /* its first operand's number in the original */
    uint32_t name;          /* for who writes it: how it is called; 0: not yet */
};

struct text_expansion {
    uint16_t parts;
    struct text_part *part;
};

/* Fails with PEET_ERR_LIMIT when one instruction alone needs too many slots. */
int text_expand(const struct peet_block *b, struct arena *arena, struct text_expansion *ret, struct peet_err *err);

/* The slots of one execution of a part; src holds the original's sources, computes done. The address of an operand that
 * is not executed is 0. */
void text_expand_slots(const struct peet_block *b, const struct text_part *part, const uint64_t *src,
                       uint64_t *ret_slots);

#endif
