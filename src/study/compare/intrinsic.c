/* SPDX-License-Identifier: MIT */
/* The study `intrinsic`: whether a program's streams are intrinsic, that is equal for all interleavings of its threads (Holliday and Ellis, 1992).
 * A recording of intrinsic streams can be played on any machine. After the point where streams differ, they belong to one schedule.
 *
 * Assumes that all runs had the same input. Leaves out: schedules that no run had; equal streams in some runs are a sign, and no proof. */
#include "study/compare/intrinsic.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "study/compare/unordered.h"

/* clang-format off */
static const struct column SUMMARY[] = {
    { "runs",      "runs",              CELL_COUNT, false },
    { "threads",   "threads",           CELL_COUNT, false },
    { "same",      "same in all runs",  CELL_COUNT, false },
    { "races",     "with data races",   CELL_COUNT, false },
    { "choices",   "with an order of locks or atomics", CELL_COUNT, false },
    { "intrinsic", "intrinsic",         CELL_TEXT,  false },
    { 0 },
};
static const struct column THREADS[] = {
    { "thread",      "thread",      CELL_COUNT, false },
    { "records",     "records",     CELL_COUNT, false },
    { "hash",        "hash",        CELL_HEX,   false },
    { "stream",      "stream",      CELL_TEXT,  false },
    { "differs",     "runs that differ", CELL_COUNT, false },
    { "other",       "first in",    CELL_TEXT,  false },
    { "record",      "at record",   CELL_COUNT, false },
    { "instruction", "instruction", CELL_COUNT, false },
    { "place",       "in",          CELL_TEXT,  false },
    { "here",        "in the first run", CELL_TEXT,  false },
    { "there",       "in that run", CELL_TEXT,  false },
    { "cause",       "unordered",   CELL_TEXT,  false },
    { "data",        "data",        CELL_TEXT,  false },
    { "read_in",     "read in",     CELL_TEXT,  false },
    { "writer",      "written by",  CELL_COUNT, false },
    { 0 },
};
/* clang-format on */

enum verdict {
    VERDICT_SAME,
    VERDICT_ALONE,
    VERDICT_MISSING,
    VERDICT_UNSTEADY,
    VERDICT_CONTROL,
    VERDICT_ADDRESS,
    VERDICT_EVENT
};
static const char *const VERDICTS[] = { "same",    "one run", "not in all runs", "differs, but not again", "control",
                                        "address", "event" };
static const char *const CAUSES[] = {
    [UNORDERED_NONE] = "nothing", [UNORDERED_SYNCHRONIZED] = "locks or atomics", [UNORDERED_RACE] = "data race"
};

/* The comparison of a thread of the first run with that thread in all others. */
struct thread_verdict {
    enum verdict verdict;
    size_t run;                   /* number of the run with the earliest difference */
    uint64_t hash_block;          /* number of the hash block with that difference */
    size_t differs;               /* runs in which it differs */
    uint64_t record, instruction; /* first difference: numbers of record and instruction in the thread */
    char place[120];              /* function of that record */
    char here[120], there[120];   /* the record in the first run; in run `run` */
    bool is_searched;             /* its cause was searched */
    struct unordered_read cause;
};

/* A comparison of runs. */
struct comparison {
    const struct intrinsic_runs *runs;
    struct stream_observer *streams;     /* by run */
    struct thread_verdict *thread;       /* by thread of the first run */
    struct stream_observer first, other; /* the second observation of run 0 and of `run` */
    size_t run;                          /* run that is compared now */
    uint32_t more;                       /* threads that the first run lacks */
};

/* ---- the first difference ---- */

static void record_describe(const struct compared_record *s, char text[120])
{
    static const char *const KINDS[] = { "block", "load", "store", "update", "prefetch" };

    if (!s) {
        snprintf(text, 120, "the end");
    } else if (s->record.kind == PEET_EVENT) {
        int n = snprintf(text, 120, "%s", peet_event_name(s->event.kind));
        for (unsigned i = 0; i < s->event.args && n < 100; i++)
            n += snprintf(text + n, (size_t)(120 - n), " 0x%" PRIx64, s->event.arg[i]);
    } else if (s->record.kind == PEET_BLOCK) {
        snprintf(text, 120, "block 0x%" PRIx64, s->record.addr);
    } else {
        snprintf(text, 120, "%s of %u at 0x%" PRIx64, KINDS[s->record.kind], (unsigned)s->record.size, s->record.addr);
    }
}

