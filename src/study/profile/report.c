/* SPDX-License-Identifier: MIT */
/* A profile as tables. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/profile/estimate_profile.h"
#include "study/profile/profile.h"
#include "study/profile/totals.h"

enum { TEXT = 320 };

#define UNKNOWN UINT32_MAX

static const struct column BOTTLENECKS[] = { { "share", "Share", CELL_PERCENT, false },
                                             { "object", "Data", CELL_TEXT, false },
                                             { "function", "Procedure", CELL_TEXT, false },
                                             { "place", "Place", CELL_TEXT, false },
                                             { "cause", "Cause", CELL_TEXT, false },
                                             { "detail", "Detail", CELL_TEXT, false },
                                             { 0 } };
static const struct column SUMMARY[] = { { "machine", "machine", CELL_TEXT, false },
                                         { "processors", "processors", CELL_COUNT, false },
                                         { "cycles", "cycles", CELL_COUNT, false },
                                         { "compute", "compute", CELL_COUNT, false },
                                         { "stall", "memory stall", CELL_COUNT, false },
                                         { "fetch", "instruction stall", CELL_COUNT, false },
                                         { "stall_share", "stall share", CELL_PERCENT, false },
                                         { "instructions", "instructions", CELL_COUNT, false },
                                         { "references", "references", CELL_COUNT, false },
                                         { "misses", "misses", CELL_COUNT, false },
                                         { "miss_rate", "miss rate", CELL_PERCENT, false },
                                         { 0 } };
static const struct column PROCEDURES[] = { { "function", "Procedure", CELL_TEXT, false },
                                            { "share", "Time", CELL_PERCENT, false },
                                            { "compute", "Compute", CELL_COUNT, false },
                                            { "stall", "Stall", CELL_COUNT, false },
                                            { "fetch", "Instructions", CELL_COUNT, false },
                                            { "stall_share", "Of stall", CELL_PERCENT, false },
                                            { "references", "References", CELL_COUNT, false },
                                            { "misses", "Misses", CELL_COUNT, false },
                                            { "miss_rate", "Rate", CELL_PERCENT, false },
                                            { "file", "File", CELL_TEXT, false },
                                            { 0 } };
#define X(name, title) { #name, title, CELL_PERCENT, false },
static const struct column OBJECTS[] = { { "object", "Data", CELL_TEXT, false },
                                         { "stall_share", "Of stall", CELL_PERCENT, false },
                                         { "stall", "Stall", CELL_COUNT, false },
                                         { "references", "References", CELL_COUNT, false },
                                         { "misses", "Misses", CELL_COUNT, false },
                                         { "miss_rate", "Rate", CELL_PERCENT, false },
                                         PROFILE_CAUSES(X){ "kind", "Kind", CELL_TEXT, false },
                                         { "type", "Type", CELL_TEXT, false },
                                         { "bytes", "Size", CELL_BYTES, false },
                                         { "place", "Declared or allocated", CELL_TEXT, false },
                                         { 0 } };
static const struct column CROSS[] = { { "object", "Data", CELL_TEXT, false },
                                       { "function", "Procedure", CELL_TEXT, false },
                                       { "stall_share", "Of stall", CELL_PERCENT, false },
                                       { "stall", "Stall", CELL_COUNT, false },
                                       { "references", "References", CELL_COUNT, false },
                                       { "misses", "Misses", CELL_COUNT, false },
                                       { "miss_rate", "Rate", CELL_PERCENT, false },
                                       PROFILE_CAUSES(X){ 0 } };
#undef X
static const struct column EVICTIONS[] = { { "object", "Data that was missed", CELL_TEXT, false },
                                           { "by", "Pushed out by", CELL_TEXT, false },
                                           { "misses", "Misses", CELL_COUNT, false },
                                           { "stall_share", "Of stall", CELL_PERCENT, false },
                                           { "conflict", "Conflict", CELL_PERCENT, false },
                                           { 0 } };
static const struct column SHARING[] = { { "object", "Data", CELL_TEXT, false },
                                         { "kind", "Sharing", CELL_TEXT, false },
                                         { "missed_at", "Missed at", CELL_TEXT, false },
                                         { "written_at", "Written at", CELL_TEXT, false },
                                         { "misses", "Misses", CELL_COUNT, false },
                                         { "stall_share", "Of stall", CELL_PERCENT, false },
                                         { 0 } };
static const struct column LINES[] = {
    { "place", "Place", CELL_TEXT, false },    { "function", "Procedure", CELL_TEXT, false },
    { "object", "Data", CELL_TEXT, false },    { "stall_share", "Of stall", CELL_PERCENT, false },
    { "stall", "Stall", CELL_COUNT, false },   { "references", "References", CELL_COUNT, false },
    { "misses", "Misses", CELL_COUNT, false }, { "miss_rate", "Rate", CELL_PERCENT, false },
    { "cause", "Cause", CELL_TEXT, false },    { 0 }
};
static const struct column WINDOWS[] = { { "from", "From reference", CELL_COUNT, false },
                                         { "miss_rate", "Miss rate", CELL_PERCENT, false },
                                         { "misses", "Misses", CELL_COUNT, false },
                                         { "stall", "Stall", CELL_COUNT, false },
                                         { 0 } };

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

static const struct plot PROCEDURE_PLOTS[] = { { .kind = PLOT_STACK,
                                                 .title = "Time by procedure",
                                                 .over = "function",
                                                 .of = "compute stall fetch",
                                                 .unit = "cycles",
                                                 .least = 1,
                                                 .most = 15 },
                                               { 0 } };
static const struct plot OBJECT_PLOTS[] = {
    { .kind = PLOT_BARS, .title = "Stall by data", .over = "object", .of = "stall", .least = 1, .most = 15 }, { 0 }
};
static const struct plot WINDOW_PLOTS[] = {
    { .kind = PLOT_STEPS, .title = "Miss rate over time", .over = "from", .of = "miss_rate", .least = 2 }, { 0 }
};

struct report {
    const struct profile *p;
    const struct profile_wants *wants;
    struct totals t;
    struct result *result;
};

static double part(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0;
}

/* All cycles that processors worked or waited for memory. */
static uint64_t time_of(const struct profile *p)
{
    return p->compute + p->stall + p->fetch;
}

