/* SPDX-License-Identifier: MIT */
#include "capture/system/libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <glob.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

enum { DEEPEST_CONF = 8 };

/* A list of strings. */
struct strings {
    char **item;
    size_t count;
};

/* What one file says of itself. */
struct object {
    char *path, *interpreter, *rpath, *runpath;
    struct strings needed;
    size_t loader; /* index of the object that needed it; its own index: none */
};

/* The search for the libraries of a program. */
struct finder {
    const struct library_search *search;
    struct libraries *ret;
    struct strings folders; /* the usual ones */
    struct object *object;  /* files found so far, the program first */
    size_t count;
};

static void strings_add_take(struct strings *s, char *text)
{
    s->item = mem_room(s->item, s->count, sizeof *s->item);
    s->item[s->count++] = text;
}

static void strings_release(struct strings *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->item[i]);
    free(s->item);
    *s = (struct strings){ 0 };
}

static void object_release(struct object *o)
{
    free(o->path);
    free(o->interpreter);
    free(o->rpath);
    free(o->runpath);
    strings_release(&o->needed);
}

const char *machine_name(int machine)
{
    switch (machine) {
    case EM_X86_64: return "x86_64";
    case EM_AARCH64: return "aarch64";
    case EM_RISCV: return "riscv64";
    default: return "another machine";
    }
}

/* ---- reading ELF ---- */

static char *copy_of(const char *s)
{
    return s ? mem_string(s) : NULL;
}

static void library_read_dynamic(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, struct object *o)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Dyn d;

    for (int i = 0; data && gelf_getdyn(data, i, &d) && d.d_tag != DT_NULL; i++) {
        const char *text = elf_strptr(elf, header->sh_link, d.d_un.d_val);
        if (d.d_tag == DT_NEEDED && text)
            strings_add_take(&o->needed, mem_string(text));
        if (d.d_tag == DT_RPATH && !o->rpath)
            o->rpath = copy_of(text);
        if (d.d_tag == DT_RUNPATH && !o->runpath)
            o->runpath = copy_of(text);
    }
}

static void read_interpreter(Elf *elf, struct object *o)
{
    size_t count = 0, bytes;
    GElf_Phdr p;
    const char *file = elf_rawfile(elf, &bytes);

    elf_getphdrnum(elf, &count);
    for (size_t i = 0; file && i < count; i++)
        if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_INTERP && p.p_offset < bytes && p.p_filesz > 0
            && p.p_filesz <= bytes - p.p_offset && !file[p.p_offset + p.p_filesz - 1] && !o->interpreter)
            o->interpreter = mem_string(file + p.p_offset);
}

static void library_read(Elf *elf, struct object *o)
{
    Elf_Scn *section = NULL;
    GElf_Shdr h;

    read_interpreter(elf, o);
    while ((section = elf_nextscn(elf, section)))
        if (gelf_getshdr(section, &h) && h.sh_type == SHT_DYNAMIC)
            library_read_dynamic(elf, section, &h, o);
}

/* The machine of a file that is open; 0: it is no ELF file for 64 bits. */
static int elf_machine(Elf *elf)
{
    GElf_Ehdr e;

    if (!elf || elf_kind(elf) != ELF_K_ELF || gelf_getclass(elf) != ELFCLASS64 || !gelf_getehdr(elf, &e))
        return 0;
    return e.e_machine;
}

/* With a NULL ret it only looks at the file's kind. */
static int open_object(const char *path, int machine, struct object *ret, struct peet_err *err)
{
    int r = 0, fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(err, errno, "%s: cannot read", path);
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    int is = elf_machine(elf);
    if (!is)
        r = err_set(err, PEET_ERR_USAGE, "%s: is no program for 64 bits (ELF)", path);
    else if (is != machine)
        r = err_set(err, PEET_ERR_USAGE, "%s: is for %s, and the guest is %s: build it for that, or say --arch", path,
                    machine_name(is), machine_name(machine));
    else if (ret) {
        *ret = (struct object){ .path = mem_string(path) };
        library_read(elf, ret);
    }
    elf_end(elf);
    close(fd);
    return r;
}

/* ---- folders ---- */

static void read_conf(const char *path, struct strings *ret, int depth);

