/* SPDX-License-Identifier: MIT */
/* peet slack: simulates a recording, once for each schedule, then once for each prediction. A program is recorded first. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/profile_job.h"
#include "cli/subject.h"
#include "study/slack/slack.h"
#include "view/view.h"

enum { JITTER = 100 /* cycles: about a miss */, MAX_SEEDS = 1000, ROWS = 20, ROWS_OF_DATA = 1000 };

struct command_state {
    const char *machine, *format;
    const char *cpus;       /* NULL: as the machine says */
    const char *output;     /* NULL or "-": standard output */
    const char *trace_path; /* where the recording is kept; NULL: it is not kept */
    struct opt_list settings;
    uint64_t predict; /* units for which changes are simulated */
    uint64_t seeds;   /* schedules */
    uint64_t rows;    /* of each table; 0: as the format needs */
};

/* The machine of a schedule. A seed has no effect without jitter. */
static int slack_machine(const struct command_state *s, uint64_t seed, struct machine_config *ret)
{
    int code = subject_machine(ret, s->machine, &s->settings, s->cpus);

    if (code == EXIT_OK && s->seeds > 1) {
        ret->seed = seed;
        ret->jitter = ret->jitter ? ret->jitter : JITTER;
    }
    return code;
}

static int slack_show(const struct command_state *s, struct slack *slack, const char *title)
{
    bool is_page = !strcmp(s->format, "html"), is_text = !strcmp(s->format, "text");
    struct slack_wants wants = { .rows = s->rows   ? s->rows
                                         : is_text ? ROWS
                                                   : ROWS_OF_DATA,
                                 .is_page = is_page,
                                 .is_data = !is_page && !is_text };
    struct result result = { 0 };
    struct peet_err err;

    result_title(&result, title);
    slack_report(slack, &wants, &result);
    int r = s->output && strcmp(s->output, "-") != 0 ? view_save(s->format, &result, s->output, &err)
                                                     : view_show(s->format, &result, stdout, &err);
    result_release(&result);
    return r < 0 ? fail(&err) : EXIT_OK;
}

/* One simulation; i: its number, from 0. */
static int slack_simulate(const struct command_state *s, struct slack *slack, bool predicts, size_t i, uint64_t total)
{
    struct progress progress;
    struct slack_play play = { &subject_want_end, &progress };
    struct machine_config machine;
    struct peet_err err;
    char *what = mem_format(predicts ? "prediction %zu" : "schedule %zu", i + 1);
    int code = predicts ? EXIT_OK : slack_machine(s, i + 1, &machine);

    progress_init(&progress, stderr, what, total, "references");
    int r = code != EXIT_OK ? 0
            : predicts      ? slack_predict(slack, i, &play, &err)
                            : slack_run(slack, &machine, &play, &err);
    progress_release(&progress);
    free(what);
    if (r < 0)
        return fail(&err);
    return r > 0 ? subject_stopped_code(subject_want_end) : code;
}

static int slack_all(const struct command_state *s, struct peet_trace *trace, const char *title)
{
    uint64_t total = subject_references(trace);
    struct slack *slack;
    struct peet_err err;
    int code = EXIT_OK;

    if (slack_new(trace, &slack, &err) < 0)
        return fail(&err);
    for (size_t i = 0; code == EXIT_OK && i < (s->seeds ? s->seeds : 1); i++)
        code = slack_simulate(s, slack, false, i, total);
    size_t predictions = code == EXIT_OK ? slack_predictions(slack, s->predict) : 0;
    for (size_t i = 0; code == EXIT_OK && i < predictions; i++)
        code = slack_simulate(s, slack, true, i, total);
    if (code == EXIT_OK)
        code = slack_show(s, slack, title);
    slack_free(slack);
    return code;
}

static int slack_trace(const struct command_state *s, const char *path, const char *title)
{
    struct peet_trace *trace;
    struct peet_err err;

    if (peet_trace_open(path, &trace, &err) < 0)
        return fail(&err);
    subject_expect_end();
    int code = peet_trace_is_pipe(trace)
                   ? usage_error(&cmd_slack, "a trace is read thread by thread, which a pipe cannot do: give a file")
                   : slack_all(s, trace, title);
    int damage = subject_warn_problems(trace, 0);
    peet_trace_free(trace);
    return code == EXIT_OK ? damage : code;
}

static int slack_program(const struct command_state *s, char **program)
{
    struct peet_err err;
    int status = 0;
    char *path = s->trace_path ? mem_string(s->trace_path) : profile_job_new_file(&err);

    if (!path)
        return fail(&err);
    int code = profile_job_record(program, path, &status);
    int own = subject_exit_code(status);
    if (own)
        warn("%s ended with status %d: this is what it did until then", program[0], own);
    if (code == EXIT_OK)
        code = slack_trace(s, path, program[0]);
    if (!s->trace_path)
        unlink(path);
    free(path);
    return code == EXIT_OK ? own : code;
}

static int slack_main(struct command_state *s, int operands, char **operand)
{
    struct machine_config machine;

    if (operands == 0)
        return usage_error(&cmd_slack, "no trace and no program given");
    if (operands > 1 && subject_is_trace(operand[0]))
        return usage_error(&cmd_slack, "one trace was expected");
    if (s->seeds > MAX_SEEDS)
        return usage_error(&cmd_slack, "--seeds: 1 to %d were expected", MAX_SEEDS);
    if (s->trace_path && subject_is_trace(operand[0]))
        return usage_error(&cmd_slack, "--trace is for programs that run");
    int code = slack_machine(s, 1, &machine);
    if (code == EXIT_OK && s->output)
        code = subject_check_output(s->output);
    if (code == EXIT_OK && s->trace_path)
        code = subject_check_output(s->trace_path);
    if (code != EXIT_OK)
        return code;
    if (!subject_is_program(operands, operand[0]))
        return slack_trace(s, operand[0], operand[0]);
    operand[operands] = NULL; /* argv has room: it held the verb, at least */
    return slack_program(s, operand);
}

static const struct opt options[] = {
    SUBJECT_MACHINE_OPTIONS(machine, settings),
    { .name = "cpus", .type = OPT_STRING, .arg = "N", .value = OPTION(cpus), .help = "the number of processors" },
    { .name = "predict",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(predict),
      .help = "simulate changes of the N synchronizations with the largest waits (3)" },
    { .name = "seeds",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(seeds),
      .help = "look at N schedules, with the seeds 1 to N" },
    { .name = "rows",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(rows),
      .help = "rows of a table (text: 20, other formats: 1000)" },
    { .name = "trace",
      .type = OPT_STRING,
      .arg = "FILE",
      .value = OPTION(trace_path),
      .help = "keep the recording of the program there" },
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
    "peet slack ocean.peet",
    "which barriers and locks the data of a recorded run needed, and what the largest three cost",
    "peet slack --predict 0 --seeds 10 fmm.peet",
    "verdicts over ten schedules, without predictions",
    "peet slack --cpus 16 --predict 5 -- ./server -t 16",
    "a program built with peet cc, on 16 processors, with changes of the five largest waits",
    "peet slack --format html -o slack.html lu.peet",
    "a page with the threads' waits over time, and the dependences between threads",
    NULL,
};

const struct command cmd_slack = {
    .name = "slack",
    .summary = "say which synchronization the data needed, and what the rest costs",
    .operands = "[OPTION…] TRACE | -- PROGRAM [ARGUMENT…]",
    .options = options,
    .state_size = sizeof(struct command_state),
    .defaults = &(const struct command_state){ .machine = "modern", .format = "text", .predict = 3 },
    .examples = examples,
    .run = slack_main,
};
