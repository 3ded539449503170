/* SPDX-License-Identifier: MIT */
/* What allocating calls are for: the statement tells the name, DWARF the type of what has that name there. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "study/symbols/symbols_in.h"

/* ---- from an expression to its type ---- */

struct sought {
    const char *name;
    int line, best; /* a declaration before the line counts, the nearest before others; line 0: each counts */
    bool found;
    Dwarf_Die die;
};

static void seek(Dwarf_Die *around, struct sought *s)
{
    Dwarf_Die die;

    for (int r = dwarf_child(around, &die); r == 0; r = dwarf_siblingof(&die, &die)) {
        int tag = dwarf_tag(&die), line = 0;
        if (tag == DW_TAG_lexical_block || tag == DW_TAG_namespace || tag == DW_TAG_module
            || tag == DW_TAG_common_block)
            seek(&die, s);
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

static bool returns(struct where_spot *spot, const char *name, Dwarf_Die *ret_type)
{
    Dwarf_Die die;

    for (int r = dwarf_child(&spot->unit->die, &die); r == 0; r = dwarf_siblingof(&die, &die)) {
        const char *its = dwarf_tag(&die) == DW_TAG_subprogram ? dwarf_diename(&die) : NULL;
        if (its && strcmp(its, name) == 0 && where_die_type(&die, ret_type))
            return true;
    }
    return false;
}

static bool seek_all(struct where *w, struct where_spot *spot, const char *name, Dwarf_Die *ret_type)
{
    struct sought s = { .name = name, .line = (int)spot->line };
    Dwarf_Die origin, this_type;

    seek(&spot->die, &s);
    if (!s.found && where_origin(&spot->die, &origin))
        seek(&origin, &s);
    if (!s.found) {
        struct sought this = { .name = "this" };
        seek(&spot->die, &this);
        if (this.found && where_die_type(&this.die, &this_type) && where_type_member(w, &this_type, name, ret_type))
            return true;
        s.line = 0;
        seek(&spot->unit->die, &s);
    }
    struct where_module *m = spot->unit->module;
    if (!s.found && m) { /* a module of Fortran may be another unit's */
        where_module_list(w, m);
        for (size_t i = 0; i < m->variables && !s.found; i++) {
            const char *its = dwarf_diename(&m->variable[i].die);
            s.found = its && strcmp(its, name) == 0;
            s.die = m->variable[i].die;
        }
    }
    return s.found && where_die_type(&s.die, ret_type);
}

static const char *take_word(const char *p, char *ret, size_t room)
{
    size_t n = 0;

    for (; isalnum((unsigned char)*p) || *p == '_'; p++)
        if (n + 1 < room)
            ret[n++] = *p;
    ret[n] = '\0';
    return p;
}

/* Follows "s->grid[2].cells" through members and elements. */
static bool type_of(struct where *w, struct where_spot *spot, const char *expression, Dwarf_Die *ret)
{
    char word[200];
    size_t stars = strspn(expression, "*");
    const char *p = expression + stars;
    bool grouped = *p == '(';

    p += strspn(p, "(*&");
    p = take_word(p, word, sizeof word);
    while (strncmp(p, "::", 2) == 0)
        p = take_word(p + 2, word, sizeof word);
    bool is_call = strncmp(p, "(…)", 5) == 0;
    if (!word[0] || !(is_call ? returns(spot, word, ret) : seek_all(w, spot, word, ret)))
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
            if (!where_type_element(ret, &next))
                return false;
        } else if (*p == '.' || *p == '%' || strncmp(p, "->", 2) == 0) {
            p = take_word(p + (*p == '-' ? 2 : 1), word, sizeof word);
            if (!where_type_member(w, ret, word, &next))
                return false;
        } else {
            return false;
        }
    }
    for (Dwarf_Die next; stars > 0; stars--, *ret = next)
        if (!where_type_element(ret, &next))
            return false;
    return true;
}

/* Bytes without a meaning of their own: what allocators hand around. */
static bool is_raw(Dwarf_Die *pointer)
{
    Dwarf_Die element, bare;
    Dwarf_Word size;

    if (!where_type_element(pointer, &element) || !where_type_peel(&element, &bare))
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
static const char *held_type(struct where *w, struct where_spot *spot)
{
    Dwarf_Die die = spot->die, origin, element;

    while (where_origin(&die, &origin))
        die = origin;
    Dwarf_Die *class = map_find(&w->parents, (uint64_t)(uintptr_t)die.addr, 0);
    return class && where_type_element(class, &element) ? where_type_text(w, &element) : NULL;
}

static const char *class_name(struct where *w, const char *function)
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
    return where_keep(w, text);
}

