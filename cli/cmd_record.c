/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "base/progress.h"
#include "capture/producer.h"
#include "cli/subject.h"
#include "capture/system/system.h"
#include "cli/cli.h"

struct command_state {
    const char *output; /* NULL: named after the program */
    const char *level;  /* NULL: what the program was built for */
    bool values, aslr;
    uint64_t most; /* instructions that are recorded; UINT64_MAX: all */
    struct opt_list regions, only, skip;
    struct system_config guest;
    bool get; /* only get QEMU and a kernel */
    struct {
#define X(name, summary) bool name;
        PRODUCERS(X)
#undef X
    } is_given; /* by producer */
};

/* What prints the output of a guest's applications. */
struct guest_output {
    const struct progress *progress;
    bool has_numbers;  /* lines begin with the number of their application */
    unsigned last_app; /* of the unfinished line; 0: the next text begins a line */
};

static const char *plural_of(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void record_sum_up(const struct command_state *s, const struct recording *r, const char *path)
{
    struct stat st;
    uint64_t bytes = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    char processes[40] = "";

    if (s->guest.count && s->is_given.system) {
        fprintf(stderr, "peet: %s: %" PRIu64 " thread%s, %" PRIu64 " instruction%s counted, %.1f s\n", path, r->threads,
                plural_of(r->threads), r->instructions, plural_of(r->instructions), r->seconds);
        return;
    }
    if (r->processes > 1)
        snprintf(processes, sizeof processes, "%" PRIu64 " processes, ", r->processes);
    fprintf(stderr,
            "peet: %s: %s%" PRIu64 " thread%s, %" PRIu64 " instruction%s, %" PRIu64 " reference%s, %" PRIu64
            " bytes, %.1f s\n",
            path, processes, r->threads, plural_of(r->threads), r->instructions, plural_of(r->instructions),
            r->references, plural_of(r->references), bytes, r->seconds);
}

/* Warns of what a recording without errors lacks. */
static void record_warn(const struct recording *r)
{
    if (r->aslr_kept)
        warn("this system did not let us switch address space randomization off; two recordings will differ");
    if (r->undecoded)
        warn("%" PRIu64 " executed instruction%s could not be decoded; what %s memory is not recorded", r->undecoded,
             plural_of(r->undecoded), r->undecoded == 1 ? "it did to" : "they did to");
    if (r->left_64_bit)
        warn("%" PRIu64 " thread%s of code for 32 bits, which cannot be recorded", r->left_64_bit,
             plural_of(r->left_64_bit));
    if (r->stopped)
        warn("stopped recording after %" PRIu64 " instructions; the program went on without", r->instructions);
    for (size_t i = 0; i < r->warnings; i++)
        warn("%s", r->warning[i]);
}

static enum level record_level(const struct command_state *s)
{
    return s->values ? LEVEL_all : s->level ? level_find(s->level) : LEVEL_NONE;
}

/* ---- --system ---- */

/* Prints output of an application in a guest. Where there are several, each line begins with the number of its application. */
static void record_show_output(void *context, unsigned app, const char *text, size_t bytes)
{
    struct guest_output *o = context;

    if (o->progress->shown)
        fputs("\r\033[K", stderr);
    if (o->has_numbers && o->last_app && o->last_app != app)
        putchar('\n');
    if (o->has_numbers && o->last_app != app)
        printf("%u: ", app);
    fwrite(text, 1, bytes, stdout);
    o->last_app = bytes && text[bytes - 1] == '\n' ? 0 : app;
    fflush(stdout);
}

/* For --get: finds QEMU and a kernel, or gets them. */
static int record_get_system(const struct command_state *s)
{
    struct emulator e;
    struct peet_err err;

    if (emulator_find(&s->guest, true, &e, &err) < 0)
        return fail(&err);
    printf("QEMU    %s\nkernel  %s\n", e.qemu, e.kernel ? e.kernel : "none");
    emulator_release(&e);
    return EXIT_OK;
}

/* Whether an option is given that only --system has. */
static bool record_has_system_options(const struct command_state *s)
{
    const struct system_config *g = &s->guest;

    return s->get || g->apps.count || g->files.count || g->arch || g->cpus || g->memory || g->image || g->kernel
           || g->symbols.count || g->qemu_args.count || g->initrd || g->append || g->timeout || g->deterministic
           || g->count || g->marked || g->offline || g->sysroot || g->plugin.pattern || g->plugin.grows || g->plugin.k
           || g->plugin.page || g->plugin.stack || g->plugin.include_kernel || g->plugin.no_physical;
}

/* ---- recording ---- */

/* Complains about a recording that ended with an error. Returns the exit code. */
static int record_ended_early(const struct command_state *s, const struct recording *r, const struct peet_err *err,
                              const char *path)
{
    int code = subject_exit_code(r->status);

    complain("%s", err->text);
    if (err->code == PEET_ERR_INTERRUPTED || s->is_given.system) {
        record_warn(r);
        record_sum_up(s, r, path);
    } else {
        warn("the recording ends there; the program went on without");
    }
    return code ? code : EXIT_FAILED;
}

static int record_program(struct command_state *s, const struct producer *producer, char **argv, const char *path)
{
    uint64_t limit = s->most == UINT64_MAX ? 0 : s->most;
    struct progress progress;
    struct recording recording;
    struct peet_err err;

    progress_init(&progress, stderr, argv[0] ? argv[0] : path, limit, "instructions");
    struct guest_output output = { .progress = &progress, .has_numbers = s->guest.apps.count > 1 };
    s->guest.output = record_show_output;
    s->guest.context = &output;
    struct producer_config config = { .argv = argv,
                                      .max = limit,
                                      .level = record_level(s),
                                      .regions = s->regions,
                                      .only = s->only,
                                      .skip = s->skip,
                                      .aslr = s->aslr,
                                      .system = &s->guest,
                                      .progress = &progress };
    int r = record_trace(producer, &config, path, &recording, &err);
    progress_release(&progress);
    int code = recording.ran ? subject_exit_code(recording.status) : fail(&err);
    if (recording.ran && r < 0) {
        code = record_ended_early(s, &recording, &err, path);
    } else if (recording.ran) {
        record_warn(&recording);
        record_sum_up(s, &recording, path);
    }
    recording_release(&recording);
    return code;
}

static int record_native(struct command_state *s, const struct producer *producer, char **operand)
{
    const char *slash = strrchr(operand[0], '/');
    char *own = mem_format("%s.peet", slash ? slash + 1 : operand[0]);
    int code = record_program(s, producer, operand, s->output ? s->output : own);

    free(own);
    return code;
}

static int record_guest(struct command_state *s, char **operand)
{
    struct peet_err err;
    char *folder = library_folder(&err);

    if (!folder)
        return fail(&err);
    s->guest.folder = folder;
    char *name = apps_name(&s->guest, operand), *own = mem_format("%s.%s", name, s->guest.count ? "json" : "peet");
    int code =
        s->get ? record_get_system(s) : record_program(s, &producer_system, operand, s->output ? s->output : own);
    free(own);
    free(name);
    free(folder);
    return code;
}

static int record_main(struct command_state *s, int operands, char **operand)
{
    const struct producer *producer = NULL;
    int ways = 0;

#define X(name, summary) \
    if (s->is_given.name) \
        producer = &producer_##name; \
    ways += s->is_given.name;
    PRODUCERS(X)
#undef X
    if (ways > 1)
        return usage_error(&cmd_record, "more than one way to record given");
    if (!s->is_given.system && record_has_system_options(s))
        return usage_error(&cmd_record, "that option needs --system");
    if (operands == 0 && !s->is_given.system)
        return usage_error(&cmd_record, "no program given: -- PROGRAM [ARGUMENT…]");
    if (ways == 0)
        producer = &producer_live;
    if (s->values && s->level && level_find(s->level) != LEVEL_all)
        return usage_error(&cmd_record, "--values is --level all, and --level says something else");
    if (s->most == 0)
        return usage_error(&cmd_record, "--max 0 would record nothing");
    if (s->output && !strcmp(s->output, "-"))
        return usage_error(&cmd_record, "standard output is the program's; -o needs the name of a file");
    operand[operands] = NULL; /* argv has room: it held the verb, at least */
    return s->is_given.system ? record_guest(s, operand) : record_native(s, producer, operand);
}

static const struct opt options[] = {
#define X(name_, summary) { .name = #name_, .type = OPT_FLAG, .value = OPTION(is_given.name_), .help = summary },
    PRODUCERS(X)
#undef X
        { .name = "output",
          .letter = 'o',
          .type = OPT_STRING,
          .arg = "FILE",
          .value = OPTION(output),
          .help = "where the trace goes (PROGRAM.peet)" },
    { .name = "level",
      .type = OPT_CHOICE,
      .arg = "LEVEL",
      .value = OPTION(level),
      .choices = LEVEL_NAMES,
      .help = "how much to record, at most (what the program was built for)" },
    { .name = "values", .type = OPT_FLAG, .value = OPTION(values), .help = "the same as --level all" },
    { .name = "region",
      .type = OPT_LIST,
      .arg = "NAME",
      .value = OPTION(regions),
      .help = "record instructions in regions of this name only, and events everywhere" },
    { .name = "only",
      .type = OPT_LIST,
      .arg = "FUNCTION",
      .value = OPTION(only),
      .help = "record instructions of this function only; may be a pattern, as the shell's" },
    { .name = "skip",
      .type = OPT_LIST,
      .arg = "FUNCTION",
      .value = OPTION(skip),
      .help = "leave out the instructions of this function; may be a pattern" },
    { .name = "max",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(most),
      .help = "stop recording after N instructions; the program goes on" },
    { .name = "aslr", .type = OPT_FLAG, .value = OPTION(aslr), .help = "leave address space randomization on" },
    { .name = "app",
      .type = OPT_EACH,
      .arg = "'PROGRAM ARGUMENT…'",
      .value = OPTION(guest.apps),
      .help = "--system: run this; several run together" },
    { .name = "arch",
      .type = OPT_CHOICE,
      .arg = "ARCH",
      .value = OPTION(guest.arch),
      .choices = GUEST_ARCH_NAMES,
      .help = "--system: the guest's instruction set (this machine's)" },
    { .name = "cpus",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(guest.cpus),
      .help = "--system: its processors (1)" },
    { .name = "memory",
      .type = OPT_NUMBER,
      .arg = "BYTES",
      .value = OPTION(guest.memory),
      .help = "--system: its memory (1g, and more for large files)" },
    { .name = "file",
      .type = OPT_EACH,
      .arg = "HOST[:GUEST]",
      .value = OPTION(guest.files),
      .help = "--system: put a file or a folder into the guest, too" },
    { .name = "sysroot",
      .type = OPT_STRING,
      .arg = "DIR",
      .value = OPTION(guest.sysroot),
      .help = "--system: where libraries for the guest are" },
    { .name = "deterministic",
      .type = OPT_FLAG,
      .value = OPTION(guest.deterministic),
      .help = "--system: one processor, and time counted in instructions: the same trace each time" },
    { .name = "count",
      .type = OPT_FLAG,
      .value = OPTION(guest.count),
      .help = "--system: counts per thread alone, as JSON" },
    { .name = "include-kernel",
      .type = OPT_FLAG,
      .value = OPTION(guest.plugin.include_kernel),
      .help = "--system: what the kernel executes for the threads, too" },
    { .name = "no-physical",
      .type = OPT_FLAG,
      .value = OPTION(guest.plugin.no_physical),
      .help = "--system: no physical addresses" },
    { .name = "marked",
      .type = OPT_FLAG,
      .value = OPTION(guest.marked),
      .help = "--system: the programs mark their threads themselves, in a library" },
    { .name = "pattern",
      .type = OPT_STRING,
      .arg = "default|ji|hex:BYTES[/MASK]",
      .value = OPTION(guest.plugin.pattern),
      .help = "--system: the instructions that mark a thread" },
    { .name = "k",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(guest.plugin.k),
      .help = "--system: pages from a mark to its stack's bottom" },
    { .name = "page",
      .type = OPT_NUMBER,
      .arg = "BYTES",
      .value = OPTION(guest.plugin.page),
      .help = "--system: size of a page" },
    { .name = "stack",
      .type = OPT_NUMBER,
      .arg = "BYTES",
      .value = OPTION(guest.plugin.stack),
      .help = "--system: size of a stack" },
    { .name = "grows",
      .type = OPT_CHOICE,
      .arg = "WHERE",
      .value = OPTION(guest.plugin.grows),
      .choices = (const char *const[]){ "down", "up", NULL },
      .help = "--system: where stacks grow" },
    { .name = "image",
      .type = OPT_STRING,
      .arg = "DISK",
      .value = OPTION(guest.image),
      .help = "--system: boot your own system from this disk; it is not changed" },
    { .name = "kernel",
      .type = OPT_STRING,
      .arg = "FILE",
      .value = OPTION(guest.kernel),
      .help = "--system: the guest's kernel; one that is not Linux starts its programs itself" },
    { .name = "initrd",
      .type = OPT_STRING,
      .arg = "FILE",
      .value = OPTION(guest.initrd),
      .help = "--system: its initrd, with --image" },
    { .name = "append",
      .type = OPT_STRING,
      .arg = "WORDS",
      .value = OPTION(guest.append),
      .help = "--system: more of the kernel's command line" },
    { .name = "symbols",
      .type = OPT_EACH,
      .arg = "FILE",
      .value = OPTION(guest.symbols),
      .help = "--system: a program of your own system, for the names in it" },
    { .name = "qemu-arg",
      .type = OPT_EACH,
      .arg = "'WORD…'",
      .value = OPTION(guest.qemu_args),
      .help = "--system: more words for QEMU's command line" },
    { .name = "timeout",
      .type = OPT_NUMBER,
      .arg = "SECONDS",
      .value = OPTION(guest.timeout),
      .help = "--system: end the guest after that" },
    { .name = "get",
      .type = OPT_FLAG,
      .value = OPTION(get),
      .help = "--system: only get QEMU and a kernel, if they are not here" },
    { .name = "offline", .type = OPT_FLAG, .value = OPTION(guest.offline), .help = "--system: get nothing" },
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
    "peet record --system --cpus 4 --app './fft -p 4' --app './lu -p 4'",
    "two programs together on four processors of a guest; a stream for each of their threads",
    "peet record --system --arch riscv64 --app ./hello-riscv64",
    "a program for another processor",
    NULL,
};

const struct command cmd_record = {
    .name = "record",
    .summary = "run a program and record what it does",
    .operands = "[OPTION…] -- PROGRAM [ARGUMENT…]",
    .options = options,
    .state_size = sizeof(struct command_state),
    .defaults = &(const struct command_state){ .most = UINT64_MAX },
    .examples = examples,
    .run = record_main,
};
