/* SPDX-License-Identifier: MIT */
/* What every workload needs and none should write again: options, threads, random numbers, the self-check's line.
 *
 * A workload is one file, NAME.c, linked with common.c. It takes -p THREADS and its own size options, checks its
 * own result and exits 0 only when that is right. Nothing in its result depends on timing. */
#ifndef PEET_WORKLOAD_COMMON_H
#define PEET_WORKLOAD_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WL_MAX_THREADS 1024

/* One size option, such as -n 1024. Ends with an entry whose letter is 0. Numbers may end in k, m or g (2^10, 2^20, 2^30). */
struct wl_option {
    char letter;
    int64_t *value; /* holds the default before wl_parse */
    int64_t least, most;
    const char *help; /* one line */
};

/* Reads argv; prints help or a usage error and exits where that is asked for. Returns the number of threads (-p, default 4). */
int wl_parse(int argc, char **argv, const char *summary, const struct wl_option *options);

/* Runs body(id, arg) for id 0 … threads-1 and returns when all have ended; id 0 runs in the calling thread. */
void wl_parallel(int threads, void (*body)(int id, void *arg), void *arg);

/* The half-open share of 0 … total-1 that belongs to thread id; shares differ by one at most. */
void wl_share(int64_t total, int threads, int id, int64_t *ret_first, int64_t *ret_end);

/* Zeroed memory, aligned to 64 bytes; exits with a message when there is none. Free with free(). */
void *wl_alloc(size_t bytes);

/* Prints "NAME: ok: …" or "NAME: FAILED: …" and returns the exit status for main. */
int wl_verdict(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Exits with status 2 and "NAME: …": an option that does not fit the others. */
void wl_usage_error(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* SplitMix64: each value is a pure function of the seed and the number of calls, so each thread can have a separate stream. */
struct wl_random {
    uint64_t state;
};

static inline uint64_t wl_random_next(struct wl_random *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline double wl_random_unit(struct wl_random *r) /* [0, 1) */
{
    return (double)(wl_random_next(r) >> 11) * 0x1p-53;
}

#endif
