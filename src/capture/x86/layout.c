/* SPDX-License-Identifier: MIT */
#include "capture/x86/layout.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "format/schema/schema_builder.h"

enum { MAX_INSNS = 4096, MAX_OPERANDS = 1024, DRAFT_OPERANDS = X86_MAX_MEMORIES * X86_MAX_ELEMENTS, DRAFT_SLOTS = 255 };

/* A node under construction. */
struct node_draft {
    const struct x86_insn *insn;
    bool values, addresses;
    unsigned depth, first_slot, slots, operands;
    uint8_t count; /* source that holds the number of elements; 0: none yet */
    struct x86_track track[X86_GPRS];
    struct x86_pair pair[X86_PAIRS];
    struct peet_operand operand[DRAFT_OPERANDS];
    struct x86_fill fill[DRAFT_SLOTS];
};

void x86_layout_release(struct x86_layout *l)
{
    arena_release(&l->arena);
    map_release(&l->roots);
    free(l->insns);
    free(l->operands);
    *l = (struct x86_layout){ 0 };
}

/* ---- operands ---- */

/* Adds a slot and returns its source. If a block has too many slots, the draft is discarded later. */
static uint8_t add_slot(struct node_draft *d, enum x86_fill_kind kind, unsigned memory, unsigned which)
{
    assert(d->slots < DRAFT_SLOTS);
    d->fill[d->slots] = (struct x86_fill){ (uint8_t)kind, (uint8_t)memory, (uint8_t)which };
    return (uint8_t)(PEET_SRC_SLOT + d->first_slot + d->slots++);
}

/* The value of a register, which gets a slot if it is unknown; X86_NONE is 0. */
static struct x86_track ensure_known(struct node_draft *d, uint8_t reg)
{
    if (reg == X86_NONE)
        return (struct x86_track){ .known = true };
    if (!d->track[reg].known)
        d->track[reg] = (struct x86_track){ 0, add_slot(d, X86_FILL_REGISTER, 0, reg), true };
    return d->track[reg];
}

static bool register_is_known(const struct node_draft *d, uint8_t reg)
{
    return reg == X86_NONE || d->track[reg].known;
}

/* Whether a register's value is not a constant, once it is known. */
static bool is_variable(const struct node_draft *d, uint8_t reg)
{
    return reg != X86_NONE && (!d->track[reg].known || d->track[reg].source != PEET_SRC_ZERO);
}

/* Whether the operand needs a slot for its address: it has more than two sources, or one slot replaces two. */
static bool needs_address(const struct node_draft *d, const struct x86_memory *m)
{
    int sources = is_variable(d, m->base) + is_variable(d, m->index) + (m->segment == X86_FS);

    if (d->addresses || m->form == X86_BIT || m->form == X86_BYTE || m->narrow || m->segment == X86_GS || sources > 2)
        return true;
    return !register_is_known(d, m->base) && !register_is_known(d, m->index) && m->base != m->index;
}

/* Sets the base of an operand to a slot with its address. A slot of the same registers is used again. */
static void set_address(struct node_draft *d, unsigned number, struct peet_operand *o)
{
    const struct x86_memory *m = &d->insn->memory[number];
    bool is_plain = !d->addresses && m->form == X86_PLAIN && !m->narrow && m->segment == X86_FLAT;

    for (unsigned i = 0; is_plain && i < X86_PAIRS && d->pair[i].source; i++)
        if (d->pair[i].base == m->base && d->pair[i].index == m->index && d->pair[i].scale == m->scale) {
            o->base = d->pair[i].source;
            o->disp = (int64_t)((uint64_t)m->disp + (uint64_t)d->pair[i].add);
            return;
        }
    o->base = add_slot(d, X86_FILL_ADDRESS, number, 0);
    if (!is_plain)
        return;
    memmove(d->pair + 1, d->pair, (X86_PAIRS - 1) * sizeof *d->pair);
    d->pair[0] = (struct x86_pair){ (int64_t)(0 - (uint64_t)m->disp), m->base, m->index, m->scale, o->base };
}

