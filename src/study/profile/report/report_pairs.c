/* SPDX-License-Identifier: MIT */
/* Tables of interference pairs: data that evict data, and lines of code that write lines of memory which others miss. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/profile/report/report_in.h"

static const struct column EVICTIONS[] = { { "object", "Data that was missed", CELL_TEXT, false },
                                           { "by", "Pushed out by", CELL_TEXT, false },
                                           { "misses", "Misses", CELL_COUNT, false },
                                           { "stall_share", "Of stall", CELL_SHARE, false },
                                           { "conflict", "Conflict", CELL_PERCENT, false },
                                           { 0 } };
static const struct column SHARING[] = {
    { "object", "Data", CELL_TEXT, false },           { "kind", "Sharing", CELL_TEXT, false },
    { "missed_at", "Missed at", CELL_TEXT, false },   { "by", "Written data", CELL_TEXT, false },
    { "written_at", "Written at", CELL_TEXT, false }, { "misses", "Misses", CELL_COUNT, false },
    { "stall_share", "Of stall", CELL_SHARE, false }, { 0 }
};
static const struct plot EVICTION_PLOTS[] = { { .kind = PLOT_MATRIX,
                                                .title = "Evictions of data by data: misses",
                                                .over = "object by",
                                                .of = "misses",
                                                .least = 2,
                                                .most = 10 },
                                              { 0 } };

/* A row: pairs with the same key, added up. */
struct pair_row {
    struct interference_pair pair;
    uint64_t conflicts; /* misses of cause conflict */
};

/* By the key of rows, so that pairs of one row are neighbours. */
static int compare_pairs(const void *a, const void *b)
{
    const struct interference_pair *x = &((const struct pair_row *)a)->pair, *y = &((const struct pair_row *)b)->pair;
    const uint32_t left[] = { x->object, x->by_object, x->of, x->by, x->cause };
    const uint32_t right[] = { y->object, y->by_object, y->of, y->by, y->cause };

    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

static int compare_pairs_by_stall(const void *a, const void *b)
{
    const struct interference_pair *x = &((const struct pair_row *)a)->pair, *y = &((const struct pair_row *)b)->pair;

    if (x->stall != y->stall)
        return x->stall < y->stall ? 1 : -1;
    if (x->misses != y->misses)
        return x->misses < y->misses ? 1 : -1;
    return compare_pairs(a, b);
}

/* Adds up pairs with the same key. Returns the number of rows, which fall by stall. */
static size_t merge_pairs(struct pair_row *row, size_t count)
{
    size_t n = 0;

    if (count == 0)
        return 0;
    qsort(row, count, sizeof *row, compare_pairs);
    for (size_t i = 1; i < count; i++) {
        if (compare_pairs(&row[n], &row[i]) != 0) {
            row[++n] = row[i];
            continue;
        }
        row[n].pair.misses += row[i].pair.misses;
        row[n].pair.stall += row[i].pair.stall;
        row[n].conflicts += row[i].conflicts;
    }
    qsort(row, ++n, sizeof *row, compare_pairs_by_stall);
    return n;
}

void report_add_evictions(struct profile_report *r)
{
    struct table *t = result_table(r->result, "evictions", "Evictions of data by data", EVICTIONS);
    struct pair_row *row = mem_alloc(r->p->pairs + 1, sizeof *row);
    size_t n = 0, shown = 0;

    t->plot = EVICTION_PLOTS;
    for (size_t i = 0; i < r->p->pairs; i++) {
        const struct interference_pair *q = &r->p->pair[i];
        if (q->cause != CAUSE_capacity && q->cause != CAUSE_conflict)
            continue;
        row[n] = (struct pair_row){ *q, q->cause == CAUSE_conflict ? q->misses : 0 };
        row[n].pair.of = row[n].pair.by = row[n].pair.cause = 0;
        n++;
    }
    n = merge_pairs(row, n);
    for (size_t i = 0; i < n && shown < report_rows(r); i++) {
        const struct interference_pair *q = &row[i].pair;
        const char *object = report_object(r, q->object), *by = report_object(r, q->by_object);
        if (!report_wants(r, object, NULL) && !report_wants(r, by, NULL))
            continue;
        table_text(t, object);
        table_text(t, by);
        table_count(t, q->misses);
        table_real(t, report_part(q->stall, r->p->stall));
        table_real(t, report_part(row[i].conflicts, q->misses));
        shown++;
    }
    free(row);
}

void report_add_sharing(struct profile_report *r)
{
    struct table *t = result_table(r->result, "sharing", "Lines lost to writes of others", SHARING);
    struct pair_row *row = mem_alloc(r->p->pairs + 1, sizeof *row);
    char of[REPORT_TEXT], by[REPORT_TEXT];
    size_t n = 0, shown = 0;

    for (size_t i = 0; i < r->p->pairs; i++) {
        const struct interference_pair *q = &r->p->pair[i];
        if (q->cause != CAUSE_true_sharing && q->cause != CAUSE_false_sharing)
            continue;
        row[n].pair = *q;
        row[n].pair.of = totals_place(&r->t, q->of, q->object)->line;
        row[n++].pair.by = q->by == REPORT_UNKNOWN ? REPORT_UNKNOWN : totals_place(&r->t, q->by, q->by_object)->line;
    }
    n = merge_pairs(row, n);
    for (size_t i = 0; i < n && shown < report_rows(r); i++) {
        const struct interference_pair *q = &row[i].pair;
        const char *object = report_object(r, q->object);
        if (!report_wants(r, object, r->t.function[r->t.line[q->of].function].name))
            continue;
        table_text(t, object);
        table_text(t, q->cause == CAUSE_true_sharing ? "true" : "false");
        table_text(t, report_line(r, q->of, of));
        table_text(t, report_object(r, q->by_object));
        table_text(t, q->by == REPORT_UNKNOWN ? "unknown" : report_line(r, q->by, by));
        table_count(t, q->misses);
        table_real(t, report_part(q->stall, r->p->stall));
        shown++;
    }
    free(row);
}
