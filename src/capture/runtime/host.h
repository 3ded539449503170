/* SPDX-License-Identifier: MIT */
/* Controlled execution, on the program's side (docs/design/controlled-execution.md): stops (control.c), the host thread that runs a
 * simulator and the program's threads in turn (host.c), and system calls in which a thread waits (calls.c, waits.c). */
#ifndef CAPTURE_RUNTIME_HOST_H
#define CAPTURE_RUNTIME_HOST_H

#include "capture/runtime/rt.h"

/* ---- control.c ---- */

/* Hands over what has been written, and waits until the thread may continue. Returns the reply to its last event. */
uint64_t peet_rt_stop(void);
/* The thread of this entry has stopped, or ended: with RAW_FINISHED it does not wait. */
uint64_t peet_rt_stop_as(struct raw_thread *entry, enum raw_stop how);
/* Stops a controlled thread, so that other threads run up to the same simulated time. */
void peet_rt_synchronize(void);
/* Writes an event and waits until it may happen; false: the program is not controlled, and nothing was written. For parts of the
 * runtime that are linked separately, as peet_rt_synchronize is. */
bool peet_rt_ask(unsigned kind, uint64_t site, unsigned n, const uint64_t *arg, uint64_t *ret_reply);
/* Waits until a new thread has stopped for the first time. */
void peet_rt_await_child(struct raw_thread *entry);

/* ---- host.c ---- */

extern bool peet_rt_in_process; /* there is a host */

/* General registers as diverted code and crossings leave them on the stack. */
struct rt_registers {
    uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax, flags, rip;
};

/* A hook: an access of instrumented code follows (ordered.c). */
void peet_rt_ordered_access(struct rt_registers *r);

void peet_rt_host_begin(const char *file);
/* The calling thread stops, and the host continues. The first time, the thread becomes borrowed. */
void peet_rt_yield_to_host(struct raw_thread *entry, enum raw_stop how);
/* A borrowed thread continues on its carrier thread when it may run next, in order to end. */
void peet_rt_to_carrier(void);
/* True: the signal interrupts the machine and not the program; it is sent again when the program runs. */
bool peet_rt_defer_signal(int number);
bool peet_rt_in_machine(void);          /* code of the machine runs, not of the program */
void peet_rt_on_end_signal(int number); /* a handler: the machine is to end */
/* On return from a signal handler, the interrupted code calls `function` on its stack, with all registers saved, and continues. */
void peet_rt_divert(void *context, void (*function)(struct rt_registers *));
/* Sets the signals that the calling borrowed thread blocks. Returns those that it blocked before. */
uint64_t peet_rt_set_mask(uint64_t mask);
uint64_t peet_rt_blocking_mask(void); /* all signals, except those for errors and those of the C library */
void peet_rt_mask_changed(void);      /* the calling thread blocks other signals now */
void peet_rt_send(struct rt_self *to, int signal);
/* Takes one of these signals out of those that threads have sent to the calling one; 0: there is none. */
int peet_rt_take_signal(uint64_t among);
/* The carrier of the calling borrowed thread makes a system call; the host continues at once. */
void peet_rt_request(const struct rt_call *c);
bool peet_rt_is_done(long *ret_result);
/* Ends the calling borrowed thread if it has been cancelled. */
void peet_rt_cancel_here(void);
struct rt_self *peet_rt_find_borrowed(uint32_t number); /* NULL: that thread is not borrowed */
void peet_rt_forget_host(void);                         /* in the child of a fork */

/* ---- calls.c ---- */

/* System calls that have been replaced by traps; their addresses rise. */
void peet_rt_set_traps(const struct raw_trap *trap, size_t count);
void peet_rt_remove_traps(void);     /* in the child of a fork */
bool peet_rt_is_trap(void *context); /* the interrupted instruction is a trap; its call has been or will be made */

/* ---- waits.c ---- */

/* Makes a system call. While it would wait, other threads run. */
long peet_rt_wait(const struct rt_call *c);
/* Lets other threads run for this number of cycles. False: there was none, and the process has slept instead. */
bool peet_rt_yield(uint64_t cycles);

#endif
