/* SPDX-License-Identifier: MIT */
/* From schema entries to items. A block is planned from the bytes of the linked file. The plan must equal the assembler's plan in the
 * entry: then its slots are the words that the program writes.
 *
 * Inserted instructions are not in the trace. Addresses are those of the file, for symbols and lines. The length of an instruction extends to
 * the next instruction of the compiler, so that control falls through. A jump to inserted code is a jump to the block after it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "format/schema/schema_builder.h"
#include "base/mem.h"
#include "capture/recorder/live.h"

enum { LENGTH_MAX = UINT16_MAX, DEPTH_MAX = 64, STUB_INSNS = 6 };

void code_init(struct live_code *c, enum level level)
{
    c->level = level;
    c->all_addresses_layout.all_addresses = true;
    c->no_operands_layout.no_operands = true;
    c->layout.strips_operands = c->all_addresses_layout.strips_operands = c->no_operands_layout.strips_operands =
        level && level < LEVEL_memory;
}

static struct x86_layout *layout_of(struct live_code *c, unsigned flags)
{
    return flags & RAW_NO_OPERANDS     ? &c->no_operands_layout
           : flags & RAW_ALL_ADDRESSES ? &c->all_addresses_layout
                                       : &c->layout;
}

void code_release(struct live_code *c)
{
    for (size_t i = 0; i < c->modules; i++)
        module_free(c->module[i]);
    free(c->module);
    x86_layout_release(&c->layout);
    x86_layout_release(&c->all_addresses_layout);
    x86_layout_release(&c->no_operands_layout);
    arena_release(&c->arena);
    map_release(&c->events);
}

/* ---- modules ---- */

static bool code_has_module(struct live_module **module, size_t count, const struct live_module *m)
{
    for (size_t i = 0; i < count; i++)
        if (module[i] == m)
            return true;
    return false;
}

/* Returns the known module of the same file at the same address, and frees m; otherwise adds m. */
static struct live_module *code_share(struct live_code *c, struct live_module *m)
{
    for (size_t i = 0; i < c->modules; i++) {
        struct live_module *old = c->module[i];
        if (old->device == m->device && old->inode == m->inode && old->bias == m->bias && old->size == m->size) {
            module_free(m);
            return old;
        }
    }
    c->module = mem_room(c->module, c->modules, sizeof *c->module);
    return c->module[c->modules++] = m;
}

int code_scan(struct live_code *c, pid_t pid, const struct mappings *m, struct live_module ***modules, size_t *count,
              struct peet_err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < m->count; i++) {
        struct live_module *found;
        if (!(m->at[i].protection & 1) || m->at[i].name[0] != '/')
            continue;
        r = module_open(pid, &m->at[i], &found, err);
        if (r < 0 || !found)
            continue;
        found = code_share(c, found);
        if (code_has_module(*modules, *count, found))
            continue;
        *modules = mem_room(*modules, *count, sizeof **modules);
        (*modules)[(*count)++] = found;
    }
    return r;
}

/* ---- addresses ---- */

