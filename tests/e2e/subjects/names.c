/* SPDX-License-Identifier: MIT */
/* Data of each kind that has a name: for objects.sh, which knows how often each is referred to. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peet/mark.h"

enum { N = 1000 };

struct node {
    double weight;
    struct node *next;
};

struct table {
    int *keys;
    struct node *list;
};

static double grid[N][4];
static __thread int own[N];
volatile int sum;

static void *checked(size_t bytes)
{
    void *p = malloc(bytes);

    if (!p)
        abort();
    memset(p, 0, bytes);
    return p;
}

static void *cleared(size_t bytes)
{
    return calloc(1, bytes);
}

__attribute__((noinline)) static int of_function(int i)
{
    static int history[N];

    return history[i]++;
}

__attribute__((noinline)) static int local(int i)
{
    volatile int scratch[64];

    scratch[i % 64] = i;
    return scratch[i % 64];
}

__attribute__((noinline)) static void use_own(void)
{
    for (int i = 0; i < N; i++)
        own[i] += i;
}

static void *thread(void *arg)
{
    char *buffer = checked(N);

    for (int i = 0; i < N; i++)
        *(volatile char *)&buffer[i] = (char)i;
    use_own();
    free(buffer);
    return arg;
}

int main(void)
{
    struct table t, *p = &t;
    pthread_t other;

    p->keys = checked(N * sizeof *p->keys);
    t.list = NULL;
    char *named = checked(N);
    volatile char *buffer = cleared(N);
    PEET_NAME_DATA("lattice", named, N);
    for (int i = 0; i < N; i++) {
        struct node *n = cleared(sizeof *n);
        n->next = t.list;
        n->weight = i;
        t.list = n;
        p->keys[i] += i;
        grid[i][i % 4] += i;
        *(volatile char *)&named[i] = 1;
        buffer[i] = 1;
        sum += of_function(i) + local(i);
    }
    for (struct node *n = t.list; n; n = n->next)
        sum += (int)n->weight;
    p->keys = realloc(p->keys, 2 * N * sizeof *p->keys);
    for (int i = 0; i < N; i++)
        sum += p->keys[i];
    use_own();
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    printf("%d %d\n", sum != 0, own[1]);
    return 0;
}
