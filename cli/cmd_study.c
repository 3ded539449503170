/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/progress.h"
#include "cli/cli.h"
#include "study/study.h"
#include "view/view.h"

enum { PROBLEMS_SHOWN = 20 };

static struct study_config config = { .grain = 8 };
static const char *format, *output;

static const char *study_name(size_t i, const void *context)
{
    (void)context;
    return study_at(i)->name;
}

static int unknown_study(const char *word)
{
    size_t n = 0;

    while (study_at(n))
        n++;
    const char *near = opt_nearest(word, n, study_name, NULL);
    return near ? usage_error(&cmd_study, "unknown study '%s'; did you mean '%s'?", word, near)
                : usage_error(&cmd_study, "unknown study '%s'; graph, parallelism or sharing was expected", word);
}

/* What an option is for, it does; elsewhere it would be ignored in silence. */
static int check_options(const struct study *s)
{
    if (config.collapse && s != &study_graph)
        return usage_error(&cmd_study, "--collapse is for the study 'graph'");
    if (config.locks && s != &study_parallelism)
        return usage_error(&cmd_study, "--locks is for the study 'parallelism'");
    if (config.grain != 8 && s != &study_sharing)
        return usage_error(&cmd_study, "--grain is for the study 'sharing'");
    return EXIT_OK;
}

static int show(const struct study *s, const struct study_answer *a, FILE *out, struct peet_err *err)
{
    if (!s->text || strcmp(format, "text") != 0)
        return view_show(format, &a->result, out, err);
    s->text(&a->result, out);
    errno = EIO; /* for an error that happened earlier, of which only the flag is left */
    return fflush(out) || ferror(out) ? err_sys(err, errno, "cannot write the result") : 0;
}

static int show_in_file(const struct study *s, const struct study_answer *a)
{
    struct peet_err err;
    FILE *out = fopen(output, "w");

    if (!out) {
        err_sys(&err, errno, "%s", output);
        return fail(&err);
    }
    int r = show(s, a, out, &err);
    if (fclose(out) && r == 0)
        r = err_sys(&err, errno, "%s: cannot write the result", output);
    return r < 0 ? fail(&err) : EXIT_OK;
}

/* Tells what is missing and returns the exit code. */
static int tell_problems(const struct peet_trace *t, uint64_t damaged)
{
    const char *problem;
    size_t n = 0;

    for (; (problem = peet_trace_problem(t, n)); n++)
        if (n < PROBLEMS_SHOWN)
            warn("%s: %s", peet_trace_path(t), problem);
    if (n > PROBLEMS_SHOWN)
        warn("and %zu more", n - PROBLEMS_SHOWN);
    if (damaged)
        warn("%s: %" PRIu64 " damaged parts were left out", peet_trace_path(t), damaged);
    return n || damaged ? EXIT_DAMAGED : EXIT_OK;
}

static int study(const struct study *s, struct peet_trace *trace)
{
    struct study_answer answer;
    struct progress progress;
    struct peet_err err;
    int code = EXIT_OK;

    progress_init(&progress, stderr, peet_trace_path(trace), 0, "instructions");
    int r = study_run(s, trace, &config, &answer, &progress, &err);
    progress_release(&progress);
    if (r < 0)
        return fail(&err);
    if (output && strcmp(output, "-") != 0)
        code = show_in_file(s, &answer);
    else if (show(s, &answer, stdout, &err) < 0)
        code = fail(&err);
    int missing = tell_problems(trace, answer.damaged);
    study_release(&answer);
    return code == EXIT_OK ? missing : code;
}

static int run(int operands, char **operand)
{
    struct peet_trace *trace;
    struct peet_err err;

    if (operands == 0)
        return usage_error(&cmd_study, "no study given; graph, parallelism or sharing was expected");
    const struct study *s = study_find(operand[0]);
    if (!s)
        return unknown_study(operand[0]);
    if (operands != 2)
        return usage_error(&cmd_study, operands < 2 ? "no trace given" : "only one trace can be studied at a time");
    int code = check_options(s);
    if (code != EXIT_OK)
        return code;
    if (peet_trace_open(operand[1], &trace, &err) < 0)
        return fail(&err);
    code = study(s, trace);
    peet_trace_free(trace);
    return code;
}

static const struct opt options[] = {
    { .name = "output",
      .letter = 'o',
      .type = OPT_STRING,
      .arg = "FILE",
      .value = &output,
      .help = "write the result to FILE" },
    { .name = "collapse",
      .type = OPT_FLAG,
      .value = &config.collapse,
      .help = "graph: merge nodes until it can be looked at" },
    { .name = "locks",
      .type = OPT_FLAG,
      .value = &config.locks,
      .help = "parallelism: profile and critical path of a run in which locks exclude each other" },
    { .name = "grain",
      .type = OPT_NUMBER,
      .arg = "BYTES",
      .value = &config.grain,
      .help = "sharing: how finely memory is looked at, a power of two (8)" },
    { 0 },
};

static const char *const examples[] = {
    "peet study parallelism lu.peet",
    "work, span, speed-up bounds, critical path, what barriers and locks cost",
    "peet study graph --collapse lu.peet | dot -Tsvg -o lu.svg",
    "a drawing of what had to come before what",
    "peet study sharing --grain 64 --format json lu.peet",
    "which thread reads what another wrote, by cache lines, for a program",
    NULL,
};

const struct command cmd_study = {
    .name = "study",
    .summary = "ask what does not hang on a machine: precedence, parallelism, sharing",
    .operands = "graph|parallelism|sharing TRACE",
    .options = options,
    .examples = examples,
    .format = &format,
    .run = run,
};
