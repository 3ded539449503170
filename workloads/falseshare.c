/* SPDX-License-Identifier: MIT */
/* Each thread increments a separate counter; the counters share cache lines or do not, by option.
 *
 * Models the simplest case of false sharing (Torrellas, Lam and Hennessy, ICPP 1990; Eggers and Jeremiassen, ICPP
 * 1991): no word is ever used by two threads, yet with counters 8 bytes apart every line is. With counters a line or
 * more apart the same program does not share at all, so the difference between two runs is false sharing alone.
 * Assumes: the first counter begins a 64-byte line; the loop's own variables stay in registers, so an increment is
 * exactly one load and one store.
 * Leaves out: any work between increments, and any true sharing but that of the barrier at the start. */
#include "common.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

struct shared {
    pthread_barrier_t start;
    unsigned char *counters;
    int64_t stride, increments;
};

static volatile uint64_t *counter(const struct shared *s, int id)
{
    return (volatile uint64_t *)(void *)(s->counters + id * s->stride);
}

static void count(int id, void *arg)
{
    struct shared *s = arg;
    volatile uint64_t *own = counter(s, id);
    int64_t left = s->increments;

    pthread_barrier_wait(&s->start);
    for (; left > 0; left--)
        *own = *own + 1; /* volatile: each increment is a load and a store in memory */
}

int main(int argc, char **argv)
{
    struct shared s = { .stride = 8, .increments = 500000 };
    const struct wl_option options[] = {
        { 'n', &s.increments, 0, INT64_C(1) << 40,
          "increments by each thread, 2 references each: 250k and -p 2 for 10^6, 2500000000 and -p 2 for 10^10" },
        { 's', &s.stride, 8, 1 << 20, "bytes from one counter to the next, a multiple of 8: 8 adjacent, 64 padded" },
        { 0 },
    };
    int threads = wl_parse(argc, argv, "threads increment counters of their own in shared lines", options);

    if (s.stride % 8)
        wl_usage_error("-s: %" PRId64 " is not a multiple of 8", s.stride);
    s.counters = wl_alloc((size_t)(threads * s.stride));
    pthread_barrier_init(&s.start, NULL, (unsigned)threads);
    wl_parallel(threads, count, &s);
    pthread_barrier_destroy(&s.start);

    int wrong = 0;
    for (int i = 0; i < threads; i++)
        wrong += *counter(&s, i) != (uint64_t)s.increments;
    free(s.counters);
    return wl_verdict(wrong == 0, "%d threads, %" PRId64 " increments each, %" PRId64 " bytes apart, %d counters wrong",
                      threads, s.increments, s.stride, wrong);
}
