/* SPDX-License-Identifier: MIT */
/* Reading text line by line and word by word, with errors that say file, line, what was found and what was expected. */
#ifndef FORMAT_TEXT_SCAN_H
#define FORMAT_TEXT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "peet/err.h"

enum { TEXT_LINE_MAX = 1 << 20 }; /* bytes of a line */

struct text_scan {
    FILE *in;
    const char *name;     /* of the file, for errors */
    struct peet_err *err; /* not NULL */
    uint64_t line;        /* its number, from 1 */
    char *text;           /* the line, without its end */
    const char *at;       /* the next character */
};

int text_scan_init(struct text_scan *s, FILE *in, const char *name, struct peet_err *err);
void text_scan_release(struct text_scan *s);

/* Goes to the next line that is not empty and not a comment: 1, 0 at the end of the file, or an error. */
int text_scan_line(struct text_scan *s);

/* Errors; both return PEET_ERR_FORMAT. The first tells the next word and what should be there instead. */
int text_scan_expected(struct text_scan *s, const char *expected);
int text_scan_wrong(struct text_scan *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What follows is about the next word; blanks in front of it do not matter. */
bool text_scan_at_end(struct text_scan *s);                 /* there is none */
int text_scan_end(struct text_scan *s);                     /* an error unless there is none */
bool text_scan_take(struct text_scan *s, const char *word); /* whether it is this one, which is then behind us */
int text_scan_need(struct text_scan *s, const char *word);  /* an error unless it is this one */
bool text_scan_is_digit(struct text_scan *s);

/* A letter and a number, like b17: whether that is next. The number is behind us then. */
bool text_scan_name(struct text_scan *s, char letter, uint64_t *ret);

/* A number from 0 to `most`, in decimal or, behind 0x, in hexadecimal; errors call it `what`. */
int text_scan_number(struct text_scan *s, uint64_t most, const char *what, uint64_t *ret);

/* The same, but the word `before` stands in front of it. */
int text_scan_field(struct text_scan *s, const char *before, uint64_t most, uint64_t *ret);

/* A 64-bit word: a number, perhaps with a minus in front of it. */
int text_scan_word64(struct text_scan *s, const char *what, uint64_t *ret);

/* A name of letters, digits and '_', copied to buffer. */
int text_scan_identifier(struct text_scan *s, const char *what, char *buffer, size_t size);

/* A string in quotes; it lives in the arena. */
int text_scan_quoted(struct text_scan *s, const char *what, struct arena *arena, const char **ret);

#endif
