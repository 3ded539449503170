/* SPDX-License-Identifier: MIT */
/* The codec: a thread's items and slots as bytes (docs/trace-format.md, section 5; docs/design/trace.md).
 *
 * The codec predicts the next item from the successors of the current one, and each slot by its last value and stride. It stores the
 * number of correct predictions, and for each exception the item's rank, the mask of slots that were mispredicted, and their residuals.
 * All predictor state is reset at a chunk's end, so that each chunk can be decoded alone. */
#ifndef FORMAT_CODEC_CODEC_H
#define FORMAT_CODEC_CODEC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "format/codec/residual.h"
#include "format/schema/schema.h"
#include "peet/err.h"
#include "peet/trace.h"

/* The planes of a chunk: bytes of one kind are contiguous, which helps the compressor. */
enum plane {
    PLANE_RUNS,   /* items predicted correctly before each exception: bytes; 255: add 255 and read another byte */
    PLANE_TOKENS, /* per exception: bits 0-1 the successor's rank (3: a number in PLANE_ITEMS), bit 2: a mask follows */
    PLANE_ITEMS,  /* numbers of items, LEB128 */
    PLANE_MASKS,  /* bit i: slot i was mispredicted; one bit per slot of the item, in whole bytes */
    PLANE_CLASSES, /* per residual two bits: it has 2, 3, 4 or 8 bytes */
    PLANE_B0,      /* byte 0 of the residuals */
    PLANE_B1,      /* byte 1 */
    PLANE_B2,      /* byte 2, of those with 3 bytes or more */
    PLANE_B3,      /* byte 3, of those with 4 bytes or more */
    PLANE_HIGH,    /* the upper 4 bytes of those with 8 bytes */
    PLANES
};

enum { RANKS = 3, TOKEN_NEW = 3, TOKEN_MASK = 4, SLOT_PAD = 4, KEYS = 256, RESIDUALS = 1024, STEPS = 128 };

#define CHUNK_MAX_WORDS ((size_t)1 << 22) /* items and slots in a chunk */

/* Properties of an item that need more than sums of sources for its records. */
enum special {
    SPECIAL_STATE = 1,        /* loops, registers, varying references: the encoder has to execute it, too */
    SPECIAL_MACHINE = 2,      /* a block that computes or changes registers */
    SPECIAL_OTHER = 4,        /* no block, or one with varying references */
    SPECIAL_COUNTED_LOOP = 8, /* encoder only: a loop whose slots need nothing but `trips` */
    SPECIAL_ONE_EFFECT = 16,  /* a block that only changes one register, most often the stack pointer */
};

/* Predictor state of an item within a chunk. Fields that every execution reads come first: they share a cache line. */
struct item_state {
    struct item_state *next[RANKS]; /* successors, the latest first */
    uint64_t key;                   /* of its last event words; without a resolver: its number */
    uint64_t mispredicted;          /* mask of slots that were mispredicted at the last exception */
    uint64_t executions;            /* in this chunk; encoder only */
    uint16_t slots, padded;         /* number of slots; rounded up to a multiple of SLOT_PAD */
    uint16_t operands;              /* of a block */
    uint8_t special;                /* enum special */
    bool indexed;                   /* a block: an operand has an index */
    uint32_t leb;                   /* the item's number in LEB128 */
    uint8_t leb_bytes;              /* bytes of leb, 1 to 4 */
    uint8_t mask_bytes;             /* bytes of a mask of its slots */
    const struct plan_op *plan;     /* operands of a block */
    struct peet_record head;        /* record of a block */
    const struct item *item;
    const struct peet_trips *trips; /* of a loop in words with names; NULL: none, or the resolver computes its slots */
    uint64_t all;                   /* mask of all slots */
    uint32_t number;                /* of the item */
    _Alignas(16) uint64_t word[];   /* `padded` last values, then `padded` strides */
};

/* Makes `c` the latest successor of `from`; `rank` is its rank before, TOKEN_NEW: none. There is no branch in it,
 * since ranks cannot be predicted. */
static inline void item_state_promote(struct item_state *from, struct item_state *c, unsigned rank)
{
    from->next[2] = rank >= 2 ? from->next[1] : from->next[2];
    from->next[1] = rank >= 1 ? from->next[0] : from->next[1];
    from->next[0] = c;
}

/* The predictor states of a chunk's items. */
struct item_states {
    struct arena arena;
    struct item_state **of;   /* by item number; NULL: has not occurred in this chunk */
    size_t room;              /* elements of `of` */
    struct item_state **used; /* all that occurred, in order of occurrence */
    size_t used_count, used_room;
    struct item_state *by_key[KEYS]; /* lookup cache by a hash of the key; NULL: empty */
    struct item_state *none;         /* sentinel: before the first item, and in place of unknown successors */
};

/* Encodes a stream, chunk by chunk. */
struct encoder {
    const struct schema *schema;
    struct item_states states;
    struct item_state *now;                    /* the item encoded last */
    uint64_t run;                              /* correct predictions since the last exception */
    size_t words, limit;                       /* words in the chunk; a chunk with `limit` words is full */
    uint8_t *room[PLANES], *end[PLANES];       /* buffer of each plane; the end of what it holds */
    uint64_t *residual_end;                    /* end of `residual` */
    uint64_t at_start[PEET_REGISTERS];         /* trace registers at the begin of the chunk */
    uint64_t src[PEET_SOURCES];                /* inputs of operands, by PEET_SRC_… */
    uint64_t instructions, references, events; /* of the chunk, beyond those that follow from item_state.executions */
    const struct peet_names *names;            /* resolves keys of words; NULL: keys are item numbers */
    bool has_avx2;                             /* of this processor */
    uint64_t residual[RESIDUALS + PEET_SLOTS + SLOT_PAD]; /* zigzag; not in their planes yet */
};

