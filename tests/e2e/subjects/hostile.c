/* SPDX-License-Identifier: MIT */
/* Its variable, its data and its region have names that are markup, formulas, or change a terminal. */
#include <stdio.h>
#include <stdlib.h>

#include "peet/mark.h"

enum { LONGS = 10000, STEP = 8 };

#define REGION "<script>alert(4)</script>\x01\xff"

static long sum(long *p, int n)
{
    long s = 0;

    for (int i = 0; i < n; i++)
        s += p[i * STEP]++;
    return s;
}

long table[LONGS] __asm__("\"=1+1</script><svg onload=alert(2)>,;\"");

int main(void)
{
    long *a = calloc(LONGS, sizeof *a);

    if (!a)
        return 1;
    PEET_NAME_DATA("@<img src=x onerror=alert(3)>\n\x1b[31m,\"=2+2", a, LONGS * sizeof *a);
    PEET_REGION_BEGIN(REGION);
    long s = sum(a, LONGS / STEP) + sum(table, LONGS / STEP);
    PEET_REGION_END(REGION);
    printf("%ld\n", s);
    free(a);
    return 0;
}
