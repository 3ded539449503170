/* SPDX-License-Identifier: MIT */
/* An open trace: its private struct, for the modules that open it and that read its streams. */
#ifndef FORMAT_FILE_TRACE_H
#define FORMAT_FILE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "format/file/chunk.h"
#include "format/file/pack.h"
#include "format/schema/schema.h"
#include "peet/trace.h"

/* The chunks of a thread's stream. */
struct thread_index {
    uint32_t id;
    size_t first, count;    /* its elements of peet_trace.chunk; count 0 in a pipe */
    uint64_t next_sequence; /* pipe: expected sequence of the thread's next chunk */
    struct peet_totals totals;
};

/* An open trace: a file, a pipe, or only a schema (trace_view). */
struct peet_trace {
    int fd; /* -1: only a schema */
    bool is_pipe, owns_fd;
    bool broken; /* pipe: nothing more can be read from it */
    bool ended;  /* pipe: its end was read, and problems reported */
    char *path;
    uint64_t bytes; /* of the file; of a pipe: read so far */
    struct schema *schema;
    struct unpacker *unpacker; /* for definitions and the index; cursors have private ones */
    struct chunk_ref *chunk;   /* chunks of streams, sorted by thread and sequence; a pipe has none */
    size_t chunks, chunk_room;
    struct chunk_ref *time; /* chunks of times */
    size_t times, time_room;
    size_t *by_offset;           /* indices in chunk, in the order of the file */
    struct thread_index *thread; /* sorted by id */
    size_t threads, thread_room;
    char **problem; /* texts of what is damaged or missing */
    size_t problems, problem_room;
};

/* Reads a chunk of a file into `into`, and checks it against the index. */
int trace_load(const struct peet_trace *t, const struct chunk_ref *r, struct buf *into, struct peet_err *err);

/* The next chunk of a stream from a pipe; adds definitions before it to the schema. 1, 0 at the end, or an error. */
int trace_pipe_next(struct peet_trace *t, struct chunk_ref *ret, struct buf *into, struct peet_err *err);

struct thread_index *trace_thread(const struct peet_trace *t, uint32_t id); /* NULL when there is none */
void trace_problem(struct peet_trace *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A trace without a file: a schema, which must outlive it, and a name for messages. It needs no release. */
void trace_view(struct peet_trace *ret, char *name, struct schema *s);

/* ---- shared by the modules that open a trace ---- */

int trace_scan(struct peet_trace *t, struct chunk_ref **ret_defs, size_t *ret_count, struct peet_err *err);
int trace_read_index(struct peet_trace *t, struct chunk_ref **ret_defs, size_t *ret_count, struct peet_err *err);
int trace_add_defs(struct peet_trace *t, const struct buf *payload, struct peet_err *err);
int trace_count(struct peet_trace *t, const struct chunk_ref *r, struct peet_err *err);
int trace_add_ref(struct chunk_ref **list, size_t *count, size_t *room, const struct chunk_ref *r,
                  struct peet_err *err);
int trace_read_at(const struct peet_trace *t, uint64_t offset, void *into, size_t n, struct peet_err *err);

#endif
