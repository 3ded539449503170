/* SPDX-License-Identifier: MIT */
/* The inside of a writer, shared by what defines and what streams. */
#ifndef FORMAT_FILE_WRITER_H
#define FORMAT_FILE_WRITER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/map.h"
#include "format/file/chunk.h"
#include "format/file/pack.h"
#include "format/schema/schema.h"
#include "format/file/trace.h"
#include "peet/trace.h"

struct peet_writer {
    int fd;
    bool is_pipe, owns_fd;
    char *path;
    struct peet_writer_config config;
    _Atomic uint64_t offset; /* where the next chunk goes */
    _Atomic bool failed;
    pthread_mutex_t lock; /* for all that follows */
    struct peet_err first_error;
    struct schema *schema;
    struct peet_trace view; /* of the schema alone, for who reads what is not written */
    struct buf defs;        /* definitions that are not in the file yet */
    _Atomic bool defs_pending;
    uint64_t defs_sequence;
    struct packer *packer;
    struct map strings, events; /* from hashes to numbers that were given out */
    uint32_t next_item, next_string;
    struct chunk_ref *index;
    size_t index_count, index_room;
    struct peet_totals totals;   /* of the index */
    struct peet_stream *streams; /* those that are open */
};

/* Locks the writer for a definition, or fails as it has failed before; writer_end unlocks. */
int writer_begin(struct peet_writer *w, struct peet_err *err);
int writer_end(struct peet_writer *w, int r, struct peet_err *err);

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
