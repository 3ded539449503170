/* SPDX-License-Identifier: MIT */
/* The text of an assembly file, cut into statements: which section each stands in, and what the file says of symbols.
 *
 * Made for what GCC writes: AT&T syntax, one statement a line, '#' begins a comment. What users put into it (between #APP
 * and #NO_APP) may be anything, and is marked. */
#ifndef CAPTURE_ASM_TEXT_H
#define CAPTURE_ASM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

enum asm_kind { ASM_OTHER, ASM_LABEL, ASM_DIRECTIVE, ASM_INSN };
enum { ASM_NONE = UINT32_MAX };

struct asm_statement {
    const char *text; /* in the file's text, without the blanks and comments around it */
    uint32_t length;
    uint32_t section, symbol; /* symbol: of a label */
    uint32_t insn;            /* number among the instructions of executable sections, or ASM_NONE */
    uint8_t kind;             /* enum asm_kind */
    bool is_inline_asm;       /* from an asm statement of the program */
    uint32_t uninterpreted_begins,
        uninterpreted_ends; /* the function in which a row of such that is not understood begins or ends here */
};

struct asm_section {
    const char *name;
    uint32_t name_length, group_length;
    const char *group; /* its comdat group, or NULL */
    bool is_code, is_debug, is_exception_table;
};

struct asm_symbol {
    const char *name;
    uint32_t length;
    uint32_t statement;      /* the label, or ASM_NONE */
    uint32_t alias;          /* the symbol that .set makes it, or ASM_NONE */
    uint32_t function;       /* the function that begins here, or ASM_NONE */
    uint32_t table_of;       /* the function whose labels stand here, and which alone looks at them, or ASM_NONE */
    bool is_function;        /* .type says so */
    bool is_indirect;        /* .type …, @gnu_indirect_function */
    bool is_global, is_weak; /* others can reach it by its name; another definition may win */
    bool address_taken;      /* it is used other than as the target of a direct call or jump */
    bool is_target;          /* control may come here from elsewhere */
    bool is_landing_pad;     /* …with another cursor than the one in the register */
};

struct asm_text {
    const char *file;
    struct asm_statement *statement;
    struct asm_section *section;
    struct asm_symbol *symbol;
    size_t statements, sections, symbols, insns;
    bool is_gcc;          /* a compiler wrote it */
    bool uses_reserved;   /* …but something uses %r14 or %r15 */
    bool is_intel_syntax; /* Intel's */
    struct map names;     /* number of a symbol, by the hash of its name */
    uint32_t current;     /* section, while scanning */
    uint32_t previous[8]; /* those that .popsection and .previous go back to */
    unsigned depth;
};

/* Cuts text, which must end with a newline and outlive *ret. */
void asm_text_scan(struct asm_text *ret, const char *file, const char *text, size_t size);
void asm_text_release(struct asm_text *t);

/* The number of the symbol with this name: a new one if need be, or ASM_NONE. */
uint32_t asm_symbol_at(struct asm_text *t, const char *name, size_t length);
uint32_t asm_symbol_find(const struct asm_text *t, const char *name, size_t length);

/* The next name of a symbol in [*at, end), registers and what follows an @ left out; *at goes behind it. NULL: no more. */
const char *asm_next_name(const char **at, const char *end, size_t *ret_length);

/* The first word of a statement: a directive's name, a label without its colon, a mnemonic or its first prefix. */
size_t asm_word(const struct asm_statement *s);
bool asm_is(const struct asm_statement *s, const char *word);

/* Where an instruction's operands begin, behind prefixes and mnemonic. */
size_t asm_operands(const struct asm_statement *s);

/* Whether the first word is one of those in the list, which stand between blanks: " .long .quad ". */
bool asm_is_one_of(const struct asm_statement *s, const char *list);

#endif
