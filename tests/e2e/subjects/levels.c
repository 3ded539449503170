/* SPDX-License-Identifier: MIT */
/* Threads that do the same each time: loops of several kinds, calls, recursion, locks, regions, functions of the file's own.
 * Usage: levels THREADS */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "peet/mark.h"

enum { SIZE = 2000, ROUNDS = 5, STACK = 1 << 18 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;
/* Memory of each thread, at places that do not depend on the order of threads. */
static long rows[16][SIZE];
static _Alignas(4096) char stack[16][STACK];

static __attribute__((noinline)) long tree(long n)
{
    return n < 2 ? n : tree(n - 1) + tree(n - 2);
}

static __attribute__((noinline)) void fill(long *row, long seed)
{
    for (long i = 0; i < SIZE; i++)
        row[i] = seed + i;
}

static __attribute__((noinline)) long chase(const long *row)
{
    long sum = 0;
    for (long i = 1; i < SIZE; i = i * 3 + row[i] % 2)
        sum += row[i] * i;
    return sum;
}

static __attribute__((noinline)) long solve_row(long *row, long seed)
{
    long local[4] = { seed, seed + 1, seed + 2, seed + 3 };
    fill(row, seed);
    for (long i = 0; i < SIZE; i++)
        local[i % 4] += row[i];
    return chase(row) + local[0] + local[seed % 4];
}

static void *work(void *argument)
{
    long number = *(long *)argument, sum = 0, *row = rows[number];

    for (long i = 0; i < ROUNDS; i++) {
        sum += tree(5 + i);
        PEET_REGION_BEGIN("solve");
        sum += solve_row(row, number * 10 + i);
        PEET_REGION_BEGIN("inner");
        sum += tree(3);
        PEET_REGION_END("inner");
        PEET_REGION_END("solve");
        pthread_mutex_lock(&lock);
        total += sum;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long threads = argc > 1 ? atol(argv[1]) : 1, *number = malloc(16 * sizeof *number);
    pthread_t thread[16];

    for (long i = 0; i < threads; i++)
        number[i] = i;
    for (long i = 1; i < threads; i++) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, stack[i], STACK);
        pthread_create(&thread[i], &attributes, work, &number[i]);
    }
    work(&number[0]);
    for (long i = 1; i < threads; i++)
        pthread_join(thread[i], NULL);
    printf("%ld\n", total);
    free(number);
    return 0;
}
