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