/* The first block that does not end before an address. */
static size_t range_from(const struct live_module *m, uint64_t address)
{
    size_t low = 0, high = m->ranges;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (m->range[middle].last < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Address of the block that begins at or after an address, with only inserted code between; 0: none. */
static uint64_t next_start(const struct live_module *m, uint64_t address)
{
    size_t row = range_from(m, address);

    if (row == m->ranges || m->range[row].start < address)
        return 0;
    uint64_t start = m->range[row].start;
    size_t first = module_functions_up_to(m, start);
    return first > 0 && m->functions[first - 1].start > address ? 0 : start;
}

/* Greatest number of bytes from a call to the return point, with the code that is inserted after calls. */
enum { CALL_BYTES = 40 };

bool code_call(const struct live_module *m, uint64_t address, uint64_t *ret_site, uint64_t *ret_next)
{
    size_t next = range_from(m, address);

    if (next == 0 || next == m->ranges || m->range[next - 1].last + CALL_BYTES < address)
        return false;
    uint64_t last = m->range[next - 1].last;
    struct x86_insn insn;
    size_t left;
    const uint8_t *bytes = module_bytes(m, last, &left);
    if (!bytes)
        return false;
    x86_decode(bytes, left < X86_MAX_BYTES ? left : X86_MAX_BYTES, last, &insn);
    if (insn.insn.class != PEET_CL_call && insn.insn.class != PEET_CL_call_indirect)
        return false;
    *ret_site = last;
    *ret_next = m->range[next].start;
    return true;
}

/* The target of a branch to a stub after the function: a few inserted instructions, the last of which jumps. 0: no stub. */
static uint64_t through_stub(const struct live_module *m, uint64_t address)
{
    for (int i = 0; i < STUB_INSNS; i++) {
        struct x86_insn insn;
        size_t left;
        const uint8_t *bytes = module_bytes(m, address, &left);
        if (!bytes)
            return 0;
        x86_decode(bytes, left < X86_MAX_BYTES ? left : X86_MAX_BYTES, address, &insn);
        if (insn.insn.class == PEET_CL_jump)
            return next_start(m, insn.insn.target);
        address += insn.insn.length;
    }
    return 0;
}

static bool falls_through(uint8_t class)
{
    return class != PEET_CL_jump && class != PEET_CL_jump_indirect && class != PEET_CL_return && class != PEET_CL_trap;
}

/* Extends the length to the beginning of the next instruction. */
static void code_extend(struct peet_insn *in, uint64_t next)
{
    if (next > in->addr && next - in->addr <= LENGTH_MAX)
        in->length = (uint16_t)(next - in->addr);
}

/* ---- blocks ---- */

static int no_sense(const struct live_module *m, uint64_t address, const char *what, struct peet_err *err)
{
    return err_set(err, PEET_ERR_FORMAT,
                   "%s: the block at 0x%" PRIx64 ": %s; was the file changed, or made by another peet?", m->path,
                   address - m->bias, what);
}

/* Sets target and length of a block's last instruction without inserted code. again: address of a loop's copy, 0: none; head: of the loop. */
static void code_set_end(const struct live_module *m, struct peet_insn *in, uint64_t again, uint64_t head)
{
    uint64_t target = 0;

    if (in->target)
        target = again && in->target == again ? head : next_start(m, in->target);
    if (!target && in->class == PEET_CL_branch)
        target = through_stub(m, in->target);
    if (target)
        in->target = target;
    if (falls_through(in->class))
        code_extend(in, next_start(m, in->addr + in->length));
}

/* Decodes the instructions of an entry. Advances *w to the descriptions of its slots. */
static int code_decode(struct live_code *c, const struct live_module *m, const struct live_entry *e,
                       struct byte_reader *w, struct x86_insn **ret, struct peet_err *err)
{
    struct x86_insn *insn = arena_alloc(&c->arena, e->insns * sizeof *insn);
    struct live_loop loop;

    if (!insn)
        return err_set(err, PEET_ERR_MEMORY, "no memory for blocks");
    if (!module_loop(e, &loop))
        return no_sense(m, e->start, "it has no end", err);
    for (unsigned i = 0; i < e->insns; i++) {
        size_t left;
        uint64_t at = e->start + reader_leb(w);
        const uint8_t *bytes = w->bad ? NULL : module_bytes(m, at, &left);
        if (!bytes)
            return no_sense(m, e->start, "it is not in the file", err);
        x86_decode(bytes, left < X86_MAX_BYTES ? left : X86_MAX_BYTES, at, &insn[i]);
        if (insn[i].special == X86_UNKNOWN)
            return no_sense(m, at, "it has an instruction that is not known", err);
        if (i > 0 && !insn[i - 1].ends_block)
            code_extend(&insn[i - 1].insn, at);
    }
    uint64_t again = e->kind == RAW_LOOP ? e->start + reader_leb(&loop.copies) : 0;
    for (unsigned i = 0; i < e->insns; i++)
        if (insn[i].ends_block || i + 1 == e->insns)
            code_set_end(m, &insn[i].insn, again, insn[0].insn.addr);
    *ret = insn;
    return 0;
}

/* Plans the instructions of an entry after *node. Returns 1 and the last node; 0: the plan differs from the entry; or an error. */
static int code_plan_insns(struct x86_layout *l, const struct live_entry *e, const struct x86_insn *insn,
                           struct byte_reader w, struct x86_node **node)
{
    struct x86_node *n = *node;
    unsigned slots = 0;

    for (unsigned i = 0; i < e->insns; i++) {
        unsigned variant = n ? 0 : e->flags & RAW_SP_IN_REGISTER ? X86_SP_IN_REGISTER : X86_SP_SLOT;
        int r = x86_layout_step(l, n, &insn[i], variant, &n);
        if (r <= 0)
            return r;
        for (unsigned k = 0; k < n->own_slots; k++, slots++) {
            uint64_t before = reader_leb(&w);
            const uint8_t *told = reader_bytes(&w, 3);
            const struct x86_fill *f = &n->fill[k];
            if (slots >= e->slots || !told || before != i || told[0] != f->kind || told[1] != f->memory
                || told[2] != f->which)
                return 0;
        }
    }
    *node = n;
    return slots == e->slots;
}

/* Plans a loop's instructions as a separate block, and adds the loop after *node. */
static int code_plan_loop(struct live_code *c, const struct live_entry *e, const struct x86_insn *insn,
                          struct byte_reader w, struct x86_node **node)
{
    struct x86_layout *l = layout_of(c, e->flags);
    struct x86_affine *loop = arena_alloc(&c->arena, sizeof *loop);
    struct x86_node *block = NULL;

    if (!loop)
        return PEET_ERR_MEMORY;
    int r = code_plan_insns(l, e, insn, w, &block);
    if (r <= 0)
        return r;
    if (!x86_affine_find(block, 8 * (uint64_t)(e->flags >> RAW_PRIVATE_SHIFT & RAW_PRIVATE_MAX), loop))
        return 0;
    return x86_path_step(l, *node, block, loop, node);
}

static void code_describe_path(struct live_item *item, struct x86_node *n)
{
    const struct x86_pass *loop[X86_PASSES];

    item->slots = n->slots;
    item->loops = (uint8_t)x86_path_loops(n, loop);
    item->is_simple = x86_path_simple_trips(n, &item->trips);
    for (const struct x86_node *i = n; i; i = i->parent)
        item->has_strings |= i->own_operands > 0 && i->insn->is_repeated;
    item->node = n;
}

/* Plans the entry, after the entries on the path to it. */
static int plan_entry(struct live_code *c, struct live_module *m, uint64_t key, unsigned depth, struct peet_err *err)
{
    struct live_entry e;
    struct x86_insn *insn = NULL;
    struct x86_node *n = NULL;
    int r;

    if (!module_entry(m, key, &e) || depth > DEPTH_MAX)
        return err_set(err, PEET_ERR_FORMAT, "%s: there is no block at 0x%" PRIx64 " of the schema", m->path,
                       key - m->schema);
    struct live_item *item = &m->items[(key - m->schema) / RAW_ALIGN];
    if (item->node)
        return 0;
    item->is_function_entry = e.flags & RAW_FUNCTION_ENTRY;
    item->sp_in_register = e.flags & RAW_SP_IN_REGISTER && !(e.flags & RAW_NO_OPERANDS);
    if (e.parent) {
        if ((r = plan_entry(c, m, e.parent, depth + 1, err)) < 0)
            return r;
        const struct live_item *parent = &m->items[(e.parent - m->schema) / RAW_ALIGN];
        n = parent->node;
        item->is_function_entry = parent->is_function_entry;
        item->sp_in_register = parent->sp_in_register;
    }
    struct byte_reader w = { e.rest, e.end, 0 };
    if (e.kind != RAW_LOOP_EXIT && (r = code_decode(c, m, &e, &w, &insn, err)) < 0)
        return r;
    if (e.kind == RAW_LOOP_EXIT)
        r = n && n->pass ? x86_path_leave(layout_of(c, e.flags), n, e.insns, &n) : 0;
    else
        r = e.kind == RAW_LOOP ? code_plan_loop(c, &e, insn, w, &n)
                               : code_plan_insns(layout_of(c, e.flags), &e, insn, w, &n);
    if (r < 0)
        return err_set(err, r, "no memory for blocks");
    if (r == 0)
        return no_sense(m, e.start, "its slots are not as they should be", err);
    code_describe_path(item, n);
    return 0;
}

int code_plan(struct live_code *c, struct live_module *m, uint64_t key, struct peet_err *err)
{
    return plan_entry(c, m, key, 0, err);
}

/* Defines the items of a block at level `calls`: its first and last instruction. */
static int define_calls(struct live_code *c, struct live_item *item, struct peet_err *err)
{
    const struct x86_node *first = item->node;
    uint8_t class = first->insn->insn.class;
    int r = 0;

    while (first->parent)
        first = first->parent;
    if (item->is_function_entry)
        r = x86_layout_define_one(&c->layout, first->insn, c->schema, &item->entry, err);
    if (r == 0 && (class == PEET_CL_call || class == PEET_CL_call_indirect || class == PEET_CL_return)
        && !(item->entry && first == item->node))
        r = x86_layout_define_one(&c->layout, item->node->insn, c->schema, &item->item, err);
    return r;
}

int code_define(struct live_code *c, struct live_module *m, uint64_t key, struct live_item *ret, struct peet_err *err)
{
    struct live_entry e;
    int r = plan_entry(c, m, key, 0, err);

    if (r < 0)
        return r;
    struct x86_layout *layout = module_entry(m, key, &e) ? layout_of(c, e.flags) : &c->layout;
    if (c->level == LEVEL_calls)
        r = define_calls(c, ret, err);
    else if (ret->loops)
        r = x86_path_define(layout, ret->node, c->schema, &ret->item, err);
    else if ((r = x86_layout_define(layout, ret->node, c->schema, err)) == 0)
        ret->item = ret->node->item;
    if (r < 0)
        return err_prefix(err, "%s: the block at 0x%" PRIx64 " of the schema", m->path, key - m->schema);
    ret->is_defined = true;
    return 0;
}

int code_event(struct live_code *c, uint64_t key, uint32_t *ret_item, struct peet_err *err)
{
    uint32_t kind = (uint32_t)(key >> 48 & 0x7fff);

    if (kind >= PEET_EVENT_KINDS)
        return err_set(err, PEET_ERR_FORMAT, "0x%016" PRIx64 " is no event", key);
    c->events.value_size = sizeof(uint32_t);
    uint32_t *known = map_put(&c->events, key, 0);
    if (!known)
        return err_set(err, PEET_ERR_MEMORY, "no memory for events");
    if (!*known) {
        int r = schema_builder_event(c->schema, kind, key & 0xffffffffffff, known, err);
        if (r < 0)
            return r;
    }
    *ret_item = *known;
    return 0;
}
