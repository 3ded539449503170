/* SPDX-License-Identifier: MIT */
/* The stream of a thread: encodes items, and writes each full chunk. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "format/file/chunk_builder.h"
#include "format/file/writer.h"

enum { TIMES_LIMIT = 1 << 16 };

struct peet_stream {
    struct peet_writer *writer;
    struct peet_stream *previous, *next; /* under the writer's lock */
    uint32_t thread;                     /* number */
    struct peet_part own;                /* items put into the stream directly */
    struct buf payload, times;           /* payload of a chunk of times; encoded times that are not in a chunk yet */
    uint64_t sequence;                   /* of the next chunk of items */
    uint64_t position;                   /* instructions of the thread in chunks so far */
    uint64_t time_sequence;              /* of the next chunk of times */
    uint64_t last_position, last_ns;     /* of the last time */
    size_t times_count;                  /* times that are not in a chunk yet */
};

static void stream_free(struct peet_stream *s)
{
    chunk_builder_release(&s->own);
    buf_release(&s->payload);
    buf_release(&s->times);
    free(s);
}

int peet_stream_open(struct peet_writer *w, const struct peet_thread *thread, struct peet_stream **ret,
                     struct peet_err *err)
{
    struct peet_err own;
    struct peet_stream *s = calloc(1, sizeof *s);
    int r;

    err = err ? err : &own;
    if (!s)
        return err_set(err, PEET_ERR_MEMORY, "thread %" PRIu32 ": no memory", thread->id);
    s->writer = w;
    s->thread = thread->id;
    r = chunk_builder_init(&s->own, w, err);
    if (r == 0)
        r = schema_builder_thread(&w->builder, thread, err);
    if (r < 0) {
        stream_free(s);
        return r;
    }
    pthread_mutex_lock(&w->lock);
    s->next = w->streams;
    if (s->next)
        s->next->previous = s;
    w->streams = s;
    pthread_mutex_unlock(&w->lock);
    *ret = s;
    return 0;
}

/* Writes the chunks of a part after those of the stream. last: the stream ends with them. */
static int write_chunks(struct peet_stream *s, struct peet_part *p, bool last, struct peet_err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < p->chunks; i++) {
        struct chunk_header *h = &p->chunk[i].header;
        h->flags = last && i + 1 == p->chunks ? CHUNK_LAST : 0;
        h->thread = s->thread;
        h->sequence = s->sequence++;
        h->first = s->position;
        s->position += h->instructions;
        r = writer_chunk(s->writer, h, &p->chunk[i].payload, err);
    }
    p->chunks = 0;
    return r;
}

static int flush_items(struct peet_stream *s, bool last, struct peet_err *err)
{
    int r = chunk_builder_pack(&s->own, last, err);

    return r < 0 ? r : write_chunks(s, &s->own, last, err);
}

int stream_append(struct peet_stream *s, struct peet_part *p, struct peet_err *err)
{
    int r;

    if (atomic_load(&s->writer->failed))
        return writer_failed(s->writer, err);
    if ((r = flush_items(s, false, err)) < 0 || (r = write_chunks(s, p, false, err)) < 0)
        return writer_remember(s->writer, err);
    chunk_builder_begin(&s->own, chunk_builder_registers(p));
    return 0;
}

int stream_prefix(const struct peet_stream *s, struct peet_err *err)
{
    return err_prefix(err, "thread %" PRIu32, s->thread);
}

static int flush_times(struct peet_stream *s, struct peet_err *err)
{
    if (s->times_count == 0)
        return 0;
    struct buf counted = { 0 };
    buf_leb(&counted, s->times_count);
    buf_bytes(&counted, s->times.data, s->times.size);
    s->payload.size = 0;
    int r = counted.failed || s->times.failed
                ? err_set(err, PEET_ERR_MEMORY, "no memory for times")
                : packer_put(s->own.packer, PLANES, counted.data, counted.size, &s->payload, err);
    struct chunk_header h = { .type = CHUNK_TIME, .thread = s->thread, .sequence = s->time_sequence++ };
    if (r == 0)
        r = writer_chunk(s->writer, &h, &s->payload, err);
    buf_release(&counted);
    s->times.size = s->times_count = 0;
    s->last_position = s->last_ns = 0;
    return r;
}

