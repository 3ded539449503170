/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "litmus/batch.h"
#include "view/view.h"

#define X(name) +1
enum { LITMUS_ORDERS = MEMORY_ORDERS(X), LITMUS_COLUMNS = 4 + 2 * LITMUS_ORDERS };
#undef X

enum { LITMUS_MAX_JOBS = 256 };

struct command_state {
    struct opt_list models;
    uint64_t jobs;        /* 0: as many as there are processors */
    uint64_t most_states; /* of an exploration; 0: no limit */
    bool list;            /* the models and the built-in tests */
    bool all_outcomes;    /* of several tests, too */
    bool all_witnesses;
    const char *format;
};

/* clang-format off */
static const struct column SUMMARY[] = {
    { "model",      "model",      CELL_TEXT,  false },
    { "tests",      "tests",      CELL_COUNT, false },
    { "allowed",    "allowed",    CELL_COUNT, false },
    { "forbidden",  "forbidden",  CELL_COUNT, false },
    { "violated",   "violated",   CELL_COUNT, false },
    { "unexplored", "unexplored", CELL_COUNT, false },
    { "outcomes",   "outcomes",   CELL_COUNT, false },
    { "states",     "states",     CELL_COUNT, false },
    { 0 },
};

static const struct column WITNESS[] = {
    { "test",   "test",         CELL_TEXT,  true },
    { "model",  "model",        CELL_TEXT,  false },
    { "step",   "step",         CELL_COUNT, false },
    { "thread", "thread",       CELL_TEXT,  false },
    { "what",   "what happens", CELL_CODE,  false },
    { 0 },
};

static const struct column ERRORS[] = {
    { "file", "file", CELL_TEXT, false },
    { "what", "what", CELL_TEXT, false },
    { 0 },
};

static const struct column BUILTINS[] = {
    { "test",      "test",      CELL_TEXT, false },
    { "program",   "program",   CELL_CODE, false },
    { "condition", "condition", CELL_CODE, false },
    { 0 },
};

static const struct column MODELS[] = {
    { "model",   "model",      CELL_TEXT, false },
    { "summary", "what it is", CELL_TEXT, false },
    { 0 },
};
/* clang-format on */

/* The tables of tests and outcomes have columns for each model. */
struct litmus_report {
    const struct litmus_batch *batch;
    struct column test_column[LITMUS_COLUMNS], outcome_column[LITMUS_COLUMNS];
    char *outcomes_name[LITMUS_ORDERS];
    struct result result;
    struct table *tests, *outcomes, *witness, *errors;
};

static int litmus_list(const char *format)
{
    struct result result = { 0 };
    struct table *t = result_table(&result, "models", "Models", MODELS);
    struct peet_err err;

    for (size_t i = 0; memory_orders[i]; i++) {
        table_text(t, memory_orders[i]->name);
        table_text(t, memory_orders[i]->summary);
    }
    t = result_table(&result, "tests", "Built-in tests", BUILTINS);
    for (const struct litmus_builtin *b = litmus_builtins; b->name; b++) {
        table_text(t, b->name);
        table_text(t, b->program);
        table_text(t, b->condition);
    }
    int code = view_show(format, &result, stdout, &err) < 0 ? fail(&err) : EXIT_OK;
    result_release(&result);
    return code;
}

static void litmus_columns(struct litmus_report *r)
{
    struct column *t = r->test_column, *o = r->outcome_column;

    *t++ = (struct column){ "test", "test", CELL_TEXT, false };
    *t++ = (struct column){ "condition", "condition", CELL_CODE, false };
    *o++ = (struct column){ "test", "test", CELL_TEXT, true };
    *o++ = (struct column){ "outcome", "outcome", CELL_CODE, false };
    *o++ = (struct column){ "satisfies", "satisfies", CELL_TEXT, false };
    for (size_t i = 0; i < r->batch->orders; i++) {
        const char *name = r->batch->order[i]->name;
        r->outcomes_name[i] = mem_format("%s_outcomes", name);
        *t++ = (struct column){ name, name, CELL_TEXT, false };
        *t++ = (struct column){ r->outcomes_name[i], "outcomes", CELL_COUNT, false };
        *o++ = (struct column){ name, name, CELL_TEXT, false };
    }
}

static const char *litmus_name(const struct batch_entry *e)
{
    return e->test ? e->test->name : e->path;
}

static const char *litmus_verdict(const struct litmus_test *t, const struct litmus_outcomes *o)
{
    if (t->quantifier == LITMUS_FORALL)
        return litmus_holds(t, o) ? "holds" : "fails";
    return o->matching ? "allowed" : "forbidden";
}

/* exists asks; ~exists and forall claim something. */
static bool litmus_is_violated(const struct litmus_test *t, const struct litmus_outcomes *o)
{
    return t->quantifier != LITMUS_EXISTS && !litmus_holds(t, o);
}

