/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "cli/subject.h"
#include "study/profile/sampling/advice.h"
#include "study/profile/profiler.h"
#include "study/profile/sampling/estimate_profile.h"
#include "view/view.h"

struct command_state {
    const char *machine, *format;
    const char *cpus; /* NULL: as the machine says */
    struct opt_list settings;
};

enum {
    TRIAL_ONE_IN = 100,    /* part of a long trace that is observed before advice is given */
    TRIAL_LENGTH = 500000, /* references of a window of that part, at most */
    TRIAL_WINDOWS = 10,    /* windows of that part, at least */
    ADVISED_ONE_IN = 10,   /* references that the advised command samples */
    LEAST_LENGTH = 100000, /* references of a window, for samples to be advised */
};

/* ---- output ---- */

static const struct column ADVICE[] = { { "trace", "trace", CELL_TEXT, false },
                                        { "machine", "machine", CELL_TEXT, false },
                                        { "references", "references", CELL_COUNT, false },
                                        { "looked_at", "looked at", CELL_COUNT, false },
                                        { "miss_rate", "miss rate", CELL_PERCENT, false },
                                        { "advice", "advice", CELL_TEXT, false },
                                        { "command", "command", CELL_TEXT, false },
                                        { 0 } };

static const struct column TABLE[] = { { "miss_rate", "Miss rate", CELL_TEXT, false },
                                       { "few", "Few references", CELL_TEXT, false },
                                       { "moderate", "Moderate", CELL_TEXT, false },
                                       { "many", "Many", CELL_TEXT, false },
                                       { 0 } };

static void advise_add_table(struct result *r, const struct advice *here)
{
    struct table *t = result_table(r, "table", "By miss rate and length", TABLE);
    char text[128];

    for (unsigned i = 0; i < ADVICE_RATES; i++) {
        table_text(t, advice_rate_name((enum advice_rate)i));
        for (unsigned k = 0; k < ADVICE_SIZES; k++) {
            bool is_here = here && here->rate == i && here->size == k;
            snprintf(text, sizeof text, "%s%s", advice_at((enum advice_rate)i, (enum advice_size)k).text,
                     is_here ? " (here)" : "");
            table_text(t, text);
        }
    }
    table_note(
        t,
        "after Table 7 of Martonosi, Gupta and Anderson (1993); low: a miss rate below %.1f %%, high: %.0f %% and more; few: below %" PRIu64
        " million references, many: %" PRIu64 " million and more",
        100 * ADVICE_MEDIUM_RATE, 100 * ADVICE_HIGH_RATE, ADVICE_MODERATE_SIZE / 1000000, ADVICE_MANY_SIZE / 1000000);
}

/* Writes a word, quoted for a shell. */
static void advise_put_word(FILE *out, const char *word)
{
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:=+@%-";

    if (*word && word[strspn(word, plain)] == 0) {
        fprintf(out, " %s", word);
        return;
    }
    fputs(" '", out);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){ *word, 0 }, out);
    fputc('\'', out);
}

/* The command line of the advised profile; to be freed. length: references of a window; too few: no samples. */
static char *advise_command(const struct command_state *s, const char *path, uint64_t length)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        return NULL;
    fputs("peet profile -m", out);
    advise_put_word(out, s->machine);
    for (size_t i = 0; i < s->settings.count; i++) {
        fputs(" --set", out);
        advise_put_word(out, s->settings.item[i]);
    }
    if (s->cpus) {
        fputs(" --cpus", out);
        advise_put_word(out, s->cpus);
    }
    if (length >= LEAST_LENGTH)
        fprintf(out, " --sample 1/%d --length %" PRIu64 "k", ADVISED_ONE_IN, length / 1000);
    advise_put_word(out, path);
    fclose(out);
    return text;
}

/* caveat: what the trace lacks; NULL: nothing */
static int advise_show(const struct command_state *s, const char *path, uint64_t references, uint64_t looked_at,
                       double rate, const char *caveat)
{
    struct advice a = advice_for(rate, references);
    struct result r = { 0 };
    struct peet_err err;

    result_title(&r, path);
    struct table *t = result_table(&r, "advice", "Advice", ADVICE);
    t->records = true;
    table_text(t, path);
    table_text(t, s->machine);
    table_count(t, references);
    table_count(t, looked_at);
    table_real(t, rate);
    table_text(t, references ? a.text : "none: no reference was recorded");
    uint64_t most = references / TRIAL_WINDOWS / ADVISED_ONE_IN, length = a.length < most ? a.length : most;
    char *command = references ? advise_command(s, path, length) : NULL;
    table_text(t, command);
    free(command);
    if (caveat)
        table_note(t, "%s", caveat);
    advise_add_table(&r, references ? &a : NULL);
    int code = view_show(s->format, &r, stdout, &err) < 0 ? fail(&err) : EXIT_OK;
    result_release(&r);
    return code;
}

