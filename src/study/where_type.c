/* SPDX-License-Identifier: MIT */
/* Types as texts, and back from a text to what lies where in it. Two types with the same text are taken for one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include <dwarf.h>

#include "study/where_in.h"

enum { TEXT_ROOM = 512, LAYERS = 64 };

bool where_die_type(Dwarf_Die *die, Dwarf_Die *ret)
{
    Dwarf_Attribute attribute;

    return dwarf_attr_integrate(die, DW_AT_type, &attribute) && dwarf_formref_die(&attribute, ret);
}

static bool is_qualifier(int tag)
{
    return tag == DW_TAG_const_type || tag == DW_TAG_volatile_type || tag == DW_TAG_restrict_type
           || tag == DW_TAG_atomic_type;
}

bool where_type_peel(Dwarf_Die *type, Dwarf_Die *ret)
{
    Dwarf_Die now = *type, next;

    for (int i = 0; i < LAYERS; i++) {
        int tag = dwarf_tag(&now);
        if (!is_qualifier(tag) && tag != DW_TAG_typedef) {
            *ret = now;
            return true;
        }
        if (!where_die_type(&now, &next))
            return false;
        now = next;
    }
    return false;
}

static bool is_class(int tag)
{
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

static bool is_pointer(int tag)
{
    return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
}

/* ---- texts ---- */

/* Of a constant that is as many bytes as it needs, nobody says whether it has a sign: compilers choose another form if it has. */
static bool bound(Dwarf_Die *range, unsigned name, Dwarf_Sword *ret)
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
static uint64_t dimension(Dwarf_Die *range)
{
    Dwarf_Attribute attribute;
    Dwarf_Word v;
    Dwarf_Sword low = 0, high;

    if (dwarf_attr(range, DW_AT_count, &attribute) && dwarf_formudata(&attribute, &v) == 0)
        return v;
    if (!bound(range, DW_AT_upper_bound, &high))
        return 0;
    Dwarf_Die unit;
    (void)dwarf_default_lower_bound(dwarf_diecu(range, &unit, NULL, NULL) ? dwarf_srclang(&unit) : DW_LANG_C, &low);
    (void)bound(range, DW_AT_lower_bound, &low);
    return high >= low ? (uint64_t)(high - low) + 1 : 0;
}

enum { DIMENSIONS = 8 };

static size_t dimensions(Dwarf_Die *array, uint64_t ret[DIMENSIONS])
{
    Dwarf_Die child;
    size_t n = 0;

    for (int r = dwarf_child(array, &child); r == 0 && n < DIMENSIONS; r = dwarf_siblingof(&child, &child))
        if (dwarf_tag(&child) == DW_TAG_subrange_type || dwarf_tag(&child) == DW_TAG_enumeration_type)
            ret[n++] = dimension(&child);
    return n;
}

/* The first dimension of a Fortran array is that whose elements lie side by side. */
static bool is_fortran(struct where *w, Dwarf_Die *die)
{
    struct where_unit *u = where_unit_of(w, die);

    return u && u->is_fortran;
}

