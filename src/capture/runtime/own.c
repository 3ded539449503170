/* SPDX-License-Identifier: MIT */
/* Functions that compilers call for copies and zeros of large structures. In the runtime these calls must not reach the
 * wrappers in string.c, which write events and need a thread that is set up. The Makefile gives calls of the runtime's
 * other files these names. */
#include <stddef.h>

void *peet_rt_memcpy(void *restrict to, const void *restrict from, size_t n);
void *peet_rt_memset(void *to, int byte, size_t n);

void *peet_rt_memcpy(void *restrict to, const void *restrict from, size_t n)
{
    void *end = to;

    __asm__ volatile("rep movsb" : "+D"(end), "+S"(from), "+c"(n) : : "memory");
    return to;
}

void *peet_rt_memset(void *to, int byte, size_t n)
{
    void *end = to;

    __asm__ volatile("rep stosb" : "+D"(end), "+c"(n) : "a"(byte) : "memory");
    return to;
}
