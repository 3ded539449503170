/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "base/progress.h"
#include "capture/producer.h"
#include "cli/cli.h"

static const char *output, *level;
static bool values, aslr;
static uint64_t most;
static struct opt_list regions, only, skip;
/* One flag per producer. */
static struct {
#define X(name, summary) bool name;
    PRODUCERS(X)
#undef X
} chosen;

/* As a shell tells it. */
static int exit_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void sum_up(const struct recording *r, const char *path)
{
    struct stat st;
    uint64_t bytes = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    char processes[40] = "";

    if (r->processes > 1)
        snprintf(processes, sizeof processes, "%" PRIu64 " processes, ", r->processes);
    fprintf(stderr,
            "peet: %s: %s%" PRIu64 " thread%s, %" PRIu64 " instruction%s, %" PRIu64 " reference%s, %" PRIu64
            " bytes, %.1f s\n",
            path, processes, r->threads, plural(r->threads), r->instructions, plural(r->instructions), r->references,
            plural(r->references), bytes, r->seconds);
}

/* What the user should know about a recording that went well. */
static void tell(const struct recording *r)
{
    if (r->moved)
        warn("this system did not let us switch address space randomization off; two recordings will differ");
    if (r->unknown)
        warn("%" PRIu64 " executed instruction%s could not be decoded; what %s memory is not recorded", r->unknown,
             plural(r->unknown), r->unknown == 1 ? "it did to" : "they did to");
    if (r->foreign)
        warn("%" PRIu64 " thread%s of code for 32 bits, which cannot be recorded", r->foreign, plural(r->foreign));
    if (r->stopped)
        warn("stopped recording after %" PRIu64 " instructions; the program went on without", r->instructions);
    for (size_t i = 0; i < r->warnings; i++)
        warn("%s", r->warning[i]);
}

static enum level chosen_level(void)
{
    return values ? LEVEL_all : level ? level_find(level) : LEVEL_NONE;
}

static int record(const struct producer *producer, char **argv, const char *path)
{
    struct progress progress;
    struct recording recording;
    struct peet_err err;

    progress_init(&progress, stderr, argv[0], most, "instructions");
    struct producer_config config = { .argv = argv,
                                      .max = most,
                                      .level = chosen_level(),
                                      .regions = regions,
                                      .only = only,
                                      .skip = skip,
                                      .aslr = aslr,
                                      .progress = &progress };
    int r = record_trace(producer, &config, path, &recording, &err);
    progress_release(&progress);
    int code = recording.ran ? exit_code(recording.status) : fail(&err);
    if (recording.ran && r < 0) {
        complain("%s", err.text);
        warn("the recording ends there; the program went on without");
        code = code ? code : EXIT_FAILED;
    } else if (recording.ran) {
        tell(&recording);
        sum_up(&recording, path);
    }
    recording_release(&recording);
    return code;
}

static int run(int operands, char **operand)
{
    const struct producer *producer = NULL;
    int choices = 0;

#define X(name, summary) \
    if (chosen.name) \
        producer = &producer_##name; \
    choices += chosen.name;
    PRODUCERS(X)
#undef X
    if (operands == 0)
        return usage_error(&cmd_record, "no program given: -- PROGRAM [ARGUMENT…]");
    if (choices == 0)
        producer = &producer_live;
    if (choices > 1)
        return usage_error(&cmd_record, "more than one way to record given");
    if (values && level && level_find(level) != LEVEL_all)
        return usage_error(&cmd_record, "--values is --level all, and --level says something else");
    if (output && !strcmp(output, "-"))
        return usage_error(&cmd_record, "standard output is the program's; -o needs the name of a file");
    operand[operands] = NULL; /* argv has room: it held the verb, at least */
    const char *slash = strrchr(operand[0], '/');
    char *own = mem_format("%s.peet", slash ? slash + 1 : operand[0]);
    int code = record(producer, operand, output ? output : own);
    free(own);
    opt_list_release(&regions);
    opt_list_release(&only);
    opt_list_release(&skip);
    return code;
}

static const struct opt options[] = {
#define X(name_, summary) { .name = #name_, .type = OPT_FLAG, .value = &chosen.name_, .help = summary },
    PRODUCERS(X)
#undef X
        { .name = "output",
          .letter = 'o',
          .type = OPT_STRING,
          .arg = "FILE",
          .value = &output,
          .help = "where the trace goes (PROGRAM.peet)" },
    { .name = "level",
      .type = OPT_CHOICE,
      .arg = "LEVEL",
      .value = &level,
      .choices = LEVEL_NAMES,
      .help = "how much to record, at most (what the program was built for)" },
    { .name = "values", .type = OPT_FLAG, .value = &values, .help = "the same as --level all" },
    { .name = "region",
      .type = OPT_LIST,
      .arg = "NAME",
      .value = &regions,
      .help = "record instructions in regions of this name only, and events everywhere" },
    { .name = "only",
      .type = OPT_LIST,
      .arg = "FUNCTION",
      .value = &only,
      .help = "record instructions of this function only; may be a pattern, as the shell's" },
    { .name = "skip",
      .type = OPT_LIST,
      .arg = "FUNCTION",
      .value = &skip,
      .help = "leave out the instructions of this function; may be a pattern" },
    { .name = "max",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = &most,
      .help = "stop recording after N instructions; the program goes on" },
    { .name = "aslr", .type = OPT_FLAG, .value = &aslr, .help = "leave address space randomization on" },
    { 0 },
};

static const char *const examples[] = {
    "peet record -- ./fft -m 20 -p 4",
    "fft.peet holds what each thread of a program built with peet cc did",
    "peet record --step -o ls.peet -- ls -l",
    "any program can be stepped through",
    "peet record --step --max 1m -- ./long",
    "only the beginning",
    "peet record --level events -- ./server",
    "what its threads, locks and allocations do, and no instructions",
    "peet record --region solve -- ./fft -m 20",
    "of the program's region 'solve' everything, of the rest events alone",
    "peet record --only 'solve*' --skip solve_trace -- ./prog",
    "of these functions everything, of the rest events alone",
    NULL,
};

const struct command cmd_record = {
    .name = "record",
    .summary = "run a program and record what it does",
    .operands = "[OPTION…] -- PROGRAM [ARGUMENT…]",
    .options = options,
    .examples = examples,
    .run = run,
};
