/* SPDX-License-Identifier: MIT */
/* Modules, their debug files, and tables made from DWARF. A file with another build-id than the recording's was rebuilt, and is not read. */
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dwarf.h>
#include <elfutils/libdwelf.h>

#include "base/mem.h"
#include "study/symbols/symbols_in.h"

enum { PATH_ROOM = 4400 };

/* ---- debug files ---- */

static bool has_build_id(Elf *elf, const char *expected)
{
    const void *bytes;
    char text[129] = "";
    ssize_t n = dwelf_elf_gnu_build_id(elf, &bytes);

    for (ssize_t i = 0; i < n && i < 64; i++)
        snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)bytes)[i]);
    return strcmp(text, expected) == 0;
}

static bool has_units(Dwarf *dwarf)
{
    Dwarf_Off next;
    size_t header;

    return dwarf_nextcu(dwarf, 0, &next, &header, NULL, NULL, NULL) == 0;
}

/* Opens the file if it is what was recorded and has DWARF. */
static Dwarf *try_file(const char *path, const char *build_id, int *ret_fd)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
    Dwarf *dwarf = NULL;

    if (elf && has_build_id(elf, build_id))
        dwarf = dwarf_begin(fd, DWARF_C_READ);
    if (elf)
        elf_end(elf);
    if (dwarf && has_units(dwarf)) {
        *ret_fd = fd;
        return dwarf;
    }
    dwarf_end(dwarf);
    if (fd >= 0)
        close(fd);
    return NULL;
}

bool symbols_module_is_rebuilt(const struct peet_module *m)
{
    int fd = m->path[0] == '/' && m->build_id[0] ? open(m->path, O_RDONLY | O_CLOEXEC) : -1;
    Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
    bool is_anew = elf && !has_build_id(elf, m->build_id);

    if (elf)
        elf_end(elf);
    if (fd >= 0)
        close(fd);
    return is_anew;
}

static Dwarf *try_separate(const struct peet_module *m, int *ret_fd)
{
    char path[PATH_ROOM];
    const char *slash = strrchr(m->path, '/');
    int folder = slash ? (int)(slash - m->path) : 0;
    Dwarf *dwarf;

    if (strlen(m->build_id) > 2) {
        snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", m->build_id, m->build_id + 2);
        if ((dwarf = try_file(path, m->build_id, ret_fd)))
            return dwarf;
    }
    static const char *const places[] = { "%.*s/%s.debug", "%.*s/.debug/%s.debug", "/usr/lib/debug%.*s/%s.debug",
                                          "/usr/lib/debug%.*s/%s" };
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(path, sizeof path, places[i], folder, m->path, slash + 1);
#pragma GCC diagnostic pop
        if ((dwarf = try_file(path, m->build_id, ret_fd)))
            return dwarf;
    }
    return NULL;
}

/* ---- units ---- */

static int compare_extents(const void *a, const void *b)
{
    const struct symbols_unit_range *x = a, *y = b;

    return x->low < y->low ? -1 : x->low > y->low;
}

static struct symbols_unit *unit_new(struct symbols *sym, Dwarf_Die *die)
{
    struct symbols_unit **known = map_put(&sym->units, (uint64_t)(uintptr_t)die->addr, 0), *u;

    if (!known)
        return NULL;
    if (!*known && (u = arena_alloc(&sym->arena, sizeof *u))) {
        int language = dwarf_srclang(die);
        u->die = *die;
        u->is_fortran = language == DW_LANG_Fortran77 || language == DW_LANG_Fortran90 || language == DW_LANG_Fortran95
                        || language == DW_LANG_Fortran03 || language == DW_LANG_Fortran08;
        u->has_classes = !u->is_fortran && language != DW_LANG_C && language != DW_LANG_C89 && language != DW_LANG_C99
                         && language != DW_LANG_C11;
        *known = u;
    }
    return *known;
}

struct symbols_unit *symbols_unit_of(struct symbols *sym, Dwarf_Die *die)
{
    Dwarf_Die unit;

    return dwarf_diecu(die, &unit, NULL, NULL) ? unit_new(sym, &unit) : NULL;
}

