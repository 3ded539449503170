/* SPDX-License-Identifier: MIT */
/* What all verbs share: the table of verbs, and how they complain. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "view/view.h"

static const struct command *const commands[] = {
#define X(name) &cmd_##name,
    COMMANDS(X)
#undef X
};
#define X(name) +1
enum { COUNT = COMMANDS(X) };
#undef X

static const char *const formats[] = {
#define X(name) #name,
    VIEWS(X)
#undef X
        NULL,
};

const struct command *command_at(size_t i)
{
    return i < COUNT ? commands[i] : NULL;
}

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

static const char *command_name(size_t i, const void *context)
{
    (void)context;
    return commands[i]->name;
}

const char *command_nearest(const char *word)
{
    return opt_nearest(word, COUNT, command_name, NULL);
}

struct opt *command_options(const struct command *c, bool *help)
{
    size_t n = 0;

    while (c->options && c->options[n].name)
        n++;
    struct opt *o = mem_alloc(n + 3, sizeof *o);
    if (n)
        memcpy(o, c->options, n * sizeof *o);
    if (c->format)
        o[n++] = (struct opt){
            .name = "format", .type = OPT_CHOICE, .value = c->format, .help = "how to print (text)", .choices = formats
        };
    o[n] = (struct opt){ .name = "help", .letter = 'h', .type = OPT_FLAG, .value = help, .help = "print this text" };
    return o;
}

/* ---- messages ---- */

static void say(const char *who, const char *kind, const char *colour, const char *format, va_list ap)
    __attribute__((format(printf, 4, 0)));

static void say(const char *who, const char *kind, const char *colour, const char *format, va_list ap)
{
    bool coloured = view_style_of(stderr).colour;
    char *text = mem_vformat(format, ap);

    fflush(stdout); /* what came before stays before */
    fprintf(stderr, "%s%s%s: ", coloured ? colour : "", who, kind);
    fputs(coloured ? "\033[0m" : "", stderr);
    utf8_show(text, SIZE_MAX, stderr);
    fputc('\n', stderr);
    free(text);
}

void complain(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    say("peet", "", "\033[1;31m", format, ap);
    va_end(ap);
}

void warn(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    say("peet", ": warning", "\033[1;33m", format, ap);
    va_end(ap);
}

int fail(const struct peet_err *err)
{
    complain("%s", err->text);
    switch (err->code) {
    case PEET_ERR_USAGE: return EXIT_USAGE;
    case PEET_ERR_DAMAGED: return EXIT_DAMAGED;
    default: return EXIT_FAILED;
    }
}

int usage_error(const struct command *c, const char *format, ...)
{
    char who[64];
    va_list ap;

    snprintf(who, sizeof who, "peet%s%s", c ? " " : "", c ? c->name : "");
    va_start(ap, format);
    say(who, "", "\033[1;31m", format, ap);
    va_end(ap);
    fprintf(stderr, "see 'peet help%s%s'\n", c ? " " : "", c ? c->name : "");
    return EXIT_USAGE;
}
