/* SPDX-License-Identifier: MIT */
/* Which thread gets a lock first? The main thread holds it until all others wait for it, which they reach in another order than that of
 * their numbers; each prints its number when it has it. With an argument, ROUNDS times by THREADS threads: order.c ROUNDS THREADS. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sink;
static unsigned threads = 4;
static char line[MOST * 4 + 1];
static int length;

static void work(unsigned long turns)
{
    for (unsigned long i = 0; i < turns; i++)
        sink += i;
}

static void *take(void *arg)
{
    unsigned number = (unsigned)(size_t)arg;

    work(2000 + 2000ul * (number * 3 % (threads + 1))); /* of four: the second, fourth, first and third */
    pthread_mutex_lock(&lock);
    length += snprintf(line + length, sizeof line - (size_t)length, " %u", number);
    work(100);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t thread[MOST];

    threads = argc > 2 ? (unsigned)atoi(argv[2]) : 4;
    if (threads > MOST)
        return 2;
    for (int r = 0; r < rounds; r++) {
        length = 0;
        pthread_mutex_lock(&lock);
        for (unsigned i = 0; i < threads; i++)
            pthread_create(&thread[i], NULL, take, (void *)(size_t)(i + 1));
        work(4000ul * (threads + 2));
        pthread_mutex_unlock(&lock);
        for (unsigned i = 0; i < threads; i++)
            pthread_join(thread[i], NULL);
        puts(line + 1);
    }
    return 0;
}