static void add_unit(struct symbols *sym, struct symbols_module *m, Dwarf_Die *die)
{
    struct symbols_unit *u = unit_new(sym, die);
    Dwarf_Addr base, low, high;

    if (!u)
        return;
    u->module = m;
    m->unit = mem_room(m->unit, m->units, sizeof *m->unit);
    m->unit[m->units++] = u;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &low, &high)) > 0;)
        if (high > low) {
            m->extent = mem_room(m->extent, m->extents, sizeof *m->extent);
            m->extent[m->extents++] = (struct symbols_unit_range){ low, high, u };
        }
}

/* How many bytes below the thread pointer a program's own part has, on x86-64. */
static uint64_t local_size(Dwarf *dwarf)
{
    Elf *elf = dwarf_getelf(dwarf);
    GElf_Ehdr header;
    GElf_Phdr p;
    size_t n = 0;

    if (!elf || !gelf_getehdr(elf, &header) || header.e_machine != EM_X86_64 || elf_getphdrnum(elf, &n) != 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_TLS) {
            uint64_t align = p.p_align ? p.p_align : 1;
            return (p.p_memsz + align - 1) / align * align;
        }
    return 0;
}

bool symbols_is_loaded(struct symbols *sym, uint32_t process, uint64_t addr)
{
    const struct symbols_module *m = symbols_module_at(sym, process, addr);
    size_t first = 0;

    while (first < sym->modules && sym->module[first]->module->process != process)
        first++;
    return !m || m->opened || m == sym->module[first];
}

void symbols_module_open(struct symbols *sym, struct symbols_module *m)
{
    Dwarf_CU *cu = NULL;
    Dwarf_Die die;

    if (m->opened)
        return;
    m->opened = true;
    m->fd = -1;
    if (m->module->path[0] != '/')
        return;
    m->dwarf = try_file(m->module->path, m->module->build_id, &m->fd);
    if (!m->dwarf)
        m->dwarf = try_separate(m->module, &m->fd);
    if (!m->dwarf)
        return;
    m->local_size = local_size(m->dwarf);
    while (dwarf_get_units(m->dwarf, cu, &cu, NULL, NULL, &die, NULL) == 0)
        if (dwarf_tag(&die) == DW_TAG_compile_unit)
            add_unit(sym, m, &die);
    if (m->extents)
        qsort(m->extent, m->extents, sizeof *m->extent, compare_extents);
}

void symbols_module_release(struct symbols_module *m)
{
    for (size_t i = 0; i < m->units; i++)
        free(m->unit[i]->scope);
    free(m->unit);
    free(m->extent);
    free(m->variable);
    free(m->local);
    if (m->cfi)
        dwarf_cfi_end(m->cfi);
    dwarf_end(m->dwarf);
    if (m->opened && m->fd >= 0)
        close(m->fd);
}

/* ---- what is in a unit ---- */

/* A walk through the DIEs of a unit. */
struct walk {
    struct symbols *symbols;
    struct symbols_unit *unit;
};

static void add_scope(struct walk *k, Dwarf_Die *die, uint32_t depth)
{
    struct symbols_unit *u = k->unit;
    Dwarf_Addr base, low, high;

    for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &low, &high)) > 0;)
        if (high > low) {
            u->scope = mem_room(u->scope, u->scopes, sizeof *u->scope);
            u->scope[u->scopes++] = (struct symbols_scope){ low, high, SIZE_MAX, depth, *die };
        }
}

/* The number of an operation. Version 5 of DWARF also has it as an index into a table (clang writes these). */
static bool operation_number(Dwarf_Attribute *location, const Dwarf_Op *op, Dwarf_Addr *ret)
{
    Dwarf_Attribute entry;

    *ret = op->number;
    if (op->atom == DW_OP_addrx || op->atom == DW_OP_constx)
        return dwarf_getlocation_attr(location, op, &entry) == 0 && dwarf_formaddr(&entry, ret) == 0;
    return true;
}

