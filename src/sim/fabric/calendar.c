/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <string.h>

#include "sim/fabric/kind.h"

/* The first stretch that ends behind `from`. Most who ask come last, so it is looked for from the end. */
static uint32_t first_behind(const struct calendar *c, uint64_t from)
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
    for (uint32_t i = first_behind(c, from); i < c->count && c->busy[i].from < from + length; i++)
        from = c->busy[i].to;
    return from;
}

static void forget_half(struct calendar *c)
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
        forget_half(c);
    uint32_t i = first_behind(c, from);
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
        c->busy[i] = (struct calendar_stretch){ from, to };
    }
}
