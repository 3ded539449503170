/* SPDX-License-Identifier: MIT */
#include "study/compare/wavefront.h"

#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "peet/err.h"

/* ---- equal symbols ---- */

static size_t portable_equal_start(const uint32_t *a, const uint32_t *b, size_t most)
{
    size_t i = 0;

    for (; i + 2 <= most; i += 2) {
        uint64_t x, y;
        memcpy(&x, a + i, 8);
        memcpy(&y, b + i, 8);
        if (x != y)
            break;
    }
    while (i < most && a[i] == b[i])
        i++;
    return i;
}

static size_t portable_equal_end(const uint32_t *a, const uint32_t *b, size_t most)
{
    size_t i = 0;

    while (i < most && a[-1 - (ptrdiff_t)i] == b[-1 - (ptrdiff_t)i])
        i++;
    return i;
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static size_t avx2_equal_start(const uint32_t *a, const uint32_t *b, size_t most)
{
    size_t i = 0;

    for (; i + 8 <= most; i += 8) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(a + i));
        __m256i y = _mm256_loadu_si256((const __m256i *)(const void *)(b + i));
        unsigned differ = ~(unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi32(x, y));
        if (differ)
            return i + (size_t)__builtin_ctz(differ) / 4;
    }
    return i + portable_equal_start(a + i, b + i, most - i);
}

__attribute__((target("avx2"))) static size_t avx2_equal_end(const uint32_t *a, const uint32_t *b, size_t most)
{
    size_t i = 0;

    for (; i + 8 <= most; i += 8) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(a - i - 8));
        __m256i y = _mm256_loadu_si256((const __m256i *)(const void *)(b - i - 8));
        unsigned differ = ~(unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi32(x, y));
        if (differ)
            return i + (size_t)__builtin_clz(differ) / 4;
    }
    return i + portable_equal_end(a - i, b - i, most - i);
}

__attribute__((target("avx512f"))) static size_t avx512_equal_start(const uint32_t *a, const uint32_t *b, size_t most)
{
    size_t i = 0;

    for (; i + 16 <= most; i += 16) {
        unsigned differ = _mm512_cmpneq_epu32_mask(_mm512_loadu_si512(a + i), _mm512_loadu_si512(b + i));
        if (differ)
            return i + (size_t)__builtin_ctz(differ);
    }
    return i + portable_equal_start(a + i, b + i, most - i);
}

__attribute__((target("avx512f"))) static size_t avx512_equal_end(const uint32_t *a, const uint32_t *b, size_t most)
{
    size_t i = 0;

    for (; i + 16 <= most; i += 16) {
        unsigned differ = _mm512_cmpneq_epu32_mask(_mm512_loadu_si512(a - i - 16), _mm512_loadu_si512(b - i - 16));
        if (differ)
            return i + (size_t)__builtin_clz(differ << 16);
    }
    return i + portable_equal_end(a - i, b - i, most - i);
}
#endif

/* Equal symbols of two strings, onwards from a point or backwards. */
typedef size_t equal_symbols(const uint32_t *a, const uint32_t *b, size_t most);

static equal_symbols *const EQUAL_START[VECTOR_WIDTHS] = {
    [VECTOR_PORTABLE] = portable_equal_start,
#ifdef __x86_64__
    [VECTOR_AVX2] = avx2_equal_start,
    [VECTOR_AVX512] = avx512_equal_start,
#endif
};
static equal_symbols *const EQUAL_END[VECTOR_WIDTHS] = {
    [VECTOR_PORTABLE] = portable_equal_end,
#ifdef __x86_64__
    [VECTOR_AVX2] = avx2_equal_end,
    [VECTOR_AVX512] = avx512_equal_end,
#endif
};

size_t equal_start(const uint32_t *a, const uint32_t *b, size_t most, enum vector_width w)
{
    return EQUAL_START[w](a, b, most);
}

size_t equal_end(const uint32_t *a_end, const uint32_t *b_end, size_t most, enum vector_width w)
{
    return EQUAL_END[w](a_end, b_end, most);
}

/* ---- one wavefront ---- */

/* No row of the diagonal is reached. */
enum { UNREACHED = INT32_MIN / 2 };

/* A search from one end of both strings. Diagonal k has the points (row, row − k), rows being symbols of a. */
struct wavefront {
    struct string32 a, b;
    equal_symbols *equal;
    bool backwards;    /* rows count from the end of the strings */
    int32_t *reach;    /* by diagonal: row; or UNREACHED */
    int64_t low, high; /* diagonals of the last wavefront */
    double work;
};

