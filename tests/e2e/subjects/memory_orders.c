/* SPDX-License-Identifier: MIT */
/* Algorithms for two threads whose result depends on the memory order. usage: memory_orders NAME ROUNDS. Prints the number of each outcome of a litmus
 * test, or how often an algorithm broke. Build with peet cc --peet-order -O1. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A variable in a separate cache line. */
struct word {
    volatile long v;
    long pad[15];
};
static struct word x, y, turn, shared, result[2], ring[4], head, tail, *volatile made;
static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long rounds, broken, count[4];
static _Atomic long sum;

static void fence(void)
{
    __asm__ volatile("mfence" ::: "memory");
}

/* ---- litmus tests: thread `me` of a round ---- */

static void sb(int me)
{
    if (me == 0) {
        x.v = 1;
        result[0].v = y.v;
    } else {
        y.v = 1;
        result[1].v = x.v;
    }
}

static void sb_fences(int me)
{
    if (me == 0) {
        x.v = 1;
        fence();
        result[0].v = y.v;
    } else {
        y.v = 1;
        fence();
        result[1].v = x.v;
    }
}

static void mp(int me)
{
    if (me == 0) {
        x.v = 1;
        y.v = 1;
    } else {
        result[0].v = y.v;
        result[1].v = x.v;
    }
}

static void mp_fence(int me)
{
    if (me == 0) {
        x.v = 1;
        __asm__ volatile("sfence" ::: "memory");
        y.v = 1;
    } else {
        result[0].v = y.v;
        result[1].v = x.v;
    }
}

static void lb(int me)
{
    if (me == 0) {
        result[0].v = x.v;
        y.v = 1;
    } else {
        result[1].v = y.v;
        x.v = 1;
    }
}

/* Without races: every access is under the lock, or atomic. */
static void locked(int me)
{
    pthread_mutex_lock(&mutex);
    x.v += me + 1;
    pthread_mutex_unlock(&mutex);
    atomic_fetch_add(&sum, me + 1);
}

/* ---- algorithms: a round, or all rounds of the queue ---- */

static void enter_critical(void)
{
    shared.v = shared.v + 1; /* lost if both threads are here */
}

static void dekker(int me)
{
    struct word *mine = me ? &y : &x, *other = me ? &x : &y;

    mine->v = 1;
    while (other->v)
        if (turn.v != me) {
            mine->v = 0;
            while (turn.v != me)
                ;
            mine->v = 1;
        }
    enter_critical();
    turn.v = !me;
    mine->v = 0;
}

static void peterson(int me)
{
    struct word *mine = me ? &y : &x, *other = me ? &x : &y;

    mine->v = 1;
    turn.v = !me;
    while (other->v && turn.v == !me)
        ;
    enter_critical();
    mine->v = 0;
}

/* Double-checked locking: the object is made under the lock, and used without it. */
static void checked(int me)
{
    struct word *w = made;

    if (!w) {
        pthread_mutex_lock(&mutex);
        if (!made) {
            ring[0].v = 7;
            made = &ring[0];
        }
        w = made;
        pthread_mutex_unlock(&mutex);
    }
    result[me].v = w->v;
}

/* A queue without locks: one thread puts, one takes. */
static void queue(int me)
{
    for (long i = 0; i < rounds; i++)
        if (me == 0) {
            while (tail.v - head.v == 4)
                ;
            ring[tail.v % 4].v = i + 1;
            tail.v = tail.v + 1;
        } else {
            while (head.v == tail.v)
                ;
            broken += ring[head.v % 4].v != i + 1;
            head.v = head.v + 1;
        }
}

/* ---- running ---- */

static const struct test {
    const char *name;
    void (*run)(int me);
    int is_round; /* `run` is one round, between two barriers */
} TESTS[] = {
    { "sb", sb, 1 },           { "sb-fences", sb_fences, 1 }, { "mp", mp, 1 },         { "mp-fence", mp_fence, 1 },
    { "lb", lb, 1 },           { "locked", locked, 1 },       { "dekker", dekker, 1 }, { "peterson", peterson, 1 },
    { "checked", checked, 1 }, { "queue", queue, 0 },
};
static const struct test *test;

static void *thread(void *me)
{
    for (long i = 0; i < (test->is_round ? rounds : 1); i++) {
        pthread_barrier_wait(&barrier);
        test->run(me != NULL);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t[2];

    rounds = argc > 2 ? atol(argv[2]) : 100;
    for (size_t i = 0; argc > 1 && i < sizeof TESTS / sizeof *TESTS; i++)
        if (!strcmp(argv[1], TESTS[i].name))
            test = &TESTS[i];
    if (!test)
        return 2;
    pthread_barrier_init(&barrier, NULL, 3);
    pthread_create(&t[0], NULL, thread, NULL);
    pthread_create(&t[1], NULL, thread, &t);
    for (long i = 0; i < (test->is_round ? rounds : 1); i++) {
        x.v = y.v = ring[0].v = 0;
        made = NULL;
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        count[(result[0].v != 0) * 2 + (result[1].v != 0)]++;
    }
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    if (test->run == dekker || test->run == peterson)
        broken = 2 * rounds - shared.v;
    if (test->run == checked)
        broken = rounds - count[3];
    if (test->run == locked)
        broken = sum != 3 * rounds || x.v != 3;
    if (test->run == queue || test->run == checked || test->run == locked || test->run == dekker
        || test->run == peterson)
        printf("%s: broken %s\n", test->name, broken ? "yes" : "no");
    else
        printf("%s:%s%s%s%s\n", test->name, count[0] ? " 00" : "", count[1] ? " 01" : "", count[2] ? " 10" : "",
               count[3] ? " 11" : "");
    return broken != 0;
}
