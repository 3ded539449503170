/* SPDX-License-Identifier: MIT */
#include "study/info.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* clang-format off */
static const struct column SUMMARY[] = {
    { "file",                  "file",                  CELL_TEXT,  false },
    { "bytes",                 "size",                  CELL_BYTES, false },
    { "format_version",        "format version",        CELL_COUNT, false },
    { "producer",              "producer",              CELL_TEXT,  false },
    { "machine",               "machine",               CELL_TEXT,  false },
    { "level",                 "level",                 CELL_TEXT,  false },
    { "command",               "command",               CELL_TEXT,  false },
    { "processes",             "processes",             CELL_COUNT, false },
    { "threads",               "threads",               CELL_COUNT, false },
    { "instructions",          "instructions",          CELL_COUNT, false },
    { "references",            "references",            CELL_COUNT, false },
    { "loads",                 "  loads",               CELL_COUNT, false },
    { "stores",                "  stores",              CELL_COUNT, false },
    { "updates",               "  updates",             CELL_COUNT, false },
    { "prefetches",            "  prefetches",          CELL_COUNT, false },
    { "events",                "events",                CELL_COUNT, false },
    { "bytes_per_reference",   "bytes per reference",   CELL_REAL,  false },
    { "bytes_per_instruction", "bytes per instruction", CELL_REAL,  false },
    { "blocks",                "blocks",                CELL_COUNT, false },
    { "loops",                 "loops",                 CELL_COUNT, false },
    { "event_sites",           "event sites",           CELL_COUNT, false },
    { "static_instructions",   "static instructions",   CELL_COUNT, false },
    { "time_chunks",           "timing chunks",         CELL_COUNT, false },
    { "problems",              "problems",              CELL_COUNT, false },
    { "stopped",               "stopped",               CELL_TEXT,  false },
    { "whole",                 "whole",                 CELL_TEXT,  false },
    { 0 },
};

static const struct column PROCESSES[] = {
    { "file",    "file",    CELL_TEXT,  true },
    { "process", "process", CELL_COUNT, false },
    { "parent",  "parent",  CELL_COUNT, false },
    { "threads", "threads", CELL_COUNT, false },
    { "program", "program", CELL_TEXT,  false },
    { "command", "command", CELL_TEXT,  false },
    { 0 },
};

static const struct column THREADS[] = {
    { "file",         "file",         CELL_TEXT,  true },
    { "thread",       "thread",       CELL_COUNT, false },
    { "name",         "name",         CELL_TEXT,  false },
    { "process",      "process",      CELL_COUNT, true },
    { "parent",       "parent",       CELL_COUNT, false },
    { "instructions", "instructions", CELL_COUNT, false },
    { "references",   "references",   CELL_COUNT, false },
    { "loads",        "loads",        CELL_COUNT, false },
    { "stores",       "stores",       CELL_COUNT, false },
    { "updates",      "updates",      CELL_COUNT, false },
    { "prefetches",   "prefetches",   CELL_COUNT, false },
    { "events",       "events",       CELL_COUNT, false },
    { "chunks",       "chunks",       CELL_COUNT, false },
    { "bytes",        "size",         CELL_BYTES, false },
    { "ended",        "ended",        CELL_TEXT,  false },
    { 0 },
};

static const struct column MODULES[] = {
    { "file",     "file",     CELL_TEXT,  true },
    { "process",  "process",  CELL_COUNT, true },
    { "address",  "address",  CELL_HEX,   false },
    { "bias",     "bias",     CELL_HEX,   false },
    { "symbols",  "symbols",  CELL_COUNT, false },
    { "build_id", "build id", CELL_TEXT,  false },
    { "path",     "path",     CELL_TEXT,  false },
    { 0 },
};

static const struct column META[] = {
    { "file",  "file",  CELL_TEXT, true },
    { "key",   "key",   CELL_TEXT, false },
    { "value", "value", CELL_TEXT, false },
    { 0 },
};

static const struct column KINDS[] = {
    { "file",  "file",  CELL_TEXT,  true },
    { "event", "event", CELL_TEXT,  false },
    { "count", "count", CELL_COUNT, false },
    { 0 },
};
/* clang-format on */

void info_init(struct info *i, const struct info_config *config)
{
    *i = (struct info){ .counts = config->counts };
    i->summary = result_table(&i->result, "summary", "Trace", SUMMARY);
    i->summary->records = true;
    i->processes = result_table(&i->result, "processes", "Processes", PROCESSES);
    i->threads = result_table(&i->result, "threads", "Threads", THREADS);
    i->modules = result_table(&i->result, "modules", "Modules", MODULES);
    i->meta = result_table(&i->result, "meta", "About the recording", META);
    if (config->events)
        i->kinds = result_table(&i->result, "events", "Events", KINDS);
}

