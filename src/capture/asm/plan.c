/* SPDX-License-Identifier: MIT */
/* Blocks and their slots. A block ends before a label at which control may enter, after a transfer of control, before
 * and after an instruction that is not recorded, and where capture/x86/layout has no more room. It also ends after an
 * instruction that linkers may rewrite, because then the recorder would know more of a register than is known here.
 * Blocks with a single predecessor form trees, so that what is known of registers at the end of a block serves its
 * successors. */
#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/asm/plan.h"

enum { MAX_DEPTH = 24 };

/* The nearest label before statement `from` with no instruction of its section in between, or ASM_NONE. *ret_start: the
 * section begins there. */
static uint32_t label_before(const struct asm_unit *u, uint32_t from, bool *ret_start)
{
    uint32_t section = u->text.statement[from].section;

    *ret_start = false;
    for (uint32_t i = from; i-- > 0;) {
        const struct asm_statement *s = &u->text.statement[i];
        if (s->section != section)
            continue;
        if (s->insn != ASM_NONE)
            return ASM_NONE;
        if (s->kind == ASM_LABEL)
            return i;
    }
    *ret_start = true;
    return ASM_NONE;
}

/* Whether control may enter at a label before the instruction, or at the beginning of its section. */
static bool is_entered(const struct asm_unit *u, uint32_t insn)
{
    bool start;

    for (uint32_t i = u->insn[insn].statement; (i = label_before(u, i, &start)) != ASM_NONE;) {
        const struct asm_symbol *symbol = &u->text.symbol[u->text.statement[i].symbol];
        if (symbol->is_target || symbol->is_function)
            return true;
    }
    return start;
}

static bool is_landing_pad_insn(const struct asm_unit *u, uint32_t insn)
{
    bool start;

    for (uint32_t i = u->insn[insn].statement; (i = label_before(u, i, &start)) != ASM_NONE;)
        if (u->text.symbol[u->text.statement[i].symbol].is_landing_pad)
            return true;
    return false;
}

static bool is_entry_insn(const struct asm_unit *u, uint32_t insn)
{
    const struct asm_function *f = &u->function[u->insn[insn].function];
    uint32_t label = u->text.symbol[f->symbol].statement;

    if (f->is_cold)
        return false;
    while (u->text.statement[++label].insn == ASM_NONE || u->insn[u->text.statement[label].insn].function == ASM_NONE)
        ;
    return u->text.statement[label].insn == insn;
}

bool plan_same_function(const struct asm_unit *u, uint32_t a, uint32_t b)
{
    return u->insn[a].function == u->insn[b].function
           && u->text.statement[u->insn[a].statement].section == u->text.statement[u->insn[b].statement].section;
}

uint32_t asm_following(const struct asm_unit *u, uint32_t insn)
{
    uint8_t class = u->insn[insn].x.insn.class;

    if (class == PEET_CL_jump || class == PEET_CL_jump_indirect || class == PEET_CL_return || class == PEET_CL_trap)
        return ASM_NONE;
    for (uint32_t i = insn + 1; i < u->text.insns && u->insn[i].function != ASM_NONE; i++)
        if (plan_same_function(u, insn, i))
            return i;
    return ASM_NONE;
}

static bool follows_call(const struct asm_unit *u, uint32_t insn)
{
    if (insn == 0 || !plan_same_function(u, insn, insn - 1))
        return false;
    uint8_t class = u->insn[insn - 1].x.insn.class;
    return class == PEET_CL_call || class == PEET_CL_call_indirect || u->insn[insn - 1].is_opaque;
}

/* ---- cutting into blocks ---- */

static struct asm_block *plan_add_block(struct asm_unit *u, uint32_t first)
{
    u->block = mem_room(u->block, u->blocks, sizeof *u->block);
    u->block[u->blocks] = (struct asm_block){ .first = first,
                                              .from = ASM_NONE,
                                              .other = ASM_NONE,
                                              .parent = ASM_NONE,
                                              .shared_next = ASM_NONE,
                                              .shared_branch = ASM_NONE };
    return &u->block[u->blocks++];
}

