/* SPDX-License-Identifier: MIT */
/* Writing a trace.
 *
 * Each stream encodes, compresses and writes by itself. Streams share the schema, which they only read, and the file,
 * where each takes its place with one atomic addition (in a pipe, with a lock around the write). Definitions are
 * collected under a lock; a stream that is about to write a chunk first sees to it that all definitions made so far are
 * in the file, so that no chunk ever stands before what it needs.
 *
 * The first error stays: after it nothing more is written, so that what the file holds so far stays as it is, and every
 * later call fails with the same words. */
#include "format/file/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/err.h"

enum { DEFAULT_CHUNK_WORDS = 131072, DEFAULT_LEVEL = 1, DEFS_LIMIT = 1 << 20 };

/* ---- the file ---- */

int writer_remember(struct peet_writer *w, const struct peet_err *e)
{
    pthread_mutex_lock(&w->lock);
    if (!w->first_error.code)
        w->first_error = *e;
    pthread_mutex_unlock(&w->lock);
    atomic_store(&w->failed, true);
    return e->code;
}

int writer_failed(struct peet_writer *w, struct peet_err *err)
{
    pthread_mutex_lock(&w->lock);
    struct peet_err first = w->first_error;
    pthread_mutex_unlock(&w->lock);
    return err_set(err, first.code, "%s", first.text);
}

