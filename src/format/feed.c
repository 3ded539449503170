/* SPDX-License-Identifier: MIT */
/* Records of a program that runs: the words of a producer, expanded at once and never written. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "format/contexts.h"
#include "format/cursor.h"
#include "format/writer.h"

struct peet_feed {
    struct peet_cursor cursor;
};

int peet_feed_new(struct peet_writer *w, uint32_t thread, unsigned want, struct peet_feed **ret, struct peet_err *err)
{
    struct peet_feed *f = calloc(1, sizeof *f);

    if (!f)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a stream");
    struct peet_cursor *c = &f->cursor;
    c->trace = &w->view;
    c->only = c->chunk.header.thread = thread;
    c->want = want;
    c->is_fed = true;
    c->pages.value_size = sizeof(uint64_t);
    c->chunk.header.instructions = UINT64_MAX; /* nobody has counted them */
    int r = decoder_init(&c->decoder, w->view.schema, err);
    if (r == 0)
        r = cursor_reserve(c, 1, err);
    if (r < 0) {
        peet_feed_free(f);
        return r;
    }
    *ret = f;
    return 0;
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
    f->cursor.run_left = f->cursor.want & PEET_WANT_REPEATS ? count : 0;
}

void peet_feed_register(struct peet_feed *f, unsigned reg, uint64_t value)
{
    assert(reg < PEET_REGISTERS);
    f->cursor.decoder.src[PEET_SRC_REGISTER + reg] = value;
}

struct context *cursor_feed_next(struct peet_cursor *c)
{
    if (c->word == c->word_end)
        return NULL;
    struct context *x = contexts_named(&c->decoder.contexts, c->trace->schema, c->names, *c->word, &c->feed_error);
    if (!x)
        return NULL;
    if ((size_t)(c->word_end - c->word) <= x->slots) {
        err_set(&c->feed_error, PEET_ERR_USAGE, "item %" PRIu32 " has %u slots, %zd words are left", x->number,
                x->slots, c->word_end - c->word - 1);
        return NULL;
    }
    uint64_t *slots = c->word + 1;
    if (x->item->kind == ITEM_LOOP)
        context_settle(x, c->names, slots);
    uint64_t *src = c->decoder.src + PEET_SRC_SLOT;
    if ((size_t)(c->word_end - slots) >= x->padded) /* a few words too many are no matter, and faster than a call */
        feed_slots(src, slots, x->padded);
    else
        memcpy(src, slots, x->slots * sizeof *slots);
    c->word += x->slots + 1;
    return x;
}

/* Whether from one execution to the next each slot grows by as much as behind the first. */
static bool grows_alike(const uint64_t *first, const uint64_t *at, size_t size)
{
    for (size_t i = 1; i < size; i++)
        if (at[i] - at[i - size] != first[i + size] - first[i])
            return false;
    return true;
}

/* By how much a source grows. */
static uint64_t growth(const uint64_t *first, size_t size, unsigned source)
{
    if (source < PEET_SRC_SLOT)
        return 0;
    const uint64_t *slot = first + 1 + (source - PEET_SRC_SLOT);
    return slot[size] - slot[0];
}

uint64_t cursor_feed_run(struct peet_cursor *c, const struct context *x, struct peet_record *r)
{
    size_t size = x->slots + 1u, records = x->operands + 1u;
    const uint64_t *first = c->word - size, *end;
    uint64_t trips = 1;

    if (records > FLAT_RECORDS || !cursor_may_repeat(c))
        return 0;
    for (end = c->word; end + size <= c->word_end && *end == *first && grows_alike(first, end, size); end += size)
        trips++;
    if (trips < RUN_LEAST || trips * records < WORTH_A_REPEAT) {
        size_t left = (size_t)(c->word_end - end), rest = RUN_LEAST * size;
        c->run_left = left > rest ? left - rest : 0; /* there is none for a while, most often */
        return 0;
    }
    struct peet_record *trip = c->trip + c->trip_records;
    uint64_t *step = c->trip_step + c->trip_records;
    memcpy(trip, r, records * sizeof *trip);
    step[0] = 0;
    for (size_t i = 1; i < records; i++)
        step[i] = growth(first, size, x->plan[i - 1].base)
                  + (growth(first, size, x->plan[i - 1].index) << x->plan[i - 1].scale);
    c->trip_records += records;
    c->repeat[c->repeats] = (struct peet_repeat){ trips, records, trip, step };
    *r = (struct peet_record){ .id = (uint32_t)c->repeats++, .kind = PEET_REPEAT };
    c->word += end - c->word;
    return trips;
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
