/* SPDX-License-Identifier: MIT */
/* Cursors: a stream reader and an expander, as the public interface has them. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "format/read/expander.h"
#include "format/read/stream_reader.h"

/* A reader of the records of one thread, or of all. */
struct peet_cursor {
    struct stream_reader reader;
    struct expander expander;
    bool is_open;                       /* a chunk is being decoded */
    uint64_t registers[PEET_REGISTERS]; /* before the item that peet_cursor_item returned last */
    uint64_t item_position;             /* instructions of its thread before it */
};

int peet_cursor_open(struct peet_trace *t, uint32_t thread, unsigned want, struct peet_cursor **ret,
                     struct peet_err *err)
{
    const struct thread_index *x = thread == PEET_ALL_THREADS ? NULL : trace_thread(t, thread);

    if (thread != PEET_ALL_THREADS && t->is_pipe)
        return err_set(err, PEET_ERR_USAGE,
                       "%s: threads cannot be read one by one from a pipe; save it in a file first", t->path);
    if (thread != PEET_ALL_THREADS && !x)
        return err_set(err, PEET_ERR_USAGE, "%s: there is no thread %" PRIu32, t->path, thread);
    struct peet_cursor *c = calloc(1, sizeof *c);
    if (!c)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a cursor");
    int r = stream_reader_init(&c->reader, t, thread, x, err);
    if (r == 0)
        r = expander_init(&c->expander, t, want, err);
    if (r < 0) {
        peet_cursor_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void peet_cursor_free(struct peet_cursor *c)
{
    if (!c)
        return;
    stream_reader_release(&c->reader);
    expander_release(&c->expander);
    free(c);
}

/* ---- chunks ---- */

static int cursor_open_chunk(struct peet_cursor *c, struct peet_err *err)
{
    struct expander *ex = &c->expander;
    int r = stream_reader_next(&c->reader, &ex->chunk, &ex->decoder, &ex->position, err);

    if (r <= 0)
        return r;
    map_clear(&ex->pages);
    c->is_open = true;
    return 1;
}

static void cursor_drop_chunk(struct peet_cursor *c)
{
    c->is_open = c->expander.loop.is_open = false;
}

/* The end of a chunk: checks that the decoder has used all of it. */
static int cursor_close_chunk(struct peet_cursor *c, struct peet_err *err)
{
    struct expander *ex = &c->expander;
    const struct decoder *d = &ex->decoder;
    uint64_t end = ex->chunk.header.first + ex->chunk.header.instructions, at = ex->position;

    cursor_drop_chunk(c);
    ex->position = end;
    if (d->fault)
        return expander_damaged(ex, d->fault, err);
    if (at != end || d->in_planes || d->residual != d->residual_end)
        return expander_damaged(ex, "it holds more or less than its header says", err);
    return 0;
}

int peet_cursor_next(struct peet_cursor *c, struct peet_batch *batch, struct peet_err *err)
{
    struct peet_err own;
    int r;

    err = err ? err : &own;
    do {
        if (!c->is_open && (r = cursor_open_chunk(c, err)) <= 0)
            return r;
        expander_begin(&c->expander);
        r = expander_fill(&c->expander, err);
        if (r == 0)
            r = cursor_close_chunk(c, err);
        else if (r < 0)
            cursor_drop_chunk(c);
        if (r < 0)
            return r;
        *batch = expander_batch(&c->expander);
    } while (batch->count == 0);
    return 1;
}

int peet_cursor_seek(struct peet_cursor *c, uint64_t n, struct peet_err *err)
{
    const struct peet_trace *t = c->reader.trace;

    if (c->reader.thread == PEET_ALL_THREADS || t->is_pipe)
        return err_set(err, PEET_ERR_USAGE, "%s: only a cursor of one thread of a file can be set to a place", t->path);
    const struct chunk_ref *chunk = stream_reader_seek(&c->reader, n);
    cursor_drop_chunk(c);
    if (chunk)
        c->expander.position = chunk->header.first;
    c->expander.seek.to = n;
    c->expander.seek.is_on = n > 0;
    return 0;
}

/* ---- items ---- */

/* Accounts for an item that is not expanded; skips it while seeking: 1, 0: skipped, or an error. */
static int cursor_count_item(struct peet_cursor *c, const struct item_state *x, struct peet_err *err)
{
    struct expander *ex = &c->expander;
    unsigned want = ex->want;
    int r = 0;

    c->item_position = ex->position;
    if (x->special) {
        expander_begin(ex);
        ex->want |= PEET_WANT_LOOPS; /* loops are counted, not expanded */
        r = expander_put_special(ex, x->item, err);
        ex->want = want;
    } else {
        ex->position += x->item->insns;
    }
    if (r < 0)
        return r;
    if (ex->seek.is_on && (ex->position > ex->seek.to || c->item_position >= ex->seek.to))
        ex->seek.is_on = false;
    return !ex->seek.is_on && !(x->item->kind == ITEM_EVENT && x->item->event->kind >= PEET_EVENT_KINDS);
}

int peet_cursor_item(struct peet_cursor *c, uint32_t *ret_item, const uint64_t **ret_slots, struct peet_err *err)
{
    struct decoder *d = &c->expander.decoder;
    struct peet_err own;
    int r;

    err = err ? err : &own;
    for (;;) {
        if (!c->is_open && (r = cursor_open_chunk(c, err)) <= 0)
            return r;
        memcpy(c->registers, d->src + PEET_SRC_REGISTER, sizeof c->registers);
        const struct item_state *x = decoder_next(d);
        if (!x) {
            if ((r = cursor_close_chunk(c, err)) < 0)
                return r;
            continue;
        }
        if ((r = cursor_count_item(c, x, err)) < 0) {
            c->is_open = false;
            return r;
        }
        if (r == 0)
            continue;
        *ret_item = x->number;
        *ret_slots = x->word;
        return 1;
    }
}

const uint64_t *peet_cursor_registers(const struct peet_cursor *c)
{
    return c->registers;
}

uint32_t peet_cursor_thread(const struct peet_cursor *c)
{
    return c->expander.chunk.header.thread;
}

uint64_t peet_cursor_position(const struct peet_cursor *c)
{
    return c->item_position;
}
