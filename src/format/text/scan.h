/* SPDX-License-Identifier: MIT */
/* A scanner of text, line by line and word by word. Errors have file, line, the word found and what was expected. */
#ifndef FORMAT_TEXT_SCAN_H
#define FORMAT_TEXT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "peet/err.h"

enum { TEXT_LINE_MAX = 1 << 20 }; /* bytes of a line */

/* A position in a file of text. */
struct text_scan {
    FILE *in;
    const char *name;     /* of the file, for errors */
    struct peet_err *err; /* not NULL */
    uint64_t line;        /* number of the current line, from 1 */
    char *text;           /* the current line, without its end */
    const char *at;       /* next character of it */
};

int text_scan_init(struct text_scan *s, FILE *in, const char *name, struct peet_err *err);
void text_scan_release(struct text_scan *s);

/* Reads the next line that is neither empty nor a comment: 1, 0 at the end of the file, or an error. */
int text_scan_line(struct text_scan *s);

/* Set an error, and return PEET_ERR_FORMAT. text_scan_expected names the next word, and what was expected instead. */
int text_scan_expected(struct text_scan *s, const char *expected);
int text_scan_wrong(struct text_scan *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The next word of the line, after blanks. */
bool text_scan_at_end(struct text_scan *s);                 /* there is none */
int text_scan_end(struct text_scan *s);                     /* an error unless there is none */
bool text_scan_take(struct text_scan *s, const char *word); /* skips it and returns true, if it is `word` */
int text_scan_need(struct text_scan *s, const char *word);  /* skips it; an error unless it is `word` */
bool text_scan_is_digit(struct text_scan *s);               /* it begins with a digit */

/* Skips a letter and a number, like b17, and returns true, if these are next. */
bool text_scan_name(struct text_scan *s, char letter, uint64_t *ret);

/* Reads a number from 0 to `most`, in decimal or, after 0x, in hexadecimal; errors call it `what`. */
int text_scan_number(struct text_scan *s, uint64_t most, const char *what, uint64_t *ret);

/* Reads the word `before`, and a number after it. */
int text_scan_field(struct text_scan *s, const char *before, uint64_t most, uint64_t *ret);

/* Reads a 64-bit word: a number, perhaps with a minus sign. */
int text_scan_word64(struct text_scan *s, const char *what, uint64_t *ret);

/* A name of letters, digits and '_', copied to buffer. */
int text_scan_identifier(struct text_scan *s, const char *what, char *buffer, size_t size);

/* A string in quotes; it lives in the arena. */
int text_scan_quoted(struct text_scan *s, const char *what, struct arena *arena, const char **ret);

#endif
