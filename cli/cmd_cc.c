/* SPDX-License-Identifier: MIT */
/* The verbs that replace a compiler and its assembler: cc, c++, fortran, as. All arguments are passed to these, except those that begin
 * with --peet. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/asm/asm.h"
#include "cli/cli.h"

static void cc_warn(const char *text)
{
    warn("%s", text);
}

static bool cc_variable_is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value && *value && strcmp(value, "0") != 0;
}

static const char *cc_variable(const char *variable, const char *otherwise)
{
    const char *value = getenv(variable);

    return value && *value ? value : otherwise;
}

char *library_folder(struct peet_err *err)
{
    static const char *const places[] = { "lib/peet", "../lib/peet" };
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (n < 0) {
        err_sys(err, errno, "/proc/self/exe");
        return NULL;
    }
    self[n] = 0;
    const char *here = dirname(self);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *as = mem_format("%s/%s/as", here, places[i]);
        bool found = access(as, X_OK) == 0;
        free(as);
        if (found)
            return mem_format("%s/%s", here, places[i]);
    }
    err_set(err, PEET_ERR_IO, "there is no lib/peet/as near '%s': peet is not completely built or installed", here);
    return NULL;
}

/* The level of this name, from an option or variable; LEVEL_NONE after it has complained: there is none. */
static enum level cc_find_level(const char *name, const char *source)
{
    enum level level = level_find(name);

    if (level == LEVEL_all)
        complain("%s: values cannot be recorded by compiled code; peet record --step --level all does that", source);
    else if (!level)
        complain("%s: there is no level '%s': events, calls, blocks or memory", source, name);
    return level == LEVEL_all ? LEVEL_NONE : level;
}

/* Removes --peet-brute, --peet-order and --peet-level=… from the arguments, and returns the number of the others; -1: an error was reported. */
static int cc_take_options(int operands, char **operand, struct asm_driver *d)
{
    static const char level[] = "--peet-level=";
    int n = 0;

    for (int i = 0; i < operands; i++)
        if (!strcmp(operand[i], "--peet-brute"))
            d->all_addresses = true;
        else if (!strcmp(operand[i], "--peet-order"))
            d->has_hooks = true;
        else if (strncmp(operand[i], level, sizeof level - 1) != 0)
            operand[n++] = operand[i];
        else if (!(d->level = cc_find_level(operand[i] + sizeof level - 1, "--peet-level")))
            return -1;
    return n;
}

static int cc_compile(const char *compiler, int operands, char **operand)
{
    struct peet_err err;
    struct asm_driver d = { .compiler = compiler,
                            .all_addresses = cc_variable_is_set("PEET_AS_BRUTE"),
                            .warn = cc_warn };
    char **list;

    d.level = cc_find_level(cc_variable("PEET_LEVEL", "memory"), "PEET_LEVEL");
    operands = d.level ? cc_take_options(operands, operand, &d) : -1;
    if (operands < 0)
        return EXIT_USAGE;
    char *folder = library_folder(&err);
    if (!folder)
        return fail(&err);
    d.folder = folder;
    int r = asm_driver_arguments(&d, operands, operand, &list, &err);
    free(folder);
    if (r < 0)
        return fail(&err);
    execvp(list[0], list);
    err_sys(&err, errno, "cannot run '%s'", list[0]);
    asm_arguments_free(list);
    err.code = PEET_ERR_IO;
    return fail(&err);
}

static int cc_main(struct command_state *s, int operands, char **operand)
{
    (void)s;
    return cc_compile(cc_variable("PEET_CC", "gcc"), operands, operand);
}

static int cxx_main(struct command_state *s, int operands, char **operand)
{
    (void)s;
    return cc_compile(cc_variable("PEET_CXX", "g++"), operands, operand);
}

static int fortran_main(struct command_state *s, int operands, char **operand)
{
    (void)s;
    return cc_compile(cc_variable("PEET_FC", "gfortran"), operands, operand);
}