static enum verdict record_compare(const struct compared_record *a, const struct compared_record *b)
{
    if (!a || !b || a->record.kind != b->record.kind || a->record.kind == PEET_BLOCK)
        return VERDICT_CONTROL;
    if (a->record.kind != PEET_EVENT)
        return VERDICT_ADDRESS;
    return a->event.kind == b->event.kind ? VERDICT_EVENT : VERDICT_CONTROL;
}

/* Finds the first record that differs in the hash blocks that were kept. Where control differs, the place is that of the last common record. */
static void intrinsic_find_record(struct thread_verdict *p, const struct observed_thread *a,
                                  const struct observed_thread *b, const struct peet_trace *t)
{
    uint32_t i = 0;

    while (i < a->count && i < b->count && a->kept[i].hash == b->kept[i].hash)
        i++;
    const struct compared_record *x = i < a->count ? &a->kept[i] : NULL, *y = i < b->count ? &b->kept[i] : NULL;
    p->verdict = x || y ? record_compare(x, y) : VERDICT_UNSTEADY;
    if (!x && !y)
        return;
    p->record = p->hash_block * HASH_BLOCK_RECORDS + i;
    p->instruction = x ? x->instruction : y->instruction;
    const struct compared_record *at = x ? x : y;
    for (uint32_t k = i; p->verdict == VERDICT_CONTROL && k-- > 0;)
        if (a->kept[k].code) {
            at = &a->kept[k];
            break;
        }
    addr_text(t, b->process, at->code, p->place);
    record_describe(x, p->here);
    record_describe(y, p->there);
}

/* Called after the second observation of a run, while its source still exists. */
static void intrinsic_compare_kept(void *argument)
{
    struct comparison *c = argument;

    for (uint32_t i = 0; i < c->streams[0].threads; i++) {
        struct thread_verdict *p = &c->thread[i];
        const struct observed_thread *a = stream_observer_find(&c->first, c->streams[0].thread[i].name);
        const struct observed_thread *b = stream_observer_find(&c->other, c->streams[0].thread[i].name);
        if (p->verdict == VERDICT_UNSTEADY && p->run == c->run && a && b)
            intrinsic_find_record(p, a, b, c->other.trace);
    }
}

/* ---- all runs ---- */

static void intrinsic_note_difference(struct thread_verdict *p, size_t run, const struct observed_thread *a,
                                      const struct observed_thread *b)
{
    uint64_t hash_block = b ? observed_thread_first_difference(a, b) : UINT64_MAX;

    if (b && hash_block == UINT64_MAX)
        return;
    p->differs++;
    if (p->verdict == VERDICT_UNSTEADY && hash_block >= p->hash_block)
        return;
    p->verdict = b ? VERDICT_UNSTEADY : VERDICT_MISSING; /* until the second observation finds it */
    p->run = run;
    p->hash_block = hash_block;
}

static void intrinsic_find_differences(struct comparison *c)
{
    const struct stream_observer *first = &c->streams[0];

    for (uint32_t i = 0; i < first->threads; i++) {
        c->thread[i].verdict = c->runs->count > 1 ? VERDICT_SAME : VERDICT_ALONE;
        for (size_t run = 1; run < c->runs->count; run++)
            intrinsic_note_difference(&c->thread[i], run, &first->thread[i],
                                      stream_observer_find(&c->streams[run], first->thread[i].name));
    }
    for (size_t run = 1; run < c->runs->count; run++)
        for (uint32_t i = 0; i < c->streams[run].threads; i++)
            c->more += !stream_observer_find(first, c->streams[run].thread[i].name);
}

static void intrinsic_ignore(void *argument)
{
    (void)argument;
}

