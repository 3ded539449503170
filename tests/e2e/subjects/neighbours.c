/* SPDX-License-Identifier: MIT */
/* Threads that share lines, but no bytes: neighbours THREADS ROUNDS. Each thread adds to its own element of an array, ROUNDS times; the
 * elements are of the type TYPE, and they lie one after the other. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 16 };

static volatile TYPE element[MOST_THREADS] __attribute__((aligned(4096)));
static pthread_barrier_t begin;
static long rounds;

static void *add(void *number)
{
    long mine = (long)number;

    pthread_barrier_wait(&begin);
    for (long i = 0; i < rounds; i++)
        element[mine] += 1;
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc == 3 ? atoi(argv[1]) : 0;
    pthread_t thread[MOST_THREADS];

    if (threads < 1 || threads > MOST_THREADS) {
        fprintf(stderr, "usage: %s THREADS ROUNDS\n", argv[0]);
        return 2;
    }
    rounds = atol(argv[2]);
    pthread_barrier_init(&begin, NULL, (unsigned)threads);
    for (long i = 1; i < threads; i++)
        pthread_create(&thread[i], NULL, add, (void *)i);
    add(0);
    for (int i = 1; i < threads; i++)
        pthread_join(thread[i], NULL);
    return element[0] == (TYPE)rounds ? 0 : 1;
}
