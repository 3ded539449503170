/* SPDX-License-Identifier: MIT */
/* Shared blocks: blocks with several predecessors and no slots. A predecessor includes one in its record, and control
 * then continues after the code that writes the shared block's separate record. */
#include "capture/asm/plan.h"

static bool is_join(const struct asm_unit *u, uint32_t insn)
{
    return insn != ASM_NONE && u->insn[insn].block != ASM_NONE && u->block[u->insn[insn].block].predecessors > 1;
}

/* Whether another record begins right after the block in any case. Otherwise sharing would split a longer record. */
static bool ends_record(const struct asm_unit *u, const struct asm_block *b)
{
    uint32_t last = b->first + b->count - 1;
    const struct asm_insn *in = &u->insn[last];
    uint8_t class = in->x.insn.class;

    if (class == PEET_CL_return || class == PEET_CL_jump_indirect)
        return true;
    return is_join(u, asm_following(u, last))
           || (in->target != ASM_NONE && is_join(u, plan_insn_at(u, &u->text.symbol[in->target])));
}

/* Whether the block has no slots, as a root and after a predecessor. */
static int has_no_slots(struct asm_unit *u, const struct asm_block *b)
{
    struct x86_node *node = NULL;
    int r = 1;

    for (uint32_t i = 0; r > 0 && i < b->count; i++)
        r = x86_layout_step(&u->layout, node, &u->insn[b->first + i].x, node ? 0 : X86_SP_IN_REGISTER, &node);
    return r < 0 ? r : r > 0 && node && node->slots == 0;
}

static int mark_shared(struct asm_unit *u, uint32_t number)
{
    struct asm_block *b = number == ASM_NONE ? NULL : &u->block[number];

    if (!b || b->is_shared || b->loop || !b->sp_in_register || b->is_self_loop || b->predecessors < 2
        || !ends_record(u, b))
        return 1;
    int r = has_no_slots(u, b);
    b->is_shared = r > 0;
    return r;
}

int shared_find(struct asm_unit *u)
{
    int r = 1;

    if (u->options->all_addresses || asm_level(u) <= LEVEL_calls)
        return 1;
    for (size_t i = 0; r >= 0 && i < u->blocks; i++)
        if ((r = mark_shared(u, plan_successor(u, &u->block[i], false))) >= 0)
            r = mark_shared(u, plan_successor(u, &u->block[i], true));
    return r < 0 ? r : 1;
}

/* Whether the record of b can include a shared successor: 1, 0 or an error. */
static int can_record(struct asm_unit *u, const struct asm_block *b, uint32_t number)
{
    const struct x86_pass *loop[X86_PASSES];
    const struct asm_block *other = number == ASM_NONE ? NULL : &u->block[number];
    struct x86_node *node = b->node;
    int r = 1;

    if (!other || !other->is_shared || other == b || b->is_shared || !b->sp_known_at_end)
        return 0;
    for (uint32_t i = 0; r > 0 && i < other->count; i++)
        r = x86_layout_step(&u->layout, node, &u->insn[other->first + i].x, 0, &node);
    if (r <= 0)
        return r;
    return node->slots == b->node->slots && (!x86_path_loops(node, loop) || x86_path_can_extend(&u->layout, node));
}

int shared_assign(struct asm_unit *u, uint32_t number)
{
    struct asm_block *b = &u->block[number];
    struct asm_function *f = &u->function[u->insn[b->first].function];
    bool may_go_on = !b->loop || asm_loop_exit_of(u, number) == ASM_EXIT_BY_FALL_THROUGH;
    uint32_t next = may_go_on ? plan_successor(u, b, false) : ASM_NONE,
             branch = b->loop ? ASM_NONE : plan_successor(u, b, true);
    int by_next = can_record(u, b, next), by_branch = can_record(u, b, branch);

    if (by_next < 0 || by_branch < 0)
        return PEET_ERR_MEMORY;
    if (by_next) {
        b->shared_next = next;
        b->next_is_only = b->loop || u->insn[b->first + b->count - 1].x.insn.class != PEET_CL_branch;
    }
    if (by_branch && f->end != ASM_NONE)
        b->shared_branch = branch;
    if (b->shared_branch != ASM_NONE || (b->loop && b->loop->count > 1)) {
        f->tail_first = f->tail_last == ASM_NONE ? number : f->tail_first;
        f->tail_last = number;
    }
    return 1;
}
