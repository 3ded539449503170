/* SPDX-License-Identifier: MIT */
/* usage: sync WAY: threads that meet in the way that is asked for, for tests/e2e/runtime.sh. Returns 7. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "peet/mark.h"

enum { ROUNDS = 10 };

static int shared;

static struct timespec soon(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += 30;
    return t;
}

/* Runs a function in two threads. */
static void twice(void *(*function)(void *))
{
    pthread_t thread[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, function, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
}

/* ---- C11 ---- */

static mtx_t plain, timed;
static cnd_t condition;
static once_flag once = ONCE_FLAG_INIT;
static tss_t slot;
static int turns, destroyed;

static void count_once(void)
{
    shared++;
}

static void destroy(void *value)
{
    destroyed += *(int *)value;
}

static int c11_thread(void *argument)
{
    struct timespec until = soon();

    call_once(&once, count_once);
    tss_set(slot, argument);
    mtx_lock(&plain);
    turns++;
    while (turns < 2)
        if (cnd_timedwait(&condition, &plain, &until) != thrd_success)
            break;
    cnd_broadcast(&condition);
    mtx_unlock(&plain);
    if (mtx_timedlock(&timed, &until) == thrd_success)
        mtx_unlock(&timed);
    if (mtx_trylock(&timed) == thrd_success)
        mtx_unlock(&timed);
    return *(int *)tss_get(slot);
}

static int c11(void)
{
    thrd_t thread[2];
    int value[2] = { 3, 4 }, result[2];

    mtx_init(&plain, mtx_plain);
    mtx_init(&timed, mtx_timed | mtx_recursive);
    cnd_init(&condition);
    tss_create(&slot, destroy);
    for (int i = 0; i < 2; i++)
        thrd_create(&thread[i], c11_thread, &value[i]);
    for (int i = 0; i < 2; i++)
        thrd_join(thread[i], &result[i]);
    cnd_destroy(&condition);
    mtx_destroy(&plain);
    mtx_destroy(&timed);
    return shared == 1 && destroyed == 7 ? result[0] + result[1] : 1;
}

static int leaves(void *argument)
{
    thrd_exit(*(int *)argument);
}

static int c11_exit(void)
{
    thrd_t thread;
    int value = 7, result;

    return thrd_create(&thread, leaves, &value) == thrd_success && thrd_join(thread, &result) == thrd_success ? result
                                                                                                              : 1;
}

/* ---- semaphores ---- */

static sem_t unnamed, *named;
static int under_named; /* `shared` is under the other one */

static void *with_semaphores(void *unused)
{
    struct timespec until = soon();

    for (int i = 0; i < ROUNDS; i++) {
        sem_wait(&unnamed);
        shared++;
        sem_post(&unnamed);
        sem_timedwait(named, &until);
        under_named++;
        sem_post(named);
    }
    return unused;
}

static int semaphores(void)
{
    char name[64];

    snprintf(name, sizeof name, "/peet-test-%d", (int)getpid());
    sem_init(&unnamed, 0, 1);
    named = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
    if (named == SEM_FAILED)
        return 7; /* no such thing here */
    twice(with_semaphores);
    int r = sem_trywait(named) == 0 && sem_trywait(named) < 0 && errno == EAGAIN && shared == 2 * ROUNDS
                    && under_named == 2 * ROUNDS
                ? 7
                : 1;
    sem_close(named);
    sem_unlink(name);
    sem_destroy(&unnamed);
    return r;
}

/* ---- locks of several kinds ---- */

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void *with_rwlocks(void *unused)
{
    struct timespec until = soon();
    volatile int seen = 0;

    for (int i = 0; i < ROUNDS; i++) {
        pthread_rwlock_rdlock(&rwlock);
        seen += shared;
        pthread_rwlock_unlock(&rwlock);
        pthread_rwlock_wrlock(&rwlock);
        shared++;
        pthread_rwlock_unlock(&rwlock);
        if (pthread_rwlock_timedwrlock(&rwlock, &until) == 0)
            pthread_rwlock_unlock(&rwlock);
        if (pthread_rwlock_clockrdlock(&rwlock, CLOCK_REALTIME, &until) == 0)
            pthread_rwlock_unlock(&rwlock);
        if (pthread_rwlock_tryrdlock(&rwlock) == 0)
            pthread_rwlock_unlock(&rwlock);
        if (pthread_rwlock_trywrlock(&rwlock) == 0)
            pthread_rwlock_unlock(&rwlock);
    }
    return unused;
}

static int rwlocks(void)
{
    twice(with_rwlocks);
    return shared == 2 * ROUNDS ? 7 : 1;
}

static pthread_spinlock_t spin;

static void *with_spin_locks(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_spin_lock(&spin);
        shared++;
        pthread_spin_unlock(&spin);
        if (pthread_spin_trylock(&spin) == 0)
            pthread_spin_unlock(&spin);
    }
    return unused;
}

