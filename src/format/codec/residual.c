/* SPDX-License-Identifier: MIT */
/* Residuals are split and joined in groups of four, which share a byte of classes. Most often all four have 2 bytes, or all have 4: then
 * their bytes are transposed as a matrix. Other groups are handled one residual at a time, without branches on the class. */
#include "format/codec/residual.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/bytes.h"
#include "base/cpu.h"

enum { ALL_2_BYTES = 0x00, ALL_4_BYTES = 0xaa };

/* Rows become columns: byte k of row i goes to byte i of row k. */
static inline void residuals_transpose(uint32_t row[4])
{
    static const uint32_t EVEN = 0x00ff00ff, LOW = 0xffff;
    uint32_t a = (row[0] & EVEN) | (row[1] & EVEN) << 8, b = (row[0] >> 8 & EVEN) | (row[1] & ~EVEN);
    uint32_t c = (row[2] & EVEN) | (row[3] & EVEN) << 8, d = (row[2] >> 8 & EVEN) | (row[3] & ~EVEN);

    row[0] = (a & LOW) | c << 16;
    row[1] = (b & LOW) | d << 16;
    row[2] = a >> 16 | (c & ~LOW);
    row[3] = b >> 16 | (d & ~LOW);
}

/* ---- to planes ---- */

static inline unsigned residual_class(uint64_t v)
{
    return (unsigned)(v >> 16 != 0) + (v >> 24 != 0) + (v >> 32 != 0);
}

static inline void residuals_split_one(uint64_t v, unsigned class, struct residual_writer *to)
{
    *to->b0++ = (uint8_t)v;
    *to->b1++ = (uint8_t)(v >> 8);
    *to->b2 = (uint8_t)(v >> 16);
    to->b2 += class > 0;
    *to->b3 = (uint8_t)(v >> 24);
    to->b3 += class > 1;
    put_le32(to->high, (uint32_t)(v >> 32));
    to->high += class > 2 ? 4 : 0;
}

static inline void residuals_split_four(const uint64_t *v, unsigned classes, struct residual_writer *to)
{
    uint32_t row[4] = { (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2], (uint32_t)v[3] };

    residuals_transpose(row);
    put_le32(to->b0, row[0]);
    put_le32(to->b1, row[1]);
    to->b0 += 4;
    to->b1 += 4;
    if (classes == ALL_4_BYTES) {
        put_le32(to->b2, row[2]);
        put_le32(to->b3, row[3]);
        to->b2 += 4;
        to->b3 += 4;
    }
}

#ifdef __x86_64__
/* By a mask of four residuals: TOGETHER has the numbers of those selected, one byte each; SPREAD a bit at 2 * i for each number i. */
static const uint32_t TOGETHER[16] = { 0,    0,      0x01,   0x0100,   0x02,   0x0200,   0x0201,   0x020100,
                                       0x03, 0x0300, 0x0301, 0x030100, 0x0302, 0x030200, 0x030201, 0x03020100 };
static const uint8_t SPREAD[16] = { 0, 1, 4, 5, 16, 17, 20, 21, 64, 65, 68, 69, 80, 81, 84, 85 };

