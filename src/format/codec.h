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

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "format/difference.h"
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

enum { RANKS = 3, TOKEN_NEW = 3, TOKEN_MASK = 4, SLOT_PAD = 4, NAMES = 256, DIFFERENCES = 1024 };

#define CHUNK_MAX_WORDS ((size_t)1 << 22) /* items and slots in a chunk */

/* What makes an item more than a block whose operands are sums. */
enum special {
    SPECIAL_STATE = 1, /* loops, registers, varying references: the encoder must look at it, too */
    SPECIAL_OTHER = 2, /* an event, or computes */
};

/* What is remembered of an item within a chunk. What every execution looks at stands first: it is one cache line. */
struct context {
    struct context *next[RANKS]; /* successors, the latest first */
    uint64_t name;               /* what words said for it last */
    uint64_t missed;             /* the mask of the last execution */
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
    uint64_t number;              /* of the item */
    uint64_t all, mask_room;      /* a mask with all slots, and one with all bits of its bytes */
    _Alignas(16) uint64_t word[]; /* padded last values, then padded strides */
};

/* Makes `c` the latest successor of `from`; `rank` is where it stood, TOKEN_NEW if it was none of them. There is no branch in it,
 * for ranks cannot be foreseen. */
static inline void contexts_promote(struct context *from, struct context *c, unsigned rank)
{
    from->next[2] = rank >= 2 ? from->next[1] : from->next[2];
    from->next[1] = rank >= 1 ? from->next[0] : from->next[1];
    from->next[0] = c;
}

struct contexts {
    struct arena arena;
    struct context **of; /* by item number; NULL: has not occurred in this chunk */
    size_t room;
    struct context **used;
    size_t used_count, used_room;
    struct context *by_name[NAMES]; /* that were looked for last, by a hash; NULL: none */
    struct context *none;           /* stands where there is no item: before the first, and as unknown successor */
};

