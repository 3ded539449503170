/* SPDX-License-Identifier: MIT */
/* OpenMP: loops dealt out by the compiler and while they run, locks, sections, single, ordered, tasks, regions in regions. The second
 * line says how much each thread did, which is the machine's choice. */
#include <omp.h>
#include <stdio.h>

enum { N = 2048, CHUNKS = 128 };

static double data[N];
static int share[4];

int main(void)
{
    long count = 0, order = 0, nested = 0;
    double sum = 0;
    omp_lock_t lock;

    omp_init_lock(&lock);
    omp_set_max_active_levels(2);
    for (int round = 0; round < 4; round++) {
#pragma omp parallel for reduction(+ : sum) num_threads(4)
        for (int i = 0; i < N; i++) {
            data[i] += i;
            sum += data[i];
        }
#pragma omp parallel num_threads(4)
        {
#pragma omp for schedule(dynamic, 1)
            for (int i = 0; i < CHUNKS; i++) {
                double x = 0;
                for (int k = 0; k < i * 8; k++)
                    x += data[k];
                data[i] = x * 1e-3;
#pragma omp critical
                share[omp_get_thread_num()]++;
                omp_set_lock(&lock);
                count++;
                omp_unset_lock(&lock);
            }
#pragma omp for schedule(guided)
            for (int i = 0; i < N; i++)
                data[i] = i;
#pragma omp for ordered schedule(static, 1)
            for (int i = 0; i < 16; i++)
#pragma omp ordered
                order = order * 3 % 1000003 + i;
#pragma omp single
            count += 1000;
#pragma omp sections
            {
#pragma omp section
#pragma omp atomic
                count += 10000;
#pragma omp section
#pragma omp atomic
                count += 10000;
            }
#pragma omp single
            for (int i = 0; i < 8; i++)
#pragma omp task
#pragma omp atomic
                count += 100000;
        }
#pragma omp parallel num_threads(2)
#pragma omp parallel num_threads(2)
#pragma omp atomic
        nested++;
    }
    printf("%g %ld %ld %ld\n", sum, count, order, nested);
    printf("%d %d %d %d\n", share[0], share[1], share[2], share[3]);
    return 0;
}
