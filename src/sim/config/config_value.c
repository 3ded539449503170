/* SPDX-License-Identifier: MIT */
/* Values of settings: read, judged, stored and shown, each by what the table says of its setting. */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/opt.h"
#include "sim/config/settings.h"

/* ---- numbers ---- */

bool setting_number(const char *text, uint64_t *ret)
{
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    char *end;

    if (!isdigit((unsigned char)text[0]) || (hex && !isxdigit((unsigned char)text[2])))
        return false;
    errno = 0;
    unsigned long long v = strtoull(text, &end, hex ? 16 : 10);
    int letter = tolower((unsigned char)*end);
    int shift = letter == 'k' ? 10 : letter == 'm' ? 20 : letter == 'g' ? 30 : 0;
    if (end[shift ? 1 : 0] || errno || v > UINT64_MAX >> shift)
        return false;
    *ret = (uint64_t)v << shift;
    return true;
}

static void show_bytes(uint64_t v, char *buffer, size_t size)
{
    static const char LETTERS[] = "KMG";
    unsigned shift = 0;

    while (v && shift < 30 && (v >> shift) % 1024 == 0)
        shift += 10;
    if (shift)
        snprintf(buffer, size, "%" PRIu64 "%c", v >> shift, LETTERS[shift / 10 - 1]);
    else
        snprintf(buffer, size, "%" PRIu64, v);
}

static void show_number(const struct setting *s, uint64_t v, char *buffer, size_t size)
{
    if (s->type == SETTING_BYTES)
        show_bytes(v, buffer, size);
    else
        snprintf(buffer, size, "%" PRIu64, v);
}

/* ---- where it lies ---- */

static void setting_store(const struct setting *s, struct machine_config *c, uint64_t v)
{
    void *to = (char *)c + s->offset;

    assert(s->size == 1 || s->size == 4 || s->size == 8);
    switch (s->size) {
    case 1: *(uint8_t *)to = (uint8_t)v; return;
    case 4: *(uint32_t *)to = (uint32_t)v; return;
    default: *(uint64_t *)to = v; return;
    }
}

static uint64_t setting_load(const struct setting *s, const struct machine_config *c)
{
    const void *from = (const char *)c + s->offset;

    assert(s->size == 1 || s->size == 4 || s->size == 8);
    switch (s->size) {
    case 1: return *(const uint8_t *)from;
    case 4: return *(const uint32_t *)from;
    default: return *(const uint64_t *)from;
    }
}

static const void *fetch_kind(const struct setting *s, const struct machine_config *c)
{
    const void *kind;

    memcpy(&kind, (const char *)c + s->offset, sizeof kind);
    return kind;
}

/* ---- names: words, and modules of a registry ---- */

static const char *name_at(size_t i, const void *setting)
{
    const struct setting *s = setting;
    const char *name = NULL, *summary;

    if (s->words)
        return s->words[i];
    return s->registry->at(i, &name, &summary) ? name : NULL;
}

static void join_names(const struct setting *s, char *buffer, size_t size)
{
    const char *name;
    size_t at = 0;

    *buffer = 0;
    for (size_t i = 0; (name = name_at(i, s)) && at < size; i++)
        at += (size_t)snprintf(buffer + at, size - at, "%s%s", i ? ", " : "", name);
}

static int put_name(const struct setting *s, struct machine_config *c, const char *text, struct peet_err *err)
{
    char all[300];
    const char *name, *summary;
    size_t n = 0;

    for (; (name = name_at(n, s)); n++) {
        if (strcmp(name, text) != 0)
            continue;
        if (s->words) {
            setting_store(s, c, n);
        } else {
            const void *kind = s->registry->at(n, &name, &summary);
            memcpy((char *)c + s->offset, &kind, sizeof kind);
        }
        return 0;
    }
    const char *nearest = opt_nearest(text, n, name_at, s);
    if (nearest)
        return err_set(err, PEET_ERR_USAGE, "%s: there is no '%s'; did you mean '%s'?", s->path, text, nearest);
    join_names(s, all, sizeof all);
    return err_set(err, PEET_ERR_USAGE, "%s: there is no '%s'; there are %s", s->path, text, all);
}

/* ---- setting ---- */

static int setting_check_range(const struct setting *s, uint64_t v, struct peet_err *err)
{
    char shown[32], limit[32];

    show_number(s, v, shown, sizeof shown);
    show_number(s, v < s->least ? s->least : s->most, limit, sizeof limit);
    if (v < s->least)
        return err_set(err, PEET_ERR_USAGE, "%s: %s is too little; it is at least %s", s->path, shown, limit);
    if (v > s->most)
        return err_set(err, PEET_ERR_USAGE, "%s: %s is too much; it is at most %s", s->path, shown, limit);
    if (s->is_power && (v & (v - 1)))
        return err_set(err, PEET_ERR_USAGE, "%s: %s is not a power of two", s->path, shown);
    return 0;
}

/* What was found where something else was expected. */
static int wrong_type(const struct setting *s, const char *expected, const struct setting_value *v,
                      struct peet_err *err)
{
    if (v->type == VALUE_NUMBER)
        return err_set(err, PEET_ERR_USAGE, "%s: expected %s, found the number %" PRId64, s->path, expected, v->number);
    if (v->type == VALUE_SWITCH)
        return err_set(err, PEET_ERR_USAGE, "%s: expected %s, found %s", s->path, expected,
                       v->number ? "true" : "false");
    if (v->type == VALUE_OTHER)
        return err_set(err, PEET_ERR_USAGE, "%s: expected %s, found %s", s->path, expected, v->text);
    return err_set(err, PEET_ERR_USAGE, "%s: expected %s, found \"%s\"", s->path, expected, v->text);
}

