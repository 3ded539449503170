/* SPDX-License-Identifier: MIT */
/* Column widths are those of common terminals: two for East Asian wide characters and pictures, none for combining
 * marks. Leaves out: characters of ambiguous width (taken as one) and joined sequences (each part counts). */
#include "base/utf8.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Consecutive code points. */
struct code_point_range {
    uint32_t first, last; /* both included */
};

static const struct code_point_range CONTROL[] = {
    { 0, 0x1f }, { 0x7f, 0x9f }, { 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2066, 0x2069 }, { 0xfeff, 0xfeff },
};
static const struct code_point_range COMBINING[] = {
    { 0x300, 0x36f },   { 0x483, 0x489 },   { 0x591, 0x5bd },   { 0x610, 0x61a },
    { 0x64b, 0x65f },   { 0x200b, 0x200d }, { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff },
    { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f },
};
static const struct code_point_range WIDE[] = {
    { 0x1100, 0x115f },   { 0x2e80, 0x303e },   { 0x3041, 0xa4cf },   { 0xac00, 0xd7a3 },
    { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },
    { 0x1f300, 0x1f64f }, { 0x1f680, 0x1faff }, { 0x20000, 0x3fffd },
};

static int utf8_is_in(uint32_t c, const struct code_point_range *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c >= s[i].first && c <= s[i].last)
            return 1;
    return 0;
}
#define IN(c, spans) utf8_is_in(c, spans, sizeof(spans) / sizeof *(spans))

size_t utf8_decode(const char *s, uint32_t *ret)
{
    static const uint32_t LEAST[] = { 0, 0, 0x80, 0x800, 0x10000 }; /* by length: anything smaller is overlong */
    const unsigned char *p = (const unsigned char *)s;
    size_t length = p[0] < 0x80 ? 1 : p[0] < 0xc0 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf8 ? 4 : 0;

    if (!p[0] || !length)
        return 0;
    uint32_t c = length == 1 ? p[0] : p[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < LEAST[length] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *ret = c;
    return length;
}

/* One character, or one byte that is none, as it is to be shown. */
struct glyph {
    char text[16];         /* as it is shown, in UTF-8 */
    size_t bytes, columns; /* bytes of the character in its string; columns that `text` takes */
};

static const char *glyph_next(const char *s, struct glyph *g)
{
    uint32_t c = 0;
    size_t n = utf8_decode(s, &c);

    if (n && !IN(c, CONTROL)) {
        memcpy(g->text, s, n);
        g->bytes = n;
        g->columns = IN(c, COMBINING) ? 0 : IN(c, WIDE) ? 2 : 1;
        return s + n;
    }
    if (c == '\n' || c == '\t' || c == '\r')
        snprintf(g->text, sizeof g->text, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
    else if (c < 0x80)
        snprintf(g->text, sizeof g->text, "\\x%02x", (unsigned char)*s);
    else
        snprintf(g->text, sizeof g->text, "\\u{%x}", (unsigned)c);
    g->bytes = g->columns = strlen(g->text);
    return s + (n ? n : 1);
}

size_t utf8_show(const char *s, size_t limit, FILE *out)
{
    struct glyph g;
    size_t columns = 0, all = 0, room = limit;

    for (const char *p = s; *p && all <= limit; all += g.columns)
        p = glyph_next(p, &g);
    if (all > limit)
        room = limit ? limit - 1 : 0; /* for the … */
    while (*s) {
        s = glyph_next(s, &g);
        if (columns + g.columns > room)
            break;
        if (out)
            fwrite(g.text, 1, g.bytes, out);
        columns += g.columns;
    }
    if (all > limit && limit) {
        if (out)
            fputs("…", out);
        columns++;
    }
    return columns;
}

/* Whether a text that begins with a sign is a number. */
static bool is_number(const char *s)
{
    char *end;

    if (s[1] != '.' && !isdigit((unsigned char)s[1]))
        return false;
    strtod(s, &end);
    return *end == '\0';
}

void utf8_csv(const char *s, FILE *out)
{
    size_t n = strlen(s);
    bool is_quoted = n == 0 || strpbrk(s, ",\"") || s[0] == ' ' || s[n - 1] == ' ';
    bool is_formula = n > 0 && strchr("=+-@", s[0]) && !is_number(s);
    struct glyph g;

    fputs(is_quoted ? "\"" : "", out);
    fputs(is_formula ? "'" : "", out);
    while (*s) {
        s = glyph_next(s, &g);
        fwrite(g.text, 1, g.bytes, out);
        if (g.text[0] == '"')
            fputc('"', out);
    }
    fputs(is_quoted ? "\"" : "", out);
}

void utf8_json(const char *s, FILE *out)
{
    uint32_t c;

    fputc('"', out);
    while (*s) {
        size_t n = utf8_decode(s, &c);
        if (!n)
            fputs("\\ufffd", out);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", (int)c);
        else if (c == '\n')
            fputs("\\n", out);
        else if (c == '\t')
            fputs("\\t", out);
        else if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029)
            fprintf(out, "\\u%04x", (unsigned)c);
        else
            fwrite(s, 1, n, out);
        s += n ? n : 1;
    }
    fputc('"', out);
}
