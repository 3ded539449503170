/* SPDX-License-Identifier: MIT */
/* Loops that can be told in a few words: found in the flow of control, planned by themselves, then behind the block that leads to
 * them. */
#include <assert.h>

#include "capture/asm/plan.h"
#include "capture/protocol/schema_section.h"

static uint32_t private_words(const struct asm_function *f)
{
    if (f->open_stack || f->taken < 0)
        return 0;
    return f->taken / 8 < RAW_PRIVATE_MAX ? (uint32_t)(f->taken / 8) : RAW_PRIVATE_MAX;
}

/* Whether linkers may change by how much an instruction moves a register. */
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

    while (b->row->block[i] != number)
        i++;
    return b->row->block[(i + 1) % b->row->count];
}

enum asm_leaving asm_loop_leaves(const struct asm_unit *u, uint32_t number)
{
    const struct asm_block *b = &u->block[number];

    if (u->insn[b->first + b->count - 1].x.insn.class != PEET_CL_branch)
        return ASM_STAYS;
    return plan_block_behind(u, b, true) == asm_loop_next(b, number) ? ASM_GOES_ON : ASM_BRANCHES;
}

/* Looks for a way from the end of the row back to its head, through blocks to which nothing else leads. */
static bool find_row(const struct asm_unit *u, struct asm_loop *row)
{
    uint32_t last = row->block[row->count - 1];

    for (int by_branch = 0; by_branch < 2; by_branch++) {
        uint32_t to = plan_block_behind(u, &u->block[last], by_branch);
        if (to == row->block[0])
            return true;
        if (to == ASM_NONE || row->count == ASM_LOOP_BLOCKS || u->block[to].goes_back || u->block[to].row
            || !plan_goes_on(u, &u->block[to]))
            continue;
        row->block[row->count++] = to;
        if (find_row(u, row))
            return true;
        row->count--;
    }
    return false;
}

/* Plans the row's instructions by themselves, and looks whether they make a loop that can be told: 1, 0 or an error. */
static int plan_row(struct asm_unit *u, struct asm_loop *row)
{
    const struct asm_function *f = &u->function[u->function[u->insn[u->block[row->block[0]].first].function].family];
    struct x86_node *node = NULL;

    row->lowest = ASM_NONE;
    for (unsigned i = 0; i < row->count; i++) {
        const struct asm_block *b = &u->block[row->block[i]];
        row->lowest = b->first < row->lowest ? b->first : row->lowest;
        for (uint32_t k = b->first; k < b->first + b->count; k++) {
            if (moves_by_symbol(u, &u->insn[k]))
                return 0;
            int r = x86_layout_step(&u->layout, node, &u->insn[k].x, node ? 0 : X86_STACK_CARRIED, &node);
            if (r <= 0)
                return r;
        }
    }
    row->node = node;
    row->private_words = private_words(f);
    return node && x86_affine_find(node, 8 * (uint64_t)row->private_words, &row->affine);
}

static int find_loop(struct asm_unit *u, uint32_t number)
{
    struct asm_block *head = &u->block[number];
    const struct asm_function *f = &u->function[u->insn[head->first].function];
    struct asm_loop row = { .count = 1, .block = { number } };

    if (head->row || !head->carried || head->indirect)
        return 1;
    if (head->goes_back ? plan_block_behind(u, head, true) != number
                        : head->before != 2 || f->end == ASM_NONE || !find_row(u, &row))
        return 1;
    int r = plan_row(u, &row);
    if (r <= 0)
        return r < 0 ? r : 1;
    struct asm_loop *kept = arena_alloc(&u->layout.arena, sizeof *kept);
    if (!kept)
        return PEET_ERR_MEMORY;
    *kept = row;
    for (unsigned i = 0; i < row.count; i++)
        u->block[row.block[i]].row = kept;
    if (row.count > 1) { /* one of the two that lead to its head is its end */
        head->from = head->from == row.block[row.count - 1] ? head->other : head->from;
        head->before--;
    }
    return 1;
}

int loops_find(struct asm_unit *u)
{
    int r = 1;

    for (uint32_t i = 0; r > 0 && !u->options->all_addresses && asm_level(u) > LEVEL_calls && i < u->blocks; i++)
        r = find_loop(u, i);
    return r;
}

/* A loop behind `from`, left at each of its ends: 1, 0 when it cannot stand there, or an error. */
static int leave_row(struct asm_unit *u, const struct asm_loop *row, struct x86_node *from)
{
    struct x86_node *node, *left;
    unsigned depth = 0;
    int r = x86_path_step(&u->layout, from, row->node, &row->affine, &node);

    for (unsigned i = 0; r > 0 && i < row->count; i++) {
        struct asm_block *b = &u->block[row->block[i]];
        depth += b->count;
        left = node;
        if (i + 1 < row->count && asm_loop_leaves(u, row->block[i]) != ASM_STAYS)
            r = x86_path_leave(&u->layout, node, depth, &left);
        b->node = left;
        b->loop = left->pass;
    }
    return r;
}

int loops_plan(struct asm_unit *u, const struct asm_loop *row, const struct asm_block *parent)
{
    struct asm_block *head = &u->block[row->block[0]];
    const struct x86_node *n = row->node;
    int r = parent ? leave_row(u, row, parent->node) : 0;
    bool is_behind = r > 0;

    if (r == 0)
        r = leave_row(u, row, NULL);
    assert(r != 0); /* there is room for one loop */
    for (unsigned i = row->count; r > 0 && i-- > 0;) {
        struct asm_block *b = &u->block[row->block[i]];
        b->planned = PLAN_DONE;
        b->parent = is_behind ? head->from : ASM_NONE;
        b->depth = (uint8_t)(is_behind ? parent->depth + 1 : 0);
        for (uint32_t k = b->first + b->count; k-- > b->first; n = n->parent)
            u->insn[k].node = n;
    }
    return r;
}