/* Whether a variable always lies at the same address, or at the same place in each thread's data. */
static bool fixed_place(Dwarf_Die *die, uint64_t *ret, bool *ret_local)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *op;
    size_t n;

    if (!dwarf_attr(die, DW_AT_location, &attribute) || dwarf_getlocation(&attribute, &op, &n) != 0 || n == 0
        || !operation_number(&attribute, &op[0], ret))
        return false;
    *ret_local = n == 2 && (op[1].atom == DW_OP_form_tls_address || op[1].atom == DW_OP_GNU_push_tls_address);
    if (*ret_local)
        return true;
    uint64_t start = *ret;
    if ((op[0].atom == DW_OP_addr || op[0].atom == DW_OP_addrx)
        && (n == 1 || (n == 2 && op[1].atom == DW_OP_plus_uconst))) {
        *ret += n == 2 ? op[1].number : 0;
        return start != 0;
    }
    return false;
}

/* The size of a variable by its symbol, where DWARF has none: descriptors of Fortran arrays. */
static uint64_t symbol_size(struct walk *k, uint64_t start)
{
    const struct peet_module *m = k->unit->module->module;
    const struct peet_symbol *s = peet_trace_symbol(k->symbols->trace, m->process, start + m->bias);

    return s && !s->code && s->addr == start + m->bias ? s->size : 0;
}

static void add_static(struct symbols_static **list, size_t *count, const struct symbols_static *v)
{
    *list = mem_room(*list, *count, sizeof **list);
    (*list)[(*count)++] = *v;
}

static void add_variable(struct walk *k, Dwarf_Die *die)
{
    struct symbols_module *m = k->unit->module;
    struct symbols_static v = { .die = *die };
    Dwarf_Die type;
    Dwarf_Word size = 0;
    bool is_local;

    if (!m || !fixed_place(die, &v.start, &is_local))
        return;
    if (symbols_die_type(die, &type) && dwarf_aggregate_size(&type, &size) == 0)
        v.size = size;
    if (is_local) {
        add_static(&m->local, &m->locals, &v);
        return;
    }
    if (v.size == 0)
        v.size = symbol_size(k, v.start);
    add_static(&m->variable, &m->variables, &v);
}

static void remember_parent(struct walk *k, Dwarf_Die *die, Dwarf_Die *named)
{
    if (named) {
        Dwarf_Die *p = map_put(&k->symbols->parents, (uint64_t)(uintptr_t)die->addr, 0);
        if (p)
            *p = *named;
    }
}

/* named: the next thing around that has a name, or NULL. */
static void walk_children(struct walk *k, Dwarf_Die *around, Dwarf_Die *named, uint32_t depth)
{
    Dwarf_Die die;

    for (int r = dwarf_child(around, &die); r == 0; r = dwarf_siblingof(&die, &die)) {
        int tag = dwarf_tag(&die);
        Dwarf_Die copy = die;
        switch (tag) {
        case DW_TAG_subprogram:
        case DW_TAG_inlined_subroutine:
            add_scope(k, &die, depth);
            remember_parent(k, &die, named);
            walk_children(k, &die, tag == DW_TAG_subprogram ? &copy : named, depth + 1);
            break;
        case DW_TAG_variable:
            add_variable(k, &die);
            remember_parent(k, &die, named);
            break;
        case DW_TAG_lexical_block: walk_children(k, &die, named, depth); break;
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
        case DW_TAG_enumeration_type:
        case DW_TAG_typedef:
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_common_block:
            if (!k->unit->has_classes && tag != DW_TAG_module && tag != DW_TAG_common_block)
                break;
            remember_parent(k, &die, named);
            if (tag != DW_TAG_enumeration_type && tag != DW_TAG_typedef)
                walk_children(k, &die, &copy, depth);
            break;
        default: break;
        }
    }
}

static int compare_scopes(const void *a, const void *b)
{
    const struct symbols_scope *x = a, *y = b;

    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    if (x->high != y->high)
        return x->high > y->high ? -1 : 1;
    return x->depth < y->depth ? -1 : x->depth > y->depth;
}

void symbols_unit_walk(struct symbols *sym, struct symbols_unit *u)
{
    struct walk k = { sym, u };

    if (u->walked)
        return;
    u->walked = true;
    walk_children(&k, &u->die, NULL, 0);
    if (u->scopes == 0)
        return;
    qsort(u->scope, u->scopes, sizeof *u->scope, compare_scopes);
    size_t open = SIZE_MAX;
    for (size_t i = 0; i < u->scopes; i++) {
        while (open != SIZE_MAX && u->scope[open].high <= u->scope[i].low)
            open = u->scope[open].around;
        u->scope[i].around = open;
        open = i;
    }
}

