/* SPDX-License-Identifier: MIT */
#include "study/compare/bit_parallel.h"

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "peet/err.h"
#include "study/compare/bit_parallel_strip.h"

/* ---- kernels ---- */

/* Portable code computes word by word, column by column: the carries of a column stay in registers, and nothing is skewed. */
enum { PORTABLE_WORDS = 16 };

static void portable_lcs(struct strip *s)
{
    for (unsigned k = 0; k < PORTABLE_WORDS; k++)
        s->plus[k] = UINT64_MAX;
    for (size_t j = 0; j < s->columns; j++) {
        const uint64_t *match = s->match + (size_t)s->id[j] * PORTABLE_WORDS;
        uint64_t carry = s->in[j];
#pragma GCC unroll 16
        for (unsigned k = 0; k < PORTABLE_WORDS; k++) {
            uint64_t v = s->plus[k], u = v & match[k], sum;
            uint64_t out = __builtin_add_overflow(v, u, &sum);
            out |= __builtin_add_overflow(sum, carry, &sum);
            s->plus[k] = sum | (v & ~match[k]);
            carry = out;
        }
        s->out[j] = (uint8_t)carry;
    }
}

static void portable_edits(struct strip *s)
{
    for (unsigned k = 0; k < PORTABLE_WORDS; k++)
        s->plus[k] = UINT64_MAX, s->minus[k] = 0;
    for (size_t j = 0; j < s->columns; j++) {
        const uint64_t *match = s->match + (size_t)s->id[j] * PORTABLE_WORDS;
        uint64_t in_plus = s->in[j] & CARRY_PLUS, in_minus = s->in[j] / CARRY_MINUS;
        for (unsigned k = 0; k < PORTABLE_WORDS; k++) {
            uint64_t plus = s->plus[k], minus = s->minus[k];
            uint64_t xv = match[k] | minus, eq = match[k] | in_minus;
            uint64_t xh = (((eq & plus) + plus) ^ plus) | eq;
            uint64_t hp = minus | ~(xh | plus), hm = plus & xh;
            uint64_t out_plus = hp >> 63, out_minus = hm >> 63;
            hp = (hp << 1) | in_plus;
            hm = (hm << 1) | in_minus;
            s->plus[k] = hm | ~(xv | hp);
            s->minus[k] = hp & xv;
            in_plus = out_plus;
            in_minus = out_minus;
        }
        s->out[j] = (uint8_t)(in_plus | in_minus * CARRY_MINUS);
    }
}

#ifdef __x86_64__
/* clang-format off */
#define KERNEL(name) avx2_##name
#define TARGET __attribute__((target("avx2,bmi2")))
#define ELEMENTS 4
#define GROUPS 2
#define MOVE_UP(v, before) __builtin_shufflevector(before, v, 3, 4, 5, 6)
#define SKEW1(now, old) __builtin_shufflevector(now, old, 0, 5, 2, 7)
#define SKEW2(now, old) __builtin_shufflevector(now, old, 0, 1, 6, 7)
#define SKEW4(now, old) ((void)(old), (now))
#include "study/compare/bit_parallel_kernel.h"

#define KERNEL(name) avx512_##name
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi2")))
#define ELEMENTS 8
#define GROUPS 2
#define MOVE_UP(v, before) __builtin_shufflevector(before, v, 7, 8, 9, 10, 11, 12, 13, 14)
#define SKEW1(now, old) __builtin_shufflevector(now, old, 0, 9, 2, 11, 4, 13, 6, 15)
#define SKEW2(now, old) __builtin_shufflevector(now, old, 0, 1, 10, 11, 4, 5, 14, 15)
#define SKEW4(now, old) __builtin_shufflevector(now, old, 0, 1, 2, 3, 12, 13, 14, 15)
#include "study/compare/bit_parallel_kernel.h"
/* clang-format on */
#endif

static const struct strip_kernel LCS_KERNELS[VECTOR_WIDTHS] = {
    [VECTOR_PORTABLE] = { PORTABLE_WORDS, portable_lcs },
#ifdef __x86_64__
    [VECTOR_AVX2] = { 8, avx2_lcs },
    [VECTOR_AVX512] = { 16, avx512_lcs },
#endif
};

static const struct strip_kernel EDIT_KERNELS[VECTOR_WIDTHS] = {
    [VECTOR_PORTABLE] = { PORTABLE_WORDS, portable_edits },
#ifdef __x86_64__
    [VECTOR_AVX2] = { 8, avx2_edits },
    [VECTOR_AVX512] = { 16, avx512_edits },
#endif
};

bool vector_width_is_supported(enum vector_width w)
{
    return w == VECTOR_PORTABLE || (w == VECTOR_AVX2 && cpu_has_avx2()) || (w == VECTOR_AVX512 && cpu_has_avx512());
}

enum vector_width vector_width_best(void)
{
    return cpu_has_avx512() ? VECTOR_AVX512 : cpu_has_avx2() ? VECTOR_AVX2 : VECTOR_PORTABLE;
}

