/* SPDX-License-Identifier: MIT */
/* The instrumenting assembler: from what GCC writes, compiled with %r14 and %r15 left free, to an object whose code says
 * what it executes (docs/design/instrumentation.md).
 *
 * Assumes: GCC's text in AT&T syntax, of which no part uses %r14 or %r15; strings go upwards.
 * Leaves alone, with a warning: files that no compiler wrote; functions with inline assembly that has labels, jumps, calls
 * or directives. Leaves out, with a warning: single instructions whose operands cannot be told by lea and mov (gathers,
 * masked moves, repeated comparisons), and calls for the address of a thread's variable, which linkers rewrite. */
#ifndef CAPTURE_ASM_ASM_H
#define CAPTURE_ASM_ASM_H

#include <stdbool.h>

#include "capture/level.h"
#include "peet/err.h"

/* How code reaches the cursor and its schema. */
enum asm_model {
    ASM_EXECUTABLE, /* any executable */
    ASM_ABSOLUTE,   /* one at a fixed address */
    ASM_LIBRARY,    /* shared libraries, too */
};

struct asm_options {
    enum asm_model model;
    enum level level;      /* how much the code is to say; LEVEL_NONE: memory */
    bool all_addresses;    /* a slot for each address, to check the planning */
    const char *assembler; /* the real one */
    void (*warn)(const char *text);
};

/* `as ARGUMENTS…`, with an instrumented copy of the input in its place. The real assembler's exit status, or an error. */
int asm_run_as(int arguments, char **argument, const struct asm_options *options, struct peet_err *err);

/* How a compiler is called. */
struct asm_driver {
    const char *compiler; /* may have arguments of its own, between blanks */
    const char *folder;   /* holds `as` and the runtime */
    enum level level;     /* LEVEL_NONE: memory; events: the code says nothing, and only the runtime is linked */
    bool all_addresses;
    void (*warn)(const char *text);
};

/* `COMPILER ARGUMENTS…` with what it takes to instrument; ret is for asm_exec. A list that ends with NULL, to be freed with
 * asm_arguments_free; or an error, of the kind usage where the compiler is one that cannot be used. */
int asm_driver_arguments(const struct asm_driver *d, int arguments, char **argument, char ***ret, struct peet_err *err);
void asm_arguments_free(char **list);

#endif
