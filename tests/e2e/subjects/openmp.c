/* SPDX-License-Identifier: MIT */
/* OpenMP in C and C++, with four threads: for tests/e2e/runtime.sh. */
#include <omp.h>
#include <stdio.h>

enum { N = 1000 };

static int cell[N];
static long sum, in_order, critical, named, locked, nested, once;
static long double big;
static omp_lock_t lock;
static omp_nest_lock_t nest;

static long fibonacci(int n)
{
    long a, b;

    if (n < 2)
        return n;
#pragma omp task shared(a)
    a = fibonacci(n - 1);
#pragma omp task shared(b)
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

static void all_kinds(void)
{
#pragma omp parallel num_threads(4)
    {
#pragma omp for schedule(dynamic, 10)
        for (int i = 0; i < N; i++)
            cell[i] = i;
#pragma omp critical
        critical++;
#pragma omp critical(named)
        named++;
        omp_set_lock(&lock);
        locked++;
        omp_unset_lock(&lock);
        omp_set_nest_lock(&nest);
        omp_set_nest_lock(&nest);
        nested++;
        omp_unset_nest_lock(&nest);
        omp_unset_nest_lock(&nest);
#pragma omp atomic
        big += 1;
#pragma omp barrier
#pragma omp for ordered schedule(dynamic, 2)
        for (int i = 0; i < 20; i++) {
#pragma omp ordered
            in_order = in_order * 3 % 1000003 + i;
        }
#pragma omp sections
        {
#pragma omp section
            cell[1]++;
#pragma omp section
            cell[2]++;
        }
#pragma omp single
        once = fibonacci(12);
    }
}

int main(void)
{
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
    all_kinds();
#pragma omp parallel for schedule(guided) num_threads(3) reduction(+ : sum)
    for (int i = 0; i < N; i++)
        sum += cell[i];
#pragma omp parallel for num_threads(4)
    for (int i = 0; i < N; i++)
        cell[i] *= 2;
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
    printf("%ld %ld %ld %ld %ld %.0f %d\n", sum, in_order, critical, named + locked + nested, once, (double)big,
           cell[N - 1]);
    return 7;
}
