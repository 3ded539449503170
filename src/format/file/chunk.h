/* SPDX-License-Identifier: MIT */
/* The outermost layer of a trace file: its header, its chunks and its trailer (docs/trace-format.md, sections 2 to 4). */
#ifndef FORMAT_FILE_CHUNK_H
#define FORMAT_FILE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peet/err.h"

enum { FILE_HEADER_BYTES = 32, CHUNK_HEADER_BYTES = 80, TRAILER_BYTES = 32, INDEX_ENTRY_BYTES = 64 };

/* A stored payload and an unpacked plane are never larger; a reader can refuse what claims to be. */
#define CHUNK_MAX_PAYLOAD ((uint64_t)1 << 28)

enum chunk_type { CHUNK_DEFS = 1, CHUNK_STREAM = 2, CHUNK_TIME = 3, CHUNK_INDEX = 4, CHUNK_TYPES };
enum { CHUNK_LAST = 1 }; /* flag: no chunk of this type follows for this thread */

/* The header of a chunk. */
struct chunk_header {
    uint8_t type, flags;                       /* enum chunk_type; CHUNK_LAST or 0 */
    uint32_t thread;                           /* number; 0: the chunk belongs to no thread */
    uint64_t payload;                          /* bytes as stored, padding not counted */
    uint64_t sequence;                         /* counts the chunks of this type and thread from 0 */
    uint64_t first;                            /* instructions of the thread before the chunk */
    uint64_t instructions, references, events; /* in the chunk */
    uint64_t checksum;                         /* of the payload */
};

/* A chunk and where it is: what the index holds. */
struct chunk_ref {
    uint64_t offset;            /* of its header in the file, in bytes */
    struct chunk_header header; /* checksum is not kept in the index: 0 */
};

extern const uint8_t CHUNK_MAGIC[8];

uint64_t checksum_of(const void *bytes, size_t n);
bool checksum_matches(uint64_t stored, const void *bytes, size_t n); /* always true when built for a fuzzer */

void file_header_encode(uint8_t out[FILE_HEADER_BYTES]);
int file_header_decode(const uint8_t *in, size_t n, const char *path, struct peet_err *err);

void chunk_header_encode(const struct chunk_header *h, uint8_t out[CHUNK_HEADER_BYTES]);
bool chunk_header_decode(const uint8_t in[CHUNK_HEADER_BYTES],
                         struct chunk_header *ret); /* false: not a chunk's header */

void index_entry_encode(const struct chunk_ref *r, uint8_t out[INDEX_ENTRY_BYTES]);
bool index_entry_decode(const uint8_t in[INDEX_ENTRY_BYTES], struct chunk_ref *ret);

void trailer_encode(uint64_t index_offset, uint64_t chunks, uint8_t out[TRAILER_BYTES]);
bool trailer_decode(const uint8_t in[TRAILER_BYTES], uint64_t *ret_index_offset, uint64_t *ret_chunks);

/* Chunks begin at multiples of 8 bytes: number of zero bytes after a payload. */
static inline unsigned chunk_padding(uint64_t payload)
{
    return (unsigned)(-payload & 7);
}

#endif
