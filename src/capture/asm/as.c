/* SPDX-License-Identifier: MIT */
/* The verb as: reads the assembler's command line, puts an instrumented copy in the place of its input, runs it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/asm/unit.h"

/* What the command line says. */
struct call {
    struct asm_options options;
    char **argument; /* for the real assembler, from its name on; ends with NULL */
    size_t arguments;
    size_t input; /* which one; 0: none */
    bool other_machine;
};

static void add_argument(struct call *c, char *text)
{
    c->argument = mem_room(c->argument, c->arguments + 1, sizeof *c->argument);
    c->argument[c->arguments++] = text;
    c->argument[c->arguments] = NULL;
}

static bool takes_value(const char *option)
{
    static const char *const those[] = {
        "-o", "-I", "--defsym", "--MD", "--debug-prefix-map", "-G", "--hash-size", NULL
    };

    for (size_t i = 0; those[i]; i++)
        if (!strcmp(option, those[i]))
            return true;
    return false;
}

/* One of our own options. */
static bool take_own(struct call *c, const char *option)
{
    static const char level[] = "--peet-level=";

    if (!strcmp(option, "--peet-brute"))
        c->options.all_addresses = true;
    else if (!strcmp(option, "--peet-library"))
        c->options.model = ASM_LIBRARY;
    else if (!strcmp(option, "--peet-absolute"))
        c->options.model = ASM_ABSOLUTE;
    else if (!strncmp(option, level, sizeof level - 1) && level_find(option + sizeof level - 1))
        c->options.level = level_find(option + sizeof level - 1);
    else
        return false;
    return true;
}

static void read_arguments(struct call *c, int arguments, char **argument)
{
    for (int i = 0; i < arguments; i++) {
        if (take_own(c, argument[i]))
            continue;
        bool is_input = argument[i][0] != '-' || !argument[i][1];
        if (is_input && !c->input)
            c->input = c->arguments;
        c->other_machine |= !strcmp(argument[i], "--32") || !strcmp(argument[i], "--x32");
        add_argument(c, argument[i]);
        if (takes_value(argument[i]) && i + 1 < arguments)
            add_argument(c, argument[++i]);
    }
}

/* The whole file, with a newline at its end; to be freed. */
static int read_file(const char *path, char **ret, size_t *ret_size, struct peet_err *err)
{
    FILE *in = strcmp(path, "-") != 0 ? fopen(path, "r") : stdin;
    size_t size = 0, room = 1 << 16, n;
    char *text = in ? malloc(room) : NULL;

    if (!in)
        return err_sys(err, errno, "%s", path);
    while (text && (n = fread(text + size, 1, room - size - 1, in)) > 0) {
        size += n;
        char *more = room - size > 1 ? text : realloc(text, room *= 2);
        if (!more)
            free(text);
        text = more;
    }
    int r = !text        ? err_set(err, PEET_ERR_MEMORY, "%s: no memory", path)
            : ferror(in) ? err_sys(err, EIO, "%s", path)
                         : 0;
    if (in != stdin)
        fclose(in);
    if (r < 0) {
        free(text);
        return r;
    }
    text[size++] = '\n';
    *ret = text;
    *ret_size = size;
    return 0;
}

/* ---- one file ---- */

