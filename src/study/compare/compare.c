/* SPDX-License-Identifier: MIT */
#include "study/compare/compare.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "study/compare/hunks.h"
#include "study/compare/thread_match.h"

/* clang-format off */
static const struct column OVERALL[] = {
    { "unit",            "compared",        CELL_TEXT,    false },
    { "code",            "code by",         CELL_TEXT,    false },
    { "threads",         "threads",         CELL_COUNT,   false },
    { "events_a",        "events of A",     CELL_COUNT,   false },
    { "events_b",        "events of B",     CELL_COUNT,   false },
    { "edits",           "edits",           CELL_COUNT,   false },
    { "edit_similarity", "1 - edits / longer", CELL_PERCENT, false },
    { "indels",          "insertions and deletions", CELL_COUNT, false },
    { "lcs_similarity",  "2 LCS / sum",     CELL_PERCENT, false },
    { "exact",           "is",              CELL_TEXT,    false },
    { "edit_at_most",    "1 - edits / longer at most", CELL_PERCENT, false },
    { "lcs_at_most",     "2 LCS / sum at most", CELL_PERCENT, false },
    { 0 },
};
static const struct column THREADS[] = {
    { "program",         "Program",  CELL_TEXT,    true },
    { "thread_a",        "Thread of A", CELL_COUNT, false },
    { "thread_b",        "of B",     CELL_COUNT,   false },
    { "matched",         "by",       CELL_TEXT,    true },
    { "events_a",        "Events",   CELL_COUNT,   false },
    { "events_b",        "of B",     CELL_COUNT,   false },
    { "edits",           "Edits",    CELL_COUNT,   false },
    { "edit_similarity", "Similarity by edits", CELL_PERCENT, false },
    { "indels",          "Indels",   CELL_COUNT,   false },
    { "lcs_similarity",  "by LCS",   CELL_PERCENT, false },
    { "exact",           "Is",       CELL_TEXT,    false },
    { "engine",          "Engine",   CELL_TEXT,    true },
    { "edits_at_least",  "Edits at least", CELL_COUNT, false },
    { "indels_at_least", "Indels at least", CELL_COUNT, false },
    { "from",            "From",     CELL_TEXT,    true },
    { 0 },
};
/* clang-format on */

/* Sums over threads. */
struct similarity {
    uint64_t a, b, longer; /* events */
    struct distance edits, indels;
    bool is_exact;
};

/* A comparison of two traces. */
struct trace_comparison {
    const struct compare_options *o;
    struct peet_trace *const *trace;
    struct compare_answer *answer;
    struct progress *progress;
    struct table *overall, *threads;
    struct result details; /* tables of edits, after the others */
    struct similarity sum;
    uint64_t done, matched; /* instructions read; threads with a partner */
    bool is_by_source, has_entry;
};

/* ---- numbers ---- */

/* 1 − part / whole. */
static double similarity_of(uint64_t part, uint64_t whole)
{
    return whole ? 1 - (double)part / (double)whole : 1;
}

static void table_bound(struct table *t, const struct distance *d)
{
    if (d->least < d->most)
        table_count(t, d->least);
    else
        table_none(t);
}

