/* SPDX-License-Identifier: MIT */
/* Opening a trace, and looking up what it defines. */
#include "format/file/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

void trace_problem(struct peet_trace *t, const char *format, ...)
{
    char *text;
    va_list ap;

    va_start(ap, format);
    int n = vasprintf(&text, format, ap);
    va_end(ap);
    if (n < 0)
        return;
    if (t->problems == t->problem_room) {
        size_t room = t->problem_room * 2 + 16;
        char **bigger = realloc(t->problem, room * sizeof(char *));
        if (!bigger) {
            free(text);
            return;
        }
        t->problem = bigger;
        t->problem_room = room;
    }
    t->problem[t->problems++] = text;
}

int trace_load(const struct peet_trace *t, const struct chunk_ref *r, struct buf *into, struct peet_err *err)
{
    uint8_t head[CHUNK_HEADER_BYTES];
    struct chunk_header h;
    int e = trace_read_at(t, r->offset, head, sizeof head, err);

    if (e < 0)
        return e;
    if (!chunk_header_decode(head, &h) || h.type != r->header.type || h.thread != r->header.thread
        || h.sequence != r->header.sequence || h.payload != r->header.payload || h.first != r->header.first
        || h.instructions != r->header.instructions || h.references != r->header.references
        || h.events != r->header.events || h.flags != r->header.flags)
        return err_set(err, PEET_ERR_DAMAGED, "the chunk's header is damaged");
    into->size = 0;
    uint8_t *room = buf_room(into, h.payload + PACK_SLACK);
    if (!room)
        return err_set(err, PEET_ERR_MEMORY, "%s: no memory for a chunk of %" PRIu64 " bytes", t->path, h.payload);
    if ((e = trace_read_at(t, r->offset + CHUNK_HEADER_BYTES, room, h.payload, err)) < 0)
        return e;
    if (!checksum_matches(h.checksum, room, h.payload))
        return err_set(err, PEET_ERR_DAMAGED, "the chunk's checksum does not match");
    into->size = h.payload;
    return 0;
}

/* ---- threads ---- */

