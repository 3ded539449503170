/* SPDX-License-Identifier: MIT */
/* Comparison of two profiles of a program, before and after a change.
 *
 * Where one of them is sampled, a change counts only if it is larger than both errors together. An error is half of the interval of 95 %;
 * with too few windows for it, the whole estimate. Errors are known by data object: the part of a function has the relative error of
 * its object, and stall that of misses. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/mem.h"
#include "study/profile/sampling/estimate_profile.h"
#include "study/profile/totals.h"

static const struct column BY_DATA[] = { { "object", "Data", CELL_TEXT, false },
                                         { "verdict", "Verdict", CELL_VERDICT, false },
                                         { "stall_before", "Stall before", CELL_COUNT, false },
                                         { "stall_after", "after", CELL_COUNT, false },
                                         { "change", "Change", CELL_PERCENT, false },
                                         { "error", "±", CELL_PERCENT, false },
                                         { "misses_before", "Misses before", CELL_COUNT, false },
                                         { "misses_after", "after", CELL_COUNT, false },
                                         { 0 } };
static const struct column CHANGES[] = {
    { "object", "Data", CELL_TEXT, false },         { "function", "Procedure", CELL_TEXT, false },
    { "verdict", "Verdict", CELL_VERDICT, false },  { "stall_before", "Stall before", CELL_COUNT, false },
    { "stall_after", "after", CELL_COUNT, false },  { "change", "Change", CELL_PERCENT, false },
    { "error", "±", CELL_PERCENT, false },          { "misses_before", "Misses before", CELL_COUNT, false },
    { "misses_after", "after", CELL_COUNT, false }, { 0 }
};
static const struct column SUMMARY[] = { { "what", "What", CELL_TEXT, false },
                                         { "before", "Before", CELL_COUNT, false },
                                         { "after", "After", CELL_COUNT, false },
                                         { "change", "Change", CELL_PERCENT, false },
                                         { "error", "±", CELL_PERCENT, false },
                                         { "verdict", "Verdict", CELL_VERDICT, false },
                                         { 0 } };

/* Costs of an object, or of an object and a function, before and after. Indices: 0 before, 1 after. */
struct change {
    const char *object, *function; /* function: NULL: all functions */
    uint64_t stall[2], misses[2];  /* cycles; lines missed */
    double variance[2];            /* of the stall: sum of the squares of errors */
    bool has_references[2];        /* the profile, or its samples, have references to it */
};

/* All changes between two profiles. */
struct changes {
    struct change *change;
    size_t count;
    struct map numbers; /* uint32_t: 1 + index, by names */
};

/* ---- errors ---- */

/* The error of the misses of an object, or of all. */
static double diff_error(const struct profile *p, uint32_t object)
{
    struct sampled_object o;

    if (!p->sampled)
        return 0;
    sampled_object(p->sampled, object, &o);
    return o.error >= 0 ? o.error : o.misses; /* too few windows */
}

static double square_of_error(double x)
{
    return x * x;
}

/* The error of the stall, if these misses have the mean stall. */
static double diff_stall_error(double error, uint64_t misses, uint64_t stall)
{
    return misses ? error / (double)misses * (double)stall : 0;
}

/* The error of the difference. */
static double change_error(const struct change *c)
{
    return sqrt(c->variance[0] + c->variance[1]);
}

enum diff_verdict { SAME, WITHIN, BETTER, WORSE, UNSEEN };

static const char *const VERDICTS[] = { "same", "within ±", "better", "worse", "not sampled" };

static enum diff_verdict diff_judge(double before, double after, double error, double allow)
{
    double difference = after - before;

    if (fabs(difference) <= allow * before)
        return SAME;
    if (fabs(difference) <= error)
        return WITHIN;
    return difference < 0 ? BETTER : WORSE;
}

/* ---- changes ---- */

