/* SPDX-License-Identifier: MIT */
/* Five phases with a barrier after each, of which the third is not needed, and can be left out by option.
 *
 * In phases 1, 2, 4 and 5, a thread reads what its neighbour wrote in the phase before. In phase 4 it also needs what it wrote itself in phase 3, and
 * nothing that another thread wrote there: the barrier between them orders no data. Work of phases 3 and 4 is uneven, and even in sum:
 * threads wait at the third barrier for nothing.
 * Assumes: all shares of the arrays have the same size.
 * Leaves out: any result that depends on the number of threads, but for the neighbours. */
#include "common.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

enum { PHASES = 5, UNEVEN = 4 /* the larger part of the work of phases 3 and 4, by the smaller one */ };

struct shared {
    pthread_barrier_t meet;
    uint64_t *phase[PHASES]; /* what each phase wrote */
    int64_t size, rounds, keep;
    int threads;
};

/* Writes the thread's share of a phase: from the phase before, as its neighbour wrote it or as it did itself. */
static void work(const struct shared *s, int phase, int id, int from, int64_t times)
{
    uint64_t *to = s->phase[phase] + id * s->size;
    const uint64_t *before = s->phase[(phase + PHASES - 1) % PHASES] + from * s->size;

    for (int64_t t = 0; t < times; t++)
        for (int64_t i = 0; i < s->size; i++)
            to[i] = to[i] * 3 + before[i] + (uint64_t)phase;
}

static void run(int id, void *arg)
{
    struct shared *s = arg;
    int next = (id + 1) % s->threads, more = id % 2;

    for (int64_t r = 0; r < s->rounds; r++) {
        work(s, 0, id, next, 1);
        pthread_barrier_wait(&s->meet);
        work(s, 1, id, next, 1);
        pthread_barrier_wait(&s->meet);
        work(s, 2, id, next, more ? UNEVEN : 1);
        if (s->keep)
            pthread_barrier_wait(&s->meet);
        work(s, 3, id, id, more ? 1 : UNEVEN);
        pthread_barrier_wait(&s->meet);
        work(s, 4, id, next, 1);
        pthread_barrier_wait(&s->meet);
    }
}

/* The same by one thread, phase by phase. */
static bool is_right(const struct shared *s)
{
    struct shared own = *s;
    bool right = true;

    for (int p = 0; p < PHASES; p++)
        own.phase[p] = wl_alloc((size_t)(s->threads * s->size) * sizeof **own.phase);
    for (int64_t r = 0; r < s->rounds; r++)
        for (int p = 0; p < PHASES; p++)
            for (int id = 0; id < s->threads; id++) {
                int more = (p == 2 && id % 2) || (p == 3 && id % 2 == 0);
                work(&own, p, id, p == 3 ? id : (id + 1) % s->threads, more ? UNEVEN : 1);
            }
    for (int p = 0; p < PHASES; p++) {
        for (int64_t i = 0; i < s->threads * s->size; i++)
            right &= own.phase[p][i] == s->phase[p][i];
        free(own.phase[p]);
    }
    return right;
}

int main(int argc, char **argv)
{
    struct shared s = { .size = 512, .rounds = 20, .keep = 1 };
    const struct wl_option options[] = {
        { 'n', &s.size, 1, 1 << 24, "numbers of each thread in each phase" },
        { 'r', &s.rounds, 1, 1 << 20, "rounds" },
        { 'k', &s.keep, 0, 1, "keep the barrier that is not needed (1), or not (0)" },
        { 0 },
    };

    s.threads = wl_parse(argc, argv, "five phases and five barriers, of which one is not needed", options);
    for (int p = 0; p < PHASES; p++)
        s.phase[p] = wl_alloc((size_t)(s.threads * s.size) * sizeof **s.phase);
    pthread_barrier_init(&s.meet, NULL, (unsigned)s.threads);
    wl_parallel(s.threads, run, &s);
    pthread_barrier_destroy(&s.meet);
    bool right = is_right(&s);
    for (int p = 0; p < PHASES; p++)
        free(s.phase[p]);
    return wl_verdict(right, "%d threads, %" PRId64 " rounds, %d barriers in each", s.threads, s.rounds,
                      s.keep ? PHASES : PHASES - 1);
}
