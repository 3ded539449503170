/* SPDX-License-Identifier: MIT */
/* Up the stack of a thread of this process that stands still, by what its files say of frames (.eh_frame).
 *
 * Assumes that functions find their frames by %rsp or %rbp, as compilers do it. What was found out for an address is kept. */
#ifndef CAPTURE_CONTROL_STACK_H
#define CAPTURE_CONTROL_STACK_H

#include <stdbool.h>
#include <stdint.h>

struct stack_frame {
    uint64_t pc, sp, bp; /* pc: the next instruction */
    bool is_caller;      /* it has called: pc is behind the call */
    bool is_first;       /* nobody has called it */
};

struct stack_rules;
struct stack_rules *stack_rules_new(void);
void stack_rules_free(struct stack_rules *s);

/* To the caller. False: there is none (is_first), or it cannot be found. */
bool stack_up(struct stack_rules *s, struct stack_frame *p);

#endif
