/* SPDX-License-Identifier: MIT */
/* RADIX: parallel least-significant-digit-first radix sort of integer keys.
 *
 * Models the sort of Zagha and Blelloch ("Radix sort for vector multiprocessors", Supercomputing 1991; also Blelloch
 * et al., SPAA 1991). In each pass every thread counts the digits of its share of the keys, the counts of all threads
 * become places by a parallel prefix sum, and every thread moves its keys to their places: an all-to-all exchange
 * through scattered writes to the other array. The prefix over the threads' parts takes log2(threads) steps of
 * doubling distance (Hillis and Steele, "Data parallel algorithms", CACM 29(12), 1986), for any number of threads.
 * Assumes: keys are uniform in 0 … max, 32 bits each; the radix is a power of two.
 * Leaves out: local buffering of the writes, which later sorts use to spare the memory system. */
#include "common.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

enum { SEED = 2, HASH_SEED = 3 };

/* What one thread finds when it checks; a separate line. */
struct finding {
    _Alignas(64) uint64_t hash_before, hash_after;
    int64_t disorders;
};

struct radix {
    int threads, passes, digit_bits;
    int64_t n, radix, max_key;
    uint32_t *from, *to; /* n keys each; the last pass leaves the result in result */
    uint32_t *result;
    uint32_t *count; /* count[thread * radix + digit] */
    int64_t *place;  /* like count: where the thread's next key with this digit goes */
    int64_t *sum[2]; /* per thread, for the doubling prefix: read one, write the other */
    struct finding *finding;
    pthread_barrier_t barrier;
};

/* One value of SplitMix64 per number: for keys that do not depend on the number of threads, and for hashes. */
static uint64_t scramble(uint64_t seed, uint64_t number)
{
    struct wl_random random = { (seed << 40) + number };

    return wl_random_next(&random);
}

static uint64_t generate(struct radix *s, int64_t first, int64_t end)
{
    uint64_t hash = 0, values = (uint64_t)s->max_key + 1;

    for (int64_t i = first; i < end; i++) {
        uint32_t key = (uint32_t)(scramble(SEED, (uint64_t)i) % values);
        s->from[i] = key;
        hash += scramble(HASH_SEED, key);
    }
    return hash;
}

static void count_digits(struct radix *s, int id, const uint32_t *from, int shift)
{
    uint32_t *count = s->count + id * s->radix, mask = (uint32_t)s->radix - 1;
    int64_t first, end;

    for (int64_t d = 0; d < s->radix; d++)
        count[d] = 0;
    wl_share(s->n, s->threads, id, &first, &end);
    for (int64_t i = first; i < end; i++)
        count[from[i] >> shift & mask]++;
}

/* For the digits of this thread's share: the places of all threads' keys, as if the share's first key went to 0.
 * Returns the number of keys with these digits. */
static int64_t place_share(struct radix *s, int64_t first, int64_t end)
{
    int64_t sum = 0;

    for (int64_t d = first; d < end; d++)
        for (int t = 0; t < s->threads; t++) {
            s->place[t * s->radix + d] = sum;
            sum += s->count[t * s->radix + d];
        }
    return sum;
}

/* Inclusive prefix sum over the threads of `own`; returns which of sum[] holds it. */
static int prefix_over_threads(struct radix *s, int id, int64_t own)
{
    int side = 0;

    s->sum[0][id] = own;
    pthread_barrier_wait(&s->barrier);
    for (int distance = 1; distance < s->threads; distance *= 2) {
        const int64_t *old = s->sum[side];
        s->sum[!side][id] = old[id] + (id >= distance ? old[id - distance] : 0);
        side = !side;
        pthread_barrier_wait(&s->barrier);
    }
    return side;
}

/* Adds to this thread's places what the shares of digits before theirs hold. */
static void add_bases(struct radix *s, int id, const int64_t *prefix)
{
    int64_t *place = s->place + id * s->radix, first, end;

    for (int t = 1; t < s->threads; t++) {
        wl_share(s->radix, s->threads, t, &first, &end);
        for (int64_t d = first; d < end; d++)
            place[d] += prefix[t - 1];
    }
}

