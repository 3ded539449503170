/* SPDX-License-Identifier: MIT */
/* Loops that can be told in a few words: a row of blocks that goes back to its beginning, and each of whose slots grows by as much
 * in every trip.
 *
 * Then it is enough to know the slots of the first trip, what they grow by if that is in a register, and a register that counts
 * when the loop begins and when it is left. A loop is taken only if all its branches look at registers that count, and at others
 * that are known. So one that waits for another thread to change memory is never one of these; nor is one that looks for
 * something, which often finds it in the first trip, and would then have been told in fewer words as it is. */
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

/* What a register is when a trip is left in the middle: what another one was when the trip began, plus a constant. */
struct x86_affine_register {
    int64_t add;
    uint8_t reg; /* X86_NONE: it is not so simple */
};

/* Behind so many of its instructions a trip may be left. */
struct x86_affine_exit {
    unsigned depth;
    uint64_t delta; /* what the counter has grown by meanwhile */
    struct x86_affine_register after[X86_GPRS];
};

enum { X86_EXITS = 4 };

struct x86_affine {
    unsigned slots, values;
    struct x86_affine_value value[PEET_SLOTS];
    uint8_t counter; /* the register that tells how often; value[counted] is where it began */
    uint8_t counted;
    bool narrow;             /* it counts in 32 bits */
    struct peet_trips trips; /* how often follows from what the counter did, if it does not count by a register */
    struct x86_growth growth[X86_GPRS];
    unsigned exits; /* but for the one behind its last instruction */
    struct x86_affine_exit exit[X86_EXITS];
};

/* Whether what ends at n is such a loop, if it goes back to its beginning; every branch in it but for the last one leaves it, or not. No pointer leads to the first
 * private_bytes of the stack, from %rsp up: what is stored through pointers does not change what is kept there. */
bool x86_affine_find(const struct x86_node *n, uint64_t private_bytes, struct x86_affine *ret);

/* How trips follow from what a register did that grows by this much. */
struct peet_trips x86_affine_trips(uint64_t by, bool narrow);

#endif
