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

static const char *output, *level;
static bool values, aslr;
static uint64_t most = UINT64_MAX;
static struct opt_list regions, only, skip;
static struct system_config guest;
static bool get;
/* One flag per producer. */
static struct {
#define X(name, summary) bool name;
    PRODUCERS(X)
#undef X
} chosen;

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void sum_up(const struct recording *r, const char *path)
{
    struct stat st;
    uint64_t bytes = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    char processes[40] = "";

    if (guest.count && chosen.system) {
        fprintf(stderr, "peet: %s: %" PRIu64 " thread%s, %" PRIu64 " instruction%s counted, %.1f s\n", path, r->threads,
                plural(r->threads), r->instructions, plural(r->instructions), r->seconds);
        return;
    }
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
    if (r->aslr_kept)
        warn("this system did not let us switch address space randomization off; two recordings will differ");
    if (r->undecoded)
        warn("%" PRIu64 " executed instruction%s could not be decoded; what %s memory is not recorded", r->undecoded,
             plural(r->undecoded), r->undecoded == 1 ? "it did to" : "they did to");
    if (r->left_64_bit)
        warn("%" PRIu64 " thread%s of code for 32 bits, which cannot be recorded", r->left_64_bit,
             plural(r->left_64_bit));
    if (r->stopped)
        warn("stopped recording after %" PRIu64 " instructions; the program went on without", r->instructions);
    for (size_t i = 0; i < r->warnings; i++)
        warn("%s", r->warning[i]);
}

static enum level chosen_level(void)
{
    return values ? LEVEL_all : level ? level_find(level) : LEVEL_NONE;
}

/* ---- --system ---- */

/* What an application in a guest writes; with a number in front of each line where there are several. */
static void show_output(void *context, unsigned app, const char *text, size_t bytes)
{
    static unsigned last; /* whose line it is; 0: a new one begins */
    const struct progress *progress = context;

    if (progress->shown)
        fputs("\r\033[K", stderr);
    if (guest.apps.count < 2) {
        fwrite(text, 1, bytes, stdout);
    } else {
        if (last && last != app)
            putchar('\n');
        if (last != app)
            printf("%u: ", app);
        fwrite(text, 1, bytes, stdout);
        last = bytes && text[bytes - 1] == '\n' ? 0 : app;
    }
    fflush(stdout);
}

/* --get: only looks for QEMU and a kernel, or gets them. */
static int get_system(void)
{
    struct emulator e;
    struct peet_err err;

    if (emulator_find(&guest, true, &e, &err) < 0)
        return fail(&err);
    printf("QEMU    %s\nkernel  %s\n", e.qemu, e.kernel ? e.kernel : "none");
    emulator_release(&e);
    return EXIT_OK;
}

/* Options that mean nothing elsewhere. */
static bool system_asked(void)
{
    return get || guest.apps.count || guest.files.count || guest.arch || guest.cpus || guest.memory || guest.image
           || guest.kernel || guest.symbols.count || guest.qemu_args.count || guest.initrd || guest.append
           || guest.timeout || guest.deterministic || guest.count || guest.marked || guest.offline || guest.sysroot
           || guest.pattern || guest.grows || guest.k || guest.page || guest.stack || guest.include_kernel
           || guest.no_physical;
}

/* ---- recording ---- */

/* What to tell, and what to end with, when the trace is not what it should have been. */
static int ended_early(const struct recording *r, const struct peet_err *err, const char *path)
{
    int code = subject_exit_code(r->status);

    complain("%s", err->text);
    if (err->code == PEET_ERR_INTERRUPTED || chosen.system) {
        tell(r);
        sum_up(r, path);
    } else {
        warn("the recording ends there; the program went on without");
    }
    return code ? code : EXIT_FAILED;
}

static int record(const struct producer *producer, char **argv, const char *path)
{
    uint64_t limit = most == UINT64_MAX ? 0 : most;
    struct progress progress;
    struct recording recording;
    struct peet_err err;

    progress_init(&progress, stderr, argv[0] ? argv[0] : path, limit, "instructions");
    guest.output = show_output;
    guest.context = &progress;
    struct producer_config config = { .argv = argv,
                                      .max = limit,
                                      .level = chosen_level(),
                                      .regions = regions,
                                      .only = only,
                                      .skip = skip,
                                      .aslr = aslr,
                                      .system = &guest,
                                      .progress = &progress };
    int r = record_trace(producer, &config, path, &recording, &err);
    progress_release(&progress);
    int code = recording.ran ? subject_exit_code(recording.status) : fail(&err);
    if (recording.ran && r < 0) {
        code = ended_early(&recording, &err, path);
    } else if (recording.ran) {
        tell(&recording);
        sum_up(&recording, path);
    }
    recording_release(&recording);
    return code;
}

static int run_here(const struct producer *producer, char **operand)
{
    const char *slash = strrchr(operand[0], '/');
    char *own = mem_format("%s.peet", slash ? slash + 1 : operand[0]);
    int code = record(producer, operand, output ? output : own);

    free(own);
    return code;
}

