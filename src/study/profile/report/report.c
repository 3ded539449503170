/* SPDX-License-Identifier: MIT */
/* The report of a profile: summary, headline, and the order of tables. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/profile/report/report_in.h"
#include "study/profile/sampling/estimate_profile.h"

static const struct column BOTTLENECKS[] = { { "share", "Share", CELL_SHARE, false },
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
                                         { "extent", "extent", CELL_TEXT,
                                           false }, /* "whole"; "part": the run was stopped */
                                         { "wait", "waits for threads", CELL_COUNT, false },
                                         { "sync_references", "references of locks", CELL_COUNT, false },
                                         { 0 } };
static const struct column CAUSE_COLUMNS[] = { { "cause", "Cause", CELL_TEXT, false },
                                               { "stall_share", "Of stall", CELL_SHARE, false },
                                               { "stall", "Stall", CELL_COUNT, false },
                                               { "times", "Times", CELL_COUNT, false },
                                               { "object", "Most of it for", CELL_TEXT, false },
                                               { "object_share", "Share of it", CELL_PERCENT, false },
                                               { 0 } };

static const struct plot CAUSE_PLOTS[] = {
    { .kind = PLOT_BARS, .title = "Why references wait", .over = "cause", .of = "stall_share", .least = 1 }, { 0 }
};

double report_part(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0;
}

const char *report_object(const struct profile_report *r, uint32_t object)
{
    return object == REPORT_UNKNOWN ? "unknown" : objects_info(r->p->objects, object)->name;
}

const char *report_base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    return slash ? slash + 1 : path;
}

const char *report_line(const struct profile_report *r, uint32_t line, char buffer[REPORT_TEXT])
{
    const struct total_line *l = &r->t.line[line];

    if (l->file && l->line)
        snprintf(buffer, REPORT_TEXT, "%s:%" PRIu32, report_base_name(l->file), l->line);
    else
        snprintf(buffer, REPORT_TEXT, "%s", r->t.function[l->function].name);
    return buffer;
}

enum profile_cause report_cause(const uint64_t stall[CAUSES])
{
    unsigned best = 0;

    for (unsigned i = 1; i < CAUSES; i++)
        if (stall[i] > stall[best])
            best = i;
    return (enum profile_cause)best;
}

size_t report_rows(const struct profile_report *r)
{
    return r->wants->top ? r->wants->top : SIZE_MAX;
}

bool report_is_small(const struct profile_report *r, const struct total *x)
{
    const char *sort = r->wants->sort ? r->wants->sort : "stall";

    if (r->wants->top == 0)
        return false;
    if (!strcmp(sort, "references"))
        return x->references < r->p->references / 2000;
    if (!strcmp(sort, "misses"))
        return x->misses < r->p->misses / 2000;
    return total_cost(x) < r->p->stall / 2000;
}

/* ---- focus ---- */

static bool report_matches(const struct profile_report *r, enum focus how, const char *name)
{
    return how == FOCUS_WHOLE ? !strcmp(name, r->wants->focus) : strstr(name, r->wants->focus) != NULL;
}

static bool report_find_matches(struct profile_report *r, enum focus how)
{
    r->focus = how;
    for (size_t i = 0; i < r->t.by_object_count; i++)
        r->on_objects |= report_matches(r, how, report_object(r, r->t.by_object[i].object));
    for (size_t i = 0; i < r->t.by_function_count; i++)
        r->on_functions |= report_matches(r, how, r->t.function[r->t.by_function[i].function].name);
    return r->on_objects || r->on_functions;
}

static void report_find_focus(struct profile_report *r)
{
    r->on_objects = r->on_functions = !r->wants->focus;
    if (r->wants->focus && !report_find_matches(r, FOCUS_WHOLE) && !report_find_matches(r, FOCUS_PART))
        r->focus = FOCUS_NOTHING;
}

bool report_wants(const struct profile_report *r, const char *object, const char *function)
{
    if (r->focus == FOCUS_OFF || r->focus == FOCUS_NOTHING)
        return r->focus == FOCUS_OFF;
    return (object && report_matches(r, r->focus, object)) || (function && report_matches(r, r->focus, function));
}

/* ---- the headline ---- */

/* What removed the lines that a line of code missed on an object. */
struct aggressor {
    uint32_t by;     /* evictions: index of an object; sharing: index in totals.line; REPORT_UNKNOWN: unknown */
    uint32_t object; /* sharing: the object that the aggressor wrote; evictions: as `by`; REPORT_UNKNOWN: unknown */
    uint64_t misses; /* lines missed */
};