struct thread_index *trace_thread(const struct peet_trace *t, uint32_t id)
{
    size_t low = 0, high = t->threads;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (t->thread[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->threads && t->thread[low].id == id ? &t->thread[low] : NULL;
}

static struct thread_index *add_thread(struct peet_trace *t, uint32_t id, struct peet_err *err)
{
    struct thread_index *known = trace_thread(t, id);
    size_t at = t->threads;

    if (known)
        return known;
    if (t->threads == t->thread_room) {
        size_t room = t->thread_room * 2 + 16;
        struct thread_index *bigger = realloc(t->thread, room * sizeof *bigger);
        if (!bigger) {
            err_set(err, PEET_ERR_MEMORY, "no memory for the thread table");
            return NULL;
        }
        t->thread = bigger;
        t->thread_room = room;
    }
    for (; at > 0 && t->thread[at - 1].id > id; at--)
        t->thread[at] = t->thread[at - 1];
    t->thread[at] = (struct thread_index){ .id = id };
    t->threads++;
    return &t->thread[at];
}

/* Adds a stream's chunk to the totals of its thread. */
int trace_count(struct peet_trace *t, const struct chunk_ref *r, struct peet_err *err)
{
    struct thread_index *x = add_thread(t, r->header.thread, err);

    if (!x)
        return PEET_ERR_MEMORY;
    x->totals.instructions += r->header.instructions;
    x->totals.references += r->header.references;
    x->totals.events += r->header.events;
    x->totals.chunks++;
    x->totals.bytes += CHUNK_HEADER_BYTES + r->header.payload + chunk_padding(r->header.payload);
    x->totals.whole = (r->header.flags & CHUNK_LAST) != 0; /* chunks are counted in the order of their sequence */
    return 0;
}

/* ---- opening ---- */

int trace_add_defs(struct peet_trace *t, const struct buf *payload, struct peet_err *err)
{
    struct byte_reader w = { payload->data, payload->data + payload->size, 0 };
    struct buf out = { 0 };
    size_t at, n;
    int r = unpacker_append(t->unpacker, &w, CHUNK_MAX_PAYLOAD, &out, &at, &n, err);

    if (r == 0)
        r = defs_read(t->schema, out.data + at, n, err);
    buf_release(&out);
    return r;
}

static int compare_refs(const void *a, const void *b)
{
    const struct chunk_ref *x = a, *y = b;

    if (x->header.thread != y->header.thread)
        return x->header.thread < y->header.thread ? -1 : 1;
    if (x->header.sequence != y->header.sequence)
        return x->header.sequence < y->header.sequence ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static _Thread_local const struct chunk_ref *sorted_by; /* qsort has no argument to carry it */

static int compare_offsets(const void *a, const void *b)
{
    uint64_t x = sorted_by[*(const size_t *)a].offset, y = sorted_by[*(const size_t *)b].offset;

    return x < y ? -1 : x > y;
}

/* Drops chunks with the thread and sequence of another one; the first in the file stays. */
static void trace_drop_duplicates(struct peet_trace *t)
{
    size_t kept = 0;

    for (size_t i = 0; i < t->chunks; i++) {
        const struct chunk_header *h = &t->chunk[i].header;
        if (kept && t->chunk[kept - 1].header.thread == h->thread
            && t->chunk[kept - 1].header.sequence == h->sequence) {
            trace_problem(t, "byte %" PRIu64 ": thread %" PRIu32 " has a chunk %" PRIu64 " already; passed over",
                          t->chunk[i].offset, h->thread, h->sequence);
            continue;
        }
        t->chunk[kept++] = t->chunk[i];
    }
    t->chunks = kept;
}

static int sort_chunks(struct peet_trace *t, struct peet_err *err)
{
    int r = 0;

    if (t->chunks)
        qsort(t->chunk, t->chunks, sizeof *t->chunk, compare_refs);
    if (t->times)
        qsort(t->time, t->times, sizeof *t->time, compare_refs);
    trace_drop_duplicates(t);
    t->by_offset = malloc((t->chunks + 1) * sizeof *t->by_offset);
    if (!t->by_offset)
        return err_set(err, PEET_ERR_MEMORY, "%s: no memory for the index", t->path);
    for (size_t i = 0; r == 0 && i < t->chunks; i++) {
        t->by_offset[i] = i;
        r = trace_count(t, &t->chunk[i], err);
        if (r == 0) {
            struct thread_index *x = trace_thread(t, t->chunk[i].header.thread);
            x->first = x->count++ == 0 ? i : x->first;
        }
    }
    sorted_by = t->chunk;
    if (t->chunks)
        qsort(t->by_offset, t->chunks, sizeof *t->by_offset, compare_offsets);
    return r;
}

/* Adds threads with a stream to the schema, and threads of the schema to the thread table. */
static int match_threads(struct peet_trace *t, struct peet_err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < t->schema->threads.count; i++)
        r = add_thread(t, ((const struct peet_thread *)t->schema->threads.at[i])->id, err) ? 0 : PEET_ERR_MEMORY;
    for (size_t i = 0; r == 0 && i < t->threads; i++) {
        struct peet_thread lost = { .id = t->thread[i].id, .name = "(its definition is lost)" };
        if (!schema_thread(t->schema, lost.id))
            r = schema_add_thread(t->schema, &lost, err);
    }
    return r;
}

static void trace_report_missing(struct peet_trace *t)
{
    for (size_t i = 0; i < t->threads; i++) {
        const struct thread_index *x = &t->thread[i];
        uint64_t expected = 0;
        for (size_t j = x->first; j < x->first + x->count; j++) {
            const struct chunk_header *h = &t->chunk[j].header;
            if (h->sequence != expected)
                trace_problem(t, "thread %" PRIu32 ": %" PRIu64 " chunks before instruction %" PRIu64 " are missing",
                              x->id, h->sequence - expected, h->first);
            expected = h->sequence + 1;
        }
        if (!x->totals.whole)
            trace_problem(t, "thread %" PRIu32 ": its end is missing; %" PRIu64 " instructions are there", x->id,
                          x->totals.instructions);
    }
}

static int open_file(struct peet_trace *t, struct peet_err *err)
{
    uint8_t head[FILE_HEADER_BYTES];
    struct chunk_ref *defs = NULL;
    struct buf payload = { 0 };
    struct peet_err why;
    size_t count = 0, n = t->bytes < sizeof head ? (size_t)t->bytes : sizeof head;
    int r;

    if ((r = trace_read_at(t, 0, head, n, err)) < 0 || (r = file_header_decode(head, n, t->path, err)) < 0)
        return r;
    if (trace_read_index(t, &defs, &count, &why) < 0) {
        trace_problem(t, "%s: its parts were found by a scan", why.text);
        if ((r = trace_scan(t, &defs, &count, err)) < 0)
            return r;
    }
    for (size_t i = 0; i < count; i++) /* they were written in the order of their sequence */
        if (defs[i].header.sequence != i) {
            trace_problem(t, "some definitions are missing");
            break;
        }
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (trace_load(t, &defs[i], &payload, &why) < 0 || trace_add_defs(t, &payload, &why) < 0) {
            if (why.code == PEET_ERR_MEMORY || why.code == PEET_ERR_IO)
                r = err_set(err, why.code, "%s", why.text);
            trace_problem(t, "definitions at byte %" PRIu64 ": %s", defs[i].offset, why.text);
        }
    }
    buf_release(&payload);
    free(defs);
    if (r < 0 || (r = sort_chunks(t, err)) < 0 || (r = match_threads(t, err)) < 0)
        return r;
    trace_report_missing(t);
    return 0;
}

static int read_pipe(struct peet_trace *t, void *into, size_t n, size_t *ret_n, struct peet_err *err)
{
    *ret_n = 0;
    while (*ret_n < n) {
        ssize_t got = read(t->fd, (char *)into + *ret_n, n - *ret_n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys(err, errno, "%s: cannot read", t->path);
        if (got == 0)
            break;
        *ret_n += (size_t)got;
        t->bytes += (uint64_t)got;
    }
    return 0;
}

static int open_pipe(struct peet_trace *t, struct peet_err *err)
{
    uint8_t head[FILE_HEADER_BYTES];
    size_t n;
    int r = read_pipe(t, head, sizeof head, &n, err);

    return r < 0 ? r : file_header_decode(head, n, t->path, err);
}

int peet_trace_open(const char *path, struct peet_trace **ret, struct peet_err *err)
{
    bool is_stdin = !strcmp(path, "-");
    struct peet_trace *t = calloc(1, sizeof *t);
    struct stat st;
    int r;

    if (!t || !(t->path = strdup(is_stdin ? "standard input" : path)) || !(t->schema = schema_new())
        || !(t->unpacker = unpacker_new())) {
        peet_trace_free(t);
        return err_set(err, PEET_ERR_MEMORY, "%s: no memory", path);
    }
    t->fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    t->owns_fd = !is_stdin;
    if (t->fd < 0 || fstat(t->fd, &st) < 0) {
        r = err_sys(err, errno, "%s: cannot open", t->path);
    } else if (S_ISDIR(st.st_mode)) {
        r = err_set(err, PEET_ERR_IO, "%s: is a folder, not a trace", t->path);
    } else {
        t->is_pipe = !S_ISREG(st.st_mode);
        t->bytes = t->is_pipe ? 0 : (uint64_t)st.st_size;
        r = t->is_pipe ? open_pipe(t, err) : open_file(t, err);
    }
    if (r < 0) {
        peet_trace_free(t);
        return r;
    }
    *ret = t;
    return 0;
}

void peet_trace_free(struct peet_trace *t)
{
    if (!t)
        return;
    if (t->owns_fd && t->fd >= 0)
        close(t->fd);
    for (size_t i = 0; i < t->problems; i++)
        free(t->problem[i]);
    free(t->problem);
    free(t->chunk);
    free(t->time);
    free(t->by_offset);
    free(t->thread);
    schema_free(t->schema);
    unpacker_free(t->unpacker);
    free(t->path);
    free(t);
}

/* ---- pipes ---- */

/* The end of the pipe, after `n` bytes that are no chunk header. */
static int pipe_end(struct peet_trace *t, const uint8_t *bytes, size_t n, struct peet_err *err)
{
    uint64_t offset, chunks;

    t->ended = true;
    if (n != TRAILER_BYTES || !trailer_decode(bytes, &offset, &chunks))
        trace_problem(t, "the pipe ended at byte %" PRIu64 " without the trace's end", t->bytes);
    int r = match_threads(t, err);
    for (size_t i = 0; r == 0 && i < t->threads; i++)
        if (!t->thread[i].totals.whole)
            trace_problem(t, "thread %" PRIu32 ": its end is missing; %" PRIu64 " instructions are there",
                          t->thread[i].id, t->thread[i].totals.instructions);
    return r;
}

static int pipe_chunk(struct peet_trace *t, struct chunk_ref *ref, struct buf *into, struct peet_err *err)
{
    uint64_t bytes = ref->header.payload + chunk_padding(ref->header.payload);
    size_t n;

    into->size = 0;
    if (!buf_room(into, bytes + PACK_SLACK))
        return err_set(err, PEET_ERR_MEMORY, "%s: no memory for a chunk of %" PRIu64 " bytes", t->path, bytes);
    int r = read_pipe(t, into->data, bytes, &n, err);
    if (r < 0)
        return r;
    if (n < ref->header.payload) {
        t->broken = true;
        return err_set(err, PEET_ERR_DAMAGED, "%s: byte %" PRIu64 ": cut off inside a chunk", t->path, ref->offset);
    }
    into->size = ref->header.payload;
    if (!checksum_matches(ref->header.checksum, into->data, into->size))
        return err_set(err, PEET_ERR_DAMAGED, "%s: byte %" PRIu64 ": the chunk's checksum does not match", t->path,
                       ref->offset);
    return 0;
}

int trace_pipe_next(struct peet_trace *t, struct chunk_ref *ret, struct buf *into, struct peet_err *err)
{
    uint8_t head[CHUNK_HEADER_BYTES];
    size_t n;
    int r;

    if (t->broken && !t->ended)
        return pipe_end(t, NULL, 0, err);
    while (!t->ended) {
        struct chunk_ref ref = { .offset = t->bytes };
        if ((r = read_pipe(t, head, sizeof head, &n, err)) < 0)
            return r;
        if (n < sizeof head)
            return pipe_end(t, head, n, err);
        if (!chunk_header_decode(head, &ref.header)) {
            t->broken = true;
            return err_set(err, PEET_ERR_DAMAGED,
                           "%s: byte %" PRIu64 ": not a chunk; a pipe cannot be searched for the next", t->path,
                           ref.offset);
        }
        if ((r = pipe_chunk(t, &ref, into, err)) < 0)
            return r;
        if (ref.header.type == CHUNK_DEFS && (r = trace_add_defs(t, into, err)) < 0) {
            if (r == PEET_ERR_MEMORY)
                return r;
            trace_problem(t, "definitions at byte %" PRIu64 ": %s", ref.offset, err->text);
        }
        if (ref.header.type == CHUNK_STREAM) {
            if ((r = trace_count(t, &ref, err)) < 0)
                return r;
            struct thread_index *x = trace_thread(t, ref.header.thread);
            if (ref.header.sequence != x->next_sequence)
                trace_problem(t, "thread %" PRIu32 ": chunks before instruction %" PRIu64 " are missing", x->id,
                              ref.header.first);
            x->next_sequence = ref.header.sequence + 1;
            *ret = ref;
            return 1;
        }
    }
    return 0;
}

void trace_view(struct peet_trace *ret, char *name, struct schema *s)
{
    *ret = (struct peet_trace){ .fd = -1, .path = name, .schema = s };
}
