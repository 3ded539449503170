/* SPDX-License-Identifier: MIT */
/* The verbs of peet. A new verb is one file, cli/cmd_VERB.c, that defines `const struct command cmd_VERB` as its last thing, one line in
 * COMMANDS, and one manual page, docs/man/peet-VERB.1.scd: ARCHITECTURE.md, "Adding a thing". Only code in this folder prints or exits. See docs/design/command.md. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/opt.h"
#include "peet/err.h"

#define COMMANDS(X) \
    X(cc) \
    X(cxx) \
    X(fortran) \
    X(as) \
    X(record) \
    X(info) \
    X(study) X(compare) X(dump) X(check) X(simulate) X(profile) X(slack) X(advise) X(litmus) X(import) X(list) X(help)

/* Exit codes, the same for every verb. */
enum {
    EXIT_OK = 0,
    EXIT_FOUND = 1, /* done, and the answer is no: violations or differences were found */
    EXIT_USAGE = 2,
    EXIT_FAILED = 3,  /* a file cannot be read or written, a program cannot be run */
    EXIT_DAMAGED = 4, /* done, but a trace lacks parts; what is whole was used */
};

struct command_state; /* completed by each verb: the values of its options */

/* The value of an option in a verb's table: a member of its state. */
#define OPTION(member) ((void *)offsetof(struct command_state, member))

/* A verb. It can rely on this: standard input, output and error are open; SIGPIPE ends the program without a message; at the end standard
 * output is flushed, and a write error is reported; lists of options are released. */
struct command {
    const char *name;
    const char *summary;                  /* one line, no full stop */
    const char *operands;                 /* "TRACE", "[OPTION…] -- PROGRAM [ARGUMENT…]" */
    const struct opt *options;            /* values are OPTION; ends with a NULL name; --help is added; NULL: none */
    size_t state_size;                    /* bytes of struct command_state; 0: none */
    const struct command_state *defaults; /* NULL: zeros */
    const char *const *examples;          /* pairs: command line, what it does; ends with NULL */
    bool passes_on;                       /* all arguments are operands, unless --help is the only one */
    /* For options of studies. init makes what they point into; more writes them to ret, unless it is NULL, and returns their number; they are
     * listed before the last one of `options`; release frees what init made. NULL: there are none. */
    void (*init)(struct command_state *s);
    size_t (*more)(struct command_state *s, struct opt *ret);
    void (*release)(struct command_state *s);
    int (*run)(struct command_state *s, int operands, char **operand); /* operand[0 …]; returns an exit code */
};

#define X(name) extern const struct command cmd_##name;
COMMANDS(X)
#undef X

const struct command *command_find(const char *name); /* NULL: there is none */
const struct command *command_at(size_t i);           /* NULL at the end */
const char *command_nearest(const char *word);        /* name of the most similar verb; NULL: none is similar */

/* The option --format, whose value is the member `format` of the state, "text" by default. */
extern const char *const command_formats[];
#define FORMAT_OPTION \
    { \
        .name = "format", .type = OPT_CHOICE, .value = OPTION(format), .help = "how to print (text)", \
        .choices = command_formats \
    }

struct command_state *command_state_new(const struct command *c);
void command_state_free(const struct command *c, struct command_state *s);

/* All options of a verb, bound to its state, with --help, which sets *help; to be freed. */
struct opt *command_options(const struct command *c, struct command_state *s, bool *help);

/* Copies options whose values are offsets in a struct to ret, with values in the struct at base. Returns their number; ret NULL: counts only. */
size_t command_bind(struct opt *ret, const struct opt *options, void *base);

/* The folder of as, the runtime and the machine: beside the command in a build, or installed. To be freed; NULL: there is none. */
char *library_folder(struct peet_err *err);

/* Runs a whole command line; returns an exit code. */
int command_main(int argc, char **argv);

/* The texts of `peet help` and `peet help VERB`. */
void help_all(FILE *out);
void help_command(const struct command *c, FILE *out);

/* "peet: text" or "peet: warning: text" on standard error, in colour on a terminal, control characters made visible. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints err->text as complain does; returns the exit code for its kind. */
int fail(const struct peet_err *err);

/* Prints "peet VERB: text" and where help is; returns EXIT_USAGE. A NULL c: peet itself. */
int usage_error(const struct command *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
