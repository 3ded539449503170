/* SPDX-License-Identifier: MIT */
/* The encoder's innermost step: an execution's slots against what was foreseen of them. Twice: plainly, and by vectors of four for
 * processors that have them; tests compare the two. */
#ifndef FORMAT_CODEC_SLOT_PREDICT_H
#define FORMAT_CODEC_SLOT_PREDICT_H

#include "format/codec/codec.h"

typedef uint64_t slot_predictor(struct item_state *c, const uint64_t *slots, uint64_t **out);
typedef size_t repeat_predictor(struct item_state *c, const uint64_t *p, const uint64_t *stop, const uint64_t *end,
                                uint64_t **out, const uint64_t *out_end);

/* Takes the slots of an execution: those that are not where their strides take them leave their differences at *out. Returns
 * their mask. */
static inline uint64_t predict_slots(struct item_state *c, const uint64_t *slots, uint64_t **out)
{
    uint64_t *last = c->word, *stride = c->word + c->padded, before = c->missed, missed = 0, off = 0, *o = *out;

    if (before == 0) { /* most often all are as foreseen */
        for (uint32_t i = 0; i < c->slots; i++)
            off |= (slots[i] - last[i]) ^ stride[i];
        if (off == 0) {
            for (uint32_t i = 0; i < c->slots; i++)
                last[i] = slots[i];
            return 0;
        }
    }
    for (uint32_t i = 0; i < c->slots; i++) {
        uint64_t by = slots[i] - last[i], miss = by != stride[i];
        last[i] = slots[i];
        *o = zigzag((int64_t)by);
        o += miss;
        missed |= miss << i;
        stride[i] = miss & (before >> i) ? by : stride[i];
    }
    *out = o;
    return missed;
}

/* How often c is executed again from p on with every slot where its stride takes it, which is what loops do; its last execution
 * stands in front of p. Not behind `stop`, where a chunk or the words end. */
static inline size_t predict_hits_again(struct item_state *c, const uint64_t *p, const uint64_t *stop,
                                        const uint64_t *end)
{
    const uint64_t *stride = c->word + c->padded;
    size_t slots = c->slots, words = slots + 1, n = 0;

    for (; p < stop && *p == c->name && (size_t)(end - p) >= words; n++, p += words) {
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

/* In a register of its own: two that are put into one vector are there too late. */
static inline uint64_t predict_scalar(uint64_t v)
{
    __asm__("" : "+r"(v));
    return v;
}

/* How often c, with n slots, is executed again from p on with the same slots missing, which is what loops over tables do. */
static inline __attribute__((always_inline)) size_t predict_misses_again(struct item_state *c, const uint64_t *p,
                                                                         const uint64_t *stop, const uint64_t *end,
                                                                         unsigned n, uint64_t **out,
                                                                         const uint64_t *out_end)
{
    uint64_t last[SLOT_PAD], stride[SLOT_PAD], *o = *out, name = c->name, mask = c->missed;
    const uint64_t *begin = p;

    memcpy(last, c->word, sizeof last);
    memcpy(stride, c->word + c->padded, sizeof stride);
    for (; p < stop && *p == name && end - p > (ptrdiff_t)n && o < out_end; p += n + 1) {
        uint64_t by[SLOT_PAD], missed = 0;
        for (unsigned i = 0; i < n; i++) {
            by[i] = predict_scalar(p[1 + i]) - last[i];
            missed |= (uint64_t)(by[i] != stride[i]) << i;
        }
        if (missed != mask)
            break;
        for (unsigned i = 0; i < n; i++) {
            uint64_t miss = mask >> i & 1;
            *o = zigzag((int64_t)by[i]);
            o += miss;
            stride[i] = predict_scalar(miss ? by[i] : stride[i]);
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
    if (c->missed == 0)
        return predict_hits_again(c, p, stop, end);
    switch (c->slots) {
    case 1: return predict_misses_again(c, p, stop, end, 1, out, out_end);
    case 2: return predict_misses_again(c, p, stop, end, 2, out, out_end);
    case 3: return predict_misses_again(c, p, stop, end, 3, out, out_end);
    case 4: return predict_misses_again(c, p, stop, end, 4, out, out_end);
    default: return 0;
    }
}

#ifdef __x86_64__
#include <immintrin.h>

#define PREDICT_AVX2 __attribute__((target("avx2,bmi2,popcnt")))

/* Which halves of a vector its chosen lanes take when they move together, and all bits of the chosen lanes; by the mask of lanes. */
extern const uint32_t PREDICT_COMPACT[16][8];
extern const uint64_t PREDICT_LANES[16][4];

/* Takes the slots from i on; returns which of them missed. */
PREDICT_AVX2 static inline __attribute__((always_inline)) uint64_t predict_four(struct item_state *c,
                                                                                const uint64_t *slots, uint32_t i,
                                                                                uint64_t **out)
{
    uint64_t *last = c->word + i, *stride = last + c->padded;
    __m256i now = _mm256_loadu_si256((const __m256i *)(slots + i));
    __m256i by = _mm256_sub_epi64(now, _mm256_loadu_si256((const __m256i *)last));
    __m256i then = _mm256_loadu_si256((const __m256i *)stride);
    unsigned same = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(by, then)));
    unsigned miss = (unsigned)_bzhi_u64(UINT64_MAX, c->slots - i) & ~same & 15;

    _mm256_storeu_si256((__m256i *)last, now);
    if (miss) {
        __m256i sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), by);
        __m256i zig = _mm256_xor_si256(_mm256_add_epi64(by, by), sign);
        __m256i order = _mm256_load_si256((const __m256i *)PREDICT_COMPACT[miss]);
        __m256i again = _mm256_load_si256((const __m256i *)PREDICT_LANES[miss & c->missed >> i]);
        _mm256_storeu_si256((__m256i *)*out, _mm256_permutevar8x32_epi32(zig, order));
        *out += __builtin_popcount(miss);
        _mm256_storeu_si256((__m256i *)stride, _mm256_blendv_epi8(then, by, again));
    }
    return (uint64_t)miss << i;
}