static void put_dimensions(struct where *w, Dwarf_Die *array, char *out, size_t room)
{
    uint64_t count[DIMENSIONS];
    size_t n = dimensions(array, count), used = 0;
    bool fortran = is_fortran(w, array);

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

static void plain_name(struct where *w, Dwarf_Die *type, char *out, size_t room)
{
    int tag = dwarf_tag(type);
    struct where_unit *u = where_unit_of(w, type);
    const char *name = u && u->has_classes ? where_die_name(w, type) : dwarf_diename(type);
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
static bool describe(struct where *w, Dwarf_Die *type, char *out, size_t room)
{
    char middle[TEXT_ROOM] = "", more[TEXT_ROOM], base[TEXT_ROOM], size[64];
    Dwarf_Die now = *type, next;

    for (int i = 0; i < LAYERS; i++) {
        int tag = dwarf_tag(&now);
        bool is_void = !where_die_type(&now, &next);
        if (is_qualifier(tag) && is_void)
            break;
        if (is_pointer(tag)) {
            Dwarf_Die bare;
            int inner = !is_void && where_type_peel(&next, &bare) ? dwarf_tag(&bare) : 0;
            bool wrapped = dwarf_tag(&next) != DW_TAG_typedef && !is_void
                           && (inner == DW_TAG_array_type || inner == DW_TAG_subroutine_type);
            snprintf(more, sizeof more, wrapped ? "(%s%.400s)" : "%s%.400s", tag == DW_TAG_pointer_type ? "*" : "&",
                     middle);
        } else if (tag == DW_TAG_array_type) {
            put_dimensions(w, &now, size, sizeof size);
            snprintf(more, sizeof more, "%.400s%s", middle, size);
        } else if (tag == DW_TAG_subroutine_type) {
            snprintf(more, sizeof more, "%.400s()", middle);
        } else if (is_qualifier(tag)) {
            snprintf(more, sizeof more, "%s", middle);
        } else {
            plain_name(w, &now, base, sizeof base);
            return (size_t)snprintf(out, room, "%s%s%s", base, middle[0] ? " " : "", middle) < room;
        }
        memcpy(middle, more, sizeof middle);
        if (is_void)
            break;
        now = next;
    }
    return (size_t)snprintf(out, room, "void%s%s", middle[0] ? " " : "", middle) < room;
}

const char *where_type_text(struct where *w, Dwarf_Die *type)
{
    char text[2 * TEXT_ROOM];
    Dwarf_Die bare = *type, next;

    while (is_qualifier(dwarf_tag(&bare)) && where_die_type(&bare, &next))
        bare = next;
    if (!describe(w, &bare, text, sizeof text))
        return NULL;
    const char *kept = where_keep(w, text);
    struct where_type *t = map_put(&w->types, XXH3_64bits(kept, strlen(kept)), 0);
    if (t && !t->text)
        *t = (struct where_type){ kept, bare };
    return kept;
}

/* ---- parts of types ---- */

/* The first type parameter of a C++ template. */
static bool template_parameter(Dwarf_Die *type, Dwarf_Die *ret)
{
    Dwarf_Die child;

    for (int r = dwarf_child(type, &child); r == 0; r = dwarf_siblingof(&child, &child))
        if (dwarf_tag(&child) == DW_TAG_template_type_parameter)
            return where_die_type(&child, ret);
    return false;
}

bool where_type_element(Dwarf_Die *type, Dwarf_Die *ret)
{
    Dwarf_Die bare;

    if (!where_type_peel(type, &bare))
        return false;
    int tag = dwarf_tag(&bare);
    if (is_class(tag))
        return template_parameter(&bare, ret);
    return (is_pointer(tag) || tag == DW_TAG_array_type) && where_die_type(&bare, ret);
}

static bool defined_class(Dwarf_Die *type, Dwarf_Die *ret)
{
    if (!where_type_peel(type, ret))
        return false;
    while (is_pointer(dwarf_tag(ret))) {
        Dwarf_Die to;
        if (!where_die_type(ret, &to) || !where_type_peel(&to, ret))
            return false;
    }
    return is_class(dwarf_tag(ret));
}

/* Also in the members that have no name, and in base classes. */
bool where_type_member(struct where *w, Dwarf_Die *type, const char *name, Dwarf_Die *ret_type)
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
            return where_die_type(&child, ret_type);
        if (!its && where_die_type(&child, &inner) && where_type_member(w, &inner, name, ret_type))
            return true;
    }
    return false;
}

/* ---- what lies at an offset ---- */

struct path {
    char *text;
    size_t used, room;
};

static void put(struct path *p, const char *text)
{
    int n = snprintf(p->text + p->used, p->room - p->used, "%s", text);

    p->used += n < 0 ? 0 : (size_t)n < p->room - p->used ? (size_t)n : p->room - p->used - 1;
}

static void put_index(struct path *p, uint64_t index, bool any)
{
    char text[32] = "[]";

    if (!any)
        snprintf(text, sizeof text, "[%" PRIu64 "]", index);
    put(p, text);
}

static uint64_t size_of(Dwarf_Die *type)
{
    Dwarf_Word size;

    return dwarf_aggregate_size(type, &size) == 0 ? size : 0;
}

/* Fortran's indices begin where the declaration says; here all begin with 0, and the last written is that whose elements lie side by side. */
static bool into_array(Dwarf_Die *array, uint64_t *offset, bool any, struct path *p, Dwarf_Die *ret)
{
    uint64_t count[DIMENSIONS], each;
    size_t n = dimensions(array, count);

    if (!where_die_type(array, ret) || !(each = size_of(ret)))
        return false;
    uint64_t element = *offset / each, below = 1;
    for (size_t i = 1; i < n; i++)
        below *= count[i] ? count[i] : 1;
    for (size_t i = 0; i < n; i++) {
        put_index(p, element / below, any);
        element %= below;
        below /= i + 1 < n && count[i + 1] ? count[i + 1] : 1;
    }
    *offset %= each;
    return true;
}

static uint64_t number_of(Dwarf_Die *die, unsigned name, uint64_t otherwise)
{
    Dwarf_Attribute attribute;
    Dwarf_Word v;

    return dwarf_attr(die, name, &attribute) && dwarf_formudata(&attribute, &v) == 0 ? v : otherwise;
}

