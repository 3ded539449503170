/* SPDX-License-Identifier: MIT */
#include "format/text/scan.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

int text_scan_init(struct text_scan *s, FILE *in, const char *name, struct peet_err *err)
{
    char *text = malloc(TEXT_LINE_MAX + 1);

    if (!text)
        return err_set(err, PEET_ERR_MEMORY, "%s: no memory for a line", name);
    text[0] = '\0';
    *s = (struct text_scan){ .in = in, .name = name, .err = err, .text = text, .at = text };
    return 0;
}

void text_scan_release(struct text_scan *s)
{
    free(s->text);
    *s = (struct text_scan){ 0 };
}

int text_scan_wrong(struct text_scan *s, const char *format, ...)
{
    char text[300];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return err_set(s->err, PEET_ERR_FORMAT, "%s:%" PRIu64 ": %s", s->name, s->line, text);
}

static void skip_blanks(struct text_scan *s)
{
    while (*s->at == ' ' || *s->at == '\t')
        s->at++;
}

int text_scan_expected(struct text_scan *s, const char *expected)
{
    char found[44];
    size_t n = 0;

    if (text_scan_at_end(s))
        return text_scan_wrong(s, "the end of the line found, %s expected", expected);
    for (const char *p = s->at; *p && *p != ' ' && n < 40; p++)
        found[n++] = isprint((unsigned char)*p) ? *p : '?';
    memcpy(found + n, n == 40 ? "..." : "", n == 40 ? 4 : 1);
    return text_scan_wrong(s, "'%s' found, %s expected", found, expected);
}

/* Reads a line into s->text: 1, 0 at the end of the file, or an error. */
static int scan_read_line(struct text_scan *s)
{
    size_t n = 0;
    int c;

    s->line++;
    while ((c = getc_unlocked(s->in)) != EOF && c != '\n') {
        if (c == '\0')
            return text_scan_wrong(s, "a NUL byte found, text expected");
        if (n == TEXT_LINE_MAX)
            return text_scan_wrong(s, "a line of more than %d bytes found", TEXT_LINE_MAX);
        s->text[n++] = (char)c;
    }
    if (ferror(s->in))
        return err_sys(s->err, errno, "%s: cannot read", s->name);
    if (n > 0 && s->text[n - 1] == '\r')
        n--;
    s->text[n] = '\0';
    s->at = s->text;
    return n > 0 || c != EOF;
}

int text_scan_line(struct text_scan *s)
{
    int r;

    do
        r = scan_read_line(s);
    while (r > 0 && text_scan_at_end(s));
    return r;
}

bool text_scan_at_end(struct text_scan *s)
{
    skip_blanks(s);
    return *s->at == '\0' || *s->at == '#';
}

