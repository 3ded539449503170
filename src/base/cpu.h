/* SPDX-License-Identifier: MIT */
/* Optional instructions of the processor. */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdbool.h>

extern bool cpu_force_scalar; /* set by tests: no optional instructions are used */

/* AVX2 and BMI2, on x86-64: vectors of four 64-bit words. All code that uses them has a scalar version. */
static inline bool cpu_has_avx2(void)
{
#ifdef __x86_64__
    return !cpu_force_scalar && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}

/* AVX-512 with its extensions F, BW, DQ and VL, on x86-64: vectors of eight 64-bit words. */
static inline bool cpu_has_avx512(void)
{
#ifdef __x86_64__
    return cpu_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
           && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

#endif
