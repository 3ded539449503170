/* SPDX-License-Identifier: MIT */
/* Writes the words and lines of the text form; scan.h and block.c read them. */
#ifndef FORMAT_TEXT_PUT_H
#define FORMAT_TEXT_PUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "peet/schema.h"

#define TEXT_FIRST_LINE "peet text 1"

/* The names of an instruction's flags, from bit 0 on. */
#define TEXT_FLAGS(X) X(atomic) X(acquire) X(release) X(string) X(fence_ll) X(fence_ss) X(fence_full) X(kernel)

void text_put_decimal(FILE *out, uint64_t v);
void text_put_hex(FILE *out, uint64_t v); /* 0x1f */
void text_put_quoted(FILE *out, const char *s);

/* The words of the language, by number. */
enum {
#define X(name) TEXT_FLAG_##name,
    TEXT_FLAGS(X) TEXT_FLAG_COUNT
#undef X
};
extern const char *const TEXT_CLASS_NAMES[PEET_CLASS_COUNT];
extern const char *const TEXT_FLAG_NAMES[TEXT_FLAG_COUNT]; /* bit i of an instruction's flags */
extern const char *const TEXT_OP_NAMES[PEET_OP_COUNT];

/* Write a definition: a line, and the lines that belong to it. */
void text_put_meta(FILE *out, const char *key, const char *value);
void text_put_process(FILE *out, const struct peet_process *p);
void text_put_module(FILE *out, const struct peet_module *m);
void text_put_range(FILE *out, const struct peet_range *r);
void text_put_thread(FILE *out, const struct peet_thread *t);

/* Writes a block with name b<name>; comment may be NULL. */
void text_put_block(FILE *out, const struct peet_block *b, uint32_t name, const char *comment);

/* Writes a loop with name l<name>; names[i] is the name of item i. */
void text_put_loop(FILE *out, const struct peet_loop *l, uint32_t name, const uint32_t *names);

/* Whether the event's first argument is the number of a string. */
bool text_event_has_string(uint32_t kind);

/* Writes an event's arguments from number `first` on, each after a blank: addresses in hexadecimal, counts in decimal. */
void text_put_arguments(FILE *out, uint32_t kind, const uint64_t *arg, int first);

#endif
