/* SPDX-License-Identifier: MIT */
/* Kernels for one vector width, included by bit_parallel.c with these macros: KERNEL(name): name of a function; TARGET: its attribute;
 * ELEMENTS: words of a vector; UP_INDEXES: of (v, before), the elements of v moved up by one, with the last one of `before` at the bottom;
 * SKEW(now, r1, r2, r4): blends that delay element k by k steps. GROUPS vectors make a strip.
 *
 * SKEW works level by level: elements with bit 0 of their index set come from the row that was loaded one step ago, then those with bit 1 from the
 * blend of two steps ago, then those with bit 2 from that of four steps ago. */

#ifdef KERNEL

typedef uint64_t KERNEL(vector) __attribute__((vector_size(8 * ELEMENTS)));

/* The match rows of all elements in step t, for group g. */
#define KERNEL_MATCH(ret, g, q) \
    do { \
        KERNEL(vector) row_, one_, two_; \
        memcpy(&row_, s->match + (size_t)id[(ptrdiff_t)t + (q) - (ptrdiff_t)(g)*ELEMENTS] * WORDS + (g)*ELEMENTS, \
               sizeof row_); \
        one_ = SKEW1(row_, delay1[g]); \
        delay1[g] = row_; \
        two_ = SKEW2(one_, delay2[g][(q)&1]); \
        delay2[g][(q)&1] = one_; \
        (ret) = SKEW4(two_, delay4[g][(q)&3]); \
        delay4[g][(q)&3] = two_; \
    } while (0)

/* Stores what element t − (columns − 1) holds, for it has just computed the last column. */
#define KERNEL_KEEP(q, v, ret) \
    do { \
        size_t word_ = t + (q) - (s->columns - 1); \
        for (unsigned g_ = 0; g_ < GROUPS; g_++) \
            if (word_ / ELEMENTS == g_) { \
                uint64_t words_[ELEMENTS]; \
                memcpy(words_, &(v)[g_], sizeof words_); \
                (ret)[word_] = words_[word_ % ELEMENTS]; \
            } \
    } while (0)

TARGET static void KERNEL(lcs)(struct strip *s)
{
    enum { WORDS = ELEMENTS * GROUPS };
    const KERNEL(vector) zero = { 0 };
    KERNEL(vector) v[GROUPS], carry[GROUPS], delay1[GROUPS], delay2[GROUPS][2], delay4[GROUPS][4];
    const uint16_t *id = s->id;
    size_t steps = s->columns + WORDS - 1;

    memset(delay1, 0, sizeof delay1);
    memset(delay2, 0, sizeof delay2);
    memset(delay4, 0, sizeof delay4);
    for (unsigned g = 0; g < GROUPS; g++)
        v[g] = ~zero, carry[g] = zero;
    for (size_t t = 0; t < steps; t += 4) {
#pragma GCC unroll 4
        for (unsigned q = 0; q < 4; q++) {
            KERNEL(vector) in = { 0 }, from[GROUPS];
            in[ELEMENTS - 1] = s->in[t + q];
#pragma GCC unroll 4
            for (unsigned g = 0; g < GROUPS; g++)
                from[g] = MOVE_UP(carry[g], g ? carry[g - 1] : in);
#pragma GCC unroll 4
            for (unsigned g = 0; g < GROUPS; g++) {
                KERNEL(vector) match;
                KERNEL_MATCH(match, g, q);
                KERNEL(vector) u = v[g] & match, sum = v[g] + u + from[g];
                carry[g] = (u | (v[g] & ~sum)) >> 63;
                v[g] = sum | (v[g] & ~match);
            }
            if (t + q >= WORDS - 1 && t + q < steps)
                s->out[t + q - (WORDS - 1)] = (uint8_t)carry[GROUPS - 1][ELEMENTS - 1];
            if (t + q >= s->columns - 1 && t + q < steps)
                KERNEL_KEEP(q, v, s->plus);
        }
    }
}

TARGET static void KERNEL(edits)(struct strip *s)
{
    enum { WORDS = ELEMENTS * GROUPS };
    const KERNEL(vector) zero = { 0 };
    KERNEL(vector) plus[GROUPS], minus[GROUPS], down_plus[GROUPS], down_minus[GROUPS];
    KERNEL(vector) delay1[GROUPS], delay2[GROUPS][2], delay4[GROUPS][4];
    const uint16_t *id = s->id;
    size_t steps = s->columns + WORDS - 1;

    memset(delay1, 0, sizeof delay1);
    memset(delay2, 0, sizeof delay2);
    memset(delay4, 0, sizeof delay4);
    for (unsigned g = 0; g < GROUPS; g++)
        plus[g] = ~zero, minus[g] = down_plus[g] = down_minus[g] = zero;
    for (size_t t = 0; t < steps; t += 4) {
#pragma GCC unroll 4
        for (unsigned q = 0; q < 4; q++) {
            KERNEL(vector) in_plus = { 0 }, in_minus = { 0 }, from_plus[GROUPS], from_minus[GROUPS];
            in_plus[ELEMENTS - 1] = s->in[t + q] & CARRY_PLUS;
            in_minus[ELEMENTS - 1] = s->in[t + q] / CARRY_MINUS;
#pragma GCC unroll 4
            for (unsigned g = 0; g < GROUPS; g++) {
                from_plus[g] = MOVE_UP(down_plus[g], g ? down_plus[g - 1] : in_plus);
                from_minus[g] = MOVE_UP(down_minus[g], g ? down_minus[g - 1] : in_minus);
            }
#pragma GCC unroll 4
            for (unsigned g = 0; g < GROUPS; g++) {
                KERNEL(vector) match;
                KERNEL_MATCH(match, g, q);
                KERNEL(vector) xv = match | minus[g], eq = match | from_minus[g];
                KERNEL(vector) xh = (((eq & plus[g]) + plus[g]) ^ plus[g]) | eq;
                KERNEL(vector) hp = minus[g] | ~(xh | plus[g]), hm = plus[g] & xh;
                down_plus[g] = hp >> 63;
                down_minus[g] = hm >> 63;
                hp = (hp << 1) | from_plus[g];
                hm = (hm << 1) | from_minus[g];
                plus[g] = hm | ~(xv | hp);
                minus[g] = hp & xv;
            }
            if (t + q >= WORDS - 1 && t + q < steps)
                s->out[t + q - (WORDS - 1)] =
                    (uint8_t)(down_plus[GROUPS - 1][ELEMENTS - 1] | down_minus[GROUPS - 1][ELEMENTS - 1] * CARRY_MINUS);
            if (t + q >= s->columns - 1 && t + q < steps) {
                KERNEL_KEEP(q, plus, s->plus);
                KERNEL_KEEP(q, minus, s->minus);
            }
        }
    }
}

#undef KERNEL_MATCH
#undef KERNEL_KEEP
#undef KERNEL
#undef TARGET
#undef ELEMENTS
#undef GROUPS
#undef MOVE_UP
#undef SKEW1
#undef SKEW2
#undef SKEW4

#endif
