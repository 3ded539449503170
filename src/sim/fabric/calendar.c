/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <string.h>

#include "sim/fabric/kind.h"

/* The first interval that ends after `from`. Searches from the end: most bookings are the latest. */
static uint32_t calendar_first_after(const struct calendar *c, uint64_t from)
{
    uint32_t i = c->count;

    while (i > 0 && c->busy[i - 1].to > from)
        i--;
    return i;
}

uint64_t calendar_find(const struct calendar *c, uint64_t from, uint64_t length)
{
    if (length == 0)
        return from;
    if (from < c->begin)
        from = c->begin;
    for (uint32_t i = calendar_first_after(c, from); i < c->count && c->busy[i].from < from + length; i++)
        from = c->busy[i].to;
    return from;
}

/* Drops the older half of the intervals: the time before counts as taken. */
static void calendar_drop_half(struct calendar *c)
{
    enum { HALF = CALENDAR_SIZE / 2 };

    c->begin = c->busy[HALF - 1].to;
    c->count -= HALF;
    memmove(c->busy, c->busy + HALF, c->count * sizeof c->busy[0]);
}

void calendar_take(struct calendar *c, uint64_t from, uint64_t length)
{
    uint64_t to = from + length;

    if (length == 0)
        return;
    if (c->count == CALENDAR_SIZE)
        calendar_drop_half(c);
    uint32_t i = calendar_first_after(c, from);
    bool joins_last = i > 0 && c->busy[i - 1].to == from, joins_next = i < c->count && c->busy[i].from == to;
    assert(i == c->count || c->busy[i].from >= to);
    if (joins_last && joins_next) {
        c->busy[i - 1].to = c->busy[i].to;
        memmove(c->busy + i, c->busy + i + 1, (--c->count - i) * sizeof c->busy[0]);
    } else if (joins_last) {
        c->busy[i - 1].to = to;
    } else if (joins_next) {
        c->busy[i].from = from;
    } else {
        memmove(c->busy + i + 1, c->busy + i, (c->count++ - i) * sizeof c->busy[0]);
        c->busy[i] = (struct calendar_interval){ from, to };
    }
}
