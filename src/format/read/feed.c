/* SPDX-License-Identifier: MIT */
/* Live streams: event words of a running program as the items of an expander (docs/design/event-words.md). */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "format/codec/item_state.h"
#include "format/read/expander.h"
#include "format/read/feed.h"
#include "format/file/writer.h"

/* A live stream of a thread. */
struct peet_feed {
    struct expander expander;
};

int feed_new(struct peet_trace *schema, uint32_t thread, unsigned want, struct peet_feed **ret, struct peet_err *err)
{
    struct peet_feed *f = calloc(1, sizeof *f);

    if (!f)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a stream");
    f->expander.chunk.header.thread = thread;
    f->expander.chunk.header.instructions = UINT64_MAX; /* unknown: no limit */
    f->expander.fed.is_on = true;
    f->expander.fed.row_rest = 1;
    int r = expander_init(&f->expander, schema, want, err);
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
    expander_release(&f->expander);
    free(f);
}

void peet_feed_put(struct peet_feed *f, uint64_t *words, size_t count, const struct peet_names *names)
{
    f->expander.fed.word = words;
    f->expander.fed.end = words + count;
    f->expander.fed.names = names;
    f->expander.fed.row_left = f->expander.want & PEET_WANT_REPEATS ? count : 0;
}

void peet_feed_register(struct peet_feed *f, unsigned reg, uint64_t value)
{
    assert(reg < PEET_REGISTERS);
    f->expander.decoder.src[PEET_SRC_REGISTER + reg] = value;
}

struct item_state *expander_next_of_words(struct expander *ex)
{
    if (ex->fed.word == ex->fed.end)
        return NULL;
    struct item_state *x =
        item_states_find(&ex->decoder.states, ex->trace->schema, ex->fed.names, *ex->fed.word, &ex->fed.error);
    if (!x)
        return NULL;
    if ((size_t)(ex->fed.end - ex->fed.word) <= x->slots) {
        err_set(&ex->fed.error, PEET_ERR_USAGE, "item %" PRIu32 " has %u slots, %zd words are left", x->number,
                x->slots, ex->fed.end - ex->fed.word - 1);
        return NULL;
    }
    uint64_t *slots = ex->fed.word + 1;
    if (x->item->kind == ITEM_LOOP)
        item_state_complete_loop(x, ex->fed.names, slots);
    uint64_t *src = ex->decoder.src + PEET_SRC_SLOT;
    if ((size_t)(ex->fed.end - slots) >= x->padded) /* copying some words too many is faster than a call */
        expander_copy_slots(src, slots, x->padded);
    else
        memcpy(src, slots, x->slots * sizeof *slots);
    ex->fed.word += x->slots + 1;
    return x;
}

/* ---- rows ---- */

/* A row: blocks that are repeated in the same order. */
struct row {
    const struct item_state *block[ROW_BLOCKS];
    unsigned blocks;
    size_t words, records; /* of an iteration */
    uint64_t instructions; /* of an iteration */
};

static void row_add(struct row *row, const struct item_state *x)
{
    row->block[row->blocks++] = x;
    row->words += x->slots + 1u;
    row->records += x->operands + 1u;
    row->instructions += x->head.size;
}

/* Finds the row that begins with the block read last and ends before its next execution. False: there is no such execution within ROW_BLOCKS blocks, or
 * the block is not executed often enough. */
static bool row_find(struct expander *ex, const struct item_state *x, struct row *row)
{
    const uint64_t *at = ex->fed.word;

    *row = (struct row){ .blocks = 0 };
    row_add(row, x);
    for (; at < ex->fed.end && *at != x->key; at += row->block[row->blocks - 1]->slots + 1u) {
        const struct item_state *next = *item_states_cached(&ex->decoder.states, *at);
        if (row->blocks == ROW_BLOCKS || !next || next->key != *at || next->special)
            return false;
        row_add(row, next);
    }
    size_t more = (ROW_LEAST - 2) * row->words; /* from there to the key of iteration ROW_LEAST */
    return row->records <= FLAT_RECORDS && at < ex->fed.end && (size_t)(ex->fed.end - at) >= more + row->words
           && at[more] == x->key;
}

