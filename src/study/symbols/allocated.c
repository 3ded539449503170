/* SPDX-License-Identifier: MIT */
/* Targets of allocating calls: the statement has the name, DWARF the type of the variable with that name. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "study/symbols/symbols_in.h"

/* ---- from an expression to its type ---- */

/* A search for the declaration of a name. */
struct declaration_search {
    const char *name; /* of the variable or member */
    int line, best;   /* a declaration before the line counts, the nearest before others; line 0: each counts */
    bool found;
    Dwarf_Die die; /* of the best declaration so far; valid if found */
};

static void find_declaration(Dwarf_Die *around, struct declaration_search *s)
{
    Dwarf_Die die;

    for (int r = dwarf_child(around, &die); r == 0; r = dwarf_siblingof(&die, &die)) {
        int tag = dwarf_tag(&die), line = 0;
        if (tag == DW_TAG_lexical_block || tag == DW_TAG_namespace || tag == DW_TAG_module
            || tag == DW_TAG_common_block)
            find_declaration(&die, s);
        if (tag != DW_TAG_variable && tag != DW_TAG_formal_parameter)
            continue;
        const char *name = dwarf_diename(&die);
        (void)dwarf_decl_line(&die, &line);
        bool fits = !s->name ? line == s->line : name && strcmp(name, s->name) == 0 && (!s->line || line <= s->line);
        if (name && fits && (!s->found || line > s->best)) {
            s->found = true;
            s->best = line;
            s->die = die;
        }
    }
}

static bool type_returned_by(struct src_loc *loc, const char *name, Dwarf_Die *ret_type)
{
    Dwarf_Die die;

    for (int r = dwarf_child(&loc->unit->die, &die); r == 0; r = dwarf_siblingof(&die, &die)) {
        const char *its = dwarf_tag(&die) == DW_TAG_subprogram ? dwarf_diename(&die) : NULL;
        if (its && strcmp(its, name) == 0 && symbols_die_type(&die, ret_type))
            return true;
    }
    return false;
}

static bool type_of_variable(struct symbols *sym, struct src_loc *loc, const char *name, Dwarf_Die *ret_type)
{
    struct declaration_search s = { .name = name, .line = (int)loc->line };
    Dwarf_Die origin, this_type;

    find_declaration(&loc->die, &s);
    if (!s.found && symbols_origin(&loc->die, &origin))
        find_declaration(&origin, &s);
    if (!s.found) {
        struct declaration_search this = { .name = "this" };
        find_declaration(&loc->die, &this);
        if (this.found && symbols_die_type(&this.die, &this_type)
            && symbols_type_member(sym, &this_type, name, ret_type))
            return true;
        s.line = 0;
        find_declaration(&loc->unit->die, &s);
    }
    struct symbols_module *m = loc->unit->module;
    if (!s.found && m) { /* a module of Fortran may be another unit's */
        symbols_module_list(sym, m);
        for (size_t i = 0; i < m->variables && !s.found; i++) {
            const char *its = dwarf_diename(&m->variable[i].die);
            s.found = its && strcmp(its, name) == 0;
            s.die = m->variable[i].die;
        }
    }
    return s.found && symbols_die_type(&s.die, ret_type);
}

static const char *copy_word(const char *p, char *ret, size_t room)
{
    size_t n = 0;

    for (; isalnum((unsigned char)*p) || *p == '_'; p++)
        if (n + 1 < room)
            ret[n++] = *p;
    ret[n] = '\0';
    return p;
}

/* Follows "s->grid[2].cells" through members and elements. */
static bool type_of(struct symbols *sym, struct src_loc *loc, const char *expression, Dwarf_Die *ret)
{
    char word[200];
    size_t stars = strspn(expression, "*");
    const char *p = expression + stars;
    bool grouped = *p == '(';

    p += strspn(p, "(*&");
    p = copy_word(p, word, sizeof word);
    while (strncmp(p, "::", 2) == 0)
        p = copy_word(p + 2, word, sizeof word);
    bool is_call = strncmp(p, "(…)", 5) == 0;
    if (!word[0] || !(is_call ? type_returned_by(loc, word, ret) : type_of_variable(sym, loc, word, ret)))
        return false;
    p += is_call ? 5 : 0;
    for (Dwarf_Die next; *p; *ret = next) {
        if (grouped && *p == ')') {
            p++;
            next = *ret;
        } else if (*p == '[') {
            int depth = 0;
            do
                depth += *p == '[' ? 1 : *p == ']' ? -1 : 0;
            while (*p++ && depth > 0);
            if (!symbols_type_element(ret, &next))
                return false;
        } else if (*p == '.' || *p == '%' || strncmp(p, "->", 2) == 0) {
            p = copy_word(p + (*p == '-' ? 2 : 1), word, sizeof word);
            if (!symbols_type_member(sym, ret, word, &next))
                return false;
        } else {
            return false;
        }
    }
    for (Dwarf_Die next; stars > 0; stars--, *ret = next)
        if (!symbols_type_element(ret, &next))
            return false;
    return true;
}

/* Whether a pointer is to bytes or void, as allocators have them. */
static bool is_raw(Dwarf_Die *pointer)
{
    Dwarf_Die element, bare;
    Dwarf_Word size;

    if (!symbols_type_element(pointer, &element) || !symbols_type_peel(&element, &bare))
        return true;
    return dwarf_tag(&bare) == DW_TAG_base_type && dwarf_aggregate_size(&bare, &size) == 0 && size == 1;
}

/* ---- one frame ---- */

