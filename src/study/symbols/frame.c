/* SPDX-License-Identifier: MIT */
/* Variables in stack frames, whose DWARF locations are offsets from the CFA: the stack pointer before the call of the function. Variables in registers,
 * and those at a place that depends on another register, are left out. */
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "base/mem.h"
#include "study/symbols/symbols_in.h"

/* A variable of a function and of the calls inlined in it, while the next instruction is in [low, high). */
struct frame_variable {
    int64_t offset; /* of its first byte from the CFA */
    uint64_t size, low, high;
    Dwarf_Die die, function; /* function: that declares it */
};

struct frame_function {
    struct frame_variable *variable;
    size_t variables;
};

/* What is being read. */
struct frame_reader {
    struct frame_function *to;
    int64_t base; /* of the function's frame base, from the CFA */
    Dwarf_Die function;
    uint64_t low, high; /* of the innermost scope */
};

/* The hull of a scope's code; a scope without any has that of the one around it. */
static void frame_narrow(Dwarf_Die *die, uint64_t *low, uint64_t *high)
{
    uint64_t least = UINT64_MAX, most = 0;
    Dwarf_Addr base, from, to;

    for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &from, &to)) > 0;) {
        least = from < least ? from : least;
        most = to > most ? to : most;
    }
    if (most > least) {
        *low = least;
        *high = most;
    }
}

static void frame_add(const struct frame_reader *r, Dwarf_Die *die)
{
    Dwarf_Attribute location;
    Dwarf_Addr base, from, to;
    Dwarf_Die type;
    Dwarf_Word size = 0;
    Dwarf_Op *op;
    size_t ops;

    if (!dwarf_attr_integrate(die, DW_AT_location, &location) || !dwarf_diename(die) || !symbols_die_type(die, &type)
        || dwarf_aggregate_size(&type, &size) != 0 || size == 0)
        return;
    for (ptrdiff_t at = 0; (at = dwarf_getlocations(&location, at, &base, &from, &to, &op, &ops)) > 0;) {
        if (ops != 1 || op[0].atom != DW_OP_fbreg)
            continue;
        r->to->variable = mem_room(r->to->variable, r->to->variables, sizeof *r->to->variable);
        r->to->variable[r->to->variables++] = (struct frame_variable){ .offset = r->base + (int64_t)op[0].number,
                                                                       .size = size,
                                                                       .low = from > r->low ? from : r->low,
                                                                       .high = to < r->high ? to : r->high,
                                                                       .die = *die,
                                                                       .function = r->function };
    }
}

static void frame_walk(const struct frame_reader *r, Dwarf_Die *around)
{
    Dwarf_Die die;

    for (int e = dwarf_child(around, &die); e == 0; e = dwarf_siblingof(&die, &die)) {
        struct frame_reader inner = *r;
        switch (dwarf_tag(&die)) {
        case DW_TAG_variable:
        case DW_TAG_formal_parameter: frame_add(r, &die); break;
        case DW_TAG_inlined_subroutine: inner.function = die; /* fall through */
        case DW_TAG_lexical_block:
            frame_narrow(&die, &inner.low, &inner.high);
            frame_walk(&inner, &die);
            break;
        default: break;
        }
    }
}

/* The distance of a function's frame base from the CFA. False: it is unknown. Where the base is %rbp, the function has pushed it first. */
static bool frame_base(Dwarf_Die *function, int64_t *ret)
{
    enum { RBP = 6, PUSHED = 16 };
    Dwarf_Attribute a;
    Dwarf_Op *op;
    size_t ops;

    if (!dwarf_attr_integrate(function, DW_AT_frame_base, &a) || dwarf_getlocation(&a, &op, &ops) != 0 || ops != 1)
        return false;
    *ret = op[0].atom == DW_OP_call_frame_cfa ? 0 : -PUSHED;
    return op[0].atom == DW_OP_call_frame_cfa || op[0].atom == DW_OP_reg0 + RBP;
}

static struct frame_function *frame_read(struct symbols *sym, Dwarf_Die *die)
{
    struct frame_function **known = map_put(&sym->frames, (uint64_t)(uintptr_t)die->addr, 0);

    if (!known || *known)
        return known ? *known : NULL;
    struct frame_function *f = *known = mem_alloc(1, sizeof *f);
    struct frame_reader r = { .to = f, .function = *die, .high = UINT64_MAX };
    frame_narrow(die, &r.low, &r.high);
    if (frame_base(die, &r.base))
        frame_walk(&r, die);
    return f;
}

/* The function at an address of code, read; NULL: DWARF does not know it. */
static struct frame_function *frame_function_at(struct symbols *sym, uint32_t process, uint64_t code)
{
    struct frame_function **known = map_find(&sym->frames, code, process + 1);
    struct src_loc loc[SYMBOLS_FRAMES];

