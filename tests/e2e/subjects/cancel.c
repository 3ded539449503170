/* SPDX-License-Identifier: MIT */
/* Threads that are cancelled where they wait, and one that gets a signal. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int cleaned, handled, file[2];

static void clean(void *held)
{
    cleaned++;
    if (held)
        pthread_mutex_unlock(held);
}

static void handle(int number)
{
    handled += number;
}

#define BODY(name, held, ...) \
    static void *name(void *value) \
    { \
        pthread_cleanup_push(clean, held); \
        __VA_ARGS__; \
        pthread_cleanup_pop(0); \
        return value; \
    }

BODY(in_condition, &lock, pthread_mutex_lock(&lock); for (;;) pthread_cond_wait(&condition, &lock))
BODY(in_semaphore, NULL, sem_wait(&semaphore))
BODY(in_sleep, NULL, for (;;) usleep(10))
BODY(in_read, NULL, char c; while (read(file[0], &c, 1) != 0) cleaned = -100)
BODY(at_work, NULL, for (;;) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    pthread_testcancel();
})

int main(void)
{
    static void *(*const function[])(void *) = { in_condition, in_semaphore, in_sleep, in_read, at_work };
    enum { THREADS = sizeof function / sizeof *function };
    pthread_t thread[THREADS];
    int cancelled = 0;
    void *value;

    if (pipe(file))
        return 1;
    sem_init(&semaphore, 0, 0);
    signal(SIGUSR1, handle);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, function[i], NULL);
    usleep(500);
    pthread_kill(thread[4], SIGUSR1);
    usleep(100);
    for (int i = 0; i < THREADS; i++)
        pthread_cancel(thread[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &value);
        cancelled += value == PTHREAD_CANCELED;
    }
    pthread_mutex_lock(&lock); /* its holder has released it */
    printf("%d %d %d\n", cancelled, cleaned, handled);
    return 0;
}
