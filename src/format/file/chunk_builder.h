/* SPDX-License-Identifier: MIT */
/* Chunk builders: encode and pack items into chunks. A stream has one for items that are put into it directly. A public part (struct peet_part)
 * is another one, whose chunks are appended to a stream later, so that several threads can encode for one stream. */
#ifndef FORMAT_FILE_CHUNK_BUILDER_H
#define FORMAT_FILE_CHUNK_BUILDER_H

#include "base/bytes.h"
#include "format/file/chunk.h"
#include "format/codec/codec.h"
#include "format/file/pack.h"
#include "peet/trace.h"

/* A packed chunk. */
struct built_chunk {
    struct chunk_header header; /* without thread, sequence and first instruction */
    struct buf payload;
};

/* A chunk builder. */
struct peet_part {
    struct peet_writer *writer;
    struct peet_stream *stream; /* the stream that it will be committed to; NULL: it belongs to a stream */
    struct encoder encoder;     /* of the open chunk */
    struct packer *packer;
    struct built_chunk *chunk; /* packed chunks, in their order */
    size_t chunks, room;       /* number of packed chunks; number of elements, whose memory is reused */
};

int chunk_builder_init(struct peet_part *p, struct peet_writer *w, struct peet_err *err);
void chunk_builder_release(struct peet_part *p);

/* Empties the builder. registers: trace registers before its first item. */
void chunk_builder_begin(struct peet_part *p, const uint64_t *registers);
/* Trace registers after its last item. */
const uint64_t *chunk_builder_registers(const struct peet_part *p);

/* Packs the open chunk. One without items counts only if `also_empty`. */
int chunk_builder_pack(struct peet_part *p, bool also_empty, struct peet_err *err);

#endif
