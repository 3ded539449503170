/* SPDX-License-Identifier: MIT */
#include "format/pack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/err.h"

/* What shrinks by less than a fifth is left as it is: reading it would take longer than it is worth. On recordings of programs
 * this adds less than a thousandth to the file, for what they repeat shrinks by more. */
enum { TOO_SMALL = 48, SKIPS = 7, WORTH = 5 };

struct packer {
    ZSTD_CCtx *zstd;
    uint8_t skip[PLANES + 1]; /* how often data of this kind will be left as it is without trying */
};

struct packer *packer_new(int level)
{
    struct packer *p = calloc(1, sizeof *p);

    if (p
        && (!(p->zstd = ZSTD_createCCtx())
            || ZSTD_isError(ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, level)))) {
        packer_free(p);
        return NULL;
    }
    return p;
}

void packer_free(struct packer *p)
{
    if (p)
        ZSTD_freeCCtx(p->zstd);
    free(p);
}

static void put_head(struct buf *out, enum pack_method method, size_t n, size_t packed)
{
    buf_leb(out, method);
    buf_leb(out, n);
    buf_leb(out, packed);
}

int packer_put(struct packer *p, unsigned hint, const uint8_t *bytes, size_t n, struct buf *out, struct peet_err *err)
{
    static const size_t HEAD = 16; /* room for method and sizes in front of the packed bytes */
    size_t packed = n;

    if (hint < PLANES && p->skip[hint] > 0) {
        p->skip[hint]--;
    } else if (n >= TOO_SMALL) {
        size_t bound = ZSTD_compressBound(n);
        uint8_t *room = buf_room(out, HEAD + bound);
        if (!room)
            return err_set(err, PEET_ERR_MEMORY, "no memory to compress %zu bytes", n);
        packed = ZSTD_compress2(p->zstd, room + HEAD, bound, bytes, n);
        if (ZSTD_isError(packed))
            return err_set(err, PEET_ERR_MEMORY, "zstd: %s", ZSTD_getErrorName(packed));
        if (packed < n - n / WORTH) {
            uint8_t *from = room + HEAD;
            put_head(out, PACK_ZSTD, n, packed);
            memmove(out->data + out->size, from, packed);
            out->size += packed;
            return 0;
        }
        p->skip[hint] = hint < PLANES ? SKIPS : 0;
    }
    put_head(out, PACK_RAW, n, n);
    buf_bytes(out, bytes, n);
    return out->failed ? err_set(err, PEET_ERR_MEMORY, "no memory for %zu bytes of a chunk", n) : 0;
}

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

int unpacker_part(struct unpacker *u, struct window *w, uint64_t most, struct buf *out, struct part *ret,
                  struct peet_err *err)
{
    uint64_t method = window_leb(w), n = window_leb(w), packed = window_leb(w);
    const uint8_t *from = window_bytes(w, packed);

    if (!from || method > PACK_ZSTD || n > most || (method == PACK_RAW && packed != n))
        return err_set(err, PEET_ERR_DAMAGED,
                       "a part of %" PRIu64 " bytes, %" PRIu64 " packed, by method %" PRIu64 " makes no sense", n,
                       packed, method);
    *ret = (struct part){ method == PACK_RAW ? from : NULL, out->size, n };
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

int unpacker_take(struct unpacker *u, struct window *w, uint64_t most, struct buf *out, size_t *ret_at, size_t *ret_n,
                  struct peet_err *err)
{
    struct part part;
    int r = unpacker_part(u, w, most, out, &part, err);

    if (r < 0)
        return r;
    if (part.raw) {
        uint8_t *to = buf_room(out, part.n + PACK_SLACK);
        if (!to)
            return err_set(err, PEET_ERR_MEMORY, "no memory to unpack %zu bytes", part.n);
        memcpy(to, part.raw, part.n);
        out->size += part.n;
    }
    *ret_at = part.at;
    *ret_n = part.n;
    return 0;
}