/* Lists the hash blocks to keep of a run: those with the first difference of a thread. run SIZE_MAX: of all runs. */
static size_t intrinsic_list_wanted(const struct comparison *c, size_t run, struct wanted_block *want)
{
    size_t n = 0;

    for (uint32_t i = 0; i < c->streams[0].threads; i++)
        if (c->thread[i].verdict == VERDICT_UNSTEADY && (run == SIZE_MAX || c->thread[i].run == run))
            want[n++] = (struct wanted_block){ c->streams[0].thread[i].name, c->thread[i].hash_block };
    return n;
}

/* Observes the runs with first differences again, and run 0 with them. */
static int intrinsic_find_records(struct comparison *c, struct peet_err *err)
{
    const struct intrinsic_runs *runs = c->runs;
    struct wanted_block *want = mem_alloc(2 * (size_t)c->streams[0].threads + 1, sizeof *want);
    struct wanted_block *of_run = want + c->streams[0].threads;
    size_t n = intrinsic_list_wanted(c, SIZE_MAX, want);
    int r = n ? runs->play(runs->context, 0, want, n, &c->first, intrinsic_ignore, NULL, err) : 0;

    for (c->run = 1; r == 0 && n && c->run < runs->count; c->run++) {
        size_t some = intrinsic_list_wanted(c, c->run, of_run);
        if (some)
            r = runs->play(runs->context, c->run, of_run, some, &c->other, intrinsic_compare_kept, c, err);
    }
    free(want);
    return r;
}

/* Finds unordered reads before the first differences; if no stream differs, all of them, because other schedules could differ. */
static int intrinsic_find_causes(struct comparison *c, struct peet_err *err)
{
    struct unordered u = { 0 };
    int r = unordered_init(&u, c->runs->trace, err);
    bool any = false;

    for (uint32_t i = 0; i < c->streams[0].threads; i++)
        any = any || c->thread[i].differs;
    for (uint32_t i = 0; r == 0 && i < c->streams[0].threads; i++) {
        struct thread_verdict *p = &c->thread[i];
        p->is_searched = any ? p->verdict >= VERDICT_CONTROL : true;
        if (p->is_searched)
            r = unordered_find(&u, c->streams[0].thread[i].thread, any ? p->record : UINT64_MAX, &p->cause, err);
    }
    unordered_release(&u);
    return r;
}

/* ---- tables ---- */

static const char *intrinsic_answer(const struct comparison *c, bool is_same, uint64_t unordered)
{
    if (!is_same)
        return "no";
    if (!c->runs->trace)
        return "yes, as far as these runs show";
    if (unordered)
        return c->runs->count > 1 ? "not known: the same in these runs, but data were read in no certain order"
                                  : "not known: data were read in no certain order";
    return "yes: nothing was read that others wrote in no certain order";
}

static void intrinsic_add_summary(struct table *t, const struct comparison *c, uint64_t same)
{
    uint64_t found[3] = { 0 };
    bool is_same = same == c->streams[0].threads && c->more == 0;

    for (uint32_t i = 0; i < c->streams[0].threads; i++)
        found[c->thread[i].cause.kind]++;
    t->records = true;
    table_count(t, c->runs->count);
    table_count(t, c->streams[0].threads);
    table_count(t, same);
    c->runs->trace ? table_count(t, found[UNORDERED_RACE]) : table_none(t);
    c->runs->trace ? table_count(t, found[UNORDERED_SYNCHRONIZED]) : table_none(t);
    table_text(t, intrinsic_answer(c, is_same, found[UNORDERED_RACE] + found[UNORDERED_SYNCHRONIZED]));
    if (c->more)
        table_note(t, "%" PRIu32 " threads of other runs are not in the first", c->more);
    table_note(t, "streams are compared record by record: blocks by their instructions, references by kind, size and "
                  "address, events by their arguments, but for what the system answered");
}

