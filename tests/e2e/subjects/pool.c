/* SPDX-License-Identifier: MIT */
/* Threads that serve for ever: one waits for a condition or a semaphore, one works, one sleeps and one wants a lock when the first one leaves, which has
 * that lock. No thread waits for them. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { JOBS = 6, WORDS = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, kept = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t jobs;
static int job;
static volatile long data[WORDS];

static void do_job(void)
{
    for (int i = 0; i < WORDS; i++)
        data[i]++;
}

static void *on_condition(void *arg)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!job)
            pthread_cond_wait(&changed, &lock);
        job--;
        pthread_mutex_unlock(&lock);
        do_job();
    }
    return arg;
}

static void *on_semaphore(void *arg)
{
    for (;;) {
        sem_wait(&jobs);
        do_job();
    }
    return arg;
}

static void *busy(void *arg)
{
    for (;;)
        do_job();
    return arg;
}

static void *asleep(void *arg)
{
    for (;;)
        usleep(100);
    return arg;
}

static void *on_lock(void *arg)
{
    pthread_mutex_lock(&kept);
    return arg;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "condition";
    void *(*serve)(void *) = !strcmp(how, "semaphore") ? on_semaphore
                             : !strcmp(how, "busy")    ? busy
                             : !strcmp(how, "asleep")  ? asleep
                             : !strcmp(how, "lock")    ? on_lock
                                                       : on_condition;
    pthread_t thread;

    sem_init(&jobs, 0, 0);
    pthread_mutex_lock(&kept);
    for (int i = 0; i < 3; i++) {
        pthread_create(&thread, NULL, serve, NULL);
        pthread_detach(thread);
    }
    for (int i = 0; i < JOBS; i++) {
        pthread_mutex_lock(&lock);
        job++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
        sem_post(&jobs);
        for (volatile int k = 0; k < 10000; k++)
            ;
    }
    printf("done\n");
    return 5;
}
