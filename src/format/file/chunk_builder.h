/* SPDX-License-Identifier: MIT */
/* Items on their way to chunks. A part is all that encodes: a stream has one for what is put into it directly, and others make
 * chunks for it apart. */
#ifndef FORMAT_FILE_CHUNK_BUILDER_H
#define FORMAT_FILE_CHUNK_BUILDER_H

#include "base/bytes.h"
#include "format/file/chunk.h"
#include "format/codec/codec.h"
#include "format/file/pack.h"
#include "peet/trace.h"

struct built_chunk {
    struct chunk_header header; /* but for the place in the stream */
    struct buf payload;
};

struct peet_part {
    struct peet_writer *writer;
    struct peet_stream *stream; /* that it will be committed to */
    struct encoder encoder;     /* the chunk that is open */
    struct packer *packer;
    struct built_chunk *chunk; /* those that are packed, in their order */
    size_t chunks, room;       /* room: chunks whose memory is kept */
};

int chunk_builder_init(struct peet_part *p, struct peet_writer *w, struct peet_err *err);
void chunk_builder_release(struct peet_part *p);

/* Empties the part: its items begin with these registers. */
void chunk_builder_begin(struct peet_part *p, const uint64_t *registers);
/* At its end, so far. */
const uint64_t *chunk_builder_registers(const struct peet_part *p);

/* Packs the open chunk. One without items counts only if `also_empty`. */
int chunk_builder_pack(struct peet_part *p, bool also_empty, struct peet_err *err);

#endif
