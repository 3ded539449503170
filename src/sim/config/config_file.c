/* SPDX-License-Identifier: MIT */
/* Machine files: in the language of libconfig, with the settings of the table and no others. */
#include <libconfig.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/config/config_load.h"

/* A machine file that is being read. */
struct reader {
    struct loader *loader;
    const char *path, *folder;
    unsigned depth;
};

/* "x.cfg:12"; to be freed. libconfig names what was included, and versions differ in whether the folder is part of that. */
static char *reader_position(const struct reader *r, const char *included, int line)
{
    size_t n = strlen(r->folder);

    if (!included)
        return mem_format("%s:%d", r->path, line);
    bool has_folder = !strncmp(included, r->folder, n) && included[n] == '/';
    char *path = config_join(r->folder, has_folder ? included + n + 1 : included);
    char *position = mem_format("%s:%d", path, line);
    free(path);
    return position;
}

static char *setting_position(const struct reader *r, const config_setting_t *e)
{
    return reader_position(r, config_setting_source_file(e), (int)config_setting_source_line(e));
}

static struct setting_value value_of(const config_setting_t *e)
{
    switch (config_setting_type(e)) {
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64: return (struct setting_value){ VALUE_NUMBER, config_setting_get_int64(e), NULL };
    case CONFIG_TYPE_BOOL: return (struct setting_value){ VALUE_SWITCH, config_setting_get_bool(e), NULL };
    case CONFIG_TYPE_STRING: return (struct setting_value){ VALUE_TEXT, 0, config_setting_get_string(e) };
    case CONFIG_TYPE_FLOAT: return (struct setting_value){ VALUE_OTHER, 0, "a number with a point" };
    case CONFIG_TYPE_GROUP: return (struct setting_value){ VALUE_OTHER, 0, "a group" };
    case CONFIG_TYPE_ARRAY: return (struct setting_value){ VALUE_OTHER, 0, "an array" };
    default: return (struct setting_value){ VALUE_OTHER, 0, "a list" };
    }
}

static int reader_walk(const struct reader *r, const config_setting_t *group, const char *prefix, struct peet_err *err);

static int reader_take(const struct reader *r, const config_setting_t *e, const char *path, struct peet_err *err)
{
    struct setting_value v = value_of(e);
    char *origin = setting_position(r, e);
    int result;

    if (!setting_is_group(path)) {
        result = loader_put(r->loader, path, &v, origin, err);
    } else if (config_setting_is_group(e)) {
        result = reader_walk(r, e, path, err);
    } else {
        result =
            err_set(err, PEET_ERR_USAGE, "%s: %s: expected a group, %s = { … };", origin, path, config_setting_name(e));
    }
    free(origin);
    return result;
}

static int reader_walk(const struct reader *r, const config_setting_t *group, const char *prefix, struct peet_err *err)
{
    int result = 0;

    for (unsigned i = 0; result == 0 && i < (unsigned)config_setting_length(group); i++) {
        const config_setting_t *e = config_setting_get_elem(group, i);
        const char *name = config_setting_name(e);
        if (!prefix && !strcmp(name, "base"))
            continue;
        char *path = mem_format("%s%s%s", prefix ? prefix : "", prefix ? "." : "", name);
        result = reader_take(r, e, path, err);
        free(path);
    }
    return result;
}

/* The base of a machine is read first, wherever it is named. The machine does not inherit its name and summary. */
static int take_base(const struct reader *r, const config_setting_t *root, struct peet_err *err)
{
    const config_setting_t *e = config_setting_get_member(root, "base");
    const char *base = e ? config_setting_get_string(e) : NULL;
    int result;

    if (!e)
        return 0;
    bool is_relative = base && base[0] != '/' && (strchr(base, '/') || strchr(base, '.'));
    char *name = is_relative ? config_join(r->folder, base) : mem_string(base ? base : ""),
         *origin = setting_position(r, e);
    if (!base)
        result = err_set(err, PEET_ERR_USAGE, "base: expected the name of a preset or of a file, in quotes");
    else if (r->depth >= CONFIG_MAX_BASES)
        result = err_set(err, PEET_ERR_USAGE, "base: more than %d machines in a row; does one start from itself?",
                         CONFIG_MAX_BASES);
    else
        result = loader_take(r->loader, name, r->depth + 1, err);
    if (result == PEET_ERR_USAGE || result == PEET_ERR_IO) { /* an error within the base has its position already */
        err_prefix(err, "%s", origin);
        result = PEET_ERR_USAGE;
    }
    r->loader->config.name[0] = r->loader->config.summary[0] = 0;
    free(name);
    free(origin);
    return result;
}

static int reader_report(const struct reader *r, const config_t *c, struct peet_err *err)
{
    const char *text = config_error_text(c);
    char *position = reader_position(r, config_error_file(c), config_error_line(c));
    bool is_syntax = text && !strcmp(text, "syntax error");

    err_set(err, PEET_ERR_FORMAT, "%s: %s%s", position, text ? text : "it cannot be read",
            is_syntax ? " here or just before; a setting is name = value; and a group is name = { … };" : "");
    free(position);
    return PEET_ERR_FORMAT;
}

int loader_read(struct loader *l, const char *path, const char *folder, const char *text, unsigned depth,
                struct peet_err *err)
{
    struct reader r = { .loader = l, .path = path, .folder = folder, .depth = depth };
    config_t c;

    int result = config_scan(path, folder, text, 0, err);
    if (result < 0)
        return result;
    config_init(&c);
    config_set_include_dir(&c, folder);
    if (!config_read_string(&c, text)) {
        result = reader_report(&r, &c, err);
    } else {
        result = take_base(&r, config_root_setting(&c), err);
        if (result == 0)
            result = reader_walk(&r, config_root_setting(&c), NULL, err);
    }
    config_destroy(&c);
    if (result == PEET_ERR_USAGE) { /* a mistake of the file, not of the command line */
        result = PEET_ERR_FORMAT;
        if (err)
            err->code = result;
    }
    return result;
}
