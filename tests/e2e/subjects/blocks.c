/* SPDX-License-Identifier: MIT */
/* Threads that wait in system calls for each other: a pipe read through stdio, sleeps, poll and select; and once. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/select.h>
#include <unistd.h>

enum { LINES = 100, ROUNDS = 2000 };

static int text[2], polled[2], selected[2];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum, began, read_sum, poll_result, select_result;

static void begin(void)
{
    for (int i = 0; i < 10; i++) { /* other threads arrive during this time */
        pthread_mutex_lock(&lock);
        began += i == 0;
        pthread_mutex_unlock(&lock);
    }
}

static void *read_lines(void *unused)
{
    FILE *f = fdopen(text[0], "r");
    char line[100];

    pthread_once(&once, begin);
    while (fgets(line, sizeof line, f))
        read_sum += atol(line);
    fclose(f);
    return unused;
}

static void *add(void *unused)
{
    pthread_once(&once, begin);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        sum++;
        pthread_mutex_unlock(&lock);
    }
    if (write(polled[1], "x", 1) != 1 || write(selected[1], "x", 1) != 1)
        sum = -1;
    return unused;
}

static void *wait_by_poll(void *unused)
{
    struct pollfd f = { polled[0], POLLIN, 0 };

    poll_result = 10 * poll(&f, 1, 0) + poll(&f, 1, -1);
    return unused;
}

static void *wait_by_select(void *unused)
{
    struct timeval limit = { 0, 1 };
    fd_set set;

    FD_ZERO(&set);
    FD_SET(selected[0], &set);
    select_result = 10 * select(selected[0] + 1, &set, NULL, NULL, &limit);
    FD_SET(selected[0], &set);
    select_result += select(selected[0] + 1, &set, NULL, NULL, NULL);
    return unused;
}

int main(void)
{
    static void *(*const function[])(void *) = { read_lines, add, add, wait_by_poll, wait_by_select };
    enum { THREADS = sizeof function / sizeof *function };
    pthread_t thread[THREADS];
    char line[32];

    if (pipe(text) || pipe(polled) || pipe(selected))
        return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, function[i], NULL);
    for (int i = 0; i < LINES; i++) {
        int n = snprintf(line, sizeof line, "%d\n", i);
        if (write(text[1], line, (size_t)n) != n)
            return 2;
        usleep(20);
    }
    close(text[1]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    printf("%ld %ld %ld %ld %ld\n", sum, began, read_sum, poll_result, select_result);
    return 0;
}