/* Base, index, scale and displacement of the operand's first byte. */
static struct peet_operand make_operand(struct node_draft *d, unsigned number)
{
    const struct x86_memory *m = &d->insn->memory[number];
    struct peet_operand o = { .size = m->size, .insn = (uint16_t)(d->depth - 1), .kind = m->kind };

    if (needs_address(d, m)) {
        set_address(d, number, &o);
        return o;
    }
    struct x86_track base = ensure_known(d, m->base), index = ensure_known(d, m->index);
    o.disp = (int64_t)((uint64_t)m->disp + (uint64_t)base.add + ((uint64_t)index.add << m->scale));
    o.base = base.source;
    if (index.source != PEET_SRC_ZERO) {
        o.index = index.source;
        o.scale = m->scale;
    }
    if (m->segment == X86_FS) {
        uint8_t *free_source = o.base == PEET_SRC_ZERO ? &o.base : &o.index;
        assert(*free_source == PEET_SRC_ZERO);
        *free_source = PEET_SRC_REGISTER + X86_FS_REGISTER;
    }
    return o;
}

static void add_value_slots(struct node_draft *d, unsigned number, struct peet_operand *o)
{
    unsigned words = (o->size + 7) / 8;

    if (!d->values || o->kind == PEET_PREFETCH || words > X86_VALUE_WORDS)
        return;
    for (unsigned i = 0; i < words; i++) {
        uint8_t source = add_slot(d, X86_FILL_VALUE, number, i);
        o->value = o->value ? o->value : source;
    }
}

static void add_gathered(struct node_draft *d, unsigned number)
{
    const struct x86_memory *m = &d->insn->memory[number];
    uint8_t mask = add_slot(d, X86_FILL_MASK, number, 0);

    for (unsigned i = 0; i < m->elements; i++)
        d->operand[d->operands++] = (struct peet_operand){ .size = m->size,
                                                           .insn = (uint16_t)(d->depth - 1),
                                                           .kind = m->kind,
                                                           .base = add_slot(d, X86_FILL_ELEMENT, number, i),
                                                           .predicate = mask,
                                                           .predicate_bit = (uint8_t)i };
}

static void add_masked(struct node_draft *d, unsigned number)
{
    const struct x86_memory *m = &d->insn->memory[number];
    struct peet_operand o = make_operand(d, number);

    o.predicate = add_slot(d, X86_FILL_MASK, number, 0);
    for (unsigned i = 0; i < m->elements; i++, o.disp += m->size) {
        o.predicate_bit = (uint8_t)i;
        d->operand[d->operands++] = o;
    }
}

static void add_operands(struct node_draft *d, unsigned number, unsigned variant)
{
    const struct x86_memory *m = &d->insn->memory[number];

    if (m->form == X86_GATHERED) {
        add_gathered(d, number);
    } else if (m->form == X86_MASKED) {
        add_masked(d, number);
    } else {
        struct peet_operand o = make_operand(d, number);
        if (m->form == X86_REPEATED) {
            if (!d->count)
                d->count = add_slot(d, X86_FILL_COUNT, 0, 0);
            o.size_src = d->count;
            o.down = (variant & X86_DOWN) != 0;
        } else {
            add_value_slots(d, number, &o);
        }
        d->operand[d->operands++] = o;
    }
}

static struct x86_track known_value(const struct node_draft *d, uint8_t reg)
{
    static const struct x86_track ZERO = { .known = true };

    return reg == X86_NONE ? ZERO : d->track[reg];
}

/* The constant by which the instruction changes a register; false: it is unknown. */
static bool moves_by(const struct x86_insn *insn, uint8_t reg, uint64_t *ret)
{
    *ret = 0;
    if (reg == X86_NONE || !(insn->changes >> reg & 1))
        return true;
    for (unsigned i = 0; i < insn->moves; i++) {
        const struct x86_move *m = &insn->move[i];
        *ret = (uint64_t)m->add;
        if (m->to == reg)
            return m->from == reg && m->other == X86_NONE && !m->narrow;
    }
    return false;
}