struct encoder {
    const struct schema *schema;
    struct contexts contexts;
    struct context *now;
    uint64_t run;
    size_t words, limit;
    uint8_t *room[PLANES], *end[PLANES];
    uint64_t *difference_end;          /* of those that are not in their planes yet */
    uint64_t at_start[PEET_REGISTERS]; /* registers when the chunk began */
    uint64_t src[PEET_SOURCES];
    uint64_t instructions, references, events; /* those that are not counted by executions */
    const struct peet_names *names;            /* what stands in the words in place of item numbers; NULL: nothing */
    uint64_t changed[PEET_SLOTS];              /* slots of a loop, as names->loop has made them */
    uint64_t difference[DIFFERENCES + PEET_SLOTS]; /* zigzag */
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

struct decoder {
    const struct schema *schema;
    struct contexts contexts;
    struct context *now;
    uint64_t run, left; /* items left in the chunk */
    struct window plane[4];
    struct difference_in in;                     /* differences that are still in their planes, */
    size_t in_planes;                            /*   and how many they are */
    const uint64_t *difference, *difference_end; /* the next one, and where those end that have been put together */
    uint64_t differences[DIFFERENCES + PEET_SLOTS + SLOT_PAD]; /* signed again */
    uint64_t src[PEET_SOURCES + SLOT_PAD];
    const char *fault; /* what made decoder_next stop early */
};

int decoder_init(struct decoder *d, const struct schema *s, struct peet_err *err);
void decoder_release(struct decoder *d);

/* Begins a chunk; the planes must stay in place while it is decoded, and may be read up to 8 bytes past their ends. */
int decoder_begin(struct decoder *d, uint64_t items, const uint8_t *const plane[PLANES], const size_t size[PLANES],
                  struct peet_err *err);

/* Parts of decoder_next that are rare. NULL and false set fault. */
struct context *decoder_stop(struct decoder *d, const char *fault);
struct context *decoder_new(struct decoder *d);          /* an item that has not occurred in this chunk */
bool decoder_refill(struct decoder *d, uint64_t missed); /* differences for all that missed */
bool decoder_long_run(struct decoder *d);                /* the run is 255 and more */

/* The context of the next number of PLANE_ITEMS; none is longer than four bytes, but they need not be in their shortest form. */
static inline __attribute__((always_inline)) struct context *decoder_item(struct decoder *d)
{
    struct window *w = &d->plane[PLANE_ITEMS];
    uint32_t bytes = get_le32(w->p), last = ~bytes & 0x80808080;
    size_t n = (size_t)__builtin_ctz(last | 1u << 31) / 8 + 1;

    bytes &= last ^ (last - 1);
    uint32_t number = (bytes & 0x7f) | (bytes >> 1 & 0x3f80) | (bytes >> 2 & 0x1fc000) | (bytes >> 3 & 0xfe00000);
    if (__builtin_expect(!last || (size_t)(w->end - w->p) < n || number >= d->contexts.room, 0))
        return decoder_new(d);
    struct context *c = d->contexts.of[number];
    if (__builtin_expect(!c, 0))
        return decoder_new(d);
    w->p += n;
    return c;
}

/* Handles what was not foreseen. There are few branches in it, for they could not be foreseen either. */
static inline __attribute__((always_inline)) struct context *decoder_exception(struct decoder *d, uint64_t *ret_missed,
                                                                               uint64_t *ret_before)
{
    struct window *tokens = &d->plane[PLANE_TOKENS], *masks = &d->plane[PLANE_MASKS], *runs = &d->plane[PLANE_RUNS];
    struct context *now = d->now;

    if (__builtin_expect(tokens->p == tokens->end || runs->p == runs->end, 0))
        return decoder_stop(d, "it has fewer exceptions or runs than items need");
    unsigned token = *tokens->p++, rank = token & 3;
    struct context *c = rank == TOKEN_NEW ? decoder_item(d) : now->next[rank];
    if (__builtin_expect(!c || !c->item || token > (TOKEN_MASK | 3), 0))
        return decoder_stop(d, "it executes an item that is not defined");
    uint64_t said = get_le64(masks->p) & c->mask_room, before = c->missed;
    size_t bytes = token & TOKEN_MASK ? c->mask_bytes : 0;
    uint64_t missed = token & TOKEN_MASK ? said : before;
    if (__builtin_expect((size_t)(masks->end - masks->p) < bytes || missed & ~c->all, 0))
        return decoder_stop(d, "a mask has bits for slots that are not there");
    masks->p += bytes;
    c->missed = missed;
    contexts_promote(now, c, rank);
    d->run = *runs->p++;
    if (__builtin_expect(d->run == 255, 0) && !decoder_long_run(d))
        return NULL;
    *ret_missed = missed;
    *ret_before = before;
    return c;
}

/* Slots are added in groups of SLOT_PAD, by two vectors. */
typedef uint64_t slot_pair __attribute__((vector_size(16)));
struct slot_group {
    slot_pair low, high;
};

static inline __attribute__((always_inline)) struct slot_group slots_at(const uint64_t *from)
{
    struct slot_group g;

    memcpy(&g.low, from, sizeof g.low);
    memcpy(&g.high, from + 2, sizeof g.high);
    return g;
}

static inline __attribute__((always_inline)) void slots_put(uint64_t *to, const struct slot_group *g)
{
    memcpy(to, &g->low, sizeof g->low);
    memcpy(to + 2, &g->high, sizeof g->high);
}

/* last + by, to two places. */
static inline __attribute__((always_inline)) void slots_step(uint64_t *last, const struct slot_group *by, uint64_t *src)
{
    struct slot_group value = slots_at(last);

    value.low += by->low;
    value.high += by->high;
    slots_put(last, &value);
    slots_put(src, &value);
}

/* Some slots missed: they take a difference from the plane instead of their stride. */
static inline __attribute__((always_inline)) void decoder_misses(struct decoder *d, struct context *c, uint64_t missed,
                                                                 uint64_t before)
{
    uint64_t *last = c->word, *stride = c->word + c->padded, *src = d->src + PEET_SRC_SLOT;
    const uint64_t *difference = d->difference;

    if (missed == c->all && before == missed) { /* all of them, again */
        for (uint32_t i = 0; i < c->padded; i += SLOT_PAD) {
            struct slot_group by = slots_at(difference + i);
            slots_put(stride + i, &by);
            slots_step(last + i, &by, src + i);
        }
        d->difference += c->slots;
        return;
    }
    for (uint32_t i = 0; i < c->slots; i++) { /* all of it is computed, for a branch would be a guess */
        uint64_t miss = missed >> i & 1, other = *difference ^ stride[i];
        last[i] += stride[i] ^ (other & (0 - miss));
        src[i] = last[i];
        stride[i] ^= other & (0 - (miss & before >> i));
        difference += miss;
    }
    d->difference = difference;
}

/* The next item, its slots in src; NULL at the end of the chunk or on a fault. */
static inline __attribute__((always_inline)) struct context *decoder_next(struct decoder *d)
{
    struct context *c;
    uint64_t missed = 0, before = 0;

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
            struct slot_group stride = slots_at(c->word + c->padded + i);
            slots_step(c->word + i, &stride, d->src + PEET_SRC_SLOT + i);
        }
    } else {
        if (__builtin_expect(d->difference_end - d->difference < c->slots, 0) && !decoder_refill(d, missed))
            return NULL;
        decoder_misses(d, c, missed, before);
    }
    return c;
}

#endif
