/* SPDX-License-Identifier: MIT */
/* The first file system of a guest: peet's init, the programs at their paths of the host, their libraries, the library that marks their
 * threads, and the user's files. Libraries are in /lib by the names that programs use, where the loader looks last; no other folder has them.
 * It is not compressed: an emulated processor takes longer to unpack it than to read it (20 MB: 4.6 s to the end of the guest; packed by
 * zstd 5.0 s). */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/qemu/pattern.h"
#include "capture/system/cpio.h"
#include "capture/system/libraries.h"
#include "capture/system/system.h"
#include "peet/mark_guest.h"

enum { HEAD_BYTES = 256, DEEPEST_SCRIPT = 4, MOST_APPS = 256 /* as in guest/init.c */ };
static const char MARK[] = "libpeet-mark.so";
static const char MARK_IN_GUEST[] = "/peet/libpeet-mark.so";

/* The file system under construction. */
struct guest_image {
    const struct system_config *config;
    struct library_search search;
    struct cpio cpio;
};

/* Folders of the root that are links into /usr. */
static const char *const MERGED[] = { "bin", "sbin", "lib", "lib64" };
enum { MERGED_COUNT = sizeof MERGED / sizeof *MERGED };

/* The real path of a file in the guest; to be freed. */
static char *guest_location(const char *path)
{
    for (int i = 0; i < MERGED_COUNT; i++) {
        size_t n = strlen(MERGED[i]);
        if (path[0] == '/' && !strncmp(path + 1, MERGED[i], n) && path[n + 1] == '/')
            return mem_format("/usr%s", path);
    }
    return mem_string(path);
}

static int add_file(struct guest_image *g, const char *name, const char *source, struct peet_err *err)
{
    char *at = guest_location(name);
    int r = cpio_tree(&g->cpio, at, source, err);

    free(at);
    return r;
}

static int add_libraries(struct guest_image *g, const char *program, bool *ret_dynamic, struct peet_err *err)
{
    struct libraries l = { 0 };
    int r = libraries_find(program, &g->search, &l, err);

    if (r == 0 && l.dynamic) /* glibc opens it when a thread is cancelled or ends by pthread_exit */
        libraries_also("libgcc_s.so.1", &g->search, &l);
    for (size_t i = 0; i < l.count && r == 0; i++) {
        const struct library *item = &l.item[i];
        char *name = strchr(item->name, '/') ? mem_string(item->name) : mem_format("/lib/%s", item->name);
        r = add_file(g, name, item->path, err);
        free(name);
    }
    *ret_dynamic = l.dynamic;
    libraries_release(&l);
    return r;
}

/* Reads "#!PROGRAM" off the beginning of a file; NULL: it is no script. */
static char *interpreter_of(const char *path)
{
    char head[HEAD_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head - 1);

    if (fd >= 0)
        close(fd);
    if (n < 2 || head[0] != '#' || head[1] != '!')
        return NULL;
    head[n] = 0;
    char *name = head + 2 + strspn(head + 2, " \t");
    name[strcspn(name, " \t\r\n")] = 0;
    return mem_string(name);
}

/* A program with its libraries; a script with its interpreter. */
static int add_program(struct guest_image *g, const char *name, const char *path, int depth, bool *ret_dynamic,
                       struct peet_err *err)
{
    char *interpreter = interpreter_of(path);
    int r = add_file(g, name, path, err);

    if (r == 0 && interpreter && depth == DEEPEST_SCRIPT)
        r = err_set(err, PEET_ERR_USAGE, "%s: scripts of scripts of scripts are too much", path);
    else if (r == 0 && interpreter)
        r = add_program(g, interpreter, interpreter, depth + 1, ret_dynamic, err);
    else if (r == 0)
        r = add_libraries(g, path, ret_dynamic, err);
    free(interpreter);
    return r;
}

/* Adds an application at its real path, beside which it may look for files; and the link by which it was named. */
static int add_app(struct guest_image *g, const char *path, bool *ret_dynamic, struct peet_err *err)
{
    char *real = realpath(path, NULL), *at = guest_location(path), *real_at = guest_location(real ? real : path);
    int r = 0;

    if (!real)
        r = err_sys(err, errno, "%s", path);
    else if (strcmp(at, real_at) != 0)
        r = cpio_link(&g->cpio, at, real_at, err);
    if (r == 0)
        r = add_program(g, real, real, 0, ret_dynamic, err);
    free(real);
    free(at);
    free(real_at);
    return r;
}

