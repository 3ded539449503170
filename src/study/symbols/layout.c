/* SPDX-License-Identifier: MIT */
/* The member at an offset of a type. DWARF of a type is read once, into a tree of fields, elements and scalars; a lookup walks the tree, so that a
 * report can look up a million offsets. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "base/mem.h"
#include "study/symbols/symbols_in.h"

enum { LAYERS = 64 };

/* A member of a struct, class or union, in the order of its declaration. A bit-field begins with its unit, which instructions may take as a whole. */
struct symbols_field {
    uint64_t start, end; /* bytes in the struct; end: after its last byte; both 0: it has no place in it */
    const char *name;    /* NULL: a base class, or a member without a name */
    bool is_bits;
    Dwarf_Die type;
};

enum layout_kind { LAYOUT_SCALAR, LAYOUT_ARRAY, LAYOUT_CLASS };

/* What lies where in a type. */
struct symbols_layout {
    enum layout_kind kind;
    uint64_t size; /* bytes; 0: unknown */
    /* of an array: */
    uint64_t each;                      /* bytes of an element */
    uint64_t count[SYMBOLS_DIMENSIONS]; /* elements of each dimension, the outermost first; 0: unknown */
    size_t dimensions;
    Dwarf_Die element;
    /* of a class: */
    struct symbols_field *field;
    size_t fields;
};

/* ---- from DWARF ---- */

static uint64_t layout_number(Dwarf_Die *die, unsigned name, uint64_t otherwise)
{
    Dwarf_Attribute attribute;
    Dwarf_Word v;

    return dwarf_attr(die, name, &attribute) && dwarf_formudata(&attribute, &v) == 0 ? v : otherwise;
}

static struct symbols_field layout_read_field(Dwarf_Die *member)
{
    struct symbols_field f = { 0 };
    int tag = dwarf_tag(member);

    if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || dwarf_hasattr(member, DW_AT_external)
        || !symbols_die_type(member, &f.type))
        return f;
    uint64_t at = layout_number(member, DW_AT_data_member_location, 0), size = symbols_type_size(&f.type);
    uint64_t bits = layout_number(member, DW_AT_bit_size, 0);
    f.name = tag == DW_TAG_member ? dwarf_diename(member) : NULL;
    f.is_bits = bits > 0;
    if (size == 0)
        return f;
    f.start = at;
    f.end = at + size;
    if (bits == 0)
        return f;
    uint64_t unit = layout_number(member, DW_AT_byte_size, size); /* until DWARF 3, bits are counted from its end */
    uint64_t first = layout_number(member, DW_AT_data_bit_offset,
                                   8 * (at + unit) - layout_number(member, DW_AT_bit_offset, 0) - bits);
    f.start = first / 8 / size * size;
    f.end = (first + bits + 7) / 8;
    return f;
}

static void layout_read_class(struct symbols *sym, Dwarf_Die *class, struct symbols_layout *l)
{
    struct symbols_field *field = NULL;
    Dwarf_Die child;

    for (int r = dwarf_child(class, &child); r == 0; r = dwarf_siblingof(&child, &child)) {
        field = mem_room(field, l->fields, sizeof *field);
        field[l->fields++] = layout_read_field(&child);
    }
    l->field = l->fields ? arena_alloc(&sym->arena, l->fields * sizeof *field) : NULL;
    if (l->field)
        memcpy(l->field, field, l->fields * sizeof *field);
    else
        l->fields = 0;
    free(field);
}

static void layout_read(struct symbols *sym, Dwarf_Die *type, struct symbols_layout *l)
{
    int tag = dwarf_tag(type);

    l->size = symbols_type_size(type);
    if (dwarf_hasattr(type, DW_AT_data_location)) /* the data of Fortran's dynamic arrays is elsewhere */
        return;
    if (tag == DW_TAG_array_type && symbols_die_type(type, &l->element) && (l->each = symbols_type_size(&l->element))) {
        l->kind = LAYOUT_ARRAY;
        l->dimensions = symbols_dimensions(type, l->count);
    } else if (symbols_is_class(tag)) {
        l->kind = LAYOUT_CLASS;
        layout_read_class(sym, type, l);
    }
}

/* NULL: it is a type of nothing, or there is no memory. */
static struct symbols_layout *layout_find(struct symbols *sym, Dwarf_Die *type)
{
    Dwarf_Die bare;

    struct symbols_layout **l = map_put(&sym->layouts, (uint64_t)(uintptr_t)type->addr, 0);

    if (!l)
        return NULL;
    if (!*l && symbols_type_peel(type, &bare) && (*l = arena_alloc(&sym->arena, sizeof **l)))
        layout_read(sym, &bare, *l);
    return *l;
}