/* Number of iterations of a row in which each slot grows by a constant. */
static uint64_t row_count(const struct expander *ex, const struct row *row, const uint64_t *first)
{
    const uint64_t *at = first + row->words;
    size_t words = row->words;

    for (unsigned i = 0; i < row->blocks; at += row->block[i++]->slots + 1u)
        if (*at != row->block[i]->key)
            return 1;
    for (at = first + 2 * words; at + words <= ex->fed.end; at += words)
        for (size_t i = 0; i < words; i++)
            if (at[i] - (at - words)[i] != first[i + words] - first[i])
                return (uint64_t)(at - first) / words;
    return (uint64_t)(at - first) / words;
}

/* What a source grows by per iteration. slot: slots of the block in the first iteration; words: of an iteration. */
static uint64_t row_growth(const uint64_t *slot, size_t words, unsigned source)
{
    if (source < PEET_SRC_SLOT)
        return 0;
    slot += source - PEET_SRC_SLOT;
    return slot[words] - slot[0];
}

/* Writes the records of the row's first iteration, and their steps. */
static void row_put(struct expander *ex, const struct row *row, const uint64_t *word)
{
    struct peet_record *r = ex->strided.record + ex->strided.records;
    uint64_t *step = ex->strided.step + ex->strided.records, *src = ex->decoder.src;

    for (unsigned k = 0; k < row->blocks; k++) {
        const struct item_state *x = row->block[k];
        const uint64_t *slot = word + 1;
        memcpy(src + PEET_SRC_SLOT, slot, x->slots * sizeof *slot);
        *r++ = x->head;
        *step++ = 0;
        for (unsigned i = 0; i < x->operands; i++) {
            const struct plan_op *op = &x->plan[i];
            plan_put(op, src, x->indexed, r++);
            *step++ = row_growth(slot, row->words, op->base) + (row_growth(slot, row->words, op->index) << op->scale);
        }
        word = slot + x->slots;
    }
}

uint64_t expander_put_row(struct expander *ex, const struct item_state *x, struct peet_record *r)
{
    const uint64_t *first = ex->fed.word - (x->slots + 1u);
    struct row row;
    uint64_t times = 0;

    if (!expander_may_repeat(ex))
        return 0;
    if (row_find(ex, x, &row))
        times = row_count(ex, &row, first);
    if (times < ROW_LEAST || times * row.records < WORTH_A_REPEAT) {
        size_t left = (size_t)(ex->fed.end - ex->fed.word), rest = times > 1 ? times * row.words : 0;
        ex->fed.row_rest =
            ex->fed.row_rest < ROW_REST ? 2 * ex->fed.row_rest : ROW_REST; /* the next words rarely have a row */
        rest += ex->fed.row_rest;
        ex->fed.row_left = left > rest ? left - rest : 0;
        return 0;
    }
    ex->fed.row_rest = 1;
    row_put(ex, &row, first);
    ex->strided.repeat[ex->strided.repeats] =
        (struct peet_repeat){ times, row.records, ex->strided.record + ex->strided.records,
                              ex->strided.step + ex->strided.records };
    ex->strided.records += row.records;
    *r = (struct peet_record){ .id = (uint32_t)ex->strided.repeats++, .kind = PEET_REPEAT };
    ex->fed.word += (times * row.words) - (x->slots + 1u);
    return times * row.instructions;
}

int peet_feed_next(struct peet_feed *f, struct peet_batch *batch, struct peet_err *err)
{
    struct expander *ex = &f->expander;

    expander_begin(ex);
    int r = expander_fill(ex, err);
    if (r >= 0 && ex->fed.error.code)
        return err_set(err, ex->fed.error.code, "%s", ex->fed.error.text);
    if (r < 0 || ex->batch.count == 0)
        return r < 0 ? r : 0;
    *batch = expander_batch(ex);
    return 1;
}

const struct peet_trace *peet_writer_schema(struct peet_writer *w)
{
    return &w->view;
}
