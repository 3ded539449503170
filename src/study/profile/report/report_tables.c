/* SPDX-License-Identifier: MIT */
/* Tables of costs: by function, data, both, line, and over time. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "study/profile/report/report_in.h"

static const struct column PROCEDURES[] = { { "function", "Procedure", CELL_TEXT, false },
                                            { "share", "Time", CELL_SHARE, false },
                                            { "compute", "Compute", CELL_COUNT, false },
                                            { "stall", "Stall", CELL_COUNT, false },
                                            { "fetch", "Fetch", CELL_COUNT, false },
                                            { "wait", "Wait", CELL_COUNT, false },
                                            { "stall_share", "Of stall", CELL_PERCENT, false },
                                            { "references", "References", CELL_COUNT, false },
                                            { "misses", "Misses", CELL_COUNT, false },
                                            { "miss_rate", "Rate", CELL_PERCENT, false },
                                            { "file", "File", CELL_TEXT, false },
                                            { "program", "Program", CELL_TEXT, true },
                                            { 0 } };
#define X(name, title) { #name, title, CELL_PERCENT, false },
static const struct column OBJECTS[] = { { "object", "Data", CELL_TEXT, false },
                                         { "stall_share", "Of stall", CELL_SHARE, false },
                                         { "stall", "Stall", CELL_COUNT, false },
                                         { "wait", "Wait", CELL_COUNT, false },
                                         { "references", "References", CELL_COUNT, false },
                                         { "misses", "Misses", CELL_COUNT, false },
                                         { "miss_rate", "Rate", CELL_PERCENT, false },
                                         PROFILE_CAUSES(X){ "kind", "Kind", CELL_TEXT, false },
                                         { "type", "Type", CELL_TEXT, false },
                                         { "bytes", "Size", CELL_BYTES, false },
                                         { "place", "Declared or allocated", CELL_TEXT, false },
                                         { "program", "Program", CELL_TEXT, true },
                                         { 0 } };
static const struct column CROSS[] = { { "object", "Data", CELL_TEXT, false },
                                       { "function", "Procedure", CELL_TEXT, false },
                                       { "stall_share", "Of stall", CELL_SHARE, false },
                                       { "stall", "Stall", CELL_COUNT, false },
                                       { "wait", "Wait", CELL_COUNT, false },
                                       { "references", "References", CELL_COUNT, false },
                                       { "misses", "Misses", CELL_COUNT, false },
                                       { "miss_rate", "Rate", CELL_PERCENT, false },
                                       PROFILE_CAUSES(X){ "program", "Program", CELL_TEXT, true },
                                       { 0 } };
#undef X
static const struct column LINES[] = {
    { "place", "Place", CELL_TEXT, false },    { "function", "Procedure", CELL_TEXT, false },
    { "object", "Data", CELL_TEXT, false },    { "stall_share", "Of stall", CELL_SHARE, false },
    { "cause", "Cause", CELL_TEXT, false },    { "stall", "Stall", CELL_COUNT, false },
    { "wait", "Wait", CELL_COUNT, false },     { "references", "References", CELL_COUNT, false },
    { "misses", "Misses", CELL_COUNT, false }, { "miss_rate", "Rate", CELL_PERCENT, false },
    { "program", "Program", CELL_TEXT, true }, { 0 }
};
static const struct column BINS[] = { { "from", "From reference", CELL_COUNT, false },
                                      { "miss_rate", "Miss rate", CELL_PERCENT, false },
                                      { "misses", "Misses", CELL_COUNT, false },
                                      { "stall", "Stall", CELL_COUNT, false },
                                      { 0 } };

#define X(name, title) #name " "
static const struct plot PROCEDURE_PLOTS[] = { { .kind = PLOT_BARS,
                                                 .title = "Time by procedure",
                                                 .over = "function",
                                                 .of = "compute stall fetch wait",
                                                 .unit = "cycles",
                                                 .least = 1,
                                                 .most = 15 },
                                               { 0 } };
static const struct plot OBJECT_PLOTS[] = {
    { .kind = PLOT_BARS, .title = "Stall by data", .over = "object", .of = "stall", .least = 1, .most = 15 },
    { .kind = PLOT_BARS, .title = "Causes by data", .over = "object", .of = PROFILE_CAUSES(X), .least = 1, .most = 15 },
    { 0 }
};
#undef X
static const struct plot CROSS_PLOTS[] = { { .kind = PLOT_MATRIX,
                                             .title = "Stall by data and procedure",
                                             .over = "object function",
                                             .of = "stall_share",
                                             .least = 2,
                                             .most = 10 },
                                           { 0 } };
static const struct plot BIN_PLOTS[] = {
    { .kind = PLOT_STEPS, .title = "Miss rate over time", .over = "from", .of = "miss_rate", .least = 2 }, { 0 }
};

static void report_put_share(struct table *t, const struct profile_report *r, const struct total *x)
{
    table_real(t, report_part(total_stall(x), r->p->stall));
}

static void report_put_costs(struct table *t, const struct total *x)
{
    table_count(t, total_stall(x));
    x->wait ? table_count(t, x->wait) : table_none(t); /* empty: no thread waits for it */
    table_count(t, x->references);
    table_count(t, x->misses);
    table_real(t, report_part(x->misses, x->references));
}

