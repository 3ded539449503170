/* SPDX-License-Identifier: MIT */
/* Names as their authors write them.
 *
 * C++ names of DWARF are put together from what stands around them, without the parameters. Symbols are taken apart by the C++ library if the
 * system has one: it is looked for when the first such name comes, so that peet needs no C++ to be built or to run. Without it, they stay
 * as they are. */
#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include <dwarf.h>

#include "base/mem.h"
#include "study/symbols/symbols_in.h"

enum { NAME_ROOM = 1024, NESTING = 32 };

const char *symbols_keep(struct symbols *sym, const char *text)
{
    uint64_t h = XXH3_64bits(text, strlen(text));

    for (uint32_t tag = 0;; tag++) {
        const char **known = map_put(&sym->texts, h, tag);
        if (!known)
            return "?";
        if (!*known)
            *known = arena_string(&sym->arena, text, strlen(text));
        if (!*known)
            return "?";
        if (strcmp(*known, text) == 0)
            return *known;
    }
}

bool symbols_origin(Dwarf_Die *die, Dwarf_Die *ret)
{
    static const unsigned ways[] = { DW_AT_abstract_origin, DW_AT_specification };
    Dwarf_Attribute attribute;

    for (int i = 0; i < 2; i++)
        if (dwarf_attr(die, ways[i], &attribute) && dwarf_formref_die(&attribute, ret))
            return true;
    return false;
}

/* Takes out `what` and, if it ends in '<', all up to the bracket that closes it. */
static void remove_all(char *text, const char *what)
{
    size_t n = strlen(what);

    for (char *at = text; (at = strstr(at, what));) {
        char *end = at + n;
        int depth = what[n - 1] == '<' ? 1 : 0;
        for (; depth > 0 && *end; end++)
            depth += *end == '<' ? 1 : *end == '>' ? -1 : 0;
        while (n > 1 && what[n - 1] == '<' && *end == ' ')
            end++;
        memmove(at, end, strlen(end) + 1);
    }
}

void symbols_tidy(char *text)
{
    remove_all(text, "__cxx11::");
    remove_all(text, ", std::allocator<");
    remove_all(text, ", std::char_traits<");
    remove_all(text, ", std::default_delete<");
    remove_all(text, ", std::less<");
    remove_all(text, ", std::hash<");
    remove_all(text, ", std::equal_to<");
    for (char *at; (at = strstr(text, "basic_string<char>"));) {
        memcpy(at, "string", 6);
        memmove(at + 6, at + 18, strlen(at + 18) + 1);
    }
    for (char *at; (at = strstr(text, " >"));)
        memmove(at, at + 1, strlen(at + 1) + 1);
}

/* The chain from the outermost on; writes into buffer. */
static bool symbols_qualified_name(struct symbols *sym, Dwarf_Die *die, char *buffer, size_t room)
{
    Dwarf_Die chain[NESTING], origin;
    size_t n = 0, used = 0;

    chain[0] = *die;
    for (;;) {
        while (symbols_origin(&chain[n], &origin))
            chain[n] = origin;
        struct symbols_unit *u = symbols_unit_of(sym, &chain[n]);
        if (u)
            symbols_unit_walk(sym, u);
        Dwarf_Die *parent = map_find(&sym->parents, (uint64_t)(uintptr_t)chain[n].addr, 0);
        if (!parent || n + 1 == NESTING)
            break;
        chain[++n] = *parent;
    }
    if (!dwarf_diename(die) && !dwarf_diename(&chain[0]))
        return false;
    for (size_t i = n + 1; i-- > 0;) {
        const char *name = dwarf_diename(&chain[i]);
        if (!name && dwarf_tag(&chain[i]) == DW_TAG_subprogram) /* clang leaves out the names of some */
            continue;
        int more = snprintf(buffer + used, room - used, "%s%s", name ? name : "(anonymous)", i ? "::" : "");
        if (more < 0 || (size_t)more >= room - used)
            return i == 0;
        used += (size_t)more;
    }
    return true;
}

