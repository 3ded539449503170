/* SPDX-License-Identifier: MIT */
/* usage: guest_work KIND SIZE [marked [SLEEPERS]]
 * Work for bench/fullsystem: short blocks and calls (calls), floating-point loops (floats), integers in arrays (sort), pointers
 * (chase), some of each (all), nothing (none); beside as many threads that are targets, too, and sleep. Says when it begins. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <peet/mark.h>

__attribute__((noinline)) static int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

__attribute__((noinline)) static double floats(size_t n)
{
    double *a = malloc(n * n * sizeof *a), *b = malloc(n * n * sizeof *b), *c = calloc(n * n, sizeof *c);
    double sum = 0;

    if (!a || !b || !c)
        exit(3);
    for (size_t i = 0; i < n * n; i++) {
        a[i] = (double)(i % 7);
        b[i] = (double)(i % 5);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
    for (size_t i = 0; i < n * n; i++)
        sum += c[i];
    return sum;
}

__attribute__((noinline)) static unsigned sort(size_t n)
{
    unsigned *a = malloc(n * sizeof *a), x = 1, sum = 0;

    if (!a)
        exit(3);
    for (size_t i = 0; i < n; i++)
        a[i] = (x = x * 1103515245 + 12345) >> 8;
    for (size_t gap = n / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < n; i++) {
            size_t j = i;
            unsigned v = a[i];
            for (; j >= gap && a[j - gap] > v; j -= gap)
                a[j] = a[j - gap];
            a[j] = v;
        }
    for (size_t i = 0; i < n; i++)
        sum = sum * 31 + a[i];
    return sum;
}

__attribute__((noinline)) static uint64_t chase(size_t n)
{
    static struct place {
        struct place *next;
        uint64_t value;
    } place[4096], *p = place;
    uint64_t sum = 0;

    for (size_t i = 0; i < 4096; i++)
        place[i] = (struct place){ &place[(i * 1237 + 11) % 4096], i };
    for (; n > 0; n--, p = p->next)
        sum += p->value;
    return sum;
}

static pthread_barrier_t all_here, all_done;

static void *sleeper(void *number)
{
    PEET_THREAD_BEGIN((uintptr_t)number);
    pthread_barrier_wait(&all_here);
    pthread_barrier_wait(&all_done);
    return NULL;
}

/* Others that are targets, and asleep. */
static void make_sleepers(unsigned n)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_barrier_init(&all_here, NULL, n + 1);
    pthread_barrier_init(&all_done, NULL, n + 1);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    for (uintptr_t i = 0; i < n; i++)
        if (pthread_create(&thread, &attributes, sleeper, (void *)(i + 1)) != 0)
            exit(3);
    pthread_barrier_wait(&all_here);
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    size_t size = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
    unsigned sleepers = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 0) : 0;
    double result = 0;

    if (sleepers)
        make_sleepers(sleepers);
    printf("begin\n");
    fflush(stdout);
    if (argc > 3)
        PEET_THREAD_BEGIN(0);
    if (strcmp(kind, "calls") == 0)
        result = fib((int)size);
    else if (strcmp(kind, "floats") == 0)
        result = floats(size);
    else if (strcmp(kind, "sort") == 0)
        result = sort(size);
    else if (strcmp(kind, "chase") == 0)
        result = (double)chase(size);
    else if (strcmp(kind, "all") == 0)
        result = fib((int)size) + floats(8 * size) + sort(size * 20000) + (double)chase(size * 3000000);
    if (argc > 3)
        PEET_THREAD_END();
    printf("%s %g\n", kind, result);
    fflush(stdout);
    _exit(0);
}
