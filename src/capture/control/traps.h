/* SPDX-License-Identifier: MIT */
/* Replaces blocking system calls in the libraries of this process by traps (ud2), which the runtime handles (capture/runtime/calls.c).
 * In the C library: syscall instructions whose number is set by the instructions before them, and those that get their number from
 * elsewhere, a long: the function syscall and, since glibc 2.41, all calls in which a thread can be cancelled. In libgomp: all. */
#ifndef CAPTURE_CONTROL_TRAPS_H
#define CAPTURE_CONTROL_TRAPS_H

#include <stdbool.h>

#include "peet/err.h"

struct raw_host;

/* Whether the kernel lets a process change its own code, which needs a file /proc/self/mem that can be written. */
bool traps_are_possible(void);

/* Replaces the calls and passes their addresses to host->set_traps. */
int traps_set(const struct raw_host *host, struct peet_err *err);

#endif
