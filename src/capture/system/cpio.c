/* SPDX-License-Identifier: MIT */
#include "capture/system/cpio.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

enum { COPY_BYTES = 1 << 16 };

/* A name in the archive. */
struct name {
    char *name;
    char *source; /* file on the host; "": the entry was made here */
};

/* What the header says of an entry. */
struct cpio_entry {
    const char *name;
    uint32_t mode, links, major, minor; /* as stat has them */
    uint64_t bytes;                     /* of the contents */
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->name, ((const struct name *)b)->name);
}

static void free_name(void *p)
{
    struct name *n = p;

    free(n->name);
    free(n->source);
    free(n);
}

int cpio_open(struct cpio *c, const char *path, struct peet_err *err)
{
    *c = (struct cpio){ .path = mem_string(path) };
    c->out = fopen(path, "we");
    return c->out ? 0 : err_sys(err, errno, "%s: cannot create", path);
}

void cpio_release(struct cpio *c)
{
    if (c->out)
        fclose(c->out);
    tdestroy(c->names, free_name);
    free(c->path);
    *c = (struct cpio){ 0 };
}

static int cpio_put(struct cpio *c, const void *p, size_t n, struct peet_err *err)
{
    if (fwrite(p, 1, n, c->out) != n)
        return err_sys(err, errno, "%s: cannot write", c->path);
    c->bytes += n;
    return 0;
}

static int cpio_pad(struct cpio *c, struct peet_err *err)
{
    return cpio_put(c, "\0\0", (size_t)(-c->bytes & 3), err);
}

/* Header and name; 13 numbers of 8 digits each. */
static int put_header(struct cpio *c, const struct cpio_entry *e, struct peet_err *err)
{
    char text[6 + 13 * 8 + 1];
    size_t name = strlen(e->name) + 1;
    int r;

    if (e->bytes > UINT32_MAX)
        return err_set(err, PEET_ERR_LIMIT, "%s: a file for a guest may have 4 GiB at most", e->name);
    snprintf(text, sizeof text, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", ++c->inodes, e->mode, 0u,
             0u, e->links, 0u, (uint32_t)e->bytes, 0u, 0u, e->major, e->minor, (uint32_t)name, 0u);
    if ((r = cpio_put(c, text, sizeof text - 1, err)) < 0 || (r = cpio_put(c, e->name, name, err)) < 0)
        return r;
    return cpio_pad(c, err);
}

/* 1: the name is new, and its folders are there now; 0: it is there already, from the same source. */
static int cpio_claim(struct cpio *c, const char *name, const char *source, struct peet_err *err)
{
    struct name *n = mem_alloc(1, sizeof *n);

    n->name = mem_string(name);
    n->source = mem_string(source);
    struct name **found = tsearch(n, &c->names, compare_names);
    if (!found) {
        free_name(n);
        return err_set(err, PEET_ERR_MEMORY, "no memory");
    }
    if (*found != n) {
        struct name *old = *found;
        int r = strcmp(old->source, source) == 0
                    ? 0
                    : err_set(err, PEET_ERR_USAGE, "both %s and %s would be /%s in the guest; there can be only one",
                              *old->source ? old->source : "a folder", *source ? source : "a folder", name);
        free_name(n);
        return r;
    }
    const char *slash = strrchr(name, '/');
    if (!slash)
        return 1;
    char *folder = strndup(name, (size_t)(slash - name));
    int r = folder ? cpio_folder(c, folder, err) : err_set(err, PEET_ERR_MEMORY, "no memory");
    free(folder);
    return r < 0 ? r : 1;
}

static const char *cpio_relative(const char *name)
{
    while (*name == '/')
        name++;
    return name;
}

int cpio_folder(struct cpio *c, const char *name, struct peet_err *err)
{
    name = cpio_relative(name);
    int r = *name ? cpio_claim(c, name, "", err) : 0;

    return r <= 0 ? r : put_header(c, &(struct cpio_entry){ .name = name, .mode = S_IFDIR | 0755, .links = 2 }, err);
}

int cpio_text(struct cpio *c, const char *name, const char *text, size_t bytes, struct peet_err *err)
{
    name = cpio_relative(name);
    int r = cpio_claim(c, name, "peet", err);

    if (r <= 0)
        return r;
    if ((r = put_header(c, &(struct cpio_entry){ name, S_IFREG | 0644, 1, 0, 0, bytes }, err)) < 0
        || (r = cpio_put(c, text, bytes, err)) < 0)
        return r;
    return cpio_pad(c, err);
}

int cpio_link(struct cpio *c, const char *name, const char *target, struct peet_err *err)
{
    char *source = mem_format("a link to %s", target);

    name = cpio_relative(name);
    int r = cpio_claim(c, name, source, err);
    free(source);
    if (r <= 0)
        return r;
    if ((r = put_header(c, &(struct cpio_entry){ name, S_IFLNK | 0777, 1, 0, 0, strlen(target) }, err)) < 0
        || (r = cpio_put(c, target, strlen(target), err)) < 0)
        return r;
    return cpio_pad(c, err);
}

