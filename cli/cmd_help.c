/* SPDX-License-Identifier: MIT */
/* peet help, made from the tables of verbs and options. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/version.h"
#include "cli/cli.h"

enum { LABEL_COLUMNS = 30 }; /* longer labels of options have their help on the next line */

struct command_state {
    bool list;            /* print the names of the verbs */
    const char *complete; /* verb whose options are printed; NULL: none */
};

static size_t text_columns(const char *s)
{
    return utf8_show(s, SIZE_MAX, NULL);
}

void help_all(FILE *out)
{
    int widest = 0;

    for (size_t i = 0; command_at(i); i++)
        if ((int)strlen(command_at(i)->name) > widest)
            widest = (int)strlen(command_at(i)->name);
    fprintf(out, "peet %s: traces of parallel programs, and what can be learnt from them\n\n", PEET_VERSION);
    fputs("usage: peet VERB [OPTION…] [OPERAND…]\n"
          "       peet --help | --version\n\n"
          "verbs:\n",
          out);
    for (size_t i = 0; command_at(i); i++)
        fprintf(out, "  %-*s  %s\n", widest, command_at(i)->name, command_at(i)->summary);
    fputs("\n'peet help VERB' explains a verb, 'man peet' the rest.\n", out);
}

static void help_options(const struct opt *options, FILE *out)
{
    char label[160];
    size_t widest = 0;

    for (const struct opt *o = options; o->name; o++) {
        opt_label(o, label, sizeof label);
        size_t n = text_columns(label);
        if (n > widest && n <= LABEL_COLUMNS)
            widest = n;
    }
    fputs("\noptions:\n", out);
    for (const struct opt *o = options; o->name; o++) {
        opt_label(o, label, sizeof label);
        size_t n = text_columns(label);
        fprintf(out, "  %s%s%*s%s\n", label, n > widest ? "\n  " : "", (int)(widest - (n > widest ? 0 : n) + 2), "",
                o->help);
    }
}

void help_command(const struct command *c, FILE *out)
{
    bool ignored;
    struct command_state *s = command_state_new(c);
    struct opt *options = command_options(c, s, &ignored);
    const char *operands = c->operands ? c->operands : "";

    fprintf(out, "peet %s: %s\n\n", c->name, c->summary);
    fprintf(out, "usage: peet %s%s%s%s\n", c->name, strstr(operands, "[OPTION") ? "" : " [OPTION…]",
            *operands ? " " : "", operands);
    help_options(options, out);
    free(options);
    command_state_free(c, s);
    if (c->examples && c->examples[0])
        fputs("\nexamples:\n", out);
    for (size_t i = 0; c->examples && c->examples[i]; i += 2)
        fprintf(out, "  %s\n      %s\n", c->examples[i], c->examples[i + 1]);
    fputs("\nexit codes:\n"
          "  0  done\n"
          "  1  done, and the answer is no: violations or differences were found\n"
          "  2  wrong usage\n"
          "  3  failed: a file cannot be read or written, or is no trace\n"
          "  4  done, but a trace lacks parts; what is whole was used\n",
          out);
}

/* One option per line for completion scripts: "--flag", "--option=ARG" or "--option CHOICE CHOICE…". */
static void help_list_options(const struct command *c)
{
    bool ignored;
    struct command_state *s = command_state_new(c);
    struct opt *options = command_options(c, s, &ignored);

    for (const struct opt *o = options; o->name; o++) {
        printf("--%s", o->name);
        if (o->choices)
            for (size_t i = 0; o->choices[i]; i++)
                printf(" %s", o->choices[i]);
        else if (o->type != OPT_FLAG)
            printf("=%s", o->arg ? o->arg : "VALUE");
        putchar('\n');
    }
    free(options);
    command_state_free(c, s);
}

static int help_unknown(const char *verb)
{
    const char *near = command_nearest(verb);

    if (near)
        return usage_error(&cmd_help, "there is no verb '%s'; did you mean '%s'?", verb, near);
    return usage_error(&cmd_help, "there is no verb '%s'", verb);
}

static int help_main(struct command_state *s, int operands, char **operand)
{
    const char *verb = s->complete ? s->complete : operands ? operand[0] : NULL;
    const struct command *c = verb ? command_find(verb) : NULL;

    if (operands > 1 || (operands && (s->list || s->complete)))
        return usage_error(&cmd_help, "too much is given: '%s'", operand[operands - 1]);
    if (verb && !c)
        return help_unknown(verb);
    if (s->list)
        for (size_t i = 0; command_at(i); i++)
            puts(command_at(i)->name);
    else if (s->complete)
        help_list_options(c);
    else if (c)
        help_command(c, stdout);
    else
        help_all(stdout);
    return EXIT_OK;
}

static const struct opt options[] = {
    { .name = "list", .type = OPT_FLAG, .value = OPTION(list), .help = "print the names of the verbs, one per line" },
    { .name = "complete",
      .type = OPT_STRING,
      .arg = "VERB",
      .value = OPTION(complete),
      .help = "print the options of a verb, one per line, for completion scripts" },
    { 0 },
};

static const char *const examples[] = {
    "peet help info",
    "explain the verb info, as does peet info --help",
    NULL,
};

const struct command cmd_help = {
    .name = "help",
    .summary = "explain a verb, or list all verbs",
    .operands = "[VERB]",
    .options = options,
    .state_size = sizeof(struct command_state),
    .examples = examples,
    .run = help_main,
};
