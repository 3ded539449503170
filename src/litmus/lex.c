/* SPDX-License-Identifier: MIT */
#include "litmus/lex.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"

enum { LEX_FOUND_MAX = 40 }; /* characters of a word that a message has */

static char lex_peek(const struct litmus_lexer *l, size_t ahead)
{
    return (size_t)(l->end - l->at) > ahead ? l->at[ahead] : '\0';
}

/* Skips blanks and comments, which may be nested; false: a comment has no end. */
static bool lex_skip_blanks(struct litmus_lexer *l)
{
    unsigned depth = 0;

    for (; l->at < l->end; l->at++) {
        bool opens = lex_peek(l, 0) == '(' && lex_peek(l, 1) == '*';
        bool closes = depth && lex_peek(l, 0) == '*' && lex_peek(l, 1) == ')';
        if (*l->at == '\n')
            l->line++;
        if (opens && !depth)
            l->word_line = l->line; /* for the complaint */
        if (opens || closes) {
            depth = opens ? depth + 1 : depth - 1;
            l->at++;
        } else if (!depth && !isspace((unsigned char)*l->at)) {
            break;
        }
    }
    return depth == 0;
}

static void lex_wrong(struct litmus_lexer *l, const char *problem)
{
    l->kind = LEX_WRONG;
    l->problem = problem;
    l->at = l->end;
}

static void lex_string(struct litmus_lexer *l)
{
    l->kind = LEX_STRING;
    for (l->at++; l->at < l->end && *l->at != '"'; l->at++)
        l->line += *l->at == '\n';
    if (l->at == l->end)
        lex_wrong(l, "a string without an end");
    else
        l->at++;
}

static void lex_digits(struct litmus_lexer *l)
{
    bool minus = *l->at == '-', hex;
    int64_t value = 0;

    l->kind = LEX_NUMBER;
    l->at += minus;
    hex = *l->at == '0' && (lex_peek(l, 1) == 'x' || lex_peek(l, 1) == 'X') && isxdigit((unsigned char)lex_peek(l, 2));
    l->at += hex ? 2 : 0;
    for (; l->at < l->end && (hex ? isxdigit((unsigned char)*l->at) : isdigit((unsigned char)*l->at)); l->at++) {
        int digit = isdigit((unsigned char)*l->at) ? *l->at - '0' : tolower((unsigned char)*l->at) - 'a' + 10;
        value = value > UINT32_MAX ? value : value * (hex ? 16 : 10) + digit;
    }
    value = minus ? -value : value;
    if (value > UINT32_MAX || value < INT32_MIN)
        lex_wrong(l, "a number of more than 32 bits");
    else
        l->number = (int32_t)(uint32_t)(uint64_t)value;
}

static bool lex_in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

void lex_next(struct litmus_lexer *l)
{
    static const char *const LONG_SIGNS[] = { "/\\", "\\/", "==", "=>", "!=", "<>" };

    if (!lex_skip_blanks(l)) {
        lex_wrong(l, "a comment without an end");
        return;
    }
    l->word = l->at;
    l->word_line = l->line;
    char c = lex_peek(l, 0);
    if (l->at == l->end) {
        l->kind = LEX_END;
    } else if (isalpha((unsigned char)c) || c == '_') {
        l->kind = LEX_NAME;
        while (l->at < l->end && lex_in_name(*l->at))
            l->at++;
    } else if (isdigit((unsigned char)c) || (c == '-' && isdigit((unsigned char)lex_peek(l, 1)))) {
        lex_digits(l);
    } else if (c == '"') {
        lex_string(l);
    } else if (isprint((unsigned char)c)) {
        l->kind = LEX_SIGN;
        size_t n = 1;
        for (size_t i = 0; i < sizeof LONG_SIGNS / sizeof *LONG_SIGNS; i++)
            if (c == LONG_SIGNS[i][0] && lex_peek(l, 1) == LONG_SIGNS[i][1])
                n = 2;
        l->at += n;
    } else {
        lex_wrong(l, "a byte that is no text");
    }
    l->length = (size_t)(l->at - l->word);
}

void lex_init(struct litmus_lexer *l, const char *text, size_t size, const char *file, struct peet_err *err)
{
    *l = (struct litmus_lexer){ .file = file, .at = text, .end = text + size, .line = 1, .err = err };
    lex_next(l);
}

bool lex_is(const struct litmus_lexer *l, const char *sign)
{
    return l->kind == LEX_SIGN && l->length == strlen(sign) && memcmp(l->word, sign, l->length) == 0;
}

bool lex_is_name(const struct litmus_lexer *l, const char *name)
{
    return l->kind == LEX_NAME && l->length == strlen(name) && strncasecmp(l->word, name, l->length) == 0;
}

bool lex_accept(struct litmus_lexer *l, const char *sign)
{
    if (!lex_is(l, sign))
        return false;
    lex_next(l);
    return true;
}

int lex_fail(const struct litmus_lexer *l, uint32_t line, const char *format, ...)
{
    char text[300];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return err_set(l->err, PEET_ERR_FORMAT, "%s:%u: %s", l->file, line, text);
}

int lex_expected(const struct litmus_lexer *l, const char *what)
{
    size_t n = l->length;

    if (l->kind == LEX_WRONG)
        return lex_fail(l, l->word_line, "expected %s, found %s", what, l->problem);
    if (l->kind == LEX_END)
        return lex_fail(l, l->word_line, "expected %s, found the end of the text", what);
    if (l->kind == LEX_STRING)
        return lex_fail(l, l->word_line, "expected %s, found a string", what);
    bool is_cut = n > LEX_FOUND_MAX;
    return lex_fail(l, l->word_line, "expected %s, found '%.*s%s'", what, (int)(is_cut ? LEX_FOUND_MAX : n), l->word,
                    is_cut ? "…" : "");
}

int lex_expect(struct litmus_lexer *l, const char *sign)
{
    char what[16];

    snprintf(what, sizeof what, "'%s'", sign);
    return lex_accept(l, sign) ? 0 : lex_expected(l, what);
}

int lex_number(struct litmus_lexer *l, int32_t *ret)
{
    if (l->kind != LEX_NUMBER)
        return lex_expected(l, "a number");
    *ret = l->number;
    lex_next(l);
    return 0;
}
