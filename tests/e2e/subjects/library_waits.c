/* SPDX-License-Identifier: MIT */
/* Waits in the C library for a call of the program, each on a separate line. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { WORK = 200000 };
static int ends[2];
static volatile long work;

static void *write_late(void *unused)
{
    for (int i = 0; i < WORK; i++)
        work++;
    FILE *f = fdopen(ends[1], "w");
    fputs("hello\n", f);
    fflush(f);
    return unused;
}

int main(void)
{
    pthread_t t;
    char line[80];

    if (pipe(ends) < 0)
        return 1;
    FILE *f = fdopen(ends[0], "r");
    pthread_create(&t, NULL, write_late, NULL);
    if (!fgets(line, sizeof line, f)) /* waits */
        return 1;
    pthread_join(t, NULL);
    usleep(1000);     /* waits */
    poll(NULL, 0, 2); /* waits */
    return 0;
}
