/* SPDX-License-Identifier: MIT */
/* A thread's items and slots, as bytes (docs/trace-format.md, section 5).
 *
 * Most of what a program does it has done before: an item tends to be followed by the item that followed it last time,
 * and a slot tends to grow by what it grew last time. The codec keeps, for each item that occurs in the chunk, its last
 * three successors and for each slot its last value and its stride. While everything is as foreseen it only counts; an
 * exception says which successor it was and which slots missed, and the misses are stored as differences.
 * A stride changes only when its slot misses twice in a row: a single jump does not spoil it.
 *
 * All this is forgotten at the end of a chunk, so that chunks can be decoded predict_scalar. */
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

/* The planes: what is alike lies together, which suits the compressor. */
enum plane {
    PLANE_RUNS,    /* how many items were as foreseen before each exception: bytes, 255 means 255 and more follows */
    PLANE_TOKENS,  /* an exception: bits 0-1 the successor's rank (3: a number in PLANE_ITEMS), bit 2: a mask follows */
    PLANE_ITEMS,   /* numbers of items, LEB128 */
    PLANE_MASKS,   /* bit i: slot i missed; as many bytes as the item's slots need */
    PLANE_CLASSES, /* of each difference, two bits: it has 2, 3, 4 or 8 bytes */
    PLANE_B0,
    PLANE_B1,
    PLANE_B2,
    PLANE_B3,   /* the differences' bytes 0, 1, 2, 3 */
    PLANE_HIGH, /* and their upper halves, 4 bytes each */
    PLANES
};

enum { RANKS = 3, TOKEN_NEW = 3, TOKEN_MASK = 4, SLOT_PAD = 4, NAMES = 256, RESIDUALS = 1024, STEPS = 128 };

#define CHUNK_MAX_WORDS ((size_t)1 << 22) /* items and slots in a chunk */

/* What makes an item more than a block whose operands are sums. */
enum special {
    SPECIAL_STATE = 1,        /* loops, registers, varying references: the encoder must look at it, too */
    SPECIAL_MACHINE = 2,      /* a block that computes or changes registers */
    SPECIAL_OTHER = 4,        /* no block, or one with varying references */
    SPECIAL_COUNTED_LOOP = 8, /* a loop of which `trips` tells all; only in the encoder */
    SPECIAL_ONE_EFFECT = 16,  /* a block that does nothing but to change one register, most often the stack pointer */
};

/* What is remembered of an item within a chunk. What every execution looks at stands first: it is one cache line. */
struct item_state {
    struct item_state *next[RANKS]; /* successors, the latest first */
    uint64_t name;                  /* what words said for it last */
    uint64_t missed;                /* the mask of the last execution */
    uint64_t executions;
    uint16_t slots, padded; /* padded to a multiple of SLOT_PAD */
    uint16_t operands;      /* of a block */
    uint8_t special;        /* enum special */
    bool indexed;           /* some operand has an index */
    uint32_t leb;           /* the item's number in LEB128: at most four bytes, */
    uint8_t leb_bytes;      /*   and how many they are */
    uint8_t mask_bytes;     /* of a mask of its slots */
    const struct plan_op *plan;
    struct peet_record head; /* the record of a block */
    const struct item *item;
    const struct peet_trips *trips; /* of a loop in words with names; NULL: none, or not so simple */
    uint64_t all;                   /* a mask with all slots */
    uint32_t number;                /* of the item */
    _Alignas(16) uint64_t word[];   /* padded last values, then padded strides */
};

/* Makes `c` the latest successor of `from`; `rank` is where it stood, TOKEN_NEW if it was none of them. There is no branch in it,
 * for ranks cannot be foreseen. */
static inline void item_state_promote(struct item_state *from, struct item_state *c, unsigned rank)
{
    from->next[2] = rank >= 2 ? from->next[1] : from->next[2];
    from->next[1] = rank >= 1 ? from->next[0] : from->next[1];
    from->next[0] = c;
}

struct item_states {
    struct arena arena;
    struct item_state **of; /* by item number; NULL: has not occurred in this chunk */
    size_t room;
    struct item_state **used;
    size_t used_count, used_room;
    struct item_state *by_name[NAMES]; /* that were looked for last, by a hash; NULL: none */
    struct item_state *none;           /* stands where there is no item: before the first, and as unknown successor */
};

struct encoder {
    const struct schema *schema;
    struct item_states states;
    struct item_state *now;
    uint64_t run;
    size_t words, limit;
    uint8_t *room[PLANES], *end[PLANES];
    uint64_t *residual_end;            /* of those that are not in their planes yet */
    uint64_t at_start[PEET_REGISTERS]; /* registers when the chunk began */
    uint64_t src[PEET_SOURCES];
    uint64_t instructions, references, events; /* those that are not counted by executions */
    const struct peet_names *names;            /* what stands in the words in place of item numbers; NULL: nothing */
    bool has_avx2;                             /* the processor has them */
    uint64_t residual[RESIDUALS + PEET_SLOTS + SLOT_PAD]; /* zigzag */
};

