/* SPDX-License-Identifier: MIT */
/* Affine loops: sequences of blocks that return to their beginning, and each of whose slots grows by a constant in
 * every iteration.
 * The record has the slots of the first iteration, their growth if it is a register, and the initial and final value of
 * an induction register. A loop is affine only if each of its branches depends on induction registers and invariant
 * ones. So a loop that waits for another thread is never affine, nor is a search loop. Search loops often end in the
 * first iteration, where ordinary records are shorter. */
#ifndef CAPTURE_X86_AFFINE_H
#define CAPTURE_X86_AFFINE_H

#include "capture/x86/layout.h"

/* The growth of a value in each iteration: step + times * reg, where reg is invariant. */
struct x86_growth {
    uint64_t step, times;
    uint8_t reg; /* number of the register; X86_NONE: times is 0 */
    bool known;  /* the other fields are set */
};

/* value[i] of an execution. i < slots: that slot in the first iteration; otherwise a register's initial value. */
struct x86_affine_value {
    int64_t step;
    uint8_t plus;   /* 0: none; else it grows by value[plus - 1] besides */
    uint8_t reg;    /* the initial value is this register plus add; X86_NONE: not of this form */
    int64_t add;    /* added to reg */
    uint64_t times; /* factor of the value in the trace; 1 for slots */
};

/* A register at a loop's exit: another register at the beginning of the iteration, plus a constant. */
struct x86_affine_register {
    int64_t add;
    uint8_t reg; /* X86_NONE: not of this form */
};

/* An exit of the loop after the first `depth` instructions of an iteration. */
struct x86_affine_exit {
    unsigned depth;
    uint64_t delta; /* growth of the induction register from the iteration's beginning to the exit */
    struct x86_affine_register after[X86_GPRS];
};

enum { X86_EXITS = 4 };

/* A loop whose iterations follow from their number. */
struct x86_affine {
    unsigned slots, values; /* slots of an iteration; elements of `value` in use, of which the first are slots */
    struct x86_affine_value value[PEET_SLOTS];
    uint8_t counter; /* the induction register; value[counted] is its initial value */
    uint8_t counted;
    bool narrow; /* it counts in 32 bits */
    /* how the trip count follows from the induction register, unless that grows by a register */
    struct peet_trips trips;
    struct x86_growth growth[X86_GPRS];
    unsigned exits; /* exits other than the one after the last instruction */
    struct x86_affine_exit exit[X86_EXITS];
};

/* Whether the instructions that end at n are an affine loop, provided that the last one leads to the first. Each other
 * branch either leaves the loop or has no effect. No pointer leads to the first private_bytes of the stack, from %rsp
 * up, so that stores through pointers do not change them. */
bool x86_affine_find(const struct x86_node *n, uint64_t private_bytes, struct x86_affine *ret);

/* How the trip count follows from a register that grows by this much in each iteration. */
struct peet_trips x86_affine_trips(uint64_t by, bool narrow);

#endif
