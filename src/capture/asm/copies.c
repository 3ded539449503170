/* SPDX-License-Identifier: MIT */
/* The original copy of a function: the compiler's code, for programs that are not recorded
 * (docs/design/instrumentation.md). It is placed inside the function, before the label that ends it for debuggers, with
 * its own frames, lines, jump tables and exception tables.
 * All statements from the function's label to its .size are written again, with other names for the labels between
 * them. The address of the function does not change. A function has no original copy if other code refers to a label in
 * it, or if its code takes the address of a label, because the other copy may use that address.
 * Constant tables of labels to which only their function refers are copied, too. The function may store what it reads
 * there. So the test at its entry selects the copy, whatever the caller is.
 * Left out: debuggers find lines and functions of the original copy, but no inlined functions and no variables that
 * move. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "capture/asm/unit.h"

/* Directives that are written again in a copy, and those that are not. */
static const char COPIED_DIRECTIVES[] =
    " .loc .p2align .align .balign .text .section .pushsection .popsection .previous .byte .2byte .4byte .8byte .value .short "
    ".long .int .quad .uleb128 .sleb128 .string .ascii .zero .nops ";
static const char SINGLE_DIRECTIVES[] = " .type .file .globl .global .weak .hidden .local .protected .internal ";

/* Sections of data that compilers put into functions: tables. */
static bool is_table(const struct asm_section *s)
{
    static const char *const names[] = { ".rodata", ".data.rel.ro", ".gcc_except_table" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (s->name_length >= strlen(names[i]) && !memcmp(s->name, names[i], strlen(names[i])))
            return true;
    return s->is_code;
}

static bool is_cfi(const struct asm_statement *s)
{
    return s->length > 5 && !memcmp(s->text, ".cfi_", 5);
}

static bool is_label_within(const struct asm_unit *u, const struct asm_function *f, const struct asm_symbol *y)
{
    return y->statement != ASM_NONE && y->statement >= u->text.symbol[f->symbol].statement && y->statement < f->end;
}

/* Whether the symbol is a label of the function, but no function; or a table of such labels. */
static bool is_own_label(const struct asm_unit *u, const struct asm_function *f, uint32_t symbol)
{
    const struct asm_symbol *y = symbol == ASM_NONE ? NULL : &u->text.symbol[symbol];

    if (y && y->table_of != ASM_NONE)
        return &u->function[y->table_of] == f;
    return y && is_label_within(u, f, y) && (y->function == ASM_NONE || u->function[y->function].is_cold);
}

/* ---- which functions have copies ---- */

static const char *why_not_label(const struct asm_unit *u, uint32_t function, const struct asm_statement *s)
{
    const struct asm_symbol *y = &u->text.symbol[s->symbol];

    if (s->text[0] >= '0' && s->text[0] <= '9')
        return NULL;
    if (y->function == ASM_NONE ? y->is_global : u->function[y->function].family != function)
        return "others can reach a label in it";
    return y->statement == (uint32_t)(s - u->text.statement) ? NULL : "a label is there twice";
}

static const char *why_not_insn(const struct asm_unit *u, uint32_t function, const struct asm_statement *s)
{
    const struct asm_insn *in = s->insn == ASM_NONE ? NULL : &u->insn[s->insn];

    if (!in || in->function == ASM_NONE || u->function[in->function].family != function)
        return "it has instructions that are not its own";
    if (in->target != ASM_NONE)
        return NULL;
    const char *at = s->text + asm_operands(s), *end = s->text + s->length, *name;
    size_t length;
    while ((name = asm_next_name(&at, end, &length))) {
        uint32_t symbol = asm_symbol_find(&u->text, name, length);
        if (is_own_label(u, &u->function[function], symbol)
            && u->text.section[u->text.statement[u->text.symbol[symbol].statement].section].is_code
            && !in->is_uninterpreted)
            return "it takes the address of a label";
    }
    return NULL;
}

/* Why the statement cannot be written twice; NULL: it can. */
static const char *why_not_statement(const struct asm_unit *u, uint32_t function, const struct asm_statement *s)
{
    switch (s->kind) {
    case ASM_LABEL: return why_not_label(u, function, s);
    case ASM_INSN: return why_not_insn(u, function, s);
    case ASM_DIRECTIVE:
        if (is_cfi(s) || asm_is(s, ".loc"))
            return NULL;
        if (s->is_inline_asm || (!asm_is_one_of(s, COPIED_DIRECTIVES) && !asm_is_one_of(s, SINGLE_DIRECTIVES)))
            return "it has directives that may mean something else if they stand twice";
        return is_table(&u->text.section[s->section]) ? NULL : "it has data of its own";
    default: return NULL;
    }
}

/* Decides whether the statements of a recorded function can be written twice. */
static void find_why_one_copy(struct asm_unit *u, uint32_t function)
{
    struct asm_function *f = &u->function[function];
    uint32_t start = u->text.symbol[f->symbol].statement, ends = 0;
    bool has_insn = false;

    f->why_one_copy = NULL;
    for (uint32_t i = start; i < f->end && !f->why_one_copy; i++) {
        const struct asm_statement *s = &u->text.statement[i];
        f->why_one_copy = why_not_statement(u, function, s);
        has_insn |= s->insn != ASM_NONE;
        if (asm_is(s, ".cfi_endproc") && ends++ == 0)
            f->copy_after = i;
    }
    if (!has_insn)
        f->why_one_copy = "it is empty";
    if (ends != 1) /* parts of it are in other sections, or there is no unwinding information */
        f->copy_after = f->end - 1;
}

/* Whether the data at the symbol may be a table of a function's labels. */
static bool may_be_table(const struct asm_unit *u, uint32_t symbol)
{
    const struct asm_symbol *y = symbol == ASM_NONE ? NULL : &u->text.symbol[symbol];

    if (!y || y->is_global || y->is_function || y->statement == ASM_NONE)
        return false;
    const struct asm_section *s = &u->text.section[u->text.statement[y->statement].section];
    return !s->is_code && !s->is_exception_table && is_table(s);
}

/* Notes which functions' labels a statement mentions. Data after the symbol `in` may become such a function's table. */
static void note_label_mentions(struct asm_unit *u, const struct asm_statement *s, const uint32_t *owner, uint32_t in)
{
    bool is_table_entry = s->kind == ASM_DIRECTIVE && may_be_table(u, in);
    const char *at = s->text + (s->insn == ASM_NONE ? asm_word(s) : asm_operands(s)), *end = s->text + s->length, *name;
    uint32_t here = owner[s - u->text.statement];
    size_t length;

    while ((name = asm_next_name(&at, end, &length))) {
        uint32_t symbol = asm_symbol_find(&u->text, name, length);
        const struct asm_symbol *y = symbol == ASM_NONE ? NULL : &u->text.symbol[symbol];
        uint32_t there = y && y->statement != ASM_NONE ? owner[y->statement] : ASM_NONE;
        if (there == ASM_NONE || there == here || !is_own_label(u, &u->function[there], symbol))
            continue;
        uint32_t *of = is_table_entry ? &u->text.symbol[in].table_of : NULL;
        if (of && (*of == ASM_NONE || *of == there)) {
            *of = there;
            u->function[there].has_label_table = u->function[there].has_uninterpreted = true;
        } else {
            u->function[there].why_one_copy = "others refer to a label in it";
        }
    }
}

/* A function whose table other statements mention has one copy. */
static void note_table_mentions(struct asm_unit *u, const struct asm_statement *s, const uint32_t *owner)
{
    const char *at = s->text + (s->insn == ASM_NONE ? asm_word(s) : asm_operands(s)), *end = s->text + s->length, *name;
    size_t length;

    while ((name = asm_next_name(&at, end, &length))) {
        uint32_t symbol = asm_symbol_find(&u->text, name, length);
        uint32_t of = symbol == ASM_NONE ? ASM_NONE : u->text.symbol[symbol].table_of;
        if (of != ASM_NONE && owner[s - u->text.statement] != of)
            u->function[of].why_one_copy = "others refer to a table of its labels";
    }
}

static bool has_operands(const struct asm_unit *u, const struct asm_statement *s)
{
    if (s->insn != ASM_NONE || s->kind == ASM_INSN)
        return true;
    return s->kind == ASM_DIRECTIVE && !u->text.section[s->section].is_debug && !is_cfi(s)
           && !asm_is_one_of(s, " .loc .section .pushsection .size .type ");
}

/* Examines all mentions: labels first, then the tables that this finds. */
static void note_all_mentions(struct asm_unit *u, const uint32_t *owner)
{
    uint32_t *in = mem_alloc(u->text.sections, sizeof *in); /* symbol of the last label, by section */

    memset(in, 0xff, u->text.sections * sizeof *in);
    for (size_t i = 0; i < u->text.statements; i++) {
        const struct asm_statement *s = &u->text.statement[i];
        if (s->kind == ASM_LABEL)
            in[s->section] = s->symbol;
        if (has_operands(u, s))
            note_label_mentions(u, s, owner, in[s->section]);
    }
    for (size_t i = 0; i < u->text.statements; i++)
        if (has_operands(u, &u->text.statement[i]))
            note_table_mentions(u, &u->text.statement[i], owner);
    free(in);
}

void asm_unit_find_copies(struct asm_unit *u)
{
    uint32_t *owner = mem_alloc(u->text.statements + 1, sizeof *owner);

    memset(owner, 0xff, u->text.statements * sizeof *owner);
    for (uint32_t i = 0; i < u->functions; i++) {
        struct asm_function *f = &u->function[i];
        if (f->is_cold || !asm_is_recorded(u, i))
            continue;
        find_why_one_copy(u, i);
        for (uint32_t k = u->text.symbol[f->symbol].statement; k < f->end; k++)
            owner[k] = i;
    }
    note_all_mentions(u, owner);
    for (size_t i = 0; i < u->text.statements; i++) {
        const struct asm_statement *s = &u->text.statement[i];
        if (s->insn != ASM_NONE && owner[i] == ASM_NONE && asm_is_recorded(u, u->insn[s->insn].function))
            u->function[u->function[u->insn[s->insn].function].family].why_one_copy = "parts of it stand elsewhere";
    }
    for (size_t i = 0; i < u->functions; i++) {
        struct asm_function *f = &u->function[i];
        if (!f->is_cold && asm_is_recorded(u, (uint32_t)i) && (f->why_one_copy || f->has_uninterpreted))
            f->has_stub = true; /* for calls from copies of other functions */
    }
    free(owner);
}

bool asm_has_original_copy(const struct asm_unit *u, uint32_t function)
{
    const struct asm_function *f = &u->function[u->function[function].family];

    return asm_is_recorded(u, function) && !f->why_one_copy;
}

/* ---- writing copies ---- */

/* In exception tables, a label before a cold part stands for its beginning. */
static bool is_cold_start(const struct asm_copy *c, uint32_t section, uint32_t symbol)
{
    const struct asm_symbol *y = symbol == ASM_NONE ? NULL : &c->u->text.symbol[symbol];

    return y && c->u->text.section[section].is_exception_table && y->statement != ASM_NONE && y->function == ASM_NONE
           && c->u->text.section[c->u->text.statement[y->statement].section].is_code;
}

/* Writes text with other names for the function's labels. */
static void emit_renamed(const struct asm_copy *c, const struct asm_statement *s, size_t from)
{
    const char *text = s->text + from, *end = s->text + s->length, *at = text, *name;
    size_t length;

    while ((name = asm_next_name(&at, end, &length))) {
        uint32_t symbol = asm_symbol_find(&c->u->text, name, length);
        bool is_own = is_own_label(c->u, c->f, symbol);
        if (!is_own && !is_cold_start(c, s->section, symbol))
            continue;
        fprintf(c->out, "%.*s%s", (int)(name - text), text, c->prefix);
        if (is_own)
            fprintf(c->out, "%.*s", (int)length, name);
        else
            fprintf(c->out, "%u", c->f->symbol);
        text = name + length;
    }
    fprintf(c->out, "%.*s\n", (int)(end - text), text);
}

uint32_t asm_copy_target(const struct asm_copy *c, const struct asm_insn *in)
{
    uint32_t own = in->target == ASM_NONE ? ASM_NONE : asm_local_target(c->u, in->target);

    return own != ASM_NONE && (c->is_counting ? asm_has_counting_copy(c->u, own) : asm_has_original_copy(c->u, own))
               ? own
               : ASM_NONE;
}

static void emit_copied_insn(const struct asm_copy *c, const struct asm_statement *s)
{
    const struct asm_insn *in = &c->u->insn[s->insn];
    size_t n = asm_operands(s);

    fprintf(c->out, "\t%.*s", (int)n, s->text);
    if (asm_copy_target(c, in) == ASM_NONE) {
        emit_renamed(c, s, n);
    } else {
        const struct asm_symbol *y = &c->u->text.symbol[in->target];
        fprintf(c->out, "%s%.*s\n", c->prefix, (int)y->length, y->name);
    }
}

static void emit_copied_directive(const struct asm_copy *c, const struct asm_statement *s)
{
    const char *view = asm_is(s, ".loc") ? memmem(s->text, s->length, " view ", 6) : NULL;
    size_t n = asm_word(s);

    if (asm_is_one_of(s, SINGLE_DIRECTIVES))
        return;
    if (asm_is(s, ".cfi_startproc")
        && s->section != c->u->text.statement[c->u->text.symbol[c->f->symbol].statement].section)
        fprintf(c->out, "%s%u:\n", c->prefix, c->f->symbol);
    fprintf(c->out, "\t%.*s", (int)n, s->text);
    if (view || asm_is_one_of(s, " .section .pushsection "))
        fprintf(c->out, "%.*s\n", (int)(view ? (size_t)(view - s->text) - n : s->length - n), s->text + n);
    else
        emit_renamed(c, s, n);
}

void asm_copy_statement(const struct asm_copy *c, const struct asm_statement *s)
{
    bool is_number = s->text[0] >= '0' && s->text[0] <= '9';

    if (s->insn != ASM_NONE)
        emit_copied_insn(c, s);
    else if (s->kind == ASM_LABEL)
        fprintf(c->out, "%s%.*s\n", is_number ? "" : c->prefix, (int)s->length, s->text);
    else
        emit_copied_directive(c, s);
}

/* Writes a table of labels again, in its section. */
static void emit_label_table(const struct asm_copy *c, const struct asm_symbol *y)
{
    const struct asm_statement *first = c->u->text.statement, *at = &first[y->statement], *s = at;

    while (s > first && !asm_is_one_of(s, " .section .data .text "))
        s--;
    emit_copied_directive(c, s);
    fputs("\t.balign 32\n", c->out);
    asm_copy_statement(c, at);
    for (s = at + 1; s->kind == ASM_DIRECTIVE && s->section == at->section && asm_is_one_of(s, COPIED_DIRECTIVES)
                     && !asm_is_one_of(s, " .section .align .balign .p2align ");
         s++)
        emit_copied_directive(c, s);
}

void asm_emit_copies(const struct asm_unit *u, uint32_t function, FILE *out)
{
    const struct asm_function *f = &u->function[function];
    const struct asm_copy original = { .u = u, .f = f, .prefix = ASM_ORIGINAL, .out = out };

    fputs("\t.pushsection .text\n\t.previous\n\t.p2align 4\n", out); /* .popsection returns to the current section */
    for (uint32_t i = u->text.symbol[f->symbol].statement; i < f->end; i++)
        asm_copy_statement(&original, &u->text.statement[i]);
    for (size_t i = 0; f->has_label_table && i < u->text.symbols; i++)
        if (u->text.symbol[i].table_of == function)
            emit_label_table(&original, &u->text.symbol[i]);
    fputs("\t.popsection\n", out);
    if (asm_has_counting_copy(u, function))
        asm_emit_counting(u, function, out);
}
