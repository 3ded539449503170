/* SPDX-License-Identifier: MIT */
#include "capture/asm/text.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/mem.h"

/* ---- words ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$' || (unsigned char)c >= 128;
}

size_t asm_word(const struct asm_statement *s)
{
    size_t n = 0;

    while (n < s->length && !is_blank(s->text[n]) && s->text[n] != ':' && s->text[n] != ',' && s->text[n] != ';'
           && s->text[n] != '\n')
        n++;
    return n;
}

bool asm_is(const struct asm_statement *s, const char *word)
{
    size_t n = asm_word(s);

    return strlen(word) == n && !memcmp(s->text, word, n);
}

bool asm_is_one_of(const struct asm_statement *s, const char *list)
{
    size_t n = asm_word(s);

    for (const char *p = list; (p = memmem(p, strlen(p), s->text, n)); p++)
        if (p > list && p[-1] == ' ' && p[n] == ' ')
            return n > 0;
    return false;
}

const char *asm_next_name(const char **at, const char *end, size_t *ret_length)
{
    const char *p = *at;

    while (p < end) {
        if (*p == '%' || *p == '@' || isdigit((unsigned char)*p)) {
            p++;
            while (p < end && in_name(*p))
                p++;
        } else if (*p == '"') {
            for (p++; p < end && *p != '"'; p++)
                p += *p == '\\';
            p++;
        } else if (in_name(*p) && *p != '$') {
            const char *start = p;
            while (p < end && in_name(*p))
                p++;
            *at = p;
            *ret_length = (size_t)(p - start);
            if (*ret_length > 1 || *start != '.')
                return start;
        } else {
            p++;
        }
    }
    *at = end;
    return NULL;
}

/* ---- symbols and sections ---- */

/* Returns the first key from the name's hash on that is free or holds the name. *ret: its symbol, or ASM_NONE. */
static uint64_t symbol_key(const struct asm_text *t, const char *name, size_t length, uint32_t *ret)
{
    for (uint64_t key = XXH64(name, length, 0);; key++) {
        const uint32_t *found = map_find(&t->names, key, 0);
        *ret = found ? *found : ASM_NONE;
        if (!found || (t->symbol[*found].length == length && !memcmp(t->symbol[*found].name, name, length)))
            return key;
    }
}

uint32_t asm_symbol_find(const struct asm_text *t, const char *name, size_t length)
{
    uint32_t number;

    symbol_key(t, name, length, &number);
    return number;
}

uint32_t asm_symbol_at(struct asm_text *t, const char *name, size_t length)
{
    uint32_t number, *value;
    uint64_t key = symbol_key(t, name, length, &number);

    if (number != ASM_NONE)
        return number;
    value = map_put(&t->names, key, 0);
    assert(value);
    t->symbol = mem_room(t->symbol, t->symbols, sizeof *t->symbol);
    t->symbol[t->symbols] = (struct asm_symbol){ .name = name,
                                                 .length = (uint32_t)length,
                                                 .statement = ASM_NONE,
                                                 .alias = ASM_NONE,
                                                 .function = ASM_NONE,
                                                 .table_of = ASM_NONE };
    return *value = (uint32_t)t->symbols++;
}

static bool text_begins(const char *name, size_t length, const char *with)
{
    return length >= strlen(with) && !memcmp(name, with, strlen(with));
}

static uint32_t section_at(struct asm_text *t, const char *name, size_t length, const char *group, size_t group_length)
{
    for (size_t i = 0; i < t->sections; i++) {
        const struct asm_section *s = &t->section[i];
        if (s->name_length == length && !memcmp(s->name, name, length) && s->group_length == group_length
            && (!group || !memcmp(s->group, group, group_length)))
            return (uint32_t)i;
    }
    t->section = mem_room(t->section, t->sections, sizeof *t->section);
    t->section[t->sections] =
        (struct asm_section){ .name = name,
                              .name_length = (uint32_t)length,
                              .group = group,
                              .group_length = (uint32_t)group_length,
                              .is_code = text_begins(name, length, ".text"),
                              .is_debug = text_begins(name, length, ".debug"),
                              .is_exception_table = text_begins(name, length, ".gcc_except_table") };
    return (uint32_t)t->sections++;
}

