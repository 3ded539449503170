/* SPDX-License-Identifier: MIT */
/* Types as texts, and back from a text to the type. Two types with the same text are taken for one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include <dwarf.h>

#include "study/symbols/symbols_in.h"

enum { TEXT_ROOM = 512, LAYERS = 64 };

bool symbols_die_type(Dwarf_Die *die, Dwarf_Die *ret)
{
    Dwarf_Attribute attribute;

    return dwarf_attr_integrate(die, DW_AT_type, &attribute) && dwarf_formref_die(&attribute, ret);
}

static bool is_qualifier(int tag)
{
    return tag == DW_TAG_const_type || tag == DW_TAG_volatile_type || tag == DW_TAG_restrict_type
           || tag == DW_TAG_atomic_type;
}

bool symbols_type_peel(Dwarf_Die *type, Dwarf_Die *ret)
{
    Dwarf_Die now = *type, next;

    for (int i = 0; i < LAYERS; i++) {
        int tag = dwarf_tag(&now);
        if (!is_qualifier(tag) && tag != DW_TAG_typedef) {
            *ret = now;
            return true;
        }
        if (!symbols_die_type(&now, &next))
            return false;
        now = next;
    }
    return false;
}

bool symbols_is_class(int tag)
{
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

static bool is_pointer(int tag)
{
    return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
}

/* ---- texts ---- */

/* Constants of fixed-size forms are taken as unsigned: compilers use another form for negative ones. */
static bool dimension_bound(Dwarf_Die *range, unsigned name, Dwarf_Sword *ret)
{
    Dwarf_Attribute attribute;
    Dwarf_Word v;

    if (!dwarf_attr(range, name, &attribute))
        return false;
    unsigned form = dwarf_whatform(&attribute);
    if (form == DW_FORM_sdata || form == DW_FORM_implicit_const)
        return dwarf_formsdata(&attribute, ret) == 0;
    if (dwarf_formudata(&attribute, &v) != 0)
        return false;
    *ret = (Dwarf_Sword)v;
    return true;
}

/* The number of elements of a dimension; 0: unknown. */
static uint64_t dimension_size(Dwarf_Die *range)
{
    Dwarf_Attribute attribute;
    Dwarf_Word v;
    Dwarf_Sword low = 0, high;

    if (dwarf_attr(range, DW_AT_count, &attribute) && dwarf_formudata(&attribute, &v) == 0)
        return v;
    if (!dimension_bound(range, DW_AT_upper_bound, &high))
        return 0;
    Dwarf_Die unit;
    (void)dwarf_default_lower_bound(dwarf_diecu(range, &unit, NULL, NULL) ? dwarf_srclang(&unit) : DW_LANG_C, &low);
    (void)dimension_bound(range, DW_AT_lower_bound, &low);
    return high >= low ? (uint64_t)(high - low) + 1 : 0;
}

size_t symbols_dimensions(Dwarf_Die *array, uint64_t ret[SYMBOLS_DIMENSIONS])
{
    Dwarf_Die child;
    size_t n = 0;

    for (int r = dwarf_child(array, &child); r == 0 && n < SYMBOLS_DIMENSIONS; r = dwarf_siblingof(&child, &child))
        if (dwarf_tag(&child) == DW_TAG_subrange_type || dwarf_tag(&child) == DW_TAG_enumeration_type)
            ret[n++] = dimension_size(&child);
    return n;
}

/* The first dimension of a Fortran array is that whose elements lie side by side. */
static bool is_fortran(struct symbols *sym, Dwarf_Die *die)
{
    struct symbols_unit *u = symbols_unit_of(sym, die);

    return u && u->is_fortran;
}

static void put_dimensions(struct symbols *sym, Dwarf_Die *array, char *out, size_t room)
{
    uint64_t count[SYMBOLS_DIMENSIONS];
    size_t n = symbols_dimensions(array, count), used = 0;
    bool fortran = is_fortran(sym, array);

    out[0] = '\0';
    for (size_t i = 0; i < n && used < room; i++) {
        char number[24] = "";
        if (count[i])
            snprintf(number, sizeof number, "%" PRIu64, count[i]);
        const char *shape = fortran ? (number[0] ? number : ":") : number;
        used += (size_t)snprintf(out + used, room - used, "%s%s%s", fortran ? (i ? "," : "(") : "[", shape,
                                 fortran ? (i + 1 == n ? ")" : "") : "]");
    }
}

static void plain_name(struct symbols *sym, Dwarf_Die *type, char *out, size_t room)
{
    int tag = dwarf_tag(type);
    struct symbols_unit *u = symbols_unit_of(sym, type);
    const char *name = u && u->has_classes ? symbols_die_name(sym, type) : dwarf_diename(type);
    const char *what = tag == DW_TAG_structure_type || tag == DW_TAG_class_type ? "struct "
                       : tag == DW_TAG_union_type                               ? "union "
                       : tag == DW_TAG_enumeration_type                         ? "enum "
                                                                                : "";

    if (name && u && (u->has_classes || u->is_fortran))
        what = "";
    if (!name)
        name = *what ? "{…}" : "?";
    snprintf(out, room, "%s%s", what, name);
}

