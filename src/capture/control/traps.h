/* SPDX-License-Identifier: MIT */
/* Where the libraries of the program in whose process this is make system calls that can wait: they are made traps, and the runtime
 * is told (capture/runtime/calls.c). In the C library those whose number is known from the instructions before them; in libgomp all. */
#ifndef CAPTURE_CONTROL_TRAPS_H
#define CAPTURE_CONTROL_TRAPS_H

#include <stdbool.h>

#include "peet/err.h"

struct raw_host;

/* Whether the kernel lets a process change its own code, which needs a file /proc/self/mem that can be written. */
bool traps_are_possible(void);

int traps_set(const struct raw_host *host, struct peet_err *err);

#endif
