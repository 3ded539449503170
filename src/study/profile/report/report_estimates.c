/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "study/profile/sampling/advice.h"
#include "study/profile/sampling/estimate_profile.h"
#include "study/profile/report/report_in.h"

static const struct column ESTIMATES[] = { { "object", "Data", CELL_TEXT, false },
                                           { "misses", "Misses", CELL_COUNT, false },
                                           { "error", "±", CELL_COUNT, false },
                                           { "from", "From", CELL_COUNT, false },
                                           { "to", "To", CELL_COUNT, false },
                                           { "says", "Says", CELL_TEXT, false },
                                           { "low", "In windows, at least", CELL_COUNT, false },
                                           { "high", "At most", CELL_COUNT, false },
                                           { "seen", "References seen", CELL_COUNT, false },
                                           { "unknown", "Unknown", CELL_COUNT, false },
                                           { "mu", "Missed of unknown", CELL_PERCENT, false },
                                           { "ratio", "By ratio", CELL_COUNT, false },
                                           { "fraction", "By fraction", CELL_COUNT, false },
                                           { 0 } };

static const struct column TOTALS[] = { { "what", "What", CELL_TEXT, false },
                                        { "value", "Estimate", CELL_COUNT, false },
                                        { "error", "±", CELL_COUNT, false },
                                        { "part", "± of it", CELL_PERCENT, false },
                                        { 0 } };

static const struct plot ESTIMATE_PLOTS[] = { { .kind = PLOT_BARS,
                                                .title = "Misses by data, and how far off they may be",
                                                .over = "object",
                                                .of = "misses",
                                                .error = "error",
                                                .least = 1,
                                                .most = 15 },
                                              { 0 } };

/* x: NAN: unknown, an empty cell. */
static void estimates_put_count(struct table *t, double x)
{
    if (x >= 0)
        table_count(t, (uint64_t)(x + 0.5));
    else
        table_none(t);
}

static void estimates_put_object(struct table *t, const char *name, struct sampled *s, const struct sampled_object *o)
{
    bool has_sets = sampled_counts(s).sampled_sets < sampled_counts(s).sets;

    table_text(t, name);
    estimates_put_count(t, o->misses);
    estimates_put_count(t, ceil(o->error));
    estimates_put_count(t, floor(o->from));
    estimates_put_count(t, ceil(o->to));
    table_text(t, sampled_is_significant(s, o) ? "yes" : "no");
    table_count(t, o->low);
    table_count(t, o->high);
    table_count(t, o->observed);
    table_count(t, o->unknown);
    if (o->unknown)
        table_real(t, o->mu);
    else
        table_none(t);
    if (has_sets) {
        table_count(t, (uint64_t)(o->sets.ratio + 0.5));
        table_count(t, (uint64_t)(o->sets.fraction + 0.5));
    } else {
        table_none(t);
        table_none(t);
    }
}

static void estimates_note_samples(struct table *t, const struct sampled *s, const struct sampled_object *all)
{
    struct sample_counts c = sampled_counts(s);

    table_note(t,
               "sampled: %" PRIu64 " of %" PRIu64 " references in %" PRIu64
               " windows%s; all tables are scaled to the whole run, but over_time, which has what windows contain",
               c.observed - c.other_sets, c.observed + c.between, c.windows,
               sampled_config(s)->is_random ? " at random places" : "");
    table_note(t, "±, from, to: the interval that holds the misses of the whole run in 19 of 20 cases (see SAMPLING in "
                  "peet-profile(1))");
    table_note(t, "in windows, at least and at most: the misses in the windows alone, if none or all of their unknown "
                  "references missed. Of unknown references, as many as the age estimator says are taken for misses");
    if (!(all->error >= 0))
        table_note(
            t,
            "too few windows for an interval of the whole run: take shorter ones (--length), more of them (--sample), "
            "or all of the run (no --sample)");
    if (c.sampled_sets < c.sets)
        table_note(t, "%" PRIu64 " of %" PRIu64 " sets were sampled; misses are by fraction%s", c.sampled_sets, c.sets,
                   all->sets.disagree
                       ? "; the two estimates by sets disagree by more than a tenth: sets are not alike, look at both"
                       : "");
}

/* A note on rows with an interval wider than the estimate, and on options that help. */
static void estimates_note_wide(struct table *t, size_t rows, const char *first)
{
    if (rows == 0)
        return;
    table_note(
        t,
        "the sample cannot say how many misses %s%s has (says: no): the interval is wider than the estimate. "
        "Longer windows (--length) know more of a large cache; a larger part (--sample), or shorter windows, more "
        "of a program that changes",
        first, rows > 1 ? ", and other data," : "");
}

/* A note on references of windows that a live program left out, because a loop overran the begin. */
static void estimates_note_overshoot(struct table *t, const struct sampled *s)
{
    struct sample_counts c = sampled_counts(s);
    double missed = 100 * (double)c.missed / (double)(c.observed + c.missed);

    if (missed < 5)
        return;
    table_note(
        t,
        "%.0f %% of the references of windows were left out: while an innermost loop runs, the program does not check whether a "
        "window has begun, and it was up to %" PRIu64
        " references late. Samples have too few references of such loops: take longer windows (--length), or a recording "
        "(--trace)",
        missed, c.late);
}

/* Notes on what is unknown of a live program that ran without recording between windows. */
static void estimates_note_gaps(struct table *t, const struct profile *p)
{
    const struct sampled *s = p->sampled;

    if (!sampled_has_left_out(s))
        return;
    table_note(
        t,
        "between windows the program ran without recording: which lines it used there is not known. Up to %" PRIu64
        " misses, of lines to which no window had referred before, may be cold; their cause is unknown",
        sampled_maybe_cold(s));
    table_note(t,
               "between windows, instructions are taken for as many by reference as in windows; a window begins up to "
               "a block, or a run of an innermost loop, late");
    estimates_note_overshoot(t, s);
    if (p->paths.unknown_paths)
        table_note(t, "path unknown before the window: %" PRIu64 " times it was not found on the stack",
                   p->paths.unknown_paths);
}