static void track_pairs(struct node_draft *d)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < X86_PAIRS && d->pair[i].source; i++) {
        struct x86_pair p = d->pair[i];
        uint64_t base, index;
        if (!moves_by(d->insn, p.base, &base) || !moves_by(d->insn, p.index, &index))
            continue;
        p.add = (int64_t)((uint64_t)p.add + base + (index << p.scale));
        d->pair[kept++] = p;
    }
    memset(d->pair + kept, 0, (X86_PAIRS - kept) * sizeof *d->pair);
}

/* Updates what is known of the registers to the state after the instruction. */
static void track_registers(struct node_draft *d)
{
    struct x86_track sums[X86_MAX_MOVES];

    for (unsigned i = 0; i < d->insn->moves; i++) {
        const struct x86_move *m = &d->insn->move[i];
        sums[i] = known_value(d, m->from);
        sums[i].add = (int64_t)((uint64_t)sums[i].add + (uint64_t)m->add);
    }
    for (unsigned i = 0; i < X86_GPRS; i++)
        if (d->insn->changes >> i & 1)
            d->track[i].known = false;
    for (unsigned i = 0; i < d->insn->moves; i++)
        if (!d->insn->move[i].narrow && d->insn->move[i].other == X86_NONE)
            d->track[d->insn->move[i].to] = sums[i];
}

/* Sets what a block has of %rsp at its beginning. */
static void set_initial_sp(struct node_draft *d, unsigned variant)
{
    if (variant & X86_SP_IN_REGISTER)
        d->track[X86_RSP] = (struct x86_track){ 0, PEET_SRC_REGISTER + X86_SP_REGISTER, true };
    if (variant & X86_SP_SLOT)
        ensure_known(d, X86_RSP);
}

/* ---- the tree ---- */

static struct x86_node *node_new(struct x86_layout *l, const struct node_draft *d, struct x86_node *from,
                                 unsigned variant)
{
    struct x86_node *n = arena_alloc(&l->arena, sizeof *n);
    struct peet_operand *operand = arena_alloc(&l->arena, d->operands * sizeof *operand);
    struct x86_fill *fill = arena_alloc(&l->arena, d->slots * sizeof *fill);

    if (!n || !operand || !fill)
        return NULL;
    memcpy(operand, d->operand, d->operands * sizeof *operand);
    memcpy(fill, d->fill, d->slots * sizeof *fill);
    *n = (struct x86_node){ .insn = d->insn,
                            .parent = from,
                            .sibling = from ? from->child : NULL,
                            .depth = (uint16_t)d->depth,
                            .operands = (uint16_t)((from ? from->operands : 0) + d->operands),
                            .variant = (uint8_t)variant,
                            .slots = (uint8_t)(d->first_slot + d->slots),
                            .own_operands = (uint8_t)d->operands,
                            .own_slots = (uint8_t)d->slots,
                            .operand = operand,
                            .fill = fill };
    memcpy(n->track, d->track, sizeof n->track);
    memcpy(n->pair, d->pair, sizeof n->pair);
    return n;
}

/* Makes a node after `from`: 1; 0: there is no room; or an error. */
static int node_extend(struct x86_layout *l, struct x86_node *from, const struct x86_insn *insn, unsigned variant,
                       struct x86_node **ret)
{
    struct node_draft d = { .insn = insn, .values = l->record_values, .addresses = l->all_addresses, .depth = 1 };

    if (from) {
        d.depth = from->depth + 1u;
        d.first_slot = from->slots;
        memcpy(d.track, from->track, sizeof d.track);
        memcpy(d.pair, from->pair, sizeof d.pair);
    } else if (!l->no_operands) {
        set_initial_sp(&d, variant);
    }
    for (unsigned i = 0; !l->no_operands && i < insn->memories; i++)
        add_operands(&d, i, variant);
    if (d.depth > MAX_INSNS || d.first_slot + d.slots > PEET_SLOTS
        || (from ? from->operands : 0) + d.operands > MAX_OPERANDS) {
        assert(from); /* a block has room for any single instruction */
        return 0;
    }
    track_registers(&d);
    track_pairs(&d);
    *ret = node_new(l, &d, from, variant);
    return *ret ? 1 : PEET_ERR_MEMORY;
}