/* ---- /peet ---- */

static void add_string(char **text, size_t *bytes, const char *s)
{
    size_t n = strlen(s) + 1;
    char *longer = realloc(*text, *bytes + n);

    if (!longer)
        return; /* the guest will say that it is not there */
    memcpy(longer + *bytes, s, n);
    *text = longer;
    *bytes += n;
}

static int add_app_file(struct guest_image *g, const struct app *a, size_t number, bool preload, struct peet_err *err)
{
    static const char *const usual[] = { "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/", "TERM=dumb" };
    char *text = NULL, here[PATH_MAX], name[40], *word;
    size_t bytes = 0;

    add_string(&text, &bytes, a->program);
    add_string(&text, &bytes, getcwd(here, sizeof here) ? here : "/");
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        add_string(&text, &bytes, usual[i]);
    word = mem_format("LD_PRELOAD=%s", MARK_IN_GUEST);
    if (preload)
        add_string(&text, &bytes, word);
    free(word);
    word = mem_format("%s=%zu", PEET_MARK_APPLICATION, number);
    add_string(&text, &bytes, word);
    free(word);
    for (size_t i = 0; i < a->environment.count; i++)
        add_string(&text, &bytes, a->environment.item[i]);
    add_string(&text, &bytes, "");
    for (size_t i = 0; i < a->argv.count; i++)
        add_string(&text, &bytes, a->argv.item[i]);
    snprintf(name, sizeof name, "/peet/app/%zu", number);
    int r = cpio_text(&g->cpio, name, text, bytes, err);
    free(text);
    return r;
}

