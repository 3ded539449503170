/* SPDX-License-Identifier: MIT */
/* peet compare: how alike two traces are, and what makes one of the other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/progress.h"
#include "cli/cli.h"
#include "cli/profile_job.h"
#include "cli/subject.h"
#include "study/compare/compare.h"
#include "study/compare/why.h"
#include "view/view.h"

enum { COMPARE_TOP = 20 };

struct command_state {
    const char *format;
    const char *output; /* NULL or "-": standard output */
    bool unit[4];       /* by enum compare_unit; none: instructions */
    const char *by;     /* "auto", "address", "source" */
    const char *match;  /* "creation", "content" */
    const char *program;
    const char *allow;  /* percent by which similarity may be below 1, or cycles may grow; NULL: 0, with --why 1 */
    const char *effort; /* cells of a table in units of 10^12; NULL: the default */
    struct opt_list from, threads;
    bool is_abstract, has_edits, asks_why;
    uint64_t top;           /* rows; UINT64_MAX: COMPARE_TOP */
    struct profile_job job; /* of --why */
};

/* Reads a number that an option gives; NULL: the default. */
static int compare_read_number(const char *name, const char *text, double least, double none, double *ret)
{
    char *end;

    *ret = text ? strtod(text, &end) : none;
    if (text && strcmp(name, "allow") == 0 && *end == '%')
        end++;
    if (text && (end == text || *end || !(*ret >= least && *ret <= 1e9)))
        return usage_error(&cmd_compare, "--%s %s: a number from %g on was expected", name, text, least);
    return EXIT_OK;
}

static int compare_read_options(const struct command_state *s, struct compare_options *ret)
{
    double effort;
    unsigned units = 0;
    int code = compare_read_number("effort", s->effort, 0, DISTANCE_CELLS / 1e12, &effort);

    *ret = (struct compare_options){ .effort = { vector_width_best(), effort * 1e12 }, .program = s->program };
    for (unsigned i = 0; i < 4; i++)
        if (s->unit[i]) {
            ret->wants.unit = (enum compare_unit)i;
            units++;
        }
    if (units > 1)
        return usage_error(&cmd_compare, "one of --instructions, --blocks, --calls and --events was expected");
    ret->wants.by = strcmp(s->by, "address") == 0 ? BY_ADDRESS : strcmp(s->by, "source") == 0 ? BY_SOURCE : BY_AUTO;
    ret->wants.from = s->from.item;
    ret->wants.froms = s->from.count;
    ret->wants.is_abstract = s->is_abstract;
    ret->threads = s->threads.item;
    ret->thread_pairs = s->threads.count;
    ret->by_content = strcmp(s->match, "content") == 0;
    ret->has_edits = s->has_edits;
    ret->top = s->top == UINT64_MAX ? COMPARE_TOP : s->top;
    return code;
}

static int compare_show(const struct command_state *s, const struct result *result)
{
    struct peet_err err;
    FILE *out = s->output && strcmp(s->output, "-") != 0 ? fopen(s->output, "w") : stdout;

    if (!out) {
        err_sys(&err, errno, "%s", s->output);
        return fail(&err);
    }
    int r = view_show(s->format, result, out, &err);
    if (out != stdout && fclose(out) && r == 0)
        r = err_sys(&err, errno, "%s: cannot write the result", s->output);
    return r < 0 ? fail(&err) : EXIT_OK;
}

