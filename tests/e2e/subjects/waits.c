/* SPDX-License-Identifier: MIT */
/* All that threads can wait for, a little of each: conditions with and without a limit, semaphores, locks for many readers, attempts
 * that do not wait, C11's kind, thread-local variables with errno. Prints what came of it; the order of threads does not matter. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

enum { THREADS = 4, ROUNDS = 50 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t many = PTHREAD_RWLOCK_INITIALIZER;
static sem_t items, room;
static mtx_t c11;
static cnd_t c11_changed;
static int queue, made, used, turn, read_sum, tries, finished;
static _Thread_local int own;

static void produce_and_use(int number)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (number % 2) {
            sem_wait(&room);
            pthread_mutex_lock(&lock);
            queue++;
            made++;
            pthread_mutex_unlock(&lock);
            sem_post(&items);
        } else {
            sem_wait(&items);
            pthread_mutex_lock(&lock);
            queue--;
            used++;
            pthread_mutex_unlock(&lock);
            sem_post(&room);
        }
    }
}

static void take_turns(int number)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        while (turn % THREADS != number)
            pthread_cond_wait(&changed, &lock);
        turn++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
}

static void read_and_write(int number)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 10 == number) {
            pthread_rwlock_wrlock(&many);
            read_sum++;
        } else {
            pthread_rwlock_rdlock(&many);
        }
        pthread_rwlock_unlock(&many);
    }
}

static int try_often(void *arg)
{
    int number = (int)(size_t)arg;

    own = number;
    errno = number;
    for (int i = 0; i < ROUNDS;) {
        if (pthread_mutex_trylock(&lock) == 0) {
            tries++;
            i++;
            pthread_mutex_unlock(&lock);
        } else {
            thrd_yield();
        }
    }
    mtx_lock(&c11);
    finished++;
    cnd_signal(&c11_changed);
    mtx_unlock(&c11);
    return own == number && errno == number ? 0 : 1;
}

static void *work(void *arg)
{
    int number = (int)(size_t)arg;

    produce_and_use(number);
    take_turns(number);
    read_and_write(number);
    return arg;
}

int main(void)
{
    pthread_t thread[THREADS];
    thrd_t other[THREADS];
    size_t sum = 0;
    int wrong = 0;

    sem_init(&items, 0, 0);
    sem_init(&room, 0, 3);
    mtx_init(&c11, mtx_plain);
    cnd_init(&c11_changed);
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *value;
        pthread_join(thread[i], &value);
        sum += (size_t)value;
    }
    for (size_t i = 0; i < THREADS; i++)
        thrd_create(&other[i], try_often, (void *)i);
    mtx_lock(&c11);
    while (finished < THREADS)
        cnd_wait(&c11_changed, &c11);
    mtx_unlock(&c11);
    for (int i = 0; i < THREADS; i++) {
        int value;
        thrd_join(other[i], &value);
        wrong += value;
    }
    pthread_mutex_lock(&lock); /* no thread will signal it */
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 10000000;
    soon.tv_sec += soon.tv_nsec / 1000000000;
    soon.tv_nsec %= 1000000000;
    int r = pthread_cond_timedwait(&changed, &lock, &soon);
    pthread_mutex_unlock(&lock);
    printf("made %d, used %d, left %d, turns %d, joined %zu, written %d, tries %d, wrong %d, %s\n", made, used, queue, turn,
           sum, read_sum, tries, wrong, r == ETIMEDOUT ? "timed out" : "not timed out");
    return 0;
}
