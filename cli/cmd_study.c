/* SPDX-License-Identifier: MIT */
/* peet study: runs a study of the registry. Options are those of all studies; each holds for its own study only. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/progress.h"
#include "cli/cli.h"
#include "cli/subject.h"
#include "study/study.h"
#include "view/view.h"

#define X(name) +1
enum { STUDY_COUNT = STUDIES(X) };
#undef X

struct command_state {
    const char *format;
    const char *output;                     /* NULL or "-": standard output */
    struct study_state *study[STUDY_COUNT]; /* in the order of STUDIES */
};

/* ---- the registry ---- */

static const char *study_name_at(size_t i, const void *context)
{
    (void)context;
    return study_at(i)->name;
}

/* "graph, parallelism or sharing"; to be freed. */
static char *study_names(void)
{
    char *text = mem_string(study_at(0)->name);

    for (size_t i = 1; study_at(i); i++) {
        char *longer = mem_format("%s%s%s", text, study_at(i + 1) ? ", " : " or ", study_at(i)->name);
        free(text);
        text = longer;
    }
    return text;
}

/* Complains that no study, or an unknown one, was given (word is NULL, or its name). */
static int study_unknown(const char *word)
{
    const char *near = word ? opt_nearest(word, STUDY_COUNT, study_name_at, NULL) : NULL;
    char *names = study_names();
    int code = near   ? usage_error(&cmd_study, "unknown study '%s'; did you mean '%s'?", word, near)
               : word ? usage_error(&cmd_study, "unknown study '%s'; %s was expected", word, names)
                      : usage_error(&cmd_study, "no study given; %s was expected", names);

    free(names);
    return code;
}

/* ---- options ---- */

static void study_init(struct command_state *s)
{
    for (size_t i = 0; i < STUDY_COUNT; i++)
        s->study[i] = study_state_new(study_at(i));
}

static size_t study_more_options(struct command_state *s, struct opt *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < STUDY_COUNT; i++)
        n += command_bind(ret ? ret + n : NULL, study_at(i)->options, s->study[i]);
    return n;
}

static void study_free_states(struct command_state *s)
{
    for (size_t i = 0; i < STUDY_COUNT; i++)
        study_state_free(s->study[i]);
}

static size_t study_option_bytes(enum opt_type type)
{
    switch (type) {
    case OPT_FLAG: return sizeof(bool);
    case OPT_NUMBER: return sizeof(uint64_t);
    case OPT_LIST:
    case OPT_EACH: return sizeof(struct opt_list);
    default: return sizeof(const char *);
    }
}

/* Complains about options of other studies: they would have no effect. */
static int study_check_others(const struct command_state *s, const struct study *wanted)
{
    for (size_t i = 0; i < STUDY_COUNT; i++) {
        const struct study *other = study_at(i);
        struct study_state *unset = study_state_new(other);
        const struct opt *o = other == wanted ? NULL : other->options;
        while (o && o->name
               && memcmp((char *)s->study[i] + (uintptr_t)o->value, (char *)unset + (uintptr_t)o->value,
                         study_option_bytes(o->type))
                      == 0)
            o++;
        study_state_free(unset);
        if (o && o->name)
            return usage_error(&cmd_study, "--%s is for the study '%s'", o->name, other->name);
    }
    return EXIT_OK;
}

/* ---- output ---- */

static int study_show(const struct command_state *s, const struct study *study, const struct study_answer *a, FILE *out,
                      struct peet_err *err)
{
    const struct study_format *own = study_format_find(study, s->format);

    if (!own)
        return view_show(s->format, &a->result, out, err);
    own->show(&a->result, out);
    errno = EIO; /* for an earlier error, of which only the flag is left */
    return fflush(out) || ferror(out) ? err_sys(err, errno, "cannot write the result") : 0;
}

static int study_show_in_file(const struct command_state *s, const struct study *study, const struct study_answer *a)
{
    struct peet_err err;
    FILE *out = fopen(s->output, "w");

    if (!out) {
        err_sys(&err, errno, "%s", s->output);
        return fail(&err);
    }
    int r = study_show(s, study, a, out, &err);
    if (fclose(out) && r == 0)
        r = err_sys(&err, errno, "%s: cannot write the result", s->output);
    return r < 0 ? fail(&err) : EXIT_OK;
}

/* Shows the answer. Returns the exit code: EXIT_FOUND if runs differ. */
static int study_show_answer(const struct command_state *s, const struct study *study, const struct study_answer *a)
{
    struct peet_err err;

    if (s->output && strcmp(s->output, "-") != 0) {
        int code = study_show_in_file(s, study, a);
        if (code != EXIT_OK)
            return code;
    } else if (study_show(s, study, a, stdout, &err) < 0) {
        return fail(&err);
    }
    return a->differs ? EXIT_FOUND : EXIT_OK;
}

/* ---- subjects ---- */

