/* SPDX-License-Identifier: MIT */
/* The inside of a writer, shared by what defines and what streams. */
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

struct peet_writer {
    int fd;
    bool is_pipe, owns_fd;
    char *path;
    struct peet_writer_config config;
    _Atomic uint64_t offset; /* where the next chunk goes */
    _Atomic bool failed;
    struct schema_builder builder; /* its lock is taken before `lock`, and covers the next three */
    struct packer *packer;
    uint64_t defs_sequence;    /* number of the next chunk of definitions */
    _Atomic bool defs_pending; /* there are definitions that are not in the file yet */
    struct peet_trace view;    /* the schema, for readers of what has been defined so far */
    pthread_mutex_t lock;      /* of all that follows */
    struct peet_err first_error;
    struct chunk_ref *index;
    size_t index_count, index_room;
    struct peet_totals totals;   /* of the index */
    struct peet_stream *streams; /* those that are open */
};

/* The writer's definitions, as long as it lives. */
struct schema_builder *writer_builder(struct peet_writer *w);

/* Writes a chunk behind all definitions made so far. Fills in the header's payload and checksum. */
int writer_chunk(struct peet_writer *w, struct chunk_header *h, const struct buf *payload, struct peet_err *err);

/* The first error of a writer stays: after it nothing more is written. Both return its code. */
int writer_failed(struct peet_writer *w, struct peet_err *err);
int writer_remember(struct peet_writer *w, const struct peet_err *e);

/* Writes what is put into the stream so far, then what is in a part of it, whose registers the stream then has. */
int stream_append(struct peet_stream *s, struct peet_part *p, struct peet_err *err);

/* Says whose stream an error is about; returns its code. */
int stream_prefix(const struct peet_stream *s, struct peet_err *err);

/* Writes what is left of a stream and frees it. `whole`: its thread is at its end. */
int stream_end(struct peet_stream *s, bool whole, struct peet_err *err);

#endif
