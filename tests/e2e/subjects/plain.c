/* SPDX-License-Identifier: MIT */
/* Calls, a switch, recursion and loops, as often as the argument says. Compiled with -DFAR, a part stands in a separate file. */
#include <stdio.h>
#include <stdlib.h>

int far_away(int n);
#ifdef FAR
int far_away(int n)
{
    return n * 7 % 13;
}
#else
static __attribute__((noinline)) int choose(int n, int *sum)
{
    switch (n % 11) {
    case 0: return *sum + 1;
    case 1: return *sum * 3;
    case 2: return *sum ^ n;
    case 3: return *sum - n;
    case 4: *sum += 2; return 5;
    case 5: return n << 2;
    case 6: *sum ^= 9; return 1;
    default: return *sum;
    }
}

static __attribute__((noinline)) int climb(int n)
{
    return n <= 1 ? 1 : climb(n - 1) + climb(n - 2);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1, sum = 0;
    static int row[64];

    for (int i = 0; i < rounds; i++) {
        sum += choose(i, &sum) + climb(i % 7);
        for (int k = 0; k < 64; k++)
            row[k] = (row[k] + sum) & 0xffff;
#ifdef CALLS_FAR
        sum += far_away(sum & 255);
#endif
        sum = (sum + row[i % 64]) & 0xffffff;
    }
    printf("%d\n", sum);
    return 0;
}
#endif
