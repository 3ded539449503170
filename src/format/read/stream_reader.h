/* SPDX-License-Identifier: MIT */
/* The stream reader: loads the chunks of a stream, checks and unpacks them, and begins each in a decoder. */
#ifndef FORMAT_READ_STREAM_READER_H
#define FORMAT_READ_STREAM_READER_H

#include "format/codec/codec.h"
#include "format/file/trace.h"

/* A position in the chunks of a stream, or of all streams of a trace. */
struct stream_reader {
    struct peet_trace *trace;
    uint32_t thread;   /* number; PEET_ALL_THREADS: all, in the order of the file */
    size_t next, end;  /* chunks to read: indices in trace->chunk, of all threads in trace->by_offset */
    uint64_t expected; /* sequence of the next chunk; of one thread */
    struct unpacker *unpacker;
    struct buf payload, planes; /* of the last chunk */
};

/* Initialises a reader that is all zeros. x: chunks of the thread; NULL: of all threads. */
int stream_reader_init(struct stream_reader *r, struct peet_trace *t, uint32_t thread, const struct thread_index *x,
                       struct peet_err *err);
void stream_reader_release(struct stream_reader *r);

/* Loads the next chunk into *chunk and begins it in the decoder: 1, 0 at the end, or an error. *position: instructions of the thread before the
 * chunk; after an error about a chunk, those after it. */
int stream_reader_next(struct stream_reader *r, struct chunk_ref *chunk, struct decoder *d, uint64_t *position,
                       struct peet_err *err);

/* Sets the reader to the first chunk that ends after instruction n of its thread, or holds only events there. Returns the chunk; NULL: the end. */
const struct chunk_ref *stream_reader_seek(struct stream_reader *r, uint64_t n);

/* Sets an error PEET_ERR_DAMAGED about a chunk. */
int chunk_damaged(const struct peet_trace *t, const struct chunk_ref *chunk, const char *what, struct peet_err *err);

#endif