/* A file of peet's own for the guest's architecture; to be freed. NULL: it was not built. */
static char *own_file(const struct guest_image *g, const char *name)
{
    static const char *const places[] = { "", "/../.." }; /* installed; in a build */

    for (size_t i = 0; i < 2 * sizeof places / sizeof *places; i++) {
        bool plain = i & 1; /* files for the host's architecture may be outside of its folder */
        char *path = plain ? mem_format("%s%s/%s", g->config->folder, places[i / 2], name)
                           : mem_format("%s%s/%s/%s", g->config->folder, places[i / 2], guest_arch(g->config), name);
        if ((!plain || g->search.native) && access(path, R_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}

static int add_own(struct guest_image *g, const char *file, const char *name, struct peet_err *err)
{
    char *path = own_file(g, file);
    const char *arch = guest_arch(g->config);

    if (!path)
        return err_set(
            err, PEET_ERR_IO,
            "peet was built without %s for %s: install the compiler for it (on Debian gcc-%s-linux-gnu) and build "
            "peet again",
            file, arch, arch);
    int r = add_file(g, name, path, err);
    free(path);
    return r;
}

static bool stands_in(const uint8_t *file, size_t bytes, const struct pattern_alternative *c)
{
    for (size_t i = 0; i + c->length <= bytes; i++) {
        size_t n = 0;
        while (n < c->length && (file[i + n] & c->mask[n]) == (c->byte[n] & c->mask[n]))
            n++;
        if (n == c->length)
            return true;
    }
    return false;
}

/* Whether the pattern that marks threads stands somewhere in a program; in doubt, it does. */
static bool has_marks(const struct guest_image *g, const char *path)
{
    struct pattern p;
    struct stat st;
    const char *text = g->config->plugin.pattern ? g->config->plugin.pattern : "default";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *file = MAP_FAILED;
    bool found = false;

    if (fd >= 0 && fstat(fd, &st) == 0)
        file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (file == MAP_FAILED || pattern_parse(text, guest_arch(g->config), &p, NULL) < 0)
        return true;
    for (unsigned i = 0; i < p.alternatives && !found; i++)
        found = stands_in(file, (size_t)st.st_size, &p.alternative[i]);
    munmap(file, (size_t)st.st_size);
    return found;
}

static bool is_default(const char *pattern)
{
    return !pattern || !strcmp(pattern, "default");
}

static int add_apps(struct guest_image *g, const struct apps *apps, struct recording *recording, struct peet_err *err)
{
    bool any = false, dynamic;
    int r = 0;

    if (apps->count > MOST_APPS)
        return err_set(err, PEET_ERR_LIMIT, "%zu applications are more than the %d that can run together", apps->count,
                       (int)MOST_APPS);
    for (size_t i = 0; i < apps->count && r == 0; i++) {
        const struct app *a = &apps->item[i];
        if ((r = add_app(g, a->program, &dynamic, err)) < 0)
            break;
        bool marks = has_marks(g, a->program); /* twice would be too much */
        bool preload = dynamic && !marks && !g->config->marked && is_default(g->config->plugin.pattern);
        if (!dynamic && !marks)
            recording_warn(recording,
                           "%s is linked statically and marks no threads: none of them will be recorded (see STATIC "
                           "PROGRAMS in peet-record(1))",
                           a->argv.item[0]);
        any |= preload;
        r = add_app_file(g, a, i + 1, preload, err);
    }
    return r == 0 && any ? add_own(g, MARK, MARK_IN_GUEST, err) : r;
}

/* HOST or HOST:GUEST */
static int add_users_file(struct guest_image *g, const char *item, struct peet_err *err)
{
    const char *colon = strchr(item, ':');
    char *from = colon ? strndup(item, (size_t)(colon - item)) : mem_string(item);
    char *host = from ? guest_path(from) : NULL, here[PATH_MAX], *to;
    bool dynamic;
    int r;

    if (!host || (colon && !colon[1])) {
        r = err_set(err, PEET_ERR_IO, "--file %s: %s", item,
                    host ? "nothing stands behind the colon" : "there is no such file");
        free(from);
        free(host);
        return r;
    }
    if (!colon)
        to = mem_string(host);
    else
        to = colon[1] == '/' ? mem_string(colon + 1)
                             : mem_format("%s/%s", getcwd(here, sizeof here) ? here : "", colon + 1);
    r = add_file(g, to, host, err);
    if (r == 0
        && access(host, X_OK) == 0) /* a program that others start: with libraries, if it has some for this machine */
        (void)add_program(g, to, host, 0, &dynamic, NULL);
    free(from);
    free(host);
    free(to);
    return r;
}

static int add_all(struct guest_image *g, const struct apps *apps, struct recording *recording, struct peet_err *err)
{
    char target[20], here[PATH_MAX];
    int r = 0;

    for (int i = 0; i < MERGED_COUNT && r == 0; i++) {
        snprintf(target, sizeof target, "usr/%s", MERGED[i]);
        if ((r = cpio_folder(&g->cpio, target, err)) == 0)
            r = cpio_link(&g->cpio, MERGED[i], target, err);
    }
    if (r < 0 || (r = cpio_folder(&g->cpio, "tmp", err)) < 0 || (r = cpio_folder(&g->cpio, "etc", err)) < 0
        || (r = cpio_device(&g->cpio, "dev/console", 5, 1, err)) < 0 || (r = add_own(g, "init", "/init", err)) < 0)
        return r;
    if (getcwd(here, sizeof here) && (r = cpio_folder(&g->cpio, here, err)) < 0)
        return r;
    r = add_apps(g, apps, recording, err);
    for (size_t i = 0; i < g->config->files.count && r == 0; i++)
        r = add_users_file(g, g->config->files.item[i], err);
    return r;
}

static struct library_search guest_library_search(const struct system_config *config)
{
    static const struct {
        const char *name, *triplet;
        int machine;
    } known[] = {
#define X(name, machine, triplet) { #name, triplet, machine },
        GUEST_ARCHES(X)
#undef X
    };
    struct system_config own = { 0 };
    const char *arch = guest_arch(config);
    struct library_search s = { .native = !strcmp(arch, guest_arch(&own)), .sysroot = config->sysroot };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, arch) != 0)
            continue;
        s.machine = known[i].machine;
        s.triplet = known[i].triplet;
    }
    return s;
}

bool guest_asks(const struct system_config *config)
{
    return !config->is_own && !config->deterministic && is_default(config->plugin.pattern);
}

int guest_build(const struct system_config *config, const struct apps *apps, const struct guest_files *files,
                struct recording *recording, uint64_t *ret_bytes, struct peet_err *err)
{
    struct guest_image g = { .config = config, .search = guest_library_search(config) };
    int r = cpio_open(&g.cpio, files->initrd, err);

    if (r == 0 && files->answer)
        r = cpio_device(&g.cpio, PEET_MARK_ASK, 5, 1, err);
    if (r == 0 && (r = add_all(&g, apps, recording, err)) == 0)
        r = cpio_close(&g.cpio, err);
    if (r == 0 && files->list)
        r = cpio_list(&g.cpio, files->list, err);
    if (r == 0)
        *ret_bytes = g.cpio.bytes;
    cpio_release(&g.cpio);
    return r;
}
