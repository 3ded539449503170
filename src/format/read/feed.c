/* SPDX-License-Identifier: MIT */
/* Records of a program that runs: the words of a producer, expanded at once and never written. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "format/codec/item_state.h"
#include "format/read/cursor.h"
#include "format/read/feed.h"
#include "format/file/writer.h"

struct peet_feed {
    struct peet_cursor cursor;
};

int feed_new(struct peet_trace *schema, uint32_t thread, unsigned want, struct peet_feed **ret, struct peet_err *err)
{
    struct peet_feed *f = calloc(1, sizeof *f);

    if (!f)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a stream");
    struct peet_cursor *c = &f->cursor;
    c->trace = schema;
    c->only = c->chunk.header.thread = thread;
    c->want = want;
    c->is_fed = true;
    c->row_rest = 1;
    c->pages.value_size = sizeof(uint64_t);
    c->chunk.header.instructions = UINT64_MAX; /* nobody has counted them */
    int r = decoder_init(&c->decoder, schema->schema, err);
    if (r == 0)
        r = cursor_reserve(c, 1, err);
    if (r < 0) {
        peet_feed_free(f);
        return r;
    }
    *ret = f;
    return 0;
}

int peet_feed_new(struct peet_writer *w, uint32_t thread, unsigned want, struct peet_feed **ret, struct peet_err *err)
{
    return feed_new(&w->view, thread, want, ret, err);
}

void peet_feed_free(struct peet_feed *f)
{
    if (!f)
        return;
    decoder_release(&f->cursor.decoder);
    map_release(&f->cursor.pages);
    loop_plans_release(&f->cursor.plans);
    free(f->cursor.record);
    free(f);
}

void peet_feed_put(struct peet_feed *f, uint64_t *words, size_t count, const struct peet_names *names)
{
    f->cursor.word = words;
    f->cursor.word_end = words + count;
    f->cursor.names = names;
    f->cursor.row_left = f->cursor.want & PEET_WANT_REPEATS ? count : 0;
}

void peet_feed_register(struct peet_feed *f, unsigned reg, uint64_t value)
{
    assert(reg < PEET_REGISTERS);
    f->cursor.decoder.src[PEET_SRC_REGISTER + reg] = value;
}

struct item_state *cursor_feed_next(struct peet_cursor *c)
{
    if (c->word == c->word_end)
        return NULL;
    struct item_state *x = item_states_find(&c->decoder.states, c->trace->schema, c->names, *c->word, &c->feed_error);
    if (!x)
        return NULL;
    if ((size_t)(c->word_end - c->word) <= x->slots) {
        err_set(&c->feed_error, PEET_ERR_USAGE, "item %" PRIu32 " has %u slots, %zd words are left", x->number,
                x->slots, c->word_end - c->word - 1);
        return NULL;
    }
    uint64_t *slots = c->word + 1;
    if (x->item->kind == ITEM_LOOP)
        item_state_complete_loop(x, c->names, slots);
    uint64_t *src = c->decoder.src + PEET_SRC_SLOT;
    if ((size_t)(c->word_end - slots) >= x->padded) /* a few words too many are no matter, and faster than a call */
        feed_slots(src, slots, x->padded);
    else
        memcpy(src, slots, x->slots * sizeof *slots);
    c->word += x->slots + 1;
    return x;
}

/* ---- rows ---- */

/* Blocks that come again and again, in the same order. */
struct row {
    const struct item_state *block[ROW_BLOCKS];
    unsigned blocks;
    size_t words, records; /* of all of them, once */
    uint64_t instructions;
};

static void row_add(struct row *row, const struct item_state *x)
{
    row->block[row->blocks++] = x;
    row->words += x->slots + 1u;
    row->records += x->operands + 1u;
    row->instructions += x->head.size;
}

/* The block that was fed last, and those behind it up to where it comes again. False: it does not, or not often. */
static bool find_row(struct peet_cursor *c, const struct item_state *x, struct row *row)
{
    const uint64_t *at = c->word;

    *row = (struct row){ .blocks = 0 };
    row_add(row, x);
    for (; at < c->word_end && *at != x->name; at += row->block[row->blocks - 1]->slots + 1u) {
        const struct item_state *next = *item_states_cached(&c->decoder.states, *at);
        if (row->blocks == ROW_BLOCKS || !next || next->name != *at || next->special)
            return false;
        row_add(row, next);
    }
    size_t more = (ROW_LEAST - 2) * row->words; /* to the name of the last one that has to be there */
    return row->records <= FLAT_RECORDS && at < c->word_end && (size_t)(c->word_end - at) >= more + row->words
           && at[more] == x->name;
}

