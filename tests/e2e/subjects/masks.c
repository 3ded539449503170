/* SPDX-License-Identifier: MIT */
/* Gathers of all kinds, masked loads and stores, a masked store of bytes: some elements, none, all; in a loop, so that buffers end
 * in the middle of them. Prints what was moved. */
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WITH_AVX2 __attribute__((target("avx2"), noinline))

static double doubles[64];
static float floats[64];
static long long longs[64];
static int ints[64];
static unsigned char bytes[16];
static double sum;

WITH_AVX2 static void add(__m256d v)
{
    double d[4];

    _mm256_storeu_pd(d, v);
    sum += d[0] + 3 * d[1] + 5 * d[2] + 7 * d[3];
}

WITH_AVX2 static void add_narrow(__m128i v)
{
    int d[4];

    _mm_storeu_si128((__m128i *)d, v);
    sum += d[0] + 3. * d[1] + 5. * d[2] + 7. * d[3];
}

WITH_AVX2 static void gather(__m128i i4, __m256i i8, __m256i l4, __m256i m4, __m256i m8)
{
    __m128i l2 = _mm256_castsi256_si128(l4), n4 = _mm256_castsi256_si128(m8), n2 = _mm256_castsi256_si128(m4);
    __m256d zero = _mm256_setzero_pd();

    add(_mm256_mask_i32gather_pd(zero, doubles, i4, _mm256_castsi256_pd(m4), 8));
    add(_mm256_mask_i64gather_pd(zero, doubles + 1, l4, _mm256_castsi256_pd(m4), 8));
    add(_mm256_castpd128_pd256(_mm_mask_i32gather_pd(_mm_setzero_pd(), doubles, i4, _mm_castsi128_pd(n2), 8)));
    add(_mm256_castpd128_pd256(_mm_mask_i64gather_pd(_mm_setzero_pd(), doubles, l2, _mm_castsi128_pd(n2), 8)));
    add(_mm256_cvtps_pd(_mm_mask_i32gather_ps(_mm_setzero_ps(), floats, i4, _mm_castsi128_ps(n4), 4)));
    add(_mm256_cvtps_pd(_mm256_mask_i64gather_ps(_mm_setzero_ps(), floats, l4, _mm_castsi128_ps(n4), 4)));
    __m256i eight = _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), ints, i8, m8, 4);
    add_narrow(_mm256_castsi256_si128(eight));
    add_narrow(_mm256_extracti128_si256(eight, 1));
    add_narrow(_mm_mask_i64gather_epi32(_mm_setzero_si128(), ints, l2, n4, 4));
    add(_mm256_cvtepi32_pd(_mm256_castsi256_si128(_mm256_mask_i64gather_epi64(_mm256_setzero_si256(), longs, l4, m4, 8))));
    add(_mm256_i32gather_pd(doubles, i4, 8)); /* all of them */
    add(_mm256_i64gather_pd((const double *)((const char *)doubles + 8), _mm256_slli_epi64(l4, 3), 1));
}

WITH_AVX2 static void move(__m256i m4, __m256i m8, const char *text)
{
    __m128i n4 = _mm256_castsi256_si128(m8), n2 = _mm256_castsi256_si128(m4);

    add(_mm256_maskload_pd(doubles + 3, m4));
    add(_mm256_castpd128_pd256(_mm_maskload_pd(doubles + 5, n2)));
    add(_mm256_cvtps_pd(_mm_maskload_ps(floats + 7, n4)));
    _mm256_maskstore_epi32(ints + 40, m8, _mm256_maskload_epi32(ints, m8));
    _mm_maskstore_epi64(longs + 40, n2, _mm_maskload_epi64(longs + 9, n2));
    _mm_maskmoveu_si128(_mm_loadu_si128((const __m128i *)text), _mm_loadu_si128((const __m128i *)(text + 1)), (char *)bytes);
}

WITH_AVX2 static void work(unsigned rounds)
{
    unsigned state = 1;

    for (unsigned r = 0; r < rounds; r++) {
        int i8[8], m8[8];
        long long l4[4], m4[4];
        char text[17];
        for (int i = 0; i < 8; i++) {
            state = state * 1103515245 + 12345;
            i8[i] = (int)(state >> 20 & 63);
            m8[i] = r % 7 == 0 ? 0 : r % 7 == 1 ? -1 : state >> 27 & 1 ? -1 : 0;
            l4[i / 2] = i8[i] % 63;
            m4[i / 2] = m8[i];
        }
        for (int i = 0; i < 17; i++)
            text[i] = (char)((state >> i) * 37);
        __m256i index8 = _mm256_loadu_si256((const __m256i *)i8);
        __m256i wide4 = _mm256_loadu_si256((const __m256i *)m4), narrow8 = _mm256_loadu_si256((const __m256i *)m8);
        gather(_mm256_castsi256_si128(index8), index8, _mm256_loadu_si256((const __m256i *)l4), wide4, narrow8);
        move(wide4, narrow8, text);
    }
}

int main(int argc, char **argv)
{
    unsigned check = 0;

    for (int i = 0; i < 64; i++) {
        doubles[i] = i * 1.5;
        floats[i] = (float)i;
        longs[i] = i * 3;
        ints[i] = i * 7;
    }
    if (__builtin_cpu_supports("avx2"))
        work(argc > 1 ? (unsigned)atoi(argv[1]) : 20);
    for (int i = 0; i < 64; i++)
        check = check * 31 + (unsigned)ints[i] + (unsigned)longs[i] + bytes[i % 16];
    printf("%.1f %u\n", sum, check);
    return 0;
}
