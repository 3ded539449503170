/* SPDX-License-Identifier: MIT */
#include "base/opt.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

/* ---- the nearest word ---- */

enum { LONGEST = 40 }; /* characters; longer words are not compared */

static size_t opt_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Damerau-Levenshtein distance (optimal string alignment): an inserted, missing, wrong or swapped letter counts one. */
static size_t opt_distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t d[LONGEST + 1][LONGEST + 1];

    for (size_t i = 0; i <= n; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            d[i][j] = opt_least(d[i - 1][j - 1] + (x != y), opt_least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) && y == tolower((unsigned char)a[i - 2]))
                d[i][j] = opt_least(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[n][m];
}

const char *opt_nearest(const char *word, size_t n, const char *(*name_of)(size_t i, const void *context),
                        const void *context)
{
    const char *best = NULL;
    size_t length = strlen(word), best_distance = SIZE_MAX;

    if (length > LONGEST)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const char *name = name_of(i, context);
        size_t m = strlen(name);
        if (m > LONGEST)
            continue;
        size_t away = opt_distance(word, length, name, m);
        if (length >= 2 && !strncasecmp(word, name, opt_least(length, m)))
            away = opt_least(away, 1); /* one is the beginning of the other */
        if (away <= (length + 2) / 3 && away < opt_least(length, m) && away < best_distance) {
            best = name;
            best_distance = away;
        }
    }
    return best;
}

static const char *opt_name_at(size_t i, const void *table)
{
    return ((const struct opt *)table)[i].name;
}

static const char *opt_word_at(size_t i, const void *choices)
{
    return ((const char *const *)choices)[i];
}

/* ---- values ---- */

static int opt_read_number(const char *name, const char *text, uint64_t *ret, struct peet_err *err)
{
    char *end;
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');

    if (!isdigit((unsigned char)text[0]) || (hex && !isxdigit((unsigned char)text[2])))
        return err_set(err, PEET_ERR_USAGE, "option '%s': '%s' is not a number", name, text);
    errno = 0;
    unsigned long long v = strtoull(text, &end, hex ? 16 : 10);
    int letter = tolower((unsigned char)*end);
    int shift = letter == 'k' ? 10 : letter == 'm' ? 20 : letter == 'g' ? 30 : 0;
    if (*(shift ? end + 1 : end))
        return err_set(err, PEET_ERR_USAGE, "option '%s': '%s' is not a number", name, text);
    if (errno || v > UINT64_MAX >> shift)
        return err_set(err, PEET_ERR_USAGE, "option '%s': %s is more than 64 bits hold", name, text);
    *ret = (uint64_t)v << shift;
    return 0;
}

static int opt_read_word(const char *name, const char *text, const char *const *choices, const char **ret,
                         struct peet_err *err)
{
    char all[200] = "";
    size_t n = 0, at = 0;

    for (; choices[n]; n++) {
        if (!strcmp(choices[n], text)) {
            *ret = choices[n];
            return 0;
        }
        if (at < sizeof all)
            at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", n ? ", " : "", choices[n]);
    }
    const char *near = opt_nearest(text, n, opt_word_at, choices);
    if (near)
        return err_set(err, PEET_ERR_USAGE, "option '%s' does not know '%s'; did you mean '%s'?", name, text, near);
    return err_set(err, PEET_ERR_USAGE, "option '%s' does not know '%s'; it knows %s", name, text, all);
}

/* Appends a copy of the first `bytes` bytes of text; returns the copy. */
static const char *opt_list_append(const char *text, size_t bytes, struct opt_list *l)
{
    char *copy = mem_alloc(bytes + 1, 1);

    memcpy(copy, text, bytes);
    l->item = mem_room(l->item, l->count, sizeof *l->item);
    l->item[l->count++] = copy;
    return copy;
}

/* Appends the parts of text between its commas. */
static int opt_read_list(const char *name, const char *text, const struct opt *o, struct peet_err *err)
{
    const char *known;

    for (;; text++) {
        size_t bytes = strcspn(text, ",");
        if (!bytes)
            return err_set(err, PEET_ERR_USAGE, "option '%s': an item of the list is empty", name);
        const char *item = opt_list_append(text, bytes, o->value);
        int r = o->choices ? opt_read_word(name, item, o->choices, &known, err) : 0;
        if (r < 0)
            return r;
        text += bytes;
        if (!*text)
            return 0;
    }
}

static int opt_store(const struct opt *o, const char *name, char *text, struct peet_err *err)
{
    switch (o->type) {
    case OPT_FLAG: *(bool *)o->value = true; return 0;
    case OPT_STRING: *(const char **)o->value = text; return 0;
    case OPT_NUMBER: return opt_read_number(name, text, o->value, err);
    case OPT_CHOICE: return opt_read_word(name, text, o->choices, o->value, err);
    case OPT_LIST: return opt_read_list(name, text, o, err);
    case OPT_EACH: opt_list_append(text, strlen(text), o->value); return 0;
    }
    return 0;
}

