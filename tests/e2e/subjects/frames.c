/* SPDX-License-Identifier: MIT */
/* Arrays in stack frames, which other functions and another thread fill. `first` and `second` have theirs at about the same address, and fill() gets both by
 * one call each; those of `deep` are at another address each time. The number of stores to each array is CELLS for each fill. */
#include <pthread.h>
#include <stdio.h>

enum { CELLS = 500, ROUNDS = 20, DEPTH = 10 };

__attribute__((noinline)) static void fill(volatile long *cells)
{
    for (int i = 0; i < CELLS; i++)
        cells[i] = i;
}

__attribute__((noinline)) static void pass_on(volatile long *cells)
{
    fill(cells);
    __asm__ volatile("");
}

__attribute__((noinline)) static long first(void)
{
    volatile long cells[CELLS];

    pass_on(cells);
    return cells[1];
}

__attribute__((noinline)) static long second(void)
{
    volatile long others[CELLS];

    pass_on(others);
    return 3 * others[2];
}

__attribute__((noinline)) static long deep(int depth)
{
    volatile long below[CELLS];

    fill(below);
    return depth > 0 ? below[1] + deep(depth - 1) : below[2];
}

static void *work(void *shared)
{
    volatile long private_cells[CELLS];

    fill(shared);
    fill(private_cells);
    return (void *)private_cells[3];
}

int main(void)
{
    volatile long shared[CELLS];
    pthread_t thread;
    void *result;
    long sum = 0;

    fill(shared);
    for (int i = 0; i < ROUNDS; i++)
        sum += first() + second();
    sum += deep(DEPTH - 1);
    pthread_create(&thread, NULL, work, (void *)shared);
    pthread_join(thread, &result);
    printf("%ld %ld\n", sum + shared[5], (long)result);
    return 0;
}
