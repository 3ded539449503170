/* SPDX-License-Identifier: MIT */
/* Moves the stack pointer all the time: pushes arguments between loads, calls, recurs, returns, and has arrays of any length. Fills
 * many buffers while it does, so that these end in the middle of all that. Prints a number that is the same with every compiler. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noipa))

static uint64_t table[4096];

/* Arguments from the seventh on are on the stack. */
APART static uint64_t many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h,
                           uint64_t i, uint64_t j)
{
    return a + b + c + d + e + f + g * 3 + h * 5 + i * 7 + (j ^ table[j & 4095]);
}

/* Each argument is pushed from a separate place, so that slots are written between pushes. */
APART static uint64_t push(uint64_t *const p[8], unsigned n)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < n; i++) {
        if (sum & 1)
            table[sum & 4095]++;
        sum += many(1, 2, 3, 4, 5, *p[0], *p[(sum ^ i) & 7], *p[i & 7], *p[(i >> 1) & 7], *p[(i >> 2) & 7]);
    }
    return sum;
}

APART static uint64_t recur(unsigned depth, uint64_t x)
{
    uint64_t own[4] = { x, x + 1, x * 3, depth };

    if (depth == 0)
        return own[x & 3] + table[x & 4095];
    x = recur(depth - 1, own[x & 3]);
    if (x & 1)
        x += recur(depth / 2, x >> 1) + own[2];
    return x + own[depth & 3];
}

APART static uint64_t arrays(unsigned n, uint64_t x)
{
    for (unsigned i = 0; i < n; i++) {
        uint64_t room[1 + (x & 15)];
        for (unsigned k = 0; k <= (x & 15); k++)
            room[k] = table[(x + k) & 4095] + k;
        x = x * 5 + room[x & 7 & (x & 15)];
    }
    return x;
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
    uint64_t *p[8], sum = 0;

    for (unsigned i = 0; i < 4096; i++)
        table[i] = i * 0x9e3779b97f4a7c15u;
    for (unsigned i = 0; i < 8; i++)
        p[i] = &table[i * 511];
    for (unsigned i = 0; i < rounds; i++) {
        sum += push(p, 100);
        sum += recur(12, sum);
        sum += arrays(8, sum);
    }
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
