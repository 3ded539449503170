/* SPDX-License-Identifier: MIT */
/* A writer of a trace: its private struct, for the modules that write definitions and streams. */
#ifndef FORMAT_FILE_WRITER_H
#define FORMAT_FILE_WRITER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "format/file/chunk.h"
#include "format/file/pack.h"
#include "format/schema/schema_builder.h"
#include "format/file/trace.h"
#include "peet/trace.h"

/* Writes a trace. Locks: builder.lock before `lock`. */
struct peet_writer {
    int fd;
    bool is_pipe, owns_fd;
    char *path;
    struct peet_writer_config config;
    _Atomic uint64_t offset;       /* file offset of the next chunk, in bytes */
    _Atomic bool failed;           /* first_error is set */
    struct schema_builder builder; /* its lock protects the next three fields, too */
    struct packer *packer;
    uint64_t defs_sequence;    /* sequence of the next chunk of definitions */
    _Atomic bool defs_pending; /* there are definitions that are not in the file yet */
    struct peet_trace view;    /* the schema as a trace, for readers of the definitions so far */
    pthread_mutex_t lock;      /* protects all following fields */
    struct peet_err first_error;
    struct chunk_ref *index; /* chunks written so far */
    size_t index_count, index_room;
    struct peet_totals totals;   /* of the index */
    struct peet_stream *streams; /* list of open streams */
};

/* The writer's definitions; valid as long as the writer. */
struct schema_builder *writer_builder(struct peet_writer *w);

/* Writes a chunk after all definitions made so far. Sets payload and checksum of the header. */
int writer_chunk(struct peet_writer *w, struct chunk_header *h, const struct buf *payload, struct peet_err *err);

/* A writer keeps its first error, and writes nothing after it. Both return its code. */
int writer_failed(struct peet_writer *w, struct peet_err *err);
int writer_remember(struct peet_writer *w, const struct peet_err *e);

/* Writes the items that were put into the stream so far, then those of a part. The stream continues with the part's registers. */
int stream_append(struct peet_stream *s, struct peet_part *p, struct peet_err *err);

/* Prefixes an error with the stream's thread; returns its code. */
int stream_prefix(const struct peet_stream *s, struct peet_err *err);

/* Writes the rest of a stream and frees it. whole: the thread has ended. */
int stream_end(struct peet_stream *s, bool whole, struct peet_err *err);

#endif