/* How often the row is there, with slots that grow by as much from one time to the next. */
static uint64_t count_row(const struct peet_cursor *c, const struct row *row, const uint64_t *first)
{
    const uint64_t *at = first + row->words;
    size_t words = row->words;

    for (unsigned i = 0; i < row->blocks; at += row->block[i++]->slots + 1u)
        if (*at != row->block[i]->name)
            return 1;
    for (at = first + 2 * words; at + words <= c->word_end; at += words)
        for (size_t i = 0; i < words; i++)
            if (at[i] - (at - words)[i] != first[i + words] - first[i])
                return (uint64_t)(at - first) / words;
    return (uint64_t)(at - first) / words;
}

/* By how much a source grows; slot: the first one, which is there again so many words later. */
static uint64_t growth(const uint64_t *slot, size_t words, unsigned source)
{
    if (source < PEET_SRC_SLOT)
        return 0;
    slot += source - PEET_SRC_SLOT;
    return slot[words] - slot[0];
}

/* The records of the row, and their steps. */
static void put_row(struct peet_cursor *c, const struct row *row, const uint64_t *word)
{
    struct peet_record *r = c->trip + c->trip_records;
    uint64_t *step = c->trip_step + c->trip_records, *src = c->decoder.src;

    for (unsigned k = 0; k < row->blocks; k++) {
        const struct item_state *x = row->block[k];
        const uint64_t *slot = word + 1;
        memcpy(src + PEET_SRC_SLOT, slot, x->slots * sizeof *slot);
        *r++ = x->head;
        *step++ = 0;
        for (unsigned i = 0; i < x->operands; i++) {
            const struct plan_op *op = &x->plan[i];
            plan_put(op, src, x->indexed, r++);
            *step++ = growth(slot, row->words, op->base) + (growth(slot, row->words, op->index) << op->scale);
        }
        word = slot + x->slots;
    }
}

uint64_t cursor_feed_row(struct peet_cursor *c, const struct item_state *x, struct peet_record *r)
{
    const uint64_t *first = c->word - (x->slots + 1u);
    struct row row;
    uint64_t times = 0;

    if (!cursor_may_repeat(c))
        return 0;
    if (find_row(c, x, &row))
        times = count_row(c, &row, first);
    if (times < ROW_LEAST || times * row.records < WORTH_A_REPEAT) {
        size_t left = (size_t)(c->word_end - c->word), rest = times > 1 ? times * row.words : 0;
        c->row_rest = c->row_rest < ROW_REST ? 2 * c->row_rest : ROW_REST; /* there is none for a while, most often */
        rest += c->row_rest;
        c->row_left = left > rest ? left - rest : 0;
        return 0;
    }
    c->row_rest = 1;
    put_row(c, &row, first);
    c->repeat[c->repeats] =
        (struct peet_repeat){ times, row.records, c->trip + c->trip_records, c->trip_step + c->trip_records };
    c->trip_records += row.records;
    *r = (struct peet_record){ .id = (uint32_t)c->repeats++, .kind = PEET_REPEAT };
    c->word += (times * row.words) - (x->slots + 1u);
    return times * row.instructions;
}

int peet_feed_next(struct peet_feed *f, struct peet_batch *batch, struct peet_err *err)
{
    struct peet_cursor *c = &f->cursor;

    cursor_begin(c);
    int r = cursor_fill(c, err);
    if (r >= 0 && c->feed_error.code)
        return err_set(err, c->feed_error.code, "%s", c->feed_error.text);
    if (r < 0 || c->count == 0)
        return r < 0 ? r : 0;
    *batch = (struct peet_batch){ .count = c->count,
                                  .records = c->record,
                                  .events = c->event,
                                  .event_count = c->events,
                                  .loops = c->loop,
                                  .repeats = c->repeat,
                                  .thread = c->only,
                                  .position = c->batch_position };
    return 1;
}

const struct peet_trace *peet_writer_schema(struct peet_writer *w)
{
    return &w->view;
}
