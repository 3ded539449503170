/* SPDX-License-Identifier: MIT */
/* The encoder's innermost step: compares the slots of an execution with their predicted values. There is a scalar version, and one by
 * vectors of four slots for processors with AVX2; tests compare the two. */
#ifndef FORMAT_CODEC_SLOT_PREDICT_H
#define FORMAT_CODEC_SLOT_PREDICT_H

#include "format/codec/codec.h"

typedef uint64_t slot_predictor(struct item_state *c, const uint64_t *slots, uint64_t **out);
typedef size_t repeat_predictor(struct item_state *c, const uint64_t *p, const uint64_t *stop, const uint64_t *end,
                                uint64_t **out, const uint64_t *out_end);

/* Compares the slots of an execution with last value + stride. Appends the residuals of the mispredicted ones to *out, updates last values and
 * strides, and returns the mask of mispredicted slots. */
static inline uint64_t predict_slots(struct item_state *c, const uint64_t *slots, uint64_t **out)
{
    uint64_t *last = c->word, *stride = c->word + c->padded, before = c->mispredicted, mispredicted = 0, off = 0,
             *o = *out;

    if (before == 0) { /* the common case: no slot is mispredicted */
        for (uint32_t i = 0; i < c->slots; i++)
            off |= (slots[i] - last[i]) ^ stride[i];
        if (off == 0) {
            for (uint32_t i = 0; i < c->slots; i++)
                last[i] = slots[i];
            return 0;
        }
    }
    for (uint32_t i = 0; i < c->slots; i++) {
        uint64_t by = slots[i] - last[i], wrong = by != stride[i];
        last[i] = slots[i];
        *o = zigzag_encode((int64_t)by);
        o += wrong;
        mispredicted |= wrong << i;
        stride[i] = wrong & (before >> i) ? by : stride[i];
    }
    *out = o;
    return mispredicted;
}

/* Counts the executions of c from p on without a wrong, as in a loop over arrays. The words of its last execution end at p. An
 * execution begins before `stop` (end of the chunk) and ends before `end` (end of the words). */
static inline size_t predict_strides_again(struct item_state *c, const uint64_t *p, const uint64_t *stop,
                                           const uint64_t *end)
{
    const uint64_t *stride = c->word + c->padded;
    size_t slots = c->slots, words = slots + 1, n = 0;

    for (; p < stop && *p == c->key && (size_t)(end - p) >= words; n++, p += words) {
        const uint64_t *now = p + 1, *before = now - words;
        slot_pair pairs = { 0 };
        size_t i = 0;
        for (; i + 2 <= slots; i += 2)
            pairs |=
                (*(const slot_pair *)(now + i) - *(const slot_pair *)(before + i)) ^ *(const slot_pair *)(stride + i);
        uint64_t off = pairs[0] | pairs[1];
        if (i < slots)
            off |= (now[i] - before[i]) ^ stride[i];
        if (off)
            break;
    }
    if (n)
        memcpy(c->word, p - slots, slots * sizeof *p);
    c->executions += n;
    return n;
}

/* Keeps a value in a scalar register: gathering two of them into a vector takes longer than it saves. */
static inline uint64_t predict_scalar(uint64_t v)
{
    __asm__("" : "+r"(v));
    return v;
}

/* Counts the executions of c, with n slots, from p on in which the same slots are mispredicted again, as in a loop over indices. */
static inline __attribute__((always_inline)) size_t predict_residuals_again(struct item_state *c, const uint64_t *p,
                                                                            const uint64_t *stop, const uint64_t *end,
                                                                            unsigned n, uint64_t **out,
                                                                            const uint64_t *out_end)
{
    uint64_t last[SLOT_PAD], stride[SLOT_PAD], *o = *out, key = c->key, mask = c->mispredicted;
    const uint64_t *begin = p;

    memcpy(last, c->word, sizeof last);
    memcpy(stride, c->word + c->padded, sizeof stride);
    for (; p < stop && *p == key && end - p > (ptrdiff_t)n && o < out_end; p += n + 1) {
        uint64_t by[SLOT_PAD], mispredicted = 0;
        for (unsigned i = 0; i < n; i++) {
            by[i] = predict_scalar(p[1 + i]) - last[i];
            mispredicted |= (uint64_t)(by[i] != stride[i]) << i;
        }
        if (mispredicted != mask)
            break;
        for (unsigned i = 0; i < n; i++) {
            uint64_t wrong = mask >> i & 1;
            *o = zigzag_encode((int64_t)by[i]);
            o += wrong;
            stride[i] = predict_scalar(wrong ? by[i] : stride[i]);
            last[i] = predict_scalar(p[1 + i]);
        }
    }
    memcpy(c->word, last, n * sizeof *last);
    memcpy(c->word + c->padded, stride, n * sizeof *stride);
    *out = o;
    c->executions += (size_t)(p - begin) / (n + 1);
    return (size_t)(p - begin) / (n + 1);
}

