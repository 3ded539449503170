/* SPDX-License-Identifier: MIT */
/* The expander: from items to batches of records. Items come from the decoder of a chunk (stream_reader.h), or from event words of a
 * running program (feed.c). See docs/design/trace.md. */
#ifndef FORMAT_READ_EXPANDER_H
#define FORMAT_READ_EXPANDER_H

#include "base/map.h"
#include "format/codec/codec.h"
#include "format/file/trace.h"
#include "format/schema/loop.h"

/* Sizes of a batch. It may have a block more, or a loop's iteration. */
enum { BATCH = 1024, BATCH_EVENTS = 1024, BATCH_LOOPS = 64, BATCH_REPEATS = 128, BATCH_TRIPS = 2 * FLAT_RECORDS };

enum {
    WORTH_A_REPEAT = 64, /* least number of records that a strided loop would expand to */
    ROW_LEAST = 8,       /* least number of iterations of a row of blocks in words */
    ROW_BLOCKS = 8,      /* greatest number of its blocks */
    ROW_REST = 256       /* greatest number of words without a search, after a search that found no row */
};

/* Expands the items of a stream to batches of records. */
struct expander {
    const struct peet_trace *trace; /* schema, and name for messages */
    unsigned want;                  /* PEET_WANT_* */
    struct decoder decoder;         /* items of the chunk; for event words only its states and sources are used */
    struct chunk_ref chunk;         /* chunk of the items; for event words: the thread, and unlimited instructions */
    uint64_t position;              /* instructions of the thread before the next record */
    struct map pages;               /* uint64_t: physical page, by virtual page; of this chunk */
    struct {
        uint64_t to; /* instruction of the thread; items that end before it are skipped */
        bool is_on;
    } seek;
    struct {
        uint64_t position;          /* instructions of the thread before the batch */
        struct peet_record *record; /* `count` records; room for `room` */
        size_t count, room;
        struct peet_event event[BATCH_EVENTS];
        size_t events;
        struct peet_loop_run loop[BATCH_LOOPS]; /* loops that are not expanded */
        size_t loops;
        uint64_t loop_words[BATCH_LOOPS][PEET_SLOTS]; /* their values and counts */
        uint64_t *physical;                           /* by record; NULL: not wanted */
        uint32_t *value_index;                        /* by record; NULL: not wanted */
        uint64_t *value;
        size_t values, value_room;
    } batch;
    struct {
        bool is_open;               /* a loop is being expanded */
        struct loop_run run;        /* its position, if it has a plan */
        struct peet_loop_walk walk; /* its position, if it has none: run.plan is NULL */
        struct flat_loop flat;      /* iterations that were taken out of run or walk; none: flat.trips is 0 */
        struct loop_plans plans;
    } loop;
    struct {
        struct peet_repeat repeat[BATCH_REPEATS];
        size_t repeats;
        struct peet_record record[BATCH_TRIPS]; /* records of an iteration of each */
        uint64_t step[BATCH_TRIPS];             /* their steps; unused for steps that are in a plan */
        size_t records;
    } strided; /* strided loops of the batch */
    struct {
        bool is_on;                     /* items come from words */
        uint64_t *word, *end;           /* the words that were not read */
        const struct peet_names *names; /* resolves their keys; NULL: keys are item numbers */
        size_t row_left;                /* a row of blocks is searched for when at most this number of words is left */
        size_t row_rest;                /* words without a search after the next search that finds no row */
        struct peet_err error;          /* code 0: none so far */
    } fed;
};

/* Initialises an expander that is all zeros. trace has to outlive it. */
int expander_init(struct expander *ex, const struct peet_trace *trace, unsigned want, struct peet_err *err);
void expander_release(struct expander *ex);

/* Makes room for `more` records. */
int expander_reserve(struct expander *ex, size_t more, struct peet_err *err);

/* Sets an error about the current chunk. */
int expander_damaged(const struct expander *ex, const char *what, struct peet_err *err);

/* Begins an empty batch. */
static inline void expander_begin(struct expander *ex)
{
    ex->batch.position = ex->position;
    ex->batch.count = ex->batch.events = ex->batch.loops = ex->batch.values = 0;
    ex->strided.repeats = ex->strided.records = 0;
}

/* Fills the batch: 1: it is full, 0: there are no more items, or an error. */
int expander_fill(struct expander *ex, struct peet_err *err);

/* The batch, of a thread. */
struct peet_batch expander_batch(const struct expander *ex);

/* Expands an item with special properties (enum special). */
int expander_put_special(struct expander *ex, const struct item *item, struct peet_err *err);

/* Copies `padded` words, a multiple of SLOT_PAD, to slots. */
static inline void expander_copy_slots(uint64_t *to, const uint64_t *words, uint32_t padded)
{
    for (uint32_t i = 0; i < padded; i += SLOT_PAD) {
        *(slot_pair *)(to + i) = *(const slot_pair *)(words + i);
        *(slot_pair *)(to + i + 2) = *(const slot_pair *)(words + i + 2);
    }
}

static inline bool expander_may_repeat(const struct expander *ex)
{
    return ex->strided.repeats < BATCH_REPEATS && ex->strided.records + FLAT_RECORDS <= BATCH_TRIPS;
}

/* Whether a row may begin at a block of words: the block is not after the previous one (address `last`), and a search is due. */
static inline bool expander_may_row(const struct expander *ex, const struct item_state *x, uint64_t last)
{
    return x->head.addr <= last && (size_t)(ex->fed.end - ex->fed.word) <= ex->fed.row_left;
}

/* Searches the words for a row: block x, read last, and the blocks after it, repeated in the same order, with slots that grow by
 * constants. Puts a row as one PEET_REPEAT record at r, and returns its instructions; 0: there is no row worth it. */
uint64_t expander_put_row(struct expander *ex, const struct item_state *x, struct peet_record *r);

/* The next item of words, with its slots in decoder.src; NULL: none, or fed.error. */
struct item_state *expander_next_of_words(struct expander *ex);

#endif
