/* SPDX-License-Identifier: MIT */
#include "sim/coherence/tag_store.h"

#include <string.h>

typedef uint64_t tag_vector __attribute__((vector_size(TAG_VECTOR * sizeof(uint64_t))));

/* All bits of each word in which bit m is set. */
static inline tag_vector tag_vector_mask(tag_vector v, unsigned m)
{
    return (tag_vector)((v & m) != 0);
}

static inline tag_vector tag_vector_reset(tag_vector v, unsigned b)
{
    return v & ~(uint64_t)b;
}

static inline tag_vector tag_vector_msk_reset(tag_vector v, unsigned m, unsigned b)
{
    return v & ~(tag_vector_mask(v, m) & b);
}

static inline tag_vector tag_vector_apply(tag_vector v, enum bulk_event event)
{
    if (event == BULK_ROLL_BACK) {
        v = tag_vector_msk_reset(v, TAG_B2, TAG_B1);
        v = tag_vector_msk_reset(v, TAG_B2, TAG_B0);
    } else if (event == BULK_ROLL_BACK_WRITTEN) {
        v &= ~(tag_vector_mask(v, TAG_B2) & ~tag_vector_mask(v, TAG_B0) & TAG_BITS);
    }
    return tag_vector_reset(v, TAG_B2);
}

size_t tag_store_apply(uint64_t *tag, size_t words, enum bulk_event event)
{
    size_t touched = 0;
    tag_vector v;

    for (; words >= TAG_VECTOR; words -= TAG_VECTOR, tag += TAG_VECTOR, touched++) {
        memcpy(&v, tag, sizeof v);
        v = tag_vector_apply(v, event);
        memcpy(tag, &v, sizeof v);
    }
    for (size_t i = 0; i < words; i++)
        tag[i] = tag_apply(tag[i], event);
    return touched + (words > 0);
}