static void compare_put_thread(struct trace_comparison *c, const char *program, const struct thread_pair *p,
                               const struct event_stream *a, const struct event_stream *b, const struct distance *edits,
                               const struct distance *indels)
{
    struct table *t = c->threads;
    uint64_t n = a ? a->count : 0, m = b ? b->count : 0, longer = n > m ? n : m;
    bool is_exact = edits->least == edits->most && indels->least == indels->most;

    table_text(t, program);
    if (a)
        table_count(t, a->thread->id);
    else
        table_none(t);
    if (b)
        table_count(t, b->thread->id);
    else
        table_none(t);
    table_text(t, matched_by_names[p->by]);
    table_count(t, n);
    table_count(t, m);
    table_count(t, edits->most);
    table_real(t, similarity_of(edits->most, longer));
    table_count(t, indels->most);
    table_real(t, similarity_of(indels->most, n + m));
    table_text(t, is_exact ? "exact" : "bound");
    table_text(t, distance_engine_names[edits->engine > indels->engine ? edits->engine : indels->engine]);
    table_bound(t, edits);
    table_bound(t, indels);
    table_text(t, c->o->wants.froms == 0 ? NULL : (!a || a->is_cut) && (!b || b->is_cut) ? "function" : "its start");
    struct similarity *s = &c->sum;
    *s = (struct similarity){
        s->a + n,
        s->b + m,
        s->longer + longer,
        { s->edits.least + edits->least, s->edits.most + edits->most, ENGINE_BOUND },
        { s->indels.least + indels->least, s->indels.most + indels->most, ENGINE_BOUND },
        s->is_exact && is_exact,
    };
}

static void compare_put_overall(struct trace_comparison *c)
{
    struct table *t = c->overall;
    const struct similarity *s = &c->sum;

    table_text(t, compare_unit_names[c->o->wants.unit]);
    table_text(t, c->is_by_source ? "function and line" : "address");
    table_count(t, c->matched);
    table_count(t, s->a);
    table_count(t, s->b);
    table_count(t, s->edits.most);
    table_real(t, similarity_of(s->edits.most, s->longer));
    table_count(t, s->indels.most);
    table_real(t, similarity_of(s->indels.most, s->a + s->b));
    table_text(t, s->is_exact ? "exact" : "bound");
    if (s->is_exact) {
        table_none(t);
        table_none(t);
    } else {
        table_real(t, similarity_of(s->edits.least, s->longer));
        table_real(t, similarity_of(s->indels.least, s->a + s->b));
    }
    if (!s->is_exact)
        table_note(t, "exact distances are out of reach: the similarities are at least these numbers (--effort)");
    if (c->is_by_source)
        table_note(
            t, "the traces are of different builds: code is the same if it has the same function and matching lines");
    c->answer->similarity = similarity_of(s->edits.most, s->longer);
    c->answer->is_exact = s->is_exact;
}

/* ---- two processes ---- */

/* Two processes, and the streams of their threads. */
struct process_comparison {
    const struct peet_process *process[2];
    struct code_match *match;
    struct event_stream *stream[2];
    size_t streams[2];
    struct thread_pair *pair;
    size_t pairs;
};

static void process_comparison_release(struct process_comparison *p)
{
    for (unsigned side = 0; side < 2; side++) {
        for (size_t i = 0; i < p->streams[side]; i++)
            event_stream_release(&p->stream[side][i]);
        free(p->stream[side]);
    }
    free(p->pair);
    code_match_free(p->match);
}

static const char *process_program(const struct peet_process *p)
{
    const char *slash = strrchr(p->program, '/');

    return slash ? slash + 1 : p->program;
}

static int compare_read_streams(struct trace_comparison *c, struct process_comparison *p, unsigned side,
                                struct peet_err *err)
{
    const struct peet_thread **thread;
    size_t count = threads_of_process(c->trace[side], p->process[side]->id, &thread);
    int r = 0;

    p->stream[side] = mem_alloc(count + 1, sizeof *p->stream[side]);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct event_stream *s = &p->stream[side][p->streams[side]++];
        s->thread = thread[i];
        r = event_stream_read(s, p->match, side, c->trace[side], &c->o->wants, c->progress, &c->done, err);
        c->answer->damaged[side] += s->damaged;
        c->has_entry |= s->is_cut;
    }
    free(thread);
    return r;
}

static size_t streams_find(const struct event_stream *s, size_t count, uint64_t id)
{
    size_t i = 0;

    while (i < count && s[i].thread->id != id)
        i++;
    return i < count ? i : SIZE_MAX;
}

