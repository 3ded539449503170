/* SPDX-License-Identifier: MIT */
/* Two tables that have nothing to do with each other, under one lock, or under one each, by option.
 *
 * Each thread adds numbers to random places of one of the tables, which it draws each time. No critical section uses both tables.
 * With one lock, threads wait for updates of the table that they do not use.
 * Assumes: an update is some dozens of additions, so that the lock is busy most of the time.
 * Leaves out: any use of the tables but by the threads themselves. */
#include "common.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

enum { ADDITIONS = 32 };

struct shared {
    pthread_mutex_t lock, other; /* other: of the second table, if there are two locks */
    uint64_t *left, *right;
    int64_t size, updates, work, locks;
    int threads;
};

/* Adds numbers to a table; the sum of all is the same in every order. */
static void update(uint64_t *table, int64_t size, struct wl_random *random)
{
    for (int i = 0; i < ADDITIONS; i++)
        table[wl_random_next(random) % (uint64_t)size] += (uint64_t)i;
}

static void run(int id, void *arg)
{
    struct shared *s = arg;
    struct wl_random random = { .state = (uint64_t)id };
    volatile uint64_t own = 0;

    for (int64_t u = 0; u < s->updates; u++) {
        bool is_left = wl_random_next(&random) & 1;
        pthread_mutex_t *lock = is_left || s->locks == 1 ? &s->lock : &s->other;
        pthread_mutex_lock(lock);
        update(is_left ? s->left : s->right, s->size, &random);
        pthread_mutex_unlock(lock);
        for (int64_t i = 0; i < s->work; i++)
            own = own + 1;
    }
}

int main(int argc, char **argv)
{
    struct shared s = { .size = 1024, .updates = 400, .work = 100, .locks = 1 };
    const struct wl_option options[] = {
        { 'n', &s.size, 1, 1 << 24, "numbers in each table" },
        { 'u', &s.updates, 0, 1 << 30, "updates by each thread" },
        { 'w', &s.work, 0, 1 << 24, "additions between two updates" },
        { 'l', &s.locks, 1, 2, "locks: one for both tables, or two" },
        { 0 },
    };

    s.threads = wl_parse(argc, argv, "updates of two independent tables under one lock", options);
    s.left = wl_alloc((size_t)s.size * sizeof *s.left);
    s.right = wl_alloc((size_t)s.size * sizeof *s.right);
    pthread_mutex_init(&s.lock, NULL);
    pthread_mutex_init(&s.other, NULL);
    wl_parallel(s.threads, run, &s);

    uint64_t sum = 0, each = ADDITIONS * (ADDITIONS - 1) / 2;
    for (int64_t i = 0; i < s.size; i++)
        sum += s.left[i] + s.right[i];
    free(s.left);
    free(s.right);
    return wl_verdict(sum == (uint64_t)s.threads * (uint64_t)s.updates * each,
                      "%d threads, %" PRId64 " updates each, %" PRId64 " locks", s.threads, s.updates, s.locks);
}