int text_scan_end(struct text_scan *s)
{
    return text_scan_at_end(s) ? 0 : text_scan_expected(s, "the end of the line");
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

bool text_scan_take(struct text_scan *s, const char *word)
{
    size_t n = strlen(word);

    skip_blanks(s);
    if (strncmp(s->at, word, n) != 0 || (is_word(word[n - 1]) && is_word(s->at[n])))
        return false;
    s->at += n;
    return true;
}

int text_scan_need(struct text_scan *s, const char *word)
{
    char quoted[40];

    if (text_scan_take(s, word))
        return 0;
    snprintf(quoted, sizeof quoted, "'%s'", word);
    return text_scan_expected(s, quoted);
}

bool text_scan_is_digit(struct text_scan *s)
{
    skip_blanks(s);
    return *s->at >= '0' && *s->at <= '9';
}

/* Reads the number at *p, and moves *p to its end; false: there is none, or it does not fit. */
static bool parse_number(const char **p, uint64_t *ret)
{
    const char *c = *p;
    unsigned base = 10;
    uint64_t v = 0;

    if (c[0] == '0' && (c[1] == 'x' || c[1] == 'X')) {
        base = 16;
        c += 2;
    }
    const char *first = c;
    for (;; c++) {
        unsigned digit = *c >= '0' && *c <= '9'                 ? (unsigned)(*c - '0')
                         : *c >= 'a' && *c <= 'f' && base == 16 ? (unsigned)(*c - 'a') + 10
                         : *c >= 'A' && *c <= 'F' && base == 16 ? (unsigned)(*c - 'A') + 10
                                                                : 16;
        if (digit == 16)
            break;
        if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    if (c == first || is_word(*c))
        return false;
    *p = c;
    *ret = v;
    return true;
}

bool text_scan_name(struct text_scan *s, char letter, uint64_t *ret)
{
    skip_blanks(s);
    if (s->at[0] != letter || s->at[1] < '0' || s->at[1] > '9' || (s->at[1] == '0' && is_word(s->at[2])))
        return false;
    const char *p = s->at + 1;
    if (!parse_number(&p, ret))
        return false;
    s->at = p;
    return true;
}

int text_scan_number(struct text_scan *s, uint64_t most, const char *what, uint64_t *ret)
{
    uint64_t v;
    const char *start = (skip_blanks(s), s->at);

    if (!parse_number(&s->at, &v))
        return text_scan_expected(s, what);
    if (v > most) {
        s->at = start;
        char limit[100];
        snprintf(limit, sizeof limit, "%s, at most %" PRIu64 ",", what, most);
        return text_scan_expected(s, limit);
    }
    *ret = v;
    return 0;
}

int text_scan_field(struct text_scan *s, const char *before, uint64_t most, uint64_t *ret)
{
    char what[60];
    int r = text_scan_need(s, before);

    snprintf(what, sizeof what, "a number behind '%s'", before);
    return r < 0 ? r : text_scan_number(s, most, what, ret);
}

int text_scan_word64(struct text_scan *s, const char *what, uint64_t *ret)
{
    uint64_t v;
    bool negative = text_scan_take(s, "-");
    int r = text_scan_number(s, UINT64_MAX, what, &v);

    if (r < 0)
        return r;
    *ret = negative ? -v : v;
    return 0;
}

int text_scan_identifier(struct text_scan *s, const char *what, char *buffer, size_t size)
{
    size_t n = 0;

    skip_blanks(s);
    while (is_word(s->at[n]))
        n++;
    if (n == 0 || n >= size)
        return text_scan_expected(s, what);
    memcpy(buffer, s->at, n);
    buffer[n] = '\0';
    s->at += n;
    return 0;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The character that an escape sequence stands for; moves *p from the character after the backslash to its end. -1: invalid. */
static int scan_escaped(const char **p)
{
    const char *c = *p;
    int value = -1;

    if (*c == '"' || *c == '\\') {
        value = *c++;
    } else if (*c == 'n' || *c == 't') {
        value = *c++ == 'n' ? '\n' : '\t';
    } else if (*c == 'x' && hex_digit(c[1]) >= 0 && hex_digit(c[2]) >= 0) {
        value = hex_digit(c[1]) * 16 + hex_digit(c[2]);
        c += 3;
    }
    *p = c;
    return value > 0 ? value : -1;
}

int text_scan_quoted(struct text_scan *s, const char *what, struct arena *arena, const char **ret)
{
    skip_blanks(s);
    if (*s->at != '"')
        return text_scan_expected(s, what);
    const char *p = s->at + 1;
    char *text = arena_alloc(arena, strlen(p) + 1);
    size_t n = 0;
    if (!text)
        return err_set(s->err, PEET_ERR_MEMORY, "%s:%" PRIu64 ": no memory for a string", s->name, s->line);
    while (*p != '"') {
        int c = *p ? (unsigned char)*p++ : 0;
        if (!c)
            return text_scan_wrong(s, "the end of the line found, '\"' at the end of a string expected");
        if (c == '\\' && (c = scan_escaped(&p)) < 0)
            return text_scan_wrong(s, "'\\%c' found in a string, one of \\\" \\\\ \\n \\t \\xHH (not \\x00) expected",
                                   isprint((unsigned char)*p) ? *p : '?');
        text[n++] = (char)c;
    }
    s->at = p + 1;
    *ret = text;
    return 0;
}