/* Whether an instruction is recorded at the level of the recording. */
static bool is_wanted_insn(const struct asm_unit *u, uint32_t insn)
{
    uint8_t class = u->insn[insn].x.insn.class;

    return asm_level(u) > LEVEL_calls || class == PEET_CL_call || class == PEET_CL_call_indirect
           || class == PEET_CL_return || is_entry_insn(u, insn);
}

/* Cuts the instructions into blocks, assuming that each block has all slots that it can need, %rsp's included. */
static int cut_blocks(struct asm_unit *u, struct peet_err *err)
{
    struct asm_block *b = NULL;
    struct x86_node *node = NULL;

    for (uint32_t i = 0; i < u->text.insns; i++) {
        struct asm_insn *in = &u->insn[i];
        if (!asm_is_recorded(u, in->function) || in->is_opaque || !is_wanted_insn(u, i)) {
            b = NULL;
            continue;
        }
        if (b
            && (asm_level(u) <= LEVEL_calls || u->insn[i - 1].x.ends_block
                || asm_is_rewritten_by_linkers(u, &u->insn[i - 1]) || !plan_same_function(u, i, i - 1)
                || is_entered(u, i)))
            b = NULL;
        int r = b ? x86_layout_step(&u->layout, node, &in->x, 0, &node) : 0;
        if (r == 0) {
            b = plan_add_block(u, i);
            r = x86_layout_step(&u->layout, NULL, &in->x, X86_SP_SLOT, &node);
        }
        if (r < 0)
            return err_set(err, r, "no memory for the blocks of %s", u->text.file);
        in->block = (uint32_t)u->blocks - 1;
        b->count++;
        b->sp_known_at_end =
            u->layout.no_operands || node->track[X86_RSP].known; /* without operands, %rsp is not needed */
    }
    return 0;
}

/* ---- edges between blocks ---- */

static void plan_add_edge(struct asm_unit *u, const struct asm_block *from, uint32_t insn)
{
    struct asm_block *to = insn == ASM_NONE || u->insn[insn].block == ASM_NONE ? NULL : &u->block[u->insn[insn].block];

    if (!to)
        return;
    to->needs_sp |= !from->sp_known_at_end;
    if (to == from) {
        to->is_self_loop = true;
    } else {
        to->predecessors++;
        to->other = to->from;
        to->from = (uint32_t)(from - u->block);
    }
}

uint32_t plan_insn_at(const struct asm_unit *u, const struct asm_symbol *y)
{
    if (y->statement == ASM_NONE || !u->text.section[u->text.statement[y->statement].section].is_code)
        return ASM_NONE;
    uint32_t section = u->text.statement[y->statement].section;
    for (uint32_t i = y->statement; i < u->text.statements; i++)
        if (u->text.statement[i].insn != ASM_NONE && u->text.statement[i].section == section)
            return u->text.statement[i].insn;
    return ASM_NONE;
}

/* An indirect jump may lead to each label of its function whose address is taken. */
static void add_indirect_edges(struct asm_unit *u, const struct asm_block *b)
{
    uint32_t family = u->function[u->insn[b->first].function].family;

    for (size_t i = 0; i < u->text.symbols; i++) {
        uint32_t insn = u->text.symbol[i].address_taken ? plan_insn_at(u, &u->text.symbol[i]) : ASM_NONE;
        if (insn != ASM_NONE && u->insn[insn].function != ASM_NONE
            && u->function[u->insn[insn].function].family == family)
            plan_add_edge(u, b, insn);
    }
}

/* Marks blocks whose labels are mentioned: control may enter from places that are not seen here. */
static void mark_indirect_targets(struct asm_unit *u)
{
    for (size_t i = 0; i < u->text.symbols; i++) {
        const struct asm_symbol *y = &u->text.symbol[i];
        uint32_t insn = y->address_taken || y->is_landing_pad || y->is_global ? plan_insn_at(u, y) : ASM_NONE;
        if (insn != ASM_NONE && u->insn[insn].block != ASM_NONE)
            u->block[u->insn[insn].block].is_indirect_target = true;
    }
}

