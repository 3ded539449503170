/* SPDX-License-Identifier: MIT */
/* Tables of time: all of it by kind, and waits by line and object. Also the end of the headline. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/profile/report/report_in.h"

static const struct column TIME[] = { { "kind", "Kind", CELL_TEXT, false },
                                      { "share", "Share", CELL_SHARE, false },
                                      { "cycles", "Cycles", CELL_COUNT, false },
                                      { 0 } };
static const struct column WAITS[] = {
    { "kind", "For", CELL_TEXT, false },       { "object", "Data", CELL_TEXT, false },
    { "share", "Share", CELL_SHARE, false },   { "function", "Procedure", CELL_TEXT, false },
    { "place", "Place", CELL_TEXT, false },    { "time", "Time", CELL_TEXT, false },
    { "cycles", "Cycles", CELL_COUNT, false }, { 0 }
};

static const struct plot TIME_PLOTS[] = {
    { .kind = PLOT_BARS, .title = "What time goes into", .over = "kind", .of = "share", .least = 1 }, { 0 }
};

/* X(name, words): activity of the program in a kind of time. */
#define DEEDS(X) \
    X(compute, "computes") \
    X(stall, "waits for memory") \
    X(fetch, "waits for instructions") \
    X(issue, "waits for another thread of the same processor") \
    X(lock, "waits for locks") \
    X(barrier, "waits at barriers") \
    X(other, "waits for other threads") \
    X(change, "switches threads")

static const char *const DEED[TIME_COUNT] = {
#define X(name, words) [TIME_##name] = words,
    DEEDS(X)
#undef X
};

/* Cycles of all hardware threads by enum time_kind. A sampled profile has compute, stall and fetch only. */
static void profile_time(const struct profile *p, uint64_t ret[TIME_COUNT])
{
    memset(ret, 0, TIME_COUNT * sizeof *ret);
    if (p->sampled) {
        ret[TIME_compute] = p->compute;
        ret[TIME_stall] = p->stall;
        ret[TIME_fetch] = p->fetch;
        return;
    }
    for (uint32_t i = 0; i < p->result.hw_threads; i++)
        for (unsigned kind = 0; kind < TIME_COUNT; kind++)
            ret[kind] += p->result.hw_thread[i].time[kind];
}

uint64_t report_time(const struct profile *p)
{
    uint64_t time[TIME_COUNT], sum = 0;

    profile_time(p, time);
    for (unsigned kind = 0; kind < TIME_idle; kind++)
        sum += time[kind];
    return sum;
}

char *report_largest_time(const struct profile *p, enum time_kind reported)
{
    uint64_t time[TIME_COUNT];
    unsigned best = TIME_compute;

    profile_time(p, time);
    time[TIME_stall] += time[TIME_bus];
    time[TIME_bus] = 0;
    for (unsigned kind = 0; kind < TIME_idle; kind++)
        best = time[kind] > time[best] ? kind : best;
    if (best == reported || time[best] == 0)
        return NULL;
    return mem_format("%.0f %% %s", 100 * report_part(time[best], report_time(p)), DEED[best]);
}

void report_add_time(struct profile_report *r)
{
    struct table *t = result_table(r->result, "time", "What time goes into", TIME);
    const struct profile *p = r->p;
    uint64_t time[TIME_COUNT], all = report_time(p);

    t->plot = TIME_PLOTS;
    profile_time(p, time);
    for (unsigned kind = 0; kind < TIME_COUNT; kind++) {
        if (time[kind] == 0)
            continue;
        table_text(t, time_kind_title((enum time_kind)kind));
        if (kind == TIME_idle)
            table_none(t);
        else
            table_real(t, report_part(time[kind], all));
        table_count(t, time[kind]);
    }
    if (p->sampled)
        table_note(t, "how long threads wait for each other is not known from samples");
    else
        table_note(t,
                   "share: of the time of all hardware threads, as long as they are not idle; with idle, it is the "
                   "program's cycles times %u hardware threads",
                   p->result.hw_threads);
}

/* ---- waits ---- */

static bool waits_are_one_row(const struct report_wait *a, const struct report_wait *b)
{
    return a->line == b->line && a->object == b->object && a->kind == b->kind && a->as == b->as;
}

static int compare_waits(const void *a, const void *b)
{
    const struct report_wait *x = a, *y = b;
    const uint32_t left[] = { x->line, x->object, x->kind, x->as }, right[] = { y->line, y->object, y->kind, y->as };

    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

static int compare_waits_by_cycles(const void *a, const void *b)
{
    const struct report_wait *x = a, *y = b;

    return x->cycles != y->cycles ? (x->cycles > y->cycles ? -1 : 1) : compare_waits(a, b);
}

/* Makes the rows of waits: calls of one line for one object are added up. */
void report_find_waits(struct profile_report *r)
{
    const struct profile *p = r->p;
    size_t n = 0;

    r->wait = mem_alloc(p->waits + 1, sizeof *r->wait);
    for (size_t i = 0; i < p->waits; i++) {
        const struct profile_wait *w = &p->wait[i];
        r->wait[i] =
            (struct report_wait){ r->t.place[w->process][w->place].line, w->object, w->kind, w->as, w->cycles };
    }
    if (p->waits)
        qsort(r->wait, p->waits, sizeof *r->wait, compare_waits);
    for (size_t i = 0; i < p->waits; i++)
        if (n > 0 && waits_are_one_row(&r->wait[n - 1], &r->wait[i]))
            r->wait[n - 1].cycles += r->wait[i].cycles;
        else
            r->wait[n++] = r->wait[i];
    if (n)
        qsort(r->wait, n, sizeof *r->wait, compare_waits_by_cycles);
    r->waits = n;
}

const char *report_wait_kind(const struct report_wait *w)
{
    return sync_object_kind_name(&(struct sync_summary){ .kind = w->kind });
}

const char *report_wait_cause(const struct report_wait *w)
{
    switch (w->as) {
    case TIME_lock: return "another thread has it";
    case TIME_barrier: return "other threads come later";
    default: return "another thread is not there yet";
    }
}

bool report_wants_wait(const struct profile_report *r, const struct report_wait *w)
{
    return report_wants(r, w->object == REPORT_UNKNOWN ? NULL : report_object(r, w->object),
                        r->t.function[r->t.line[w->line].function].name);
}

void report_add_waits(struct profile_report *r)
{
    struct table *t = r->waits ? result_table(r->result, "waits", "What threads wait for", WAITS) : NULL;
    uint64_t all = report_time(r->p);
    char place[REPORT_TEXT];

    for (size_t i = 0; i < r->waits && t->rows < report_rows(r); i++) {
        const struct report_wait *w = &r->wait[i];
        if (!report_wants_wait(r, w) || (r->wants->top && w->cycles < all / 2000))
            continue;
        table_text(t, report_wait_kind(w));
        table_text(t, w->object == REPORT_UNKNOWN ? NULL : report_object(r, w->object));
        table_real(t, report_part(w->cycles, all));
        table_text(t, r->t.function[r->t.line[w->line].function].name);
        table_text(t, report_line(r, w->line, place));
        table_text(t, time_kind_title((enum time_kind)w->as));
        table_count(t, w->cycles);
    }
    if (t)
        table_note(t,
                   "cycles: in which hardware threads had nothing else to do; misses of the lock's own line are stall, "
                   "and of the tables behind this one");
}
