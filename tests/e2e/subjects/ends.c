/* SPDX-License-Identifier: MIT */
/* usage: ends THREADS ROUNDS [FILE [CRASH]]
 *        ends fork CHILDREN ROUNDS FILE
 * Threads, or processes, that do ROUNDS of the same work, each on separate data, and say in FILE how far they are: thread i counts
 * its rounds in word 8 * i of it; word 504 is the number of the process, word 505 is 1 when all have ended. FILE is at PLACE in
 * the program's memory, so that the counting can be found in a trace: once a round, after STEPS + 1 updates and loads.
 * With CRASH, that thread refers to address 16 after half of its rounds, and the others wait for it. Ends with 0. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACE ((void *)0x200000000000)
enum { STEPS = 1000, MOST = 63, APART = 8, PROCESS = 504, DONE = 505, WORDS = 512 };

static volatile uint64_t *counter;
static uint64_t rounds;
static int crash = -1;
static volatile uint64_t data[MOST + 1][STEPS];

static void *work(void *arg)
{
    int id = (int)(intptr_t)arg;

    for (uint64_t r = 1; r <= rounds; r++) {
        for (int k = 0; k < STEPS; k++)
            data[id][k] += r;
        if (id == crash && r == rounds / 2)
            *(volatile int *)16 = 1;
        counter[APART * (id % MOST)] = r;
    }
    while (crash >= 0)
        pause();
    return NULL;
}

static void open_counter(const char *path)
{
    static uint64_t own[WORDS];
    int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;

    counter = own;
    if (fd < 0 || ftruncate(fd, sizeof own) < 0)
        return;
    void *p = mmap(PLACE, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
    if (p != PLACE)
        exit(3);
    counter = p;
    close(fd);
}

static int children(int n)
{
    for (int i = 0; i < n; i++) {
        pid_t child = fork();
        if (child == 0) {
            work((void *)(intptr_t)(i % MOST));
            _exit(i % 8);
        }
        if (child < 0)
            return 3;
    }
    for (int status, i = 0; i < n; i++)
        if (wait(&status) < 0)
            return 3;
    return 0;
}

int main(int argc, char **argv)
{
    static pthread_t thread[1024];
    int is_fork = argc == 5 && !strcmp(argv[1], "fork");

    if (argc < 3)
        return 2;
    int n = (int)strtol(argv[1 + is_fork], NULL, 0);
    rounds = strtoull(argv[2 + is_fork], NULL, 0);
    open_counter(argc > 3 + is_fork ? argv[3 + is_fork] : NULL);
    if (argc > 4 && !is_fork)
        crash = (int)strtol(argv[4], NULL, 0);
    counter[PROCESS] = (uint64_t)getpid();
    if (is_fork)
        return children(n);
    for (int i = 1; i < n; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)(intptr_t)(i % (MOST + 1))))
            return 3;
    work(NULL);
    for (int i = 1; i < n; i++)
        pthread_join(thread[i], NULL);
    counter[DONE] = 1;
    return 0;
}