/* Compares open traces. */
static int compare_run(const struct command_state *s, struct peet_trace *const trace[2], double allow)
{
    struct compare_options options;
    struct compare_answer answer;
    struct progress progress;
    struct peet_totals totals;
    struct peet_err err;
    uint64_t instructions = 0;
    int code = compare_read_options(s, &options), damage = EXIT_OK;

    if (code != EXIT_OK)
        return code;
    for (unsigned side = 0; side < 2; side++)
        for (size_t i = 0; peet_trace_thread(trace[side], i); i++)
            if (peet_trace_totals(trace[side], peet_trace_thread(trace[side], i)->id, &totals) == 0)
                instructions += totals.instructions;
    progress_init(&progress, stderr, "reading both traces", instructions, "instructions");
    int r = compare_traces(trace, &options, &answer, &progress, &err);
    progress_release(&progress);
    for (unsigned side = 0; r < 0 && side < 2; side++)
        subject_warn_problems(trace[side], 0);
    if (r == PEET_ERR_USAGE)
        return usage_error(&cmd_compare, "%s", err.text);
    if (r < 0)
        return fail(&err);
    code = compare_show(s, &answer.result);
    for (unsigned side = 0; side < 2; side++)
        damage = subject_warn_problems(trace[side], answer.damaged[side]) != EXIT_OK ? EXIT_DAMAGED : damage;
    bool is_within = answer.similarity >= 1 - allow / 100;
    compare_release(&answer);
    return code != EXIT_OK ? code : damage != EXIT_OK ? damage : is_within ? EXIT_OK : EXIT_FOUND;
}

/* Simulates both traces, and explains the change in cycles. */
static int compare_why(struct command_state *s, char **path, double allow)
{
    struct profile_subject before = { 0 }, after = { 0 };
    struct run_study_state *study = run_study_state_new(&run_study_profile, NULL);
    struct result result = { 0 };

    s->job.study = study;
    int code = profile_job_trace(&s->job, path[0], path[0], &before);
    if (code == EXIT_OK)
        code = profile_job_trace(&s->job, path[1], path[1], &after);
    if (code == EXIT_OK) {
        const struct profile *a = profile_subject_profile(&before), *b = profile_subject_profile(&after);
        char *title = mem_format("%s → %s", path[0], path[1]);
        result_title(&result, title);
        free(title);
        bool is_worse = why_report(a, b, allow / 100, s->top == UINT64_MAX ? COMPARE_TOP : s->top, &result);
        code = compare_show(s, &result);
        if (code == EXIT_OK && is_worse && !a->result.is_interrupted && !b->result.is_interrupted)
            code = EXIT_FOUND;
        result_release(&result);
    }
    code = profile_subject_close(&after, code);
    code = profile_subject_close(&before, code);
    run_study_state_free(&run_study_profile, study);
    return code;
}

/* Whether an option of the simulation was given without it, or one of streams with it. Complains and returns EXIT_USAGE if so. */
static int compare_check_why(const struct command_state *s)
{
    if (!s->asks_why && (s->job.settings.count || s->job.cpus || s->job.machine))
        return usage_error(&cmd_compare, "--machine, --set and --cpus go with --why");
    bool has_others = s->from.count || s->threads.count || s->is_abstract || s->has_edits || s->program || s->effort;
    for (unsigned i = 0; i < 4; i++)
        has_others |= s->unit[i];
    if (s->asks_why && has_others)
        return usage_error(&cmd_compare, "--why goes with --machine, --set, --cpus, --allow and --top only");
    return EXIT_OK;
}

static int compare_main(struct command_state *s, int operands, char **operand)
{
    struct peet_trace *trace[2] = { NULL, NULL };
    struct peet_err err;
    double allow;
    int code = compare_read_number("allow", s->allow, 0, s->asks_why, &allow);

    if (code != EXIT_OK || (code = compare_check_why(s)) != EXIT_OK)
        return code;
    if (operands != 2)
        return usage_error(&cmd_compare, "two traces were expected");
    if (s->output && strcmp(s->output, "-") != 0 && subject_check_output(s->output) != EXIT_OK)
        return EXIT_FAILED;
    if (s->asks_why) {
        s->job.machine = s->job.machine ? s->job.machine : "modern";
        return compare_why(s, operand, allow);
    }
    for (int i = 0; i < 2 && code == EXIT_OK; i++) {
        if (peet_trace_open(operand[i], &trace[i], &err) < 0)
            code = fail(&err);
        else if (peet_trace_is_pipe(trace[i]))
            code = usage_error(&cmd_compare, "%s: a file was expected: traces are read twice", operand[i]);
    }
    if (code == EXIT_OK)
        code = compare_run(s, trace, allow);
    for (int i = 0; i < 2; i++)
        peet_trace_free(trace[i]);
    return code;
}

static const char *const BYS[] = { "auto", "address", "source", NULL };
static const char *const MATCHES[] = { "creation", "content", NULL };

