/* SPDX-License-Identifier: MIT */
/* A machine has the initial values of the table of settings, then those of its file (first of the file's base), then those of the command line.
 * Conflicts are checked after all of them, and reported at the place that set the conflicting setting. */
#include "sim/config/config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/opt.h"
#include "sim/config/config_load.h"

void config_defaults(struct machine_config *ret)
{
    const struct setting *s;

    *ret = (struct machine_config){ 0 };
    for (size_t i = 0; (s = setting_at(i)); i++) {
        struct setting_value v = { .type = VALUE_UNTYPED, .text = s->initial };
        int r = setting_put(s, ret, &v, NULL);
        assert(r == 0);
    }
}

/* ---- presets ---- */

const char *config_preset(size_t i, const char **ret_summary)
{
    if (presets[i].name && ret_summary)
        *ret_summary = presets[i].summary;
    return presets[i].name;
}

static const char *preset_name(size_t i, const void *unused)
{
    (void)unused;
    return presets[i].name;
}

static int take_preset(struct loader *l, const char *name, unsigned depth, struct peet_err *err)
{
    size_t n = 0;

    for (; presets[n].name; n++) {
        if (strcmp(presets[n].name, name) != 0)
            continue;
        char *path = mem_format("preset %s", name);
        int r = loader_read(l, path, ".", presets[n].text, depth, err);
        free(path);
        return r;
    }
    const char *nearest = opt_nearest(name, n, preset_name, NULL);
    if (nearest)
        return err_set(err, PEET_ERR_USAGE, "there is no machine '%s'; did you mean '%s'?", name, nearest);
    return err_set(err, PEET_ERR_USAGE,
                   "there is no machine '%s'; see 'peet list machines', or give a file, as ./%s or %s.cfg", name, name,
                   name);
}

/* ---- files ---- */

/* A machine without a name is called like its file. */
static void name_after(struct machine_config *c, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');

    snprintf(c->name, sizeof c->name, "%.*s", (int)(dot && dot > name ? (size_t)(dot - name) : strlen(name)), name);
}

static int take_file(struct loader *l, const char *path, unsigned depth, struct peet_err *err)
{
    const char *slash = strrchr(path, '/');
    char *text;

    int r = config_slurp(path, &text, err);
    if (r < 0)
        return r;
    size_t n = !slash || slash == path ? 1 : (size_t)(slash - path);
    char *folder = mem_format("%.*s", (int)n, slash ? path : ".");
    r = loader_read(l, path, folder, text, depth, err);
    if (r == 0 && !l->config.name[0])
        name_after(&l->config, path);
    free(folder);
    free(text);
    return r;
}

int loader_take(struct loader *l, const char *name, unsigned depth, struct peet_err *err)
{
    bool is_file = strchr(name, '/') || strchr(name, '.');

    return is_file ? take_file(l, name, depth, err) : take_preset(l, name, depth, err);
}

/* ---- all together ---- */

int loader_put(struct loader *l, const char *path, const struct setting_value *v, const char *origin,
               struct peet_err *err)
{
    const struct setting *s = setting_find(path);
    int r = s ? setting_put(s, &l->config, v, err) : setting_unknown(path, err);

    if (r < 0)
        return err_prefix(err, "%s", origin);
    char **set_at = &l->origin[setting_index(s)];
    free(*set_at);
    *set_at = mem_string(origin);
    return 0;
}

static int take_set(struct loader *l, const char *set, struct peet_err *err)
{
    const char *equals = strchr(set, '=');

    if (!equals)
        return err_set(err, PEET_ERR_USAGE, "--set %s: expected PATH=VALUE, such as cpus=4", set);
    struct setting_value v = { .type = VALUE_UNTYPED, .text = equals + 1 };
    char *path = mem_format("%.*s", (int)(equals - set), set), *origin = mem_format("--set %s", set);
    int r = loader_put(l, path, &v, origin, err);
    free(origin);
    free(path);
    return r;
}

/* The place that set a setting; NULL: it has its initial value. */
static const char *origin_of(const struct loader *l, const char *path)
{
    return path ? l->origin[setting_index(setting_find(path))] : NULL;
}

static int loader_check(const struct loader *l, const char *name, struct peet_err *err)
{
    struct conflict conflict;

    if (config_find_conflict(&l->config, &conflict, err) == 0)
        return 0;
    const char *origin = origin_of(l, conflict.path);
    origin = origin ? origin : origin_of(l, conflict.other);
    bool is_set = origin && !strncmp(origin, "--set ", strlen("--set "));
    int code = is_set ? PEET_ERR_USAGE : PEET_ERR_FORMAT;
    err_prefix(err, "%s", origin ? origin : name);
    if (err)
        err->code = code;
    return code;
}

int config_load(struct machine_config *ret, const char *name, const char *const *set, size_t sets, struct peet_err *err)
{
    struct loader l;
    size_t settings = 0;

    while (setting_at(settings))
        settings++;
    l.origin = mem_alloc(settings, sizeof *l.origin);
    config_defaults(&l.config);
    int r = loader_take(&l, name, 0, err);
    for (size_t i = 0; r == 0 && i < sets; i++)
        r = take_set(&l, set[i], err);
    if (r == 0)
        r = loader_check(&l, name, err);
    if (r == 0) {
        l.config.fabric.cpus = l.config.cpus;
        l.config.fabric.line = l.config.level[0].line;
        *ret = l.config;
    }
    for (size_t i = 0; i < settings; i++)
        free(l.origin[i]);
    free(l.origin);
    return r;
}