int encoder_init(struct encoder *e, const struct schema *s, size_t chunk_words, struct peet_err *err);
void encoder_release(struct encoder *e);

/* Encodes items from words until these are used up or the chunk is full; *ret_used: number of words used. */
int encoder_put(struct encoder *e, const uint64_t *words, size_t n, size_t *ret_used, struct peet_err *err);

static inline int encoder_is_full(const struct encoder *e)
{
    return e->words >= e->limit;
}

/* A complete chunk: its planes, valid until encoder_next_chunk, and its totals. */
struct encoded {
    const uint8_t *plane[PLANES];
    size_t size[PLANES]; /* bytes */
    uint64_t items, instructions, references, events;
};
void encoder_finish(struct encoder *e, struct encoded *ret);
void encoder_next_chunk(struct encoder *e);

/* An item decoded ahead, without its slots. */
struct decoder_step {
    struct item_state *state;
    uint64_t mispredicted; /* mask of slots that were mispredicted */
    uint64_t before;       /* mask at the item's exception before */
};

/* Decodes a stream, chunk by chunk. */
struct decoder {
    const struct schema *schema;
    struct item_states states;
    struct item_state *now;               /* the item decoded ahead last */
    uint64_t run;                         /* correct predictions up to the next exception */
    uint64_t left;                        /* items of the chunk that were not decoded ahead */
    struct decoder_step *step, *step_end; /* items decoded ahead: [step, step_end) */
    struct decoder_step steps[STEPS];
    struct byte_reader plane[4];             /* PLANE_RUNS to PLANE_MASKS */
    struct residual_reader in;               /* residuals that are still in their planes */
    size_t in_planes;                        /* number of these */
    const uint64_t *residual, *residual_end; /* residuals out of their planes: [residual, residual_end) */
    uint64_t residual_buffer[RESIDUALS + PEET_SLOTS + SLOT_PAD];
    _Alignas(16) uint64_t padding; /* so that the slots in src, which vectors access, are aligned to 16 bytes */
    uint64_t src[PEET_SOURCES + SLOT_PAD];
    const char *fault; /* why decoder_next stopped before the chunk's end; NULL: no fault */
};

int decoder_init(struct decoder *d, const struct schema *s, struct peet_err *err);
void decoder_release(struct decoder *d);

/* Begins a chunk. The planes must stay in place while it is decoded, and be readable up to 8 bytes past their ends. */
int decoder_begin(struct decoder *d, uint64_t items, const uint8_t *const plane[PLANES], const size_t size[PLANES],
                  struct peet_err *err);

/* Decodes the next items ahead; false: there are none. Items and masks do not depend on values of slots, so that expanding an item
 * need not wait for the decoding of the next one. */
bool decoder_look(struct decoder *d);

/* Joins residuals from their planes until there are enough for `mispredicted`; false sets fault. */
bool decoder_refill(struct decoder *d, uint64_t mispredicted);

typedef uint64_t slot_pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Adds `by` to SLOT_PAD values, which also go to src. */
static inline __attribute__((always_inline)) void slots_step(uint64_t *last, const uint64_t *by, uint64_t *src)
{
    slot_pair a = *(slot_pair *)last + *(const slot_pair *)by;
    slot_pair b = *(slot_pair *)(last + 2) + *(const slot_pair *)(by + 2);

    *(slot_pair *)last = *(slot_pair *)src = a;
    *(slot_pair *)(last + 2) = *(slot_pair *)(src + 2) = b;
}

/* Some slots were mispredicted: their last values grow by residuals in place of their strides. */
static inline __attribute__((always_inline)) void decoder_add_residuals(struct decoder *d, struct item_state *c,
                                                                        uint64_t mispredicted, uint64_t before)
{
    uint64_t *last = c->word, *stride = c->word + c->padded, *src = d->src + PEET_SRC_SLOT;
    const uint64_t *residual = d->residual;

    if (mispredicted == c->all && before == mispredicted) { /* all slots were mispredicted twice in succession */
        for (uint32_t i = 0; i < c->padded; i += SLOT_PAD) {
            *(slot_pair *)(stride + i) = *(const slot_pair *)(residual + i);
            *(slot_pair *)(stride + i + 2) = *(const slot_pair *)(residual + i + 2);
            slots_step(last + i, residual + i, src + i);
        }
        d->residual += c->slots;
        return;
    }
    for (uint64_t left = mispredicted; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        uint64_t by = *residual++, then = before >> i & 1 ? by : stride[i];
        last[i] += by - then;
        stride[i] = then;
    }
    for (uint32_t i = 0; i < c->padded; i += 2) { /* not by vectors: these would wait for the words just written */
        src[i] = last[i] += stride[i];
        src[i + 1] = last[i + 1] += stride[i + 1];
    }
    d->residual = residual;
}

/* The next item, its slots in src; NULL at the end of the chunk or on a fault. */
static inline __attribute__((always_inline)) struct item_state *decoder_next(struct decoder *d)
{
    if (__builtin_expect(d->step == d->step_end, 0) && !decoder_look(d))
        return NULL;
    const struct decoder_step *s = d->step++;
    struct item_state *c = s->state;
    if (__builtin_expect(s->mispredicted == 0, 1)) {
        for (uint32_t i = 0; i < c->padded; i += SLOT_PAD)
            slots_step(c->word + i, c->word + c->padded + i, d->src + PEET_SRC_SLOT + i);
    } else {
        if (__builtin_expect(d->residual_end - d->residual < c->slots, 0) && !decoder_refill(d, s->mispredicted))
            return NULL;
        decoder_add_residuals(d, c, s->mispredicted, s->before);
    }
    return c;
}

#endif
