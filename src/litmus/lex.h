/* SPDX-License-Identifier: MIT */
/* Words of a litmus test's text. */
#ifndef LITMUS_LEX_H
#define LITMUS_LEX_H

#include "litmus/litmus.h"

/* A kind of words. */
enum lex_kind {
    LEX_END,
    LEX_NAME,
    LEX_NUMBER,
    LEX_STRING, /* in quotes, which the word has */
    LEX_SIGN,   /* punctuation: one character, or one of == != <> => /\ \/ */
    LEX_WRONG, /* a character that no word begins with, a comment or string without an end, a number that is too large */
};

/* A position in a test's text, and the word there. */
struct litmus_lexer {
    const char *file;     /* for messages */
    const char *at, *end; /* the text that follows the current word */
    uint32_t line;        /* of `at`, from 1 */
    /* the current word */
    enum lex_kind kind;
    const char *word;
    size_t length;
    int32_t number;      /* of LEX_NUMBER */
    const char *problem; /* of LEX_WRONG */
    uint32_t word_line;  /* line of the current word */
    struct peet_err *err;
};

/* Begins at the first word. */
void lex_init(struct litmus_lexer *l, const char *text, size_t size, const char *file, struct peet_err *err);
void lex_next(struct litmus_lexer *l);

/* Whether the current word is this sign, or this name, whose case does not matter. */
bool lex_is(const struct litmus_lexer *l, const char *sign);
bool lex_is_name(const struct litmus_lexer *l, const char *name);

/* Goes to the next word if the current one is this sign. */
bool lex_accept(struct litmus_lexer *l, const char *sign);

/* "FILE:LINE: expected …, found …"; returns the code of the error. */
int lex_expected(const struct litmus_lexer *l, const char *what);

/* "FILE:LINE: …" about a line; returns the code of the error. */
int lex_fail(const struct litmus_lexer *l, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Goes to the next word if the current one is this sign, else fails. */
int lex_expect(struct litmus_lexer *l, const char *sign);

/* A number: decimal or hexadecimal, with a minus or without, of 32 bits. */
int lex_number(struct litmus_lexer *l, int32_t *ret);

#endif