static int study_open_traces(const struct command_state *s, const struct study *study, struct study_state *state,
                             struct peet_trace **trace, size_t traces)
{
    struct study_answer answer;
    struct progress progress;
    struct peet_err err;
    int damage = EXIT_OK;

    progress_init(&progress, stderr, peet_trace_path(trace[0]), 0, "instructions");
    int r = traces > 1 ? study_compare(study, state, trace, traces, &answer, &progress, &err)
                       : study_run(study, state, trace[0], &answer, &progress, &err);
    progress_release(&progress);
    if (r < 0)
        return fail(&err);
    int code = study_show_answer(s, study, &answer);
    for (size_t i = 0; i < traces; i++) {
        int of_this = subject_warn_problems(trace[i], i ? 0 : answer.damaged);
        damage = of_this != EXIT_OK ? of_this : damage;
    }
    study_release(&answer);
    return code == EXIT_OK ? damage : code;
}

static int study_traces(const struct command_state *s, const struct study *study, struct study_state *state,
                        int operands, char **operand)
{
    struct peet_trace **trace = mem_alloc((size_t)operands, sizeof(struct peet_trace *));
    struct peet_err err;
    int n = 0, code = EXIT_OK;

    while (code == EXIT_OK && n < operands)
        if (peet_trace_open(operand[n], &trace[n], &err) < 0)
            code = fail(&err);
        else
            n++;
    if (code == EXIT_OK)
        code = study_open_traces(s, study, state, trace, (size_t)operands);
    for (int i = 0; i < n; i++)
        peet_trace_free(trace[i]);
    free(trace);
    return code;
}

static int study_run_program(const struct command_state *s, const struct study *study, struct study_state *state,
                             char **argv)
{
    struct study_answer answer;
    struct peet_err err;

    if (study_program(study, state, argv, &answer, &err) < 0)
        return fail(&err);
    int code = study_show_answer(s, study, &answer);
    study_release(&answer);
    return code;
}

/* Whether a name is that of a program: an executable file, or one that is looked up in PATH. */
static bool study_is_program(const char *name)
{
    struct stat st;

    if (stat(name, &st) == 0)
        return S_ISREG(st.st_mode) && access(name, X_OK) == 0;
    return strcmp(name, "-") != 0 && !strchr(name, '/') && !subject_is_trace(name);
}

static int study_main(struct command_state *s, int operands, char **operand)
{
    const struct study *study = operands ? study_find(operand[0]) : NULL;
    struct peet_err err;
    size_t i = 0;

    if (!study)
        return study_unknown(operands ? operand[0] : NULL);
    if (operands < 2)
        return usage_error(&cmd_study, "no trace given");
    if (operands > 2 && !study->compare)
        return usage_error(&cmd_study, "only one trace can be studied at a time");
    while (study_at(i) != study)
        i++;
    struct study_use use = { .is_text = !strcmp(s->format, "text"),
                             .is_program = study->program && study_is_program(operand[1]) };
    int code = study_check_others(s, study);
    if (code != EXIT_OK)
        return code;
    if (!view_find(s->format) && !study_format_find(study, s->format))
        return usage_error(&cmd_study, "the study '%s' has no format '%s'", study->name, s->format);
    if (study_check(study, s->study[i], &use, &err) < 0)
        return usage_error(&cmd_study, "%s", err.text);
    if (!use.is_program)
        return study_traces(s, study, s->study[i], operands - 1, operand + 1);
    operand[operands] = NULL; /* argv has room: it held the verb, at least */
    return study_run_program(s, study, s->study[i], operand + 1);
}

static const char *const study_formats[] = {
#define X(name) #name,
    VIEWS(X) STUDY_FORMATS(X)
#undef X
        NULL,
};

static const struct opt options[] = {
    { .name = "output",
      .letter = 'o',
      .type = OPT_STRING,
      .arg = "FILE",
      .value = OPTION(output),
      .help = "write the result to FILE" },
    { .name = "format",
      .type = OPT_CHOICE,
      .value = OPTION(format),
      .help = "how to print (text); pnml: graph only",
      .choices = study_formats },
    { 0 },
};

static const char *const examples[] = {
    "peet study parallelism lu.peet",
    "work, span, speed-up bounds, critical path, what barriers and locks cost",
    "peet study graph --collapse lu.peet | dot -Tsvg -o lu.svg",
    "a drawing of what had to come before what",
    "peet study graph --format pnml -o lu.pnml lu.peet",
    "a Petri net whose tokens are the program's load, for tools that read PNML",
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
    .summary = "ask what does not depend on a machine: precedence, parallelism, sharing",
    .operands = "STUDY TRACE… | intrinsic -- PROGRAM [ARGUMENT…]",
    .options = options,
    .state_size = sizeof(struct command_state),
    .defaults = &(const struct command_state){ .format = "text" },
    .examples = examples,
    .init = study_init,
    .more = study_more_options,
    .release = study_free_states,
    .run = study_main,
};