/* predict_slots; reads `padded` slots. */
PREDICT_AVX2 static inline uint64_t predict_slots_avx2(struct item_state *c, const uint64_t *slots, uint64_t **out)
{
    uint64_t missed = 0;

    if (c->padded == SLOT_PAD) /* most often */
        return predict_four(c, slots, 0, out);
    for (uint32_t i = 0; i < c->padded; i += SLOT_PAD)
        missed |= predict_four(c, slots, i, out);
    return missed;
}

/* predict_again. What vectors read is written by vectors: else it would have to wait for it. */
PREDICT_AVX2 static inline size_t predict_again_avx2(struct item_state *c, const uint64_t *p, const uint64_t *stop,
                                                     const uint64_t *end, uint64_t **out, const uint64_t *out_end)
{
    if (c->padded != SLOT_PAD)
        return 0;
    uint64_t name = c->name, *o = *out, miss = c->missed;
    size_t words = c->slots + 1u, misses = (size_t)__builtin_popcountll(miss);
    unsigned all = (unsigned)_bzhi_u64(UINT64_MAX, c->slots);
    size_t n = 0;
    __m256i last = _mm256_loadu_si256((const __m256i *)c->word);
    __m256i stride = _mm256_loadu_si256((const __m256i *)(c->word + SLOT_PAD));
    __m256i order = _mm256_load_si256((const __m256i *)PREDICT_COMPACT[miss]);
    __m256i lanes = _mm256_load_si256((const __m256i *)PREDICT_LANES[miss]);

    for (; p < stop && *p == name && end - p > SLOT_PAD && o < out_end; p += words, n++) {
        __m256i now = _mm256_loadu_si256((const __m256i *)(p + 1)), by = _mm256_sub_epi64(now, last);
        unsigned same = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(by, stride)));
        if ((all & ~same) != miss)
            break;
        __m256i sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), by);
        __m256i zig = _mm256_xor_si256(_mm256_add_epi64(by, by), sign);
        _mm256_storeu_si256((__m256i *)o, _mm256_permutevar8x32_epi32(zig, order));
        o += misses;
        stride = _mm256_blendv_epi8(stride, by, lanes);
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