/* Argument `number` of a directive, from 0, with its quotes; NULL: there are fewer. */
static const char *directive_argument(const struct asm_statement *s, unsigned number, size_t *ret_length)
{
    const char *p = s->text + asm_word(s), *end = s->text + s->length;

    for (;; p++) {
        while (p < end && is_blank(*p))
            p++;
        const char *start = p;
        for (bool quoted = false; p < end && (quoted || *p != ','); p++)
            quoted ^= *p == '"';
        if (number-- == 0) {
            while (p > start && is_blank(p[-1]))
                p--;
            *ret_length = (size_t)(p - start);
            return start;
        }
        if (p >= end)
            return NULL;
    }
}

/* .section NAME[, "FLAGS"[, @TYPE[, …][, GROUP, comdat]]] */
static void enter_named(struct asm_text *t, const struct asm_statement *s)
{
    size_t length = 0, flags_length = 0, group_length = 0;
    const char *name = directive_argument(s, 0, &length), *flags = directive_argument(s, 1, &flags_length),
               *group = NULL;

    if (flags && memchr(flags, 'G', flags_length))
        group = directive_argument(s, memchr(flags, 'M', flags_length) ? 4 : 3, &group_length);
    t->current = section_at(t, name, length, group, group_length);
    if (flags && memchr(flags, 'x', flags_length))
        t->section[t->current].is_code = true;
}

static void enter_section(struct asm_text *t, const struct asm_statement *s)
{
    enum { DEPTH = sizeof t->previous / sizeof *t->previous };
    uint32_t before = t->current;

    if (asm_is(s, ".popsection") && t->depth > 0)
        t->current = t->previous[--t->depth % DEPTH];
    else if (asm_is(s, ".pushsection")) {
        t->previous[t->depth++ % DEPTH] = before;
        enter_named(t, s);
    } else if (asm_is(s, ".section"))
        enter_named(t, s);
    else if (asm_is_one_of(s, " .text .data .bss "))
        t->current = section_at(t, s->text, asm_word(s), NULL, 0);
}

/* ---- what directives say of symbols ---- */

static struct asm_symbol *argument_symbol(struct asm_text *t, const struct asm_statement *s, unsigned number)
{
    size_t length = 0, name_length;
    const char *at = directive_argument(s, number, &length);
    const char *name = at ? asm_next_name(&at, at + length, &name_length) : NULL;

    uint32_t symbol = name ? asm_symbol_at(t, name, name_length) : ASM_NONE; /* may move t->symbol */

    return symbol == ASM_NONE ? NULL : &t->symbol[symbol];
}

static void note_type(struct asm_text *t, const struct asm_statement *s)
{
    struct asm_symbol *y = argument_symbol(t, s, 0);
    size_t length;
    const char *type = directive_argument(s, 1, &length);

    if (y && type) {
        y->is_function = memmem(type, length, "function", 8) && !memmem(type, length, "indirect", 8);
        y->is_indirect = memmem(type, length, "indirect", 8) != NULL;
    }
}

static void note_symbols(struct asm_text *t, const struct asm_statement *s)
{
    size_t length;
    const char *text;

    if (asm_is(s, ".type"))
        note_type(t, s);
    if (asm_is_one_of(s, " .globl .global .weak "))
        for (unsigned i = 0; directive_argument(s, i, &length); i++) {
            struct asm_symbol *y = argument_symbol(t, s, i);
            if (!y)
                continue;
            y->is_global = true;
            y->is_weak |= asm_is(s, ".weak");
        }
    if (asm_is_one_of(s, " .set .equ ")) {
        struct asm_symbol *y = argument_symbol(t, s, 1);
        uint32_t number = y ? (uint32_t)(y - t->symbol) : ASM_NONE;
        if ((y = argument_symbol(t, s, 0)))
            y->alias = number;
    }
    if (asm_is(s, ".ident") && (text = directive_argument(s, 0, &length)))
        t->is_gcc |= memmem(text, length, "GCC:", 4) != NULL;
    t->is_intel_syntax |= asm_is(s, ".intel_syntax");
}

/* ---- statements ---- */

static const char PREFIXES[] =
    " lock rep repe repz repne repnz data16 addr32 rex64 rex.W notrack bnd cs ds es ss fs gs ";

static bool is_prefix(const struct asm_statement *s)
{
    return asm_word(s) == s->length && asm_is_one_of(s, PREFIXES);
}

