/* SPDX-License-Identifier: MIT */
/* Finds the chunks of a file: by the index at its end. If the index is missing or damaged, by a scan from chunk to chunk, which
 * searches for the next header after a damaged chunk. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "format/file/trace.h"

int trace_read_at(const struct peet_trace *t, uint64_t offset, void *into, size_t n, struct peet_err *err)
{
    uint8_t *p = into;

    while (n > 0) {
        ssize_t got = pread(t->fd, p, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys(err, errno, "%s: cannot read at byte %" PRIu64, t->path, offset);
        if (got == 0)
            return err_set(err, PEET_ERR_DAMAGED, "%s: ends at byte %" PRIu64 "; %zu more bytes were expected", t->path,
                           offset, n);
        p += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return 0;
}

int trace_add_ref(struct chunk_ref **list, size_t *count, size_t *room, const struct chunk_ref *r, struct peet_err *err)
{
    if (*count == *room) {
        size_t more = *room * 2 + 64;
        struct chunk_ref *bigger = realloc(*list, more * sizeof *bigger);
        if (!bigger)
            return err_set(err, PEET_ERR_MEMORY, "no memory for the index");
        *list = bigger;
        *room = more;
    }
    (*list)[(*count)++] = *r;
    return 0;
}

/* Sorts chunks by their type. The caller reads those of definitions in the order of the file. */
struct sorting {
    struct peet_trace *trace;
    struct chunk_ref *defs;
    size_t count, room;
};

static int sort_chunk(struct sorting *x, const struct chunk_ref *r, struct peet_err *err)
{
    struct peet_trace *t = x->trace;

    switch (r->header.type) {
    case CHUNK_STREAM: return trace_add_ref(&t->chunk, &t->chunks, &t->chunk_room, r, err);
    case CHUNK_TIME: return trace_add_ref(&t->time, &t->times, &t->time_room, r, err);
    case CHUNK_DEFS: return trace_add_ref(&x->defs, &x->count, &x->room, r, err);
    default: return 0;
    }
}

/* Offset of the first chunk header at or after `from`, a multiple of 8; t->bytes: there is none. */
static int find_chunk(const struct peet_trace *t, uint64_t from, uint64_t *ret, struct peet_err *err)
{
    static const size_t WINDOW = 1 << 16;
    uint8_t *bytes = malloc(WINDOW + CHUNK_HEADER_BYTES);
    int r = bytes ? 0 : err_set(err, PEET_ERR_MEMORY, "%s: no memory to look for chunks", t->path);
    struct chunk_header h;

    *ret = t->bytes;
    for (uint64_t at = from; r == 0 && at + CHUNK_HEADER_BYTES <= t->bytes && *ret == t->bytes; at += WINDOW) {
        uint64_t rest = t->bytes - at;
        size_t n = rest < WINDOW + CHUNK_HEADER_BYTES ? (size_t)rest : WINDOW + CHUNK_HEADER_BYTES;
        r = trace_read_at(t, at, bytes, n, err);
        for (size_t i = 0; r == 0 && i < WINDOW && i + CHUNK_HEADER_BYTES <= n; i += 8)
            if (!memcmp(bytes + i, CHUNK_MAGIC, 8) && chunk_header_decode(bytes + i, &h)) {
                *ret = at + i;
                break;
            }
    }
    free(bytes);
    return r;
}

/* Skips the trailer, or damaged bytes, at offset `at`; *ret_next: offset at which the scan continues. */
static int trace_skip_damage(struct peet_trace *t, uint64_t at, const uint8_t head[CHUNK_HEADER_BYTES], size_t n,
                             uint64_t *ret_next, struct peet_err *err)
{
    uint64_t offset, chunks;

    if (n >= TRAILER_BYTES && trailer_decode(head, &offset, &chunks)) {
        *ret_next = at + TRAILER_BYTES;
        return 0;
    }
    int r = find_chunk(t, at + 8, ret_next, err);
    if (r == 0)
        trace_problem(t, "bytes %" PRIu64 " to %" PRIu64 " are not a whole chunk%s", at, *ret_next,
                      *ret_next == t->bytes ? ": the file was cut off there, or is damaged to its end"
                                            : ": they are damaged");
    return r;
}

