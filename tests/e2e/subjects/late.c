/* SPDX-License-Identifier: MIT */
/* A thread allocates two blocks after much work; another uses them. Only a lock orders the two, so that the replay has the user first. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CELLS = 1 << 14, WORK = 1000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long *table, *index_of, sum;
static volatile long spins;

static void *__attribute__((noinline)) get_memory(size_t bytes)
{
    void *memory = malloc(bytes);

    if (!memory)
        abort();
    return memory;
}

static void *make(void *unused)
{
    while (spins < WORK)
        spins++;
    pthread_mutex_lock(&lock);
    index_of = get_memory(CELLS * sizeof *index_of);
    table = calloc(CELLS, sizeof *table);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void)
{
    pthread_t maker;
    long *cells = NULL;

    pthread_create(&maker, NULL, make, NULL);
    while (!cells) {
        usleep(1000);
        pthread_mutex_lock(&lock);
        cells = table;
        pthread_mutex_unlock(&lock);
    }
    for (int i = 0; i < CELLS; i++)
        index_of[i] = CELLS - 1 - i;
    for (int i = 0; i < CELLS; i++)
        sum += ++table[index_of[i]];
    pthread_join(maker, NULL);
    printf("%ld\n", sum);
    return 0;
}