static inline size_t predict_again(struct item_state *c, const uint64_t *p, const uint64_t *stop, const uint64_t *end,
                                   uint64_t **out, const uint64_t *out_end)
{
    if (c->mispredicted == 0)
        return predict_strides_again(c, p, stop, end);
    switch (c->slots) {
    case 1: return predict_residuals_again(c, p, stop, end, 1, out, out_end);
    case 2: return predict_residuals_again(c, p, stop, end, 2, out, out_end);
    case 3: return predict_residuals_again(c, p, stop, end, 3, out, out_end);
    case 4: return predict_residuals_again(c, p, stop, end, 4, out, out_end);
    default: return 0;
    }
}

#ifdef __x86_64__
#include <immintrin.h>

#define PREDICT_AVX2 __attribute__((target("avx2,bmi2,popcnt")))

/* By a mask of the four words of a vector: the permutation of 32-bit halves that moves the selected words together; all bits of the
 * selected words set. */
extern const uint32_t PREDICT_COMPACT[16][8];
extern const uint64_t PREDICT_MASKS[16][4];

/* predict_slots for slots i to i + 3; returns the mask of mispredicted slots. */
PREDICT_AVX2 static inline __attribute__((always_inline)) uint64_t predict_four(struct item_state *c,
                                                                                const uint64_t *slots, uint32_t i,
                                                                                uint64_t **out)
{
    uint64_t *last = c->word + i, *stride = last + c->padded;
    __m256i now = _mm256_loadu_si256((const __m256i *)(slots + i));
    __m256i by = _mm256_sub_epi64(now, _mm256_loadu_si256((const __m256i *)last));
    __m256i then = _mm256_loadu_si256((const __m256i *)stride);
    unsigned same = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(by, then)));
    unsigned wrong = (unsigned)_bzhi_u64(UINT64_MAX, c->slots - i) & ~same & 15;

    _mm256_storeu_si256((__m256i *)last, now);
    if (wrong) {
        __m256i sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), by);
        __m256i zig = _mm256_xor_si256(_mm256_add_epi64(by, by), sign);
        __m256i order = _mm256_load_si256((const __m256i *)PREDICT_COMPACT[wrong]);
        __m256i again = _mm256_load_si256((const __m256i *)PREDICT_MASKS[wrong & c->mispredicted >> i]);
        _mm256_storeu_si256((__m256i *)*out, _mm256_permutevar8x32_epi32(zig, order));
        *out += __builtin_popcount(wrong);
        _mm256_storeu_si256((__m256i *)stride, _mm256_blendv_epi8(then, by, again));
    }
    return (uint64_t)wrong << i;
}

/* predict_slots by vectors; reads `padded` slots. */
PREDICT_AVX2 static inline uint64_t predict_slots_avx2(struct item_state *c, const uint64_t *slots, uint64_t **out)
{
    uint64_t mispredicted = 0;

    if (c->padded == SLOT_PAD) /* the common case */
        return predict_four(c, slots, 0, out);
    for (uint32_t i = 0; i < c->padded; i += SLOT_PAD)
        mispredicted |= predict_four(c, slots, i, out);
    return mispredicted;
}

/* predict_again by vectors. Words that vectors read are written by vectors: a wider load would wait for narrower stores. */
PREDICT_AVX2 static inline size_t predict_again_avx2(struct item_state *c, const uint64_t *p, const uint64_t *stop,
                                                     const uint64_t *end, uint64_t **out, const uint64_t *out_end)
{
    if (c->padded != SLOT_PAD)
        return 0;
    uint64_t key = c->key, *o = *out, wrong = c->mispredicted;
    size_t words = c->slots + 1u, residuals = (size_t)__builtin_popcountll(wrong);
    unsigned all = (unsigned)_bzhi_u64(UINT64_MAX, c->slots);
    size_t n = 0;
    __m256i last = _mm256_loadu_si256((const __m256i *)c->word);
    __m256i stride = _mm256_loadu_si256((const __m256i *)(c->word + SLOT_PAD));
    __m256i order = _mm256_load_si256((const __m256i *)PREDICT_COMPACT[wrong]);
    __m256i selected = _mm256_load_si256((const __m256i *)PREDICT_MASKS[wrong]);

    for (; p < stop && *p == key && end - p > SLOT_PAD && o < out_end; p += words, n++) {
        __m256i now = _mm256_loadu_si256((const __m256i *)(p + 1)), by = _mm256_sub_epi64(now, last);
        unsigned same = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(by, stride)));
        if ((all & ~same) != wrong)
            break;
        __m256i sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), by);
        __m256i zig = _mm256_xor_si256(_mm256_add_epi64(by, by), sign);
        _mm256_storeu_si256((__m256i *)o, _mm256_permutevar8x32_epi32(zig, order));
        o += residuals;
        stride = _mm256_blendv_epi8(stride, by, selected);
        last = now;
    }
    _mm256_storeu_si256((__m256i *)c->word, last);
    _mm256_storeu_si256((__m256i *)(c->word + SLOT_PAD), stride);
    *out = o;
    c->executions += n;
    return n;
}
#endif

#endif