/* Follows the diagonal from a row for as long as symbols are equal. */
static inline int32_t wavefront_slide(struct wavefront *f, int64_t row, int64_t k)
{
    int64_t n = (int64_t)f->a.count, m = (int64_t)f->b.count, column = row - k;
    int64_t most = n - row < m - column ? n - row : m - column;
    size_t run = 0;

    if (!f->backwards) {
        const uint32_t *a = f->a.at + row, *b = f->b.at + column;
        if (most > 0 && a[0] == b[0])
            run = 1 + f->equal(a + 1, b + 1, (size_t)most - 1);
    } else {
        const uint32_t *a = f->a.at + n - row, *b = f->b.at + m - column;
        if (most > 0 && a[-1] == b[-1])
            run = 1 + f->equal(a - 1, b - 1, (size_t)most - 1);
    }
    f->work += 1 + (double)(run / 16);
    return (int32_t)(row + (int64_t)run);
}

/* The furthest row on diagonal k after one insertion or deletion more; UNREACHED: none. */
static inline int64_t wavefront_indel(const struct wavefront *f, const int32_t *old, int64_t k)
{
    int64_t deleted = old[k - 1] < (int64_t)f->a.count ? (int64_t)old[k - 1] + 1 : UNREACHED;
    int64_t inserted = old[k + 1] - k <= (int64_t)f->b.count ? old[k + 1] : UNREACHED;

    return deleted > inserted ? deleted : inserted;
}

/* Makes wavefront e of wavefront e − 1, in place: its diagonals have the other parity. */
static void wavefront_advance(struct wavefront *f, int64_t e)
{
    int64_t n = (int64_t)f->a.count, m = (int64_t)f->b.count;
    int64_t low = -e, high = e;

    low = low < -m ? -m + ((e ^ m) & 1) : low;
    high = high > n ? n - ((e ^ n) & 1) : high;
    for (int64_t k = low; k <= high; k += 2) {
        int64_t row = wavefront_indel(f, f->reach, k);
        f->reach[k] = row >= 0 && row >= k ? wavefront_slide(f, row, k) : UNREACHED;
    }
    f->low = low;
    f->high = high;
}

/* Wavefront 0. */
static void wavefront_begin(struct wavefront *f, int64_t room)
{
    for (int64_t k = -room; k <= room; k++)
        f->reach[k] = UNREACHED;
    f->reach[0] = wavefront_slide(f, 0, 0);
    f->low = f->high = 0;
}

/* Whether the wavefronts so far predict a distance far above the limit. `done`: part of both strings that the furthest point has passed. */
static bool wavefront_is_hopeless(const struct wavefront_limit *limit, int64_t e, double done)
{
    return limit->predicts && e >= 64 && (uint64_t)e >= limit->edits / 16
           && (double)e > 1.5 * (double)limit->edits * done;
}

/* The point of the last wavefront with the most symbols of both strings before it. */
static void wavefront_furthest(const struct wavefront *f, const int32_t *reach, struct wavefront_result *ret)
{
    int64_t best = -1;

    for (int64_t k = f->low; k <= f->high; k++)
        if (reach[k] >= 0 && 2 * (int64_t)reach[k] - k > best) {
            best = 2 * (int64_t)reach[k] - k;
            ret->a = (size_t)reach[k];
            ret->b = (size_t)(reach[k] - k);
        }
}

/* Memory for diagonals −room … room and a neighbour on each side, indexed from diagonal 0; NULL: none. */
static int32_t *wavefront_diagonals(int64_t room, int32_t **ret_memory)
{
    *ret_memory = malloc((size_t)(2 * room + 5) * sizeof(int32_t));
    return *ret_memory ? *ret_memory + room + 2 : NULL;
}

static int64_t wavefront_room(struct string32 a, struct string32 b, uint64_t edits)
{
    uint64_t most = a.count + b.count;

    return (int64_t)(edits < most ? edits : most);
}

/* ---- distances ---- */

/* Wavefront e of wavefront e − 1, with replacements: needs both in memory. */
static void wavefront_advance_edits(struct wavefront *f, const int32_t *old, int64_t e)
{
    int64_t n = (int64_t)f->a.count, m = (int64_t)f->b.count;

    f->low = e > m ? -m : -e;
    f->high = e > n ? n : e;
    for (int64_t k = f->low; k <= f->high; k++) {
        int64_t row = wavefront_indel(f, old, k);
        int64_t replaced = old[k] < n && old[k] - k < m ? (int64_t)old[k] + 1 : old[k];
        row = replaced > row ? replaced : row;
        f->reach[k] = row >= 0 && row >= k ? wavefront_slide(f, row, k) : UNREACHED;
    }
}

/* Whether the last wavefront has reached the ends of both strings. */
static bool wavefront_is_done(const struct wavefront *f)
{
    int64_t n = (int64_t)f->a.count, last = n - (int64_t)f->b.count;

    return last >= f->low && last <= f->high && f->reach[last] >= n;
}

int wavefront_distance(struct string32 a, struct string32 b, bool replaces, struct wavefront_limit limit,
                       enum vector_width w, struct wavefront_result *ret)
{
    int64_t room = wavefront_room(a, b, limit.edits), e = 0;
    struct wavefront f = { .a = a, .b = b, .equal = EQUAL_START[w] };
    int32_t *memory[2] = { NULL, NULL }, *other = NULL;

