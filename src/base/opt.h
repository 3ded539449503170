/* SPDX-License-Identifier: MIT */
/* Command-line options as a table: parsing, help text and completion all come from it. */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include <stddef.h>
#include <stdint.h>

#include "peet/err.h"

enum opt_type {
    OPT_FLAG,   /* value: bool */
    OPT_STRING, /* value: const char * */
    OPT_NUMBER, /* value: uint64_t; decimal or 0x…; may end in k, m, g (2^10 …) */
    OPT_CHOICE, /* value: const char *, one of choices */
    OPT_LIST, /* value: struct opt_list; may be given several times, and with commas; items are among choices, if there are any */
    OPT_EACH, /* value: struct opt_list; may be given several times; commas are part of the value */
};

/* The values of an option that may be given several times. */
struct opt_list {
    char **item; /* copies, owned by the list */
    size_t count;
};

/* An option. A table of options ends with an entry whose name is NULL. Options may be before, between and after operands;
 * --name=value, --name value, -x value, -xvalue and -xyz (three flags) all work, and "--" ends the options. "-" is an
 * operand. Names cannot be shortened: a script must not break when an option is added. */
struct opt {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum opt_type type;
    const char *arg;            /* how help calls the value: "FILE" */
    void *value;                /* where the parsed value is written; its type follows from `type` */
    const char *help;           /* one line */
    const char *const *choices; /* ends with NULL; NULL for other types */
};

/* Reads argv[1 …]. On success argv[1] … argv[*ret_operands] are the operands, in order. An unknown option or choice is an
 * error PEET_ERR_USAGE that names the nearest known one; options before it may have been stored.
 * The words are not changed, so that /proc/self/cmdline, which shows them, can be parsed again. */
int opt_parse(const struct opt *table, int argc, char **argv, int *ret_operands, struct peet_err *err);

/* The one of n names, given by name_of(i, context), that is nearest to word; NULL: none is similar. */
const char *opt_nearest(const char *word, size_t n, const char *(*name_of)(size_t i, const void *context),
                        const void *context);

void opt_list_release(struct opt_list *list);

/* The option's label in help: "-t, --thread LIST", "    --format text|json|csv". Returns as snprintf does. */
int opt_label(const struct opt *o, char *buffer, size_t size);

#endif