static const char *object_name(const struct report *r, uint32_t object)
{
    return object == UNKNOWN ? "unknown" : objects_facts(r->p->objects, object)->name;
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    return slash ? slash + 1 : path;
}

/* "file.c:12", or the function's name where no more is known. */
static const char *line_text(const struct report *r, uint32_t line, char buffer[TEXT])
{
    const struct total_line *l = &r->t.line[line];

    if (l->file && l->line)
        snprintf(buffer, TEXT, "%s:%" PRIu32, base_name(l->file), l->line);
    else
        snprintf(buffer, TEXT, "%s", r->t.function[l->function].name);
    return buffer;
}

static enum profile_cause main_cause(const uint64_t stall[CAUSES])
{
    unsigned best = 0;

    for (unsigned i = 1; i < CAUSES; i++)
        if (stall[i] > stall[best])
            best = i;
    return (enum profile_cause)best;
}

/* Whether a row is wanted: by the object or the function that one looks at. */
static bool is_wanted(const struct report *r, const char *object, const char *function)
{
    const char *f = r->wants->focus;

    return !f || (object && !strcmp(object, f)) || (function && !strcmp(function, f));
}

static size_t limit(const struct report *r)
{
    return r->wants->top ? r->wants->top : SIZE_MAX;
}

/* What waits for nearly nothing is for those who want all. */
static bool is_small(const struct report *r, const struct total *x)
{
    return r->wants->top && total_stall(x) * 2000 < r->p->stall;
}

/* ---- the first line ---- */

/* Who is to blame for the misses of a line on an object for a cause, and for which part of them. */
static void find_detail(const struct report *r, const struct total *x, enum profile_cause cause, char text[TEXT])
{
    uint32_t best = UNKNOWN;
    uint64_t all = 0, most = 0;
    char place[TEXT];
    struct {
        uint32_t key;
        uint64_t misses;
    } by[64] = { { 0 } };
    size_t count = 0;

    for (size_t i = 0; i < r->p->pairs; i++) {
        const struct profile_pair *q = &r->p->pair[i];
        if (q->object != x->object || q->cause != cause || r->t.place[q->of].line != x->line)
            continue;
        uint32_t key = cause == CAUSE_capacity || cause == CAUSE_conflict ? q->by_object
                       : q->by == UNKNOWN                                 ? UNKNOWN
                                                                          : r->t.place[q->by].line;
        size_t k = 0;
        while (k < count && by[k].key != key)
            k++;
        if (k == 64)
            continue;
        count += k == count;
        by[k].key = key;
        by[k].misses += q->misses;
        all += q->misses;
        if (by[k].misses > most) {
            most = by[k].misses;
            best = key;
        }
    }
    *text = 0;
    if (all == 0)
        return;
    if (cause == CAUSE_capacity || cause == CAUSE_conflict)
        snprintf(text, TEXT, "pushed out by %.150s (%.0f %%)", best == x->object ? "itself" : object_name(r, best),
                 100 * part(most, all));
    else
        snprintf(text, TEXT, "written at %.150s (%.0f %%)",
                 best == UNKNOWN ? "an unknown place" : line_text(r, best, place), 100 * part(most, all));
}

