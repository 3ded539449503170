/* SPDX-License-Identifier: MIT */
/* Counts signals that ask for its end, up to some time after the first one. Prints the count for each signal.
 * usage: signalled MILLISECONDS */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile int seen[65], signals;
static volatile long work;

static void on_signal(int number)
{
    seen[number]++;
    signals++;
}

static long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    static const int numbers[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
    struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    long after = argc > 1 ? atol(argv[1]) : 0;

    for (int i = 0; i < 4; i++)
        sigaction(numbers[i], &a, NULL);
    puts("begun");
    fflush(stdout);
    while (!signals)
        work++;
    for (long end = now_ms() + after; now_ms() < end;)
        work++;
    for (int i = 0; i < 4; i++)
        printf("%d%c", seen[numbers[i]], i < 3 ? ' ' : '\n');
    return 0;
}