static const struct opt options[] = {
    { .name = "instructions",
      .type = OPT_FLAG,
      .value = OPTION(unit[UNIT_INSTRUCTIONS]),
      .help = "compare instructions (this is the default)" },
    { .name = "blocks",
      .type = OPT_FLAG,
      .value = OPTION(unit[UNIT_BLOCKS]),
      .help = "compare blocks of instructions" },
    { .name = "calls", .type = OPT_FLAG, .value = OPTION(unit[UNIT_CALLS]), .help = "compare calls and returns" },
    { .name = "events",
      .type = OPT_FLAG,
      .value = OPTION(unit[UNIT_EVENTS]),
      .help = "compare events: locks, barriers, allocations" },
    { .name = "thread",
      .letter = 't',
      .type = OPT_LIST,
      .arg = "T:U",
      .value = OPTION(threads),
      .help = "compare thread T of A with thread U of B only" },
    { .name = "match",
      .type = OPT_CHOICE,
      .value = OPTION(match),
      .choices = MATCHES,
      .help = "how threads find their partners (creation)" },
    { .name = "program",
      .type = OPT_STRING,
      .arg = "NAME",
      .value = OPTION(program),
      .help = "only processes of this program" },
    { .name = "by",
      .type = OPT_CHOICE,
      .value = OPTION(by),
      .choices = BYS,
      .help = "how code is recognized; auto: by source where builds differ (auto)" },
    { .name = "from",
      .type = OPT_LIST,
      .arg = "FUNCTION",
      .value = OPTION(from),
      .help = "begin each thread where it enters FUNCTION, end where that returns" },
    { .name = "abstract",
      .type = OPT_FLAG,
      .value = OPTION(is_abstract),
      .help = "leave out code that waits for other threads or allocates memory" },
    { .name = "edits",
      .letter = 'e',
      .type = OPT_FLAG,
      .value = OPTION(has_edits),
      .help = "say what B does otherwise, and show it side by side" },
    { .name = "top",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(top),
      .help = "rows of --edits for each thread (20; 0: all)" },
    { .name = "effort",
      .type = OPT_STRING,
      .arg = "N",
      .value = OPTION(effort),
      .help = "bounds instead of tables with more than N x 10^12 cells (10)" },
    { .name = "why",
      .letter = 'w',
      .type = OPT_FLAG,
      .value = OPTION(asks_why),
      .help = "simulate both: why does B take more cycles?" },
    SUBJECT_MACHINE_OPTIONS(job.machine, job.settings),
    { .name = "cpus", .type = OPT_STRING, .arg = "N", .value = OPTION(job.cpus), .help = "the number of processors" },
    { .name = "allow",
      .type = OPT_STRING,
      .arg = "PERCENT",
      .value = OPTION(allow),
      .help = "similarity may be this far below 100 % (0); with --why: cycles may grow by this (1)" },
    { .name = "output",
      .letter = 'o',
      .type = OPT_STRING,
      .arg = "FILE",
      .value = OPTION(output),
      .help = "write the result to FILE" },
    FORMAT_OPTION,
    { 0 },
};

static const char *const examples[] = {
    "peet compare before.peet after.peet",
    "how alike two recordings are, thread by thread; different builds are compared by function and line",
    "peet compare --edits --calls before.peet after.peet",
    "also which calls only one of them makes, folded and side by side",
    "peet compare --from main --abstract guest.peet native.peet",
    "from main on, and without code that waits for other threads",
    "peet compare --why --allow 2% -m modern before.peet after.peet",
    "which functions, data, causes of misses and locks make it slower; exit code 1 if by more than 2 %",
    "peet compare --thread 2:3 --instructions run.peet run.peet",
    "two threads of one recording",
    NULL,
};

const struct command cmd_compare = {
    .name = "compare",
    .summary = "say how alike two recordings are, and where they part",
    .operands = "A B",
    .options = options,
    .state_size = sizeof(struct command_state),
    .defaults = &(const struct command_state){ .format = "text", .by = "auto", .match = "creation", .top = UINT64_MAX },
    .examples = examples,
    .run = compare_main,
};