static int as_main(struct command_state *s, int operands, char **operand)
{
    struct peet_err err;
    struct asm_options o = { .assembler = cc_variable("PEET_AS", "as"),
                             .all_addresses = cc_variable_is_set("PEET_AS_BRUTE"),
                             .level = cc_find_level(cc_variable("PEET_LEVEL", "memory"), "PEET_LEVEL"),
                             .warn = cc_warn };
    (void)s;
    if (!o.level)
        return EXIT_USAGE;
    int r = asm_run_as(operands, operand, &o, &err);

    return r < 0 ? fail(&err) : r;
}

/* For help only: these verbs take all arguments as operands. */
struct command_state {
    bool flag;
    const char *level;
};
static const char *const levels[] = { "events", "calls", "blocks", "memory", NULL };

static const struct opt options[] = {
    { .name = "peet-level",
      .type = OPT_CHOICE,
      .arg = "LEVEL",
      .value = OPTION(level),
      .choices = levels,
      .help = "how much the program says: the less, the faster it is (memory)" },
    { .name = "peet-brute",
      .type = OPT_FLAG,
      .value = OPTION(flag),
      .help = "record every address, to check the reconstruction" },
    { .name = "peet-order",
      .type = OPT_FLAG,
      .value = OPTION(flag),
      .help = "let peet simulate --order decide when stores perform: the program stops at each shared access" },
    { 0 },
};

static const struct opt as_options[] = {
    { .name = "peet-level",
      .type = OPT_CHOICE,
      .arg = "LEVEL",
      .value = OPTION(level),
      .choices = levels,
      .help = "how much the code says (memory)" },
    { .name = "peet-brute",
      .type = OPT_FLAG,
      .value = OPTION(flag),
      .help = "record every address, to check the reconstruction" },
    { .name = "peet-order", .type = OPT_FLAG, .value = OPTION(flag), .help = "stop at each shared access" },
    { .name = "peet-library", .type = OPT_FLAG, .value = OPTION(flag), .help = "the code is for a shared library" },
    { .name = "peet-absolute",
      .type = OPT_FLAG,
      .value = OPTION(flag),
      .help = "the code is for an executable at a fixed address" },
    { 0 },
};

static const char *const cc_examples[] = {
    "peet cc -O2 -g -o prog prog.c",
    "a program that can be recorded",
    "make CC='peet cc' CXX='peet c++'",
    "a whole project",
    "peet cc --peet-level=events -O2 -o prog prog.c",
    "a program that says only what its threads, locks and allocations do: as fast as ever",
    NULL,
};
static const char *const cxx_examples[] = { "peet c++ -O2 -g -o prog prog.cc", "a program that can be recorded", NULL };
static const char *const fortran_examples[] = { "peet fortran -O2 -g -o prog prog.f90",
                                                "a program that can be recorded", NULL };
static const char *const as_examples[] = { "gcc -S -ffixed-r14 -ffixed-r15 prog.c && peet as -o prog.o prog.s",
                                           "what peet cc does, step by step", NULL };

const struct command cmd_cc = {
    .name = "cc",
    .summary = "compile C so that the program can be recorded",
    .operands = "[GCC'S ARGUMENTS…]",
    .options = options,
    .state_size = sizeof(struct command_state),
    .examples = cc_examples,
    .passes_on = true,
    .run = cc_main,
};

const struct command cmd_cxx = {
    .name = "c++",
    .summary = "compile C++ so that the program can be recorded",
    .operands = "[G++'S ARGUMENTS…]",
    .options = options,
    .state_size = sizeof(struct command_state),
    .examples = cxx_examples,
    .passes_on = true,
    .run = cxx_main,
};

const struct command cmd_fortran = {
    .name = "fortran",
    .summary = "compile Fortran so that the program can be recorded",
    .operands = "[GFORTRAN'S ARGUMENTS…]",
    .options = options,
    .state_size = sizeof(struct command_state),
    .examples = fortran_examples,
    .passes_on = true,
    .run = fortran_main,
};

const struct command cmd_as = {
    .name = "as",
    .summary = "assemble what GCC wrote so that the program can be recorded",
    .operands = "[ARGUMENTS OF AS…]",
    .options = as_options,
    .state_size = sizeof(struct command_state),
    .examples = as_examples,
    .passes_on = true,
    .run = as_main,
};
