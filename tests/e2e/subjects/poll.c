/* SPDX-License-Identifier: MIT */
/* A thread looks again and again whether another one is done, and takes the lock for it that the other one needs, too. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int done;
static long data[1000];

static void *work(void *arg)
{
    for (int i = 0; i < 1000; i++)
        data[i] = i;
    pthread_mutex_lock(&lock);
    done = 1;
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void)
{
    pthread_t thread;
    int is_done;

    pthread_create(&thread, NULL, work, NULL);
    do {
        pthread_mutex_lock(&lock);
        is_done = done;
        pthread_mutex_unlock(&lock);
    } while (!is_done);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
