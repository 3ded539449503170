/* SPDX-License-Identifier: MIT */
/* What the parts of planning share: blocks and records (plan.c), loops (loops.c), shared blocks (shared.c). */
#ifndef CAPTURE_ASM_PLAN_H
#define CAPTURE_ASM_PLAN_H

#include "capture/asm/unit.h"

enum asm_plan_state { PLAN_NONE, PLAN_BEGUN, PLAN_DONE };

/* Whether two instructions are in one function and one section. */
bool plan_same_function(const struct asm_unit *u, uint32_t a, uint32_t b);
/* The first instruction at or after a symbol's label, or ASM_NONE. */
uint32_t plan_insn_at(const struct asm_unit *u, const struct asm_symbol *y);
/* Whether a block may extend the record of its only predecessor. */
bool plan_may_extend(const struct asm_unit *u, const struct asm_block *b);
/* The block that follows b by its branch, or by fall-through or jump. ASM_NONE: unknown, or control enters within a
 * block. */
uint32_t plan_successor(const struct asm_unit *u, const struct asm_block *b, bool by_branch);

/* Finds loops. Comes before planning. */
int loops_find(struct asm_unit *u);
/* Plans a loop as part of its parent's record, or as a root where that is impossible or parent is NULL. Returns 1 or an
 * error. */
int loops_plan(struct asm_unit *u, const struct asm_loop *loop, const struct asm_block *parent);

/* Finds the blocks that may be shared. Comes before planning. */
int shared_find(struct asm_unit *u);
/* Decides which shared successors the record of block `number` includes. Comes after planning. Returns 1 or an
 * error. */
int shared_assign(struct asm_unit *u, uint32_t number);

#endif