/* ---- the table, strip by strip ---- */

/* A table of all prefixes: rows are symbols of a, columns are symbols of b. */
struct bit_table {
    struct strip_kernel kernel;
    struct string32 a, b;
    struct strip strip;
    uint16_t *id_of;   /* by symbol: its id in the strip; 0: none */
    uint16_t *id;      /* of strip.id */
    uint8_t *in, *out; /* of strip.in and strip.out */
    uint64_t *match;   /* of strip.match */
};

static int bit_table_init(struct bit_table *t, struct strip_kernel kernel, struct string32 a, struct string32 b,
                          uint32_t symbols)
{
    size_t padded = b.count + 2 * STRIP_MAX_WORDS + 8, rows = 64 * (size_t)kernel.words;

    *t = (struct bit_table){ .kernel = kernel, .a = a, .b = b };
    t->id_of = calloc((size_t)symbols + 1, sizeof *t->id_of);
    t->id = calloc(padded, sizeof *t->id);
    t->in = calloc(padded, 1);
    t->out = calloc(padded, 1);
    t->match = aligned_alloc(64, (rows + 1) * kernel.words * sizeof *t->match);
    return t->id_of && t->id && t->in && t->out && t->match ? 0 : PEET_ERR_MEMORY;
}

static void bit_table_release(struct bit_table *t)
{
    free(t->id_of);
    free(t->id);
    free(t->in);
    free(t->out);
    free(t->match);
}

/* Computes the strip of rows [first, end), and hands its carries to the next strip. */
static void bit_table_strip(struct bit_table *t, size_t first, size_t end)
{
    unsigned words = t->kernel.words;
    uint16_t ids = 0;

    memset(t->match, 0, words * sizeof *t->match);
    for (size_t i = first; i < end; i++) {
        uint16_t *id = &t->id_of[t->a.at[i]];
        if (*id == 0) {
            *id = ++ids;
            memset(t->match + (size_t)*id * words, 0, words * sizeof *t->match);
        }
        t->match[(size_t)*id * words + (i - first) / 64] |= UINT64_C(1) << (i - first) % 64;
    }
    for (size_t j = 0; j < t->b.count; j++)
        t->id[STRIP_MAX_WORDS + j] = t->id_of[t->b.at[j]];
    for (size_t i = first; i < end; i++)
        t->id_of[t->a.at[i]] = 0;
    t->strip.match = t->match;
    t->strip.id = t->id + STRIP_MAX_WORDS;
    t->strip.in = t->in;
    t->strip.out = t->out;
    t->strip.columns = t->b.count;
    t->kernel.run(&t->strip);
    uint8_t *in = t->in;
    t->in = t->out;
    t->out = in;
}

static uint64_t bits_below(size_t count)
{
    return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

int bit_parallel_lcs(struct string32 a, struct string32 b, uint32_t symbols, enum vector_width w, uint64_t *grows,
                     uint64_t *ret)
{
    struct bit_table t;
    uint64_t length = 0;

    if (grows)
        memset(grows, 0, (a.count + 63) / 64 * sizeof *grows);
    if (a.count == 0 || b.count == 0) {
        *ret = 0;
        return 0;
    }
    int r = bit_table_init(&t, LCS_KERNELS[w], a, b, symbols);
    size_t rows = 64 * (size_t)t.kernel.words;
    for (size_t first = 0; r == 0 && first < a.count; first += rows) {
        size_t end = a.count - first < rows ? a.count : first + rows;
        bit_table_strip(&t, first, end);
        for (size_t i = first; i < end; i += 64) {
            uint64_t bits = ~t.strip.plus[(i - first) / 64] & bits_below(end - i);
            length += (uint64_t)__builtin_popcountll(bits);
            if (grows)
                grows[i / 64] = bits;
        }
    }
    bit_table_release(&t);
    if (r == 0)
        *ret = length;
    return r;
}

int bit_parallel_edits(struct string32 a, struct string32 b, uint32_t symbols, enum vector_width w, uint64_t *ret)
{
    struct bit_table t;
    int64_t edits = (int64_t)b.count;

    if (a.count == 0 || b.count == 0) {
        *ret = a.count + b.count;
        return 0;
    }
    int r = bit_table_init(&t, EDIT_KERNELS[w], a, b, symbols);
    if (r == 0)
        memset(t.in, CARRY_PLUS, b.count); /* row 0 of the table: 0, 1, 2 … */
    size_t rows = 64 * (size_t)t.kernel.words;
    for (size_t first = 0; r == 0 && first < a.count; first += rows) {
        size_t end = a.count - first < rows ? a.count : first + rows;
        bit_table_strip(&t, first, end);
        for (size_t i = first; i < end; i += 64) {
            uint64_t valid = bits_below(end - i);
            edits += __builtin_popcountll(t.strip.plus[(i - first) / 64] & valid);
            edits -= __builtin_popcountll(t.strip.minus[(i - first) / 64] & valid);
        }
    }
    bit_table_release(&t);
    if (r == 0)
        *ret = (uint64_t)edits;
    return r;
}
