/* SPDX-License-Identifier: MIT */
/* What the parts of planning know of each other: blocks and records (plan.c), loops (loops.c), shared blocks (shared.c). */
#ifndef CAPTURE_ASM_PLAN_H
#define CAPTURE_ASM_PLAN_H

#include "capture/asm/unit.h"

enum asm_plan_state { PLAN_NONE, PLAN_BEGUN, PLAN_DONE };

/* Whether two instructions are in one function and one section. */
bool plan_same_function(const struct asm_unit *u, uint32_t a, uint32_t b);
/* The first instruction behind a symbol's label, or ASM_NONE. */
uint32_t plan_insn_at(const struct asm_unit *u, const struct asm_symbol *y);
/* Whether a block may go on in the record of the one block that leads to it. */
bool plan_may_extend(const struct asm_unit *u, const struct asm_block *b);
/* The block to which control goes from the end of b, by the branch that stands there or otherwise; or ASM_NONE. */
uint32_t plan_successor(const struct asm_unit *u, const struct asm_block *b, bool by_branch);

/* Finds loops, before anything is planned. */
int loops_find(struct asm_unit *u);
/* Plans a loop behind its parent, or, where it cannot stand there or there is none, at the beginning: 1 or an error. */
int loops_plan(struct asm_unit *u, const struct asm_loop *loop, const struct asm_block *parent);

/* Finds the blocks that may be shared, before anything is planned, */
int shared_find(struct asm_unit *u);
/*   and whether a block tells those behind it, when all are. */
int shared_assign(struct asm_unit *u, uint32_t number);

#endif
