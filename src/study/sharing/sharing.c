/* SPDX-License-Identifier: MIT */
/* The study `sharing`: memory that is private, only read, or shared; and bytes that flow from thread to thread.
 *
 * The trace is read twice: events, for epochs (schedule.h); then references, epoch by epoch and in it thread by thread, for shadow memory (shadow.h).
 *
 * Assumes: range events of library code are references of their thread; prefetches are none. Leaves out: reuse of freed memory; kernel writes
 * without an event; iterations of a parallel loop that one thread recorded, which are one thread here. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "study/graph/schedule.h"
#include "study/sharing/shadow.h"
#include "study/study.h"

enum { NAME_ROWS = 100 };

/* clang-format off */
#define KINDS(X) \
    X("bytes",     "touched",       CELL_BYTES) \
    X("private",   "private",       CELL_BYTES) \
    X("read_only", "only read",     CELL_BYTES) \
    X("shared",    "shared",        CELL_BYTES) \
    X("many",      "many writers",  CELL_BYTES)
#define X(name, title, type) { name, title, type, false },
static const struct column SUMMARY[] = {
    { "file",      "file",       CELL_TEXT,  false },
    { "threads",   "threads",    CELL_COUNT, false },
    { "epochs",    "epochs",     CELL_COUNT, false },
    { "grain",     "granule",    CELL_BYTES, false },
    { "references", "references", CELL_COUNT, false },
    KINDS(X)
    { "ordered",   "read from others",             CELL_BYTES, false },
    { "unordered", "read from others, unordered",  CELL_BYTES, false },
    { 0 },
};
static const struct column THREADS[] = {
    { "thread",    "thread",     CELL_COUNT, false },
    { "name",      "name",       CELL_TEXT,  false },
    { "references", "references", CELL_COUNT, false },
    KINDS(X)
    { "read",      "read from others",     CELL_BYTES, false },
    { "written",   "written for others",   CELL_BYTES, false },
    { "read_unordered",    "unordered read",    CELL_BYTES, false },
    { "written_unordered", "unordered written", CELL_BYTES, false },
    { 0 },
};
static const struct column PAIRS[] = {
    { "writer",    "writer",    CELL_COUNT, false },
    { "reader",    "reader",    CELL_COUNT, false },
    { "ordered",   "bytes",     CELL_BYTES, false },
    { "unordered", "unordered", CELL_BYTES, false },
    { 0 },
};
static const struct column DATA[] = {
    { "data",      "data",      CELL_TEXT,  false },
    { "process",   "process",   CELL_COUNT, true  },
    KINDS(X)
    { "ordered",   "read from others", CELL_BYTES, false },
    { "unordered", "unordered",        CELL_BYTES, false },
    { 0 },
};
#undef X
/* clang-format on */

/* A thread while it is read. */
struct sharing_reader {
    struct peet_cursor *cursor;
    struct peet_batch batch;
    size_t at;                   /* index of the next record in the batch */
    uint64_t events, references; /* so far */
    uint32_t segment;            /* current one */
    bool done;                   /* its stream has ended */
    struct shadow_thread shadow;
};

/* The study while it reads a trace. */
struct sharing {
    struct precedence p;
    struct schedule s;
    struct data_names names;
    struct shadow shadow;
    struct sharing_reader *reader; /* by thread */
    struct epochs epochs;
    uint64_t damaged, instructions; /* parts of the trace that could not be read; instructions read so far */
    struct progress *progress;
    struct peet_err *err;
};

static int sharing_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for a study of sharing");
}

/* ---- reading ---- */

/* A range of zero bytes, or one that would go round the end of memory, is none. */
static int sharing_touch_range(struct sharing *x, struct sharing_reader *r, unsigned kind, uint64_t addr, uint64_t size)
{
    if (size == 0 || addr + size - 1 < addr)
        return 0;
    return shadow_touch(&x->shadow, &r->shadow, kind, addr, size, x->err);
}

static int sharing_range_event(struct sharing *x, struct sharing_reader *r, const struct peet_event *e)
{
    int code;

    switch (e->kind) {
    case PEET_EV_range_read: return sharing_touch_range(x, r, PEET_LOAD, e->arg[0], e->arg[1]);
    case PEET_EV_range_write: return sharing_touch_range(x, r, PEET_STORE, e->arg[0], e->arg[1]);
    case PEET_EV_range_copy:
        code = sharing_touch_range(x, r, PEET_LOAD, e->arg[1], e->arg[2]);
        return code < 0 ? code : sharing_touch_range(x, r, PEET_STORE, e->arg[0], e->arg[2]);
    case PEET_EV_range_compare:
        code = sharing_touch_range(x, r, PEET_LOAD, e->arg[0], e->arg[2]);
        return code < 0 ? code : sharing_touch_range(x, r, PEET_LOAD, e->arg[1], e->arg[2]);
    default: return 0;
    }
}

