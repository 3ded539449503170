/* SPDX-License-Identifier: MIT */
/* Loops with computable trip counts: found in the control flow, planned alone, then as part of the record of the block
 * before them. */
#include <assert.h>

#include "capture/asm/plan.h"
#include "capture/protocol/schema_section.h"

static uint32_t count_private_words(const struct asm_function *f)
{
    if (f->stack_escapes || f->escape_offset < 0)
        return 0;
    return f->escape_offset / 8 < RAW_PRIVATE_MAX ? (uint32_t)(f->escape_offset / 8) : RAW_PRIVATE_MAX;
}

/* Whether the distance by which an instruction moves a register is a symbol, which linkers resolve. */
static bool moves_by_symbol(const struct asm_unit *u, const struct asm_insn *in)
{
    const struct asm_statement *s = &u->text.statement[in->statement];
    const char *at = s->text + asm_operands(s);
    size_t length;

    return in->x.moves > 0 && asm_next_name(&at, s->text + s->length, &length);
}

uint32_t asm_loop_next(const struct asm_block *b, uint32_t number)
{
    unsigned i = 0;

    while (b->loop->block[i] != number)
        i++;
    return b->loop->block[(i + 1) % b->loop->count];
}

enum asm_loop_exit asm_loop_exit_of(const struct asm_unit *u, uint32_t number)
{
    const struct asm_block *b = &u->block[number];

    if (u->insn[b->first + b->count - 1].x.insn.class != PEET_CL_branch)
        return ASM_NO_EXIT;
    return plan_successor(u, b, true) == asm_loop_next(b, number) ? ASM_EXIT_BY_FALL_THROUGH : ASM_EXIT_BY_BRANCH;
}

/* Extends the sequence of blocks until it returns to its head, through blocks with a single predecessor. */
static bool extend_loop(const struct asm_unit *u, struct asm_loop *loop)
{
    uint32_t last = loop->block[loop->count - 1];

    for (int by_branch = 0; by_branch < 2; by_branch++) {
        uint32_t to = plan_successor(u, &u->block[last], by_branch);
        if (to == loop->block[0])
            return true;
        if (to == ASM_NONE || loop->count == ASM_LOOP_BLOCKS || u->block[to].is_self_loop || u->block[to].loop
            || !plan_may_extend(u, &u->block[to]))
            continue;
        loop->block[loop->count++] = to;
        if (extend_loop(u, loop))
            return true;
        loop->count--;
    }
    return false;
}

/* Plans the loop's instructions alone, and tests whether the loop can be recorded: 1, 0 or an error. */
static int plan_loop_alone(struct asm_unit *u, struct asm_loop *loop)
{
    const struct asm_function *f = &u->function[u->function[u->insn[u->block[loop->block[0]].first].function].family];
    struct x86_node *node = NULL;

    loop->lowest = ASM_NONE;
    for (unsigned i = 0; i < loop->count; i++) {
        const struct asm_block *b = &u->block[loop->block[i]];
        loop->lowest = b->first < loop->lowest ? b->first : loop->lowest;
        for (uint32_t k = b->first; k < b->first + b->count; k++) {
            if (moves_by_symbol(u, &u->insn[k]))
                return 0;
            int r = x86_layout_step(&u->layout, node, &u->insn[k].x, node ? 0 : X86_SP_IN_REGISTER, &node);
            if (r <= 0)
                return r;
        }
    }
    loop->node = node;
    loop->private_words = count_private_words(f);
    return node && x86_affine_find(node, 8 * (uint64_t)loop->private_words, &loop->affine);
}

static int find_loop_at(struct asm_unit *u, uint32_t number)
{
    struct asm_block *head = &u->block[number];
    const struct asm_function *f = &u->function[u->insn[head->first].function];
    struct asm_loop loop = { .count = 1, .block = { number } };

    if (head->loop || !head->sp_in_register || head->is_indirect_target)
        return 1;
    if (head->is_self_loop ? plan_successor(u, head, true) != number
                           : head->predecessors != 2 || f->end == ASM_NONE || !extend_loop(u, &loop))
        return 1;
    int r = plan_loop_alone(u, &loop);
    if (r <= 0)
        return r < 0 ? r : 1;
    struct asm_loop *kept = arena_alloc(&u->layout.arena, sizeof *kept);
    if (!kept)
        return PEET_ERR_MEMORY;
    *kept = loop;
    for (unsigned i = 0; i < loop.count; i++)
        u->block[loop.block[i]].loop = kept;
    if (loop.count > 1) { /* one of the two edges to its head comes from its end */
        head->from = head->from == loop.block[loop.count - 1] ? head->other : head->from;
        head->predecessors--;
    }
    return 1;
}

int loops_find(struct asm_unit *u)
{
    int r = 1;

    for (uint32_t i = 0; r > 0 && !u->options->all_addresses && asm_level(u) > LEVEL_calls && i < u->blocks; i++)
        r = find_loop_at(u, i);
    return r;
}

/* Plans the loop after `from`, with an exit at the end of each block: 1; 0: there is no room; or an error. */
static int plan_loop_exits(struct asm_unit *u, const struct asm_loop *loop, struct x86_node *from)
{
    struct x86_node *node, *left;
    unsigned depth = 0;
    int r = x86_path_step(&u->layout, from, loop->node, &loop->affine, &node);

    for (unsigned i = 0; r > 0 && i < loop->count; i++) {
        struct asm_block *b = &u->block[loop->block[i]];
        depth += b->count;
        left = node;
        if (i + 1 < loop->count && asm_loop_exit_of(u, loop->block[i]) != ASM_NO_EXIT)
            r = x86_path_leave(&u->layout, node, depth, &left);
        b->node = left;
        b->pass = left->pass;
    }
    return r;
}

int loops_plan(struct asm_unit *u, const struct asm_loop *loop, const struct asm_block *parent)
{
    struct asm_block *head = &u->block[loop->block[0]];
    const struct x86_node *n = loop->node;
    int r = parent ? plan_loop_exits(u, loop, parent->node) : 0;
    bool is_behind = r > 0;

    if (r == 0)
        r = plan_loop_exits(u, loop, NULL);
    assert(r != 0); /* there is room for one loop */
    for (unsigned i = loop->count; r > 0 && i-- > 0;) {
        struct asm_block *b = &u->block[loop->block[i]];
        b->planned = PLAN_DONE;
        b->parent = is_behind ? head->from : ASM_NONE;
        b->depth = (uint8_t)(is_behind ? parent->depth + 1 : 0);
        for (uint32_t k = b->first + b->count; k-- > b->first; n = n->parent)
            u->insn[k].node = n;
    }
    return r;
}