void info_release(struct info *i)
{
    result_release(&i->result);
    for (size_t n = 0; n < i->problems; n++)
        free(i->problem[n]);
    free(i->problem);
    *i = (struct info){ 0 };
}

/* ---- what the records know ---- */

/* Counts of the records of a thread. */
struct thread_tally {
    uint32_t thread;           /* number in the trace */
    uint64_t kind[PEET_KINDS]; /* records, by enum peet_kind */
    uint64_t position;         /* instructions so far */
    bool ended;                /* it has an event thread_end */
    uint64_t how, code;        /* arguments of that event */
};

/* Counts of the records of a trace. */
struct decoded {
    struct thread_tally *tally;
    size_t tallies, last;             /* elements of `tally`; index of the current thread */
    uint64_t event[PEET_EVENT_KINDS]; /* events, by enum peet_event_kind */
    uint64_t position;                /* instructions of the current thread so far */
};

static const struct thread_tally *decoded_find(const struct decoded *d, uint32_t thread)
{
    for (size_t n = 0; n < d->tallies; n++)
        if (d->tally[n].thread == thread)
            return &d->tally[n];
    return NULL;
}

/* The tally of a thread, made when it is new. Batches of one thread mostly follow each other. */
static struct thread_tally *decoded_tally(struct decoded *d, uint32_t thread)
{
    if (d->last < d->tallies && d->tally[d->last].thread == thread)
        return &d->tally[d->last];
    for (d->last = 0; d->last < d->tallies; d->last++)
        if (d->tally[d->last].thread == thread)
            return &d->tally[d->last];
    d->tally = mem_room(d->tally, d->tallies, sizeof *d->tally);
    d->tally[d->tallies++] = (struct thread_tally){ .thread = thread };
    return &d->tally[d->last];
}

static void decoded_add(struct decoded *d, const struct peet_batch *b)
{
    struct thread_tally *t = decoded_tally(d, b->thread);

    if (b->position > t->position) {
        d->position += b->position - t->position;
        t->position = b->position;
    }
    for (size_t n = 0; n < b->count; n++) {
        const struct peet_record *r = &b->records[n];
        t->kind[r->kind]++;
        if (r->kind != PEET_EVENT)
            continue;
        const struct peet_event *e = &b->events[r->id];
        if (e->kind < PEET_EVENT_KINDS)
            d->event[e->kind]++;
        if (e->kind == PEET_EV_thread_end) {
            t->ended = true;
            t->how = e->arg[0];
            t->code = e->arg[1];
        }
    }
}

static void info_add_problem(struct info *i, const char *path, const char *text)
{
    size_t n = strlen(path);
    bool named = !strncmp(text, path, n) && text[n] == ':';
    char *line = named ? mem_string(text) : mem_format("%s: %s", path, text);

    i->problem = mem_room(i->problem, i->problems, sizeof *i->problem);
    i->problem[i->problems++] = line;
}

static int info_decode(struct info *i, struct peet_trace *t, struct progress *progress, struct decoded *d,
                       struct peet_err *err)
{
    const char *path = peet_trace_path(t);
    struct peet_cursor *c;
    struct peet_batch batch;
    uint64_t damaged = 0;
    int r = peet_cursor_open(t, PEET_ALL_THREADS, i->counts ? 0 : PEET_WANT_LOOPS, &c, err);

    if (r < 0)
        return r;
    while ((r = peet_cursor_next(c, &batch, err)) > 0 || r == PEET_ERR_DAMAGED) {
        if (r > 0) {
            decoded_add(d, &batch);
        } else {
            info_add_problem(i, path, err->text);
            damaged++;
        }
        progress_at(progress, d->position);
    }
    peet_cursor_free(c);
    if (damaged && i->counts)
        table_note(i->summary, "%s: loads, stores, updates and prefetches lack those of damaged chunks (%" PRIu64 ")",
                   path, damaged);
    if (damaged && i->kinds)
        table_note(i->kinds, "%s: those of damaged chunks (%" PRIu64 ") are missing", path, damaged);
    return r;
}

/* ---- rows ---- */

static void info_add_kinds(struct table *table, const uint64_t *kind)
{
    for (int k = PEET_LOAD; k <= PEET_PREFETCH; k++)
        kind ? table_count(table, kind[k]) : table_none(table);
}

static void info_add_ratio(struct table *table, uint64_t a, uint64_t b)
{
    b ? table_real(table, (double)a / (double)b) : table_none(table);
}

