/* SPDX-License-Identifier: MIT */
#include "study/slack/clocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    FEW = 16, /* reliances that need no allocation */
    STEP = 4, /* a clock has a multiple of this number of entries */
};

void clock_release(struct unit_clock *c)
{
    for (uint32_t i = 0; i < c->threads; i++)
        free(c->entry[i].reliance);
    free(c->entry);
    *c = (struct unit_clock){ 0 };
}

static void clock_make_room(struct unit_clock *c, uint32_t threads)
{
    if (threads <= c->threads)
        return;
    threads = (threads + STEP - 1) / STEP * STEP; /* clocks that are joined reach the same size */
    struct clock_entry *larger = mem_alloc(threads, sizeof *larger);
    if (c->threads)
        memcpy(larger, c->entry, c->threads * sizeof *larger);
    free(c->entry);
    c->entry = larger;
    c->threads = threads;
}

static void clock_entry_room(struct clock_entry *e, uint32_t count)
{
    if (count <= e->room)
        return;
    struct clock_reliance *larger = mem_alloc(2 * (size_t)count, sizeof *larger);
    if (e->count)
        memcpy(larger, e->reliance, e->count * sizeof *larger);
    free(e->reliance);
    e->reliance = larger;
    e->room = 2 * count;
}

static void clock_entry_copy(struct clock_entry *to, const struct clock_entry *from)
{
    to->count = 0;
    clock_entry_room(to, from->count);
    to->segment = from->segment;
    to->count = from->count;
    if (from->count)
        memcpy(to->reliance, from->reliance, from->count * sizeof *from->reliance);
}

void clock_copy(struct unit_clock *to, const struct unit_clock *from)
{
    clock_make_room(to, from->threads);
    for (uint32_t i = 0; i < from->threads; i++)
        clock_entry_copy(&to->entry[i], &from->entry[i]);
    for (uint32_t i = from->threads; i < to->threads; i++)
        to->entry[i].segment = to->entry[i].count = 0;
}

/* The last known segment if that unit is left out. */
static uint32_t clock_entry_without(const struct clock_entry *e, uint32_t unit)
{
    for (uint32_t i = 0; i < e->count; i++)
        if (e->reliance[i].unit == unit)
            return e->reliance[i].segment;
    return e->segment;
}

static void clock_entry_add(struct clock_entry *e, uint32_t unit, uint32_t segment)
{
    clock_entry_room(e, e->count + 1);
    e->reliance[e->count++] = (struct clock_reliance){ unit, segment };
}

static uint32_t later_segment(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* `from` has the greater segment: `to` takes it, and relies on all that `from` relies on and on the unit. */
static void clock_entry_take(struct clock_entry *to, const struct clock_entry *from, uint32_t unit)
{
    struct clock_reliance few[FEW], *copy = to->count <= FEW ? few : mem_alloc(to->count, sizeof *copy);
    struct clock_entry old = { .segment = to->segment, .count = to->count, .reliance = copy };
    bool has_unit = unit == UNIT_NONE;

    if (to->count)
        memcpy(copy, to->reliance, to->count * sizeof *copy);
    to->segment = from->segment;
    to->count = 0;
    clock_entry_room(to, from->count + 1);
    for (uint32_t i = 0; i < from->count; i++) {
        const struct clock_reliance *r = &from->reliance[i];
        uint32_t before = clock_entry_without(&old, r->unit);
        has_unit |= r->unit == unit;
        clock_entry_add(to, r->unit, r->unit == unit ? before : later_segment(before, r->segment));
    }
    if (!has_unit)
        clock_entry_add(to, unit, clock_entry_without(&old, unit));
    if (copy != few)
        free(copy);
}

/* `from` has no greater segment: `to` may rely on less than before. */
static void clock_entry_strengthen(struct clock_entry *to, const struct clock_entry *from, uint32_t unit)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < to->count; i++) {
        struct clock_reliance r = to->reliance[i];
        if (r.unit != unit)
            r.segment = later_segment(r.segment, clock_entry_without(from, r.unit));
        if (r.segment < to->segment)
            to->reliance[kept++] = r;
    }
    to->count = kept;
}

void clock_join(struct unit_clock *to, const struct unit_clock *from, uint32_t unit)
{
    clock_make_room(to, from->threads);
    for (uint32_t i = 0; i < from->threads; i++) {
        if (from->entry[i].segment > to->entry[i].segment)
            clock_entry_take(&to->entry[i], &from->entry[i], unit);
        else if (to->entry[i].count)
            clock_entry_strengthen(&to->entry[i], &from->entry[i], unit);
    }
}

void clock_set(struct unit_clock *c, uint32_t thread, uint32_t segment)
{
    clock_make_room(c, thread + 1);
    c->entry[thread].segment = segment;
    c->entry[thread].count = 0;
}
