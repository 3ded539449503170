/* SPDX-License-Identifier: MIT */
/* What the processor can do beyond what its architecture promises. */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdbool.h>

extern bool cpu_force_scalar; /* tests set it: then it can do nothing beyond */

/* Vectors of four 64-bit words, on x86-64 AVX2 and BMI2. Code for them stands beside plain code that does the same. */
static inline bool cpu_has_avx2(void)
{
#ifdef __x86_64__
    return !cpu_force_scalar && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}

#endif