/* Counts an event. Returns whether it ends a segment whose successor is in a later epoch. */
static bool sharing_end_segment(struct sharing *x, struct sharing_reader *r, uint32_t epoch)
{
    const struct graph_thread *l = &x->p.thread[r->shadow.thread];
    bool last = r->segment == l->first + l->segments - 1;

    r->events++;
    if (last || r->events != x->p.segment[r->segment].events)
        return false;
    r->segment++;
    if (x->epochs.from[r->segment] > epoch)
        return true;
    if (x->epochs.until[r->segment] + 1 > r->shadow.until)
        shadow_thread_until(&r->shadow, x->epochs.until[r->segment] + 1);
    return false;
}

/* Takes the records of the batch up to the end of the epoch. Returns 1 at that end, 0 at the end of the batch, or an error. */
static int sharing_take_batch(struct sharing *x, struct sharing_reader *r, uint32_t epoch)
{
    const struct peet_record *record = r->batch.records;
    int code = 0;

    while (code == 0 && r->at < r->batch.count) {
        const struct peet_record *y = &record[r->at++];
        if (y->kind >= PEET_LOAD && y->kind <= PEET_UPDATE) {
            r->references++;
            code = y->size ? shadow_touch(&x->shadow, &r->shadow, y->kind, y->addr, y->size, x->err) : 0;
        } else if (y->kind == PEET_PREFETCH) {
            r->references++;
        } else if (y->kind == PEET_EVENT) {
            code = sharing_range_event(x, r, &r->batch.events[y->id]);
            if (code == 0 && sharing_end_segment(x, r, epoch))
                return 1;
        }
    }
    return code;
}

/* One thread to the end of the epoch, or to its own end. */
static int sharing_read_epoch(struct sharing *x, struct sharing_reader *r, uint32_t epoch)
{
    shadow_thread_until(&r->shadow, x->epochs.until[r->segment] + 1);
    int code = sharing_take_batch(x, r, epoch);

    while (code == 0) {
        uint64_t before = r->batch.position;
        code = peet_cursor_next(r->cursor, &r->batch, x->err);
        if (code == PEET_ERR_DAMAGED) {
            x->damaged++;
            r->batch.count = r->at = 0;
            code = 0;
            continue;
        }
        if (code <= 0) {
            r->done = true;
            peet_cursor_free(r->cursor);
            r->cursor = NULL;
            return code;
        }
        x->instructions += r->batch.position - before;
        progress_at(x->progress, x->instructions);
        r->at = 0;
        code = sharing_take_batch(x, r, epoch);
    }
    return code < 0 ? code : 0;
}

static int sharing_read(struct sharing *x)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < x->p.threads; i++) {
        struct sharing_reader *y = &x->reader[i];
        y->shadow.process = x->p.thread[i].process;
        y->shadow.thread = (uint32_t)i;
        y->segment = x->p.thread[i].first;
        r = peet_cursor_open(x->p.trace, x->p.thread[i].id, 0, &y->cursor, x->err);
    }
    for (uint32_t e = 0; r == 0 && e < x->epochs.count; e++) {
        for (size_t i = 0; r == 0 && i < x->p.threads; i++)
            if (!x->reader[i].done && x->epochs.from[x->reader[i].segment] == e)
                r = sharing_read_epoch(x, &x->reader[i], e);
        if (r == 0)
            r = shadow_end_epoch(&x->shadow, x->err);
    }
    return r;
}

/* ---- tables ---- */

static void sharing_add_kinds(struct table *t, const struct shadow_kinds *k, unsigned shift)
{
    table_count(t, k->touched << shift);
    table_count(t, k->alone << shift);
    table_count(t, k->read_only << shift);
    table_count(t, k->shared << shift);
    table_count(t, k->many << shift);
}