static void include_conf(char *pattern, struct strings *ret, int depth)
{
    glob_t found;

    pattern += strspn(pattern, " \t");
    pattern[strcspn(pattern, " \t")] = 0;
    char *whole = *pattern == '/' ? mem_string(pattern) : mem_format("/etc/%s", pattern);
    if (depth < DEEPEST_CONF && glob(whole, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            read_conf(found.gl_pathv[i], ret, depth + 1);
        globfree(&found);
    }
    free(whole);
}

static void read_conf_line(char *line, struct strings *ret, int depth)
{
    static const char include[] = "include";
    enum { LENGTH = sizeof include - 1 };

    line[strcspn(line, "#\n")] = 0;
    line += strspn(line, " \t");
    if (!strncmp(line, include, LENGTH) && (line[LENGTH] == ' ' || line[LENGTH] == '\t')) {
        include_conf(line + LENGTH, ret, depth);
    } else if (*line == '/') {
        line[strcspn(line, " \t=:,")] = 0;
        strings_add_take(ret, mem_string(line));
    }
}

static void read_conf(const char *path, struct strings *ret, int depth)
{
    char *line = NULL;
    size_t room = 0;
    FILE *f = fopen(path, "re");

    while (f && getline(&line, &room, f) >= 0)
        read_conf_line(line, ret, depth);
    free(line);
    if (f)
        fclose(f);
}

/* %s is the triplet. */
static void usual_folders(const struct library_search *s, struct strings *ret)
{
    static const char *const folders[] = { "/lib/%s", "/usr/lib/%s", "/lib64", "/usr/lib64", "/lib", "/usr/lib" };
    enum { FOLDERS = sizeof folders / sizeof *folders, OF_TRIPLET = 2 };

    if (s->native && !s->sysroot)
        read_conf("/etc/ld.so.conf", ret, 0);
    if (!s->native && !s->sysroot)
        strings_add_take(ret, mem_format("/usr/%s/lib", s->triplet)); /* of Debian's cross compilers */
    for (int i = 0; i < (s->native || s->sysroot ? FOLDERS : OF_TRIPLET); i++) {
        char *folder = i < OF_TRIPLET ? mem_format("%.*s%s", (int)strcspn(folders[i], "%"), folders[i], s->triplet)
                                      : mem_string(folders[i]);
        strings_add_take(ret, mem_format("%s%s", s->sysroot ? s->sysroot : "", folder));
        free(folder);
    }
}

/* $ORIGIN, $LIB and $PLATFORM, with and without braces. */
static char *libraries_expand(const char *folder, size_t length, const char *of, const struct library_search *s)
{
    char real[PATH_MAX], *out = mem_string("");

    if (!realpath(of, real))
        snprintf(real, sizeof real, "%s", of);
    *(strrchr(real, '/') ? strrchr(real, '/') : real) = 0;
    char *lib = mem_format("lib/%s", s->triplet);
    const struct {
        const char *name, *value;
    } known[] = { { "$ORIGIN", real },
                  { "${ORIGIN}", real },
                  { "$LIB", lib },
                  { "${LIB}", lib },
                  { "$PLATFORM", machine_name(s->machine) },
                  { "${PLATFORM}", machine_name(s->machine) } };
    for (const char *p = folder, *end = folder + length; p < end;) {
        const char *value = NULL;
        size_t taken = 1;
        for (size_t i = 0; i < sizeof known / sizeof *known && !value; i++)
            if ((size_t)(end - p) >= strlen(known[i].name) && !strncmp(p, known[i].name, strlen(known[i].name))) {
                value = known[i].value;
                taken = strlen(known[i].name);
            }
        char *longer = value ? mem_format("%s%s", out, value) : mem_format("%s%c", out, *p);
        free(out);
        out = longer;
        p += taken;
    }
    free(lib);
    return out;
}

/* ---- searching ---- */

/* The path, if there is a file for the machine; else NULL. */
static char *try_path_take(char *path, int machine)
{
    if (open_object(path, machine, NULL, NULL) == 0)
        return path;
    free(path);
    return NULL;
}

static char *try_folder(const char *folder, const char *name, int machine)
{
    return try_path_take(mem_format("%s/%s", *folder ? folder : ".", name), machine);
}

/* In a list with colons that `of` says. */
static char *try_list(const char *list, const char *name, const char *of, const struct library_search *s)
{
    char *found = NULL;

    while (list && !found) {
        size_t length = strcspn(list, ":;");
        char *folder = libraries_expand(list, length, of, s);
        found = try_folder(folder, name, s->machine);
        free(folder);
        list = list[length] ? list + length + 1 : NULL;
    }
    return found;
}

static char *try_usual(const struct strings *folders, const char *name, int machine)
{
    char *found = NULL;

    for (size_t i = 0; i < folders->count && !found; i++)
        found = try_folder(folders->item[i], name, machine);
    return found;
}

/* In the loader's order. An object's RPATH holds for what its libraries need, too, but not where there is a RUNPATH. */
static char *search_for(const struct finder *f, size_t for_object, const char *name)
{
    const struct object *o = &f->object[for_object];
    char *found = NULL;

    if (strchr(name, '/'))
        return try_path_take(mem_string(name), f->search->machine);
    for (size_t i = for_object; !o->runpath && !found; i = f->object[i].loader) {
        if (!f->object[i].runpath)
            found = try_list(f->object[i].rpath, name, f->object[i].path, f->search);
        if (f->object[i].loader == i)
            break;
    }
    if (!found && f->search->native && getenv("LD_LIBRARY_PATH"))
        found = try_list(getenv("LD_LIBRARY_PATH"), name, o->path, f->search);
    if (!found)
        found = try_list(o->runpath, name, o->path, f->search);
    return found ? found : try_usual(&f->folders, name, f->search->machine);
}

static bool is_there(const struct libraries *l, const char *name)
{
    const char *slash = l->dynamic ? strrchr(l->item[0].name, '/') : NULL;

    if (slash && !strcmp(slash + 1, name)) /* the loader is a library, too */
        return true;
    for (size_t i = 0; i < l->count; i++)
        if (!strcmp(l->item[i].name, name))
            return true;
    return false;
}

static void libraries_add_take(struct libraries *l, const char *name, char *path)
{
    l->item = mem_room(l->item, l->count, sizeof *l->item);
    l->item[l->count++] = (struct library){ mem_string(name), path };
}

static int add_object(struct finder *f, const char *path, size_t loader, struct peet_err *err)
{
    struct object o;
    int r = open_object(path, f->search->machine, &o, err);

    if (r < 0)
        return r;
    o.loader = loader;
    f->object = mem_room(f->object, f->count, sizeof *f->object);
    f->object[f->count++] = o;
    return 0;
}

static int find_needed(struct finder *f, size_t for_object, struct peet_err *err)
{
    for (size_t i = 0; i < f->object[for_object].needed.count; i++) {
        const char *name = f->object[for_object].needed.item[i];
        if (is_there(f->ret, name))
            continue;
        char *path = search_for(f, for_object, name);
        if (!path)
            return err_set(err, PEET_ERR_IO, "%s: needs %s for %s, which is not found; %s", f->object[for_object].path,
                           name, machine_name(f->search->machine),
                           f->search->native
                               ? "name its folder in LD_LIBRARY_PATH"
                               : "install it for that machine, or name a folder that has it with --sysroot");
        libraries_add_take(f->ret, name, path);
        int r = add_object(f, path, for_object, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The loader stands where the program says; for another machine, or in a sysroot, its file lies elsewhere. */
static int find_interpreter(struct finder *f, struct peet_err *err)
{
    const char *wanted = f->object[0].interpreter;

    if (!wanted)
        return 0;
    char *path =
        f->search->native && !f->search->sysroot ? try_path_take(mem_string(wanted), f->search->machine) : NULL;
    if (!path && strrchr(wanted, '/'))
        path = try_usual(&f->folders, strrchr(wanted, '/') + 1, f->search->machine);
    if (!path)
        return err_set(err, PEET_ERR_IO,
                       "%s: its loader %s is not here: install the C library for %s, or link it with -static",
                       f->object[0].path, wanted, machine_name(f->search->machine));
    libraries_add_take(f->ret, wanted, path);
    f->ret->dynamic = f->ret->count == 1;
    return 0;
}

int libraries_find(const char *program, const struct library_search *search, struct libraries *ret,
                   struct peet_err *err)
{
    struct libraries found = { 0 };
    struct finder f = { .search = search, .ret = &found };
    int r = add_object(&f, program, 0, err);

    usual_folders(search, &f.folders);
    if (r == 0)
        r = find_interpreter(&f, err);
    for (size_t i = 0; r == 0 && i < f.count; i++)
        r = find_needed(&f, i, err);
    for (size_t i = 0; i < f.count; i++)
        object_release(&f.object[i]);
    free(f.object);
    strings_release(&f.folders);
    if (r < 0)
        libraries_release(&found);
    else
        *ret = found;
    return r;
}

void libraries_also(const char *name, const struct library_search *search, struct libraries *ret)
{
    struct strings folders = { 0 };

    if (is_there(ret, name))
        return;
    usual_folders(search, &folders);
    char *path = try_usual(&folders, name, search->machine);
    if (path)
        libraries_add_take(ret, name, path);
    strings_release(&folders);
}

void libraries_release(struct libraries *l)
{
    for (size_t i = 0; i < l->count; i++) {
        free(l->item[i].name);
        free(l->item[i].path);
    }
    free(l->item);
    *l = (struct libraries){ 0 };
}
