/* SPDX-License-Identifier: MIT */
/* The inside of an open trace, shared by what opens it and what reads its streams. */
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

struct thread_index {
    uint32_t id;
    size_t first, count;    /* in chunk, which is sorted by thread and sequence; a pipe has no chunks to go back to */
    uint64_t next_sequence; /* pipe: what the next chunk of this thread should be */
    struct peet_totals totals;
};

struct peet_trace {
    int fd;
    bool is_pipe, owns_fd;
    bool broken, ended; /* of a pipe: nothing more can be read from it; its end has been dealt with */
    char *path;
    uint64_t bytes; /* of the file; of a pipe: read so far */
    struct schema *schema;
    struct unpacker *unpacker; /* for definitions; cursors have their own */
    struct chunk_ref *chunk;
    size_t chunks, chunk_room; /* of streams */
    struct chunk_ref *time;
    size_t times, time_room;
    size_t *by_offset; /* numbers of chunks, in the order of the file */
    struct thread_index *thread;
    size_t threads, thread_room; /* sorted by id */
    char **problem;
    size_t problems, problem_room;
};

/* Reads a chunk of a file and checks it against the index; the payload is then in `into`. */
int trace_load(const struct peet_trace *t, const struct chunk_ref *r, struct buf *into, struct peet_err *err);

/* The next chunk of a pipe that is a stream's; definitions on the way are taken in. 1, 0 at the end, or an error. */
int trace_pipe_next(struct peet_trace *t, struct chunk_ref *ret, struct buf *into, struct peet_err *err);

struct thread_index *trace_thread(const struct peet_trace *t, uint32_t id); /* NULL when there is none */
void trace_problem(struct peet_trace *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A trace that is no file: its schema predict_scalar, which lives as long as it is used, and a name for messages. Nothing is to be freed. */
void trace_view(struct peet_trace *ret, char *name, struct schema *s);

/* ---- for the parts of the opening ---- */

int trace_scan(struct peet_trace *t, struct chunk_ref **ret_defs, size_t *ret_count, struct peet_err *err);
int trace_read_index(struct peet_trace *t, struct chunk_ref **ret_defs, size_t *ret_count, struct peet_err *err);
int trace_add_defs(struct peet_trace *t, const struct buf *payload, struct peet_err *err);
int trace_count(struct peet_trace *t, const struct chunk_ref *r, struct peet_err *err);
int trace_add_ref(struct chunk_ref **list, size_t *count, size_t *room, const struct chunk_ref *r,
                  struct peet_err *err);
int trace_read_at(const struct peet_trace *t, uint64_t offset, void *into, size_t n, struct peet_err *err);

#endif