/* ---- the trial ---- */

/* Profiles a hundredth of a long trace, or all of a short one; *ret_looked_at: references that it observed. */
static int advise_try(struct peet_trace *t, const struct machine_config *config, uint64_t references,
                      uint64_t *ret_looked_at, double *ret_rate, struct peet_err *err)
{
    uint64_t length = references / TRIAL_ONE_IN / TRIAL_WINDOWS;
    struct sample_config sampling = { .length = length < TRIAL_LENGTH ? length : TRIAL_LENGTH };
    bool is_part = references >= ADVICE_MODERATE_SIZE;
    struct source *source = NULL;
    struct profiler *x = NULL;
    struct progress progress;

    sampling.every = sampling.length * TRIAL_ONE_IN;
    int r = is_part ? sampled_geometry(config, &sampling, err) : 0;
    if (r == 0)
        r = profiler_open_trace(t, config, is_part ? &sampling : NULL, &source, &x, err);
    if (r == 0) {
        progress_init(&progress, stderr, peet_trace_path(t), 0, "references");
        r = profiler_run(x, &subject_want_end, &progress, err);
        progress_release(&progress);
    }
    if (r == 0) {
        const struct profile *p = profiler_profile(x);
        *ret_rate = p->references ? (double)p->misses / (double)p->references : 0;
        *ret_looked_at = is_part ? sampled_counts(p->sampled).windows * sampling.length : p->references;
    }
    profiler_free(x);
    source_free(source);
    return r;
}

static int advise_for_trace(const struct command_state *s, struct peet_trace *t, const char *path)
{
    struct machine_config config;
    struct peet_err err;
    double rate = 0;
    int code = subject_machine(&config, s->machine, &s->settings, s->cpus);

    if (code != EXIT_OK)
        return code;
    if (peet_trace_is_pipe(t))
        return usage_error(&cmd_advise, "a trace is read thread by thread, which a pipe cannot do: give a file");
    config.lock = &lock_ideal; /* only the program's references count, not those of locks */
    config.barrier = &barrier_ideal;
    uint64_t references = subject_references(t), looked_at = 0;
    subject_expect_end();
    if (advise_try(t, &config, references, &looked_at, &rate, &err) < 0)
        return fail(&err);
    if (subject_want_end)
        return subject_stopped_code(subject_want_end);
    return advise_show(s, path, references, looked_at, rate, peet_trace_lacks_order(t));
}

static int advise_main(struct command_state *s, int operands, char **operand)
{
    struct peet_trace *t;
    struct peet_err err;

    if (operands != 1)
        return usage_error(&cmd_advise, operands ? "only one trace can be looked at at a time" : "no trace given");
    if (peet_trace_open(operand[0], &t, &err) < 0)
        return fail(&err);
    int code = advise_for_trace(s, t, operand[0]);
    for (size_t i = 0; peet_trace_problem(t, i); i++) {
        warn("%s", peet_trace_problem(t, i));
        code = code == EXIT_OK ? EXIT_DAMAGED : code;
    }
    peet_trace_free(t);
    return code;
}

static const struct opt options[] = {
    SUBJECT_MACHINE_OPTIONS(machine, settings),
    { .name = "cpus", .type = OPT_STRING, .arg = "N", .value = OPTION(cpus), .help = "the number of processors" },
    FORMAT_OPTION,
    { 0 },
};

static const char *const examples[] = {
    "peet advise fft.peet",
    "whether a profile from samples would do, and how to take it",
    "peet advise -m memspy-128k --format json fft.peet",
    "the same for a small cache, for a program",
    NULL,
};

const struct command cmd_advise = {
    .name = "advise",
    .summary = "say whether a profile from samples would do",
    .operands = "TRACE",
    .options = options,
    .state_size = sizeof(struct command_state),
    .defaults = &(const struct command_state){ .machine = "modern", .format = "text" },
    .examples = examples,
    .run = advise_main,
};
