/* SPDX-License-Identifier: MIT */
/* Begin and end of samples. Counts of consecutive samples are added up in batches, of which there are at most ESTIMATE_BATCHES: when all are
 * full, each two neighbouring batches become one. */
#include <assert.h>
#include <string.h>

#include "study/profile/sampling/estimate_in.h"

void estimate_begin(struct estimate *e)
{
    estimate_begin_length(e, e->config.length);
}

void estimate_begin_length(struct estimate *e, uint64_t length)
{
    assert(!e->is_open && e->sample < UINT32_MAX && length > 0);
    e->length = length;
    e->part = (double)length / (double)e->config.length;
    e->is_open = true;
    e->sample++;
    for (uint32_t i = 0; i < e->objects; i++) {
        struct object_tally *t = &e->tally[i];
        memcpy(t->before, (uint64_t[]){ t->references, t->misses, t->unknown }, sizeof t->before);
    }
}

/* Adds up each two neighbouring batches of an object. */
static void sample_batches_join(struct object_tally *t)
{
    for (uint32_t i = 0; i < ESTIMATE_BATCHES / 2; i++) {
        const struct sample_batch *a = &t->batch[2 * i], *b = a + 1;
        t->batch[i] = (struct sample_batch){ a->misses + b->misses, a->unknown + b->unknown };
    }
    memset(t->batch + ESTIMATE_BATCHES / 2, 0, sizeof t->batch / 2);
}

static void estimate_join_sums(double sum[ESTIMATE_BATCHES])
{
    for (uint32_t i = 0; i < ESTIMATE_BATCHES / 2; i++)
        sum[i] = sum[2 * i] + sum[2 * i + 1];
    memset(sum + ESTIMATE_BATCHES / 2, 0, sizeof *sum * ESTIMATE_BATCHES / 2);
}

/* The index of the batch to which the current sample belongs. */
static uint32_t estimate_next_batch(struct estimate *e)
{
    if (e->batches.count > 0 && e->batches.in_last < e->batches.in_each) {
        e->batches.in_last++;
        return e->batches.count - 1;
    }
    if (e->batches.count == ESTIMATE_BATCHES) {
        for (uint32_t i = 0; i < e->objects; i++)
            sample_batches_join(&e->tally[i]);
        sample_batches_join(&e->all);
        estimate_join_sums(e->batches.references);
        estimate_join_sums(e->batches.cycles);
        e->batches.count /= 2;
        e->batches.in_each *= 2;
    }
    e->batches.in_last = 1;
    return e->batches.count++;
}

static struct sample_batch sample_batch_since(const struct object_tally *t)
{
    return (struct sample_batch){ t->misses - t->before[1], t->unknown - t->before[2] };
}

static void sample_batch_add(struct sample_batch *to, const struct sample_batch *b)
{
    to->misses += b->misses;
    to->unknown += b->unknown;
}

void estimate_end(struct estimate *e, uint64_t others)
{
    uint64_t n = e->bulk_references;
    uint32_t at = estimate_next_batch(e);

    assert(e->is_open);
    e->bulk_references = 0;
    e->is_open = false;
    e->has_all = false;
    for (uint32_t i = 0; i < e->objects; i++) {
        const struct sample_batch b = sample_batch_since(&e->tally[i]);
        n += e->tally[i].references - e->tally[i].before[0];
        sample_batch_add(&e->tally[i].batch[at], &b);
        sample_batch_add(&e->all.batch[at], &b);
    }
    e->batches.references[at] += (double)n;
    e->batches.cycles[at] += e->time;
    e->time = 0;
    e->batches.largest = (double)n > e->batches.largest ? (double)n : e->batches.largest;
    e->references += n;
    e->others += others;
    e->log.misses_before = e->log.misses * e->log.one_in;
    e->log.misses = 0;
    e->log.one_in = 1;
    e->log.sets.limit = UINT32_MAX;
}
