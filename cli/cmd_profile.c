/* SPDX-License-Identifier: MIT */
/* peet profile: options, the choice of a way to profile (profile_job.h), and what is printed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/profile_job.h"
#include "cli/subject.h"
#include "study/profile/export/export.h"
#include "view/view.h"

enum { ROWS_OF_PAGE = 100 };

struct command_state {
    struct profile_job job;
    const char *format, *color;
    const char *output;            /* NULL or "-": standard output */
    const char *callgrind;         /* file to write as well; NULL: none */
    const char *stacks;            /* file to write as well; NULL: none */
    const char *trace_path;        /* file of the recording; NULL: it is not kept */
    const char *allow;             /* percent by which a comparison may be worse; NULL: 1 */
    struct run_study_state *study; /* options of the report */
    struct view_style style;
    FILE *out; /* where the report goes if `output` is NULL */
};

/* ---- output ---- */

static int profile_save(const char *path, int (*write)(const struct profile *p, FILE *out), const struct profile *p)
{
    FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");

    if (!out || write(p, out) < 0 || (out != stdout && fclose(out) != 0)) {
        complain("%s: cannot be written", path);
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

static bool profile_has_file(const struct command_state *s)
{
    return s->output && strcmp(s->output, "-") != 0;
}

static void profile_choose_style(struct command_state *s)
{
    if (profile_has_file(s))
        return;
    s->style = view_style_of(stdout);
    if (!strcmp(s->color, "never"))
        s->style.colour = s->style.bars = false;
    else if (!strcmp(s->color, "always"))
        s->style.colour = s->style.bars = true;
}

/* A style as a number, for the program's process: it has neither the terminal nor the environment of this command. */
static size_t profile_style_number(const struct view_style *style)
{
    return (size_t)style->width << 2 | (size_t)style->bars << 1 | style->colour;
}

static struct view_style profile_style_of_number(size_t number)
{
    return (struct view_style){ .colour = number & 1, .bars = number >> 1 & 1, .width = (int)(number >> 2) };
}

static int profile_show(const struct command_state *s, const struct result *r)
{
    struct peet_err err;
    int code = profile_has_file(s) ? view_save(s->format, r, s->output, &err)
                                   : view_show_in(s->format, r, &s->style, s->out, &err);

    return code < 0 ? fail(&err) : EXIT_OK;
}

static bool profile_is_page(const struct command_state *s)
{
    return !strcmp(s->format, "html");
}

static int profile_show_report(const struct command_state *s, const struct profile_subject *subject, const char *title)
{
    const struct profile *p = profile_subject_profile(subject);
    struct result result = { 0 };

    result_title(&result, title);
    run_study_profile.report(subject->study, &result);
    int code = profile_show(s, &result);
    if (code == EXIT_OK && s->callgrind)
        code = profile_save(s->callgrind, profile_callgrind, p);
    if (code == EXIT_OK && s->stacks)
        code = profile_save(s->stacks, profile_stacks, p);
    result_release(&result);
    return code;
}

/* ---- traces ---- */

static int profile_trace(const struct command_state *s, const char *path, const char *title)
{
    struct profile_subject subject = { 0 };
    int code = profile_job_trace(&s->job, path, title, &subject);

    if (code == EXIT_OK)
        code = profile_show_report(s, &subject, title);
    return profile_subject_close(&subject, code);
}

static int profile_compare(const struct command_state *s, char **path)
{
    struct profile_subject before = { 0 }, after = { 0 };
    struct result result = { 0 };
    int code = profile_job_trace(&s->job, path[0], path[0], &before);

    if (code == EXIT_OK)
        code = profile_job_trace(&s->job, path[1], path[1], &after);
    if (code == EXIT_OK) {
        const struct profile *a = profile_subject_profile(&before), *b = profile_subject_profile(&after);
        char *title = mem_format("%s → %s", path[0], path[1]);
        result_title(&result, title);
        free(title);
        bool is_worse = profile_diff(a, b, profile_study_wants(s->study), &result);
        code = profile_show(s, &result);
        if (code == EXIT_OK && is_worse && !a->result.is_interrupted && !b->result.is_interrupted)
            code = EXIT_FOUND;
        result_release(&result);
    }
    code = profile_subject_close(&after, code);
    return profile_subject_close(&before, code);
}

/* ---- programs ---- */

/* A path that is valid after the program has changed its folder. */
static const char *profile_fixed_path(const char *path)
{
    char *folder = path && path[0] != '/' && strcmp(path, "-") != 0 ? getcwd(NULL, 0) : NULL;

    return folder ? mem_format("%s/%s", folder, path) : path;
}

/* In the program's process: the answer is the text of the report. */
static int profile_program_here(struct command_state *s, const struct in_process_verb *here, char **program)
{
    struct profile_subject subject = { 0 };
    struct peet_err err;
    char *text = NULL;
    size_t bytes = 0;

    s->callgrind = profile_fixed_path(s->callgrind);
    s->stacks = profile_fixed_path(s->stacks);
    s->style = profile_style_of_number(here->run);
    s->output = NULL; /* the user's command writes it */
    int code = profile_job_program(&s->job, here, program[0], &subject);
    s->out = code == EXIT_OK ? open_memstream(&text, &bytes) : NULL;
    if (s->out) {
        code = profile_show_report(s, &subject, program[0]);
        fclose(s->out);
        profile_subject_warn(&subject);
    }
    bool is_interrupted = code == EXIT_OK && profile_subject_profile(&subject)->result.is_interrupted;
    if (in_process_verb_answer_bytes(code == EXIT_OK ? -1 : code, text, bytes, &err) < 0)
        code = fail(&err);
    else if (is_interrupted)
        code = subject_stopped_code(*here->host->want_end);
    free(text);
    run_study_state_free(&run_study_profile, subject.study);
    source_free(subject.source);
    return code;
}

/* Writes the rest of the answer to where the report goes. */
static int profile_copy_answer(const struct command_state *s, FILE *answer)
{
    FILE *out = profile_has_file(s) ? fopen(s->output, "w") : stdout;
    char bytes[1 << 14];
    bool ok = out != NULL;

    for (size_t n; ok && (n = fread(bytes, 1, sizeof bytes, answer)) > 0;)
        ok = fwrite(bytes, 1, n, out) == n;
    if (out && (out == stdout ? fflush(out) : fclose(out)) != 0)
        ok = false;
    if (ok)
        return EXIT_OK;
    complain("%s: cannot be written", s->output ? s->output : "the report");
    return EXIT_FAILED;
}

/* The exit code of a program that was profiled: its own, with a warning unless it is 0. */
static int profile_program_code(const char *program, int status)
{
    int code = subject_exit_code(status);

    if (code)
        warn("%s ended with status %d: this is the profile of what it did", program, code);
    return code;
}

static int profile_program_in_process(const struct command_state *s, char **program)
{
    struct machine_config machine;
    struct peet_err err;
    FILE *answer;
    int inner, status, code = profile_job_check(&s->job, &machine);

    if (code != EXIT_OK)
        return code;
    if (in_process_verb_ask(program, profile_job_ahead(&s->job, &machine), profile_style_number(&s->style), &answer,
                            &inner, &status, &err)
        < 0)
        return fail(&err);
    code = inner < 0 ? profile_copy_answer(s, answer) : inner;
    fclose(answer);
    return inner < 0 && code == EXIT_OK ? profile_program_code(program[0], status) : code;
}

/* Records the program to a file, which is kept if --trace names it, and profiles the recording. */
static int profile_program_recorded(struct command_state *s, char **program)
{
    struct machine_config machine;
    struct peet_err err;
    int status = 0, code = profile_job_check(&s->job, &machine);
    char *path = code != EXIT_OK ? NULL : s->trace_path ? mem_string(s->trace_path) : profile_job_new_file(&err);

    if (code != EXIT_OK || !path)
        return code != EXIT_OK ? code : fail(&err);
    code = profile_job_record(program, path, &status);
    s->job.is_cut = subject_was_stopped(status);
    if (code == EXIT_OK) {
        int own = profile_program_code(program[0], status);
        code = profile_trace(s, path, program[0]);
        if (own && (code == EXIT_OK || s->job.is_cut))
            code = own;
    }
    if (!s->trace_path)
        unlink(path);
    free(path);
    return code;
}

static int profile_program(struct command_state *s, char **program)
{
    if (in_process_verb())
        return profile_program_here(s, in_process_verb(), program);
    if (!s->trace_path && in_process_verb_is_possible())
        return profile_program_in_process(s, program);
    return profile_program_recorded(s, program);
}

/* ---- options ---- */

/* Options that would have no effect, and files that cannot be written. */
static int profile_check_options(const struct command_state *s, bool is_diff)
{
    const struct profile_sampling *sampling = &s->job.sampling;
    const char *const written[] = { s->output, s->callgrind, s->stacks, s->trace_path };
    struct peet_err err;

    if (sampling->is_steady && !profile_job_is_automatic(&s->job))
        return usage_error(&cmd_profile, "--steady goes with --sample auto");
    if (!sampling->part && (sampling->is_random || sampling->length != PROFILE_WINDOW))
        return usage_error(&cmd_profile, "--%s goes with --sample", sampling->is_random ? "random" : "length");
    if (is_diff && (s->callgrind || s->stacks || s->trace_path))
        return usage_error(&cmd_profile, "--%s is not for diff",
                           s->callgrind ? "callgrind"
                           : s->stacks  ? "stacks"
                                        : "trace");
    if (run_study_profile.check(s->study, &err) < 0)
        return usage_error(&cmd_profile, "%s", err.text);
    for (size_t i = 0; i < sizeof written / sizeof *written && !in_process_verb(); i++)
        if (written[i] && subject_check_output(written[i]) != EXIT_OK)
            return EXIT_FAILED;
    return EXIT_OK;
}

/* Sets rows, source lines and the allowed change of the report. */
static int profile_read_wants(const struct command_state *s, bool is_diff)
{
    struct profile_wants *wants = profile_study_wants(s->study);
    char *end;
    double percent = s->allow ? strtod(s->allow, &end) : 1;

    if (s->allow && !is_diff)
        return usage_error(&cmd_profile, "--allow goes with diff");
    if (s->allow && (end == s->allow || *end || !(percent >= 0 && percent <= 1e6)))
        return usage_error(&cmd_profile, "--allow %s: percent were expected, as 0.5", s->allow);
    wants->allow = percent / 100;
    wants->source |= profile_is_page(s);
    if (wants->top == PROFILE_TOP_UNSET)
        wants->top = profile_is_page(s) ? ROWS_OF_PAGE : PROFILE_TOP;
    return EXIT_OK;
}

/* Operands are one trace, "diff" and two traces, or a program. */
static int profile_check_operands(const struct command_state *s, int operands, char **operand, bool is_diff)
{
    if (operands == 0)
        return usage_error(&cmd_profile, "no trace and no program given");
    if (is_diff && operands != 3)
        return usage_error(&cmd_profile, "diff takes two traces (a program of that name is ./diff)");
    if (operands > 1 && subject_is_trace(operand[0]))
        return usage_error(&cmd_profile, "one trace was expected; 'peet profile diff' compares two");
    if (s->trace_path && (is_diff || subject_is_trace(operand[0])))
        return usage_error(&cmd_profile, "--trace is for programs that run");
    return EXIT_OK;
}

static int profile_main(struct command_state *s, int operands, char **operand)
{
    bool is_diff = operands > 0 && !strcmp(operand[0], "diff");
    int code = profile_check_operands(s, operands, operand, is_diff);

    if (code != EXIT_OK || (code = profile_check_options(s, is_diff)) != EXIT_OK
        || (code = profile_read_wants(s, is_diff)) != EXIT_OK)
        return code;
    s->job.study = s->study;
    s->out = stdout;
    profile_choose_style(s);
    if (is_diff)
        return profile_compare(s, operand + 1);
    if (!subject_is_program(operands, operand[0]))
        return profile_trace(s, operand[0], operand[0]);
    operand[operands] = NULL; /* argv has room: it held the verb, at least */
    return profile_program(s, operand);
}

static void profile_init(struct command_state *s)
{
    s->study = run_study_state_new(&run_study_profile, NULL);
}

static size_t profile_more_options(struct command_state *s, struct opt *ret)
{
    return command_bind(ret, run_study_profile.options, s->study);
}

static void profile_release(struct command_state *s)
{
    run_study_state_free(&run_study_profile, s->study);
}

static const char *const COLORS[] = { "auto", "always", "never", NULL };

static const struct opt options[] = {
    SUBJECT_MACHINE_OPTIONS(job.machine, job.settings),
    { .name = "cpus", .type = OPT_STRING, .arg = "N", .value = OPTION(job.cpus), .help = "the number of processors" },
    { .name = "sample",
      .type = OPT_STRING,
      .arg = "1/N|auto",
      .value = OPTION(job.sampling.part),
      .help = "observe one in N references, in windows, and estimate the rest; auto: as many as needed" },
    { .name = "steady",
      .type = OPT_FLAG,
      .value = OPTION(job.sampling.is_steady),
      .help = "with --sample auto: the program does the same all the time" },
    { .name = "length",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(job.sampling.length),
      .help = "references in a window (500000)" },
    { .name = "random",
      .type = OPT_FLAG,
      .value = OPTION(job.sampling.is_random),
      .help = "windows at random places, for programs that repeat themselves" },
    { .name = "sets",
      .type = OPT_STRING,
      .arg = "1/N",
      .value = OPTION(job.sampling.sets),
      .help = "observe one in N sets of the last private cache" },
    { .name = "seed",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(job.sampling.seed),
      .help = "for --random and --sets (1)" },
    { .name = "callgrind",
      .type = OPT_STRING,
      .arg = "FILE",
      .value = OPTION(callgrind),
      .help = "also write what callgrind_annotate and KCachegrind read" },
    { .name = "stacks",
      .type = OPT_STRING,
      .arg = "FILE",
      .value = OPTION(stacks),
      .help = "also write call paths with their cycles, a line each, for flame graphs" },
    { .name = "trace",
      .type = OPT_STRING,
      .arg = "FILE",
      .value = OPTION(trace_path),
      .help = "keep the recording of the program there" },
    { .name = "allow",
      .type = OPT_STRING,
      .arg = "PERCENT",
      .value = OPTION(allow),
      .help = "with diff: a smaller change is none; status 1 if memory stall grows by more (1)" },
    { .name = "color",
      .type = OPT_CHOICE,
      .value = OPTION(color),
      .choices = COLORS,
      .help = "colours and bars in text: on a terminal (auto), in a pipe, too, or never" },
    { .name = "output",
      .letter = 'o',
      .type = OPT_STRING,
      .arg = "FILE",
      .value = OPTION(output),
      .help = "write the report to FILE" },
    FORMAT_OPTION,
    { 0 },
};

static const char *const examples[] = {
    "peet profile -- ./fft -m 16 -p 4",
    "run a program built with peet cc: which data, which code, and why it waits for memory",
    "peet profile -m memspy-128k fft.peet",
    "the same of a recording, with another cache",
    "peet profile --focus grid ocean.peet",
    "all about one data object, or one function",
    "peet profile --sample 1/10 --random fft.peet",
    "from a tenth of the references, with what is unknown and how far off it may be",
    "peet profile diff before.peet after.peet",
    "what got better or worse between two recordings, by data and function",
    "peet profile --allow 5 diff before.peet after.peet || echo slower",
    "a check for CI: status 1 if memory waits over 5 % longer than before",
    "peet profile --format html -o fft.html fft.peet",
    "a page with plots, for a browser",
    "peet profile --callgrind callgrind.out.fft fft.peet && callgrind_annotate callgrind.out.fft",
    "line by line, by another tool",
    NULL,
};

const struct command cmd_profile = {
    .name = "profile",
    .summary = "show which data and which code wait for memory, and why",
    .operands = "[OPTION…] TRACE | diff TRACE.peet TRACE.peet | -- PROGRAM [ARGUMENT…]",
    .options = options,
    .state_size = sizeof(struct command_state),
    .defaults = &(const struct command_state){ .job = { .machine = "modern",
                                                        .sampling = { .length = PROFILE_WINDOW, .seed = 1 } },
                                               .format = "text",
                                               .color = "auto" },
    .examples = examples,
    .init = profile_init,
    .more = profile_more_options,
    .release = profile_release,
    .run = profile_main,
};
