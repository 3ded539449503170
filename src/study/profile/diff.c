/* SPDX-License-Identifier: MIT */
/* Two profiles of a program, before and after something was changed. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/profile/totals.h"

static const struct column CHANGES[] = { { "object", "Data", CELL_TEXT, false },
                                         { "function", "Procedure", CELL_TEXT, false },
                                         { "verdict", "Verdict", CELL_TEXT, false },
                                         { "stall_before", "Stall before", CELL_COUNT, false },
                                         { "stall_after", "after", CELL_COUNT, false },
                                         { "change", "Change", CELL_PERCENT, false },
                                         { "misses_before", "Misses before", CELL_COUNT, false },
                                         { "misses_after", "after", CELL_COUNT, false },
                                         { 0 } };
static const struct column SUMMARY[] = { { "what", "What", CELL_TEXT, false },
                                         { "before", "Before", CELL_COUNT, false },
                                         { "after", "After", CELL_COUNT, false },
                                         { "change", "Change", CELL_PERCENT, false },
                                         { 0 } };

struct change {
    const char *object, *function;
    uint64_t stall[2], misses[2];
};

struct changes {
    struct change *change;
    size_t count;
};

static struct change *change_of(struct changes *all, const char *object, const char *function)
{
    for (size_t i = 0; i < all->count; i++)
        if (!strcmp(all->change[i].object, object) && !strcmp(all->change[i].function, function))
            return &all->change[i];
    all->change = mem_room(all->change, all->count, sizeof *all->change);
    all->change[all->count] = (struct change){ .object = object, .function = function };
    return &all->change[all->count++];
}

static void add(struct changes *all, const struct totals *t, unsigned side)
{
    for (size_t i = 0; i < t->by_both_count; i++) {
        const struct total *x = &t->by_both[i];
        if (x->misses == 0 && total_stall(x) == 0)
            continue;
        struct change *c = change_of(all, objects_facts(t->p->objects, x->object)->name, t->function[x->function].name);
        c->stall[side] += total_stall(x);
        c->misses[side] += x->misses;
    }
}

static uint64_t difference(const struct change *c)
{
    return c->stall[0] > c->stall[1] ? c->stall[0] - c->stall[1] : c->stall[1] - c->stall[0];
}

static int by_difference(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    uint64_t dx = difference(x), dy = difference(y);
    int r = strcmp(x->object, y->object);

    return dx != dy ? (dx > dy ? -1 : 1) : r ? r : strcmp(x->function, y->function);
}

static void put_change(struct table *t, uint64_t before, uint64_t after)
{
    if (before)
        table_real(t, ((double)after - (double)before) / (double)before);
    else
        table_none(t);
}

static void put_row(struct table *t, const char *what, uint64_t before, uint64_t after)
{
    table_text(t, what);
    table_count(t, before);
    table_count(t, after);
    put_change(t, before, after);
}

void profile_diff(const struct profile *before, const struct profile *after, const struct profile_wants *w,
                  struct result *ret)
{
    struct totals a, b;
    struct changes all = { 0 };

    totals_make(&a, before, w->sort);
    totals_make(&b, after, w->sort);
    add(&all, &a, 0);
    add(&all, &b, 1);
    if (all.count)
        qsort(all.change, all.count, sizeof *all.change, by_difference);
    struct table *t = result_table(ret, "summary", "Before and after", SUMMARY);
    put_row(t, "cycles", before->result.cycles, after->result.cycles);
    put_row(t, "compute", before->compute, after->compute);
    put_row(t, "memory stall", before->stall, after->stall);
    put_row(t, "references", before->references, after->references);
    put_row(t, "misses", before->misses, after->misses);
    t = result_table(ret, "changes", "What got better or worse", CHANGES);
    for (size_t i = 0; i < all.count && (w->top == 0 || i < w->top); i++) {
        const struct change *c = &all.change[i];
        if (w->focus && strcmp(w->focus, c->object) != 0 && strcmp(w->focus, c->function) != 0)
            continue;
        table_text(t, c->object);
        table_text(t, c->function);
        table_text(t, c->stall[0] == c->stall[1] ? "same" : c->stall[0] > c->stall[1] ? "better" : "worse");
        table_count(t, c->stall[0]);
        table_count(t, c->stall[1]);
        put_change(t, c->stall[0], c->stall[1]);
        table_count(t, c->misses[0]);
        table_count(t, c->misses[1]);
    }
    table_note(t, "of these two recordings on this machine every number is exact: there are no error bars");
    free(all.change);
    totals_release(&a);
    totals_release(&b);
}
