/* SPDX-License-Identifier: MIT */
#include "sim/spec/record_hold.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void *hold_copy(const void *from, size_t count, size_t size)
{
    void *copy = malloc(count * size + 1);

    assert(copy);
    return count ? memcpy(copy, from, count * size) : copy;
}

/* Records and events: all that is executed without strided loops. */
static struct peet_batch hold_copy_batch(const struct peet_batch *b)
{
    return (struct peet_batch){ .count = b->count,
                                .records = hold_copy(b->records, b->count, sizeof *b->records),
                                .events = hold_copy(b->events, b->event_count, sizeof *b->events),
                                .event_count = b->event_count,
                                .thread = b->thread,
                                .position = b->position };
}

static void hold_drop(struct record_hold *h, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free((void *)(uintptr_t)h->batch[i].records);
        free((void *)(uintptr_t)h->batch[i].events);
    }
    memmove(h->batch, h->batch + count, (h->count - count) * sizeof *h->batch);
    h->count -= count;
}

void record_hold_begin(struct record_hold *h)
{
    size_t passed = h->is_copy ? h->next - 1 : h->count;

    if (passed)
        hold_drop(h, passed);
    h->next = h->is_copy;
    h->is_on = true;
}

void record_hold_rewind(struct record_hold *h, struct peet_batch *batch)
{
    assert(h->is_on);
    h->is_on = false;
    if (h->count == 0) /* the thread is still in the batch of the checkpoint */
        return;
    if (!h->is_copy) {
        h->last = *batch;
        h->has_last = true;
    }
    *batch = h->batch[0];
    h->next = 1;
    h->is_copy = true;
}

void record_hold_end(struct record_hold *h)
{
    h->is_on = false;
}

bool record_hold_next(struct record_hold *h, struct peet_batch *batch)
{
    if (h->is_copy && h->next < h->count) {
        *batch = h->batch[h->next++];
        return true;
    }
    if (h->has_last) {
        *batch = h->last;
        h->has_last = h->is_copy = false;
        return true;
    }
    if (h->is_on && !h->is_copy) {
        h->batch = mem_room(h->batch, h->count, sizeof *h->batch);
        h->batch[h->count++] = hold_copy_batch(batch);
    } else if (!h->is_on && h->count) {
        hold_drop(h, h->count);
    }
    h->next = h->count;
    h->is_copy = false;
    return false;
}

void record_hold_release(struct record_hold *h)
{
    if (h->count)
        hold_drop(h, h->count);
    free(h->batch);
    *h = (struct record_hold){ 0 };
}