static int compare_statics(const void *a, const void *b)
{
    const struct symbols_static *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->size > y->size ? -1 : x->size < y->size;
}

void symbols_module_list(struct symbols *sym, struct symbols_module *m)
{
    symbols_module_open(sym, m);
    if (m->listed)
        return;
    m->listed = true;
    for (size_t i = 0; i < m->units; i++)
        symbols_unit_walk(sym, m->unit[i]);
    if (m->variables)
        qsort(m->variable, m->variables, sizeof *m->variable, compare_statics);
    if (m->locals)
        qsort(m->local, m->locals, sizeof *m->local, compare_statics);
}

/* ---- code ---- */

static struct symbols_unit *unit_at(const struct symbols_module *m, uint64_t pc)
{
    size_t low = 0, high = m->extents;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->extent[middle].low <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && pc < m->extent[low - 1].high ? m->extent[low - 1].unit : NULL;
}

static size_t scope_at(const struct symbols_unit *u, uint64_t pc)
{
    size_t low = 0, high = u->scopes;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (u->scope[middle].low <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    size_t i = low > 0 ? low - 1 : SIZE_MAX;
    while (i != SIZE_MAX && u->scope[i].high <= pc)
        i = u->scope[i].around;
    return i;
}

static uint32_t dwarf_number(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute a;
    Dwarf_Word v;

    return dwarf_attr(die, attribute, &a) && dwarf_formudata(&a, &v) == 0 ? (uint32_t)v : 0;
}

static void src_loc_of_call(struct symbols *sym, struct symbols_unit *u, Dwarf_Die *call, struct src_loc *ret)
{
    Dwarf_Files *files;
    size_t n;
    uint32_t file = dwarf_number(call, DW_AT_call_file);

    if (dwarf_getsrcfiles(&u->die, &files, &n) == 0 && file < n)
        ret->file = symbols_file_name(sym, &u->die, dwarf_filesrc(files, file, NULL, NULL));
    ret->line = dwarf_number(call, DW_AT_call_line);
    ret->column = dwarf_number(call, DW_AT_call_column);
}

static void src_loc_of_line(struct symbols *sym, struct symbols_unit *u, uint64_t pc, struct src_loc *ret)
{
    Dwarf_Line *line = dwarf_getsrc_die(&u->die, pc);
    int number = 0, column = 0;

    if (!line || dwarf_lineno(line, &number) != 0)
        return;
    (void)dwarf_linecol(line, &column);
    ret->file = symbols_file_name(sym, &u->die, dwarf_linesrc(line, NULL, NULL));
    ret->line = (uint32_t)number;
    ret->column = (uint32_t)column;
}

size_t symbols_locations(struct symbols *sym, uint32_t process, uint64_t addr, struct src_loc loc[SYMBOLS_FRAMES])
{
    struct symbols_module *m = symbols_module_at(sym, process, addr);
    uint64_t pc = m ? addr - m->module->bias : 0;
    size_t n = 0;

    if (!m)
        return 0;
    symbols_module_open(sym, m);
    struct symbols_unit *u = unit_at(m, pc);
    if (!u)
        return 0;
    symbols_unit_walk(sym, u);
    size_t i = scope_at(u, pc);
    if (i == SIZE_MAX)
        return 0;
    loc[0] = (struct src_loc){ .unit = u };
    src_loc_of_line(sym, u, pc, &loc[0]);
    for (; i != SIZE_MAX; i = u->scope[i].around) {
        struct symbols_scope *s = &u->scope[i];
        if (s->high <= pc) /* scopes that overlap without being nested */
            continue;
        loc[n].die = s->die;
        if (dwarf_tag(&s->die) != DW_TAG_inlined_subroutine)
            return n + 1;
        if (n + 1 < SYMBOLS_FRAMES) { /* of too many, the outermost ones stay */
            n++;
            loc[n] = (struct src_loc){ .unit = u };
        }
        src_loc_of_call(sym, u, &s->die, &loc[n]);
    }
    return n;
}
