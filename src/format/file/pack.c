/* SPDX-License-Identifier: MIT */
#include "format/file/pack.h"

#include <inttypes.h>
#include <stdlib.h>
#define ZSTD_STATIC_LINKING_ONLY /* for the mode of literals */
#include <zstd.h>

#include "base/err.h"

/* Bytes that shrink by less than 1 / WORTH are stored unpacked, which makes reading faster. Recordings of programs grow by less than
 * a thousandth by that. TOO_SMALL: bytes that are not worth packing. SKIPS: planes stored unpacked after one that did not shrink. */
enum { TOO_SMALL = 48, SKIPS = 7, WORTH = 5 };

/* Planes that shrink to more than 1 / REPEATS have few matches, and the search for them takes most of the time. For these a level with
 * little search is used: a third of the time, a tenth more bytes. */
enum { QUICK_LEVEL = -200, REPEATS = 6 };

/* Packs the planes of chunks. */
struct packer {
    ZSTD_CCtx *zstd;           /* of the level that was asked for */
    ZSTD_CCtx *quick;          /* of level QUICK_LEVEL; NULL if the level asked for is not the lowest */
    uint8_t skip[PLANES + 1];  /* by plane: next ones to be stored unpacked without trying */
    bool is_quick[PLANES + 1]; /* by plane: the last one had few matches */
};

static ZSTD_CCtx *packer_new_zstd(int level)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();

    if (c && ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level))) {
        ZSTD_freeCCtx(c);
        return NULL;
    }
    if (c && level < 0) /* zstd does not compress literals at such levels unless asked to */
        ZSTD_CCtx_setParameter(c, ZSTD_c_literalCompressionMode, 1);
    return c;
}

struct packer *packer_new(int level)
{
    struct packer *p = calloc(1, sizeof *p);

    if (p && (!(p->zstd = packer_new_zstd(level)) || (level == 1 && !(p->quick = packer_new_zstd(QUICK_LEVEL))))) {
        packer_free(p);
        return NULL;
    }
    return p;
}

void packer_free(struct packer *p)
{
    if (p) {
        ZSTD_freeCCtx(p->zstd);
        ZSTD_freeCCtx(p->quick);
    }
    free(p);
}

static void packer_put_head(struct buf *out, enum pack_method method, size_t n, size_t packed)
{
    buf_leb(out, method);
    buf_leb(out, n);
    buf_leb(out, packed);
}

int packer_put(struct packer *p, unsigned hint, const uint8_t *bytes, size_t n, struct buf *out, struct peet_err *err)
{
    static const size_t HEAD = 16; /* room for method and sizes before the packed bytes */
    size_t packed = n;

    if (hint < PLANES && p->skip[hint] > 0) {
        p->skip[hint]--;
    } else if (n >= TOO_SMALL) {
        size_t bound = ZSTD_compressBound(n);
        uint8_t *room = buf_room(out, HEAD + bound);
        if (!room)
            return err_set(err, PEET_ERR_MEMORY, "no memory to compress %zu bytes", n);
        packed = ZSTD_compress2(p->is_quick[hint] ? p->quick : p->zstd, room + HEAD, bound, bytes, n);
        if (ZSTD_isError(packed))
            return err_set(err, PEET_ERR_MEMORY, "zstd: %s", ZSTD_getErrorName(packed));
        p->is_quick[hint] = hint < PLANES && p->quick && packed > n / REPEATS;
        if (packed < n - n / WORTH) {
            uint8_t *from = room + HEAD;
            packer_put_head(out, PACK_ZSTD, n, packed);
            memmove(out->data + out->size, from, packed);
            out->size += packed;
            return 0;
        }
        p->skip[hint] = hint < PLANES ? SKIPS : 0;
    }
    packer_put_head(out, PACK_RAW, n, n);
    buf_bytes(out, bytes, n);
    return out->failed ? err_set(err, PEET_ERR_MEMORY, "no memory for %zu bytes of a chunk", n) : 0;
}

/* Unpacks the planes of chunks. */
struct unpacker {
    ZSTD_DCtx *zstd;
};

struct unpacker *unpacker_new(void)
{
    struct unpacker *u = calloc(1, sizeof *u);

    if (u && !(u->zstd = ZSTD_createDCtx())) {
        unpacker_free(u);
        return NULL;
    }
    return u;
}

void unpacker_free(struct unpacker *u)
{
    if (u)
        ZSTD_freeDCtx(u->zstd);
    free(u);
}

int unpacker_next(struct unpacker *u, struct byte_reader *w, uint64_t most, struct buf *out, struct unpacked *ret,
                  struct peet_err *err)
{
    uint64_t method = reader_leb(w), n = reader_leb(w), packed = reader_leb(w);
    const uint8_t *from = reader_bytes(w, packed);

    if (!from || method > PACK_ZSTD || n > most || (method == PACK_RAW && packed != n))
        return err_set(err, PEET_ERR_DAMAGED,
                       "a part of %" PRIu64 " bytes, %" PRIu64 " packed, by method %" PRIu64 " makes no sense", n,
                       packed, method);
    *ret = (struct unpacked){ method == PACK_RAW ? from : NULL, out->size, n };
    if (method == PACK_RAW)
        return 0;
    uint8_t *to = buf_room(out, n + PACK_SLACK);
    if (!to)
        return err_set(err, PEET_ERR_MEMORY, "no memory to unpack %" PRIu64 " bytes", n);
    size_t got = ZSTD_decompressDCtx(u->zstd, to, n, from, packed);
    if (ZSTD_isError(got) || got != n)
        return err_set(err, PEET_ERR_DAMAGED, "zstd: %s", ZSTD_isError(got) ? ZSTD_getErrorName(got) : "wrong size");
    out->size += n;
    return 0;
}

int unpacker_append(struct unpacker *u, struct byte_reader *w, uint64_t most, struct buf *out, size_t *ret_at,
                    size_t *ret_n, struct peet_err *err)
{
    struct unpacked plane;
    int r = unpacker_next(u, w, most, out, &plane, err);

    if (r < 0)
        return r;
    if (plane.raw) {
        uint8_t *to = buf_room(out, plane.n + PACK_SLACK);
        if (!to)
            return err_set(err, PEET_ERR_MEMORY, "no memory to unpack %zu bytes", plane.n);
        memcpy(to, plane.raw, plane.n);
        out->size += plane.n;
    }
    *ret_at = plane.at;
    *ret_n = plane.n;
    return 0;
}