int cpio_device(struct cpio *c, const char *name, uint32_t major, uint32_t minor, struct peet_err *err)
{
    name = cpio_relative(name);
    int r = cpio_claim(c, name, "", err);

    return r <= 0 ? r : put_header(c, &(struct cpio_entry){ name, S_IFCHR | 0600, 1, major, minor, 0 }, err);
}

/* Copies the number of bytes that the header has; a file that changes during the copy is an error. */
static int cpio_copy_bytes(struct cpio *c, FILE *in, const char *source, uint64_t bytes, struct peet_err *err)
{
    char buffer[COPY_BYTES];
    int r;

    while (bytes > 0) {
        size_t n = fread(buffer, 1, bytes < sizeof buffer ? (size_t)bytes : sizeof buffer, in);
        if (n == 0 && ferror(in))
            return err_sys(err, errno, "%s: cannot read", source);
        if (n == 0)
            return err_set(err, PEET_ERR_IO, "%s: became shorter while it was read", source);
        if ((r = cpio_put(c, buffer, n, err)) < 0)
            return r;
        bytes -= n;
    }
    return cpio_pad(c, err);
}

int cpio_file(struct cpio *c, const char *name, const char *source, struct peet_err *err)
{
    struct stat st;
    int r;

    name = cpio_relative(name);
    if ((r = cpio_claim(c, name, source, err)) <= 0)
        return r;
    FILE *in = fopen(source, "re");
    if (!in || fstat(fileno(in), &st) < 0)
        r = err_sys(err, errno, "%s: cannot read", source);
    else if (!S_ISREG(st.st_mode))
        r = err_set(err, PEET_ERR_USAGE, "%s: is not a file", source);
    else
        r = put_header(
            c, &(struct cpio_entry){ name, S_IFREG | 0644 | (st.st_mode & 0111), 1, 0, 0, (uint64_t)st.st_size }, err);
    if (r >= 0)
        r = cpio_copy_bytes(c, in, source, (uint64_t)st.st_size, err);
    if (in)
        fclose(in);
    return r;
}

/* ---- whole folders ---- */

static int cpio_add_entry(struct cpio *c, const char *name, const char *source, const char *base, struct peet_err *err)
{
    char *inner = mem_format("%s/%s", name, base), *from = mem_format("%s/%s", source, base), target[PATH_MAX];
    struct stat st;
    int r = 0;

    if (lstat(from, &st) < 0) {
        r = err_sys(err, errno, "%s", from);
    } else if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlink(from, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = 0;
        r = n < 0 ? err_sys(err, errno, "%s: cannot read", from) : cpio_link(c, inner, target, err);
    } else if (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) {
        r = cpio_tree(c, inner, from, err);
    }
    free(inner);
    free(from);
    return r;
}

static int cpio_visible(const struct dirent *d)
{
    return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

int cpio_tree(struct cpio *c, const char *name, const char *source, struct peet_err *err)
{
    struct dirent **list;
    struct stat st;
    int r;

    if (stat(source, &st) < 0)
        return err_sys(err, errno, "%s: cannot be put into the guest", source);
    if (!S_ISDIR(st.st_mode))
        return cpio_file(c, name, source, err);
    if ((r = cpio_folder(c, name, err)) < 0)
        return r;
    int n = scandir(source, &list, cpio_visible, alphasort);
    if (n < 0)
        return err_sys(err, errno, "%s: cannot read", source);
    for (int i = 0; i < n; i++) {
        if (r >= 0)
            r = cpio_add_entry(c, name, source, list[i]->d_name, err);
        free(list[i]);
    }
    free(list);
    return r;
}

static void list_name(const void *node, VISIT order, void *to)
{
    const struct name *n = *(const struct name *const *)node;

    if ((order == postorder || order == leaf) && n->source[0] == '/')
        fprintf(to, "/%s\t%s\n", n->name, n->source);
}

int cpio_list(const struct cpio *c, const char *path, struct peet_err *err)
{
    FILE *f = fopen(path, "we");

    if (f)
        twalk_r(c->names, list_name, f);
    return f && fclose(f) == 0 ? 0 : err_sys(err, errno, "%s: cannot write", path);
}

int cpio_close(struct cpio *c, struct peet_err *err)
{
    int r = put_header(c, &(struct cpio_entry){ .name = "TRAILER!!!", .links = 1 }, err);
    FILE *out = c->out;

    c->out = NULL;
    if (fclose(out) != 0 && r == 0)
        r = err_sys(err, errno, "%s: cannot write", c->path);
    return r;
}
