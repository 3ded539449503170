/* SPDX-License-Identifier: MIT */
/* Loops of one block that can be told in a few words: each of its slots grows by as much in every trip.
 *
 * Then it is enough to know the slots of the first trip, what they grow by if that is in a register, and a register that counts
 * when the loop begins and when it ends. A loop is taken only if its last branch looks at a register that counts, and at others
 * that are known: so one that waits for another thread to change memory is never one of these. */
#ifndef CAPTURE_X86_AFFINE_H
#define CAPTURE_X86_AFFINE_H

#include "capture/x86/layout.h"

/* What something grows by in each trip: step + times * reg, with a register that does not change. */
struct x86_growth {
    uint64_t step, times;
    uint8_t reg;
    bool known;
};

/* value[i] of an execution: i below slots: that slot in the first trip; otherwise a register when the loop begins. */
struct x86_affine_value {
    int64_t step;
    uint8_t plus;   /* 0, or: it grows by value[plus - 1] besides */
    uint8_t reg;    /* it is this register when the loop begins, */
    int64_t add;    /*   plus this; X86_NONE: it is not so simple */
    uint64_t times; /* what the value in the trace is multiplied by; 1 for slots */
};

struct x86_affine {
    unsigned slots, values;
    struct x86_affine_value value[PEET_SLOTS];
    uint8_t counter; /* the register that tells how often; value[counted] is where it began */
    uint8_t counted;
    bool narrow;             /* it counts in 32 bits */
    struct peet_trips trips; /* how often follows from what the counter did, if it does not count by a register */
    struct x86_growth growth[X86_GPRS];
};

/* Whether the block that ends at n is such a loop, if its branch goes back to its beginning. No pointer leads to the first
 * private_bytes of the stack, from %rsp up: what is stored through pointers does not change what is kept there. */
bool x86_affine_find(const struct x86_node *n, uint64_t private_bytes, struct x86_affine *ret);

/* How trips follow from what a register did that grows by this much. */
struct peet_trips x86_affine_trips(uint64_t by, bool narrow);

#endif
