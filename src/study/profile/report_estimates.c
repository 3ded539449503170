/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "study/profile/advice.h"
#include "study/profile/estimate_profile.h"
#include "study/profile/report_in.h"

static const struct column ESTIMATES[] = { { "object", "Data", CELL_TEXT, false },
                                           { "misses", "Misses", CELL_COUNT, false },
                                           { "error", "±", CELL_COUNT, false },
                                           { "low", "At least", CELL_COUNT, false },
                                           { "high", "At most", CELL_COUNT, false },
                                           { "seen", "References seen", CELL_COUNT, false },
                                           { "unknown", "Unknown", CELL_COUNT, false },
                                           { "mu", "Missed of unknown", CELL_PERCENT, false },
                                           { "ratio", "By ratio", CELL_COUNT, false },
                                           { "fraction", "By fraction", CELL_COUNT, false },
                                           { 0 } };

static const struct plot ESTIMATE_PLOTS[] = { { .kind = PLOT_BARS,
                                                .title = "Misses by data, and how far off they may be",
                                                .over = "object",
                                                .of = "misses",
                                                .error = "error",
                                                .least = 1,
                                                .most = 15 },
                                              { 0 } };

static void put_estimate(struct table *t, const char *name, const struct sampled_object *o, bool has_sets)
{
    table_text(t, name);
    table_count(t, (uint64_t)(o->misses + 0.5));
    if (o->error >= 0)
        table_count(t, (uint64_t)(o->error + 0.5));
    else
        table_none(t);
    table_count(t, (uint64_t)(o->low + 0.5));
    table_count(t, (uint64_t)(o->high + 0.5));
    table_count(t, o->seen);
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

static void note_samples(struct table *t, const struct sampled *s, const struct sampled_object *all)
{
    struct sample_counts c = sampled_counts(s);

    table_note(t,
               "sampled: %" PRIu64 " of %" PRIu64 " references in %" PRIu64
               " windows%s; all tables are scaled to the whole run, but over_time, which has what was seen",
               c.seen - c.other_sets, c.seen + c.between, c.windows,
               sampled_config(s)->is_random ? " at random places" : "");
    table_note(
        t,
        "unknown: whether these missed depends on what was not seen; so many of them as the age estimator says are taken for "
        "misses, whose cause is unknown. At least, at most: none, or all of them missed");
    if (all->error >= 0)
        table_note(t, "±: half of the interval of 95 %%, from the differences between %s",
                   sampled_config(s)->every ? "windows" : "sets");
    else
        table_note(t, "too few windows to tell how much they differ: take shorter ones (--length)");
    if (c.chosen < c.sets)
        table_note(t, "%" PRIu64 " of %" PRIu64 " sets were chosen; misses are by fraction%s", c.chosen, c.sets,
                   all->sets.disagree
                       ? "; the two estimates by sets disagree by more than a tenth: sets are not alike, look at both"
                       : "");
}

/* A program that was late for windows has missed some. */
static void note_late(struct table *t, const struct sampled *s)
{
    struct sample_counts c = sampled_counts(s);
    double missed = 100 * (double)c.missed / (double)(c.seen + c.missed);

    if (missed < 5)
        return;
    table_note(
        t,
        "%.0f %% of what was to be seen was missed: while an innermost loop runs, the program does not look whether a "
        "window has begun, and it was up to %" PRIu64
        " references late. What such loops do is seen too seldom: take longer windows (--length), or a recording "
        "(--trace)",
        missed, c.late);
}

/* What nobody knows of a program that ran by itself between windows. */
static void note_left_out(struct table *t, const struct profile *p)
{
    const struct sampled *s = p->sampled;

    if (!sampled_has_left_out(s))
        return;
    table_note(t,
               "between windows the program ran by itself: which lines it used then is not known. Up to %" PRIu64
               " misses, of lines that no window had seen before, may be cold; their cause is unknown",
               sampled_maybe_cold(s));
    table_note(t,
               "between windows, instructions are taken for as many by reference as in windows; a window begins up to "
               "a block, or a run of an innermost loop, late");
    note_late(t, s);
    if (p->paths.lost)
        table_note(t, "path unknown before the window: %" PRIu64 " times it was not found on the stack", p->paths.lost);
}

/* Whether more windows could bring the data that matter into another order. */
static void note_order(struct table *t, const struct report *r, const struct sampled_object *all)
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
        if (round(100 * of_x / stall) == round(100 * of_y / stall)) /* nobody asks which is first */
            continue;
        sampled_object(r->p->sampled, x->object, &a);
        sampled_object(r->p->sampled, y->object, &b);
        if (a.misses - b.misses >= hypot(a.error, b.error))
            continue;
        table_note(
            t,
            "the order is not sure: %s and %s differ by less than their errors; more windows would tell (a longer "
            "run, or a larger part)",
            report_object(r, x->object), report_object(r, y->object));
        return;
    }
    table_note(t, "the order is sure: data that wait for 90 %% of the stall differ by more than their errors");
}

/* Where samples are of little use. */
static void note_advice(struct table *t, const struct profile *p)
{
    const double rate = p->references ? (double)p->misses / (double)p->references : 0;
    struct advice advice = advice_for(rate, p->references);

    if (sampled_config(p->sampled)->every && advice.length == 0)
        table_note(t, "%s miss rate, %s references: %s (peet advise)", advice_rate_name(advice.rate),
                   advice_size_name(advice.size), advice.text);
}

void report_add_estimates(struct report *r)
{
    struct sampled *s = r->p->sampled;
    struct sampled_object o;
    size_t shown = 0;

    if (!s)
        return;
    bool has_sets = sampled_counts(s).chosen < sampled_counts(s).sets;
    struct table *t = result_table(r->result, "estimates", "Estimates from samples", ESTIMATES);
    t->plot = ESTIMATE_PLOTS;
    sampled_object(s, ESTIMATE_ALL, &o);
    put_estimate(t, "all", &o, has_sets);
    note_samples(t, s, &o);
    note_order(t, r, &o);
    note_left_out(t, r->p);
    note_advice(t, r->p);
    for (size_t i = 0; i < r->t.by_object_count && shown < report_rows(r); i++) {
        const struct total *x = &r->t.by_object[i];
        const char *name = report_object(r, x->object);
        if (report_is_small(r, x) || !report_wants(r, name, NULL))
            continue;
        sampled_object(s, x->object, &o);
        put_estimate(t, name, &o, has_sets);
        shown++;
    }
}
