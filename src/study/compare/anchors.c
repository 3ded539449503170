/* SPDX-License-Identifier: MIT */
#include "study/compare/anchors.h"

#include <stdlib.h>
#include <string.h>

#include "peet/err.h"

enum {
    ANCHOR_SYMBOLS = 24,      /* of a run */
    ANCHOR_SAMPLES = 1 << 18, /* runs of a string that are looked at, about */
};

static const uint64_t ANCHOR_FACTOR = UINT64_C(0x9e3779b97f4a7c15); /* odd: the polynomial's base */

/* A run that was sampled by its hash. */
struct anchor_sample {
    uint64_t hash;
    size_t at;
};

struct anchor_samples {
    struct anchor_sample *sample;
    size_t count, room;
};

static uint64_t anchor_mix(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 29;
}

static int anchor_samples_add(struct anchor_samples *s, uint64_t hash, size_t at)
{
    if (s->count == s->room) {
        s->room = s->room ? 2 * s->room : 4096;
        struct anchor_sample *more = realloc(s->sample, s->room * sizeof *more);
        if (!more)
            return PEET_ERR_MEMORY;
        s->sample = more;
    }
    s->sample[s->count++] = (struct anchor_sample){ hash, at };
    return 0;
}

static int anchor_sample_order(const void *a, const void *b)
{
    const struct anchor_sample *x = a, *y = b;

    return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash) : (x->at > y->at) - (x->at < y->at);
}

/* Samples runs of a string whose mixed hash has zeros in `mask`, sorts them, and keeps those that occur once. Equal runs of two strings
 * are sampled in both. */
static int anchor_samples_make(struct anchor_samples *s, struct string32 string, uint64_t mask)
{
    uint64_t hash = 0, oldest = 1;
    size_t kept = 0;

    for (unsigned i = 0; i < ANCHOR_SYMBOLS; i++)
        oldest *= ANCHOR_FACTOR;
    for (size_t i = 0; i < string.count; i++) {
        hash = hash * ANCHOR_FACTOR + string.at[i] + 1;
        if (i >= ANCHOR_SYMBOLS)
            hash -= oldest * ((uint64_t)string.at[i - ANCHOR_SYMBOLS] + 1);
        uint64_t mixed = anchor_mix(hash);
        if (i + 1 >= ANCHOR_SYMBOLS && (mixed & mask) == 0 && anchor_samples_add(s, mixed, i + 1 - ANCHOR_SYMBOLS) < 0)
            return PEET_ERR_MEMORY;
    }
    if (s->count)
        qsort(s->sample, s->count, sizeof *s->sample, anchor_sample_order);
    for (size_t i = 0, end; i < s->count; i = end) {
        for (end = i + 1; end < s->count && s->sample[end].hash == s->sample[i].hash; end++)
            ;
        if (end == i + 1)
            s->sample[kept++] = s->sample[i];
    }
    s->count = kept;
    return 0;
}

static int anchor_order(const void *a, const void *b)
{
    const struct anchor *x = a, *y = b;

    return (x->a > y->a) - (x->a < y->a);
}

/* Keeps a longest sequence of anchors that rises in both strings (patience sorting); they are sorted by a. Returns how many are kept. */
static size_t anchors_rise(struct anchor *anchor, size_t count, size_t *tail, size_t *before)
{
    size_t length = 0;

    for (size_t i = 0; i < count; i++) {
        size_t low = 0, high = length;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (anchor[tail[middle]].b < anchor[i].b)
                low = middle + 1;
            else
                high = middle;
        }
        before[i] = low ? tail[low - 1] : SIZE_MAX;
        tail[low] = i;
        length += low == length;
    }
    for (size_t k = length, i = length ? tail[length - 1] : 0; k-- > 0; i = before[i])
        tail[k] = i;
    for (size_t k = 0; k < length; k++)
        anchor[k] = anchor[tail[k]];
    return length;
}

int anchors_find(struct string32 a, struct string32 b, struct anchor **ret, size_t *ret_count)
{
    struct anchor_samples x = { 0 }, y = { 0 };
    uint64_t mask = 0;
    size_t count = 0;

    while ((a.count > b.count ? a.count : b.count) / (mask + 1) > ANCHOR_SAMPLES)
        mask = 2 * mask + 1;
    int r = anchor_samples_make(&x, a, mask);
    if (r == 0)
        r = anchor_samples_make(&y, b, mask);
    size_t most = x.count < y.count ? x.count : y.count;
    struct anchor *anchor = malloc((most + 1) * sizeof *anchor);
    size_t *work = malloc((2 * most + 1) * sizeof *work);
    r = r == 0 && (!anchor || !work) ? PEET_ERR_MEMORY : r;
    for (size_t i = 0, j = 0; r == 0 && i < x.count && j < y.count;) {
        const struct anchor_sample *p = &x.sample[i], *q = &y.sample[j];
        if (p->hash == q->hash && memcmp(a.at + p->at, b.at + q->at, ANCHOR_SYMBOLS * sizeof *a.at) == 0)
            anchor[count++] = (struct anchor){ p->at, q->at };
        i += p->hash <= q->hash;
        j += q->hash <= p->hash;
    }
    if (r == 0 && count) {
        qsort(anchor, count, sizeof *anchor, anchor_order);
        count = anchors_rise(anchor, count, work, work + most);
    }
    free(x.sample);
    free(y.sample);
    free(work);
    if (r < 0) {
        free(anchor);
        return r;
    }
    *ret = anchor;
    *ret_count = count;
    return 0;
}
