/* SPDX-License-Identifier: MIT */
/* Reading a stream: from chunks to items. What items expand to is in expand.c. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "format/read/cursor.h"

/* ---- opening ---- */

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
    if (!c || !(c->unpacker = unpacker_new())) {
        free(c);
        return err_set(err, PEET_ERR_MEMORY, "no memory for a cursor");
    }
    c->trace = t;
    c->only = thread;
    c->want = want;
    c->pages.value_size = sizeof(uint64_t);
    c->next = x ? x->first : 0;
    c->end = x ? x->first + x->count : t->chunks;
    int r = decoder_init(&c->decoder, t->schema, err);
    if (r == 0)
        r = cursor_reserve(c, 1, err);
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
    decoder_release(&c->decoder);
    unpacker_free(c->unpacker);
    buf_release(&c->payload);
    buf_release(&c->planes);
    map_release(&c->pages);
    loop_plans_release(&c->plans);
    free(c->record);
    free(c->physical);
    free(c->value_index);
    free(c->value);
    free(c);
}

/* ---- chunks ---- */

/* The chunk at hand cannot be read, for the reason in err: the cursor stands behind it. */
static int lost(struct peet_cursor *c, struct peet_err *err)
{
    struct peet_err why = *err;

    c->position = c->chunk.header.first + c->chunk.header.instructions;
    return why.code == PEET_ERR_DAMAGED ? cursor_damaged(c, why.text, err) : why.code;
}

/* Registers and planes out of the payload, and the decoder set on them. */
static int unpack(struct peet_cursor *c, struct peet_err *err)
{
    struct byte_reader w = { c->payload.data, c->payload.data + c->payload.size, 0 };
    const uint8_t *plane[PLANES];
    struct unpacked part[PLANES];
    size_t size[PLANES];
    uint64_t items = reader_leb(&w), used = reader_leb(&w);

    for (int i = 0; i < PEET_REGISTERS; i++)
        c->decoder.src[PEET_SRC_REGISTER + i] = used >> i & 1 ? reader_leb(&w) : 0;
    c->planes.size = 0;
    for (int i = 0; i < PLANES; i++) {
        int r = unpacker_next(c->unpacker, &w, PACK_MAX_PLANE, &c->planes, &part[i], err);
        if (r < 0)
            return r;
    }
    for (int i = 0; i < PLANES; i++) {
        plane[i] = part[i].raw ? part[i].raw : c->planes.data + part[i].at;
        size[i] = part[i].n;
    }
    if (w.bad || used >> PEET_REGISTERS)
        return err_set(err, PEET_ERR_DAMAGED, "its head makes no sense");
    return decoder_begin(&c->decoder, items, plane, size, err);
}

/* Chooses and loads the next chunk: 1, 0 at the end, or an error. */
static int load_next(struct peet_cursor *c, struct peet_err *err)
{
    const struct peet_trace *t = c->trace;

    if (t->is_pipe)
        return trace_pipe_next(c->trace, &c->chunk, &c->payload, err);
    if (c->next == c->end)
        return 0;
    const struct chunk_ref *r = &t->chunk[c->only == PEET_ALL_THREADS ? t->by_offset[c->next] : c->next];
    if (c->only != PEET_ALL_THREADS && r->header.sequence != c->expected) {
        uint64_t from = c->position, missing = r->header.sequence - c->expected;
        c->expected = r->header.sequence; /* said once; the next call goes on */
        return err_set(err, PEET_ERR_DAMAGED,
                       "%s: thread %" PRIu32 ": %" PRIu64 " chunks are missing: instructions %" PRIu64 " to %" PRIu64,
                       t->path, c->only, missing, from, r->header.first);
    }
    c->chunk = *r;
    c->next++;
    c->expected++;
    int e = trace_load(t, &c->chunk, &c->payload, err);
    return e < 0 ? lost(c, err) : 1;
}

static int open_chunk(struct peet_cursor *c, struct peet_err *err)
{
    int r = load_next(c, err);

    if (r <= 0)
        return r;
    c->position = c->chunk.header.first;
    if (unpack(c, err) < 0)
        return lost(c, err);
    map_clear(&c->pages);
    c->open = true;
    return 1;
}

