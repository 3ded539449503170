/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "cli/subject.h"
#include "study/profile/sampling/advice.h"
#include "study/profile/sampling/estimate_profile.h"
#include "view/view.h"

static const char *machine = "modern", *format, *cpus;
static struct opt_list settings;

enum { LOOK_PART = 100, LOOK_LENGTH = 500000, LOOK_SAMPLES = 10, MOST_PART = 10, LEAST_LENGTH = 100000 };

/* ---- what comes out ---- */

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

static void add_table(struct result *r, const struct advice *here)
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

/* A word as a shell takes it. */
static void put_word(FILE *out, const char *word)
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

/* The command that does so, on the same machine; to be freed. */
static char *make_command(const char *path, uint64_t length)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        return NULL;
    fputs("peet profile -m", out);
    put_word(out, machine);
    for (size_t i = 0; i < settings.count; i++) {
        fputs(" --set", out);
        put_word(out, settings.item[i]);
    }
    if (cpus) {
        fputs(" --cpus", out);
        put_word(out, cpus);
    }
    if (length >= LEAST_LENGTH)
        fprintf(out, " --sample 1/%d --length %" PRIu64 "k", MOST_PART, length / 1000);
    put_word(out, path);
    fclose(out);
    return text;
}

static int show(const char *path, uint64_t references, uint64_t looked_at, double rate)
{
    struct advice a = advice_for(rate, references);
    struct result r = { 0 };
    struct peet_err err;

    result_title(&r, path);
    struct table *t = result_table(&r, "advice", "Advice", ADVICE);
    t->records = true;
    table_text(t, path);
    table_text(t, machine);
    table_count(t, references);
    table_count(t, looked_at);
    table_real(t, rate);
    table_text(t, a.text);
    uint64_t most = references / LOOK_SAMPLES / MOST_PART, length = a.length < most ? a.length : most;
    char *command = make_command(path, length);
    table_text(t, command ? command : "");
    free(command);
    add_table(&r, &a);
    int code = view_show(format, &r, stdout, &err) < 0 ? fail(&err) : EXIT_OK;
    result_release(&r);
    return code;
}

/* ---- what goes in ---- */

/* A hundredth of a long trace, all of a short one. */
static int look(struct peet_trace *t, const struct machine_config *config, uint64_t references, uint64_t *ret_looked_at,
                double *ret_rate, struct peet_err *err)
{
    uint64_t length = references / LOOK_PART / LOOK_SAMPLES;
    struct sample_config sampling = { .length = length < LOOK_LENGTH ? length : LOOK_LENGTH };
    bool is_part = references >= ADVICE_MODERATE_SIZE;
    struct source *source = NULL;
    struct profile *p = NULL;
    struct progress progress;

    sampling.every = sampling.length * LOOK_PART;
    int r = is_part ? sampled_geometry(config, &sampling, err) : 0;
    if (r == 0)
        r = profile_open_trace(t, config, is_part ? &sampling : NULL, &source, &p, err);
    if (r == 0) {
        progress_init(&progress, stderr, peet_trace_path(t), 0, "references");
        r = profile_run(p, &subject_want_end, &progress, err);
        progress_release(&progress);
    }
    if (r == 0) {
        *ret_rate = p->references ? (double)p->misses / (double)p->references : 0;
        *ret_looked_at = is_part ? sampled_counts(p->sampled).windows * sampling.length : p->references;
    }
    profile_free(p);
    source_free(source);
    return r;
}

static int advise(struct peet_trace *t, const char *path)
{
    struct machine_config config;
    struct peet_err err;
    double rate = 0;
    int code = subject_machine(&config, machine, &settings, cpus);

    if (code != EXIT_OK)
        return code;
    if (peet_trace_is_pipe(t))
        return usage_error(&cmd_advise, "a trace is read thread by thread, which a pipe cannot do: give a file");
    config.lock = &lock_ideal; /* only the program's own references count */
    config.barrier = &barrier_ideal;
    uint64_t references = subject_references(t), looked_at = 0;
    subject_expect_end();
    if (look(t, &config, references, &looked_at, &rate, &err) < 0)
        return fail(&err);
    if (subject_want_end)
        return subject_stopped_code(subject_want_end);
    return show(path, references, looked_at, rate);
}

static int run(int operands, char **operand)
{
    struct peet_trace *t;
    struct peet_err err;

    if (operands != 1)
        return usage_error(&cmd_advise, operands ? "only one trace can be looked at at a time" : "no trace given");
    if (peet_trace_open(operand[0], &t, &err) < 0)
        return fail(&err);
    int code = advise(t, operand[0]);
    for (size_t i = 0; peet_trace_problem(t, i); i++) {
        warn("%s", peet_trace_problem(t, i));
        code = code == EXIT_OK ? EXIT_DAMAGED : code;
    }
    peet_trace_free(t);
    opt_list_release(&settings);
    return code;
}

static const struct opt options[] = {
    SUBJECT_MACHINE_OPTIONS(machine, settings),
    { .name = "cpus", .type = OPT_STRING, .arg = "N", .value = &cpus, .help = "the number of processors" },
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
    .examples = examples,
    .format = &format,
    .run = run,
};
