/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/progress.h"
#include "cli/cli.h"
#include "study/compare/intrinsic.h"
#include "study/study.h"
#include "view/view.h"

enum { PROBLEMS_SHOWN = 20, SEEDS = 4, MOST_SEEDS = 1000, JITTER = 100 };

enum { TEXT_ROWS = 32 };
static struct study_config config = { .grain = 1 };
static const char *format, *output, *machine;
static struct opt_list settings;
static uint64_t seeds;

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
                : usage_error(&cmd_study,
                              "unknown study '%s'; graph, parallelism, sharing, allocation or intrinsic was expected",
                              word);
}

/* What an option is for, it does; elsewhere it would be ignored in silence. */
static int check_options(const struct study *s, bool is_program)
{
    if (config.collapse && s != &study_graph)
        return usage_error(&cmd_study, "--collapse is for the study 'graph'");
    if (config.locks && s != &study_parallelism)
        return usage_error(&cmd_study, "--locks is for the study 'parallelism'");
    if (config.rows && s != &study_parallelism)
        return usage_error(&cmd_study, "--rows is for the study 'parallelism'");
    if (config.rows > STUDY_MAX_ROWS)
        return usage_error(&cmd_study, "--rows: at most %d were expected", STUDY_MAX_ROWS);
    if (config.rows == 0 && strcmp(format, "text") == 0)
        config.rows = TEXT_ROWS;
    if (config.grain != 1 && s != &study_sharing)
        return usage_error(&cmd_study, "--grain is for the study 'sharing'");
    if ((machine || settings.count || seeds) && !is_program)
        return usage_error(&cmd_study, "--machine, --set and --seeds are for the study 'intrinsic' of a program");
    if (is_program && seeds == 1)
        return usage_error(&cmd_study, "--seeds: one run cannot be compared; at least 2 were expected");
    if (seeds > MOST_SEEDS)
        return usage_error(&cmd_study, "--seeds: at most %d were expected", MOST_SEEDS);
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

/* Shows the answer, and returns what it means. */
static int show_answer(const struct study *s, const struct study_answer *answer)
{
    struct peet_err err;

    if (output && strcmp(output, "-") != 0) {
        int code = show_in_file(s, answer);
        if (code != EXIT_OK)
            return code;
    } else if (show(s, answer, stdout, &err) < 0) {
        return fail(&err);
    }
    return answer->differs ? EXIT_FOUND : EXIT_OK;
}

static int study(const struct study *s, struct peet_trace **trace, size_t traces)
{
    struct study_answer answer;
    struct progress progress;
    struct peet_err err;
    int missing = EXIT_OK;

    progress_init(&progress, stderr, peet_trace_path(trace[0]), 0, "instructions");
    int r = traces > 1 ? study_compare(s, trace, traces, &config, &answer, &progress, &err)
                       : study_run(s, trace[0], &config, &answer, &progress, &err);
    progress_release(&progress);
    if (r < 0)
        return fail(&err);
    int code = show_answer(s, &answer);
    for (size_t i = 0; i < traces; i++) {
        int of_this = tell_problems(trace[i], i ? 0 : answer.damaged);
        missing = of_this != EXIT_OK ? of_this : missing;
    }
    study_release(&answer);
    return code == EXIT_OK ? missing : code;
}

static int study_traces(const struct study *s, int operands, char **operand)
{
    struct peet_trace **trace = calloc((size_t)operands, sizeof *trace);
    struct peet_err err;
    int n = 0, code = trace ? EXIT_OK : EXIT_FAILED;

    for (; code == EXIT_OK && n < operands; n++)
        if (peet_trace_open(operand[n], &trace[n], &err) < 0) {
            code = fail(&err);
            break;
        }
    if (code == EXIT_OK)
        code = study(s, trace, (size_t)operands);
    for (int i = 0; i < n; i++)
        peet_trace_free(trace[i]);
    free(trace);
    return code;
}

/* A program on a machine, with one seed after the other. */
static int study_program(char **argv)
{
    struct machine_config of;
    struct study_answer answer;
    struct peet_err err;

    if (config_load(&of, machine ? machine : "modern", settings.item, settings.count, &err) < 0)
        return fail(&err);
    of.jitter = of.jitter ? of.jitter : JITTER;
    if (intrinsic_program(argv, &of, seeds ? seeds : SEEDS, &answer, &err) < 0)
        return fail(&err);
    int code = show_answer(&study_intrinsic, &answer);
    study_release(&answer);
    return code;
}

/* A file that can be executed, or a name that is looked for where programs are. */
static bool is_program(const char *name)
{
    struct stat st;
    const char *end = strrchr(name, '.');

    if (stat(name, &st) == 0)
        return S_ISREG(st.st_mode) && access(name, X_OK) == 0;
    return strcmp(name, "-") != 0 && !strchr(name, '/') && !(end && !strcmp(end, ".peet"));
}

static int run(int operands, char **operand)
{
    if (operands == 0)
        return usage_error(&cmd_study,
                           "no study given; graph, parallelism, sharing, allocation or intrinsic was expected");
    const struct study *s = study_find(operand[0]);
    if (!s)
        return unknown_study(operand[0]);
    if (operands < 2)
        return usage_error(&cmd_study, "no trace given");
    if (operands > 2 && !s->compare)
        return usage_error(&cmd_study, "only one trace can be studied at a time");
    bool runs = s == &study_intrinsic && is_program(operand[1]);
    int code = check_options(s, runs);
    if (code == EXIT_OK && runs) {
        operand[operands] = NULL; /* argv has room: it held the verb, at least */
        code = study_program(operand + 1);
    } else if (code == EXIT_OK) {
        code = study_traces(s, operands - 1, operand + 1);
    }
    opt_list_release(&settings);
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
    { .name = "rows",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = &config.rows,
      .help = "parallelism: at most N rows of a table and steps of time (text 32, otherwise 512)" },
    { .name = "grain",
      .type = OPT_NUMBER,
      .arg = "BYTES",
      .value = &config.grain,
      .help = "sharing: how finely memory is looked at, a power of two (1)" },
    { .name = "seeds",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = &seeds,
      .help = "intrinsic: run a program with the seeds 1 to N (4)" },
    { .name = "machine",
      .letter = 'm',
      .type = OPT_STRING,
      .arg = "MACHINE",
      .value = &machine,
      .help = "intrinsic: the machine that a program runs on (modern)" },
    { .name = "set",
      .type = OPT_LIST,
      .arg = "PATH=VALUE",
      .value = &settings,
      .help = "intrinsic: change one of the machine's settings" },
    { 0 },
};

static const char *const examples[] = {
    "peet study parallelism lu.peet",
    "work, span, speed-up bounds, critical path, what barriers and locks cost",
    "peet study graph --collapse lu.peet | dot -Tsvg -o lu.svg",
    "a drawing of what had to come before what",
    "peet study sharing --grain 64 --format json lu.peet",
    "which thread reads what another wrote, by cache lines, for a program",
    "peet study intrinsic first.peet second.peet",
    "whether threads did the same in two recordings; if not, where they part, and what was read unordered before",
    "peet study intrinsic --seeds 8 -- ./mp3d -p 4",
    "whether they do under eight schedules of a machine",
    NULL,
};

const struct command cmd_study = {
    .name = "study",
    .summary = "ask what does not hang on a machine: precedence, parallelism, sharing",
    .operands = "STUDY TRACE… | intrinsic -- PROGRAM [ARGUMENT…]",
    .options = options,
    .examples = examples,
    .format = &format,
    .run = run,
};