int x86_layout_step(struct x86_layout *l, struct x86_node *from, const struct x86_insn *insn, unsigned variant,
                    struct x86_node **ret)
{
    struct x86_node *n;
    int r;

    if (from) {
        for (n = from->child; n && (n->insn != insn || n->variant != variant); n = n->sibling)
            ;
        if (!n) {
            if ((r = node_extend(l, from, insn, variant, &n)) <= 0)
                return r;
            from->child = n;
        }
    } else {
        l->roots.value_size = sizeof n;
        struct x86_node **root = map_put(&l->roots, (uintptr_t)insn, variant);
        if (!root)
            return PEET_ERR_MEMORY;
        if (!*root && (r = node_extend(l, NULL, insn, variant, root)) < 0)
            return r;
        n = *root;
    }
    *ret = n;
    return 1;
}

/* ---- executions ---- */

static uint64_t fill_value(const struct x86_node *n, const struct x86_fill *f, const struct x86_execution *m)
{
    const struct x86_memory *memory = &n->insn->memory[f->memory];

    switch (f->kind) {
    case X86_FILL_REGISTER: return m->before->gpr[f->which];
    case X86_FILL_ADDRESS: return x86_address(memory, m->before);
    case X86_FILL_COUNT: return m->count;
    case X86_FILL_MASK: return x86_mask(memory, m->vectors);
    case X86_FILL_VALUE: return m->value[f->memory][f->which];
    default:
        /* Where nothing is referenced, the address does not matter; 0 is the same in every recording. */
        return x86_mask(memory, m->vectors) >> f->which & 1 ? x86_element(memory, m->before, m->vectors, f->which) : 0;
    }
}

static uint64_t source_value(uint8_t source, const struct x86_execution *m, const uint64_t *slots)
{
    if (source == PEET_SRC_ZERO)
        return 0;
    if (source < PEET_SRC_SLOT)
        return m->before->fs_base;
    return slots[source - PEET_SRC_SLOT];
}

/* Address of an operand, asserted to be what the registers say; false: it is not referenced. */
static bool operand_address(const struct x86_memory *memory, const struct peet_operand *o, unsigned element,
                            const struct x86_execution *m, const uint64_t *slots, uint64_t *ret)
{
    uint64_t addr =
        source_value(o->base, m, slots) + (source_value(o->index, m, slots) << o->scale) + (uint64_t)o->disp;

    if (o->predicate && !(source_value(o->predicate, m, slots) >> o->predicate_bit & 1))
        return false;
    if (o->size_src && m->count == 0)
        return false;
    assert(addr
           == (memory->form == X86_GATHERED ? x86_element(memory, m->before, m->vectors, element)
                                            : x86_address(memory, m->before) + (uint64_t)element * memory->size));
    *ret = addr;
    return true;
}

struct x86_reference_sum x86_node_fill(const struct x86_node *n, const struct x86_execution *m, uint64_t *slots)
{
    struct x86_reference_sum t = { 0, UINT64_MAX };
    const struct peet_operand *o = n->operand;
    uint64_t addr;

    for (unsigned i = 0; i < n->own_slots; i++)
        slots[n->slots - n->own_slots + i] = fill_value(n, &n->fill[i], m);
    for (unsigned i = 0; i < n->insn->memories; i++) {
        const struct x86_memory *memory = &n->insn->memory[i];
        unsigned elements = memory->form == X86_MASKED || memory->form == X86_GATHERED ? memory->elements : 1;
        for (unsigned j = 0; j < elements; j++, o++)
            if (operand_address(memory, o, j, m, slots, &addr)) {
                t.references += o->size_src ? (m->count * o->size + PEET_MAX_SIZE - 1) / PEET_MAX_SIZE : 1;
                t.lowest = addr < t.lowest ? addr : t.lowest;
            }
    }
    return t;
}

