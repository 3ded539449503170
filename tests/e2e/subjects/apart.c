/* SPDX-License-Identifier: MIT */
/* Built twice, with NAME as the name of its function, and static: two programs at the same addresses that share nothing. */
#include <stdio.h>

enum { INTS = 16384, TIMES = 20 };

static volatile int table[INTS];

__attribute__((noinline)) void NAME(void)
{
    for (int k = 0; k < TIMES; k++)
        for (int i = 0; i < INTS; i++)
            table[i] += i;
}

int main(void)
{
    NAME();
    puts("done");
    return 0;
}