static bool names_are_same(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static struct change *changes_find(struct changes *all, const char *object, const char *function)
{
    uint64_t key = XXH3_64bits(object, strlen(object)) ^ (function ? 31 * XXH3_64bits(function, strlen(function)) : 0);

    for (uint32_t tag = 0;; tag++) {
        uint32_t *number = map_put(&all->numbers, key, tag);
        assert(number);
        if (*number == 0) {
            all->change = mem_room(all->change, all->count, sizeof *all->change);
            all->change[all->count++] = (struct change){ .object = object, .function = function };
            *number = (uint32_t)all->count;
        }
        struct change *c = &all->change[*number - 1];
        if (names_are_same(c->object, object) && names_are_same(c->function, function))
            return c;
    }
}

static void changes_add(struct changes *all, const struct totals *t, unsigned side, bool by_function)
{
    const struct total *list = by_function ? t->by_both : t->by_object;
    size_t count = by_function ? t->by_both_count : t->by_object_count;
    double *error = mem_alloc(objects_count(t->p->objects) + 1, sizeof *error); /* by object */

    for (size_t i = 0; i < t->by_object_count; i++) {
        const struct total *x = &t->by_object[i];
        error[x->object] = diff_stall_error(diff_error(t->p, x->object), x->misses, total_stall(x));
    }
    for (size_t i = 0; i < count; i++) {
        const struct total *x = &list[i];
        struct change *c = changes_find(all, objects_info(t->p->objects, x->object)->name,
                                        by_function ? t->function[x->function].name : NULL);
        c->has_references[side] = true;
        c->stall[side] += total_stall(x);
        c->misses[side] += x->misses;
        c->variance[side] += square_of_error(error[x->object]);
    }
    free(error);
}

static uint64_t count_distance(const uint64_t pair[2])
{
    return pair[0] > pair[1] ? pair[0] - pair[1] : pair[1] - pair[0];
}

static int compare_changes_by_names(const struct change *x, const struct change *y)
{
    int r = strcmp(x->object, y->object);

    return r || !x->function ? r : strcmp(x->function, y->function);
}

static int compare_changes_by_stall(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    uint64_t dx = count_distance(x->stall), dy = count_distance(y->stall);

    return dx != dy ? (dx > dy ? -1 : 1) : compare_changes_by_names(x, y);
}

static int compare_changes_by_misses(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    uint64_t dx = count_distance(x->misses), dy = count_distance(y->misses);

    return dx != dy ? (dx > dy ? -1 : 1) : compare_changes_by_stall(a, b);
}

static void changes_make(struct changes *all, const struct totals side[2], bool by_function, const char *sort)
{
    *all = (struct changes){ .numbers.value_size = sizeof(uint32_t) };
    changes_add(all, &side[0], 0, by_function);
    changes_add(all, &side[1], 1, by_function);
    if (all->count)
        qsort(all->change, all->count, sizeof *all->change,
              sort && !strcmp(sort, "misses") ? compare_changes_by_misses : compare_changes_by_stall);
}

static void changes_release(struct changes *all)
{
    free(all->change);
    map_release(&all->numbers);
}

/* ---- tables ---- */

static void diff_put_change(struct table *t, double before, double after, double error)
{
    if (before > 0)
        table_real(t, (after - before) / before);
    else
        table_none(t);
    if (before > 0 && error > 0)
        table_real(t, error / before);
    else
        table_none(t);
}

static bool change_is_wanted(const struct profile_wants *w, const struct change *c)
{
    if (c->stall[0] + c->stall[1] + c->misses[0] + c->misses[1] == 0)
        return false;
    return !w->focus || strstr(c->object, w->focus) || (c->function && strstr(c->function, w->focus));
}

/* References to an object without any in samples may lie between windows. */
static enum diff_verdict change_judge(const struct change *c, const struct profile *p[2], double allow)
{
    for (unsigned i = 0; i < 2; i++)
        if (p[i]->sampled && !c->has_references[i])
            return UNSEEN;
    return diff_judge((double)c->stall[0], (double)c->stall[1], change_error(c), allow);
}

static void diff_add_changes(struct table *t, const struct changes *all, const struct profile_wants *w,
                             const struct profile *p[2])
{
    bool by_function = table_column(t, "function") < t->columns;

    for (size_t i = 0; i < all->count && (w->top == 0 || t->rows < w->top); i++) {
        const struct change *c = &all->change[i];
        if (!change_is_wanted(w, c))
            continue;
        table_text(t, c->object);
        if (by_function)
            table_text(t, c->function);
        table_text(t, VERDICTS[change_judge(c, p, w->allow)]);
        table_count(t, c->stall[0]);
        table_count(t, c->stall[1]);
        diff_put_change(t, (double)c->stall[0], (double)c->stall[1], change_error(c));
        table_count(t, c->misses[0]);
        table_count(t, c->misses[1]);
    }
}

/* The sum over all objects, as one object. */
static struct change diff_sum(const struct profile *side[2])
{
    struct change c = { 0 };

    for (unsigned i = 0; i < 2; i++) {
        c.stall[i] = side[i]->stall;
        c.misses[i] = side[i]->misses;
        c.variance[i] =
            square_of_error(diff_stall_error(diff_error(side[i], ESTIMATE_ALL), side[i]->misses, side[i]->stall));
    }
    return c;
}

/* The headline; to be freed. */
static char *diff_verdict(const struct change *sum, const struct changes *all, enum diff_verdict verdict)
{
    double before = (double)sum->stall[0], after = (double)sum->stall[1], error = change_error(sum);
    double change = before > 0 ? 100 * (after - before) / before : 100;

    if (verdict == SAME && after != before)
        return mem_format("Same: memory stall changes by %+.2g %%, which is allowed", change);
    if (verdict == SAME)
        return mem_string("Same: as much memory stall as before");
    if (verdict == WITHIN)
        return mem_format("Within the errors of the samples: memory stall changes by %+.1f %% ± %.1f %%", change,
                          before > 0 ? 100 * error / before : 100);
    const struct change *most = NULL; /* with the same direction */
    for (size_t i = 0; i < all->count && !most; i++)
        if ((all->change[i].stall[1] < all->change[i].stall[0]) == (after < before))
            most = &all->change[i];
    return mem_format("%s: %.1f %% %s memory stall%s%s%s%s", verdict == BETTER ? "Better" : "Worse", fabs(change),
                      after < before ? "less" : "more", most ? ", most of it for " : "", most ? most->object : "",
                      most ? " in " : "", most ? most->function : "");
}

/* verdict: NULL: there is none of it. */
static void diff_put_row(struct table *t, const char *what, const uint64_t n[2], double error, const char *verdict)
{
    table_text(t, what);
    table_count(t, n[0]);
    table_count(t, n[1]);
    diff_put_change(t, (double)n[0], (double)n[1], error);
    table_text(t, verdict);
}

static void diff_add_summary(struct result *ret, const struct profile *p[2], const struct change *sum,
                             enum diff_verdict verdict, double allow, const char *title)
{
    struct table *t = result_table(ret, "summary", title, SUMMARY);
    double error = hypot(diff_error(p[0], ESTIMATE_ALL), diff_error(p[1], ESTIMATE_ALL));
    enum diff_verdict misses = diff_judge((double)sum->misses[0], (double)sum->misses[1], error, allow);

    diff_put_row(t, "cycles", (uint64_t[]){ p[0]->result.cycles, p[1]->result.cycles }, 0, NULL);
    diff_put_row(t, "compute", (uint64_t[]){ p[0]->compute, p[1]->compute }, 0, NULL);
    diff_put_row(t, "memory stall", sum->stall, change_error(sum), VERDICTS[verdict]);
    diff_put_row(t, "references", (uint64_t[]){ p[0]->references, p[1]->references }, 0, NULL);
    diff_put_row(t, "misses", sum->misses, error, VERDICTS[misses]);
    if (allow > 0)
        table_note(t, "what changes by no more than %g %% is the same (--allow)", 100 * allow);
    if (p[0]->sampled || p[1]->sampled)
        table_note(
            t,
            "±: both errors together, as a part of what was before; what changes by less is within ±. A procedure's part of "
            "data may be as far off as all of it. Not sampled: the samples of one side have no reference to it");
    else
        table_note(t, "of these two recordings on this machine every number is exact: there are no error bars");
}

bool profile_diff(const struct profile *before, const struct profile *after, const struct profile_wants *w,
                  struct result *ret)
{
    const struct profile *p[2] = { before, after };
    struct totals side[2];
    struct changes by_data, by_both;
    struct change sum = diff_sum(p);

    for (unsigned i = 0; i < 2; i++)
        totals_make(&side[i], p[i], w->sort);
    changes_make(&by_data, side, false, w->sort);
    changes_make(&by_both, side, true, w->sort);
    enum diff_verdict verdict = diff_judge((double)sum.stall[0], (double)sum.stall[1], change_error(&sum), w->allow);
    char *title = diff_verdict(&sum, &by_both, verdict);
    diff_add_summary(ret, p, &sum, verdict, w->allow, title);
    diff_add_changes(result_table(ret, "objects", "What got better or worse, by data", BY_DATA), &by_data, w, p);
    diff_add_changes(result_table(ret, "changes", "By data and procedure", CHANGES), &by_both, w, p);
    free(title);
    changes_release(&by_data);
    changes_release(&by_both);
    for (unsigned i = 0; i < 2; i++)
        totals_release(&side[i]);
    return verdict == WORSE;
}