/* ---- definition ---- */

static uint64_t bit_of(uint8_t source)
{
    return source >= PEET_SRC_SLOT ? (uint64_t)1 << (source - PEET_SRC_SLOT) : 0;
}

uint64_t x86_layout_slots(const struct x86_node *n)
{
    uint64_t used = 0, all = n->slots == 64 ? UINT64_MAX : ((uint64_t)1 << n->slots) - 1;

    for (; n && !n->pass; n = n->parent)
        for (unsigned i = 0; i < n->own_operands; i++)
            used |= bit_of(n->operand[i].base) | bit_of(n->operand[i].index);
    return n ? used : all; /* after a loop there are only plain operands */
}

/* Numbers the slots that the block uses from 0. */
static void renumber_slots(struct peet_operand *o, uint64_t used)
{
    uint64_t base = bit_of(o->base), index = bit_of(o->index);

    if (base)
        o->base = (uint8_t)(PEET_SRC_SLOT + __builtin_popcountll(used & (base - 1)));
    if (index)
        o->index = (uint8_t)(PEET_SRC_SLOT + __builtin_popcountll(used & (index - 1)));
}

static void describe_block(struct x86_layout *l, const struct x86_node *n, struct peet_block *b)
{
    unsigned operands = n->operands;
    const struct x86_node *root = n;
    uint64_t used = x86_layout_slots(n);

    *b = (struct peet_block){ .insns = n->depth,
                              .operands = n->operands,
                              .slots = (uint16_t)__builtin_popcountll(used),
                              .insn = l->insns,
                              .operand = l->operands };
    while (root->parent && !root->pass)
        root = root->parent;
    if (root->variant & (X86_SP_SLOT | X86_SP_IN_REGISTER) && n->track[X86_RSP].known) {
        const struct x86_track *rsp = &n->track[X86_RSP];
        l->effect = (struct peet_effect){ .add = rsp->add, .reg = X86_SP_REGISTER, .src = rsp->source };
        /* otherwise %rsp is unchanged */
        b->effects = rsp->add != 0 || rsp->source != PEET_SRC_REGISTER + X86_SP_REGISTER;
        b->effect = &l->effect;
    }
    for (; n && !n->pass; n = n->parent) {
        struct peet_insn *in = &l->insns[n->depth - 1];
        *in = n->insn->insn;
        if (n->variant & X86_INTERRUPTED)
            in->class = PEET_CL_trap; /* control continues in a signal handler, and perhaps here again */
        operands -= n->own_operands;
        memcpy(&l->operands[operands], n->operand, n->own_operands * sizeof *n->operand);
    }
    for (unsigned i = 0; root->pass && i < b->operands; i++)
        renumber_slots(&l->operands[i], used);
}

int x86_layout_define(struct x86_layout *l, struct x86_node *n, struct schema_builder *to, struct peet_err *err)
{
    struct peet_block b;

    if (n->item)
        return 0;
    if (!l->insns)
        l->insns = calloc(MAX_INSNS, sizeof *l->insns);
    if (!l->operands)
        l->operands = calloc(MAX_OPERANDS, sizeof *l->operands);
    if (!l->insns || !l->operands)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a block");
    describe_block(l, n, &b);
    if (l->no_operands || l->strips_operands)
        b.operands = b.slots = b.effects = 0;
    return schema_builder_block(to, &b, &n->item, err);
}

int x86_layout_define_one(struct x86_layout *l, const struct x86_insn *insn, struct schema_builder *to,
                          uint32_t *ret_item, struct peet_err *err)
{
    struct x86_node *n;
    int r = x86_layout_step(l, NULL, insn, 0, &n);

    assert(l->strips_operands || l->no_operands);
    if (r < 0)
        return err_set(err, r, "no memory for a block");
    if ((r = x86_layout_define(l, n, to, err)) == 0)
        *ret_item = n->item;
    return r;
}
