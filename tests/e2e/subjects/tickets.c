/* SPDX-License-Identifier: MIT */
/* Threads that fill a table: each its own part (own), the thread that draws a number under a lock (lock), or without one (race). What a thread does
 * depends on the interleaving in the last two. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 3, ROUNDS = 200 };

static int number, table[THREADS * ROUNDS], own[THREADS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *way = "own";

static int draw_locked(void)
{
    pthread_mutex_lock(&lock);
    int mine = number++;
    pthread_mutex_unlock(&lock);
    return mine;
}

static void *fill(void *argument)
{
    int me = *(int *)argument;

    for (int i = 0; i < ROUNDS; i++) {
        int mine = me * ROUNDS + i;
        if (!strcmp(way, "lock"))
            mine = draw_locked();
        else if (!strcmp(way, "race"))
            mine = number++;
        table[mine % (THREADS * ROUNDS)]++;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];

    way = argc > 1 ? argv[1] : way;
    for (int i = 0; i < THREADS; i++) {
        own[i] = i;
        pthread_create(&thread[i], NULL, fill, &own[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
