/* SPDX-License-Identifier: MIT */
/* The tag store of a cache whose states have codes of three bits, b2 b1 b0, and the operations that change the states of all lines at once
 * (Sato, Nakashima and Ohno, 1999, table 2): reset(b) clears a bit in all words, msk_reset(m, b) clears it in the words in which bit m is set.
 * The protocols smsi and smesi number their states by these codes:
 *
 *     I 000   S 001   M 010   E 011   XP 100   US 101   UM 110   UE 111
 *
 * A word is an entry of a cache (cache/cache.h), whose lowest bits have the code; the other bits stay. In hardware the operations take constant
 * time. Here each touches every vector of words once, however many lines were used. docs/design/speculation.md. */
#ifndef SIM_COHERENCE_TAG_STORE_H
#define SIM_COHERENCE_TAG_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "sim/coherence/protocol.h"

/* Bits of a code. */
enum { TAG_B0 = 1, TAG_B1 = 2, TAG_B2 = 4, TAG_BITS = TAG_B0 | TAG_B1 | TAG_B2, TAG_CODES = 8 };

/* Words of a vector. */
enum { TAG_VECTOR = 2 };

/* reset(b) and msk_reset(m, b) on one word. */
static inline uint64_t tag_reset(uint64_t tag, unsigned b)
{
    return tag & ~(uint64_t)b;
}

static inline uint64_t tag_msk_reset(uint64_t tag, unsigned m, unsigned b)
{
    return tag & m ? tag & ~(uint64_t)b : tag;
}

/* The operations of an event on one word: what tag_store_apply does to each. */
static inline uint64_t tag_apply(uint64_t tag, enum bulk_event event)
{
    switch (event) {
    case BULK_ARRIVE:
    case BULK_CONFIRM: return tag_reset(tag, TAG_B2);
    case BULK_ROLL_BACK: return tag_reset(tag_msk_reset(tag_msk_reset(tag, TAG_B2, TAG_B1), TAG_B2, TAG_B0), TAG_B2);
    case BULK_ROLL_BACK_WRITTEN: /* b1 stays only beside b0: XP and UM lose all bits, US and UE lose b2 */
        return tag & TAG_B2 && !(tag & TAG_B0) ? tag & ~(uint64_t)TAG_BITS : tag_reset(tag, TAG_B2);
    default: return tag;
    }
}

/* Applies the operations of an event to `words` words, a multiple of TAG_VECTOR or not. Returns the number of vectors that were touched. */
size_t tag_store_apply(uint64_t *tag, size_t words, enum bulk_event event);

#endif
