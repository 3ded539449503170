/* SPDX-License-Identifier: MIT */
/* Stack unwinding of a stopped thread of this process, by call frame information (.eh_frame).
 *
 * Assumes that the CFA is an offset from %rsp or %rbp, as compilers make it. The rule of each address is cached. */
#ifndef CAPTURE_CONTROL_STACK_H
#define CAPTURE_CONTROL_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* A frame of the stack, by its registers. */
struct stack_frame {
    uint64_t pc, sp, bp; /* pc: the next instruction */
    bool is_caller;      /* pc is a return address */
    bool is_first;       /* the thread began with it */
};

struct stack_rules;
struct stack_rules *stack_rules_new(void);
void stack_rules_free(struct stack_rules *s);

/* Replaces *p by its caller's frame. False: there is no caller (is_first), or it cannot be found. */
bool stack_up(struct stack_rules *s, struct stack_frame *p);

#endif