/* Splits all groups of four of n residuals. All bytes are written, and each plane grows by those that count. */
__attribute__((target("avx2,popcnt"))) static size_t residuals_split_avx2(const uint64_t *zigzag, size_t n,
                                                                          struct residual_writer *to)
{
    const __m256i halves = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7), zero = _mm256_setzero_si256();
    const __m128i columns = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m128i low_bytes = _mm_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m128i byte_of = _mm_setr_epi8(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
    struct residual_writer o = *to;
    size_t done = 0;

    for (; n - done >= 4; done += 4) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(zigzag + done));
        __m256i fit2 = _mm256_cmpeq_epi64(_mm256_srli_epi64(v, 16), zero);
        __m256i fit3 = _mm256_cmpeq_epi64(_mm256_srli_epi64(v, 24), zero);
        __m256i fit4 = _mm256_cmpeq_epi64(_mm256_srli_epi64(v, 32), zero);
        unsigned more2 = 15u ^ (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(fit2));
        unsigned more3 = 15u ^ (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(fit3));
        unsigned more4 = 15u ^ (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(fit4));
        __m256i split = _mm256_permutevar8x32_epi32(v, halves);
        __m128i rows = _mm_shuffle_epi8(_mm256_castsi256_si128(split), columns);
        __m128i b2 = _mm_cvtsi32_si128((int)(TOGETHER[more2] + 0x08080808u));
        __m128i b3 = _mm_cvtsi32_si128((int)(TOGETHER[more3] + 0x0c0c0c0cu));
        __m128i which = _mm_shuffle_epi8(_mm_cvtsi32_si128((int)TOGETHER[more4]), low_bytes);
        __m128i high = _mm_add_epi8(_mm_slli_epi16(which, 2), byte_of);
        *o.classes++ = (uint8_t)(SPREAD[more2] + SPREAD[more3] + SPREAD[more4]);
        put_le32(o.b0, (uint32_t)_mm_cvtsi128_si32(rows));
        put_le32(o.b1, (uint32_t)_mm_extract_epi32(rows, 1));
        put_le32(o.b2, (uint32_t)_mm_cvtsi128_si32(_mm_shuffle_epi8(rows, b2)));
        put_le32(o.b3, (uint32_t)_mm_cvtsi128_si32(_mm_shuffle_epi8(rows, b3)));
        _mm_storeu_si128((__m128i *)o.high, _mm_shuffle_epi8(_mm256_extracti128_si256(split, 1), high));
        o.b0 += 4;
        o.b1 += 4;
        o.b2 += __builtin_popcount(more2);
        o.b3 += __builtin_popcount(more3);
        o.high += 4 * __builtin_popcount(more4);
    }
    *to = o;
    return done;
}
#endif

void residuals_split(const uint64_t *zigzag, size_t n, struct residual_writer *to)
{
#ifdef __x86_64__
    if (cpu_has_avx2()) {
        size_t done = residuals_split_avx2(zigzag, n, to);
        zigzag += done;
        n -= done;
    }
#endif
    struct residual_writer o = *to;
    for (; n >= 4; n -= 4, zigzag += 4) {
        unsigned class0 = residual_class(zigzag[0]), class1 = residual_class(zigzag[1]),
                 class2 = residual_class(zigzag[2]);
        unsigned class3 = residual_class(zigzag[3]), classes = class0 | class1 << 2 | class2 << 4 | class3 << 6;
        *o.classes++ = (uint8_t)classes;
        if (classes == ALL_2_BYTES || classes == ALL_4_BYTES) {
            residuals_split_four(zigzag, classes, &o);
            continue;
        }
        residuals_split_one(zigzag[0], class0, &o);
        residuals_split_one(zigzag[1], class1, &o);
        residuals_split_one(zigzag[2], class2, &o);
        residuals_split_one(zigzag[3], class3, &o);
    }
    if (n > 0)
        *o.classes++ = 0;
    for (size_t i = 0; i < n; i++) {
        o.classes[-1] |= (uint8_t)(residual_class(zigzag[i]) << 2 * i);
        residuals_split_one(zigzag[i], residual_class(zigzag[i]), &o);
    }
    *to = o;
}

/* ---- and back ---- */

/* Counts the residuals with more than 2, 3 and 4 bytes among n. */
static void residuals_count_classes(const uint8_t *classes, size_t n, size_t count[3])
{
    static const uint64_t LOW = 0x5555555555555555;

    count[0] = count[1] = count[2] = 0;
    for (size_t i = 0; i < n; i += 32) {
        uint8_t bytes[8] = { 0 };
        size_t rest = n - i < 32 ? n - i : 32;
        memcpy(bytes, classes + i / 4, (rest + 3) / 4);
        uint64_t word = get_le64(bytes) & (rest < 32 ? ((uint64_t)1 << 2 * rest) - 1 : UINT64_MAX);
        uint64_t low = word & LOW, high = word >> 1 & LOW;
        count[0] += (size_t)__builtin_popcountll(low | high);
        count[1] += (size_t)__builtin_popcountll(high);
        count[2] += (size_t)__builtin_popcountll(low & high);
    }
}

bool residuals_fit(const struct residual_reader *from, const size_t size[RESIDUAL_PLANES], size_t n)
{
    size_t count[3];

    if (size[0] != (n + 3) / 4 || size[1] != n || size[2] != n)
        return false;
    residuals_count_classes(from->classes, n, count);
    return size[3] == count[0] && size[4] == count[1] && size[5] == 4 * count[2];
}