static void litmus_show_test(struct litmus_report *r, const struct batch_entry *e)
{
    char *condition = litmus_condition_text(e->test);

    table_text(r->tests, litmus_name(e));
    table_text(r->tests, condition);
    free(condition);
    for (size_t i = 0; i < r->batch->orders; i++) {
        const struct litmus_outcomes *o = &e->outcome[i];
        table_text(r->tests, o->states ? litmus_verdict(e->test, o) : NULL);
        if (o->states)
            table_count(r->tests, o->count);
        else
            table_none(r->tests);
    }
}

static bool litmus_has(const struct litmus_outcomes *o, const int32_t *outcome, uint32_t n)
{
    for (size_t i = 0; i < o->count; i++)
        if (memcmp(o->value + i * n, outcome, n * sizeof *outcome) == 0)
            return true;
    return false;
}

/* "0:EAX=0; x=1;" */
static void litmus_outcome_text(struct table *to, const struct litmus_test *t, const int32_t *outcome)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (uint32_t i = 0; out && i < t->observables; i++)
        fprintf(out, "%s%s=%" PRId32 ";", i ? " " : "", t->observed[i].name, outcome[i]);
    if (out)
        fclose(out);
    table_text(to, text);
    free(text);
}

/* A row for each outcome that some model has: those of the first model in order, then those that others add. */
static void litmus_show_outcomes(struct litmus_report *r, const struct batch_entry *e)
{
    uint32_t n = e->test->observables;

    for (size_t i = 0; i < r->batch->orders; i++) {
        for (size_t k = 0; k < e->outcome[i].count; k++) {
            const int32_t *outcome = e->outcome[i].value + k * n;
            bool is_shown = false;
            for (size_t j = 0; j < i; j++)
                is_shown |= litmus_has(&e->outcome[j], outcome, n);
            if (is_shown)
                continue;
            table_text(r->outcomes, litmus_name(e));
            litmus_outcome_text(r->outcomes, e->test, outcome);
            table_text(r->outcomes, litmus_satisfies(e->test->condition, outcome) ? "yes" : "no");
            for (size_t j = 0; j < r->batch->orders; j++)
                table_text(r->outcomes, !e->outcome[j].states                    ? NULL
                                        : litmus_has(&e->outcome[j], outcome, n) ? "yes"
                                                                                 : "no");
        }
    }
}

/* The execution of the first model that has one. */
static void litmus_show_witness(struct litmus_report *r, const struct batch_entry *e)
{
    size_t i = 0, count;

    while (i < r->batch->orders && !e->outcome[i].steps)
        i++;
    if (i == r->batch->orders)
        return;
    struct witness_line *line = litmus_witness(e->test, e->outcome[i].step, e->outcome[i].steps, &count);
    for (size_t k = 0; k < count; k++) {
        char thread[16];
        snprintf(thread, sizeof thread, "P%d", line[k].thread);
        table_text(r->witness, litmus_name(e));
        table_text(r->witness, r->batch->order[i]->name);
        table_count(r->witness, k + 1);
        table_text(r->witness, thread);
        table_text(r->witness, line[k].text);
    }
    free(line);
}

/* Sums up each model; returns how many conditions are violated. */
static uint64_t litmus_sum_up(struct litmus_report *r)
{
    struct table *t = result_table(&r->result, "summary", "Summary", SUMMARY);
    uint64_t all_violated = 0;

    for (size_t i = 0; i < r->batch->orders; i++) {
        uint64_t n[7] = { 0 };
        for (size_t k = 0; k < r->batch->entries; k++) {
            const struct batch_entry *e = &r->batch->entry[k];
            const struct litmus_outcomes *o = &e->outcome[i];
            bool is_possible = o->states && e->test->quantifier != LITMUS_FORALL;
            n[0] += e->test != NULL;
            n[1] += is_possible && o->matching;
            n[2] += is_possible && !o->matching;
            n[3] += o->states && litmus_is_violated(e->test, o);
            n[4] += e->test && !o->states;
            n[5] += o->count;
            n[6] += o->states;
        }
        table_text(t, r->batch->order[i]->name);
        for (size_t k = 0; k < sizeof n / sizeof *n; k++)
            table_count(t, n[k]);
        all_violated += n[3];
    }
    return all_violated;
}

