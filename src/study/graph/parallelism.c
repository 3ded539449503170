/* SPDX-License-Identifier: MIT */
/* Parallelism of a run on any machine: work, span, and the number of threads that could run at each time.
 *
 * Work is the number of instructions; span is the longest path through the precedence graph. No machine exceeds the parallelism work / span
 * (Brent, JACM 1974: on n processors a greedy machine needs at most work / n + span). An instruction takes one unit of time. Locks make an
 * interval of the span (schedule.h). */
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "study/graph/delays.h"
#include "study/study.h"

enum { EXACT = 16, MOST_PROCESSORS = 1 << 20, TEXT_ROWS = 32 };

/* clang-format off */
static const struct column SUMMARY[] = {
    { "file",              "file",                     CELL_TEXT,  false },
    { "threads",           "threads",                  CELL_COUNT, false },
    { "pieces",            "pieces",                   CELL_COUNT, false },
    { "arcs",              "arcs between threads",     CELL_COUNT, false },
    { "rounds",            "rounds of barriers",       CELL_COUNT, false },
    { "references",        "references",               CELL_COUNT, false },
    { "work",              "work",                     CELL_COUNT, false },
    { "span",              "span",                     CELL_COUNT, false },
    { "parallelism",       "parallelism",              CELL_REAL,  false },
    { "span_least",        "span with locks, at least", CELL_COUNT, false },
    { "span_most",         "span with locks, at most", CELL_COUNT, false },
    { "parallelism_most",  "parallelism with locks, at most", CELL_REAL, false },
    { "parallelism_least", "parallelism with locks, at least", CELL_REAL, false },
    { "lost",              "lost at barriers",         CELL_COUNT, false },
    { 0 },
};
static const struct column SPEEDUP[] = {
    { "processors",    "processors",       CELL_COUNT, false },
    { "time_least",    "time, at least",   CELL_REAL,  false },
    { "time_brent",    "Brent's bound",    CELL_REAL,  false },
    { "speedup_most",  "speed-up, at most", CELL_REAL, false },
    { "speedup_brent", "by Brent",         CELL_REAL,  false },
    { 0 },
};
static const struct column PROFILE[] = {
    { "running",      "running",      CELL_COUNT,   false },
    { "running_most", "up to",        CELL_COUNT,   false },
    { "time",         "time",         CELL_COUNT,   false },
    { "share",        "of the span",  CELL_PERCENT, false },
    { "work",         "of all work",  CELL_PERCENT, false },
    { 0 },
};
static const struct column TIMELINE[] = {
    { "time",    "from time",    CELL_COUNT, false },
    { "running", "mean running", CELL_REAL,  false },
    { "most",    "most",         CELL_COUNT, false },
    { 0 },
};
/* clang-format on */

static int parallelism_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for a profile of parallelism");
}

/* ---- segments that run at each time ---- */

/* How long how many segments run. */
struct parallelism_profile {
    uint64_t *time;                /* time units, by number of segments that run */
    size_t most;                   /* segments that run at once */
    uint64_t width, steps;         /* of the time line: time units of a step; number of steps */
    uint64_t peak[STUDY_MAX_ROWS]; /* by step: segments that run at once */
    double area[STUDY_MAX_ROWS];   /* by step: time units, times the segments that run */
};