/* The declarator grows around its middle, from the name outwards, as C writes it. */
static bool type_describe(struct symbols *sym, Dwarf_Die *type, char *out, size_t room)
{
    char middle[TEXT_ROOM] = "", more[TEXT_ROOM], base[TEXT_ROOM], size[64];
    Dwarf_Die now = *type, next;

    for (int i = 0; i < LAYERS; i++) {
        int tag = dwarf_tag(&now);
        bool is_void = !symbols_die_type(&now, &next);
        if (is_qualifier(tag) && is_void)
            break;
        if (is_pointer(tag)) {
            Dwarf_Die bare;
            int inner = !is_void && symbols_type_peel(&next, &bare) ? dwarf_tag(&bare) : 0;
            bool wrapped = !is_void && dwarf_tag(&next) != DW_TAG_typedef
                           && (inner == DW_TAG_array_type || inner == DW_TAG_subroutine_type);
            snprintf(more, sizeof more, wrapped ? "(%s%.400s)" : "%s%.400s", tag == DW_TAG_pointer_type ? "*" : "&",
                     middle);
        } else if (tag == DW_TAG_array_type) {
            put_dimensions(sym, &now, size, sizeof size);
            snprintf(more, sizeof more, "%.400s%s", middle, size);
        } else if (tag == DW_TAG_subroutine_type) {
            snprintf(more, sizeof more, "%.400s()", middle);
        } else if (is_qualifier(tag)) {
            snprintf(more, sizeof more, "%s", middle);
        } else {
            plain_name(sym, &now, base, sizeof base);
            return (size_t)snprintf(out, room, "%s%s%s", base, middle[0] ? " " : "", middle) < room;
        }
        memcpy(middle, more, sizeof middle);
        if (is_void)
            break;
        now = next;
    }
    return (size_t)snprintf(out, room, "void%s%s", middle[0] ? " " : "", middle) < room;
}

const char *symbols_type_text(struct symbols *sym, Dwarf_Die *type)
{
    char text[2 * TEXT_ROOM];
    Dwarf_Die bare = *type, next;

    while (is_qualifier(dwarf_tag(&bare)) && symbols_die_type(&bare, &next))
        bare = next;
    if (!type_describe(sym, &bare, text, sizeof text))
        return NULL;
    const char *kept = symbols_keep(sym, text);
    struct symbols_type *t = map_put(&sym->types, XXH3_64bits(kept, strlen(kept)), 0);
    if (t && !t->text)
        *t = (struct symbols_type){ kept, bare };
    return kept;
}

/* ---- parts of types ---- */

/* The first type parameter of a C++ template. */
static bool template_parameter(Dwarf_Die *type, Dwarf_Die *ret)
{
    Dwarf_Die child;

    for (int r = dwarf_child(type, &child); r == 0; r = dwarf_siblingof(&child, &child))
        if (dwarf_tag(&child) == DW_TAG_template_type_parameter)
            return symbols_die_type(&child, ret);
    return false;
}

bool symbols_type_element(Dwarf_Die *type, Dwarf_Die *ret)
{
    Dwarf_Die bare;

    if (!symbols_type_peel(type, &bare))
        return false;
    int tag = dwarf_tag(&bare);
    if (symbols_is_class(tag))
        return template_parameter(&bare, ret);
    return (is_pointer(tag) || tag == DW_TAG_array_type) && symbols_die_type(&bare, ret);
}

static bool defined_class(Dwarf_Die *type, Dwarf_Die *ret)
{
    if (!symbols_type_peel(type, ret))
        return false;
    while (is_pointer(dwarf_tag(ret))) {
        Dwarf_Die to;
        if (!symbols_die_type(ret, &to) || !symbols_type_peel(&to, ret))
            return false;
    }
    return symbols_is_class(dwarf_tag(ret));
}

/* Also in the members that have no name, and in base classes. */
bool symbols_type_member(struct symbols *sym, Dwarf_Die *type, const char *name, Dwarf_Die *ret_type)
{
    Dwarf_Die class, child, inner;

    if (!defined_class(type, &class))
        return false;
    for (int r = dwarf_child(&class, &child); r == 0; r = dwarf_siblingof(&child, &child)) {
        int tag = dwarf_tag(&child);
        if (tag != DW_TAG_member && tag != DW_TAG_inheritance)
            continue;
        const char *its = dwarf_diename(&child);
        if (its && strcmp(its, name) == 0)
            return symbols_die_type(&child, ret_type);
        if (!its && symbols_die_type(&child, &inner) && symbols_type_member(sym, &inner, name, ret_type))
            return true;
    }
    return false;
}

/* ---- sizes ---- */

uint64_t symbols_type_size(Dwarf_Die *type)
{
    Dwarf_Word size;

    return dwarf_aggregate_size(type, &size) == 0 ? size : 0;
}

struct symbols_type *symbols_type_find(struct symbols *sym, const char *text)
{
    struct symbols_type *t = text ? map_find(&sym->types, XXH3_64bits(text, strlen(text)), 0) : NULL;

    return t && t->text && strcmp(t->text, text) == 0 ? t : NULL;
}

uint64_t symbols_size(struct symbols *sym, const char *type)
{
    struct symbols_type *t = symbols_type_find(sym, type);

    return t ? symbols_type_size(&t->die) : 0;
}

uint64_t symbols_element_size(struct symbols *sym, const char *type)
{
    struct symbols_type *t = symbols_type_find(sym, type);
    Dwarf_Die now, element;

    if (!t || !symbols_type_peel(&t->die, &now))
        return 0;
    while (dwarf_tag(&now) == DW_TAG_array_type && !dwarf_hasattr(&now, DW_AT_data_location)) {
        if (!symbols_die_type(&now, &element) || !symbols_type_peel(&element, &now))
            return 0;
    }
    return symbols_is_class(dwarf_tag(&now)) ? symbols_type_size(&now) : 0;
}
