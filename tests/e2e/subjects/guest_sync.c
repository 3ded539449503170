/* SPDX-License-Identifier: MIT */
/* Threads of a guest that wait for each other in every way that POSIX and C11 have. Prints how often it did what, a line
 * `EVENT TIMES` each, so that the events of a recording can be compared with it. What depends on the order of threads is counted where it
 * happens. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <threads.h>
#include <time.h>

enum { THREADS = 3, ROUNDS = 40, BLOCK = 3000, LARGE = 1 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, other;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t ready;
static mtx_t c11_lock;
static int may_go, waiting;
static long sum, waits, looks; /* looks: at whether all threads wait */

static void *work(void *unused)
{
    char *block = malloc(BLOCK);

    memset(block, 1, BLOCK);
    pthread_mutex_lock(&lock);
    waiting++;
    while (!may_go) {
        pthread_cond_wait(&changed, &lock);
        waits++;
    }
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        sum += block[i];
        pthread_mutex_unlock(&lock);
        pthread_spin_lock(&spin);
        sum++;
        pthread_spin_unlock(&spin);
    }
    pthread_barrier_wait(&barrier);
    mtx_lock(&c11_lock);
    sum++;
    mtx_unlock(&c11_lock);
    pthread_rwlock_rdlock(&table_lock);
    pthread_rwlock_unlock(&table_lock);
    sem_post(&ready);
    free(block);
    return unused;
}

static int c11_work(void *unused)
{
    (void)unused;
    return 0;
}

static void meet(void)
{
    pthread_t thread[THREADS];
    thrd_t c11;

    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, work, NULL);
    while (!may_go) {
        thrd_sleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        looks++;
        pthread_mutex_lock(&lock);
        may_go = waiting == THREADS;
        if (may_go)
            pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    for (int i = 0; i < THREADS; i++)
        sem_wait(&ready);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    thrd_create(&c11, c11_work, NULL);
    thrd_join(c11, NULL);
}

static void count(const char *event, long times)
{
    printf("%s %ld\n", event, times);
}

int main(void)
{
    struct timespec past = { .tv_sec = 1 };
    uint64_t *pages = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *large = calloc(LARGE / sizeof *large, sizeof *large);

    pthread_barrier_init(&barrier, NULL, THREADS);
    sem_init(&ready, 0, 0);
    pthread_mutex_init(&other, NULL);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    mtx_init(&c11_lock, mtx_plain);
    meet();
    int got = pthread_mutex_trylock(&other), busy = pthread_mutex_trylock(&other);
    int late = pthread_cond_timedwait(&changed, &other, &past);
    pthread_mutex_unlock(&other);
    pthread_rwlock_wrlock(&table_lock);
    pthread_rwlock_unlock(&table_lock);
    for (size_t i = 0; i < LARGE / sizeof *large; i++)
        large[i] = pages[i] = i;
    if (got != 0 || busy != EBUSY || late != ETIMEDOUT || sum != THREADS * (2 * ROUNDS + 1) || large[7] != 7)
        return 1;
    free(large);
    munmap(pages, LARGE);
    count("thread_create", THREADS + 1);
    count("thread_start", THREADS + 1);
    count("thread_join", THREADS + 1);
    count("mutex_init", 2);
    count("mutex_lock", THREADS * (ROUNDS + 2) + looks);
    count("mutex_trylock", 2);
    count("mutex_unlock", THREADS * (ROUNDS + 2) + looks + 1);
    count("rwlock_rdlock", THREADS);
    count("rwlock_wrlock", 1);
    count("rwlock_unlock", THREADS + 1);
    count("spin_lock", THREADS * ROUNDS);
    count("spin_unlock", THREADS * ROUNDS);
    count("cond_wait", waits);
    count("cond_timedwait", 1);
    count("cond_broadcast", 1);
    count("barrier_init", 1);
    count("barrier_wait", THREADS);
    count("sem_init", 1);
    count("sem_wait", THREADS);
    count("sem_post", THREADS);
    return 0;
}
