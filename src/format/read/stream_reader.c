/* SPDX-License-Identifier: MIT */
#include "format/read/stream_reader.h"

#include <inttypes.h>

#include "base/err.h"

int stream_reader_init(struct stream_reader *r, struct peet_trace *t, uint32_t thread, const struct thread_index *x,
                       struct peet_err *err)
{
    r->trace = t;
    r->thread = thread;
    r->next = x ? x->first : 0;
    r->end = x ? x->first + x->count : t->chunks;
    r->unpacker = unpacker_new();
    return r->unpacker ? 0 : err_set(err, PEET_ERR_MEMORY, "no memory for a cursor");
}

void stream_reader_release(struct stream_reader *r)
{
    unpacker_free(r->unpacker);
    buf_release(&r->payload);
    buf_release(&r->planes);
}

int chunk_damaged(const struct peet_trace *t, const struct chunk_ref *chunk, const char *what, struct peet_err *err)
{
    const struct chunk_header *h = &chunk->header;

    return err_set(err, PEET_ERR_DAMAGED,
                   "%s: thread %" PRIu32 ": instructions %" PRIu64 " to %" PRIu64 " (chunk at byte %" PRIu64 "): %s",
                   t->path, h->thread, h->first, h->first + h->instructions, chunk->offset, what);
}

/* The chunk cannot be read, for the reason in err: the position moves to its end. */
static int stream_reader_lost(const struct stream_reader *r, const struct chunk_ref *chunk, uint64_t *position,
                              struct peet_err *err)
{
    struct peet_err why = *err;

    *position = chunk->header.first + chunk->header.instructions;
    return why.code == PEET_ERR_DAMAGED ? chunk_damaged(r->trace, chunk, why.text, err) : why.code;
}

/* Unpacks the payload: registers and planes, which the decoder begins with. */
static int stream_reader_unpack(struct stream_reader *r, struct decoder *d, struct peet_err *err)
{
    struct byte_reader w = { r->payload.data, r->payload.data + r->payload.size, 0 };
    const uint8_t *plane[PLANES];
    struct unpacked unpacked[PLANES];
    size_t size[PLANES];
    uint64_t items = reader_leb(&w), used = reader_leb(&w);

    for (int i = 0; i < PEET_REGISTERS; i++)
        d->src[PEET_SRC_REGISTER + i] = used >> i & 1 ? reader_leb(&w) : 0;
    r->planes.size = 0;
    for (int i = 0; i < PLANES; i++) {
        int code = unpacker_next(r->unpacker, &w, PACK_MAX_PLANE, &r->planes, &unpacked[i], err);
        if (code < 0)
            return code;
    }
    for (int i = 0; i < PLANES; i++) {
        plane[i] = unpacked[i].raw ? unpacked[i].raw : r->planes.data + unpacked[i].at;
        size[i] = unpacked[i].n;
    }
    if (w.bad || used >> PEET_REGISTERS)
        return err_set(err, PEET_ERR_DAMAGED, "its head makes no sense");
    return decoder_begin(d, items, plane, size, err);
}

/* Selects and loads the next chunk: 1, 0 at the end, or an error. */
static int stream_reader_load(struct stream_reader *r, struct chunk_ref *chunk, uint64_t *position,
                              struct peet_err *err)
{
    const struct peet_trace *t = r->trace;

    if (t->is_pipe)
        return trace_pipe_next(r->trace, chunk, &r->payload, err);
    if (r->next == r->end)
        return 0;
    const struct chunk_ref *c = &t->chunk[r->thread == PEET_ALL_THREADS ? t->by_offset[r->next] : r->next];
    if (r->thread != PEET_ALL_THREADS && c->header.sequence != r->expected) {
        uint64_t missing = c->header.sequence - r->expected;
        r->expected = c->header.sequence; /* reported once; the next call loads the chunk */
        return err_set(err, PEET_ERR_DAMAGED,
                       "%s: thread %" PRIu32 ": %" PRIu64 " chunks are missing: instructions %" PRIu64 " to %" PRIu64,
                       t->path, r->thread, missing, *position, c->header.first);
    }
    *chunk = *c;
    r->next++;
    r->expected++;
    int code = trace_load(t, chunk, &r->payload, err);
    return code < 0 ? stream_reader_lost(r, chunk, position, err) : 1;
}

int stream_reader_next(struct stream_reader *r, struct chunk_ref *chunk, struct decoder *d, uint64_t *position,
                       struct peet_err *err)
{
    int code = stream_reader_load(r, chunk, position, err);

    if (code <= 0)
        return code;
    *position = chunk->header.first;
    return stream_reader_unpack(r, d, err) < 0 ? stream_reader_lost(r, chunk, position, err) : 1;
}

const struct chunk_ref *stream_reader_seek(struct stream_reader *r, uint64_t n)
{
    const struct peet_trace *t = r->trace;
    const struct thread_index *x = trace_thread(t, r->thread);
    size_t low = x->first, high = x->first + x->count;

    while (low < high) { /* the first chunk that ends after n */
        size_t middle = (low + high) / 2;
        if (t->chunk[middle].header.first + t->chunk[middle].header.instructions <= n)
            low = middle + 1;
        else
            high = middle;
    }
    /* Chunks without instructions may end at n, and their events precede instruction n. */
    while (low > x->first && t->chunk[low - 1].header.first >= n)
        low--;
    r->next = low;
    r->expected = low < r->end ? t->chunk[low].header.sequence : 0;
    return low < r->end ? &t->chunk[low] : NULL;
}