static inline uint64_t residuals_join_one(unsigned class, struct residual_reader *from)
{
    uint64_t more2 = class > 0, more3 = class > 1, more4 = class > 2;
    uint64_t v = *from->b0++ | (uint64_t)*from->b1++ << 8 | (*from->b2 & (0 - more2)) << 16
                 | (*from->b3 & (0 - more3)) << 24 | (get_le32(from->high) & (0 - more4)) << 32;

    from->b2 += more2;
    from->b3 += more3;
    from->high += 4 * more4;
    return (uint64_t)zigzag_decode(v);
}

/* Vectors for eight residuals at a time. */
typedef uint8_t bytes_8 __attribute__((vector_size(8)));
typedef uint8_t bytes_16 __attribute__((vector_size(16)));
typedef uint16_t halves_8 __attribute__((vector_size(16)));
typedef int32_t words_4 __attribute__((vector_size(16)));

static inline bytes_16 residual_pairs(const uint8_t *low, const uint8_t *high)
{
    bytes_8 a, b;

    memcpy(&a, low, 8);
    memcpy(&b, high, 8);
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
}

static inline void residuals_put_signed(words_4 v, uint64_t *out)
{
    words_4 zero = { 0 }, sign;

    v = (v >> 1 & 0x7fffffff) ^ (zero - (v & 1));
    sign = v < zero;
    words_4 low = __builtin_shufflevector(v, sign, 0, 4, 1, 5), high = __builtin_shufflevector(v, sign, 2, 6, 3, 7);
    memcpy(out, &low, sizeof low);
    memcpy(out + 2, &high, sizeof high);
}

static inline void residuals_join_eight(struct residual_reader *from, uint64_t *out)
{
    halves_8 low = (halves_8)residual_pairs(from->b0, from->b1), high = (halves_8)residual_pairs(from->b2, from->b3);

    residuals_put_signed((words_4)__builtin_shufflevector(low, high, 0, 8, 1, 9, 2, 10, 3, 11), out);
    residuals_put_signed((words_4)__builtin_shufflevector(low, high, 4, 12, 5, 13, 6, 14, 7, 15), out + 4);
    from->b0 += 8;
    from->b1 += 8;
    from->b2 += 8;
    from->b3 += 8;
}

static inline void residuals_join_four(unsigned classes, struct residual_reader *from, uint64_t *out)
{
    uint32_t row[4] = { get_le32(from->b0), get_le32(from->b1), 0, 0 };

    from->b0 += 4;
    from->b1 += 4;
    if (classes == ALL_4_BYTES) {
        row[2] = get_le32(from->b2);
        row[3] = get_le32(from->b3);
        from->b2 += 4;
        from->b3 += 4;
    }
    residuals_transpose(row);
    out[0] = (uint64_t)zigzag_decode(row[0]);
    out[1] = (uint64_t)zigzag_decode(row[1]);
    out[2] = (uint64_t)zigzag_decode(row[2]);
    out[3] = (uint64_t)zigzag_decode(row[3]);
}

void residuals_join(struct residual_reader *from, size_t n, uint64_t *out)
{
    struct residual_reader in = *from;

    for (; n >= 4; n -= 4, out += 4) {
        if (n >= 8 && in.classes[0] == ALL_4_BYTES && in.classes[1] == ALL_4_BYTES) {
            residuals_join_eight(&in, out);
            in.classes += 2;
            n -= 4;
            out += 4;
            continue;
        }
        unsigned classes = *in.classes++;
        if (classes == ALL_2_BYTES || classes == ALL_4_BYTES) {
            residuals_join_four(classes, &in, out);
            continue;
        }
        out[0] = residuals_join_one(classes & 3, &in);
        out[1] = residuals_join_one(classes >> 2 & 3, &in);
        out[2] = residuals_join_one(classes >> 4 & 3, &in);
        out[3] = residuals_join_one(classes >> 6 & 3, &in);
    }
    unsigned classes = n > 0 ? *in.classes++ : 0;
    for (size_t i = 0; i < n; i++)
        out[i] = residuals_join_one(classes >> 2 * i & 3, &in);
    *from = in;
}