static int spin_locks(void)
{
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    twice(with_spin_locks);
    pthread_spin_destroy(&spin);
    return shared == 2 * ROUNDS ? 7 : 1;
}

static pthread_barrier_t barrier;
static _Atomic int arrived;

static void *with_barriers(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        arrived++;
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            shared++;
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

static int barriers(void)
{
    pthread_barrier_init(&barrier, NULL, 2);
    twice(with_barriers);
    pthread_barrier_destroy(&barrier);
    return shared == ROUNDS && arrived == 2 * ROUNDS ? 7 : 1;
}

/* ---- mutexes and conditions with limits; one that is cancelled while it waits ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void *with_limits(void *unused)
{
    struct timespec until = soon(), now = { 1, 0 };

    if (pthread_mutex_timedlock(&mutex, &until) == 0) {
        shared++;
        pthread_cond_timedwait(&cond, &mutex, &now);
        pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &now);
        pthread_mutex_unlock(&mutex);
    }
    if (pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, &until) == 0) {
        shared++;
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static int limits(void)
{
    pthread_t thread;
    struct timespec until = soon();

    twice(with_limits);
    pthread_create(&thread, NULL, with_limits, NULL);
    return pthread_clockjoin_np(thread, NULL, CLOCK_REALTIME, &until) == 0 && shared == 6 ? 7 : 1;
}

static void give_back(void *unused)
{
    (void)unused;
    shared++;
    pthread_mutex_unlock(&mutex);
}

static void *waits(void *unused)
{
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(give_back, NULL);
    arrived = 1;
    for (;;)
        pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(0);
    return unused;
}

static int cancelled(void)
{
    pthread_t thread;
    void *value;

    pthread_create(&thread, NULL, waits, NULL);
    for (int there = 0; !there; sched_yield()) {
        pthread_mutex_lock(&mutex);
        there = arrived;
        pthread_mutex_unlock(&mutex);
    }
    pthread_cancel(thread);
    pthread_join(thread, &value);
    return value == PTHREAD_CANCELED && shared == 1 ? 7 : 1;
}

/* ---- what the program does by itself, and says so ---- */

static _Atomic int own_lock, flag;

static void *with_own_lock(void *unused)
{
    while (!flag)
        sched_yield();
    PEET_SPIN_WAIT(&flag);
    for (int i = 0; i < ROUNDS; i++) {
        while (atomic_exchange(&own_lock, 1))
            sched_yield();
        PEET_SPIN_LOCK(&own_lock);
        shared++;
        PEET_SPIN_UNLOCK(&own_lock);
        own_lock = 0;
        int busy = atomic_exchange(&own_lock, 1);
        PEET_SPIN_TRYLOCK(&own_lock, busy);
        if (!busy) {
            PEET_SPIN_UNLOCK(&own_lock);
            own_lock = 0;
        }
    }
    return unused;
}

static int own_locks(void)
{
    pthread_t thread[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, with_own_lock, NULL);
    flag = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    return shared == 2 * ROUNDS ? 7 : 1;
}

static void *nothing(void *unused)
{
    return unused;
}

static int detached(void)
{
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int r = pthread_create(&thread, &attr, nothing, NULL);
    pthread_attr_destroy(&attr);
    return r ? 1 : 7;
}

static const struct {
    const char *name;
    int (*run)(void);
} ways[] = {
    { "c11", c11 },           { "c11_exit", c11_exit },     { "semaphores", semaphores },
    { "rwlocks", rwlocks },   { "spin_locks", spin_locks }, { "barriers", barriers },
    { "limits", limits },     { "cancelled", cancelled },   { "own_locks", own_locks },
    { "detached", detached },
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(argv[1], ways[i].name))
            return ways[i].run();
    return 2;
}
