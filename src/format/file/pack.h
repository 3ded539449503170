/* SPDX-License-Identifier: MIT */
/* Bytes made smaller by zstd, or left as they are where that gains nothing. */
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
}; /* what is unpacked may be read this much past its end; so may chunks, where parts stay in place */

#define PACK_MAX_PLANE ((uint64_t)1 << 25) /* unpacked bytes of one plane */

struct packer; /* compresses; belongs to one thread */
struct packer *packer_new(int level);
void packer_free(struct packer *p);

/* Appends method, unpacked and packed size (LEB128) and the packed bytes. `hint` identifies like data from call to call:
 * what has not shrunk lately is not tried every time. Use PLANES for none. */
int packer_put(struct packer *p, unsigned hint, const uint8_t *bytes, size_t n, struct buf *out, struct peet_err *err);

struct unpacker;
struct unpacker *unpacker_new(void);
void unpacker_free(struct unpacker *u);

/* Takes what packer_put appended from w. Bytes that were left as they are stay where they are: `raw`; others are appended
 * to out, from `at` on, and raw is NULL. A part that claims to be larger than `most` is refused. */
struct unpacked {
    const uint8_t *raw;
    size_t at, n;
};
int unpacker_next(struct unpacker *u, struct byte_reader *w, uint64_t most, struct buf *out, struct unpacked *ret,
                  struct peet_err *err);

/* The same, but whatever it is is appended to out: *ret_n bytes from *ret_at on. */
int unpacker_append(struct unpacker *u, struct byte_reader *w, uint64_t most, struct buf *out, size_t *ret_at,
                    size_t *ret_n, struct peet_err *err);

#endif