static bool is_library(const char *name)
{
    return name
           && (strncmp(name, "std::", 5) == 0 || strncmp(name, "__gnu_cxx::", 11) == 0
               || strncmp(name, "operator new", 12) == 0 || strncmp(name, "void std::", 10) == 0);
}

/* What a C++ container holds: the parameter of the template whose function this is. */
static const char *held_type(struct symbols *sym, struct src_loc *loc)
{
    Dwarf_Die die = loc->die, origin, element;

    while (symbols_origin(&die, &origin))
        die = origin;
    Dwarf_Die *class = map_find(&sym->parents, (uint64_t)(uintptr_t)die.addr, 0);
    return class && symbols_type_element(class, &element) ? symbols_type_text(sym, &element) : NULL;
}

static const char *class_name(struct symbols *sym, const char *function)
{
    char text[300];
    int depth = 0;
    size_t cut = 0;

    for (size_t i = 0; i < sizeof text - 1 && function[i]; i++) {
        depth += function[i] == '<' ? 1 : function[i] == '>' ? -1 : 0;
        if (depth == 0 && function[i] == ':' && function[i + 1] == ':')
            cut = i;
        text[i] = function[i];
    }
    if (cut <= 3)
        return NULL;
    text[cut] = '\0';
    return symbols_keep(sym, text);
}

static void without_source(struct symbols *sym, struct src_loc *loc, struct symbols_allocation *ret)
{
    struct declaration_search s = { .line = (int)loc->line };
    Dwarf_Die type, element;

    if (!loc->line)
        return;
    find_declaration(&loc->die, &s);
    if (!s.found)
        return;
    ret->name = symbols_keep(sym, dwarf_diename(&s.die));
    if (!ret->type && symbols_die_type(&s.die, &type) && symbols_type_element(&type, &element))
        ret->type = symbols_type_text(sym, &element);
}

/* "void *", or "void **" */
static bool is_void(Dwarf_Die *type, unsigned stars)
{
    Dwarf_Die at = *type, next;

    for (; stars > 0; stars--) {
        if (!symbols_type_peel(&at, &next) || dwarf_tag(&next) != DW_TAG_pointer_type)
            return false;
        at = next;
        if (stars > 1 && !symbols_die_type(&next, &at))
            return false;
    }
    return !symbols_die_type(&next, &at);
}

/* A function that is there to give memory to others: it returns a void *, or takes a void ** to put it there. */
static bool is_allocator(Dwarf_Die *function)
{
    Dwarf_Die origin = *function, type, child;

    while (symbols_origin(&origin, &child))
        origin = child;
    if (symbols_die_type(&origin, &type) && is_void(&type, 1))
        return true;
    for (int r = dwarf_child(&origin, &child); r == 0; r = dwarf_siblingof(&child, &child))
        if (dwarf_tag(&child) == DW_TAG_formal_parameter && symbols_die_type(&child, &type) && is_void(&type, 2))
            return true;
    return false;
}

static void from_statement(struct symbols *sym, struct src_loc *loc, bool container, struct symbols_allocation *ret)
{
    const struct symbols_source *source = symbols_source(sym, loc->file);
    struct symbols_target target;
    Dwarf_Die type, element;

    if (!source) {
        without_source(sym, loc, ret);
        return;
    }
    if (loc->unit->is_fortran)
        symbols_allocate(source, loc->line, loc->column, &target);
    else if (container)
        symbols_container(source, loc->line, loc->column, &target);
    else
        symbols_target(source, loc->line, loc->column, &target);
    if (ret->is_raw && target.name[0])
        ret->type = NULL;
    bool known = target.name[0] && type_of(sym, loc, target.name, &type);
    if (known && !ret->type && symbols_type_element(&type, &element)) {
        const char *text = symbols_type_text(sym, &element);
        ret->type = text && strcmp(text, "void") != 0 ? text : NULL;
    }
    if (target.created[0] && !ret->type)
        ret->type = symbols_keep(sym, target.created);
    if (target.name[0]) {
        ret->name = symbols_keep(sym, target.name);
    } else if (target.created[0]) {
        char text[220];
        snprintf(text, sizeof text, "new %s", target.created);
        ret->name = symbols_keep(sym, text);
    }
    bool gives = is_allocator(&loc->die);
    ret->handed_on = target.is_return || (target.returned && (gives || !known || is_raw(&type)))
                     || (gives && (!known || is_raw(&type)));
    ret->is_raw = ret->handed_on && gives && !container;
}

/* Goes out of the calls that were inlined, as long as they belong to a library or hand on what they get. */
bool symbols_allocation(struct symbols *sym, uint32_t process, uint64_t call, const struct symbols_allocation *inner,
                        struct symbols_allocation *ret)
{
    struct src_loc loc[SYMBOLS_FRAMES];
    size_t n = symbols_locations(sym, process, call, loc);
    struct symbols_allocation a = { .type = inner ? inner->type : NULL,
                                    .container = inner ? inner->container : NULL,
                                    .is_raw = inner && inner->is_raw };

    for (size_t i = 0; i < n; i++) {
        const char *function = symbols_die_name(sym, &loc[i].die);
        a.function = function ? function : "?";
        a.file = loc[i].file;
        a.line = loc[i].line;
        if (is_library(function)) {
            const char *class = class_name(sym, function);
            if (!a.type)
                a.type = held_type(sym, &loc[i]);
            a.container = class ? class : a.container;
            a.handed_on = true;
            continue;
        }
        a.handed_on = false;
        from_statement(sym, &loc[i], a.container != NULL, &a);
        if (!a.handed_on)
            break;
    }
    if (n == 0)
        return false;
    *ret = a;
    return true;
}
