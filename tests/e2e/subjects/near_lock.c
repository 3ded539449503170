/* SPDX-License-Identifier: MIT */
/* A counter in the line of a lock: one thread takes the lock, another one counts. Also locks in a block of the heap, and in a row. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 2000, LINE = 64, NODES = 4 };

#define NEAR __attribute__((section(".near"), used))

struct node {
    long value;
    pthread_mutex_t lock;
};

NEAR __attribute__((aligned(LINE))) pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* place: mutex */
NEAR volatile int counter = 0;
static pthread_mutex_t row[NODES]; /* place: row */
static pthread_barrier_t gate;     /* place: gate */
static struct node *nodes;

static void *takes(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex); /* place: lock */
        pthread_mutex_unlock(&mutex); /* place: unlock */
    }
    return unused;
}

static void *counts(void *unused)
{
    for (int i = 0; i < 10 * ROUNDS; i++)
        counter = counter + 1; /* place: count */
    return unused;
}

static void *shares(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&nodes[2].lock);
        nodes[2].value++;
        pthread_mutex_unlock(&nodes[2].lock);
        pthread_mutex_lock(&row[1]);
        pthread_mutex_unlock(&row[1]);
    }
    pthread_barrier_wait(&gate);
    return unused;
}

static void run(void *(*first)(void *), void *(*second)(void *))
{
    pthread_t thread[2];

    pthread_create(&thread[0], NULL, first, NULL);
    pthread_create(&thread[1], NULL, second, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
    (void)argv;
    if ((uintptr_t)&mutex / LINE != (uintptr_t)&counter / LINE)
        return 1;
    if (argc > 1) {
        nodes = malloc(NODES * sizeof *nodes); /* place: nodes */
        for (int i = 0; i < NODES; i++) {
            pthread_mutex_init(&nodes[i].lock, NULL);
            pthread_mutex_init(&row[i], NULL);
            nodes[i].value = 0;
        }
        pthread_barrier_init(&gate, NULL, 2);
        run(shares, shares);
        return nodes[2].value != 2 * ROUNDS;
    }
    run(takes, counts);
    return counter != 10 * ROUNDS;
}