static void find_edges(struct asm_unit *u)
{
    for (size_t i = 0; i < u->blocks; i++) {
        struct asm_block *b = &u->block[i];
        uint32_t last = b->first + b->count - 1;
        const struct asm_insn *in = &u->insn[last];
        uint8_t class = in->x.insn.class;
        b->is_entry = is_entry_insn(u, b->first);
        b->needs_sp |= b->is_entry || is_landing_pad_insn(u, b->first) || follows_call(u, b->first);
        plan_add_edge(u, b, asm_following(u, last));
        if (class == PEET_CL_jump_indirect)
            add_indirect_edges(u, b);
        else if (in->target != ASM_NONE && class != PEET_CL_call)
            plan_add_edge(u, b, plan_insn_at(u, &u->text.symbol[in->target]));
    }
    mark_indirect_targets(u);
}

bool plan_may_extend(const struct asm_unit *u, const struct asm_block *b)
{
    if (!b->sp_in_register || b->is_indirect_target || b->predecessors != 1)
        return false;
    const struct asm_block *from = &u->block[b->from];
    uint32_t last = from->first + from->count - 1;
    return from != b && !from->is_shared && plan_same_function(u, b->first, last)
           && !asm_is_rewritten_by_linkers(u, &u->insn[last]);
}

uint32_t plan_successor(const struct asm_unit *u, const struct asm_block *b, bool by_branch)
{
    uint32_t last = b->first + b->count - 1, to = by_branch ? ASM_NONE : asm_following(u, last);
    const struct asm_insn *in = &u->insn[last];

    if (in->x.insn.class == (by_branch ? PEET_CL_branch : PEET_CL_jump) && in->target != ASM_NONE)
        to = plan_insn_at(u, &u->text.symbol[in->target]);
    if (to == ASM_NONE || u->insn[to].block == ASM_NONE || !plan_same_function(u, last, to)
        || asm_is_rewritten_by_linkers(u, in))
        return ASM_NONE;
    return u->block[u->insn[to].block].first == to ? u->insn[to].block : ASM_NONE;
}

/* ---- slots ---- */

/* Plans a block's instructions after a node: 1; 0: there is no room for all of them; or an error. */
static int plan_block_insns(struct asm_unit *u, struct asm_block *b, struct x86_node *node)
{
    for (uint32_t k = 0; k < b->count; k++) {
        unsigned variant = node ? 0 : b->sp_in_register ? X86_SP_IN_REGISTER : X86_SP_SLOT;
        int r = x86_layout_step(&u->layout, node, &u->insn[b->first + k].x, variant, &node);
        if (r <= 0)
            return r;
        u->insn[b->first + k].node = node;
    }
    b->node = node;
    return 1;
}

/* Bytes by which a block may extend the stack, apart from a function's first and last blocks; INT64_MAX: unknown. */
static int64_t stack_growth(const struct asm_unit *u, const struct asm_block *b)
{
    bool may = b->is_entry || u->insn[b->first + b->count - 1].x.insn.class == PEET_CL_return;
    int64_t sum = 0;

    for (uint32_t i = b->first; !may && i < b->first + b->count; i++) {
        const struct x86_insn *x = &u->insn[i].x;
        if (!(x->changes >> X86_RSP & 1) || x->insn.class == PEET_CL_call || x->insn.class == PEET_CL_call_indirect)
            continue;
        if (x->moves != 1 || x->move[0].from != X86_RSP || x->move[0].other != X86_NONE)
            return INT64_MAX;
        sum += x->move[0].add < 0 ? -x->move[0].add : 0;
    }
    return sum;
}

/* Finds the part of each stack frame to which no pointer leads. Compilers put spilled registers below the variables
 * whose addresses are taken, so that all below the lowest such address is private. Where arguments have been pushed, an
 * address is lower than its offset says. */
static void find_escaping_stacks(struct asm_unit *u)
{
    for (uint32_t i = 0; i < u->functions; i++) {
        u->function[i].escape_offset = INT64_MAX;
        u->function[i].tail_last = ASM_NONE;
    }
    for (uint32_t i = 0; i < u->text.insns; i++) {
        const struct asm_insn *in = &u->insn[i];
        struct asm_function *f = in->function == ASM_NONE ? NULL : &u->function[u->function[in->function].family];
        if (f && (in->is_opaque || !asm_is_recorded(u, in->function)))
            f->stack_escapes = true;
        if (f && in->x.leaks_sp && in->x.leak_offset < f->escape_offset)
            f->escape_offset = in->x.leak_offset;
        for (unsigned k = 0; f && k < in->x.memories; k++) { /* an array on the stack */
            const struct x86_memory *m = &in->x.memory[k];
            if ((m->base == X86_RSP && m->index != X86_NONE) || m->index == X86_RSP)
                f->escape_offset = f->escape_offset < 0 ? f->escape_offset : 0;
        }
    }
    for (size_t i = 0; i < u->blocks; i++) {
        struct asm_function *f = &u->function[u->function[u->insn[u->block[i].first].function].family];
        int64_t by = stack_growth(u, &u->block[i]);
        f->stack_escapes |= by == INT64_MAX;
        f->escape_offset -= f->stack_escapes ? 0 : by;
    }
}

