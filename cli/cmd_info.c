/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include <string.h>

#include "base/progress.h"
#include "peet/trace.h"
#include "study/info.h"
#include "view/view.h"

enum { PROBLEMS_SHOWN = 20 };

struct command_state {
    bool counts, events;
    const char *format;
};

static int info_add_file(struct info *info, const char *path)
{
    struct peet_trace *trace;
    struct progress progress;
    struct peet_err err;

    if (peet_trace_open(path, &trace, &err) < 0)
        return fail(&err);
    progress_init(&progress, stderr, path, 0, "instructions");
    int r = info_add(info, trace, &progress, &err);
    progress_release(&progress);
    peet_trace_free(trace);
    return r < 0 ? fail(&err) : EXIT_OK;
}

static int info_main(struct command_state *s, int operands, char **operand)
{
    struct info info;
    struct peet_err err;
    int code = EXIT_OK, pipes = 0;

    for (int i = 0; i < operands; i++)
        pipes += !strcmp(operand[i], "-");
    if (!operands)
        return usage_error(&cmd_info, "no trace given");
    if (pipes > 1)
        return usage_error(&cmd_info, "standard input can be read only once");

    info_init(&info, &(struct info_config){ .counts = s->counts, .events = s->events });
    for (int i = 0; i < operands; i++) {
        int r = info_add_file(&info, operand[i]);
        code = r && code != EXIT_FAILED ? r : code;
    }
    if (info.summary->rows && view_show(s->format, &info.result, stdout, &err) < 0)
        code = fail(&err);
    for (size_t i = 0; i < info.problems && i < PROBLEMS_SHOWN; i++)
        warn("%s", info.problem[i]);
    if (info.problems > PROBLEMS_SHOWN)
        warn("and %zu more", info.problems - PROBLEMS_SHOWN);
    if (info.problems && code == EXIT_OK)
        code = EXIT_DAMAGED;
    info_release(&info);
    return code;
}

static const struct opt options[] = {
    { .name = "counts",
      .type = OPT_FLAG,
      .value = OPTION(counts),
      .help = "decode everything: split references into loads, stores, updates and prefetches" },
    { .name = "events",
      .type = OPT_FLAG,
      .value = OPTION(events),
      .help = "decode everything: count the events by kind" },
    FORMAT_OPTION,
    { 0 },
};

static const char *const examples[] = {
    "peet info fft.peet",
    "threads, instructions, references, events, programs and modules of a trace",
    "peet info --counts --format json fft.peet lu.peet",
    "the same of two traces with loads and stores apart, for a program",
    "zcat fft.peet.gz | peet info -",
    "of a trace that comes through a pipe",
    NULL,
};

const struct command cmd_info = {
    .name = "info",
    .summary = "tell what a trace holds",
    .operands = "TRACE…",
    .options = options,
    .state_size = sizeof(struct command_state),
    .defaults = &(const struct command_state){ .format = "text" },
    .examples = examples,
    .run = info_main,
};
