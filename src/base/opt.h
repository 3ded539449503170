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
    OPT_LIST,   /* value: struct opt_list; may be given several times, and with commas; choices, if any, hold */
    OPT_EACH,   /* value: struct opt_list; may be given several times, and commas are part of what is given */
};

/* The values of an option that may be given several times. */
struct opt_list {
    char **item; /* copies, owned by the list */
    size_t count;
};

/* The table ends with an entry whose name is NULL. Options may stand before, between and behind the operands;
 * --name=value, --name value, -x value, -xvalue and -xyz (three flags) all work, and "--" ends the options. "-" is an
 * operand. Names cannot be shortened: a script must not break when an option is added. */
struct opt {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum opt_type type;
    const char *arg; /* how help calls the value: "FILE" */
    void *value;
    const char *help;           /* one line */
    const char *const *choices; /* ends with NULL; NULL for other types */
};

/* Reads argv[1 …]. On success *ret_operands of them, in order, stand in argv[1 …]. An unknown option or choice is an
 * error of the kind PEET_ERR_USAGE that names the nearest known one; options in front of it may have been stored.
 * The words themselves stay as they are: /proc/self/cmdline, which is read from them, can be parsed once more. */
int opt_parse(const struct opt *table, int argc, char **argv, int *ret_operands, struct peet_err *err);

/* The one of the n names (taken from `name_of(i, context)`) that is nearest to word, or NULL when none is near. */
const char *opt_nearest(const char *word, size_t n, const char *(*name_of)(size_t i, const void *context),
                        const void *context);

void opt_list_release(struct opt_list *list);

/* How help names the option: "-t, --thread LIST", "    --format text|json|csv". Returns what snprintf returns. */
int opt_label(const struct opt *o, char *buffer, size_t size);

#endif