static void report_put_causes(struct table *t, const struct total *x)
{
    uint64_t all = total_stall(x);

    for (unsigned i = 0; i < CAUSES; i++)
        if (x->stall[i])
            table_real(t, report_part(x->stall[i], all));
        else
            table_none(t);
}

/* The program of a process; an empty cell if there is only one. */
static void report_put_program(struct table *t, const struct profile_report *r, uint32_t process)
{
    char name[PROFILE_PROGRAM];

    profile_process_name(r->p, process, name);
    table_text(t, name[0] ? name : NULL);
}

void report_add_procedures(struct profile_report *r)
{
    struct table *t = result_table(r->result, "procedures", "Time by procedure", PROCEDURES);
    uint64_t time = report_time(r->p);
    size_t shown = 0;

    t->plot = PROCEDURE_PLOTS;
    for (size_t i = 0; i < r->t.by_function_count && shown < report_rows(r); i++) {
        const struct total *x = &r->t.by_function[i];
        const struct total_function *f = &r->t.function[x->function];
        if (!report_wants(r, NULL, f->name) || (r->wants->top && (x->other + total_stall(x)) * 2000 < time))
            continue;
        table_text(t, f->name);
        table_real(t, report_part(x->other + total_stall(x), time));
        table_count(t, f->compute);
        table_count(t, total_stall(x));
        r->p->fetch ? table_count(t, f->fetch) : table_none(t); /* empty: there is no instruction cache */
        f->wait ? table_count(t, f->wait) : table_none(t);
        table_real(t, report_part(total_stall(x), r->p->stall));
        table_count(t, x->references);
        table_count(t, x->misses);
        table_real(t, report_part(x->misses, x->references));
        table_text(t, report_base_name(f->file));
        report_put_program(t, r, f->process);
        shown++;
    }
}

void report_add_objects(struct profile_report *r)
{
    static const char *const kinds[] = { "unknown",      "named", "heap", "variable",
                                         "thread-local", "stack", "file", "mapped" };
    struct table *t = result_table(r->result, "objects", "Data", OBJECTS);
    char place[REPORT_TEXT];
    size_t shown = 0;

    t->plot = OBJECT_PLOTS;
    for (size_t i = 0; i < r->t.by_object_count && shown < report_rows(r); i++) {
        const struct total *x = &r->t.by_object[i];
        const struct object_info *f = objects_info(r->p->objects, x->object);
        if (report_is_small(r, x) || !report_wants(r, f->name, NULL))
            continue;
        table_text(t, f->name);
        report_put_share(t, r, x);
        report_put_costs(t, x);
        report_put_causes(t, x);
        table_text(t, kinds[f->kind]);
        table_text(t, f->type);
        f->bytes ? table_count(t, f->bytes) : table_none(t);
        snprintf(place, sizeof place, "%s:%" PRIu32, f->file ? report_base_name(f->file) : "", f->line);
        table_text(t, f->file ? place : NULL);
        report_put_program(t, r, profile_object_process(r->p, x->object));
        shown++;
    }
}

void report_add_cross(struct profile_report *r)
{
    struct table *t = result_table(r->result, "objects_by_procedure", "Data by procedure", CROSS);
    size_t shown = 0;

    t->plot = CROSS_PLOTS;
    for (size_t i = 0; i < r->t.by_both_count && shown < report_rows(r); i++) {
        const struct total *x = &r->t.by_both[i];
        const char *object = report_object(r, x->object), *function = r->t.function[x->function].name;
        if (report_is_small(r, x) || !report_wants(r, object, function))
            continue;
        table_text(t, object);
        table_text(t, function);
        report_put_share(t, r, x);
        report_put_costs(t, x);
        report_put_causes(t, x);
        report_put_program(t, r, profile_object_process(r->p, x->object));
        shown++;
    }
    table_note(t, "causes: shares of the row's stall");
}

void report_add_lines(struct profile_report *r)
{
    struct table *t = result_table(r->result, "lines", "Lines", LINES);
    char place[REPORT_TEXT];
    size_t shown = 0;

    for (size_t i = 0; i < r->t.by_line_count && shown < report_rows(r); i++) {
        const struct total *x = &r->t.by_line[i];
        const char *object = report_object(r, x->object), *function = r->t.function[r->t.line[x->line].function].name;
        if (report_is_small(r, x) || !report_wants(r, object, function))
            continue;
        table_text(t, report_line(r, x->line, place));
        table_text(t, function);
        table_text(t, object);
        report_put_share(t, r, x);
        table_text(t, total_stall(x) ? profile_cause_title(report_cause(x->stall)) : NULL);
        report_put_costs(t, x);
        report_put_program(t, r, profile_object_process(r->p, x->object));
        shown++;
    }
}

void report_add_bins(struct profile_report *r)
{
    struct table *t = result_table(r->result, "over_time", "Over time", BINS);

    t->plot = BIN_PLOTS;
    for (unsigned i = 0; i < TIME_BINS && r->p->over_time.bin[i].references; i++) {
        const struct time_bin *w = &r->p->over_time.bin[i];
        table_count(t, i * r->p->over_time.length);
        table_real(t, report_part(w->misses, w->references));
        table_count(t, w->misses);
        table_count(t, w->stall);
    }
}