/* ---- walks through the tree ---- */

/* The path to a member, as text: "[].position.x". */
struct layout_path {
    char *text; /* NULL: only the hash is wanted */
    size_t used, room;
    uint64_t mark; /* hash of the text */
    bool any;      /* all elements of an array are "[]" */
};

static void path_put(struct layout_path *p, const char *text)
{
    if (!p->text)
        return;
    int n = snprintf(p->text + p->used, p->room - p->used, "%s", text);
    p->used += n < 0 ? 0 : (size_t)n < p->room - p->used ? (size_t)n : p->room - p->used - 1;
}

static void path_mark(struct layout_path *p, uint64_t step)
{
    p->mark = (p->mark ^ step) * 0x9e3779b97f4a7c15;
    p->mark ^= p->mark >> 29;
}

static void path_put_index(struct layout_path *p, uint64_t index)
{
    char text[32] = "[]";

    path_mark(p, p->any ? 1 : index + 1);
    if (!p->any && p->text)
        snprintf(text, sizeof text, "[%" PRIu64 "]", index);
    path_put(p, text);
}

/* Fortran's indices begin where the declaration says; here all begin with 0, and the last written is that whose elements lie side by side. */
static void path_into_array(const struct symbols_layout *l, uint64_t *offset, struct layout_path *p)
{
    uint64_t element = *offset / l->each, below = 1;

    for (size_t i = 1; i < l->dimensions; i++)
        below *= l->count[i] ? l->count[i] : 1;
    for (size_t i = 0; i < l->dimensions; i++) {
        path_put_index(p, element / below);
        element %= below;
        below /= i + 1 < l->dimensions && l->count[i + 1] ? l->count[i + 1] : 1;
    }
    *offset %= l->each;
}

static bool field_has(const struct symbols_field *f, uint64_t offset)
{
    return offset >= f->start && offset < f->end;
}

/* Which of the bit-fields of a unit is meant cannot be known: they are called by the first and the last of those that may be. */
static const struct symbols_field *last_of_unit(const struct symbols_layout *l, const struct symbols_field *first,
                                                uint64_t offset)
{
    const struct symbols_field *last = NULL;

    for (const struct symbols_field *f = first + 1; f < l->field + l->fields && f->is_bits && field_has(f, offset); f++)
        last = f;
    return last;
}

/* The member at an offset; of a union, the first that reaches there. False: bytes between members. */
static bool path_into_class(const struct symbols_layout *l, uint64_t *offset, struct layout_path *p,
                            Dwarf_Die *ret_type)
{
    const struct symbols_field *f = l->field, *end = f + l->fields;

    while (f < end && !field_has(f, *offset))
        f++;
    if (f == end)
        return false;
    const struct symbols_field *last = f->is_bits ? last_of_unit(l, f, *offset) : NULL;
    path_mark(p, (uint64_t)(f - l->field) + 2);
    path_mark(p, last ? (uint64_t)(last - l->field) + 2 : 0);
    if (f->name && p->used)
        path_put(p, ".");
    if (f->name)
        path_put(p, f->name);
    if (last && last->name) {
        path_put(p, "…");
        path_put(p, last->name);
    }
    *offset -= f->start;
    *ret_type = f->type;
    return true;
}

/* False: the type is unknown. */
static bool layout_walk(struct symbols *sym, const char *type, uint64_t offset, struct layout_path *p)
{
    struct symbols_type *t = symbols_type_find(sym, type);
    struct symbols_layout *l = t ? layout_find(sym, &t->die) : NULL;
    Dwarf_Die next;

    if (!l)
        return false;
    if (l->size && offset >= l->size) { /* one of several in a block */
        path_put_index(p, offset / l->size);
        offset %= l->size;
    }
    for (int i = 0; i < LAYERS && l; i++) {
        if (l->kind == LAYOUT_ARRAY) {
            path_into_array(l, &offset, p);
            next = l->element;
        } else if (l->kind != LAYOUT_CLASS || !path_into_class(l, &offset, p, &next)) {
            break; /* a scalar, or bytes between members */
        }
        l = layout_find(sym, &next);
    }
    return true;
}

bool symbols_member(struct symbols *sym, const char *type, uint64_t offset, bool any, char *ret, size_t room)
{
    struct layout_path p = { .text = ret, .room = room, .any = any };

    if (room == 0)
        return false;
    ret[0] = '\0';
    return layout_walk(sym, type, offset, &p);
}

uint64_t symbols_member_hash(struct symbols *sym, const char *type, uint64_t offset)
{
    struct layout_path p = { .mark = 1, .any = true };

    return layout_walk(sym, type, offset, &p) ? p.mark | 1 : 0;
}