/* Pairs of threads that options name, as far as they belong to these processes. */
static int compare_read_pairs(struct trace_comparison *c, struct process_comparison *p, struct peet_err *err)
{
    for (size_t i = 0; i < c->o->thread_pairs; i++) {
        char *end, *rest;
        uint64_t a = strtoull(c->o->threads[i], &end, 10), b = strtoull(*end == ':' ? end + 1 : end, &rest, 10);
        if (*end != ':' || *rest || end == c->o->threads[i] || rest == end + 1)
            return err_set(err, PEET_ERR_USAGE, "--thread %s: two numbers of threads were expected, as 1:2",
                           c->o->threads[i]);
        struct thread_pair pair = { streams_find(p->stream[0], p->streams[0], a),
                                    streams_find(p->stream[1], p->streams[1], b), MATCHED_BY_OPTION };
        if (pair.a != SIZE_MAX && pair.b != SIZE_MAX)
            p->pair[p->pairs++] = pair;
    }
    return 0;
}

static int compare_pair(struct trace_comparison *c, struct process_comparison *p, const struct thread_pair *pair,
                        struct hunk_report *hunks, struct peet_err *err)
{
    const struct event_stream *a = pair->a == SIZE_MAX ? NULL : &p->stream[0][pair->a];
    const struct event_stream *b = pair->b == SIZE_MAX ? NULL : &p->stream[1][pair->b];
    struct string32 x = { a ? a->at : NULL, a ? a->count : 0 }, y = { b ? b->at : NULL, b ? b->count : 0 };
    uint32_t classes = code_match_classes(p->match);
    struct distance edits = { x.count + y.count, x.count + y.count, ENGINE_ENDS }, indels = edits;
    struct edit_script script;
    int r = 0;

    if (a && b) {
        r = distance_indels(x, y, classes, &c->o->effort, &indels);
        r = r < 0 ? r : distance_edits(x, y, classes, &c->o->effort, &edits);
        c->matched++;
    }
    if (r == 0 && a && b && hunks) {
        r = edit_script_make(x, y, classes, &c->o->effort, &script);
        if (r == 0) {
            hunk_report_add(hunks, a, b, &script);
            edit_script_release(&script);
        }
    }
    if (r < 0)
        return err_set(err, PEET_ERR_MEMORY, "no memory to compare threads");
    compare_put_thread(c, process_program(p->process[a ? 0 : 1]), pair, a, b, &edits, &indels);
    return 0;
}

static int compare_processes(struct trace_comparison *c, struct process_comparison *p, struct peet_err *err)
{
    const uint32_t id[2] = { p->process[0]->id, p->process[1]->id };
    struct hunk_report hunks;
    int r = code_match_new(c->trace, id, c->o->wants.unit, c->o->wants.by, &p->match, err);

    for (unsigned side = 0; r == 0 && side < 2; side++)
        r = compare_read_streams(c, p, side, err);
    if (r == 0) {
        p->pair = mem_alloc(p->streams[0] + p->streams[1] + c->o->thread_pairs + 1, sizeof *p->pair);
        r = compare_read_pairs(c, p, err);
    }
    if (r < 0 || (c->o->thread_pairs && p->pairs == 0))
        return r;
    c->is_by_source |= code_match_is_by_source(p->match);
    p->pairs = threads_match(p->stream[0], p->streams[0], p->stream[1], p->streams[1], code_match_classes(p->match),
                             c->o->by_content, p->pair, p->pairs);
    bool has_edits = c->o->has_edits;
    if (has_edits)
        hunk_report_begin(&hunks, p->match,
                          code_match_is_by_source(p->match) && c->o->wants.unit == UNIT_INSTRUCTIONS
                              ? "lines"
                              : compare_unit_names[c->o->wants.unit],
                          c->o->top, &c->details);
    for (size_t i = 0; r == 0 && i < p->pairs; i++)
        r = compare_pair(c, p, &p->pair[i], has_edits ? &hunks : NULL, err);
    if (has_edits)
        hunk_report_end(&hunks);
    return r;
}