static void sharing_add_notes(struct table *t, const struct sharing *x)
{
    table_note(
        t,
        "in granules of %" PRIu64
        " bytes; private: one thread touched it; only read: several threads read it, and no thread wrote; shared: "
        "several threads, and at least one wrote",
        UINT64_C(1) << x->shadow.shift);
    table_note(t,
               "a value counts once for each thread that reads it after another wrote it, until it is written again");
    table_note(
        t,
        "epochs are parts of the run of which events say for certain that one lies before the other; unordered: written and read "
        "in the same epoch, or written by several threads in one, so that it is not known which value was read");
    table_note(t, "memory that was freed and allocated again keeps its history");
    if (x->s.forced)
        table_note(t, "%" PRIu64 " waits would never have ended; so the whole run is one epoch", x->s.forced);
    if (x->damaged)
        table_note(t, "%" PRIu64 " damaged parts are missing", x->damaged);
    if (x->p.unknown.gaps)
        table_note(t, "references in %" PRIu64 " gaps were not recorded", x->p.unknown.gaps);
}

static void sharing_add_summary(struct table *t, const struct sharing *x)
{
    uint64_t references = 0;

    for (size_t i = 0; i < x->p.threads; i++)
        references += x->reader[i].references;
    table_text(t, peet_trace_path(x->p.trace));
    table_count(t, x->p.threads);
    table_count(t, x->epochs.count);
    table_count(t, UINT64_C(1) << x->shadow.shift);
    table_count(t, references);
    sharing_add_kinds(t, &x->shadow.total, x->shadow.shift);
    table_count(t, x->shadow.total.flow.ordered << x->shadow.shift);
    table_count(t, x->shadow.total.flow.unordered << x->shadow.shift);
    sharing_add_notes(t, x);
}

/* Flows into each thread, and out of it; to be freed. */
static int sharing_sum_flows(const struct sharing *x, struct shadow_flow **ret_in, struct shadow_flow **ret_out)
{
    struct shadow_flow *in = calloc(x->p.threads + 1, sizeof *in), *out = calloc(x->p.threads + 1, sizeof *out);
    const struct shadow_flow *f;
    uint64_t from;
    uint32_t to;

    *ret_in = in;
    *ret_out = out;
    if (!in || !out)
        return sharing_no_memory(x->err);
    for (size_t at = 0; (f = map_next(&x->shadow.flows, &at, &from, &to));) {
        in[to].ordered += f->ordered;
        in[to].unordered += f->unordered;
        out[from].ordered += f->ordered;
        out[from].unordered += f->unordered;
    }
    return 0;
}

static int sharing_add_threads(struct table *t, const struct sharing *x)
{
    unsigned shift = x->shadow.shift;
    struct shadow_flow *in, *out;
    int r = sharing_sum_flows(x, &in, &out);

    for (size_t i = 0; r == 0 && i < x->p.threads; i++) {
        table_count(t, x->p.thread[i].id);
        table_text(t, x->p.thread[i].name);
        table_count(t, x->reader[i].references);
        sharing_add_kinds(t, &x->shadow.by_thread[i], shift);
        table_count(t, in[i].ordered << shift);
        table_count(t, out[i].ordered << shift);
        table_count(t, in[i].unordered << shift);
        table_count(t, out[i].unordered << shift);
    }
    free(in);
    free(out);
    return r;
}

static void sharing_add_pairs(struct table *t, const struct sharing *x)
{
    for (uint32_t from = 0; from < x->p.threads; from++) {
        for (uint32_t to = 0; to < x->p.threads; to++) {
            const struct shadow_flow *f = map_find(&x->shadow.flows, from, to);
            if (!f)
                continue;
            table_count(t, x->p.thread[from].id);
            table_count(t, x->p.thread[to].id);
            table_count(t, f->ordered << x->shadow.shift);
            table_count(t, f->unordered << x->shadow.shift);
        }
    }
}

/* A row of the table of data. */
struct data_row {
    const struct shadow_kinds *kinds;
    size_t name; /* number in data_names */
};

