/* SPDX-License-Identifier: MIT */
/* Loops on the way through a tree of blocks: one record tells the blocks before a loop, the loop, and the blocks behind it.
 *
 * Such a way is a nest in the trace, a loop of one trip around blocks and loops. What the loop needs to have told may be known from
 * the blocks before it, and what is told of it may serve those behind it: a slot that is a register keeps up with it. */
#ifndef CAPTURE_X86_PATH_H
#define CAPTURE_X86_PATH_H

#include "capture/x86/affine.h"

/* Where a value of the loop comes from: source + add, when the loop begins. */
struct x86_pass_value {
    int64_t add;
    uint8_t source; /* PEET_SRC_ZERO or a slot of the way */
    bool is_told;   /* by a slot that the loop adds */
};

/* What a slot of the way grows by in each trip. */
struct x86_pass_growth {
    int64_t step;
    uint8_t plus; /* 0, or: it grows by slot plus - 1 besides */
    bool is_set;  /* it may be by nothing, and then this is relied upon */
};

struct x86_pass {
    const struct x86_affine *loop;
    struct x86_node *block; /* its last instruction, planned by itself */
    struct x86_pass_value value[PEET_SLOTS];
    struct x86_pass_growth growth[PEET_SLOTS]; /* by slots of the way */
    uint8_t counter;                           /* the slot with the counter's last value; it is the last one */
    const struct x86_affine_exit *exit;        /* NULL, or: where the last trip was left, */
    struct x86_node *left;                     /*   and its last instruction */
};

enum { X86_PASSES = 8 }; /* on one way */

/* A loop behind `from`, or, if that is NULL, at the beginning. 1, and *ret; 0: it cannot stand there; or PEET_ERR_MEMORY. */
int x86_path_step(struct x86_layout *l, struct x86_node *from, struct x86_node *block, const struct x86_affine *loop,
                  struct x86_node **ret);

/* The same loop as that of `pass`, but left behind so many instructions of its last trip. */
int x86_path_leave(struct x86_layout *l, const struct x86_node *pass, unsigned depth, struct x86_node **ret);

/* Whether what ends at n can be on a way with loops. Of a node behind a loop this is to be asked before it is used. */
bool x86_path_is_fit(const struct x86_layout *l, const struct x86_node *n);

/* The loops up to n, in order; how many they are. */
unsigned x86_path_loops(const struct x86_node *n, const struct x86_pass *ret[X86_PASSES]);

/* The words of an execution as the trace has them: values, then how many trips each loop made. */
void x86_path_settle(const struct x86_node *n, uint64_t *words);

/* Whether a way with one loop is settled by this alone. */
bool x86_path_trips(const struct x86_node *n, struct peet_trips *ret);

/* Instructions and operands of an execution whose loops made these trips. */
void x86_path_totals(const struct x86_node *n, const uint64_t *trips, uint64_t *ret_insns, uint64_t *ret_operands);

/* Defines the way, and its blocks. If the layout strips them, an execution has only the numbers of trips. */
int x86_path_define(struct x86_layout *l, struct x86_node *n, struct peet_writer *w, uint32_t *ret_item,
                    struct peet_err *err);

#endif