static void add_bottlenecks(struct report *r)
{
    struct table *t;
    char text[3 * TEXT], detail[TEXT], place[TEXT];
    const struct total *first = r->t.by_line_count ? &r->t.by_line[0] : NULL;
    uint64_t time = time_of(r->p);

    if (!first || r->p->stall == 0) {
        t = result_table(r->result, "bottlenecks", "Nothing waits for memory", BOTTLENECKS);
        table_note(t, "every reference was found in the first cache");
        return;
    }
    enum profile_cause cause = main_cause(first->stall);
    find_detail(r, first, cause, detail);
    snprintf(text, sizeof text, "%.0f %% of the time waits for %.80s in %.80s at %.60s: %s%s%.120s",
             100 * part(total_stall(first), time), object_name(r, first->object),
             r->t.function[r->t.line[first->line].function].name, line_text(r, first->line, place),
             profile_cause_title(cause), *detail ? ", " : "", detail);
    t = result_table(r->result, "bottlenecks", text, BOTTLENECKS);
    size_t shown = 0, most = r->wants->top ? r->wants->top : 10;
    for (size_t i = 0; i < r->t.by_line_count && shown < most; i++) {
        const struct total *x = &r->t.by_line[i];
        const char *object = object_name(r, x->object), *function = r->t.function[r->t.line[x->line].function].name;
        if (total_stall(x) == 0 || is_small(r, x) || !is_wanted(r, object, function))
            continue;
        cause = main_cause(x->stall);
        find_detail(r, x, cause, detail);
        table_real(t, part(total_stall(x), time));
        table_text(t, object);
        table_text(t, function);
        table_text(t, line_text(r, x->line, place));
        table_text(t, profile_cause_title(cause));
        table_text(t, *detail ? detail : NULL);
        shown++;
    }
    table_note(
        t,
        "share: of the program's time, compute and stall of all processors; the cause is the one with the most stall");
}

/* ---- the tables ---- */

static void add_summary(struct report *r)
{
    const struct profile *p = r->p;
    struct table *t = result_table(r->result, "summary", "Summary", SUMMARY);

    t->records = true;
    table_text(t, p->machine.name);
    table_count(t, p->machine.cpus);
    table_count(t, p->result.cycles);
    table_count(t, p->compute);
    table_count(t, p->stall);
    table_count(t, p->fetch);
    table_real(t, part(p->stall, time_of(p)));
    table_count(t, p->result.instructions);
    table_count(t, p->references);
    table_count(t, p->misses);
    table_real(t, part(p->misses, p->references));
    table_note(
        t,
        "stall: cycles that references waited beyond a hit in the first cache; misses: lines that none of the processor's own caches had");
    if (p->result.is_part)
        table_note(t, "this is a part of the program: it was stopped");
}

static void put_costs(struct table *t, const struct report *r, const struct total *x)
{
    table_real(t, part(total_stall(x), r->p->stall));
    table_count(t, total_stall(x));
    table_count(t, x->references);
    table_count(t, x->misses);
    table_real(t, part(x->misses, x->references));
}

static void put_causes(struct table *t, const struct total *x)
{
    uint64_t all = total_stall(x);

    for (unsigned i = 0; i < CAUSES; i++)
        if (x->stall[i])
            table_real(t, part(x->stall[i], all));
        else
            table_none(t);
}

static void add_procedures(struct report *r)
{
    struct table *t = result_table(r->result, "procedures", "Time by procedure", PROCEDURES);
    uint64_t time = time_of(r->p);
    size_t shown = 0;

    t->plot = PROCEDURE_PLOTS;
    for (size_t i = 0; i < r->t.by_function_count && shown < limit(r); i++) {
        const struct total *x = &r->t.by_function[i];
        const struct total_function *f = &r->t.function[x->function];
        if (!is_wanted(r, NULL, f->name) || (r->wants->top && (f->compute + f->fetch + total_stall(x)) * 2000 < time))
            continue;
        table_text(t, f->name);
        table_real(t, part(f->compute + f->fetch + total_stall(x), time));
        table_count(t, f->compute);
        table_count(t, total_stall(x));
        table_count(t, f->fetch);
        table_real(t, part(total_stall(x), r->p->stall));
        table_count(t, x->references);
        table_count(t, x->misses);
        table_real(t, part(x->misses, x->references));
        table_text(t, base_name(f->file));
        shown++;
    }
}