static int compare_rising(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void parallelism_add_interval(struct parallelism_profile *f, uint64_t from, uint64_t to, uint64_t active)
{
    f->time[active] += to - from;
    f->most = active > f->most ? active : f->most;
    for (uint64_t step = from / f->width; step * f->width < to; step++) {
        uint64_t a = step * f->width, b = a + f->width;
        a = a > from ? a : from;
        b = b < to ? b : to;
        f->area[step] += (double)(b - a) * (double)active;
        f->peak[step] = active > f->peak[step] ? active : f->peak[step];
    }
}

/* Merges begins and ends in the order of time. */
static int parallelism_make_profile(struct parallelism_profile *f, const struct precedence *p, const struct schedule *s,
                                    size_t steps, struct peet_err *err)
{
    uint64_t *start = calloc((size_t)p->segments + 1, sizeof *start),
             *finish = calloc((size_t)p->segments + 1, sizeof *finish);
    size_t n = 0, ends = 0;
    uint64_t now = 0;

    f->time = calloc((size_t)p->segments + 1, sizeof *f->time);
    f->width = s->span / steps + (s->span % steps != 0);
    f->steps = f->width ? (s->span + f->width - 1) / f->width : 0;
    bool fits = start && finish && f->time;
    for (uint32_t i = 0; fits && i < p->segments; i++) {
        uint32_t segment = s->order[i];
        if (p->segment[segment].instructions) {
            start[n] = s->start[segment];
            finish[n++] = s->finish[segment];
        }
    }
    if (n)
        qsort(start, n, sizeof *start, compare_rising);
    if (n && s->forced)
        qsort(finish, n, sizeof *finish, compare_rising);
    for (size_t begins = 0; ends < n;) {
        bool is_begin = begins < n && start[begins] < finish[ends];
        uint64_t then = is_begin ? start[begins] : finish[ends];
        if (then > now)
            parallelism_add_interval(f, now, then, begins - ends);
        now = then;
        begins += is_begin;
        ends += !is_begin;
    }
    free(start);
    free(finish);
    return fits ? 0 : parallelism_no_memory(err);
}

/* Few numbers one by one, many by powers of two. */
static void parallelism_add_profile(struct result *r, const struct parallelism_profile *f, const struct precedence *p,
                                    const struct schedule *s)
{
    struct table *table = result_table(r, "profile", "How many run", PROFILE);

    for (uint64_t from = 0, to; from <= f->most; from = to + 1) {
        uint64_t time = 0;
        double work = 0;
        to = from < EXACT ? from : 2 * from - 1;
        to = to < f->most ? to : f->most;
        for (uint64_t i = from; i <= to; i++) {
            time += f->time[i];
            work += (double)f->time[i] * (double)i;
        }
        if (!time)
            continue;
        table_count(table, from);
        table_count(table, to);
        table_count(table, time);
        table_real(table, (double)time / (double)s->span);
        table_real(table, work / (double)p->instructions);
    }
    table_note(
        table,
        "on a machine with a processor for each; iterations of a parallel loop that one thread recorded count one by one");
}

static void parallelism_add_timeline(struct result *r, const struct parallelism_profile *f, uint64_t span)
{
    struct table *table = result_table(r, "timeline", "Time line", TIMELINE);

    for (uint64_t i = 0; i < f->steps; i++) {
        uint64_t from = i * f->width, width = span - from < f->width ? span - from : f->width;
        table_count(table, from);
        table_real(table, f->area[i] / (double)width);
        table_count(table, f->peak[i]);
    }
    if (f->steps)
        table_note(table, "in steps of %" PRIu64 " instructions; --rows N shows up to N steps, at most %d", f->width,
                   STUDY_MAX_ROWS);
}

/* ---- work and span ---- */

static void parallelism_add_speedup(struct result *r, const struct precedence *p, uint64_t span)
{
    struct table *table = result_table(r, "speedup", "Speed-up on n processors", SPEEDUP);
    double work = (double)p->instructions, limit = span ? work / (double)span : 0;

    for (uint64_t n = 1; span && n <= MOST_PROCESSORS; n *= 2) {
        double each = work / (double)n, least = each > (double)span ? each : (double)span;
        table_count(table, n);
        table_real(table, least);
        table_real(table, each + (double)span);
        table_real(table, work / least);
        table_real(table, work / (each + (double)span));
        if ((double)n > 4 * limit && n >= 4)
            break;
    }
    table_note(table,
               "from work and span: no machine is faster than the first bound; one that lets no processor "
               "idle while there is something to do needs at most the second, work / n + span, if there are no locks");
}

static uint64_t sum_barrier_waits(const struct precedence *p, const struct schedule *s)
{
    uint64_t waited = 0;

    for (uint32_t i = 0; i < p->segments; i++)
        waited += s->round_of[i] != SEGMENT_NONE ? s->round[s->round_of[i]].time - s->finish[i] : 0;
    return waited;
}

static void parallelism_add_ratio(struct table *table, uint64_t a, uint64_t b)
{
    b ? table_real(table, (double)a / (double)b) : table_none(table);
}

/* The schedules of a run, by enum schedule_kind. */
struct schedules {
    struct schedule of[SCHEDULE_LOCKS + 1];
};

/* Notes how conditions affect spans. */
static void note_conditions(struct table *table, const struct precedence *p)
{
    if (p->unknown.has_unknown_order)
        table_note(
            table,
            "order unknown: the trace does not say in which order the mutexes of conditions were taken; so the span with locks "
            "is at most all work, and the span leaves out what threads waited for at conditions");
    if (p->unknown.unneeded_waits)
        table_note(
            table,
            "%" PRIu64
            " times a thread did not wait at a condition because another had come before: the span takes it that each such "
            "section needs one signal more than the one before it; the span with locks is at least without them, and at most as "
            "late as in the recorded run",
            p->unknown.unneeded_waits);
}

/* shown: what the other tables are about */
static void parallelism_add_summary(struct table *table, const struct precedence *p, const struct schedules *s,
                                    const struct schedule *shown, uint64_t bound)
{
    const struct schedule *free_run = &s->of[SCHEDULE_KNOWN], *locked = &s->of[SCHEDULE_LOCKS];
    uint64_t certain = s->of[SCHEDULE_CERTAIN].span, least = bound > certain ? bound : certain;
    uint64_t most = p->unknown.has_unknown_order ? p->instructions : locked->span;

    table_text(table, peet_trace_path(p->trace));
    table_count(table, p->threads);
    table_count(table, p->segments);
    table_count(table, p->arcs);
    table_count(table, free_run->rounds);
    table_count(table, p->references);
    table_count(table, p->instructions);
    table_count(table, free_run->span);
    parallelism_add_ratio(table, p->instructions, free_run->span);
    table_count(table, least);
    table_count(table, most);
    parallelism_add_ratio(table, p->instructions, least);
    parallelism_add_ratio(table, p->instructions, most);
    table_count(table, sum_barrier_waits(p, shown));
    schedule_notes(table, p, shown);
    table_note(
        table,
        "span with locks: at least, for critical sections of a lock cannot overlap; at most, for one possible order "
        "(first come, first served; semaphores, conditions and once have to be given first) takes that time");
    note_conditions(table, p);
    table_note(table, shown == locked
                          ? "profile, time line, critical path and barriers are those of the order with locks"
                          : "profile, time line, critical path and barriers are those of the order without locks");
}

static int make_schedules(struct schedules *s, const struct precedence *p, struct peet_err *err)
{
    int code = 0;

    for (unsigned kind = SCHEDULE_CERTAIN; code == 0 && kind <= SCHEDULE_LOCKS; kind++)
        code = schedule_make(&s->of[kind], p, (enum schedule_kind)kind, err);
    return code;
}

static void release_schedules(struct schedules *s)
{
    for (unsigned kind = SCHEDULE_CERTAIN; kind <= SCHEDULE_LOCKS; kind++)
        schedule_release(&s->of[kind]);
}

static int parallelism_fill(struct result *r, const struct precedence *p, bool locks, size_t rows, struct peet_err *err)
{
    struct schedules s = { 0 };
    struct parallelism_profile *f = calloc(1, sizeof *f);
    struct table *summary = result_table(r, "summary", "Parallelism", SUMMARY);
    const struct schedule *shown = &s.of[locks ? SCHEDULE_LOCKS : SCHEDULE_KNOWN];
    uint64_t bound = 0;
    int code = f ? make_schedules(&s, p, err) : parallelism_no_memory(err);

    summary->records = true;
    if (code == 0) {
        parallelism_add_speedup(r, p, s.of[SCHEDULE_KNOWN].span);
        code = parallelism_make_profile(f, p, shown, rows, err);
    }
    if (code == 0) {
        parallelism_add_profile(r, f, p, shown);
        code = delays_path(r, p, shown, rows, err);
    }
    if (code == 0)
        code = delays_barriers(r, p, shown, err);
    if (code == 0)
        code = delays_locks(r, p, &s.of[SCHEDULE_CERTAIN], rows, &bound, err);
    if (code == 0) {
        parallelism_add_timeline(r, f, shown->span);
        parallelism_add_summary(summary, p, &s, shown, bound);
    }
    if (f)
        free(f->time);
    free(f);
    release_schedules(&s);
    return code;
}

/* Options. */
struct study_state {
    bool locks;    /* tables are those of a run in which locks exclude each other */
    uint64_t rows; /* of a table at most; 0: TEXT_ROWS in text, otherwise STUDY_MAX_ROWS */
};

static int parallelism_check(struct study_state *s, const struct study_use *use, struct peet_err *err)
{
    if (s->rows > STUDY_MAX_ROWS)
        return err_set(err, PEET_ERR_USAGE, "--rows: at most %d were expected", STUDY_MAX_ROWS);
    if (s->rows == 0 && use->is_text)
        s->rows = TEXT_ROWS;
    return 0;
}

static int parallelism_run(struct study_state *s, struct peet_trace *t, struct study_answer *answer,
                           struct progress *progress, struct peet_err *err)
{
    struct precedence p;
    int code = precedence_read(&p, t, progress, err);

    if (code == 0) {
        answer->damaged = p.unknown.damaged;
        code = parallelism_fill(&answer->result, &p, s->locks, s->rows ? s->rows : STUDY_MAX_ROWS, err);
    }
    precedence_release(&p);
    return code;
}

static const struct opt options[] = {
    { .name = "locks",
      .type = OPT_FLAG,
      .value = STUDY_OPTION(locks),
      .help = "parallelism: profile and critical path of a run in which locks exclude each other" },
    { .name = "rows",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = STUDY_OPTION(rows),
      .help = "parallelism: at most N rows of a table and steps of time (text 32, otherwise 512)" },
    { 0 },
};

const struct study study_parallelism = {
    .name = "parallelism",
    .summary = "work, span, how many threads could run, and what they wait for",
    .options = options,
    .state_size = sizeof(struct study_state),
    .check = parallelism_check,
    .run = parallelism_run,
};
