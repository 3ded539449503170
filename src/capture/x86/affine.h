/* SPDX-License-Identifier: MIT */
/* Loops of one block that can be told in a few words: each of its slots grows by as much in every trip.
 *
 * Then it is enough to know the slots of the first trip, what they grow by if that is in a register, and a register that counts
 * when the loop begins and when it ends. A loop is taken only if its last branch looks at a register that counts, and at others
 * that are known: so one that waits for another thread to change memory is never one of these. */
#ifndef CAPTURE_X86_AFFINE_H
#define CAPTURE_X86_AFFINE_H

#include "capture/x86/layout.h"

/* value[i] of an execution: i below slots: that slot in the first trip; otherwise a register when the loop begins. */
struct x86_affine_value {
    int64_t step;
    uint8_t plus;   /* 0, or: it grows by value[plus - 1] besides */
    uint8_t reg;    /* for those that are registers, */
    uint64_t times; /*   and what the value in the trace is multiplied by */
};

struct x86_affine {
    unsigned slots, values;
    struct x86_affine_value value[PEET_SLOTS];
    uint8_t counter; /* the register that tells how often; value[counted] is where it began */
    uint8_t counted;
    bool narrow; /* it counts in 32 bits */
    bool settled_by_trips;    /* `trips` is all that x86_affine_settle does */
    struct peet_trips trips; /* how these follow from what the counter did, if it does not count by a register */
};

/* Whether the block that ends at n is such a loop, if its branch goes back to its beginning. No pointer leads to the first
 * private_bytes of the stack, from %rsp up: what is stored through pointers does not change what is kept there. */
bool x86_affine_find(const struct x86_node *n, uint64_t private_bytes, struct x86_affine *ret);

/* The words of an execution as the trace has them: in place of the counter's last value the number of trips. */
void x86_affine_settle(const struct x86_affine *a, uint64_t *words);

/* Defines the loop, and its block. If the layout strips them, an execution has one slot, the number of trips. */
int x86_affine_define(const struct x86_affine *a, struct x86_layout *l, struct x86_node *n, struct peet_writer *w,
                      uint32_t *ret_item, struct peet_err *err);

#endif
