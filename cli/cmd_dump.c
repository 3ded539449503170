/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "format/text/text.h"

enum { PROBLEMS_SHOWN = 20 };

static struct opt_list threads;
static const char *format = "text";
static struct text_options text = { .count = UINT64_MAX };

/* The list of --thread as numbers: 0, or an exit code. */
static int read_threads(uint32_t **ret)
{
    uint32_t *id = mem_alloc(threads.count, sizeof *id);

    for (size_t i = 0; i < threads.count; i++) {
        char *end;
        unsigned long long v = strtoull(threads.item[i], &end, 10);
        if (threads.item[i][0] < '0' || threads.item[i][0] > '9' || *end || v >= UINT32_MAX) {
            free(id);
            return usage_error(&cmd_dump, "'%s' is not the number of a thread", threads.item[i]);
        }
        id[i] = (uint32_t)v;
    }
    *ret = id;
    return 0;
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

static int run(int operands, char **operand)
{
    struct peet_trace *t;
    struct peet_err err;
    uint32_t *id = NULL;
    uint64_t damaged;
    int code;

    if (operands != 1)
        return usage_error(&cmd_dump, operands ? "only one trace can be printed at a time" : "no trace given");
    if (strcmp(format, "text") && (text.compact || text.symbols))
        return usage_error(&cmd_dump, "--compact and --symbols are for --format text");
    if (strcmp(format, "text") && strcmp(format, "json") && strcmp(format, "csv"))
        return usage_error(&cmd_dump, "records are no table: --format text, json or csv was expected");
    if ((code = read_threads(&id)) != 0)
        return code;
    text.thread = id;
    text.threads = threads.count;
    if (peet_trace_open(operand[0], &t, &err) < 0) {
        code = fail(&err);
    } else {
        int r = !strcmp(format, "text") ? text_write(t, &text, stdout, &damaged, &err)
                                        : text_records(t, &text, !strcmp(format, "json"), stdout, &damaged, &err);
        code = r < 0 ? fail(&err) : tell_problems(t, damaged);
        peet_trace_free(t);
    }
    opt_list_release(&threads);
    free(id);
    return code;
}

static const struct opt options[] = {
    { .name = "thread",
      .letter = 't',
      .type = OPT_LIST,
      .arg = "N[,N…]",
      .value = &threads,
      .help = "only these threads" },
    { .name = "calls",
      .type = OPT_FLAG,
      .value = &text.calls,
      .help = "only blocks that end in a call or a return, and events" },
    { .name = "events", .type = OPT_FLAG, .value = &text.events, .help = "only events" },
    { .name = "from",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = &text.from,
      .help = "begin at instruction N of each thread" },
    { .name = "count",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = &text.count,
      .help = "stop after N instructions of each thread" },
    { .name = "compact",
      .type = OPT_FLAG,
      .value = &text.compact,
      .help = "as it was written: loops and registers are not expanded" },
    { .name = "symbols",
      .type = OPT_FLAG,
      .value = &text.symbols,
      .help = "add comments that say where in the program that is" },
    { 0 },
};

static const char *const examples[] = {
    "peet dump --count 1000 fft.peet",
    "the first thousand instructions of each thread",
    "peet dump --events --symbols fft.peet | grep barrier",
    "who waits at which barrier, and where in the program",
    "peet dump --calls --thread 1 fft.peet",
    "the calls and returns of thread 1",
    "peet dump fft.peet | peet import -o copy.peet",
    "to text and back",
    "peet dump --format csv fft.peet | awk -F, '$3 == \"store\"'",
    "the stores, as rows; --format json: an object a line",
    NULL,
};

const struct command cmd_dump = {
    .name = "dump",
    .summary = "print the records of a trace as text",
    .operands = "TRACE",
    .options = options,
    .examples = examples,
    .format = &format,
    .run = run,
};