const char *symbols_die_name(struct symbols *sym, Dwarf_Die *die)
{
    const char **known = map_find(&sym->names, (uint64_t)(uintptr_t)die->addr, 0);
    char buffer[NAME_ROOM];

    if (known)
        return *known;
    const char *name = NULL;
    if (symbols_qualified_name(sym, die, buffer, sizeof buffer)) {
        symbols_tidy(buffer);
        name = symbols_keep(sym, buffer);
    }
    if ((known = map_put(&sym->names, (uint64_t)(uintptr_t)die->addr, 0)))
        *known = name;
    return name;
}

/* ---- symbols ---- */

static void symbols_load_demangler(struct symbols *sym)
{
    if (sym->looked_for_demangler)
        return;
    sym->looked_for_demangler = true;
    sym->demangler = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
    void *function = sym->demangler ? dlsym(sym->demangler, "__cxa_demangle") : NULL;
    memcpy(&sym->demangle, &function, sizeof function);
}

/* Without the parameters of a function, and what follows them. */
static void cut_parameters(char *text)
{
    int angle = 0;

    for (char *p = text; *p; p++) {
        if (strncmp(p, "operator", 8) == 0) { /* its name may be made of brackets */
            p += 8;
            p += strspn(p, "<>=-()");
            if (*p == '\0')
                return;
        }
        if (strncmp(p, "(anonymous namespace)", 21) == 0)
            p += 20;
        else if (*p == '<')
            angle++;
        else if (*p == '>')
            angle--;
        else if (*p == '(' && angle == 0) {
            *p = '\0';
            return;
        }
    }
}

static const char *symbols_demangled(struct symbols *sym, const char *name)
{
    char text[NAME_ROOM];
    int failed = 1;

    symbols_load_demangler(sym);
    char *plain = sym->demangle ? sym->demangle(name, NULL, NULL, &failed) : NULL;
    if (!plain || failed) {
        free(plain);
        return name;
    }
    snprintf(text, sizeof text, "%s", plain);
    free(plain);
    cut_parameters(text);
    symbols_tidy(text);
    return symbols_keep(sym, text);
}

/* __mod_MOD_name is gfortran's for a procedure or variable of a module, name_ for others, which might as well be C. */
static const char *fortran_name(struct symbols *sym, const char *name)
{
    const char *middle = strstr(name, "_MOD_");
    char text[NAME_ROOM];

    if (!middle || middle <= name + 2)
        return name;
    snprintf(text, sizeof text, "%.*s::%s", (int)(middle - name - 2), name + 2, middle + 5);
    return symbols_keep(sym, text);
}

const char *symbols_symbol_name(struct symbols *sym, const struct peet_symbol *s)
{
    const char **known = map_put(&sym->names, (uint64_t)(uintptr_t)s, 1);

    if (!known)
        return s->name;
    if (!*known) {
        char plain[NAME_ROOM];
        const char *version = strchr(s->name, '@'), *name = s->name;
        if (version && version > name) {
            snprintf(plain, sizeof plain, "%.*s", (int)(version - name), name);
            name = symbols_keep(sym, plain);
        }
        if (strncmp(name, "_Z", 2) == 0)
            name = symbols_demangled(sym, name);
        else if (strncmp(name, "__", 2) == 0)
            name = fortran_name(sym, name);
        *known = name;
    }
    return *known;
}

const char *symbols_file_name(struct symbols *sym, Dwarf_Die *unit, const char *file)
{
    Dwarf_Attribute attribute;

    if (!file)
        return NULL;
    const char **known = map_put(&sym->files, (uint64_t)(uintptr_t)file, 0);
    if (!known)
        return file;
    if (!*known) {
        const char *folder = dwarf_attr(unit, DW_AT_comp_dir, &attribute) ? dwarf_formstring(&attribute) : NULL;
        while (strncmp(file, "./", 2) == 0)
            file += 2;
        if (file[0] == '/' || !folder) {
            *known = symbols_keep(sym, file);
        } else {
            char *path = mem_format("%s/%s", folder, file);
            *known = symbols_keep(sym, path);
            free(path);
        }
    }
    return *known;
}