    if (known)
        return *known;
    size_t n = symbols_locations(sym, process, code, loc);
    bool is_function = n > 0 && dwarf_tag(&loc[n - 1].die) == DW_TAG_subprogram;
    struct frame_function *f = is_function ? frame_read(sym, &loc[n - 1].die) : NULL;
    if ((known = map_put(&sym->frames, code, process + 1)))
        *known = f;
    return f;
}

bool symbols_is_same_function(struct symbols *sym, uint32_t process, uint64_t code, uint64_t other)
{
    const struct frame_function *f = frame_function_at(sym, process, code);

    return f && f == frame_function_at(sym, process, other);
}

/* The bytes between the stack pointer at an instruction and the CFA; 0: unknown, or the rule has another register. */
static uint64_t frame_size_at(struct symbols_module *m, uint64_t pc)
{
    enum { RSP = 7 };
    Elf *elf = m->dwarf ? dwarf_getelf(m->dwarf) : NULL;
    Dwarf_Frame *frame = NULL;
    Dwarf_Op *op;
    size_t ops;

    if (elf && !m->cfi)
        m->cfi = dwarf_getcfi_elf(elf);
    if (!m->cfi || dwarf_cfi_addrframe(m->cfi, pc, &frame) != 0)
        return 0;
    bool is_known =
        dwarf_frame_cfa(frame, &op, &ops) == 0 && ops == 1 && op[0].atom == DW_OP_bregx && op[0].number == RSP;
    uint64_t size = is_known ? op[0].number2 : 0;
    free(frame);
    return size;
}

uint64_t symbols_frame_end(struct symbols *sym, uint32_t process, uint64_t call, uint64_t sp)
{
    struct symbols_module *m = symbols_module_at(sym, process, call);
    uint64_t *known = map_find(&sym->frame_sizes, call, process);

    if (!m || !frame_function_at(sym, process, call))
        return 0;
    if (!known && (known = map_put(&sym->frame_sizes, call, process)))
        *known = frame_size_at(m, call - m->module->bias);
    return known && *known ? sp + *known : 0;
}

/* Of the variables with a byte, the last in scope; otherwise the only one. NULL: there is none, or several are out of scope. */
static struct frame_variable *frame_choose(const struct frame_function *f, uint64_t pc, int64_t offset)
{
    struct frame_variable *in = NULL, *out = NULL;
    unsigned others = 0;

    for (size_t i = 0; i < f->variables; i++) {
        struct frame_variable *v = &f->variable[i];
        if (offset < v->offset || (uint64_t)(offset - v->offset) >= v->size)
            continue;
        if (pc >= v->low && pc < v->high)
            in = v;
        others += out != NULL;
        out = v;
    }
    return in ? in : others ? NULL : out;
}

struct symbols_frame_span symbols_frame_variable(struct symbols *sym, uint32_t process, uint64_t code, int64_t offset)
{
    const struct symbols_module *m = symbols_module_at(sym, process, code);
    const struct frame_function *f = frame_function_at(sym, process, code);
    struct symbols_frame_span all = { NULL, INT64_MIN, INT64_MAX };

    if (!m || !f)
        return all;
    struct frame_variable *v = frame_choose(f, code - m->module->bias, offset);
    if (v)
        return (struct symbols_frame_span){ v, v->offset, v->offset + (int64_t)v->size };
    for (size_t i = 0; i < f->variables; i++) {
        int64_t start = f->variable[i].offset, end = start + (int64_t)f->variable[i].size;
        all.low = end <= offset && end > all.low ? end : all.low;
        all.high = start > offset && start < all.high ? start : all.high;
    }
    return all;
}

void symbols_frame_describe(struct symbols *sym, struct frame_variable *v, struct symbols_variable *ret,
                            const char **ret_function)
{
    struct symbols_unit *u = symbols_unit_of(sym, &v->die);
    Dwarf_Die type;
    int line = 0;

    *ret = (struct symbols_variable){ .name = symbols_keep(sym, dwarf_diename(&v->die)), .size = v->size };
    ret->type = symbols_die_type(&v->die, &type) ? symbols_type_text(sym, &type) : NULL;
    ret->file = u ? symbols_file_name(sym, &u->die, dwarf_decl_file(&v->die)) : NULL;
    ret->line = dwarf_decl_line(&v->die, &line) == 0 ? (uint32_t)line : 0;
    *ret_function = symbols_die_name(sym, &v->function);
}

void symbols_frames_release(struct symbols *sym)
{
    struct frame_function **f;
    size_t at = 0;
    uint64_t key;
    uint32_t tag;

    while ((f = map_next(&sym->frames, &at, &key, &tag)))
        if (tag == 0 && *f) {
            free((*f)->variable);
            free(*f);
        }
    map_release(&sym->frames);
    map_release(&sym->frame_sizes);
}