static void add_objects(struct report *r)
{
    static const char *const kinds[] = { "unknown", "named", "heap", "variable", "thread-local", "stack", "file" };
    struct table *t = result_table(r->result, "objects", "Data", OBJECTS);
    char place[TEXT];
    size_t shown = 0;

    t->plot = OBJECT_PLOTS;
    for (size_t i = 0; i < r->t.by_object_count && shown < limit(r); i++) {
        const struct total *x = &r->t.by_object[i];
        const struct object_facts *f = objects_facts(r->p->objects, x->object);
        if (is_small(r, x) || !is_wanted(r, f->name, NULL))
            continue;
        table_text(t, f->name);
        put_costs(t, r, x);
        put_causes(t, x);
        table_text(t, kinds[f->kind]);
        table_text(t, f->type);
        table_count(t, f->bytes);
        snprintf(place, sizeof place, "%s:%" PRIu32, f->file ? base_name(f->file) : "", f->line);
        table_text(t, f->file ? place : NULL);
        shown++;
    }
}

static void add_cross(struct report *r)
{
    struct table *t = result_table(r->result, "objects_by_procedure", "Data by procedure", CROSS);
    size_t shown = 0;

    for (size_t i = 0; i < r->t.by_both_count && shown < limit(r); i++) {
        const struct total *x = &r->t.by_both[i];
        const char *object = object_name(r, x->object), *function = r->t.function[x->function].name;
        if (is_small(r, x) || !is_wanted(r, object, function))
            continue;
        table_text(t, object);
        table_text(t, function);
        put_costs(t, r, x);
        put_causes(t, x);
        shown++;
    }
    table_note(t, "causes: shares of the row's stall");
}

static void add_lines(struct report *r)
{
    struct table *t = result_table(r->result, "lines", "Lines", LINES);
    char place[TEXT];
    size_t shown = 0;

    for (size_t i = 0; i < r->t.by_line_count && shown < limit(r); i++) {
        const struct total *x = &r->t.by_line[i];
        const char *object = object_name(r, x->object), *function = r->t.function[r->t.line[x->line].function].name;
        if (is_small(r, x) || !is_wanted(r, object, function))
            continue;
        table_text(t, line_text(r, x->line, place));
        table_text(t, function);
        table_text(t, object);
        put_costs(t, r, x);
        table_text(t, total_stall(x) ? profile_cause_title(main_cause(x->stall)) : NULL);
        shown++;
    }
}

/* Pairs that are one row, added up. */
struct met {
    struct profile_pair pair;
    uint64_t conflicts; /* misses */
};

