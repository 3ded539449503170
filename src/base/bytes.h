/* SPDX-License-Identifier: MIT */
/* Numbers as bytes: little-endian words of fixed size, and variable-length ones (LEB128) in a growing buffer. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline uint64_t get_le64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

static inline uint32_t get_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void put_le64(uint8_t *p, uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    memcpy(p, &v, 8);
}

static inline void put_le32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

/* Signed numbers as unsigned ones that are small when the number is near zero. */
static inline uint64_t zigzag_encode(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static inline int64_t zigzag_decode(uint64_t v)
{
    return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

/* A byte buffer that grows. `failed` is set when memory ran out; then nothing more is added. */
struct buf {
    uint8_t *data;
    size_t size, room; /* bytes in use; bytes allocated */
    int failed;
};

static inline void buf_release(struct buf *b)
{
    free(b->data);
    *b = (struct buf){ 0 };
}

/* Makes room for `more` bytes after the content and returns its address, or NULL. */
static inline uint8_t *buf_room(struct buf *b, size_t more)
{
    if (b->failed)
        return NULL;
    if (b->room - b->size < more) {
        size_t room = b->room * 2 > b->size + more ? b->room * 2 : b->size + more + 64;
        uint8_t *data = realloc(b->data, room);
        if (!data) {
            b->failed = 1;
            return NULL;
        }
        b->data = data;
        b->room = room;
    }
    return b->data + b->size;
}

static inline void buf_bytes(struct buf *b, const void *bytes, size_t n)
{
    uint8_t *p = buf_room(b, n);

    if (p && n) {
        memcpy(p, bytes, n);
        b->size += n;
    }
}

static inline uint8_t *leb_put(uint8_t *p, uint64_t v)
{
    while (v >= 128) {
        *p++ = (uint8_t)(v | 128);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

static inline void buf_leb(struct buf *b, uint64_t v)
{
    uint8_t *p = buf_room(b, 10);

    if (p)
        b->size = (size_t)(leb_put(p, v) - b->data);
}

static inline void buf_sleb(struct buf *b, int64_t v)
{
    buf_leb(b, zigzag_encode(v));
}

static inline void buf_string(struct buf *b, const char *s)
{
    size_t n = strlen(s);

    buf_leb(b, n);
    buf_bytes(b, s, n);
}

/* A reader of the bytes [p, end). The first read beyond the end sets `bad`; all later reads return 0. */
struct byte_reader {
    const uint8_t *p, *end;
    int bad;
};

static inline uint64_t reader_leb(struct byte_reader *w)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64 && w->p < w->end; shift += 7) {
        uint8_t byte = *w->p++;
        if (shift == 63 && byte > 1)
            break;
        v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return v;
    }
    w->bad = 1;
    w->p = w->end;
    return 0;
}

static inline int64_t reader_sleb(struct byte_reader *w)
{
    return zigzag_decode(reader_leb(w));
}

/* n bytes in place, or NULL. */
static inline const uint8_t *reader_bytes(struct byte_reader *w, uint64_t n)
{
    const uint8_t *p = w->p;

    if ((uint64_t)(w->end - w->p) < n) {
        w->bad = 1;
        w->p = w->end;
        return NULL;
    }
    w->p += n;
    return p;
}

#endif