static int litmus_report(const struct command_state *s, const struct litmus_batch *b)
{
    struct litmus_report r = { .batch = b };
    struct peet_err err;
    bool is_one = b->entries == 1;
    uint64_t failed = 0;

    litmus_columns(&r);
    for (size_t i = 0; i < b->entries; i++)
        failed += b->entry[i].err.code != 0;
    r.tests = result_table(&r.result, "tests", "Tests", r.test_column);
    if (is_one || s->all_outcomes)
        r.outcomes = result_table(&r.result, "outcomes", "Outcomes", r.outcome_column);
    if (is_one || s->all_witnesses)
        r.witness = result_table(&r.result, "witness", "Witness", WITNESS);
    if (failed)
        r.errors = result_table(&r.result, "errors", "Errors", ERRORS);
    for (size_t i = 0; i < b->entries; i++) {
        const struct batch_entry *e = &b->entry[i];
        if (e->err.code) {
            table_text(r.errors, e->path ? e->path : e->test->name);
            table_text(r.errors, e->err.text);
        }
        if (!e->test)
            continue;
        litmus_show_test(&r, e);
        if (r.outcomes)
            litmus_show_outcomes(&r, e);
        if (r.witness)
            litmus_show_witness(&r, e);
    }
    uint64_t violated = litmus_sum_up(&r);
    int code = view_show(s->format, &r.result, stdout, &err) < 0 ? fail(&err) : violated ? EXIT_FOUND : EXIT_OK;
    if (failed) {
        if (is_one)
            complain("%s", b->entry[0].err.text);
        else
            complain("%" PRIu64 " of %zu tests could not be read or explored; the table of errors has the reasons",
                     failed, b->entries);
        code = EXIT_FAILED;
    }
    for (size_t i = 0; i < b->orders; i++)
        free(r.outcomes_name[i]);
    result_release(&r.result);
    return code;
}

/* The orders that were asked for, each once, in the order of the registry; otherwise all, where release and acquire occur, else those
 * that differ without them. */
static size_t litmus_choose(const struct opt_list *models, const struct litmus_batch *b, const struct order_model **ret)
{
    bool has_flags = false;
    size_t n = 0;

    for (size_t i = 0; i < b->entries; i++)
        has_flags |= b->entry[i].test && b->entry[i].test->has_flags;
    for (size_t i = 0; memory_orders[i]; i++) {
        bool wanted = !models->count && (has_flags || !memory_orders[i]->has_release);
        for (size_t k = 0; k < models->count; k++)
            wanted |= strcmp(models->item[k], memory_orders[i]->name) == 0;
        if (wanted)
            ret[n++] = memory_orders[i];
    }
    return n;
}

static int litmus_run(struct command_state *s, int operands, char **operand)
{
    const struct order_model *order[LITMUS_ORDERS];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct litmus_batch b = { .order = order, .most_states = s->most_states };
    struct progress progress;
    struct peet_err err;
    int code = EXIT_OK;

    if (s->list && operands)
        return usage_error(&cmd_litmus, "--list needs no file");
    if (s->list)
        return litmus_list(s->format);
    if (s->jobs > LITMUS_MAX_JOBS)
        return usage_error(&cmd_litmus, "--jobs is at most %d", LITMUS_MAX_JOBS);
    if (!operands)
        batch_add_builtins(&b);
    for (int i = 0; code == EXIT_OK && i < operands; i++)
        code = batch_add(&b, operand[i], &err) < 0 ? fail(&err) : EXIT_OK;
    if (code == EXIT_OK) {
        b.orders = litmus_choose(&s->models, &b, order);
        b.jobs = s->jobs                                          ? (unsigned)s->jobs
                 : processors > 0 && processors < LITMUS_MAX_JOBS ? (unsigned)processors
                                                                  : 1;
        b.progress = &progress;
        progress_init(&progress, stderr, "exploring litmus tests", b.entries, "tests");
        batch_run(&b);
        progress_release(&progress);
        code = litmus_report(s, &b);
    }
    batch_release(&b);
    return code;
}

#define X(name) #name,
static const char *const litmus_models[] = { MEMORY_ORDERS(X) NULL };
#undef X

static const struct opt litmus_options[] = {
    { .name = "model",
      .letter = 'm',
      .type = OPT_LIST,
      .arg = "M[,M...]",
      .value = OPTION(models),
      .help = "memory models (those without release and acquire; for tests with these, all)",
      .choices = litmus_models },
    { .name = "outcomes",
      .type = OPT_FLAG,
      .value = OPTION(all_outcomes),
      .help = "list outcomes of several tests, too" },
    { .name = "witness",
      .type = OPT_FLAG,
      .value = OPTION(all_witnesses),
      .help = "show an execution for each of several tests, too" },
    { .name = "list", .type = OPT_FLAG, .value = OPTION(list), .help = "list the models and the built-in tests" },
    { .name = "jobs",
      .letter = 'j',
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(jobs),
      .help = "explore N tests at a time (processors)" },
    { .name = "states",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(most_states),
      .help = "give up a test after N states (10m; 0: never)" },
    FORMAT_OPTION,
    { 0 },
};

static const char *const litmus_examples[] = {
    "peet litmus",
    "the built-in tests under all models",
    "peet litmus SB.litmus",
    "outcomes under sc, tso, pso and rmo, and an execution",
    "peet litmus --model tso --format csv tests/*.litmus",
    "many tests under one model, for a program",
    NULL,
};

const struct command cmd_litmus = {
    .name = "litmus",
    .summary = "explore what memory models allow a small parallel program",
    .operands = "[FILE.litmus...]",
    .options = litmus_options,
    .state_size = sizeof(struct command_state),
    .defaults = &(const struct command_state){ .most_states = 10 << 20, .format = "text" },
    .examples = litmus_examples,
    .run = litmus_run,
};