static int compare_data(const void *a, const void *b)
{
    const struct data_row *x = a, *y = b;

    if (x->kinds->touched != y->kinds->touched)
        return x->kinds->touched > y->kinds->touched ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

static void sharing_add_data_row(struct table *t, const struct sharing *x, const char *name,
                                 const struct shadow_kinds *k, uint32_t process)
{
    table_text(t, name);
    process ? table_count(t, process) : table_none(t);
    sharing_add_kinds(t, k, x->shadow.shift);
    table_count(t, k->flow.ordered << x->shadow.shift);
    table_count(t, k->flow.unordered << x->shadow.shift);
}

static void sharing_sum_kinds(struct shadow_kinds *to, const struct shadow_kinds *k)
{
    to->touched += k->touched;
    to->alone += k->alone;
    to->read_only += k->read_only;
    to->shared += k->shared;
    to->many += k->many;
    to->flow.ordered += k->flow.ordered;
    to->flow.unordered += k->flow.unordered;
}

/* The largest ones, and a row for all others, so that the sum is the whole. */
static int sharing_add_data(struct table *t, const struct sharing *x)
{
    struct data_row *row = calloc(x->names.count + 1, sizeof *row);
    struct shadow_kinds rest = { 0 };
    size_t n = 0;

    if (!row)
        return sharing_no_memory(x->err);
    for (size_t i = 0; i < x->names.count; i++)
        if (x->shadow.by_name[i].touched)
            row[n++] = (struct data_row){ &x->shadow.by_name[i], i };
    if (n)
        qsort(row, n, sizeof *row, compare_data);
    for (size_t i = 0; i < n; i++) {
        if (i < NAME_ROWS)
            sharing_add_data_row(t, x, x->names.name[row[i].name], row[i].kinds, x->names.process[row[i].name]);
        else
            sharing_sum_kinds(&rest, row[i].kinds);
    }
    if (rest.touched)
        sharing_add_data_row(t, x, "(all others)", &rest, 0);
    table_note(t, "by name_data, by symbol, by the call that allocated at least a page, by the mapping, in this order");
    free(row);
    return 0;
}

static int sharing_fill(struct result *r, struct sharing *x)
{
    struct table *summary = result_table(r, "summary", "Sharing", SUMMARY);

    summary->records = true;
    shadow_count(&x->shadow);
    sharing_add_summary(summary, x);
    int code = sharing_add_threads(result_table(r, "threads", "Threads", THREADS), x);
    sharing_add_pairs(result_table(r, "pairs", "From writer to reader", PAIRS), x);
    return code < 0 ? code : sharing_add_data(result_table(r, "data", "Data", DATA), x);
}

static unsigned log2_of(uint64_t power)
{
    return (unsigned)__builtin_ctzll(power);
}

/* Options. */
struct study_state {
    uint64_t grain; /* bytes of a granule: a power of two up to STUDY_MAX_GRAIN */
};

static int sharing_check(struct study_state *s, const struct study_use *use, struct peet_err *err)
{
    (void)use;
    if (s->grain == 0 || s->grain > STUDY_MAX_GRAIN || (s->grain & (s->grain - 1)))
        return err_set(err, PEET_ERR_USAGE,
                       "a granule cannot have %" PRIu64 " bytes; a power of two up to %d was expected", s->grain,
                       STUDY_MAX_GRAIN);
    return 0;
}

static int sharing_run(struct study_state *s, struct peet_trace *t, struct study_answer *answer,
                       struct progress *progress, struct peet_err *err)
{
    struct sharing x = { .progress = progress, .err = err };
    int r = peet_trace_is_pipe(t) ? err_set(
                err, PEET_ERR_USAGE, "%s: sharing reads a trace twice; save it in a file first", peet_trace_path(t))
                                  : precedence_read(&x.p, t, NULL, err);

    if (r == 0)
        r = schedule_make(&x.s, &x.p, SCHEDULE_KNOWN, err);
    if (r == 0)
        r = epochs_make(&x.epochs, &x.s, &x.p, err);
    if (r == 0)
        r = data_names_init(&x.names, &x.p, err);
    if (r == 0)
        r = shadow_init(&x.shadow, log2_of(s->grain), &x.names, x.p.threads, err);
    if (r == 0 && !(x.reader = calloc(x.p.threads + 1, sizeof *x.reader)))
        r = sharing_no_memory(err);
    if (r == 0)
        r = sharing_read(&x);
    if (r == 0) {
        answer->damaged = x.damaged;
        r = sharing_fill(&answer->result, &x);
    }
    for (size_t i = 0; x.reader && i < x.p.threads; i++)
        peet_cursor_free(x.reader[i].cursor);
    free(x.reader);
    epochs_release(&x.epochs);
    shadow_release(&x.shadow);
    data_names_release(&x.names);
    schedule_release(&x.s);
    precedence_release(&x.p);
    return r;
}

static const struct opt options[] = {
    { .name = "grain",
      .type = OPT_NUMBER,
      .arg = "BYTES",
      .value = STUDY_OPTION(grain),
      .help = "sharing: how finely memory is looked at, a power of two (1)" },
    { 0 },
};

const struct study study_sharing = {
    .name = "sharing",
    .summary = "which memory threads share, and how much flows from thread to thread",
    .options = options,
    .state_size = sizeof(struct study_state),
    .defaults = &(const struct study_state){ .grain = 1 },
    .check = sharing_check,
    .run = sharing_run,
};