/* All of iov, at offset (a pipe ignores it). */
static int write_all(struct peet_writer *w, struct iovec *iov, int n, uint64_t offset, struct peet_err *err)
{
    while (n > 0) {
        ssize_t done = w->is_pipe ? writev(w->fd, iov, n) : pwritev(w->fd, iov, n, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_sys(err, errno, "%s: cannot write", w->path);
        offset += (uint64_t)done;
        for (; n > 0 && (size_t)done >= iov->iov_len; iov++, n--)
            done -= (ssize_t)iov->iov_len;
        if (n > 0) {
            iov->iov_base = (char *)iov->iov_base + done;
            iov->iov_len -= (size_t)done;
        }
    }
    return 0;
}

/* Call with the lock held. */
static int index_add(struct peet_writer *w, const struct chunk_ref *r, struct peet_err *err)
{
    if (w->index_count == w->index_room) {
        size_t room = w->index_room * 2 + 256;
        struct chunk_ref *index = realloc(w->index, room * sizeof *index);
        if (!index)
            return err_set(err, PEET_ERR_MEMORY, "%s: no memory for the index", w->path);
        w->index = index;
        w->index_room = room;
    }
    w->index[w->index_count++] = *r;
    w->totals.instructions += r->header.instructions;
    w->totals.references += r->header.references;
    w->totals.events += r->header.events;
    w->totals.chunks++;
    w->totals.bytes += CHUNK_HEADER_BYTES + r->header.payload;
    return 0;
}

static int write_chunk(struct peet_writer *w, struct chunk_header *h, const struct buf *payload, struct peet_err *err)
{
    static const uint8_t zeros[8];
    uint8_t head[CHUNK_HEADER_BYTES];
    int r;

    h->payload = payload->size;
    h->checksum = checksum_of(payload->data, payload->size);
    if (h->payload > CHUNK_MAX_PAYLOAD)
        return err_set(err, PEET_ERR_LIMIT, "%s: a chunk of %" PRIu64 " bytes; 256 MiB are possible", w->path,
                       h->payload);
    chunk_header_encode(h, head);
    struct iovec iov[] = { { head, sizeof head },
                           { payload->data, payload->size },
                           { (void *)(uintptr_t)zeros, chunk_padding(payload->size) } };
    uint64_t bytes = sizeof head + payload->size + chunk_padding(payload->size);
    if (w->is_pipe)
        pthread_mutex_lock(&w->lock);
    struct chunk_ref ref = { atomic_fetch_add(&w->offset, bytes), *h };
    r = write_all(w, iov, 3, ref.offset, err);
    if (!w->is_pipe)
        pthread_mutex_lock(&w->lock);
    if (r == 0)
        r = index_add(w, &ref, err);
    pthread_mutex_unlock(&w->lock);
    return r;
}

/* Writes the definitions that are not in the file yet. Call with the builder's lock held. */
static int writer_put_defs(struct peet_writer *w, struct peet_err *err)
{
    struct buf *bytes = &w->builder.bytes;
    struct buf payload = { 0 };
    struct chunk_header h = { .type = CHUNK_DEFS, .sequence = w->defs_sequence };

    if (bytes->failed)
        return err_set(err, PEET_ERR_MEMORY, "%s: no memory for definitions", w->path);
    if (bytes->size == 0)
        return 0;
    int r = packer_put(w->packer, PLANES, bytes->data, bytes->size, &payload, err);
    if (r == 0)
        r = write_chunk(w, &h, &payload, err);
    buf_release(&payload);
    bytes->size = 0;
    w->defs_sequence++;
    atomic_store_explicit(&w->defs_pending, false, memory_order_release);
    return r;
}

int writer_chunk(struct peet_writer *w, struct chunk_header *h, const struct buf *payload, struct peet_err *err)
{
    int r = 0;

    if (atomic_load_explicit(&w->defs_pending, memory_order_acquire)) {
        pthread_mutex_lock(&w->builder.lock);
        r = writer_put_defs(w, err);
        pthread_mutex_unlock(&w->builder.lock);
    }
    return r < 0 ? r : write_chunk(w, h, payload, err);
}

/* ---- definitions ---- */

/* Before a definition: what has failed once takes no more. */
static int writer_check(void *writer, struct peet_err *err)
{
    struct peet_writer *w = writer;

    return atomic_load_explicit(&w->failed, memory_order_relaxed) ? writer_failed(w, err) : 0;
}

/* After a definition, with the builder's lock. */
static int writer_added(void *writer, struct peet_err *err)
{
    struct peet_writer *w = writer;

    atomic_store_explicit(&w->defs_pending, true, memory_order_release);
    if (w->builder.bytes.size < DEFS_LIMIT && !w->builder.bytes.failed)
        return 0;
    return writer_put_defs(w, err) < 0 ? writer_remember(w, err) : 0;
}

static const struct schema_sink WRITER_SINK = { writer_check, writer_added };

int peet_writer_process(struct peet_writer *w, const struct peet_process *p, struct peet_err *err)
{
    return schema_builder_process(&w->builder, p, err);
}

int peet_writer_module(struct peet_writer *w, const struct peet_module *m, struct peet_err *err)
{
    return schema_builder_module(&w->builder, m, err);
}

int peet_writer_range(struct peet_writer *w, const struct peet_range *r, struct peet_err *err)
{
    return schema_builder_range(&w->builder, r, err);
}

int peet_writer_meta(struct peet_writer *w, const char *key, const char *value, struct peet_err *err)
{
    return schema_builder_meta(&w->builder, key, value, err);
}

int peet_writer_string(struct peet_writer *w, const char *s, uint32_t *ret_number, struct peet_err *err)
{
    return schema_builder_string(&w->builder, s, ret_number, err);
}

int peet_writer_block(struct peet_writer *w, const struct peet_block *b, uint32_t *ret_item, struct peet_err *err)
{
    return schema_builder_block(&w->builder, b, ret_item, err);
}

int peet_writer_loop(struct peet_writer *w, const struct peet_loop *l, uint32_t *ret_item, struct peet_err *err)
{
    return schema_builder_loop(&w->builder, l, ret_item, err);
}

int peet_writer_event(struct peet_writer *w, uint32_t kind, uint64_t site, uint32_t *ret_item, struct peet_err *err)
{
    return schema_builder_event(&w->builder, kind, site, ret_item, err);
}

struct schema_builder *writer_builder(struct peet_writer *w)
{
    return &w->builder;
}

void peet_writer_totals(struct peet_writer *w, struct peet_totals *ret)
{
    pthread_mutex_lock(&w->lock);
    *ret = w->totals;
    pthread_mutex_unlock(&w->lock);
}

/* ---- opening and closing ---- */

static int start_file(struct peet_writer *w, struct peet_err *err)
{
    uint8_t head[FILE_HEADER_BYTES];
    struct iovec iov = { head, sizeof head };
    struct stat st;

    if (fstat(w->fd, &st) < 0)
        return err_sys(err, errno, "%s", w->path);
    w->is_pipe = !S_ISREG(st.st_mode);
    file_header_encode(head);
    atomic_store(&w->offset, sizeof head);
    return write_all(w, &iov, 1, 0, err);
}

static void writer_free(struct peet_writer *w)
{
    if (w->owns_fd && w->fd >= 0)
        close(w->fd);
    schema_builder_release(&w->builder);
    packer_free(w->packer);
    free(w->index);
    free(w->path);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static int open_on(int fd, bool owns_fd, const char *path, const struct peet_writer_config *config,
                   struct peet_writer **ret, struct peet_err *err)
{
    struct peet_writer *w = calloc(1, sizeof *w);
    int r;

    if (!w)
        return err_set(err, PEET_ERR_MEMORY, "%s: no memory", path);
    pthread_mutex_init(&w->lock, NULL);
    w->fd = fd;
    w->config = config ? *config : (struct peet_writer_config){ 0 };
    w->config.chunk_words = w->config.chunk_words ? w->config.chunk_words : DEFAULT_CHUNK_WORDS;
    w->config.level = w->config.level ? w->config.level : DEFAULT_LEVEL;
    if (w->config.chunk_words > CHUNK_MAX_WORDS) {
        r = err_set(err, PEET_ERR_LIMIT, "%zu words a chunk; %zu are possible", w->config.chunk_words, CHUNK_MAX_WORDS);
    } else if (!(w->path = strdup(path)) || schema_builder_init(&w->builder, &WRITER_SINK, w, NULL) < 0
               || !(w->packer = packer_new(w->config.level))) {
        r = err_set(err, PEET_ERR_MEMORY, "%s: no memory", path);
    } else {
        r = start_file(w, err);
    }
    if (r < 0) {
        writer_free(w);
        return r;
    }
    w->owns_fd = owns_fd;
    trace_view(&w->view, w->path, w->builder.schema);
    *ret = w;
    return 0;
}

int peet_writer_open_fd(int fd, const struct peet_writer_config *config, struct peet_writer **ret, struct peet_err *err)
{
    return open_on(fd, false, "output", config, ret, err);
}

int peet_writer_open(const char *path, const struct peet_writer_config *config, struct peet_writer **ret,
                     struct peet_err *err)
{
    if (!strcmp(path, "-"))
        return open_on(STDOUT_FILENO, false, "standard output", config, ret, err);
    struct stat st;
    bool existed = stat(path, &st) == 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_sys(err, errno, "%s: cannot create", path);
    int r = open_on(fd, true, path, config, ret, err);
    if (r < 0) {
        close(fd);
        if (!existed)
            unlink(path);
    }
    return r;
}

static int write_index(struct peet_writer *w, struct peet_err *err)
{
    struct buf entries = { 0 }, payload = { 0 };
    struct chunk_header h = { .type = CHUNK_INDEX };
    uint8_t trailer[TRAILER_BYTES];
    uint64_t chunks = w->index_count;

    for (size_t i = 0; i < w->index_count; i++) {
        uint8_t entry[INDEX_ENTRY_BYTES];
        index_entry_encode(&w->index[i], entry);
        buf_bytes(&entries, entry, sizeof entry);
    }
    uint64_t at = atomic_load(&w->offset);
    int r = entries.failed ? err_set(err, PEET_ERR_MEMORY, "%s: no memory for the index", w->path)
                           : packer_put(w->packer, PLANES, entries.data, entries.size, &payload, err);
    if (r == 0)
        r = write_chunk(w, &h, &payload, err);
    if (r == 0) {
        struct iovec iov = { trailer, sizeof trailer };
        trailer_encode(at, chunks, trailer);
        r = write_all(w, &iov, 1, atomic_load(&w->offset), err);
    }
    buf_release(&entries);
    buf_release(&payload);
    return r;
}

int peet_writer_close(struct peet_writer *w, struct peet_err *err)
{
    struct peet_err own;
    int r = 0;

    err = err ? err : &own;
    while (w->streams)
        stream_end(w->streams, false, &own); /* its error is remembered */
    if (atomic_load(&w->failed)) {
        r = writer_failed(w, err);
    } else {
        pthread_mutex_lock(&w->builder.lock);
        r = writer_put_defs(w, err);
        pthread_mutex_unlock(&w->builder.lock);
        if (r == 0)
            r = write_index(w, err);
    }
    if (w->owns_fd && close(w->fd) < 0 && r == 0)
        r = err_sys(err, errno, "%s: cannot write", w->path);
    w->owns_fd = false;
    writer_free(w);
    return r;
}