static int run_system(char **operand)
{
    struct peet_err err;
    char *folder = library_folder(&err);

    if (!folder)
        return fail(&err);
    guest.folder = folder;
    char *name = apps_name(&guest, operand), *own = mem_format("%s.%s", name, guest.count ? "json" : "peet");
    int code = get ? get_system() : record(&producer_system, operand, output ? output : own);
    free(own);
    free(name);
    free(folder);
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
    if (choices > 1)
        return usage_error(&cmd_record, "more than one way to record given");
    if (!chosen.system && system_asked())
        return usage_error(&cmd_record, "that option needs --system");
    if (operands == 0 && !chosen.system)
        return usage_error(&cmd_record, "no program given: -- PROGRAM [ARGUMENT…]");
    if (choices == 0)
        producer = &producer_live;
    if (values && level && level_find(level) != LEVEL_all)
        return usage_error(&cmd_record, "--values is --level all, and --level says something else");
    if (most == 0)
        return usage_error(&cmd_record, "--max 0 would record nothing");
    if (output && !strcmp(output, "-"))
        return usage_error(&cmd_record, "standard output is the program's; -o needs the name of a file");
    operand[operands] = NULL; /* argv has room: it held the verb, at least */
    int code = chosen.system ? run_system(operand) : run_here(producer, operand);
    opt_list_release(&regions);
    opt_list_release(&only);
    opt_list_release(&skip);
    opt_list_release(&guest.apps);
    opt_list_release(&guest.files);
    opt_list_release(&guest.symbols);
    opt_list_release(&guest.qemu_args);
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
    { .name = "app",
      .type = OPT_EACH,
      .arg = "'PROGRAM ARGUMENT…'",
      .value = &guest.apps,
      .help = "--system: run this; several run together" },
    { .name = "arch",
      .type = OPT_CHOICE,
      .arg = "ARCH",
      .value = &guest.arch,
      .choices = GUEST_ARCH_NAMES,
      .help = "--system: the guest's instruction set (this machine's)" },
    { .name = "cpus", .type = OPT_NUMBER, .arg = "N", .value = &guest.cpus, .help = "--system: its processors (1)" },
    { .name = "memory",
      .type = OPT_NUMBER,
      .arg = "BYTES",
      .value = &guest.memory,
      .help = "--system: its memory (1g, and more for large files)" },
    { .name = "file",
      .type = OPT_EACH,
      .arg = "HOST[:GUEST]",
      .value = &guest.files,
      .help = "--system: put a file or a folder into the guest, too" },
    { .name = "sysroot",
      .type = OPT_STRING,
      .arg = "DIR",
      .value = &guest.sysroot,
      .help = "--system: where libraries for the guest are" },
    { .name = "deterministic",
      .type = OPT_FLAG,
      .value = &guest.deterministic,
      .help = "--system: one processor, and time counted in instructions: the same trace each time" },
    { .name = "count", .type = OPT_FLAG, .value = &guest.count, .help = "--system: counts per thread alone, as JSON" },
    { .name = "include-kernel",
      .type = OPT_FLAG,
      .value = &guest.include_kernel,
      .help = "--system: what the kernel executes for the threads, too" },
    { .name = "no-physical", .type = OPT_FLAG, .value = &guest.no_physical, .help = "--system: no physical addresses" },
    { .name = "marked",
      .type = OPT_FLAG,
      .value = &guest.marked,
      .help = "--system: the programs mark their threads themselves, in a library" },
    { .name = "pattern",
      .type = OPT_STRING,
      .arg = "default|ji|hex:BYTES[/MASK]",
      .value = &guest.pattern,
      .help = "--system: the instructions that mark a thread" },
    { .name = "k",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = &guest.k,
      .help = "--system: pages from a mark to its stack's bottom" },
    { .name = "page", .type = OPT_NUMBER, .arg = "BYTES", .value = &guest.page, .help = "--system: size of a page" },
    { .name = "stack", .type = OPT_NUMBER, .arg = "BYTES", .value = &guest.stack, .help = "--system: size of a stack" },
    { .name = "grows",
      .type = OPT_CHOICE,
      .arg = "WHERE",
      .value = &guest.grows,
      .choices = (const char *const[]){ "down", "up", NULL },
      .help = "--system: where stacks grow" },
    { .name = "image",
      .type = OPT_STRING,
      .arg = "DISK",
      .value = &guest.image,
      .help = "--system: boot your own system from this disk; it is not changed" },
    { .name = "kernel",
      .type = OPT_STRING,
      .arg = "FILE",
      .value = &guest.kernel,
      .help = "--system: the guest's kernel; one that is not Linux starts its programs itself" },
    { .name = "initrd",
      .type = OPT_STRING,
      .arg = "FILE",
      .value = &guest.initrd,
      .help = "--system: its initrd, with --image" },
    { .name = "append",
      .type = OPT_STRING,
      .arg = "WORDS",
      .value = &guest.append,
      .help = "--system: more of the kernel's command line" },
    { .name = "symbols",
      .type = OPT_EACH,
      .arg = "FILE",
      .value = &guest.symbols,
      .help = "--system: a program of your own system, for the names in it" },
    { .name = "qemu-arg",
      .type = OPT_EACH,
      .arg = "'WORD…'",
      .value = &guest.qemu_args,
      .help = "--system: more words for QEMU's command line" },
    { .name = "timeout",
      .type = OPT_NUMBER,
      .arg = "SECONDS",
      .value = &guest.timeout,
      .help = "--system: end the guest after that" },
    { .name = "get",
      .type = OPT_FLAG,
      .value = &get,
      .help = "--system: only get QEMU and a kernel, if they are not here" },
    { .name = "offline", .type = OPT_FLAG, .value = &guest.offline, .help = "--system: get nothing" },
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
    .examples = examples,
    .run = run,
};
