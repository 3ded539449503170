/* SPDX-License-Identifier: MIT */
/* Applications: a command line each, whose program is looked up as a shell would do it. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/system/system.h"

char *guest_path(const char *path)
{
    char real[PATH_MAX];
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char *folder = slash ? strndup(path, (size_t)(slash - path + 1)) : mem_string(".");
    bool there = folder && realpath(folder, real) && *base && strcmp(base, ".") != 0 && strcmp(base, "..") != 0;

    free(folder);
    if (there && access(path, F_OK) == 0)
        return mem_format("%s/%s", strcmp(real, "/") == 0 ? "" : real, base);
    return realpath(path, real) ? mem_string(real) : NULL;
}

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static char *find_program(const char *name)
{
    const char *path = getenv("PATH");

    if (strchr(name, '/'))
        return is_program(name) ? guest_path(name) : NULL;
    while (path && *path) {
        size_t n = strcspn(path, ":");
        char *file = mem_format("%.*s/%s", n ? (int)n : 1, n ? path : ".", name);
        char *found = is_program(file) ? guest_path(file) : NULL;
        free(file);
        if (found)
            return found;
        path += path[n] ? n + 1 : n;
    }
    return NULL;
}

static bool is_assignment(const char *word)
{
    const char *p = word;

    while (isalnum((unsigned char)*p) || *p == '_')
        p++;
    return p > word && *p == '=' && !isdigit((unsigned char)*word);
}

/* Takes the words. */
static int apps_add_take(struct apps *apps, struct words *words, struct peet_err *err)
{
    struct app a = { 0 };
    size_t first = 0;

    while (first < words->count && is_assignment(words->item[first]))
        words_add(&a.environment, "%s", words->item[first++]);
    for (size_t i = first; i < words->count; i++)
        words_add(&a.argv, "%s", words->item[i]);
    words_release(words);
    apps->item = mem_room(apps->item, apps->count, sizeof *apps->item);
    apps->item[apps->count++] = a;
    if (!a.argv.count)
        return err_set(err, PEET_ERR_USAGE, "--app needs a program: --app 'PROGRAM ARGUMENT…'");
    char *program = find_program(a.argv.item[0]);
    if (!program)
        return err_set(err, PEET_ERR_IO, "%s: there is no such program here%s", a.argv.item[0],
                       strchr(a.argv.item[0], '/') ? "" : "; one in this folder is ./NAME");
    apps->item[apps->count - 1].program = program;
    return 0;
}

int apps_find(const struct system_config *config, char *const *argv, struct apps *ret, struct peet_err *err)
{
    struct apps apps = { 0 };
    struct words words = { 0 };
    int r = 0;

    for (size_t i = 0; i < config->apps.count && r == 0; i++)
        if ((r = words_split("--app", config->apps.item[i], &words, err)) == 0)
            r = apps_add_take(&apps, &words, err);
    words = (struct words){ 0 };
    for (size_t i = 0; argv && argv[i]; i++)
        words_add(&words, "%s", argv[i]);
    if (r == 0 && words.count)
        r = apps_add_take(&apps, &words, err);
    else
        words_release(&words);
    if (r < 0)
        apps_release(&apps);
    else
        *ret = apps;
    return r;
}

char *apps_name(const struct system_config *config, char *const *argv)
{
    struct words words = { 0 };
    const char *name = "guest";
    size_t i = 0;

    if (config->apps.count && words_split("--app", config->apps.item[0], &words, NULL) == 0) {
        while (i < words.count && is_assignment(words.item[i]))
            i++;
        name = i < words.count ? words.item[i] : name;
    } else if (argv && argv[0]) {
        name = argv[0];
    } else if (config->image || config->kernel) {
        name = config->image ? config->image : config->kernel;
    }
    char *base = mem_string(strrchr(name, '/') ? strrchr(name, '/') + 1 : name);
    words_release(&words);
    return base;
}

void apps_release(struct apps *a)
{
    for (size_t i = 0; i < a->count; i++) {
        words_release(&a->item[i].environment);
        words_release(&a->item[i].argv);
        free(a->item[i].program);
    }
    free(a->item);
    *a = (struct apps){ 0 };
}