int trace_scan(struct peet_trace *t, struct chunk_ref **ret_defs, size_t *ret_count, struct peet_err *err)
{
    struct sorting x = { .trace = t };
    int r = 0;

    t->chunks = t->times = 0;
    for (uint64_t at = FILE_HEADER_BYTES; r == 0 && at < t->bytes;) {
        uint8_t head[CHUNK_HEADER_BYTES] = { 0 };
        size_t n = t->bytes - at < sizeof head ? (size_t)(t->bytes - at) : sizeof head;
        struct chunk_ref ref = { .offset = at };
        if ((r = trace_read_at(t, at, head, n, err)) < 0)
            break;
        if (n < sizeof head || !chunk_header_decode(head, &ref.header)) {
            r = trace_skip_damage(t, at, head, n, &at, err);
            continue;
        }
        uint64_t end = at + CHUNK_HEADER_BYTES + ref.header.payload;
        if (end > t->bytes) {
            trace_problem(t, "byte %" PRIu64 ": cut off inside a chunk%s", at,
                          ref.header.type == CHUNK_INDEX ? " (the index)" : "");
            break;
        }
        r = sort_chunk(&x, &ref, err);
        at = end + chunk_padding(ref.header.payload);
    }
    if (r < 0) {
        free(x.defs);
        return r;
    }
    *ret_defs = x.defs;
    *ret_count = x.count;
    return 0;
}

static int trace_read_entries(struct sorting *x, const uint8_t *p, size_t n, struct peet_err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i += INDEX_ENTRY_BYTES) {
        struct chunk_ref ref;
        if (!index_entry_decode(p + i, &ref) || ref.offset < FILE_HEADER_BYTES || ref.offset > x->trace->bytes
            || ref.header.payload > x->trace->bytes - ref.offset)
            return err_set(err, PEET_ERR_DAMAGED, "its index names a chunk that cannot be");
        r = sort_chunk(x, &ref, err);
    }
    return r;
}

int trace_read_index(struct peet_trace *t, struct chunk_ref **ret_defs, size_t *ret_count, struct peet_err *err)
{
    uint8_t bytes[TRAILER_BYTES], head[CHUNK_HEADER_BYTES];
    struct sorting x = { .trace = t };
    struct chunk_ref index;
    struct buf payload = { 0 }, entries = { 0 };
    uint64_t chunks;
    size_t at, n;
    int r;

    if (t->bytes < FILE_HEADER_BYTES + CHUNK_HEADER_BYTES + TRAILER_BYTES)
        return err_set(err, PEET_ERR_DAMAGED, "it has no end");
    if ((r = trace_read_at(t, t->bytes - TRAILER_BYTES, bytes, sizeof bytes, err)) < 0)
        return r;
    if (!trailer_decode(bytes, &index.offset, &chunks))
        return err_set(err, PEET_ERR_DAMAGED, "it has no end");
    if (index.offset > t->bytes - CHUNK_HEADER_BYTES || (r = trace_read_at(t, index.offset, head, sizeof head, err)) < 0
        || !chunk_header_decode(head, &index.header) || index.header.type != CHUNK_INDEX)
        return err_set(err, PEET_ERR_DAMAGED, "its index is damaged");
    if ((r = trace_load(t, &index, &payload, err)) == 0) {
        struct byte_reader w = { payload.data, payload.data + payload.size, 0 };
        r = unpacker_append(t->unpacker, &w, CHUNK_MAX_PAYLOAD, &entries, &at, &n, err);
        if (r == 0 && n != chunks * INDEX_ENTRY_BYTES)
            r = err_set(err, PEET_ERR_DAMAGED, "its index is damaged");
        if (r == 0)
            r = trace_read_entries(&x, entries.data + at, n, err);
    }
    buf_release(&payload);
    buf_release(&entries);
    if (r < 0) {
        free(x.defs);
        return r == PEET_ERR_DAMAGED ? err_set(err, r, "its index is damaged") : r;
    }
    *ret_defs = x.defs;
    *ret_count = x.count;
    return 0;
}
