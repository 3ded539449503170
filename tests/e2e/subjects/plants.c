/* SPDX-License-Identifier: MIT */
/* A parallel program in which slowdowns can be planted, by -DPLANT=N: 0 none; 1 a function computes more; 2 a search is linear; 3 a matrix is
 * walked by columns; 4 elements have become larger; 5 rows lie in the same sets of a cache; 6 counters of threads share lines; 7 a lock is
 * held longer; 8 one thread gets most of the work between barriers; 9 threads write a shared sum instead of private ones. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef PLANT
#define PLANT 0
#endif
enum { THREADS = 4, ROUNDS = 6, SIDE = 128, ITEMS = 512, KEYS = 256, ROWS = 16 };

struct item {
    long value;
#if PLANT == 4
    long unused[15];
#endif
};
struct counter {
    _Alignas(PLANT == 6 ? 8 : 64) volatile long count;
};
struct row {
    long cell[8];
#if PLANT == 5
    char unused[65536 - 64];
#else
    char unused[128];
#endif
};

long matrix[THREADS][SIDE][SIDE];
struct item item[THREADS][ITEMS];
static _Alignas(64) struct counter counter[THREADS];
static int key[KEYS];
struct row row[THREADS][ROWS];
static _Alignas(64) volatile long shared_sum;
static _Alignas(64) volatile long protected_value;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

/* Functions that are called each time, in all variants. */
#define PART __attribute__((noinline)) static
#define KEEP(value) __asm__ volatile("" : "+r"(value) : : "memory")

PART long mix(long x)
{
    for (int i = 0; i < (PLANT == 1 ? 60 : 10); i++)
        x = x * 31 + (x >> 7);
    KEEP(x);
    return x;
}
PART int find(int wanted)
{
#if PLANT == 2
    int low = 0;
    while (low < KEYS - 1 && key[low] != wanted)
        low++;
#else
    int low = 0, high = KEYS;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (key[middle] <= wanted)
            low = middle;
        else
            high = middle;
    }
#endif
    KEEP(low);
    return low;
}
PART long walk(int me)
{
    long sum = 0;
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            sum += PLANT == 3 ? matrix[me][j][i] : matrix[me][i][j];
    KEEP(sum);
    return sum;
}
PART long visit(int me)
{
    long sum = 0;
    for (int i = 0; i < ITEMS; i++)
        sum += item[me][i].value;
    KEEP(sum);
    return sum;
}
PART long columns(int me)
{
    long sum = 0;
    for (int k = 0; k < 40; k++)
        for (int i = 0; i < ROWS; i++)
            sum += row[me][i].cell[k % 8];
    KEEP(sum);
    return sum;
}
PART void count(int me)
{
    for (int i = 0; i < 200; i++)
        counter[me].count++;
}
PART void protect(int me)
{
    for (int i = 0; i < 8; i++) {
        pthread_mutex_lock(&gate);
        for (int k = 0; k < (PLANT == 7 ? 400 : 4); k++)
            protected_value = protected_value + me;
        pthread_mutex_unlock(&gate);
    }
}
PART long sum_up(int me)
{
    long mine = 0;
    for (int i = 0; i < 300; i++)
#if PLANT == 9
        shared_sum += i * me;
#else
        mine += i * me;
#endif
    KEEP(mine);
    return mine;
}
PART long balance(int me, int round)
{
    long sum = 0;
    int work = PLANT != 8 ? 1000 : me == round % THREADS ? 4000 : 0;
    for (int i = 0; i < work; i++)
        sum += i ^ (sum << 1);
    KEEP(sum);
    return sum;
}

static void *run(void *argument)
{
    int me = (int)(long)argument;
    long sum = 0;

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 40; i++)
            sum += mix(i) + find(i * 5 % KEYS);
        sum += walk(me) + visit(me) + columns(me) + sum_up(me);
        count(me);
        protect(me);
        pthread_barrier_wait(&barrier);
        sum += balance(me, round);
        pthread_barrier_wait(&barrier);
    }
    return (void *)sum;
}

int main(void)
{
    pthread_t thread[THREADS];

    for (int i = 0; i < KEYS; i++)
        key[i] = i;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 1; i < THREADS; i++)
        pthread_create(&thread[i], NULL, run, (void *)i);
    run(NULL);
    for (int i = 1; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