int encoder_init(struct encoder *e, const struct schema *s, size_t chunk_words, struct peet_err *err);
void encoder_release(struct encoder *e);

/* Takes items from words until they are used up or the chunk is full; *ret_used says how many words that were. */
int encoder_put(struct encoder *e, const uint64_t *words, size_t n, size_t *ret_used, struct peet_err *err);

static inline int encoder_is_full(const struct encoder *e)
{
    return e->words >= e->limit;
}

/* Ends the chunk and sums up what is in it. The planes stay valid until encoder_next_chunk. */
struct encoded {
    const uint8_t *plane[PLANES];
    size_t size[PLANES];
    uint64_t items, instructions, references, events;
};
void encoder_finish(struct encoder *e, struct encoded *ret);
void encoder_next_chunk(struct encoder *e);

/* An item to come: what does not hang on its slots. */
struct decoder_step {
    struct item_state *context;
    uint64_t missed, before;
};

struct decoder {
    const struct schema *schema;
    struct item_states states;
    struct item_state *now;                             /* the last that was looked at */
    uint64_t run, left;                                 /* items left in the chunk that were not looked at */
    struct decoder_step *step, *step_end, steps[STEPS]; /* and those that were: the next one, and where they end */
    struct byte_reader plane[4];
    struct residual_reader in;               /* differences that are still in their planes, */
    size_t in_planes;                        /*   and how many they are */
    const uint64_t *residual, *residual_end; /* the next one, and where those end that have been put together */
    uint64_t residual_buffer[RESIDUALS + PEET_SLOTS + SLOT_PAD]; /* signed again */
    uint64_t src[PEET_SOURCES + SLOT_PAD];
    const char *fault; /* what made decoder_next stop early */
};

int decoder_init(struct decoder *d, const struct schema *s, struct peet_err *err);
void decoder_release(struct decoder *d);

/* Begins a chunk; the planes must stay in place while it is decoded, and may be read up to 8 bytes past their ends. */
int decoder_begin(struct decoder *d, uint64_t items, const uint8_t *const plane[PLANES], const size_t size[PLANES],
                  struct peet_err *err);

/* Looks ahead at the next items; false when there are none. Which items come and which of their slots miss does not hang on
 * values, so this can be known before, and what is then done with them need not wait for it. */
bool decoder_look(struct decoder *d);

/* Puts differences together until there are enough for `missed`; false sets fault. */
bool decoder_refill(struct decoder *d, uint64_t missed);

typedef uint64_t slot_pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Adds `by` to SLOT_PAD values, which also go to src. */
static inline __attribute__((always_inline)) void slots_step(uint64_t *last, const uint64_t *by, uint64_t *src)
{
    slot_pair a = *(slot_pair *)last + *(const slot_pair *)by;
    slot_pair b = *(slot_pair *)(last + 2) + *(const slot_pair *)(by + 2);

    *(slot_pair *)last = *(slot_pair *)src = a;
    *(slot_pair *)(last + 2) = *(slot_pair *)(src + 2) = b;
}

/* Some slots missed: they take a difference from the plane instead of their stride. */
static inline __attribute__((always_inline)) void decoder_misses(struct decoder *d, struct item_state *c,
                                                                 uint64_t missed, uint64_t before)
{
    uint64_t *last = c->word, *stride = c->word + c->padded, *src = d->src + PEET_SRC_SLOT;
    const uint64_t *difference = d->residual;

    if (missed == c->all && before == missed) { /* all of them, again */
        for (uint32_t i = 0; i < c->padded; i += SLOT_PAD) {
            *(slot_pair *)(stride + i) = *(const slot_pair *)(difference + i);
            *(slot_pair *)(stride + i + 2) = *(const slot_pair *)(difference + i + 2);
            slots_step(last + i, difference + i, src + i);
        }
        d->residual += c->slots;
        return;
    }
    for (uint64_t left = missed; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        uint64_t by = *difference++, then = before >> i & 1 ? by : stride[i];
        last[i] += by - then;
        stride[i] = then;
    }
    for (uint32_t i = 0; i < c->padded; i += 2) { /* not by vectors: what was just written is read again */
        src[i] = last[i] += stride[i];
        src[i + 1] = last[i + 1] += stride[i + 1];
    }
    d->residual = difference;
}

/* The next item, its slots in src; NULL at the end of the chunk or on a fault. */
static inline __attribute__((always_inline)) struct item_state *decoder_next(struct decoder *d)
{
    if (__builtin_expect(d->step == d->step_end, 0) && !decoder_look(d))
        return NULL;
    const struct decoder_step *s = d->step++;
    struct item_state *c = s->context;
    if (__builtin_expect(s->missed == 0, 1)) {
        for (uint32_t i = 0; i < c->padded; i += SLOT_PAD)
            slots_step(c->word + i, c->word + c->padded + i, d->src + PEET_SRC_SLOT + i);
    } else {
        if (__builtin_expect(d->residual_end - d->residual < c->slots, 0) && !decoder_refill(d, s->missed))
            return NULL;
        decoder_misses(d, c, s->missed, s->before);
    }
    return c;
}

#endif