void opt_list_release(struct opt_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->item[i]);
    free(l->item);
    *l = (struct opt_list){ 0 };
}

/* ---- the command line ---- */

/* The words of a command line, and a position among them. */
struct args {
    int count, next; /* words; index of the next one */
    char **arg;
};

/* The value of an option: the rest of its word, or else the next word; NULL after an error. */
static char *opt_value(const struct opt *o, const char *name, char *attached, struct args *a, struct peet_err *err)
{
    if (attached)
        return attached;
    if (a->next < a->count)
        return a->arg[a->next++];
    err_set(err, PEET_ERR_USAGE, "option '%s' needs a value: %s", name, o->arg ? o->arg : "VALUE");
    return NULL;
}

static int unknown_option(const struct opt *table, const char *name, struct peet_err *err)
{
    size_t n = 0;

    while (table[n].name)
        n++;
    const char *near = opt_nearest(name + 2, n, opt_name_at, table);
    if (near)
        return err_set(err, PEET_ERR_USAGE, "unknown option '%s'; did you mean '--%s'?", name, near);
    return err_set(err, PEET_ERR_USAGE, "unknown option '%s'", name);
}

/* name: of the option, with its dashes. text: what follows the sign in its word; NULL without a sign. */
static int long_option(const struct opt *table, const char *name, char *text, struct args *a, struct peet_err *err)
{
    const struct opt *o = table;

    while (o->name && strcmp(o->name, name + 2) != 0)
        o++;
    if (!o->name)
        return unknown_option(table, name, err);
    if (o->type == OPT_FLAG && text)
        return err_set(err, PEET_ERR_USAGE, "option '%s' takes no value", name);
    if (o->type != OPT_FLAG && !(text = opt_value(o, name, text, a, err)))
        return PEET_ERR_USAGE;
    return opt_store(o, name, text, err);
}

/* word: --name or --name=value */
static int long_word(const struct opt *table, char *word, struct args *a, struct peet_err *err)
{
    size_t bytes = strcspn(word, "=");
    char *name = mem_format("%.*s", (int)bytes, word);
    int r = long_option(table, name, word[bytes] ? word + bytes + 1 : NULL, a, err);

    free(name);
    return r;
}

static int short_options(const struct opt *table, char *word, struct args *a, struct peet_err *err)
{
    for (const struct opt *o = table; o->name && word[2]; o++) /* -thread: surely a dash was forgotten */
        if (!strcmp(o->name, word + 1))
            return err_set(err, PEET_ERR_USAGE, "unknown option '%s'; did you mean '--%s'?", word, o->name);
    for (char *p = word + 1; *p;) {
        char name[] = { '-', *p, 0 }, *text = NULL;
        const struct opt *o = table;

        while (o->name && o->letter != *p)
            o++;
        if (!o->name)
            return err_set(err, PEET_ERR_USAGE, "unknown option '%s'", p == word + 1 ? word : name);
        p++;
        if (o->type != OPT_FLAG) {
            text = opt_value(o, name, *p ? p : NULL, a, err);
            if (!text)
                return PEET_ERR_USAGE;
            p += strlen(p);
        }
        int r = opt_store(o, name, text, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int opt_parse(const struct opt *table, int argc, char **argv, int *ret_operands, struct peet_err *err)
{
    struct args a = { .count = argc, .next = 1, .arg = argv };
    int operands = 0;
    bool only_operands = false;

    while (a.next < argc) {
        char *word = argv[a.next++];
        int r = 0;

        if (only_operands || word[0] != '-' || !word[1])
            argv[++operands] = word; /* never a word that was not read yet */
        else if (!strcmp(word, "--"))
            only_operands = true;
        else if (word[1] == '-')
            r = long_word(table, word, &a, err);
        else
            r = short_options(table, word, &a, err);
        if (r < 0)
            return r;
    }
    *ret_operands = operands;
    return 0;
}

int opt_label(const struct opt *o, char *buffer, size_t size)
{
    char letter[8] = "    ", values[100] = "";
    size_t at = 0;

    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    if (o->type != OPT_FLAG)
        snprintf(values, sizeof values, " %s", o->arg ? o->arg : "VALUE");
    if (o->type == OPT_CHOICE)
        for (size_t i = 0; o->choices[i] && at < sizeof values; i++)
            at += (size_t)snprintf(values + at, sizeof values - at, "%c%s", i ? '|' : ' ', o->choices[i]);
    return snprintf(buffer, size, "%s--%s%s", letter, o->name, values);
}
