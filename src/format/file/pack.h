/* SPDX-License-Identifier: MIT */
/* Packing of planes: by zstd, or unpacked where that gains nothing. */
#ifndef FORMAT_FILE_PACK_H
#define FORMAT_FILE_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "format/codec/codec.h"
#include "peet/err.h"

enum pack_method { PACK_RAW = 0, PACK_ZSTD = 1 };

enum {
    PACK_SLACK = 8
}; /* bytes past their end up to which unpacked planes may be read; also chunks, whose unpacked planes stay in place */

#define PACK_MAX_PLANE ((uint64_t)1 << 25) /* unpacked bytes of one plane */

struct packer; /* compresses; belongs to one thread */
struct packer *packer_new(int level);
void packer_free(struct packer *p);

/* Appends method, unpacked and packed size (LEB128) and the packed bytes. hint: number of the plane, so that planes which have not shrunk
 * lately are not tried every time; PLANES: none. */
int packer_put(struct packer *p, unsigned hint, const uint8_t *bytes, size_t n, struct buf *out, struct peet_err *err);

struct unpacker;
struct unpacker *unpacker_new(void);
void unpacker_free(struct unpacker *u);

/* Unpacked bytes. */
struct unpacked {
    const uint8_t *raw; /* the bytes in place, if they were stored unpacked; NULL: they were appended to `out` */
    size_t at, n;       /* index in out; number of bytes */
};
/* Reads from w what packer_put has appended. Claims of more than `most` bytes are refused. */
int unpacker_next(struct unpacker *u, struct byte_reader *w, uint64_t most, struct buf *out, struct unpacked *ret,
                  struct peet_err *err);

/* As unpacker_next, but appends the bytes to out in all cases: *ret_n bytes from *ret_at on. */
int unpacker_append(struct unpacker *u, struct byte_reader *w, uint64_t most, struct buf *out, size_t *ret_at,
                    size_t *ret_n, struct peet_err *err);

#endif