static int put_number(const struct setting *s, struct machine_config *c, const struct setting_value *v,
                      struct peet_err *err)
{
    uint64_t n = (uint64_t)v->number;
    bool is_text = v->type == VALUE_TEXT || v->type == VALUE_UNTYPED;

    if (is_text ? !setting_number(v->text, &n) : v->type != VALUE_NUMBER)
        return wrong_type(s, s->type == SETTING_BYTES ? "a size such as 65536 or \"64K\"" : "a number", v, err);
    if (!is_text && v->number < 0)
        return err_set(err, PEET_ERR_USAGE, "%s: %" PRId64 " is too little; it is at least %" PRIu64, s->path,
                       v->number, s->least);
    int r = setting_check_range(s, n, err);
    if (r == 0)
        setting_store(s, c, n);
    return r;
}

static int put_switch(const struct setting *s, struct machine_config *c, const struct setting_value *v,
                      struct peet_err *err)
{
    bool is_true = v->type == VALUE_UNTYPED && !strcmp(v->text, "true");

    if (v->type != VALUE_SWITCH && !is_true && (v->type != VALUE_UNTYPED || strcmp(v->text, "false") != 0))
        return wrong_type(s, "true or false", v, err);
    setting_store(s, c, v->type == VALUE_SWITCH ? v->number != 0 : is_true);
    return 0;
}

static int put_text(const struct setting *s, struct machine_config *c, const struct setting_value *v,
                    struct peet_err *err)
{
    if (strlen(v->text) >= s->size)
        return err_set(err, PEET_ERR_USAGE, "%s: its %zu bytes are too many; there is room for %zu", s->path,
                       strlen(v->text), s->size - 1);
    snprintf((char *)c + s->offset, s->size, "%s", v->text);
    return 0;
}

int setting_put(const struct setting *s, struct machine_config *c, const struct setting_value *v, struct peet_err *err)
{
    switch (s->type) {
    case SETTING_NUMBER:
    case SETTING_BYTES: return put_number(s, c, v, err);
    case SETTING_SWITCH: return put_switch(s, c, v, err);
    case SETTING_TEXT:
    case SETTING_WORD:
    case SETTING_KIND: break;
    }
    if (v->type != VALUE_TEXT && v->type != VALUE_UNTYPED)
        return wrong_type(s, s->type == SETTING_TEXT ? "a string" : "a name in quotes", v, err);
    return s->type == SETTING_TEXT ? put_text(s, c, v, err) : put_name(s, c, v->text, err);
}

/* ---- judging and showing what is there ---- */

static size_t count_words(const struct setting *s)
{
    size_t n = 0;

    while (s->words[n])
        n++;
    return n;
}

int setting_check(const struct setting *s, const struct machine_config *c, struct peet_err *err)
{
    switch (s->type) {
    case SETTING_NUMBER:
    case SETTING_BYTES: return setting_check_range(s, setting_load(s, c), err);
    case SETTING_WORD:
        if (setting_load(s, c) < count_words(s))
            return 0;
        return err_set(err, PEET_ERR_USAGE, "%s: there is no number %" PRIu64, s->path, setting_load(s, c));
    case SETTING_KIND:
        if (fetch_kind(s, c))
            return 0;
        return err_set(err, PEET_ERR_USAGE, "%s: there is none", s->path);
    case SETTING_TEXT:
    case SETTING_SWITCH: return 0;
    }
    return 0;
}

static const char *kind_name(const struct setting *s, const void *kind)
{
    const char *name, *summary;
    const void *k;

    for (size_t i = 0; (k = s->registry->at(i, &name, &summary)); i++)
        if (k == kind)
            return name;
    return "";
}

void setting_show(const struct setting *s, const struct machine_config *c, char *buffer, size_t size)
{
    const char *name = "";

    switch (s->type) {
    case SETTING_NUMBER:
    case SETTING_BYTES: show_number(s, setting_load(s, c), buffer, size); return;
    case SETTING_SWITCH: name = setting_load(s, c) ? "true" : "false"; break;
    case SETTING_TEXT: name = (const char *)c + s->offset; break;
    case SETTING_WORD: name = setting_load(s, c) < count_words(s) ? s->words[setting_load(s, c)] : ""; break;
    case SETTING_KIND: name = kind_name(s, fetch_kind(s, c)); break;
    }
    snprintf(buffer, size, "%s", name);
}

void setting_range(const struct setting *s, char *buffer, size_t size)
{
    char least[32], most[32];

    switch (s->type) {
    case SETTING_TEXT: snprintf(buffer, size, "up to %zu bytes", s->size - 1); return;
    case SETTING_SWITCH: snprintf(buffer, size, "false, true"); return;
    case SETTING_WORD:
    case SETTING_KIND: join_names(s, buffer, size); return;
    case SETTING_NUMBER:
    case SETTING_BYTES: break;
    }
    show_number(s, s->least, least, sizeof least);
    show_number(s, s->most, most, sizeof most);
    snprintf(buffer, size, "%s to %s%s%s", least, s->most == UINT64_MAX ? "2^64 - 1" : most,
             s->type == SETTING_BYTES ? " bytes" : "", s->is_power ? ", a power of two" : "");
}