/* Plans a block as part of its parent's record: 1; 0: there is no room; or an error. */
static int plan_in_parent(struct asm_unit *u, struct asm_block *b, struct x86_node *from)
{
    const struct x86_pass *loop[X86_PASSES];
    /* a cycle that is no recorded loop begins a record in each iteration */
    int r = b->is_self_loop ? 0 : plan_block_insns(u, b, from);

    if (r > 0 && x86_path_loops(from, loop) && !x86_path_can_extend(&u->layout, b->node))
        return 0;
    if (r > 0)
        b->parent = b->from;
    return r;
}

/* Raises max_slots on the path from the root to b. */
static void raise_max_slots(struct asm_unit *u, struct asm_block *b)
{
    for (struct asm_block *p = b;; p = &u->block[p->parent]) {
        if (p->loop) /* at the loop's beginning its exit is not known yet */
            for (unsigned i = 0; i < p->loop->count; i++) {
                struct asm_block *other = &u->block[p->loop->block[i]];
                other->max_slots = other->max_slots < b->node->slots ? b->node->slots : other->max_slots;
            }
        p->max_slots = p->max_slots < b->node->slots ? b->node->slots : p->max_slots;
        if (p->parent == ASM_NONE)
            return;
    }
}

static int plan_one_block(struct asm_unit *u, uint32_t number)
{
    struct asm_block *b = &u->block[number];
    int r = 0;

    if (b->loop && b->loop->block[0] != number)
        return plan_one_block(u, b->loop->block[0]);
    struct asm_block *parent = plan_may_extend(u, b) ? &u->block[b->from] : NULL;
    if (b->planned != PLAN_NONE)
        return 1;
    b->planned = PLAN_BEGUN;
    if (parent && (r = plan_one_block(u, b->from)) < 0)
        return r;
    if (parent && (parent->planned != PLAN_DONE || parent->depth >= MAX_DEPTH))
        parent = NULL;
    if (b->loop) {
        if ((r = loops_plan(u, b->loop, parent)) > 0)
            for (unsigned i = 0; i < b->loop->count; i++)
                raise_max_slots(u, &u->block[b->loop->block[i]]);
        return r;
    }
    r = parent ? plan_in_parent(u, b, parent->node) : 0;
    if (r == 0) {
        r = plan_block_insns(u, b, NULL);
        assert(r != 0); /* a root has at most the slots for which it was cut */
    }
    b->planned = PLAN_DONE;
    if (b->parent != ASM_NONE)
        b->depth = (uint8_t)(parent->depth + 1);
    if (r > 0)
        raise_max_slots(u, b);
    return r;
}

int asm_unit_plan(struct asm_unit *u, struct peet_err *err)
{
    u->layout.no_operands = asm_level(u) < LEVEL_memory;
    u->layout.all_addresses = u->options->all_addresses;
    if (cut_blocks(u, err) < 0)
        return err->code;
    find_edges(u);
    find_escaping_stacks(u);
    for (size_t i = 0; i < u->blocks; i++)
        u->block[i].sp_in_register =
            asm_level(u) > LEVEL_calls && !u->block[i].needs_sp && u->block[i].predecessors > 0;
    int r = loops_find(u);
    r = r < 0 ? r : shared_find(u);
    for (uint32_t i = 0; r >= 0 && i < u->blocks; i++)
        r = plan_one_block(u, i);
    for (uint32_t i = 0; r >= 0 && i < u->blocks; i++)
        r = shared_assign(u, i);
    return r < 0 ? err_set(err, r, "no memory for the blocks of %s", u->text.file) : 0;
}