static void intrinsic_add_cause(struct table *t, const struct comparison *c, const struct observed_thread *o,
                                const struct thread_verdict *p)
{
    char place[120];
    bool is_found = p->is_searched && p->cause.kind != UNORDERED_NONE;

    table_text(t, p->is_searched ? CAUSES[p->cause.kind] : NULL);
    table_text(t, is_found ? addr_text(c->runs->trace, o->process, p->cause.addr, place) : NULL);
    table_text(t, is_found ? addr_text(c->runs->trace, o->process, p->cause.code, place) : NULL);
    is_found ? table_count(t, p->cause.writer) : table_none(t);
    if (p->cause.is_partial)
        table_note(t, "thread %" PRIu32 " read more data before it than are searched; only the beginning was",
                   o->thread);
}

static void intrinsic_add_thread(struct table *t, const struct comparison *c, const struct observed_thread *o,
                                 const struct thread_verdict *p)
{
    bool is_found = p->verdict >= VERDICT_CONTROL;

    table_count(t, o->thread);
    table_count(t, o->records);
    table_count(t, o->hash);
    table_text(t, VERDICTS[p->verdict]);
    table_count(t, p->differs);
    table_text(t, p->differs ? c->runs->name(c->runs->context, p->run) : NULL);
    is_found ? table_count(t, p->record) : table_none(t);
    is_found ? table_count(t, p->instruction) : table_none(t);
    table_text(t, is_found ? p->place : NULL);
    table_text(t, is_found ? p->here : NULL);
    table_text(t, is_found ? p->there : NULL);
    intrinsic_add_cause(t, c, o, p);
}

static void intrinsic_add_notes(struct table *t, const struct comparison *c)
{
    table_note(t,
               "control: another block or event comes; address: a reference goes elsewhere; event: a call got or gave "
               "something else; counted from 0, in the first run");
    if (c->runs->trace)
        table_note(
            t, "unordered: what the thread read last, before that record if there is one, that another one wrote in "
               "no certain order: without a common lock (data race), or with one or atomically (locks or atomics); "
               "where streams differ without it, allocation, input or time are left");
    else
        table_note(t, "record the program and give the trace to learn what the threads read unordered");
}

static void intrinsic_fill(struct result *result, const struct comparison *c, bool *ret_differs)
{
    struct table *summary = result_table(result, "summary", "Do streams depend on the interleaving?", SUMMARY);
    struct table *threads = result_table(result, "threads", "Threads", THREADS);
    uint64_t same = 0;

    for (uint32_t i = 0; i < c->streams[0].threads; i++) {
        intrinsic_add_thread(threads, c, &c->streams[0].thread[i], &c->thread[i]);
        same += c->thread[i].differs == 0;
    }
    intrinsic_add_notes(threads, c);
    intrinsic_add_summary(summary, c, same);
    *ret_differs = same < c->streams[0].threads || c->more > 0;
}

int intrinsic_compare(const struct intrinsic_runs *runs, struct result *result, bool *ret_differs, struct peet_err *err)
{
    struct comparison c = { .runs = runs, .streams = mem_alloc(runs->count, sizeof *c.streams) };
    int r = 0;

    for (size_t i = 0; r == 0 && i < runs->count; i++)
        r = runs->play(runs->context, i, NULL, 0, &c.streams[i], intrinsic_ignore, NULL, err);
    c.thread = mem_alloc((size_t)c.streams[0].threads + 1, sizeof *c.thread);
    if (r == 0) {
        intrinsic_find_differences(&c);
        r = intrinsic_find_records(&c, err);
    }
    if (r == 0 && runs->trace)
        r = intrinsic_find_causes(&c, err);
    if (r == 0)
        intrinsic_fill(result, &c, ret_differs);
    for (size_t i = 0; i < runs->count; i++)
        stream_observer_release(&c.streams[i]);
    stream_observer_release(&c.first);
    stream_observer_release(&c.other);
    free(c.streams);
    free(c.thread);
    return r;
}

/* ---- traces ---- */

static const char *trace_name(void *context, size_t run)
{
    return peet_trace_path(((struct peet_trace *const *)context)[run]);
}

static int play_trace(void *context, size_t run, const struct wanted_block *want, size_t wants,
                      struct stream_observer *o, void (*done)(void *argument), void *argument, struct peet_err *err)
{
    struct source *s;
    struct peet_batch b;
    int r = source_open_trace(((struct peet_trace *const *)context)[run], false, &s, err);