/* Where a member is, in bytes. A bit-field begins with its unit, which instructions may take as a whole. */
struct extent {
    uint64_t start, end; /* end: behind its last byte */
    bool is_bits;
};

static bool extent_of(Dwarf_Die *member, Dwarf_Die *ret_type, struct extent *ret)
{
    int tag = dwarf_tag(member);

    if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || dwarf_hasattr(member, DW_AT_external)
        || !where_die_type(member, ret_type))
        return false;
    uint64_t at = number_of(member, DW_AT_data_member_location, 0), size = size_of(ret_type);
    uint64_t bits = number_of(member, DW_AT_bit_size, 0);
    *ret = (struct extent){ at, at + size, bits > 0 };
    if (bits == 0 || size == 0)
        return size > 0;
    uint64_t unit = number_of(member, DW_AT_byte_size, size); /* until DWARF 3, bits are counted from its end */
    uint64_t first =
        number_of(member, DW_AT_data_bit_offset, 8 * (at + unit) - number_of(member, DW_AT_bit_offset, 0) - bits);
    ret->start = first / 8 / size * size;
    ret->end = (first + bits + 7) / 8;
    return true;
}

static bool is_there(const struct extent *e, uint64_t offset)
{
    return offset >= e->start && offset < e->end;
}

/* Which of the bit-fields of a unit is meant nobody knows: they are called by the first and the last of those that may be. */
static const char *last_of_unit(Dwarf_Die *first, uint64_t offset)
{
    Dwarf_Die child = *first, type;
    const char *name = NULL;
    struct extent e;

    while (dwarf_siblingof(&child, &child) == 0 && extent_of(&child, &type, &e) && e.is_bits && is_there(&e, offset))
        name = dwarf_diename(&child);
    return name;
}

/* The member at an offset; of a union, the first that reaches there. */
static bool into_class(Dwarf_Die *class, uint64_t *offset, struct path *p, Dwarf_Die *ret)
{
    Dwarf_Die child, type;
    struct extent e;

    for (int r = dwarf_child(class, &child); r == 0; r = dwarf_siblingof(&child, &child)) {
        if (!extent_of(&child, &type, &e) || !is_there(&e, *offset))
            continue;
        const char *name = dwarf_tag(&child) == DW_TAG_member ? dwarf_diename(&child) : NULL;
        const char *last = e.is_bits ? last_of_unit(&child, *offset) : NULL;
        if (name && p->used)
            put(p, ".");
        if (name)
            put(p, name);
        if (last) {
            put(p, "…");
            put(p, last);
        }
        *offset -= e.start;
        *ret = type;
        return true;
    }
    return false;
}

static struct where_type *find_type(struct where *w, const char *text)
{
    struct where_type *t = text ? map_find(&w->types, XXH3_64bits(text, strlen(text)), 0) : NULL;

    return t && t->text && strcmp(t->text, text) == 0 ? t : NULL;
}

uint64_t where_size(struct where *w, const char *type)
{
    struct where_type *t = find_type(w, type);

    return t ? size_of(&t->die) : 0;
}

uint64_t where_element_size(struct where *w, const char *type)
{
    struct where_type *t = type ? find_type(w, type) : NULL;
    Dwarf_Die now, element;

    if (!t || !where_type_peel(&t->die, &now))
        return 0;
    while (dwarf_tag(&now) == DW_TAG_array_type && !dwarf_hasattr(&now, DW_AT_data_location)) {
        if (!where_die_type(&now, &element) || !where_type_peel(&element, &now))
            return 0;
    }
    return is_class(dwarf_tag(&now)) ? size_of(&now) : 0;
}

bool where_member(struct where *w, const char *type, uint64_t offset, bool any, char *ret, size_t room)
{
    struct where_type *t = find_type(w, type);
    struct path p = { ret, 0, room };
    Dwarf_Die now, next;

    if (!t || room == 0 || !where_type_peel(&t->die, &now))
        return false;
    ret[0] = '\0';
    uint64_t size = size_of(&t->die);
    if (size && offset >= size) { /* one of several in a block */
        put_index(&p, offset / size, any);
        offset %= size;
    }
    for (int i = 0; i < LAYERS; i++) {
        int tag = dwarf_tag(&now);
        if (dwarf_hasattr(&now, DW_AT_data_location)) /* the data of Fortran's dynamic arrays is elsewhere */
            return true;
        if (tag == DW_TAG_array_type ? !into_array(&now, &offset, any, &p, &next)
                                     : !is_class(tag) || !into_class(&now, &offset, &p, &next))
            return true; /* a scalar, or bytes between members */
        if (!where_type_peel(&next, &now))
            return true;
    }
    return true;
}
