/* SPDX-License-Identifier: MIT */
/* Loops within paths: one record stands for the blocks before a loop, the loop, and the blocks after it. In the trace
 * such a path is a nest: a loop of one iteration around blocks and loops. Values that the loop needs may follow from
 * slots before it. A slot that holds a register grows with it, and may serve the blocks after the loop. */
#ifndef CAPTURE_X86_PATH_H
#define CAPTURE_X86_PATH_H

#include "capture/x86/affine.h"

/* The origin of a loop's value: source + add, when the loop begins. */
struct x86_pass_value {
    int64_t add;
    uint8_t source; /* PEET_SRC_ZERO, or a slot of the path */
    bool has_slot;  /* the source is a slot that the loop adds */
};

/* The growth of a slot of the path in each iteration. */
struct x86_pass_growth {
    int64_t step;
    uint8_t plus; /* 0: none; else it grows by slot plus - 1 besides */
    bool is_set;  /* values depend on this growth, which may be 0 */
};

/* A loop as an element of a path. */
struct x86_pass {
    const struct x86_affine *loop;
    struct x86_node *block; /* its last instruction, planned without what precedes the loop */
    struct x86_pass_value value[PEET_SLOTS];
    struct x86_pass_growth growth[PEET_SLOTS]; /* by slot of the path */
    /* slot with the induction register's final value; the last slot of the loop */
    uint8_t counter;
    const struct x86_affine_exit *exit; /* where the last iteration was left; NULL: at its end */
    struct x86_node *exit_node;         /* exit: the last executed instruction; otherwise NULL */
};

enum { X86_PASSES = 8 }; /* loops on one path */

/* Appends a loop to the path that ends at `from`; NULL: begins a record. 1: *ret is set; 0: it has no room here; or
 * PEET_ERR_MEMORY. */
int x86_path_step(struct x86_layout *l, struct x86_node *from, struct x86_node *block, const struct x86_affine *loop,
                  struct x86_node **ret);

/* The loop of `pass`, left after the first `depth` instructions of its last iteration. */
int x86_path_leave(struct x86_layout *l, const struct x86_node *pass, unsigned depth, struct x86_node **ret);

/* Whether the path that ends at n may contain loops. To be asked before a node after a loop is used. */
bool x86_path_can_extend(const struct x86_layout *l, const struct x86_node *n);

/* The loops up to n, in order. Returns their number. */
unsigned x86_path_loops(const struct x86_node *n, const struct x86_pass *ret[X86_PASSES]);

/* Converts the words of an execution to what the trace has: values, then the trip count of each loop. */
void x86_path_resolve(const struct x86_node *n, uint64_t *words);

/* The trip count of a path with one loop, if that is all that x86_path_resolve would compute. */
bool x86_path_simple_trips(const struct x86_node *n, struct peet_trips *ret);

/* Instructions and operands of an execution with these trip counts. */
void x86_path_totals(const struct x86_node *n, const uint64_t *trips, uint64_t *ret_insns, uint64_t *ret_operands);

/* Defines the path and its blocks in the trace. If the layout strips operands, an execution has trip counts only. */
int x86_path_define(struct x86_layout *l, struct x86_node *n, struct schema_builder *to, uint32_t *ret_item,
                    struct peet_err *err);

#endif
