/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/subject.h"
#include "format/text/text.h"

struct command_state {
    struct opt_list threads; /* empty: all */
    const char *format;
    struct text_options text;
};

/* Reads the list of --thread as numbers. Returns an exit code. */
static int dump_read_threads(const struct opt_list *threads, uint32_t **ret)
{
    uint32_t *id = mem_alloc(threads->count, sizeof *id);

    for (size_t i = 0; i < threads->count; i++) {
        char *end;
        unsigned long long v = strtoull(threads->item[i], &end, 10);
        if (threads->item[i][0] < '0' || threads->item[i][0] > '9' || *end || v >= UINT32_MAX) {
            free(id);
            return usage_error(&cmd_dump, "'%s' is not the number of a thread", threads->item[i]);
        }
        id[i] = (uint32_t)v;
    }
    *ret = id;
    return EXIT_OK;
}

static int dump_main(struct command_state *s, int operands, char **operand)
{
    struct peet_trace *t;
    struct peet_err err;
    uint32_t *id = NULL;
    uint64_t damaged;
    int code;

    if (operands != 1)
        return usage_error(&cmd_dump, operands ? "only one trace can be printed at a time" : "no trace given");
    if (strcmp(s->format, "text") && (s->text.compact || s->text.symbols))
        return usage_error(&cmd_dump, "--compact and --symbols are for --format text");
    if (strcmp(s->format, "text") && strcmp(s->format, "json") && strcmp(s->format, "csv"))
        return usage_error(&cmd_dump, "records are no table: --format text, json or csv was expected");
    if ((code = dump_read_threads(&s->threads, &id)) != EXIT_OK)
        return code;
    s->text.thread = id;
    s->text.threads = s->threads.count;
    if (peet_trace_open(operand[0], &t, &err) < 0) {
        code = fail(&err);
    } else {
        int r = !strcmp(s->format, "text")
                    ? text_write(t, &s->text, stdout, &damaged, &err)
                    : text_records(t, &s->text, !strcmp(s->format, "json"), stdout, &damaged, &err);
        code = r < 0 ? fail(&err) : subject_warn_problems(t, damaged);
        peet_trace_free(t);
    }
    free(id);
    return code;
}

static const struct opt options[] = {
    { .name = "thread",
      .letter = 't',
      .type = OPT_LIST,
      .arg = "N[,N…]",
      .value = OPTION(threads),
      .help = "only these threads" },
    { .name = "calls",
      .type = OPT_FLAG,
      .value = OPTION(text.calls),
      .help = "only blocks that end in a call or a return, and events" },
    { .name = "events", .type = OPT_FLAG, .value = OPTION(text.events), .help = "only events" },
    { .name = "from",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(text.from),
      .help = "begin at instruction N of each thread" },
    { .name = "count",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(text.count),
      .help = "stop after N instructions of each thread" },
    { .name = "compact",
      .type = OPT_FLAG,
      .value = OPTION(text.compact),
      .help = "as it was written: loops and registers are not expanded" },
    { .name = "symbols",
      .type = OPT_FLAG,
      .value = OPTION(text.symbols),
      .help = "add comments that say where in the program that is" },
    FORMAT_OPTION,
    { 0 },
};

static const char *const examples[] = {
    "peet dump --count 1000 fft.peet",
    "the first thousand instructions of each thread",
    "peet dump --events --symbols fft.peet | grep barrier",
    "threads that wait at barriers, and where in the program",
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
    .state_size = sizeof(struct command_state),
    .defaults = &(const struct command_state){ .format = "text", .text = { .count = UINT64_MAX } },
    .examples = examples,
    .run = dump_main,
};
