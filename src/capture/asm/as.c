/* SPDX-License-Identifier: MIT */
/* The verb as: reads the assembler's command line, replaces its input by an instrumented copy, and runs the
 * assembler. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/asm/unit.h"

/* An assembler's command line. */
struct as_call {
    struct asm_options options;
    char **argument; /* for the real assembler: its name, then the arguments; ends with NULL */
    size_t arguments;
    size_t input; /* index of the input file in `argument`; 0: none */
    bool is_other_machine;
};

static void as_add_argument(struct as_call *c, char *text)
{
    c->argument = mem_room(c->argument, c->arguments + 1, sizeof *c->argument);
    c->argument[c->arguments++] = text;
    c->argument[c->arguments] = NULL;
}

static bool as_takes_value(const char *option)
{
    static const char *const those[] = {
        "-o", "-I", "--defsym", "--MD", "--debug-prefix-map", "-G", "--hash-size", NULL
    };

    for (size_t i = 0; those[i]; i++)
        if (!strcmp(option, those[i]))
            return true;
    return false;
}

/* Takes one of peet's options; false: it is none. */
static bool as_take_own_option(struct as_call *c, const char *option)
{
    static const char level[] = "--peet-level=";

    if (!strcmp(option, "--peet-brute"))
        c->options.all_addresses = true;
    else if (!strcmp(option, "--peet-order"))
        c->options.all_addresses = c->options.has_hooks = true;
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

static void as_read_arguments(struct as_call *c, int arguments, char **argument)
{
    for (int i = 0; i < arguments; i++) {
        if (as_take_own_option(c, argument[i]))
            continue;
        bool is_input = argument[i][0] != '-' || !argument[i][1];
        if (is_input && !c->input)
            c->input = c->arguments;
        c->is_other_machine |= !strcmp(argument[i], "--32") || !strcmp(argument[i], "--x32");
        as_add_argument(c, argument[i]);
        if (as_takes_value(argument[i]) && i + 1 < arguments)
            as_add_argument(c, argument[++i]);
    }
}

/* Reads a whole file and adds a newline. *ret is to be freed. */
static int as_read_file(const char *path, char **ret, size_t *ret_size, struct peet_err *err)
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

static void as_warn(const struct asm_unit *u, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void as_warn(const struct asm_unit *u, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    char *text = mem_vformat(format, ap);
    va_end(ap);
    u->options->warn(text);
    free(text);
}

static void as_warn_of_gaps(const struct asm_unit *u)
{
    uint32_t function = ASM_NONE;

    for (size_t i = 0; i < u->functions; i++) {
        const struct asm_symbol *y = &u->text.symbol[u->function[i].symbol];
        if (u->function[i].why_unrecorded)
            as_warn(u, "%s: function %.*s is not recorded: %s", u->text.file, (int)y->length, y->name,
                    u->function[i].why_unrecorded);
    }
    for (size_t i = 0; i < u->text.insns; i++) {
        const struct asm_insn *in = &u->insn[i];
        if (!in->is_opaque || in->in_tls_sequence || in->function == function || !asm_is_recorded(u, in->function)
            || asm_is_rewritten_by_linkers(u, in))
            continue;
        function = in->function;
        const struct asm_symbol *y = &u->text.symbol[u->function[function].symbol];
        const struct asm_statement *s = &u->text.statement[in->statement];
        as_warn(u, "%s: function %.*s: instructions like '%.*s' are not recorded", u->text.file, (int)y->length,
                y->name, (int)s->length, s->text);
    }
}

/* Why a file is not instrumented; NULL: it is. */
static const char *as_why_unchanged(const struct asm_text *t)
{
    if (!t->is_gcc)
        return "GCC did not write it";
    if (t->is_intel_syntax)
        return "it is in Intel's syntax";
    if (t->uses_reserved)
        return "it uses %r14 or %r15, which belong to peet";
    return NULL;
}

static int as_instrument_unit(struct asm_unit *u, FILE *out, struct peet_err *err)
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
    as_warn_of_gaps(u);
    asm_unit_emit(u, out);
    return 0;
}

static void as_release_unit(struct asm_unit *u)
{
    asm_text_release(&u->text);
    x86_layout_release(&u->layout);
    free(u->insn);
    free(u->function);
    free(u->block);
}

/* Writes the text to be assembled: instrumented, or unchanged. */
static int as_rewrite(const struct as_call *c, const char *file, const char *text, size_t size, FILE *out,
                      struct peet_err *err)
{
    struct asm_unit u = { .options = &c->options };
    int r = 0;

    asm_text_scan(&u.text, file, text, size);
    const char *why = as_why_unchanged(&u.text);
    if (why && u.text.insns && asm_level(&u) != LEVEL_events)
        as_warn(&u, "%s: not recorded: %s", file, why);
    if (why || u.text.insns == 0 || asm_level(&u) == LEVEL_events)
        fwrite(text, 1, size, out);
    else
        r = as_instrument_unit(&u, out, err);
    as_release_unit(&u);
    return r;
}

static int as_assemble(struct as_call *c, char *file, struct peet_err *err)
{
    char *path, *text = NULL;
    size_t size = 0;
    int r = as_read_file(file, &text, &size, err);

    if (r < 0)
        return r;
    FILE *out = asm_temporary_file(&path, err);
    if (!out) {
        free(text);
        return err->code;
    }
    r = as_rewrite(c, file, text, size, out, err);
    free(text);
    if (fclose(out) && r == 0)
        r = err_sys(err, errno, "%s", path);
    const char *keep = getenv("PEET_AS_KEEP"); /* the user wants to look at the result */
    if (c->input)
        c->argument[c->input] = path;
    else
        as_add_argument(c, path);
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
    struct as_call c = { .options = *options };
    char *name = mem_string(options->assembler), standard_input[] = "-";
    int r;

    as_add_argument(&c, name);
    as_read_arguments(&c, arguments, argument);
    bool only_asks = arguments == 0 || (!c.input && !strncmp(argument[arguments - 1], "--v", 3));
    if (c.is_other_machine || only_asks)
        r = asm_run(c.argument, err);
    else
        r = as_assemble(&c, c.input ? c.argument[c.input] : standard_input, err);
    free(c.argument);
    free(name);
    return r;
}