enum { AGGRESSORS = 64 };

static bool cause_is_eviction(enum profile_cause cause)
{
    return cause == CAUSE_capacity || cause == CAUSE_conflict;
}

/* The aggressor with most misses; *ret_all: misses of the first AGGRESSORS aggressors. */
static struct aggressor report_find_aggressor(const struct profile_report *r, const struct total *x,
                                              enum profile_cause cause, uint64_t *ret_all)
{
    struct aggressor list[AGGRESSORS] = { { 0 } }, best = { 0 };
    size_t count = 0;

    *ret_all = 0;
    for (size_t i = 0; i < r->p->pairs; i++) {
        const struct interference_pair *q = &r->p->pair[i];
        if (q->object != x->object || q->cause != cause || totals_place(&r->t, q->of, q->object)->line != x->line)
            continue;
        uint32_t by = cause_is_eviction(cause) ? q->by_object : q->by;
        if (!cause_is_eviction(cause) && by != REPORT_UNKNOWN)
            by = totals_place(&r->t, by, q->by_object)->line;
        size_t k = 0;
        while (k < count && (list[k].by != by || list[k].object != q->by_object))
            k++;
        if (k == AGGRESSORS)
            continue;
        count += k == count;
        list[k].by = by;
        list[k].object = q->by_object;
        list[k].misses += q->misses;
        *ret_all += q->misses;
        best = list[k].misses > best.misses ? list[k] : best;
    }
    return best;
}

/* The aggressor of a line's misses on an object for one cause, with its share, as text; NULL: unknown. To be freed. */
static char *report_find_detail(const struct profile_report *r, const struct total *x, enum profile_cause cause)
{
    uint64_t all;
    struct aggressor c = report_find_aggressor(r, x, cause, &all);
    char place[REPORT_TEXT];
    const char *by = c.by == REPORT_UNKNOWN ? "an unknown place" : NULL;

    if (all == 0 || cause == CAUSE_unknown)
        return NULL;
    if (cause_is_eviction(cause))
        by = c.by == x->object ? "itself" : report_object(r, c.by);
    else if (!by)
        by = report_line(r, c.by, place);
    bool is_other = !cause_is_eviction(cause) && c.object != REPORT_UNKNOWN && c.object != x->object;
    return mem_format("%s%s%s %s (%.0f %%)", is_other ? report_object(r, c.object) : "", is_other ? " " : "",
                      cause_is_eviction(cause) ? "pushed out by" : "written at", by, 100 * report_part(c.misses, all));
}

static const char *report_function(const struct profile_report *r, const struct total *x)
{
    return r->t.function[r->t.line[x->line].function].name;
}

/* The line and object with most stall, of those in focus; NULL: there is no stall. */
static const struct total *report_worst_line(const struct profile_report *r)
{
    const struct total *worst = NULL;

    for (size_t i = 0; i < r->t.by_line_count; i++) {
        const struct total *x = &r->t.by_line[i];
        if (total_stall(x) > (worst ? total_stall(worst) : 0)
            && report_wants(r, report_object(r, x->object), report_function(r, x)))
            worst = x;
    }
    return worst;
}

/* The longest wait for an object in memory, of those in focus; NULL: none. Waits for the end of threads do not count: the waiting thread has
 * no work. */
static const struct report_wait *report_longest_wait(const struct profile_report *r)
{
    for (size_t i = 0; i < r->waits; i++)
        if (r->wait[i].object != REPORT_UNKNOWN && report_wants_wait(r, &r->wait[i]))
            return &r->wait[i];
    return NULL;
}

/* The stall of a line on an object, as text. To be freed. */
static char *report_stall_text(const struct profile_report *r, const struct total *x)
{
    enum profile_cause cause = report_cause(x->stall);
    char *detail = report_find_detail(r, x, cause), place[REPORT_TEXT];
    char *text = mem_format("%.0f %% of the time waits for %s in %s at %s: %s%s%s",
                            100 * report_part(total_stall(x), report_time(r->p)), report_object(r, x->object),
                            report_function(r, x), report_line(r, x->line, place), profile_cause_title(cause),
                            detail ? ", " : "", detail ? detail : "");

    free(detail);
    return text;
}

static char *report_wait_text(const struct profile_report *r, const struct report_wait *w)
{
    char place[REPORT_TEXT];

    return mem_format("%.0f %% of the time waits for %s %s in %s at %s: %s",
                      100 * report_part(w->cycles, report_time(r->p)), report_wait_kind(w), report_object(r, w->object),
                      r->t.function[r->t.line[w->line].function].name, report_line(r, w->line, place),
                      report_wait_cause(w));
}