/* What makes a row of them comes first, so that its pairs stand together. */
static int by_key(const void *a, const void *b)
{
    const struct profile_pair *x = &((const struct met *)a)->pair, *y = &((const struct met *)b)->pair;
    const uint32_t left[] = { x->object, x->by_object, x->of, x->by, x->cause };
    const uint32_t right[] = { y->object, y->by_object, y->of, y->by, y->cause };

    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

static int by_stall(const void *a, const void *b)
{
    const struct profile_pair *x = &((const struct met *)a)->pair, *y = &((const struct met *)b)->pair;

    if (x->stall != y->stall)
        return x->stall < y->stall ? 1 : -1;
    if (x->misses != y->misses)
        return x->misses < y->misses ? 1 : -1;
    return by_key(a, b);
}

/* Those with the same key become one; returns how many are left, the one with the most stall first. */
static size_t merge(struct met *met, size_t count)
{
    size_t n = 0;

    if (count == 0)
        return 0;
    qsort(met, count, sizeof *met, by_key);
    for (size_t i = 1; i < count; i++) {
        if (by_key(&met[n], &met[i]) != 0) {
            met[++n] = met[i];
            continue;
        }
        met[n].pair.misses += met[i].pair.misses;
        met[n].pair.stall += met[i].pair.stall;
        met[n].conflicts += met[i].conflicts;
    }
    qsort(met, ++n, sizeof *met, by_stall);
    return n;
}

static void add_evictions(struct report *r)
{
    struct table *t = result_table(r->result, "evictions", "Who pushes out whom", EVICTIONS);
    struct met *met = mem_alloc(r->p->pairs + 1, sizeof *met);
    size_t n = 0, shown = 0;

    for (size_t i = 0; i < r->p->pairs; i++) {
        const struct profile_pair *q = &r->p->pair[i];
        if (q->cause != CAUSE_capacity && q->cause != CAUSE_conflict)
            continue;
        met[n] = (struct met){ *q, q->cause == CAUSE_conflict ? q->misses : 0 };
        met[n].pair.of = met[n].pair.by = met[n].pair.cause = 0;
        n++;
    }
    n = merge(met, n);
    for (size_t i = 0; i < n && shown < limit(r); i++) {
        const struct profile_pair *q = &met[i].pair;
        const char *object = object_name(r, q->object), *by = object_name(r, q->by_object);
        if (!is_wanted(r, object, NULL) && !is_wanted(r, by, NULL))
            continue;
        table_text(t, object);
        table_text(t, by);
        table_count(t, q->misses);
        table_real(t, part(q->stall, r->p->stall));
        table_real(t, part(met[i].conflicts, q->misses));
        shown++;
    }
    free(met);
}

static void add_sharing(struct report *r)
{
    struct table *t = result_table(r->result, "sharing", "Who takes lines away", SHARING);
    struct met *met = mem_alloc(r->p->pairs + 1, sizeof *met);
    char of[TEXT], by[TEXT];
    size_t n = 0, shown = 0;

    for (size_t i = 0; i < r->p->pairs; i++) {
        const struct profile_pair *q = &r->p->pair[i];
        if (q->cause != CAUSE_true_sharing && q->cause != CAUSE_false_sharing)
            continue;
        met[n].pair = *q;
        met[n].pair.by_object = 0;
        met[n].pair.of = r->t.place[q->of].line;
        met[n++].pair.by = q->by == UNKNOWN ? UNKNOWN : r->t.place[q->by].line;
    }
    n = merge(met, n);
    for (size_t i = 0; i < n && shown < limit(r); i++) {
        const struct profile_pair *q = &met[i].pair;
        const char *object = object_name(r, q->object);
        if (!is_wanted(r, object, r->t.function[r->t.line[q->of].function].name))
            continue;
        table_text(t, object);
        table_text(t, q->cause == CAUSE_true_sharing ? "true" : "false");
        table_text(t, line_text(r, q->of, of));
        table_text(t, q->by == UNKNOWN ? "unknown" : line_text(r, q->by, by));
        table_count(t, q->misses);
        table_real(t, part(q->stall, r->p->stall));
        shown++;
    }
    free(met);
}

/* ---- samples ---- */

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

static void add_estimates(struct report *r)
{
    struct sampled *s = r->p->sampled;
    struct sampled_object o;
    size_t shown = 0;

    if (!s)
        return;
    bool has_sets = sampled_counts(s).chosen < sampled_counts(s).sets;
    struct table *t = result_table(r->result, "estimates", "Estimates from samples", ESTIMATES);
    sampled_object(s, ESTIMATE_ALL, &o);
    put_estimate(t, "all", &o, has_sets);
    note_samples(t, s, &o);
    for (size_t i = 0; i < r->t.by_object_count && shown < limit(r); i++) {
        const struct total *x = &r->t.by_object[i];
        const char *name = object_name(r, x->object);
        if (is_small(r, x) || !is_wanted(r, name, NULL))
            continue;
        sampled_object(s, x->object, &o);
        put_estimate(t, name, &o, has_sets);
        shown++;
    }
}

static void add_windows(struct report *r)
{
    struct table *t = result_table(r->result, "over_time", "Over time", WINDOWS);

    t->plot = WINDOW_PLOTS;
    for (unsigned i = 0; i < PROFILE_WINDOWS && r->p->window[i].references; i++) {
        const struct profile_window *w = &r->p->window[i];
        table_count(t, i * r->p->window_length);
        table_real(t, part(w->misses, w->references));
        table_count(t, w->misses);
        table_count(t, w->stall);
    }
}

void profile_report(const struct profile *p, const struct profile_wants *w, struct result *ret)
{
    struct report r = { .p = p, .wants = w, .result = ret };

    totals_make(&r.t, p, w->sort);
    add_bottlenecks(&r);
    add_summary(&r);
    add_estimates(&r);
    add_procedures(&r);
    add_objects(&r);
    add_cross(&r);
    add_lines(&r);
    add_evictions(&r);
    add_sharing(&r);
    add_windows(&r);
    if (w->source)
        profile_add_source(&r.t, ret);
    totals_release(&r.t);
}
