/* SPDX-License-Identifier: MIT */
/* Samples, one after the other: what they have is kept in batches, of which there are never more than ESTIMATE_BATCHES. Where more would be needed, two that follow
 * each other become one. */
#include <assert.h>
#include <string.h>

#include "study/profile/sampling/estimate_in.h"

void estimate_begin(struct estimate *e)
{
    estimate_begin_of(e, e->config.length);
}

void estimate_begin_of(struct estimate *e, uint64_t length)
{
    assert(!e->is_open && e->sample < UINT32_MAX && length > 0);
    e->length = length;
    e->part = (double)length / (double)e->config.length;
    e->is_open = true;
    e->sample++;
    for (uint32_t i = 0; i < e->objects; i++) {
        struct tally *t = &e->tally[i];
        memcpy(t->before, (uint64_t[]){ t->references, t->misses, t->unknown }, sizeof t->before);
    }
}

/* Two by two become one. */
static void join_batches(struct tally *t)
{
    for (uint32_t i = 0; i < ESTIMATE_BATCHES / 2; i++) {
        const struct batch *a = &t->batch[2 * i], *b = a + 1;
        t->batch[i] = (struct batch){ a->misses + b->misses, a->unknown + b->unknown };
    }
    memset(t->batch + ESTIMATE_BATCHES / 2, 0, sizeof t->batch / 2);
}

static void join_sums(double sum[ESTIMATE_BATCHES])
{
    for (uint32_t i = 0; i < ESTIMATE_BATCHES / 2; i++)
        sum[i] = sum[2 * i] + sum[2 * i + 1];
    memset(sum + ESTIMATE_BATCHES / 2, 0, sizeof *sum * ESTIMATE_BATCHES / 2);
}

/* The batch that this sample is of. */
static uint32_t next_batch(struct estimate *e)
{
    if (e->batches > 0 && e->in_last < e->in_each) {
        e->in_last++;
        return e->batches - 1;
    }
    if (e->batches == ESTIMATE_BATCHES) {
        for (uint32_t i = 0; i < e->objects; i++)
            join_batches(&e->tally[i]);
        join_batches(&e->all);
        join_sums(e->batch_references);
        join_sums(e->batch_time);
        e->batches /= 2;
        e->in_each *= 2;
    }
    e->in_last = 1;
    return e->batches++;
}

static struct batch since_before(const struct tally *t)
{
    return (struct batch){ t->misses - t->before[1], t->unknown - t->before[2] };
}

static void add_batch(struct batch *to, const struct batch *b)
{
    to->misses += b->misses;
    to->unknown += b->unknown;
}

void estimate_end(struct estimate *e, uint64_t others)
{
    uint64_t n = e->apart;
    uint32_t at = next_batch(e);

    assert(e->is_open);
    e->apart = 0;
    e->is_open = false;
    e->has_all = false;
    for (uint32_t i = 0; i < e->objects; i++) {
        const struct batch b = since_before(&e->tally[i]);
        n += e->tally[i].references - e->tally[i].before[0];
        add_batch(&e->tally[i].batch[at], &b);
        add_batch(&e->all.batch[at], &b);
    }
    e->batch_references[at] += (double)n;
    e->batch_time[at] += e->time;
    e->time = 0;
    e->largest = (double)n > e->largest ? (double)n : e->largest;
    e->references += n;
    e->others += others;
    e->told_last = e->told * e->one_in;
    e->told = 0;
    e->one_in = 1;
    e->choice.limit = UINT32_MAX;
}