/* A note whether more windows could change the order of the objects with most stall. */
static void estimates_note_order(struct table *t, const struct profile_report *r, const struct sampled_object *all)
{
    const struct totals *totals = &r->t;
    double sum = 0;

    if (!(all->error >= 0) || r->p->stall == 0 || (r->wants->sort && strcmp(r->wants->sort, "stall") != 0))
        return;
    for (size_t i = 0; i + 1 < totals->by_object_count && sum < 0.9 * (double)r->p->stall; i++) {
        const struct total *x = &totals->by_object[i], *y = x + 1;
        double of_x = (double)total_stall(x), of_y = (double)total_stall(y), stall = (double)r->p->stall;
        struct sampled_object a, b;
        sum += of_x;
        if (round(100 * of_x / stall)
            == round(100 * of_y / stall)) /* equal shares as shown: their order does not matter */
            continue;
        sampled_object(r->p->sampled, x->object, &a);
        sampled_object(r->p->sampled, y->object, &b);
        if (a.misses - b.misses >= hypot(a.error, b.error))
            continue;
        table_note(
            t,
            "the order is not certain: %s and %s differ by less than their errors; more windows would decide it (a longer "
            "run, or a larger part)",
            report_object(r, x->object), report_object(r, y->object));
        return;
    }
    table_note(t, "the order is certain: data that wait for 90 %% of the stall differ by more than their errors");
}

/* A note where the paper advises against samples. */
static void estimates_note_advice(struct table *t, const struct profile *p)
{
    const double rate = p->references ? (double)p->misses / (double)p->references : 0;
    struct advice advice = advice_for(rate, p->references);

    if (sampled_config(p->sampled)->every && advice.length == 0)
        table_note(t, "%s miss rate, %s references: %s (peet advise)", advice_rate_name(advice.rate),
                   advice_size_name(advice.size), advice.text);
}

static void estimates_put_total(struct table *t, const char *what, double value, double error)
{
    table_text(t, what);
    estimates_put_count(t, value);
    estimates_put_count(t, ceil(error));
    if (error >= 0 && value > 0)
        table_real(t, error / value);
    else
        table_none(t);
}

static void estimates_add_totals(struct profile_report *r, const struct sampled_object *all)
{
    struct table *t = result_table(r->result, "estimated_totals", "The whole run, and how far off it may be", TOTALS);
    const struct profile *p = r->p;
    const struct sampled_time time = sampled_time(p->sampled);

    estimates_put_total(t, "cycles", (double)p->result.cycles, time.error);
    estimates_put_total(t, "compute", (double)(p->compute + p->fetch), time.compute_error);
    estimates_put_total(t, "memory stall", (double)p->stall, time.stall_error);
    estimates_put_total(t, "misses", all->misses, all->error);
    table_note(
        t,
        "references are counted, so that the miss rate is as far off as misses are. What a procedure or a line has of some "
        "data may be as far off as all of these data");
}

/* Whether an object without references in windows may have misses between them. */
static bool object_is_unseen(struct profile_report *r, uint32_t object, const struct sampled_object *o)
{
    return o->observed == 0 && objects_info(r->p->objects, object)->bytes > 0
           && (o->to > (double)r->p->misses / 2000 || r->wants->top == 0);
}

/* Rows of the table so far. */
struct estimate_rows {
    size_t shown; /* rows, with that of all objects */
    size_t wide;  /* rows whose error exceeds the estimate, but for objects with an error up to a tenth of all misses */
    const char *first; /* name of the first of them, borrowed; NULL: none */
};

static void estimates_add_row(struct table *t, struct profile_report *r, struct estimate_rows *rows, uint32_t object)
{
    const char *name = object == ESTIMATE_ALL ? "all" : report_object(r, object);
    struct sampled_object o;

    sampled_object(r->p->sampled, object, &o);
    estimates_put_object(t, name, r->p->sampled, &o);
    rows->shown++;
    if (!sampled_is_significant(r->p->sampled, &o) && rows->wide++ == 0)
        rows->first = name;
}

void report_add_estimates(struct profile_report *r)
{
    struct sampled *s = r->p->sampled;
    struct sampled_object all, o;
    struct estimate_rows rows = { 0 };

    if (!s)
        return;
    sampled_object(s, ESTIMATE_ALL, &all);
    struct table *t = result_table(r->result, "estimates", "Misses, from samples", ESTIMATES);
    t->plot = ESTIMATE_PLOTS;
    estimates_add_row(t, r, &rows, ESTIMATE_ALL);
    for (size_t i = 0; i < r->t.by_object_count && rows.shown <= report_rows(r); i++)
        if (!report_is_small(r, &r->t.by_object[i])
            && report_wants(r, report_object(r, r->t.by_object[i].object), NULL))
            estimates_add_row(t, r, &rows, r->t.by_object[i].object);
    for (uint32_t i = 0; i < objects_count(r->p->objects) && rows.shown <= report_rows(r); i++) {
        sampled_object(s, i, &o);
        if (object_is_unseen(r, i, &o) && report_wants(r, report_object(r, i), NULL))
            estimates_add_row(t, r, &rows, i);
    }
    estimates_note_samples(t, s, &all);
    estimates_note_wide(t, rows.wide, rows.first);
    estimates_note_order(t, r, &all);
    estimates_note_gaps(t, r->p);
    estimates_note_advice(t, r->p);
    estimates_add_totals(r, &all);
}