static void info_add_processes(struct info *i, const struct peet_trace *t)
{
    const struct peet_process *p, *q;
    const struct peet_thread *thread;

    for (size_t n = 0; (p = peet_trace_process(t, n)); n++) {
        bool has_parent = false;
        uint64_t threads = 0;
        for (size_t k = 0; (q = peet_trace_process(t, k)); k++)
            has_parent = has_parent || (q->id == p->parent && q->id != p->id);
        for (size_t k = 0; (thread = peet_trace_thread(t, k)); k++)
            threads += thread->process == p->id;
        table_text(i->processes, peet_trace_path(t));
        table_count(i->processes, p->id);
        has_parent ? table_count(i->processes, p->parent) : table_none(i->processes);
        table_count(i->processes, threads);
        table_text(i->processes, p->program);
        table_text(i->processes, p->command);
    }
}

/* Which of a guest's programs has which number. */
static void info_note_applications(struct info *i, const struct peet_trace *t)
{
    const char *applications = peet_trace_meta_get(t, "applications");

    if (applications && strcmp(applications, "1") != 0)
        table_note(i->processes, "%s: process N is the first process of the N-th --app, for N up to %s; others follow",
                   peet_trace_path(t), applications);
}

static void info_add_end(struct table *table, const struct peet_totals *totals, const struct thread_tally *tally)
{
    static const char *const HOW[] = {
        [PEET_END_EXIT] = "exit", [PEET_END_PROCESS_EXIT] = "process exit", [PEET_END_SIGNAL] = "signal",
        [PEET_END_EXEC] = "exec", [PEET_END_STOPPED] = "stopped",
    };
    char text[60];

    if (!totals->whole || !tally || !tally->ended || tally->how >= sizeof HOW / sizeof *HOW)
        snprintf(text, sizeof text, "%s", totals->whole ? "yes" : "cut off");
    else if (tally->how == PEET_END_SIGNAL || tally->code)
        snprintf(text, sizeof text, "%s %" PRId64, HOW[tally->how], (int64_t)tally->code);
    else
        snprintf(text, sizeof text, "%s", HOW[tally->how]);
    table_text(table, text);
}

static bool info_is_thread(const struct peet_trace *t, uint32_t id)
{
    struct peet_totals totals;

    return peet_trace_totals(t, id, &totals) == 0;
}

/* One row per thread; *sum gets what they add up to. */
static void info_add_threads(struct info *i, const struct peet_trace *t, const struct decoded *d,
                             struct peet_totals *sum)
{
    const struct peet_thread *th;
    struct table *table = i->threads;

    *sum = (struct peet_totals){ .whole = true };
    for (size_t n = 0; (th = peet_trace_thread(t, n)); n++) {
        static const uint64_t NONE[PEET_KINDS];
        const struct thread_tally *tally = i->counts || i->kinds ? decoded_find(d, th->id) : NULL;
        struct peet_totals totals = { 0 };
        peet_trace_totals(t, th->id, &totals);

        table_text(table, peet_trace_path(t));
        table_count(table, th->id);
        table_text(table, *th->name ? th->name : NULL);
        table_count(table, th->process);
        th->parent != th->id &&info_is_thread(t, th->parent) ? table_count(table, th->parent) : table_none(table);
        table_count(table, totals.instructions);
        table_count(table, totals.references);
        info_add_kinds(table, !i->counts ? NULL : tally ? tally->kind : NONE);
        table_count(table, totals.events);
        table_count(table, totals.chunks);
        table_count(table, totals.bytes);
        info_add_end(table, &totals, tally);
        sum->instructions += totals.instructions;
        sum->references += totals.references;
        sum->events += totals.events;
        sum->whole = sum->whole && totals.whole;
    }
}

static void info_add_modules(struct info *i, const struct peet_trace *t)
{
    const struct peet_module *m;

    for (size_t n = 0; (m = peet_trace_module(t, n)); n++) {
        uint64_t lowest = m->segments ? m->segment[0].start : m->bias;
        for (uint32_t k = 1; k < m->segments; k++)
            lowest = m->segment[k].start < lowest ? m->segment[k].start : lowest;
        table_text(i->modules, peet_trace_path(t));
        table_count(i->modules, m->process);
        table_count(i->modules, lowest);
        table_count(i->modules, m->bias);
        table_count(i->modules, m->symbols);
        table_text(i->modules, *m->build_id ? m->build_id : NULL);
        table_text(i->modules, m->path);
    }
}

static void info_add_meta(struct info *i, const struct peet_trace *t)
{
    const char *key, *value;

    for (size_t n = 0; (key = peet_trace_meta(t, n, &value)); n++) {
        if (!strcmp(key, "producer") || !strcmp(key, "machine"))
            continue; /* they are in the summary */
        table_text(i->meta, peet_trace_path(t));
        table_text(i->meta, key);
        table_text(i->meta, value);
    }
}

