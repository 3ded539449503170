/* SPDX-License-Identifier: MIT */
/* The verbs of peet. A new verb is one file, cli/cmd_VERB.c, that defines `const struct command cmd_VERB` as its last
 * thing, one line in COMMANDS, and one manual page, docs/man/peet-VERB.1.scd. Only code in this folder prints or exits. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "base/opt.h"
#include "peet/err.h"

#define COMMANDS(X) \
    X(cc) \
    X(cxx) \
    X(fortran) \
    X(as) X(record) X(info) X(study) X(dump) X(check) X(simulate) X(profile) X(advise) X(import) X(list) X(help)

/* Exit codes, the same for every verb. */
enum {
    EXIT_OK = 0,
    EXIT_FOUND = 1, /* it worked, and the answer is no: check found violations, a comparison found a difference */
    EXIT_USAGE = 2,
    EXIT_FAILED = 3,  /* a file cannot be read or written, a program cannot be run */
    EXIT_DAMAGED = 4, /* a trace lacks parts; what is whole was used */
};

/* To every verb main gives what it says here: standard input, output and error are open; SIGPIPE ends the program
 * quietly; at the end standard output is flushed, and what could not be written is an error. */
struct command {
    const char *name;
    const char *summary;         /* one line, no full stop */
    const char *operands;        /* "TRACE", "[OPTION…] -- PROGRAM [ARGUMENT…]" */
    const struct opt *options;   /* ends with a NULL name; --help and --format are added where they apply */
    const char *const *examples; /* pairs: command line, what it does; ends with NULL */
    const char **format;         /* not NULL: the verb has --format, and this is where the choice goes */
    bool passes_on;              /* all arguments are operands, but for a --help that stands alone */
    int (*run)(int operands, char **operand); /* operand[0 …]; returns an exit code */
};

#define X(name) extern const struct command cmd_##name;
COMMANDS(X)
#undef X

const struct command *command_find(const char *name); /* NULL when there is none */
const struct command *command_at(size_t i);           /* NULL at the end */
const char *command_nearest(const char *word);        /* the name of the verb that may have been meant, or NULL */

/* The verb's options with --format, if it has it, and --help, which sets *help; to be freed. */
struct opt *command_options(const struct command *c, bool *help);

/* Where `as`, the runtime and the machine are: beside the command in a build, or installed. To be freed; NULL: nowhere. */
char *library_folder(struct peet_err *err);

/* The whole command line; an exit code. */
int command_main(int argc, char **argv);

/* What `peet help` and `peet help VERB` say. */
void help_all(FILE *out);
void help_command(const struct command *c, FILE *out);

/* "peet: text" or "peet: warning: text" on standard error, in colour on a terminal, controls made visible. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* complain(err->text) and the exit code that fits its kind. */
int fail(const struct peet_err *err);

/* "peet VERB: text" and where help is; returns EXIT_USAGE. A NULL c: of peet itself. */
int usage_error(const struct command *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