/* The decoder has no more items; was that as it should be? */
static int close_chunk(struct peet_cursor *c, struct peet_err *err)
{
    const struct decoder *d = &c->decoder;
    uint64_t end = c->chunk.header.first + c->chunk.header.instructions, at = c->position;

    c->open = c->in_loop = false;
    c->position = end;
    if (d->fault)
        return cursor_damaged(c, d->fault, err);
    if (at != end || d->in_planes || d->residual != d->residual_end)
        return cursor_damaged(c, "it holds more or less than its header says", err);
    return 0;
}

int peet_cursor_next(struct peet_cursor *c, struct peet_batch *batch, struct peet_err *err)
{
    struct peet_err own;
    int r;

    err = err ? err : &own;
    do {
        if (!c->open && (r = open_chunk(c, err)) <= 0)
            return r;
        cursor_begin(c);
        r = cursor_fill(c, err);
        if (r == 0)
            r = close_chunk(c, err);
        else if (r < 0)
            c->open = c->in_loop = false;
        if (r < 0)
            return r;
        *batch = (struct peet_batch){
            .count = c->count,
            .records = c->record,
            .events = c->event,
            .event_count = c->events,
            .loops = c->loop,
            .repeats = c->repeat,
            .physical = c->physical,
            .values = c->value,
            .value_index = c->value_index,
            .thread = c->chunk.header.thread,
            .position = c->batch_position,
        };
    } while (c->count == 0);
    return 1;
}

/* ---- seeking ---- */

int peet_cursor_seek(struct peet_cursor *c, uint64_t n, struct peet_err *err)
{
    const struct peet_trace *t = c->trace;
    const struct thread_index *x = trace_thread(t, c->only);

    if (c->only == PEET_ALL_THREADS || t->is_pipe)
        return err_set(err, PEET_ERR_USAGE, "%s: only a cursor of one thread of a file can be set to a place", t->path);
    size_t low = x->first, high = x->first + x->count;
    while (low < high) { /* the first chunk that ends behind n */
        size_t middle = (low + high) / 2;
        if (t->chunk[middle].header.first + t->chunk[middle].header.instructions <= n)
            low = middle + 1;
        else
            high = middle;
    }
    /* Chunks that hold events only may end at n and belong to what is behind it. */
    while (low > x->first && t->chunk[low - 1].header.first >= n)
        low--;
    c->open = c->in_loop = false;
    c->next = low;
    c->expected = low < c->end ? t->chunk[low].header.sequence : 0;
    c->position = low < c->end ? t->chunk[low].header.first : c->position;
    c->skip_to = n;
    c->skipping = n > 0;
    return 0;
}

/* ---- items ---- */

int peet_cursor_item(struct peet_cursor *c, uint32_t *ret_item, const uint64_t **ret_slots, struct peet_err *err)
{
    struct decoder *d = &c->decoder;
    struct peet_err own;
    int r;

    err = err ? err : &own;
    for (;;) {
        if (!c->open && (r = open_chunk(c, err)) <= 0)
            return r;
        memcpy(c->registers, d->src + PEET_SRC_REGISTER, sizeof c->registers);
        const struct item_state *x = decoder_next(d);
        if (!x) {
            if ((r = close_chunk(c, err)) < 0)
                return r;
            continue;
        }
        c->item_position = c->position;
        c->count = c->events = c->loops = c->values = 0;
        unsigned want = c->want;
        c->want |= PEET_WANT_LOOPS; /* counted, not expanded */
        r = x->special ? cursor_special(c, x->item, err) : 0;
        c->want = want;
        if (r < 0) {
            c->open = false;
            return r;
        }
        if (!x->special)
            c->position += x->item->insns;
        if (c->skipping && (c->position > c->skip_to || c->item_position >= c->skip_to))
            c->skipping = false;
        if (c->skipping || (x->item->kind == ITEM_EVENT && x->item->event->kind >= PEET_EVENT_KINDS))
            continue;
        *ret_item = (uint32_t)x->number;
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
    return c->chunk.header.thread;
}

uint64_t peet_cursor_position(const struct peet_cursor *c)
{
    return c->item_position;
}