    if (r < 0)
        return r;
    stream_observer_begin(o, s, want, wants);
    for (uint32_t i = 0; r >= 0 && i < s->threads; i++)
        while ((r = source_next(s, i, 0, &b, err)) == 1)
            stream_observer_take(o, s, i, &b);
    if (r >= 0)
        done(argument);
    source_free(s);
    return r < 0 ? r : 0;
}

/* ---- the study ---- */

enum { INTRINSIC_SEEDS = 4, INTRINSIC_MAX_SEEDS = 1000, INTRINSIC_JITTER = 100 /* cycles: about a miss */ };

/* Options, all of them for a program that is run. */
struct study_state {
    uint64_t seeds;           /* 0: INTRINSIC_SEEDS */
    const char *machine;      /* NULL: "modern" */
    struct opt_list settings; /* of the machine */
};

static int intrinsic_check(struct study_state *s, const struct study_use *use, struct peet_err *err)
{
    if ((s->machine || s->settings.count || s->seeds) && !use->is_program)
        return err_set(err, PEET_ERR_USAGE, "--machine, --set and --seeds are for the study 'intrinsic' of a program");
    if (s->seeds == 1)
        return err_set(err, PEET_ERR_USAGE, "--seeds: one run cannot be compared; at least 2 were expected");
    if (s->seeds > INTRINSIC_MAX_SEEDS)
        return err_set(err, PEET_ERR_USAGE, "--seeds: at most %d were expected", INTRINSIC_MAX_SEEDS);
    return 0;
}

static int intrinsic_compare_traces(struct study_state *s, struct peet_trace *const *t, size_t traces,
                                    struct study_answer *answer, struct progress *progress, struct peet_err *err)
{
    struct intrinsic_runs runs = { traces, (void *)(uintptr_t)t, trace_name, play_trace, t[0] };

    (void)s;
    (void)progress;
    for (size_t i = 0; i < traces; i++)
        if (peet_trace_is_pipe(t[i]))
            return err_set(err, PEET_ERR_USAGE, "%s: intrinsic reads a trace thread by thread; save it in a file first",
                           peet_trace_path(t[i]));
    return intrinsic_compare(&runs, &answer->result, &answer->differs, err);
}

static int intrinsic_run(struct study_state *s, struct peet_trace *t, struct study_answer *answer,
                         struct progress *progress, struct peet_err *err)
{
    return intrinsic_compare_traces(s, &t, 1, answer, progress, err);
}

static int intrinsic_run_program(struct study_state *s, char *const *argv, struct study_answer *answer,
                                 struct peet_err *err)
{
    struct machine_config machine;
    const char *name = s->machine ? s->machine : "modern";
    int r = config_load(&machine, name, (const char *const *)s->settings.item, s->settings.count, err);

    machine.jitter = r == 0 && machine.jitter ? machine.jitter : INTRINSIC_JITTER;
    return r < 0 ? r : intrinsic_program(argv, &machine, s->seeds ? s->seeds : INTRINSIC_SEEDS, answer, err);
}

static const struct opt options[] = {
    { .name = "seeds",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = STUDY_OPTION(seeds),
      .help = "intrinsic: run a program with the seeds 1 to N (4)" },
    { .name = "machine",
      .letter = 'm',
      .type = OPT_STRING,
      .arg = "MACHINE",
      .value = STUDY_OPTION(machine),
      .help = "intrinsic: the machine that a program runs on (modern)" },
    { .name = "set",
      .type = OPT_LIST,
      .arg = "PATH=VALUE",
      .value = STUDY_OPTION(settings),
      .help = "intrinsic: change one of the machine's settings" },
    { 0 },
};

const struct study study_intrinsic = {
    .name = "intrinsic",
    .summary = "whether what threads do depends on how they were interleaved",
    .options = options,
    .state_size = sizeof(struct study_state),
    .check = intrinsic_check,
    .run = intrinsic_run,
    .compare = intrinsic_compare_traces,
    .program = intrinsic_run_program,
};