    *ret = (struct wavefront_result){ 0 };
    f.reach = wavefront_diagonals(room, &memory[0]);
    if (replaces)
        other = wavefront_diagonals(room, &memory[1]);
    if (!f.reach || (replaces && !other)) {
        free(memory[0]);
        free(memory[1]);
        return PEET_ERR_MEMORY;
    }
    for (int64_t k = -room - 2; replaces && k <= room + 2; k++)
        other[k] = UNREACHED;
    f.reach[-room - 2] = f.reach[-room - 1] = f.reach[room + 1] = f.reach[room + 2] = UNREACHED;
    wavefront_begin(&f, room);
    while (!wavefront_is_done(&f) && (uint64_t)e < limit.edits && f.work <= limit.work) {
        if (e % 64 == 0) {
            wavefront_furthest(&f, f.reach, ret);
            if (wavefront_is_hopeless(&limit, e, (double)(ret->a + ret->b) / (double)(a.count + b.count)))
                break;
        }
        e++;
        if (replaces) {
            int32_t *old = f.reach;
            f.reach = other;
            other = old;
            wavefront_advance_edits(&f, old, e);
        } else {
            wavefront_advance(&f, e);
        }
    }
    ret->is_found = wavefront_is_done(&f);
    ret->edits = (uint64_t)e + !ret->is_found;
    ret->work = f.work;
    if (!ret->is_found)
        wavefront_furthest(&f, f.reach, ret);
    free(memory[0]);
    free(memory[1]);
    return 0;
}

/* ---- from both ends ---- */

/* Whether wavefront `f` has passed the one of the other direction on a diagonal: the point is then on a shortest path. */
static bool wavefronts_touch(const struct wavefront *f, const struct wavefront *other, struct wavefront_result *ret)
{
    int64_t n = (int64_t)f->a.count, m = (int64_t)f->b.count;

    for (int64_t k = f->low; k <= f->high; k += 2) {
        int64_t mirrored = n - m - k, row = f->reach[k];
        if (row < 0 || mirrored < other->low || mirrored > other->high || other->reach[mirrored] < 0
            || row + other->reach[mirrored] < n)
            continue;
        ret->a = (size_t)(f->backwards ? n - row : row);
        ret->b = (size_t)(f->backwards ? m - (row - k) : row - k);
        return true;
    }
    return false;
}

/* Distances are even or odd as n − m is. Odd ones are found by a forward wavefront, even ones by a backward wavefront. */
static bool wavefronts_search(struct wavefront *forward, struct wavefront *back, struct wavefront_limit limit,
                              struct wavefront_result *ret)
{
    int64_t n = (int64_t)forward->a.count, m = (int64_t)forward->b.count;
    bool is_odd = (n - m) & 1;

    for (int64_t e = 0;; e++) {
        if (e > 0)
            wavefront_advance(forward, e);
        ret->edits = (uint64_t)(2 * e - 1);
        if (is_odd && e > 0 && wavefronts_touch(forward, back, ret))
            return true;
        if (e > 0)
            wavefront_advance(back, e);
        ret->edits = (uint64_t)(2 * e);
        if (!is_odd && wavefronts_touch(back, forward, ret))
            return true;
        if ((uint64_t)(2 * e) >= limit.edits || forward->work + back->work > limit.work)
            break;
        if (e % 64 == 0) {
            struct wavefront_result from_start = { 0 }, from_end = { 0 };
            wavefront_furthest(forward, forward->reach, &from_start);
            wavefront_furthest(back, back->reach, &from_end);
            double done = (double)(from_start.a + from_start.b + from_end.a + from_end.b) / (double)(n + m);
            if (wavefront_is_hopeless(&limit, 2 * e, done))
                break;
        }
    }
    ret->edits++;
    wavefront_furthest(forward, forward->reach, ret);
    return false;
}

int wavefront_split(struct string32 a, struct string32 b, struct wavefront_limit limit, enum vector_width w,
                    struct wavefront_result *ret)
{
    int64_t room = wavefront_room(a, b, limit.edits) / 2 + 1;
    struct wavefront forward = { .a = a, .b = b, .equal = EQUAL_START[w] };
    struct wavefront back = { .a = a, .b = b, .equal = EQUAL_END[w], .backwards = true };
    int32_t *memory[2];

    *ret = (struct wavefront_result){ 0 };
    forward.reach = wavefront_diagonals(room, &memory[0]);
    back.reach = wavefront_diagonals(room, &memory[1]);
    int r = forward.reach && back.reach ? 0 : PEET_ERR_MEMORY;
    if (r == 0) {
        forward.reach[-room - 1] = forward.reach[room + 1] = back.reach[-room - 1] = back.reach[room + 1] = UNREACHED;
        wavefront_begin(&forward, room);
        wavefront_begin(&back, room);
        ret->is_found = wavefronts_search(&forward, &back, limit, ret);
        ret->work = forward.work + back.work;
    }
    free(memory[0]);
    free(memory[1]);
    return r;
}