/* ---- two traces ---- */

static bool process_is_wanted(const struct trace_comparison *c, unsigned side, const struct peet_process *p)
{
    const struct peet_thread *thread;
    struct peet_totals totals;

    if (c->o->program && strcmp(c->o->program, process_program(p)) != 0)
        return false;
    for (size_t i = 0; (thread = peet_trace_thread(c->trace[side], i)); i++)
        if (thread->process == p->id && peet_trace_totals(c->trace[side], thread->id, &totals) == 0
            && totals.instructions + totals.events > 0)
            return true;
    return false;
}

static size_t compare_list_processes(const struct trace_comparison *c, unsigned side, const struct peet_process ***ret)
{
    const struct peet_process *p;
    size_t count = 0;

    *ret = NULL;
    for (size_t i = 0; (p = peet_trace_process(c->trace[side], i)); i++)
        if (process_is_wanted(c, side, p)) {
            *ret = mem_room((void *)*ret, count, sizeof **ret);
            (*ret)[count++] = p;
        }
    return count;
}

/* Compares processes with equal programs in their order; two single ones in any case. */
static int compare_all_processes(struct trace_comparison *c, struct peet_err *err)
{
    const struct peet_process **a, **b;
    size_t n = compare_list_processes(c, 0, &a), m = compare_list_processes(c, 1, &b), paired = 0;
    bool *is_done = mem_alloc(m + 1, sizeof *is_done);
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++) {
        size_t j = 0;
        while (j < m && (is_done[j] || ((n > 1 || m > 1) && strcmp(process_program(a[i]), process_program(b[j])) != 0)))
            j++;
        if (j == m)
            continue;
        struct process_comparison p = { .process = { a[i], b[j] } };
        is_done[j] = true;
        paired++;
        r = compare_processes(c, &p, err);
        process_comparison_release(&p);
    }
    if (r == 0 && paired == 0)
        r = err_set(err, PEET_ERR_USAGE,
                    c->o->program ? "no trace of program %s in both files; 'peet info' lists programs"
                                  : "no process of %s has a process of the same program in the other trace",
                    c->o->program ? c->o->program : peet_trace_path(c->trace[0]));
    if (r == 0 && paired < n)
        table_note(c->overall, "%zu processes of A have no partner and are not compared", n - paired);
    if (r == 0 && paired < m)
        table_note(c->overall, "%zu processes of B have no partner and are not compared", m - paired);
    free((void *)a);
    free((void *)b);
    free(is_done);
    return r;
}

int compare_traces(struct peet_trace *const trace[2], const struct compare_options *o, struct compare_answer *ret,
                   struct progress *progress, struct peet_err *err)
{
    struct trace_comparison c = { .o = o, .trace = trace, .answer = ret, .progress = progress, .sum.is_exact = true };

    *ret = (struct compare_answer){ 0 };
    c.overall = result_table(&ret->result, "overall", "Similarity", OVERALL);
    c.overall->records = true;
    c.threads = result_table(&ret->result, "threads", "Threads", THREADS);
    int r = compare_all_processes(&c, err);
    if (r == 0 && o->thread_pairs && c.threads->rows == 0)
        r = err_set(err, PEET_ERR_USAGE, "--thread: the traces have no such threads; 'peet info' lists them");
    if (r == 0 && o->wants.froms && !c.has_entry)
        r = err_set(err, PEET_ERR_USAGE, "--from %s: no thread executes it", o->wants.from[0]);
    if (r == 0)
        compare_put_overall(&c);
    if (r == 0)
        result_append(&ret->result, &c.details);
    else
        compare_release(ret);
    result_release(&c.details);
    return r;
}

void compare_release(struct compare_answer *a)
{
    result_release(&a->result);
}
