/* SPDX-License-Identifier: MIT */
/* A thread's items and slots, as bytes (docs/trace-format.md, section 5).
 *
 * Most of what a program does it has done before: an item tends to be followed by the item that followed it last time,
 * and a slot tends to grow by what it grew last time. The codec keeps, for each item that occurs in the chunk, its last
 * three successors and for each slot its last value and its stride. While everything is as foreseen it only counts; an
 * exception says which successor it was and which slots missed, and the misses are stored as differences.
 * A stride changes only when its slot misses twice in a row: a single jump does not spoil it.
 *
 * All this is forgotten at the end of a chunk, so that chunks can be decoded alone. */
#ifndef FORMAT_CODEC_H
#define FORMAT_CODEC_H

#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "format/schema.h"
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

enum { RANKS = 3, TOKEN_NEW = 3, TOKEN_MASK = 4, SLOT_PAD = 2 };

#define CHUNK_MAX_WORDS ((size_t)1 << 22) /* items and slots in a chunk */

/* What makes an item more than a block whose operands are sums. */
enum special {
    SPECIAL_STATE = 1, /* loops, registers, varying references: the encoder must look at it, too */
    SPECIAL_OTHER = 2, /* an event, or computes */
};

/* What is remembered of an item within a chunk. */
struct context {
    struct context *next[RANKS]; /* successors, the latest first */
    const struct item *item;
    uint64_t missed;        /* the mask of the last execution, */
    uint32_t misses;        /*   and how many bits it has */
    uint32_t slots, padded; /* padded to a multiple of SLOT_PAD */
    uint16_t special;       /* enum special */
    uint16_t operands;      /* of a block */
    const struct plan_op *plan;
    struct peet_record head; /* the record of a block */
    uint64_t executions;
    uint64_t number;              /* of the item, */
    uint64_t name;                /*   and what words said for it last */
    _Alignas(16) uint64_t word[]; /* padded last values, then padded strides */
};

struct contexts {
    struct arena arena;
    struct context **of; /* by item number; NULL: has not occurred in this chunk */
    size_t room;
    struct context **used;
    size_t used_count, used_room;
    struct context *none; /* stands where there is no item: before the first, and as unknown successor */
};

struct encoder {
    const struct schema *schema;
    struct contexts contexts;
    struct context *now;
    uint64_t run, items;
    size_t words, limit;
    uint8_t *room[4], *end[4];             /* of the first four planes */
    uint64_t *difference, *difference_end; /* zigzag */
    uint64_t at_start[PEET_REGISTERS];     /* registers when the chunk began */
    uint64_t src[PEET_SOURCES];
    uint64_t instructions, references, events; /* those that are not counted by executions */
    const struct peet_names *names;            /* what stands in the words in place of item numbers; NULL: nothing */
    uint64_t changed[PEET_SLOTS];              /* slots of a loop, as names->loop has made them */
};

int encoder_init(struct encoder *e, const struct schema *s, size_t chunk_words, struct peet_err *err);
void encoder_release(struct encoder *e);

/* Takes items from words until they are used up or the chunk is full; *ret_used says how many words that were. */
int encoder_put(struct encoder *e, const uint64_t *words, size_t n, size_t *ret_used, struct peet_err *err);

static inline int encoder_is_full(const struct encoder *e)
{
    return e->words >= e->limit;
}

/* Ends the chunk: sums up what is in it and lays out the planes, which stay valid until encoder_next_chunk. */
struct encoded {
    const uint8_t *plane[PLANES];
    size_t size[PLANES];
    uint64_t items, instructions, references, events;
};
int encoder_finish(struct encoder *e, struct buf *scratch, struct encoded *ret, struct peet_err *err);
void encoder_next_chunk(struct encoder *e);

struct decoder {
    const struct schema *schema;
    struct contexts contexts;
    struct context *now;
    uint64_t run, left; /* items left in the chunk */
    struct window plane[4];
    uint64_t *difference, *difference_now, *difference_end; /* signed again */
    size_t difference_room;
    uint64_t src[PEET_SOURCES + SLOT_PAD];
    const char *fault; /* what made decoder_next stop early */
};

int decoder_init(struct decoder *d, const struct schema *s, struct peet_err *err);
void decoder_release(struct decoder *d);

/* Begins a chunk; the planes must stay in place while it is decoded. */
int decoder_begin(struct decoder *d, uint64_t items, const uint8_t *const plane[PLANES], const size_t size[PLANES],
                  struct peet_err *err);

/* Handles what was not foreseen; NULL sets fault. */
struct context *decoder_exception(struct decoder *d, uint64_t *ret_missed, uint64_t *ret_missed_before);

typedef uint64_t slot_vector __attribute__((vector_size(8 * SLOT_PAD)));

/* Some slots missed: they take a difference from the plane instead of their stride. */
static inline __attribute__((always_inline)) void decoder_misses(struct decoder *d, struct context *c, uint64_t missed,
                                                                 uint64_t before)
{
    uint64_t *last = c->word, *stride = c->word + c->padded;
    uint64_t *difference = d->difference_now;

    if (c->misses == c->slots && missed == before) { /* all of them, again */
        for (uint32_t i = 0; i < c->slots; i++) {
            stride[i] = difference[i];
            last[i] += difference[i];
            d->src[PEET_SRC_SLOT + i] = last[i];
        }
        d->difference_now = difference + c->slots;
        return;
    }
    for (uint32_t i = 0; i < c->slots; i++) {
        uint64_t by = stride[i];
        if (missed >> i & 1) {
            by = *difference++;
            stride[i] = before >> i & 1 ? by : stride[i];
        }
        last[i] += by;
        d->src[PEET_SRC_SLOT + i] = last[i];
    }
    d->difference_now = difference;
}

/* The next item, its slots in src; NULL at the end of the chunk or on a fault. */
static inline __attribute__((always_inline)) struct context *decoder_next(struct decoder *d)
{
    struct context *c;
    uint64_t missed, before;

    if (d->left == 0)
        return NULL;
    d->left--;
    if (__builtin_expect(d->run > 0, 1)) {
        d->run--;
        c = d->now->next[0];
        missed = before = c->missed;
    } else {
        c = decoder_exception(d, &missed, &before);
        if (!c)
            return NULL;
    }
    d->now = c;
    if (__builtin_expect(missed == 0, 1)) {
        for (uint32_t i = 0; i < c->padded; i += SLOT_PAD) {
            slot_vector last, stride;
            memcpy(&last, c->word + i, sizeof last);
            memcpy(&stride, c->word + c->padded + i, sizeof stride);
            last += stride;
            memcpy(c->word + i, &last, sizeof last);
            memcpy(d->src + PEET_SRC_SLOT + i, &last, sizeof last);
        }
    } else {
        if (__builtin_expect(d->difference_end - d->difference_now < c->misses, 0)) {
            d->fault = "it has fewer differences than misses";
            d->left = 0;
            return NULL;
        }
        decoder_misses(d, c, missed, before);
    }
    return c;
}

#endif