/* Whether nothing was recorded: the trace is empty, or the program had no instruction that can be recorded. */
static bool report_is_empty(const struct profile *p)
{
    return p->result.instructions == 0 && p->references == 0 && peet_trace_lacks_content(p->trace);
}

/* The profile is of a sample whose interval of all misses is wider than the estimate. */
static bool report_is_unsure(const struct profile *p)
{
    struct sampled_object all;

    if (!p->sampled)
        return false;
    sampled_object(p->sampled, ESTIMATE_ALL, &all);
    return !sampled_is_significant(p->sampled, &all);
}

/* What the whole report says in one line: what a line of code waits for longest, and what most of the time goes into, if it is something else.
 * To be freed. */
static char *report_find_verdict(const struct profile_report *r)
{
    const struct total *x = report_worst_line(r);
    const struct report_wait *w = report_longest_wait(r);
    bool is_wait = w && (!x || w->cycles > total_stall(x));

    if (report_is_empty(r->p))
        return mem_string("Nothing was recorded");
    if (r->focus == FOCUS_NOTHING)
        return mem_format("No data object and no function has '%s' in its name", r->wants->focus);
    if (!x && !w && r->focus != FOCUS_OFF)
        return mem_format("Nothing about %s waits", r->wants->focus);
    char *text = is_wait ? report_wait_text(r, w) : x ? report_stall_text(r, x) : mem_string("Nothing waits for data");
    char *more = r->focus != FOCUS_OFF ? NULL : report_largest_time(r->p, is_wait ? w->as : x ? TIME_stall : TIME_idle);
    char *all = mem_format("%s%s%s%s", text, more ? "; " : "", more ? more : "",
                           report_is_unsure(r->p) ? "; the sample cannot say how many misses there are" : "");
    free(text);
    free(more);
    return all;
}

static void report_put_bottleneck(struct table *t, const struct profile_report *r, const struct total *x)
{
    enum profile_cause cause = report_cause(x->stall);
    char *detail = report_find_detail(r, x, cause), place[REPORT_TEXT];

    table_real(t, report_part(total_stall(x), report_time(r->p)));
    table_text(t, report_object(r, x->object));
    table_text(t, report_function(r, x));
    table_text(t, report_line(r, x->line, place));
    table_text(t, profile_cause_title(cause));
    table_text(t, detail);
    free(detail);
}

static void report_put_wait(struct table *t, const struct profile_report *r, const struct report_wait *w)
{
    char place[REPORT_TEXT];

    table_real(t, report_part(w->cycles, report_time(r->p)));
    table_text(t, report_object(r, w->object));
    table_text(t, r->t.function[r->t.line[w->line].function].name);
    table_text(t, report_line(r, w->line, place));
    table_text(t, report_wait_kind(w));
    table_text(t, report_wait_cause(w));
}

/* The next line and object with stall, of those in focus, from *at on; NULL: none is left. */
static const struct total *report_next_stall(const struct profile_report *r, size_t *at)
{
    while (*at < r->t.by_line_count) {
        const struct total *x = &r->t.by_line[(*at)++];
        if (total_stall(x) && total_stall(x) >= (r->wants->top ? r->p->stall / 2000 : 0)
            && report_wants(r, report_object(r, x->object), report_function(r, x)))
            return x;
    }
    return NULL;
}

/* The next wait for an object, of those in focus, from *at on; NULL: none is left. */
static const struct report_wait *report_next_wait(const struct profile_report *r, size_t *at)
{
    while (*at < r->waits) {
        const struct report_wait *w = &r->wait[(*at)++];
        if (w->object != REPORT_UNKNOWN && w->cycles >= (r->wants->top ? report_time(r->p) / 2000 : 0)
            && report_wants_wait(r, w))
            return w;
    }
    return NULL;
}

/* Why no reference waits beyond a hit in the first cache. */
static void report_note_no_stall(struct table *t, const struct profile *p)
{
    uint64_t farther = 0;

    for (unsigned i = 0; i < p->machine.cpus; i++)
        for (unsigned k = 1; k < CONFIG_LEVELS; k++)
            farther += p->result.memory[i].hits[k];
    if (p->machine.level[0].bytes == 0)
        table_note(t, "the machine has no caches, and memory takes no time");
    else if (p->misses > 0)
        table_note(t, "misses take no time on this machine: there were %" PRIu64 ", which is %.1f %% of the references",
                   p->misses, 100 * report_part(p->misses, p->references));
    else if (farther > 0)
        table_note(t, "farther caches take no more time than the first one on this machine");
    else if (p->references == 0)
        table_note(t, "no reference was recorded");
    else
        table_note(t, "every reference was found in the first cache");
}

