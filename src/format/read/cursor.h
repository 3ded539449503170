/* SPDX-License-Identifier: MIT */
/* The inside of a cursor: cursor.c opens chunks, feed.c takes words instead, expand.c makes records of both. */
#ifndef FORMAT_READ_CURSOR_H
#define FORMAT_READ_CURSOR_H

#include "base/map.h"
#include "format/codec/codec.h"
#include "format/schema/loop.h"
#include "format/file/trace.h"

enum { WORTH_A_REPEAT = 64 };                           /* records that a loop would expand to */
enum { ROW_LEAST = 8, ROW_BLOCKS = 8, ROW_REST = 256 }; /* of a row: times; blocks; words behind one that was none */
enum { BATCH = 1024, BATCH_EVENTS = 1024, BATCH_LOOPS = 64, BATCH_REPEATS = 128, BATCH_TRIPS = 2 * FLAT_RECORDS };

struct peet_cursor {
    struct peet_trace *trace;
    uint32_t only; /* this thread, or PEET_ALL_THREADS */
    unsigned want;
    size_t next, end;       /* chunks still to come; numbers in trace->chunk, or in trace->by_offset for all */
    uint64_t expected;      /* sequence of the next chunk */
    bool open;              /* a chunk is being decoded */
    struct chunk_ref chunk; /* which */
    struct decoder decoder;
    struct unpacker *unpacker;
    struct buf payload, planes;
    uint64_t position;
    uint64_t skip_to; /* seeking: items that end before this instruction are not handed out */
    bool skipping;
    uint64_t batch_position;

    struct peet_record *record;
    size_t count, room;
    struct peet_event event[BATCH_EVENTS];
    size_t events;
    struct peet_loop_run loop[BATCH_LOOPS];
    size_t loops;
    uint64_t loop_words[BATCH_LOOPS][PEET_SLOTS];
    bool in_loop;               /* a loop is being expanded: */
    struct loop_run run;        /*   by a plan, if it has one, */
    struct peet_loop_walk walk; /*   else so; */
    struct flat_loop flat;      /*   trips that were taken out of either */
    struct loop_plans plans;
    struct peet_repeat repeat[BATCH_REPEATS];
    size_t repeats;
    struct peet_record trip[BATCH_TRIPS]; /* one of each of them, */
    uint64_t trip_step[BATCH_TRIPS];      /*   and its steps, if these are not its plan's */
    size_t trip_records;
    struct map pages; /* from virtual to physical page numbers, as this chunk has said */
    uint64_t *physical;
    uint32_t *value_index;
    size_t extra_room;
    uint64_t *value;
    size_t values, value_room;
    uint64_t registers[PEET_REGISTERS]; /* before the item that peet_cursor_item handed out */
    uint64_t item_position;
    bool is_fed;               /* items do not come from chunks but from words: these, */
    uint64_t *word, *word_end; /*   and their names */
    const struct peet_names *names;
    size_t row_left,
        row_rest; /* when so many words are left, it is worth to look for a row again; how long it was not */
    struct peet_err feed_error; /* if its code is set, one of them makes no sense */
};

/* Room for so many more records. */
int cursor_reserve(struct peet_cursor *c, size_t more, struct peet_err *err);

/* The chunk at hand is not as it should be. */
int cursor_damaged(const struct peet_cursor *c, const char *what, struct peet_err *err);

/* An empty batch. */
static inline void cursor_begin(struct peet_cursor *c)
{
    c->batch_position = c->position;
    c->count = c->events = c->loops = c->values = c->repeats = c->trip_records = 0;
}

/* Fills the batch: 1 when it is full, 0 when there are no more items. */
int cursor_fill(struct peet_cursor *c, struct peet_err *err);

/* An item that is more than a block whose operands are sums. */
int cursor_special(struct peet_cursor *c, const struct item *item, struct peet_err *err);

/* So many words, a multiple of SLOT_PAD, become slots. */
static inline void feed_slots(uint64_t *to, const uint64_t *words, uint32_t padded)
{
    for (uint32_t i = 0; i < padded; i += SLOT_PAD) {
        *(slot_pair *)(to + i) = *(const slot_pair *)(words + i);
        *(slot_pair *)(to + i + 2) = *(const slot_pair *)(words + i + 2);
    }
}

static inline bool cursor_may_repeat(const struct peet_cursor *c)
{
    return c->repeats < BATCH_REPEATS && c->trip_records + FLAT_RECORDS <= BATCH_TRIPS;
}

/* Whether a block is where a row may begin: behind one that does not stand before it. */
static inline bool cursor_may_row(const struct peet_cursor *c, const struct item_state *x, uint64_t last)
{
    return x->head.addr <= last && (size_t)(c->word_end - c->word) <= c->row_left;
}

/* If the block that was fed last and others come again and again in the same order, and from one time to the next each slot grows by as
 * much, all of them become one record, which is put at r. Returns how many instructions that are; 0: it is not worth it. */
uint64_t cursor_feed_row(struct peet_cursor *c, const struct item_state *x, struct peet_record *r);

/* The next item of those that are fed, its slots in the decoder's sources; NULL: none, or an error. */
struct item_state *cursor_feed_next(struct peet_cursor *c);

#endif
