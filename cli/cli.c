/* SPDX-License-Identifier: MIT */
/* The table of verbs, their options, and messages. */
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

const char *const command_formats[] = {
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

/* ---- options ---- */

struct command_state *command_state_new(const struct command *c)
{
    struct command_state *s = mem_alloc(c->state_size ? c->state_size : 1, 1);

    if (c->defaults)
        memcpy(s, c->defaults, c->state_size);
    if (c->init)
        c->init(s);
    return s;
}

void command_state_free(const struct command *c, struct command_state *s)
{
    bool help;
    struct opt *options = command_options(c, s, &help);

    for (const struct opt *o = options; o->name; o++)
        if (o->type == OPT_LIST || o->type == OPT_EACH)
            opt_list_release(o->value);
    free(options);
    if (c->release)
        c->release(s);
    free(s);
}

size_t command_bind(struct opt *ret, const struct opt *options, void *base)
{
    size_t n = 0;

    for (; options && options[n].name; n++)
        if (ret) {
            ret[n] = options[n];
            ret[n].value = (char *)base + (uintptr_t)options[n].value;
        }
    return n;
}

struct opt *command_options(const struct command *c, struct command_state *s, bool *help)
{
    size_t own = command_bind(NULL, c->options, s), more = c->more ? c->more(s, NULL) : 0, first = own - (more > 0);
    struct opt *o = mem_alloc(own + more + 2, sizeof *o);

    command_bind(o, c->options, s);
    if (more) {
        o[first + more] = o[first];
        c->more(s, o + first);
    }
    o[own + more] =
        (struct opt){ .name = "help", .letter = 'h', .type = OPT_FLAG, .value = help, .help = "print this text" };
    return o;
}

/* ---- messages ---- */

static void print_message(const char *source, const char *kind, const char *colour, const char *format, va_list ap)
    __attribute__((format(printf, 4, 0)));

static void print_message(const char *source, const char *kind, const char *colour, const char *format, va_list ap)
{
    bool coloured = view_style_of(stderr).colour;
    char *text = mem_vformat(format, ap);

    fflush(stdout); /* earlier output comes first */
    fprintf(stderr, "%s%s%s: ", coloured ? colour : "", source, kind);
    fputs(coloured ? "\033[0m" : "", stderr);
    utf8_show(text, SIZE_MAX, stderr);
    fputc('\n', stderr);
    free(text);
}

void complain(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    print_message("peet", "", "\033[1;31m", format, ap);
    va_end(ap);
}

void warn(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    print_message("peet", ": warning", "\033[1;33m", format, ap);
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
    char source[64];
    va_list ap;

    snprintf(source, sizeof source, "peet%s%s", c ? " " : "", c ? c->name : "");
    va_start(ap, format);
    print_message(source, "", "\033[1;31m", format, ap);
    va_end(ap);
    fprintf(stderr, "see 'peet help%s%s'\n", c ? " " : "", c ? c->name : "");
    return EXIT_USAGE;
}
