/* SPDX-License-Identifier: MIT */
/* A scan of a machine file before libconfig reads it. libconfig 1.5 truncates numbers to 32 bits, ends the program on @include of a folder, and
 * reports a string without an end at the last line of the file. The scan distinguishes comments, strings, names, numbers and @include;
 * libconfig reports other mistakes. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/config/config_load.h"

char *config_join(const char *folder, const char *name)
{
    return strcmp(folder, ".") != 0 ? mem_format("%s/%s", folder, name) : mem_string(name);
}

int config_slurp(const char *path, char **ret, struct peet_err *err)
{
    FILE *f = fopen(path, "re");
    int r = 0;

    if (!f)
        return err_sys(err, errno, "%s", path);
    char *text = mem_alloc(CONFIG_MAX_FILE + 1, 1);
    errno = 0;
    size_t n = fread(text, 1, CONFIG_MAX_FILE + 1, f);
    if (ferror(f))
        r = err_sys(err, errno, "%s", path);
    else if (n > CONFIG_MAX_FILE)
        r = err_set(err, PEET_ERR_FORMAT, "%s: more than %d bytes; is it a machine file?", path, CONFIG_MAX_FILE);
    else if (memchr(text, 0, n))
        r = err_set(err, PEET_ERR_FORMAT, "%s: it has bytes that are 0; is it a machine file?", path);
    fclose(f);
    if (r < 0)
        free(text);
    else
        *ret = text;
    return r;
}

/* A position in a machine file. */
struct scan {
    const char *path, *folder, *at;
    int line;
    bool is_first; /* nothing but blanks before it in its line */
    unsigned depth;
};

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '*';
}

/* Advances beyond `end`, or to the end of the text. */
static void skip_to(struct scan *s, const char *end)
{
    const char *to = strstr(s->at, end);

    for (to = to ? to + strlen(end) : s->at + strlen(s->at); s->at < to; s->at++)
        s->line += *s->at == '\n';
}

static int skip_string(struct scan *s, struct peet_err *err)
{
    int line = s->line;

    for (s->at++; *s->at && *s->at != '"'; s->at++) {
        if (*s->at == '\\' && s->at[1])
            s->at++;
        s->line += *s->at == '\n';
    }
    if (!*s->at)
        return err_set(err, PEET_ERR_FORMAT, "%s:%d: the string that begins here has no end", s->path, line);
    s->at++;
    return 0;
}

static int scan_number(struct scan *s, struct peet_err *err)
{
    bool hex = s->at[0] == '0' && (s->at[1] == 'x' || s->at[1] == 'X');
    const char *from = s->at;
    char *end;

    errno = 0;
    unsigned long long v = strtoull(from, &end, hex ? 16 : 10);
    int digits = (int)(end - from);
    bool is_real = !hex && (*end == '.' || *end == 'e' || *end == 'E');
    bool is_long = *end == 'L';
    for (s->at = end; is_name(*s->at) || *s->at == '.';)
        s->at++;
    if (is_real || (!errno && v <= (is_long ? (uint64_t)INT64_MAX : (uint64_t)INT32_MAX)))
        return 0;
    return err_set(err, PEET_ERR_FORMAT, "%s:%d: %.*s is too great for a plain number; write it in quotes: \"%.*s\"",
                   s->path, s->line, digits, from, digits, from);
}

static bool is_preset(const char *name)
{
    for (size_t i = 0; presets[i].name; i++)
        if (!strcmp(presets[i].name, name))
            return true;
    return false;
}

static int include_file(const struct scan *s, const char *name, struct peet_err *err)
{
    char *path = config_join(s->folder, name), *text = NULL;
    int r = 0;

    if (name[0] == '/')
        r = err_set(err, PEET_ERR_FORMAT, "@include takes names in the folder of the machine file, not '%s'", name);
    else if (s->depth >= CONFIG_MAX_INCLUDES)
        r = err_set(err, PEET_ERR_FORMAT, "@include goes more than %d files deep; does one include itself?",
                    CONFIG_MAX_INCLUDES);
    else if (config_slurp(path, &text, err) < 0)
        r = !is_preset(name)
                ? PEET_ERR_FORMAT
                : err_set(err, PEET_ERR_FORMAT, "there is no file '%s'; to start from the preset say: base = \"%s\";",
                          path, name);
    if (r < 0) {
        err_prefix(err, "%s:%d", s->path, s->line);
        if (err)
            err->code = r;
    } else {
        r = config_scan(path, s->folder, text, s->depth + 1, err);
    }
    free(text);
    free(path);
    return r;
}

static int scan_include(struct scan *s, struct peet_err *err)
{
    const char *from = s->at + strlen("@include");

    from += strspn(from, " \t");
    size_t n = *from == '"' ? strcspn(from + 1, "\"\n") : 0;
    s->at++;
    if (!n || from[1 + n] != '"')
        return 0; /* libconfig will say so */
    s->at = from + n + 2;
    char *name = mem_format("%.*s", (int)n, from + 1);
    int r = include_file(s, name, err);
    free(name);
    return r;
}

/* One comment, string, name, number, @include, or letter. */
static int scan_step(struct scan *s, struct peet_err *err)
{
    bool was_first = s->is_first;

    s->is_first = *s->at == '\n' || (was_first && (*s->at == ' ' || *s->at == '\t'));
    if (*s->at == '#' || !strncmp(s->at, "//", 2)) {
        s->at += strcspn(s->at, "\n");
    } else if (!strncmp(s->at, "/*", 2)) {
        skip_to(s, "*/");
    } else if (*s->at == '"') {
        return skip_string(s, err);
    } else if (was_first && !strncmp(s->at, "@include", strlen("@include"))) {
        return scan_include(s, err);
    } else if (isdigit((unsigned char)*s->at)) {
        return scan_number(s, err);
    } else if (isalpha((unsigned char)*s->at) || *s->at == '*') {
        while (is_name(*s->at))
            s->at++;
    } else {
        s->line += *s->at++ == '\n';
    }
    return 0;
}

int config_scan(const char *path, const char *folder, const char *text, unsigned depth, struct peet_err *err)
{
    struct scan s = { .path = path, .folder = folder, .at = text, .line = 1, .is_first = true, .depth = depth };
    int r = 0;

    while (r == 0 && *s.at)
        r = scan_step(&s, err);
    return r;
}