size_t asm_operands(const struct asm_statement *s)
{
    struct asm_statement rest = *s;

    for (bool prefix = true; prefix && rest.length;) {
        size_t n = asm_word(&rest);
        prefix = asm_is_one_of(&rest, PREFIXES);
        while (n < rest.length && (is_blank(rest.text[n]) || rest.text[n] == ';' || rest.text[n] == '\n'))
            n++;
        rest.text += n;
        rest.length -= (uint32_t)n;
    }
    return s->length - rest.length;
}

static void classify_statement(struct asm_text *t, struct asm_statement *s)
{
    if (s->length == 0) {
        s->kind = ASM_OTHER;
    } else if (s->text[s->length - 1] == ':' && !memchr(s->text, ' ', s->length)) {
        s->kind = ASM_LABEL;
        s->symbol = asm_symbol_at(t, s->text, s->length - 1);
        t->symbol[s->symbol].statement = (uint32_t)t->statements;
    } else if (s->text[0] == '.' || memchr(s->text, '=', s->length)) {
        s->kind = ASM_DIRECTIVE;
        enter_section(t, s);
        note_symbols(t, s);
    } else {
        s->kind = ASM_INSN;
        t->uses_reserved |= memmem(s->text, s->length, "%r14", 4) || memmem(s->text, s->length, "%r15", 4);
    }
}

static void add_statement(struct asm_text *t, const char *text, size_t length, bool is_inline_asm)
{
    while (length && is_blank(*text))
        text++, length--;
    while (length && is_blank(text[length - 1]))
        length--;
    struct asm_statement s = { .text = text,
                               .length = (uint32_t)length,
                               .symbol = ASM_NONE,
                               .insn = ASM_NONE,
                               .is_inline_asm = is_inline_asm,
                               .uninterpreted_begins = ASM_NONE,
                               .uninterpreted_ends = ASM_NONE };
    if (length == 0)
        return;
    struct asm_statement *last = t->statements ? &t->statement[t->statements - 1] : NULL;
    classify_statement(t, &s);
    s.section = t->current;
    if (s.kind == ASM_INSN && last && last->kind == ASM_INSN && is_prefix(last)) {
        last->length = (uint32_t)(text + length - last->text);
        return;
    }
    if (s.kind == ASM_INSN && t->section[s.section].is_code)
        s.insn = (uint32_t)t->insns++;
    t->statement = mem_room(t->statement, t->statements, sizeof *t->statement);
    t->statement[t->statements++] = s;
}

/* Scans a line without its newline. */
static void scan_line(struct asm_text *t, const char *p, const char *end, bool is_inline_asm)
{
    const char *start = p;

    for (bool quoted = false; p < end; p++) {
        if (quoted && *p == '\\') {
            p++;
        } else if (*p == '"') {
            quoted = !quoted;
        } else if (!quoted && (*p == ';' || *p == '#')) {
            add_statement(t, start, (size_t)(p - start), is_inline_asm);
            start = p + 1;
            if (*p == '#')
                return;
        } else if (!quoted && *p == ':' && (p + 1 == end || is_blank(p[1]) || p[1] == ';')) {
            add_statement(t, start, (size_t)(p + 1 - start), is_inline_asm);
            start = p + 1;
        }
    }
    add_statement(t, start, (size_t)(end - start), is_inline_asm);
}

void asm_text_scan(struct asm_text *ret, const char *file, const char *text, size_t size)
{
    const char *end = text + size, *line = text, *next;
    bool is_inline_asm = false;

    *ret = (struct asm_text){ .file = file, .names.value_size = sizeof(uint32_t) };
    section_at(ret, ".text", 5, NULL, 0);
    for (; line < end && (next = memchr(line, '\n', (size_t)(end - line))); line = next + 1) {
        if (text_begins(line, (size_t)(next - line), "#APP"))
            is_inline_asm = true;
        else if (text_begins(line, (size_t)(next - line), "#NO_APP"))
            is_inline_asm = false;
        scan_line(ret, line, next, is_inline_asm);
    }
}

void asm_text_release(struct asm_text *t)
{
    free(t->statement);
    free(t->section);
    free(t->symbol);
    map_release(&t->names);
    *t = (struct asm_text){ 0 };
}