static void report_add_bottlenecks(struct profile_report *r)
{
    char *verdict = report_find_verdict(r);
    struct table *t = result_table(r->result, "bottlenecks", verdict, BOTTLENECKS);
    size_t most = report_rows(r), stalls = 0, waits = 0;
    const struct total *x = report_next_stall(r, &stalls);
    const struct report_wait *w = report_next_wait(r, &waits);

    free(verdict);
    while ((x || w) && t->rows < most)
        if (!w || (x && total_stall(x) >= w->cycles)) {
            report_put_bottleneck(t, r, x);
            x = report_next_stall(r, &stalls);
        } else {
            report_put_wait(t, r, w);
            w = report_next_wait(r, &waits);
        }
    if (r->p->stall == 0 && !report_is_empty(r->p))
        report_note_no_stall(t, r->p);
    if (peet_trace_lacks_order(r->p->trace))
        table_note(t, "%s", peet_trace_lacks_order(r->p->trace));
    table_note(t, "share: of the program's time (What time goes into); the cause is the one with the most stall");
}

/* ---- the report ---- */

/* Cycles in which threads waited for each other. */
static uint64_t profile_wait_cycles(const struct profile *p)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < p->waits; i++)
        sum += p->wait[i].cycles;
    return sum;
}

static void report_add_summary(struct profile_report *r)
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
    table_real(t, report_part(p->stall, report_time(p)));
    table_count(t, p->result.instructions);
    table_count(t, p->references);
    table_count(t, p->misses);
    table_real(t, report_part(p->misses, p->references));
    table_text(t, p->result.is_interrupted ? "part" : "whole");
    p->sampled ? table_none(t) : table_count(t, profile_wait_cycles(p));
    p->sampled ? table_none(t) : table_count(t, p->result.sync_references);
    table_note(
        t,
        "stall: cycles that references waited beyond a hit in the first cache; misses: lines that none of the processor's own caches had");
    if (p->result.is_interrupted)
        table_note(t, "this is a part of the program, which was stopped before its end");
}

/* For each cause: its stall, and the object with most of it. */
static void report_add_causes(struct profile_report *r)
{
    struct table *t = result_table(r->result, "causes", "Causes", CAUSE_COLUMNS);

    t->plot = CAUSE_PLOTS;
    for (unsigned i = 0; i < CAUSES; i++) {
        const struct total *most = NULL;
        uint64_t stall = 0, times = 0;
        for (size_t k = 0; k < r->t.by_object_count; k++) {
            const struct total *x = &r->t.by_object[k];
            stall += x->stall[i];
            times += x->cause[i];
            bool is_more =
                most
                && (x->stall[i] > most->stall[i] || (x->stall[i] == most->stall[i] && x->cause[i] > most->cause[i]));
            most = !most || is_more ? x : most;
        }
        if (stall == 0 && times == 0)
            continue;
        table_text(t, profile_cause_title((enum profile_cause)i));
        table_real(t, report_part(stall, r->p->stall));
        table_count(t, stall);
        table_count(t, times);
        table_text(t, report_object(r, most->object));
        table_real(t, stall ? report_part(most->stall[i], stall) : report_part(most->cause[i], times));
    }
}

void profile_report(const struct profile *p, const struct profile_wants *w, struct result *ret)
{
    struct profile_report r = { .p = p, .wants = w, .result = ret };

    totals_make(&r.t, p, w->sort);
    report_find_focus(&r);
    report_find_waits(&r);
    report_add_bottlenecks(&r);
    report_add_summary(&r);
    if (!w->focus)
        report_add_time(&r);
    if (!w->focus)
        report_add_causes(&r);
    if (!w->focus)
        report_add_programs(&r);
    report_add_waits(&r);
    if (r.on_objects)
        report_add_estimates(&r);
    if (r.on_functions)
        report_add_procedures(&r);
    if (r.on_objects)
        report_add_objects(&r);
    if (r.on_objects)
        report_add_members(&r);
    report_add_cross(&r);
    report_add_lines(&r);
    if (!w->focus)
        report_add_program_pairs(&r);
    report_add_evictions(&r);
    report_add_sharing(&r);
    report_add_bins(&r);
    if (w->source)
        profile_add_source(&r.t, ret);
    totals_release(&r.t);
    free(r.wait);
}
