/* SPDX-License-Identifier: MIT */
/* Loops in loops. The argument says which: short ones, long ones, or some that are longer than all between them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 400, LONG = 1000000 };
/* Not static: a compiler that sees that nothing is written to an array takes its loads out. */
double a[N][N], b[N][N], c[N][N], v[LONG], w[LONG];
static long sum[1 << 16];

static void multiply(void)
{
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++)
                c[i][j] += a[i][k] * b[k][j];
}

static void add(int times, int n)
{
    for (int t = 0; t < times; t++) {
        for (int i = 0; i < n; i++)
            v[i] += t * w[i];
        __asm__ volatile("" ::: "memory"); /* both loops stay in this order */
    }
}

static void jump(unsigned x, int times)
{
    for (int i = 0; i < times; i++) {
        x = x * 1664525u + 1013904223u;
        if (x & 1 << 20)
            sum[x >> 16]++;
    }
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";

    if (!strcmp(which, "a nest of loops"))
        multiply();
    else if (!strcmp(which, "a nest of long loops"))
        add(400, 100000);
    else if (!strcmp(which, "one long loop after the other"))
        add(40, LONG);
    else if (!strcmp(which, "one loop"))
        add(1, 900000);
    for (int i = 0; !strcmp(which, "few long loops") && i < 10; i++) {
        jump(i, 8 * LONG);
        add(1, LONG);
    }
    printf("%g %g %ld\n", c[1][0], v[7], sum[5]);
    return 0;
}