static int stream_put_words(struct peet_stream *s, const uint64_t *words, size_t count, const struct peet_names *names,
                            struct peet_err *err)
{
    struct peet_err own;
    int r;

    err = err ? err : &own;
    s->own.encoder.names = names;
    if (atomic_load_explicit(&s->writer->failed, memory_order_relaxed))
        return writer_failed(s->writer, err);
    while (count > 0) {
        size_t used;
        if ((r = encoder_put(&s->own.encoder, words, count, &used, err)) < 0)
            return stream_prefix(s, err);
        words += used;
        count -= used;
        if (encoder_is_full(&s->own.encoder) && (r = flush_items(s, false, err)) < 0)
            return writer_remember(s->writer, err);
    }
    return 0;
}

int peet_stream_put_named(struct peet_stream *s, uint64_t *words, size_t count, const struct peet_names *names,
                          struct peet_err *err)
{
    return stream_put_words(s, words, count, names, err);
}

int peet_stream_put_words(struct peet_stream *s, const uint64_t *words, size_t count, struct peet_err *err)
{
    return stream_put_words(s, words, count, NULL, err);
}

int peet_stream_put(struct peet_stream *s, uint32_t item, const uint64_t *slots, struct peet_err *err)
{
    uint64_t words[1 + PEET_SLOTS];
    const struct item *known = schema_item(s->writer->builder.schema, item);
    size_t n = known ? known->slots : 0;

    words[0] = item;
    if (n)
        memcpy(words + 1, slots, n * sizeof *slots);
    return peet_stream_put_words(s, words, 1 + n, err);
}

uint64_t peet_stream_chunk(const struct peet_stream *s)
{
    return s->sequence;
}

int peet_stream_time(struct peet_stream *s, const struct peet_time *time, struct peet_err *err)
{
    struct peet_err own;

    err = err ? err : &own;
    buf_sleb(&s->times, (int64_t)(time->position - s->last_position));
    buf_sleb(&s->times, (int64_t)(time->ns - s->last_ns));
    buf_leb(&s->times, time->cpu);
    s->last_position = time->position;
    s->last_ns = time->ns;
    if (++s->times_count < TIMES_LIMIT)
        return 0;
    int r = flush_times(s, err);
    return r < 0 ? writer_remember(s->writer, err) : 0;
}

int peet_stream_flush(struct peet_stream *s, struct peet_err *err)
{
    struct peet_err own;
    int r;

    err = err ? err : &own;
    if (atomic_load(&s->writer->failed))
        return writer_failed(s->writer, err);
    if ((r = flush_items(s, false, err)) < 0 || (r = flush_times(s, err)) < 0)
        return writer_remember(s->writer, err);
    return 0;
}

int stream_end(struct peet_stream *s, bool whole, struct peet_err *err)
{
    struct peet_writer *w = s->writer;
    int r;

    if (atomic_load(&w->failed))
        r = writer_failed(w, err);
    else if ((r = flush_items(s, whole, err)) < 0 || (r = flush_times(s, err)) < 0)
        writer_remember(w, err);
    pthread_mutex_lock(&w->lock);
    if (s->previous)
        s->previous->next = s->next;
    else
        w->streams = s->next;
    if (s->next)
        s->next->previous = s->previous;
    pthread_mutex_unlock(&w->lock);
    stream_free(s);
    return r;
}

int peet_stream_close(struct peet_stream *s, struct peet_err *err)
{
    struct peet_err own;

    return stream_end(s, true, err ? err : &own);
}