static void without_source(struct where *w, struct where_spot *spot, struct where_allocated *ret)
{
    struct sought s = { .line = (int)spot->line };
    Dwarf_Die type, element;

    if (!spot->line)
        return;
    seek(&spot->die, &s);
    if (!s.found)
        return;
    ret->name = where_keep(w, dwarf_diename(&s.die));
    if (!ret->type && where_die_type(&s.die, &type) && where_type_element(&type, &element))
        ret->type = where_type_text(w, &element);
}

/* "void *", or "void **" */
static bool is_void(Dwarf_Die *type, unsigned stars)
{
    Dwarf_Die at = *type, next;

    for (; stars > 0; stars--) {
        if (!where_type_peel(&at, &next) || dwarf_tag(&next) != DW_TAG_pointer_type)
            return false;
        at = next;
        if (stars > 1 && !where_die_type(&next, &at))
            return false;
    }
    return !where_die_type(&next, &at);
}

/* A function that is there to give memory to others: it returns a void *, or takes a void ** to put it there. */
static bool is_allocator(Dwarf_Die *function)
{
    Dwarf_Die origin = *function, type, child;

    while (where_origin(&origin, &child))
        origin = child;
    if (where_die_type(&origin, &type) && is_void(&type, 1))
        return true;
    for (int r = dwarf_child(&origin, &child); r == 0; r = dwarf_siblingof(&child, &child))
        if (dwarf_tag(&child) == DW_TAG_formal_parameter && where_die_type(&child, &type) && is_void(&type, 2))
            return true;
    return false;
}

static void from_statement(struct where *w, struct where_spot *spot, bool container, struct where_allocated *ret)
{
    const struct where_source *source = where_source(w, spot->file);
    struct where_target target;
    Dwarf_Die type, element;

    if (!source) {
        without_source(w, spot, ret);
        return;
    }
    if (spot->unit->is_fortran)
        where_allocate(source, spot->line, spot->column, &target);
    else if (container)
        where_container(source, spot->line, spot->column, &target);
    else
        where_target(source, spot->line, spot->column, &target);
    if (ret->is_raw && target.name[0])
        ret->type = NULL;
    bool known = target.name[0] && type_of(w, spot, target.name, &type);
    if (known && !ret->type && where_type_element(&type, &element)) {
        const char *text = where_type_text(w, &element);
        ret->type = text && strcmp(text, "void") != 0 ? text : NULL;
    }
    if (target.created[0] && !ret->type)
        ret->type = where_keep(w, target.created);
    if (target.name[0]) {
        ret->name = where_keep(w, target.name);
    } else if (target.created[0]) {
        char text[220];
        snprintf(text, sizeof text, "new %s", target.created);
        ret->name = where_keep(w, text);
    }
    bool gives = is_allocator(&spot->die);
    ret->handed_on = target.is_return || (target.returned && (gives || !known || is_raw(&type)))
                     || (gives && (!known || is_raw(&type)));
    ret->is_raw = ret->handed_on && gives && !container;
}

/* Goes out of the calls that were inlined, as long as they belong to a library or hand on what they get. */
bool where_allocated(struct where *w, uint32_t process, uint64_t call, const struct where_allocated *inner,
                     struct where_allocated *ret)
{
    struct where_spot spot[WHERE_FRAMES];
    size_t n = where_spots(w, process, call, spot);
    struct where_allocated a = { .type = inner ? inner->type : NULL,
                                 .container = inner ? inner->container : NULL,
                                 .is_raw = inner && inner->is_raw };

    for (size_t i = 0; i < n; i++) {
        const char *function = where_die_name(w, &spot[i].die);
        a.function = function ? function : "?";
        a.file = spot[i].file;
        a.line = spot[i].line;
        if (is_library(function)) {
            const char *class = class_name(w, function);
            if (!a.type)
                a.type = held_type(w, &spot[i]);
            a.container = class ? class : a.container;
            a.handed_on = true;
            continue;
        }
        a.handed_on = false;
        from_statement(w, &spot[i], a.container != NULL, &a);
        if (!a.handed_on)
            break;
    }
    if (n == 0)
        return false;
    *ret = a;
    return true;
}
