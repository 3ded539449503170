/* SPDX-License-Identifier: MIT */
/* Parallel programs whose work and span are known: orders KIND THREADS INSTRUCTIONS. A unit of work is a loop of so
 * many trips.
 *
 * join      thread i does i + 1 units                                            work T (T + 1) / 2, span T tree
 * each thread does a unit, then half of them, a quarter …, by barriers  work 2 T - 1, span 1 + log2 T pipeline  each
 * thread does ITEMS units, the k-th after the k-th of the thread before it, which says so by a condition work T
 * ITEMS, span T + ITEMS - 1 rounds    ITEMS rounds of 1 to T units, with a barrier made of a condition      work ITEMS
 * T (T + 1) / 2, span ITEMS T queue     one thread makes ITEMS items, another one uses them, PLACES between them; a
 * unit for each work 2 ITEMS, span ITEMS + 1 gate      all but the first thread wait until that has done a unit, and
 * then do one  work T, span 2 count     one thread waits until all others have done i units, and then does one    work
 * T (T - 1) / 2 + 1, span T
 *
 * With a fourth argument, threads begin their first item one after the other, by sleeping: then no wait of a pipeline
 * is needed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 64, ITEMS = 20, PLACES = 2 };

static long threads, trips;
static volatile long sink[MOST][8];
static pthread_mutex_t mutex[MOST];
static pthread_cond_t condition[MOST];
static pthread_barrier_t barrier;
static int done[MOST];
static int arrived, round_number; /* of a barrier made of a condition */
static int items, is_open, left;

static __attribute__((noinline)) void work(long me, long units)
{
    for (long i = 0; i < units * trips; i++)
        sink[me][0] += i;
}

static void join(long me)
{
    work(me, me + 1);
}

static void tree(long me)
{
    work(me, 1);
    for (long step = 1; step < threads; step *= 2) {
        pthread_barrier_wait(&barrier);
        if (me % (2 * step) == 0)
            work(me, 1);
    }
}

static void pipeline(long me)
{
    for (int item = 1; item <= ITEMS; item++) {
        if (me) {
            pthread_mutex_lock(&mutex[me]);
            while (done[me] < item)
                pthread_cond_wait(&condition[me], &mutex[me]);
            pthread_mutex_unlock(&mutex[me]);
        }
        work(me, 1);
        if (me + 1 < threads) {
            pthread_mutex_lock(&mutex[me + 1]);
            done[me + 1] = item;
            pthread_cond_signal(&condition[me + 1]);
            pthread_mutex_unlock(&mutex[me + 1]);
        }
    }
}

static void meet(void)
{
    pthread_mutex_lock(&mutex[0]);
    int mine = round_number;
    if (++arrived == threads) {
        arrived = 0;
        round_number++;
        pthread_cond_broadcast(&condition[0]);
    } else {
        while (round_number == mine)
            pthread_cond_wait(&condition[0], &mutex[0]);
    }
    pthread_mutex_unlock(&mutex[0]);
}

static void rounds(long me)
{
    for (int item = 0; item < ITEMS; item++) {
        work(me, 1 + (me + item) % threads);
        meet();
    }
}

static void queue(long me)
{
    for (int item = 0; me < 2 && item < ITEMS; item++) {
        if (me == 0)
            work(me, 1);
        pthread_mutex_lock(&mutex[0]);
        while (me == 0 ? items == PLACES : items == 0)
            pthread_cond_wait(&condition[me], &mutex[0]);
        items += me == 0 ? 1 : -1;
        pthread_mutex_unlock(&mutex[0]);
        pthread_cond_signal(&condition[1 - me]);
        if (me == 1)
            work(me, 1);
    }
}

static void gate(long me)
{
    if (me == 0)
        work(me, 1);
    pthread_mutex_lock(&mutex[0]);
    if (me == 0) {
        is_open = 1;
        pthread_cond_broadcast(&condition[0]);
    }
    while (!is_open)
        pthread_cond_wait(&condition[0], &mutex[0]);
    pthread_mutex_unlock(&mutex[0]);
    if (me)
        work(me, 1);
}

static void count(long me)
{
    if (me) {
        work(me, me);
        pthread_mutex_lock(&mutex[0]);
        if (--left == 0)
            pthread_cond_signal(&condition[0]);
        pthread_mutex_unlock(&mutex[0]);
    } else {
        pthread_mutex_lock(&mutex[0]);
        while (left > 0)
            pthread_cond_wait(&condition[0], &mutex[0]);
        pthread_mutex_unlock(&mutex[0]);
        work(me, 1);
    }
}

static const struct kind {
    const char *name;
    void (*run)(long me);
} KINDS[] = {
    { "join", join },   { "tree", tree }, { "pipeline", pipeline }, { "rounds", rounds },
    { "queue", queue }, { "gate", gate }, { "count", count },
};
static const struct kind *kind;
static int sleeps;

static void *run(void *argument)
{
    if (sleeps)
        usleep((useconds_t)(50000 * (long)argument));
    kind->run((long)argument);
    return NULL;
}

int main(int arguments, char **argument)
{
    pthread_t thread[MOST];

    for (size_t i = 0; arguments > 3 && i < sizeof KINDS / sizeof *KINDS; i++)
        kind = strcmp(KINDS[i].name, argument[1]) == 0 ? &KINDS[i] : kind;
    if (!kind)
        return 2;
    threads = atol(argument[2]);
    trips = atol(argument[3]);
    sleeps = arguments > 4;
    left = (int)threads - 1;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int i = 0; i < MOST; i++) {
        pthread_mutex_init(&mutex[i], NULL);
        pthread_cond_init(&condition[i], NULL);
    }
    for (long i = 0; i < threads; i++)
        pthread_create(&thread[i], NULL, run, (void *)i);
    for (long i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    printf("%ld\n", sink[0][0]);
    return 0;
}
