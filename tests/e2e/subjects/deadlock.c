/* SPDX-License-Identifier: MIT */
/* Two threads take two locks in different orders, and each waits for the other one. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static pthread_barrier_t both;

static void *take(void *arg)
{
    int first = arg != NULL;

    pthread_mutex_lock(&lock[first]);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&lock[1 - first]);
    return NULL;
}

int main(void)
{
    pthread_t other;

    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&other, NULL, take, &other);
    take(NULL);
    puts("never");
    return 0;
}