/* What of its threads' order the trace knows. */
static void info_add_order(struct info *i, const struct peet_trace *t)
{
    const char *caveat = peet_trace_lacks_order(t);

    if (!caveat)
        return;
    table_text(i->meta, peet_trace_path(t));
    table_text(i->meta, "synchronisation");
    table_text(i->meta, "none");
    table_note(i->summary, "%s: %s", peet_trace_path(t), caveat);
}

static void info_add_event_kinds(struct info *i, const struct peet_trace *t, const struct decoded *d)
{
    for (uint32_t k = 0; i->kinds && k < PEET_EVENT_KINDS; k++) {
        if (!d->event[k])
            continue;
        table_text(i->kinds, peet_trace_path(t));
        table_text(i->kinds, peet_event_name(k));
        table_count(i->kinds, d->event[k]);
    }
}

static void info_add_schema(struct table *table, const struct peet_trace *t)
{
    uint64_t blocks = 0, loops = 0, events = 0;

    for (uint32_t n = 1; n < peet_trace_items(t); n++) {
        blocks += peet_trace_block(t, n) != NULL;
        loops += peet_trace_loop(t, n) != NULL;
        events += peet_trace_event(t, n) != NULL;
    }
    table_count(table, blocks);
    table_count(table, loops);
    table_count(table, events);
    table_count(table, peet_trace_insns(t));
}

/* A program that was built in parts may have several. */
static void info_add_levels(struct table *table, const struct peet_trace *t)
{
    const char *value, *key;
    char *all = NULL;

    for (size_t i = 0; (key = peet_trace_meta(t, i, &value)); i++) {
        if (strcmp(key, "level") != 0)
            continue;
        char *longer = all ? mem_format("%s, %s", all, value) : mem_string(value);
        free(all);
        all = longer;
    }
    table_text(table, all);
    free(all);
}

static void info_add_summary(struct info *i, const struct peet_trace *t, const struct decoded *d,
                             const struct peet_totals *sum, size_t problems)
{
    const struct peet_process *p = peet_trace_process(t, 0);
    const char *stopped = peet_trace_meta_get(t, "stopped");
    bool lacks_threads = peet_trace_meta_get(t, "unrecorded") != NULL;
    struct table *table = i->summary;
    uint64_t processes = 0, threads = 0, kind[PEET_KINDS] = { 0 };

    while (peet_trace_process(t, processes))
        processes++;
    while (peet_trace_thread(t, threads))
        threads++;
    for (size_t n = 0; n < d->tallies; n++)
        for (int k = 0; k < PEET_KINDS; k++)
            kind[k] += d->tally[n].kind[k];
    table_text(table, peet_trace_path(t));
    table_count(table, peet_trace_bytes(t));
    table_count(table, PEET_FORMAT_VERSION); /* the only one that the reader takes */
    table_text(table, peet_trace_meta_get(t, "producer"));
    table_text(table, peet_trace_meta_get(t, "machine"));
    info_add_levels(table, t);
    table_text(table, p ? p->command : NULL);
    table_count(table, processes);
    table_count(table, threads);
    table_count(table, sum->instructions);
    table_count(table, sum->references);
    info_add_kinds(table, i->counts ? kind : NULL);
    table_count(table, sum->events);
    info_add_ratio(table, peet_trace_bytes(t), sum->references);
    info_add_ratio(table, peet_trace_bytes(t), sum->instructions);
    info_add_schema(table, t);
    table_count(table, peet_trace_time_chunks(t));
    table_count(table, problems);
    table_text(table, stopped);
    table_text(table, sum->whole && !problems && !stopped && !lacks_threads ? "yes" : "no");
}

int info_add(struct info *i, struct peet_trace *t, struct progress *progress, struct peet_err *err)
{
    struct decoded d = { 0 };
    struct peet_totals sum;
    const struct peet_thread *th;
    const char *text;
    size_t before = i->problems;
    uint64_t instructions = 0;
    int r = 0;

    for (size_t n = 0; !peet_trace_is_pipe(t) && (th = peet_trace_thread(t, n)); n++)
        instructions += peet_trace_totals(t, th->id, &sum) == 0 ? sum.instructions : 0;
    progress_total(progress, instructions);
    if (i->counts || i->kinds || peet_trace_is_pipe(t))
        r = info_decode(i, t, progress, &d, err);
    if (r == 0) {
        for (size_t n = 0; (text = peet_trace_problem(t, n)); n++)
            info_add_problem(i, peet_trace_path(t), text);
        info_add_processes(i, t);
        info_note_applications(i, t);
        info_add_threads(i, t, &d, &sum);
        info_add_modules(i, t);
        info_add_meta(i, t);
        info_add_order(i, t);
        info_add_event_kinds(i, t, &d);
        info_add_summary(i, t, &d, &sum, i->problems - before);
    }
    free(d.tally);
    return r;
}