static void move_keys(struct radix *s, int id, const uint32_t *from, uint32_t *to, int shift)
{
    int64_t *place = s->place + id * s->radix, first, end;
    uint32_t mask = (uint32_t)s->radix - 1;

    wl_share(s->n, s->threads, id, &first, &end);
    for (int64_t i = first; i < end; i++) {
        uint32_t key = from[i];
        to[place[key >> shift & mask]++] = key;
    }
}

/* Looks at this thread's share of the result and at the key before it. */
static void check(struct radix *s, int64_t first, int64_t end, struct finding *finding)
{
    for (int64_t i = first; i < end; i++) {
        finding->hash_after += scramble(HASH_SEED, s->result[i]);
        finding->disorders += i > 0 && s->result[i - 1] > s->result[i];
    }
}

static void sort(int id, void *arg)
{
    struct radix *s = arg;
    uint32_t *from = s->from, *to = s->to;
    int64_t first, end, first_digit, end_digit;

    wl_share(s->n, s->threads, id, &first, &end);
    wl_share(s->radix, s->threads, id, &first_digit, &end_digit);
    s->finding[id].hash_before = generate(s, first, end);
    for (int pass = 0; pass < s->passes; pass++) {
        int shift = pass * s->digit_bits;
        count_digits(s, id, from, shift);
        pthread_barrier_wait(&s->barrier);
        int side = prefix_over_threads(s, id, place_share(s, first_digit, end_digit));
        add_bases(s, id, s->sum[side]);
        move_keys(s, id, from, to, shift);
        pthread_barrier_wait(&s->barrier);
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    check(s, first, end, &s->finding[id]);
}

static void set_up(struct radix *s)
{
    size_t counts = (size_t)(s->threads * s->radix);

    if (s->radix & (s->radix - 1))
        wl_usage_error("-r: %" PRId64 " is not a power of two", s->radix);
    while (INT64_C(1) << s->digit_bits < s->radix)
        s->digit_bits++;
    for (s->passes = 1; s->max_key >> (s->passes * s->digit_bits); s->passes++)
        ;
    s->from = wl_alloc((size_t)s->n * sizeof *s->from);
    s->to = wl_alloc((size_t)s->n * sizeof *s->to);
    s->result = s->passes % 2 ? s->to : s->from;
    s->count = wl_alloc(counts * sizeof *s->count);
    s->place = wl_alloc(counts * sizeof *s->place);
    s->sum[0] = wl_alloc((size_t)s->threads * sizeof *s->sum[0]);
    s->sum[1] = wl_alloc((size_t)s->threads * sizeof *s->sum[1]);
    s->finding = wl_alloc((size_t)s->threads * sizeof *s->finding);
    pthread_barrier_init(&s->barrier, NULL, (unsigned)s->threads);
}

static void release(struct radix *s)
{
    pthread_barrier_destroy(&s->barrier);
    free(s->finding);
    free(s->sum[1]);
    free(s->sum[0]);
    free(s->place);
    free(s->count);
    free(s->to);
    free(s->from);
}

int main(int argc, char **argv)
{
    struct radix s = { .n = 1 << 20, .radix = 1024, .max_key = (1 << 20) - 1 };
    const struct wl_option options[] = {
        { 'n', &s.n, 1, INT64_C(1) << 31, "keys: 36k for 10^6 references, 256m and -r 64 for 10^10" },
        { 'r', &s.radix, 2, 1 << 16, "radix, a power of two; passes follow from it and -m" },
        { 'm', &s.max_key, 1, UINT32_MAX, "greatest key" },
        { 0 },
    };

    s.threads = wl_parse(argc, argv, "parallel integer radix sort", options);
    set_up(&s);
    wl_parallel(s.threads, sort, &s);

    uint64_t hash = 0;
    int64_t disorders = 0;
    for (int i = 0; i < s.threads; i++) {
        hash += s.finding[i].hash_after - s.finding[i].hash_before;
        disorders += s.finding[i].disorders;
    }
    release(&s);
    return wl_verdict(disorders == 0 && hash == 0,
                      "%" PRId64 " keys up to %" PRId64 ", radix %" PRId64 ", %d passes, %" PRId64
                      " out of order, the same keys: %s",
                      s.n, s.max_key, s.radix, s.passes, disorders, hash == 0 ? "yes" : "no");
}
