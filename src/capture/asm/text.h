/* SPDX-License-Identifier: MIT */
/* The text of an assembly file, cut into statements, and what its directives say of symbols. Written for GCC's output:
 * AT&T syntax, one statement per line, '#' begins a comment. Statements between #APP and #NO_APP are the program's
 * inline assembly and are marked. */
#ifndef CAPTURE_ASM_TEXT_H
#define CAPTURE_ASM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

enum asm_kind { ASM_OTHER, ASM_LABEL, ASM_DIRECTIVE, ASM_INSN };
enum { ASM_NONE = UINT32_MAX };

/* A statement of an assembly file. */
struct asm_statement {
    const char *text;         /* into the file's text; without surrounding blanks and comments */
    uint32_t length;          /* bytes of `text` */
    uint32_t section, symbol; /* indices; symbol: of a label; otherwise ASM_NONE */
    uint32_t insn;            /* index among the instructions of executable sections, or ASM_NONE */
    uint8_t kind;             /* enum asm_kind */
    bool is_inline_asm;       /* between #APP and #NO_APP */
    /* function in which uninterpreted inline assembly begins or ends with this statement, or ASM_NONE */
    uint32_t uninterpreted_begins, uninterpreted_ends;
};

/* A section of an assembly file. */
struct asm_section {
    const char *name;
    uint32_t name_length, group_length; /* bytes of name and group */
    const char *group;                  /* comdat group, or NULL */
    bool is_code, is_debug, is_exception_table;
};

/* A symbol of an assembly file. */
struct asm_symbol {
    const char *name;
    uint32_t length;    /* bytes of `name` */
    uint32_t statement; /* its label, or ASM_NONE */
    uint32_t alias;     /* symbol to which .set equates it, or ASM_NONE */
    uint32_t function;  /* function that begins here, or ASM_NONE */
    /* function whose labels the data here lists, if no other function mentions it; or ASM_NONE */
    uint32_t table_of;
    bool is_function;        /* .type NAME, @function */
    bool is_indirect;        /* .type NAME, @gnu_indirect_function */
    bool is_global, is_weak; /* is_global: .globl or .weak; is_weak: another definition may win */
    bool address_taken;      /* mentioned other than as the target of a direct call or jump */
    bool is_target;          /* control may arrive from elsewhere than the statement before */
    bool is_landing_pad;     /* control arrives without the cursor in %r15: exception handlers, stored labels */
};

/* The text of an assembly file: statements, sections, symbols. */
struct asm_text {
    const char *file; /* its name, for messages */
    struct asm_statement *statement;
    struct asm_section *section;
    struct asm_symbol *symbol;
    size_t statements, sections, symbols, insns; /* how many there are; insns: in executable sections */
    bool is_gcc;                                 /* .ident names GCC */
    bool uses_reserved;                          /* an instruction mentions %r14 or %r15 */
    bool is_intel_syntax;                        /* .intel_syntax occurs */
    struct map names;                            /* uint32_t symbol, by the hash of its name */
    uint32_t current;                            /* section of the next statement, while scanning */
    uint32_t previous[8];                        /* sections that .popsection returns to */
    unsigned depth;
};

/* Cuts the text into statements. The text must end with a newline and outlive *ret. */
void asm_text_scan(struct asm_text *ret, const char *file, const char *text, size_t size);
void asm_text_release(struct asm_text *t);

/* The number of the symbol with this name. A new name gets a number from asm_symbol_at, and ASM_NONE from
 * asm_symbol_find. */
uint32_t asm_symbol_at(struct asm_text *t, const char *name, size_t length);
uint32_t asm_symbol_find(const struct asm_text *t, const char *name, size_t length);

/* Returns the next symbol name in [*at, end) and moves *at past it; NULL: no more. Registers and what follows an @ are
 * skipped. */
const char *asm_next_name(const char **at, const char *end, size_t *ret_length);

/* Length of a statement's first word: a directive, a label without its colon, a mnemonic or its first prefix. */
size_t asm_word(const struct asm_statement *s);
bool asm_is(const struct asm_statement *s, const char *word);

/* Offset of an instruction's operands, after prefixes and mnemonic. */
size_t asm_operands(const struct asm_statement *s);

/* Whether the first word is in the list, in which blanks surround each word: " .long .quad ". */
bool asm_is_one_of(const struct asm_statement *s, const char *list);

#endif
