/* SPDX-License-Identifier: MIT */
/* Functions that call themselves, and each other, with work in each call. */
#define APART __attribute__((noipa))

static volatile long cell[4096];

static void work(long from)
{
    for (long i = 0; i < 500; i++)
        cell[(from + i * 8) % 4096]++;
}

APART static long deep(long n)
{
    work(n);
    return n ? deep(n - 1) + n : 0;
}

APART static long odd(long n);

APART static long even(long n)
{
    work(n);
    return n ? odd(n - 1) + 1 : 0;
}

APART static long odd(long n)
{
    work(n + 7);
    return n ? even(n - 1) + 2 : 0;
}

int main(void)
{
    return deep(20) + even(21) == 0;
}