static void warn_about(const struct asm_unit *u, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void warn_about(const struct asm_unit *u, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    char *text = mem_vformat(format, ap);
    va_end(ap);
    u->options->warn(text);
    free(text);
}

static void warn_of_gaps(const struct asm_unit *u)
{
    uint32_t function = ASM_NONE;

    for (size_t i = 0; i < u->functions; i++) {
        const struct asm_symbol *y = &u->text.symbol[u->function[i].symbol];
        if (u->function[i].why_not)
            warn_about(u, "%s: function %.*s is not recorded: %s", u->text.file, (int)y->length, y->name,
                       u->function[i].why_not);
    }
    for (size_t i = 0; i < u->text.insns; i++) {
        const struct asm_insn *in = &u->insn[i];
        if (!in->opaque || in->opaque_call || in->function == function || !asm_is_recorded(u, in->function)
            || asm_is_rewritten_by_linkers(u, in))
            continue;
        function = in->function;
        const struct asm_symbol *y = &u->text.symbol[u->function[function].symbol];
        const struct asm_statement *s = &u->text.statement[in->statement];
        warn_about(u, "%s: function %.*s: instructions like '%.*s' are not recorded", u->text.file, (int)y->length,
                   y->name, (int)s->length, s->text);
    }
}

/* Why a file stays as it is, or NULL. */
static const char *why_not(const struct asm_text *t)
{
    if (!t->is_gcc)
        return "GCC did not write it";
    if (t->other_syntax)
        return "it is in Intel's syntax";
    if (t->uses_registers)
        return "it uses %r14 or %r15, which belong to peet";
    return NULL;
}

static int instrument(struct asm_unit *u, FILE *out, struct peet_err *err)
{
    u->insn = mem_alloc(u->text.insns + 1, sizeof *u->insn);
    int r = asm_unit_assemble(u, err);
    if (r < 0)
        return r;
    asm_unit_find_functions(u);
    asm_unit_find_references(u);
    asm_unit_find_copies(u);
    asm_unit_find_returns(u);
    asm_unit_find_flags(u);
    if ((r = asm_unit_plan(u, err)) < 0)
        return r;
    warn_of_gaps(u);
    asm_unit_emit(u, out);
    return 0;
}

static void release(struct asm_unit *u)
{
    asm_text_release(&u->text);
    x86_layout_release(&u->layout);
    free(u->insn);
    free(u->function);
    free(u->block);
}

/* Writes what is to be assembled in place of the text: instrumented, or as it is. */
static int rewrite(const struct call *c, const char *file, const char *text, size_t size, FILE *out,
                   struct peet_err *err)
{
    struct asm_unit u = { .options = &c->options };
    int r = 0;

    asm_text_scan(&u.text, file, text, size);
    const char *why = why_not(&u.text);
    if (why && u.text.insns && asm_level(&u) != LEVEL_events)
        warn_about(&u, "%s: not recorded: %s", file, why);
    if (why || u.text.insns == 0 || asm_level(&u) == LEVEL_events)
        fwrite(text, 1, size, out);
    else
        r = instrument(&u, out, err);
    release(&u);
    return r;
}

static int assemble(struct call *c, char *file, struct peet_err *err)
{
    char *path, *text = NULL;
    size_t size = 0;
    int r = read_file(file, &text, &size, err);

    if (r < 0)
        return r;
    FILE *out = asm_temporary(&path, err);
    if (!out) {
        free(text);
        return err->code;
    }
    r = rewrite(c, file, text, size, out, err);
    free(text);
    if (fclose(out) && r == 0)
        r = err_sys(err, errno, "%s", path);
    const char *keep = getenv("PEET_AS_KEEP"); /* for who looks at the result */
    if (c->input)
        c->argument[c->input] = path;
    else
        add_argument(c, path);
    if (r == 0)
        r = asm_run(c->argument, err);
    if (keep && *keep)
        rename(path, keep);
    else
        unlink(path);
    free(path);
    return r;
}

int asm_run_as(int arguments, char **argument, const struct asm_options *options, struct peet_err *err)
{
    struct call c = { .options = *options };
    char *name = mem_string(options->assembler), standard_input[] = "-";
    int r;

    add_argument(&c, name);
    read_arguments(&c, arguments, argument);
    bool only_asks = arguments == 0 || (!c.input && !strncmp(argument[arguments - 1], "--v", 3));
    if (c.other_machine || only_asks)
        r = asm_run(c.argument, err);
    else
        r = assemble(&c, c.input ? c.argument[c.input] : standard_input, err);
    free(c.argument);
    free(name);
    return r;
}
