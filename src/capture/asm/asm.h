/* SPDX-License-Identifier: MIT */
/* The instrumenting assembler: from GCC's output, compiled with %r14 and %r15 reserved, to an object whose code records
 * what it executes (docs/design/instrumentation.md). Assumes AT&T syntax, no use of %r14 and %r15, and strings that are
 * processed upwards.
 * Leaves unchanged, with a warning: files that GCC did not write; functions whose inline assembly has labels, jumps,
 * calls or directives. Does not record, with a warning: instructions whose operands cannot be computed by lea and mov
 * (gathers by mask register, masked moves, repeated comparisons), and calls for the address of a thread-local variable,
 * which linkers rewrite. */
#ifndef CAPTURE_ASM_ASM_H
#define CAPTURE_ASM_ASM_H

#include <stdbool.h>

#include "capture/level.h"
#include "peet/err.h"

/* How code addresses the cursor and the schema. */
enum asm_model {
    ASM_EXECUTABLE, /* any executable */
    ASM_ABSOLUTE,   /* an executable at a fixed address */
    ASM_LIBRARY,    /* also in shared libraries */
};

/* How an assembly file is instrumented. */
struct asm_options {
    enum asm_model model;  /* code of an executable, position-independent code … */
    enum level level;      /* what the code records; LEVEL_NONE: memory */
    bool all_addresses;    /* a slot for each operand's address, to test the planning */
    bool has_hooks;        /* a hook before each access that other threads may see; with all_addresses */
    const char *assembler; /* the real assembler */
    void (*warn)(const char *text);
};

/* Runs `as ARGUMENTS…` on an instrumented copy of the input. Returns the real assembler's exit status or an error. */
int asm_run_as(int arguments, char **argument, const struct asm_options *options, struct peet_err *err);

/* A compiler's command line. */
struct asm_driver {
    const char *compiler; /* may begin with a wrapper and have arguments, separated by blanks */
    const char *folder;   /* holds `as` and the runtime */
    enum level level;     /* LEVEL_NONE: memory; events: code is not instrumented, only the runtime is linked */
    bool all_addresses;
    bool has_hooks;
    void (*warn)(const char *text);
};

/* `COMPILER ARGUMENTS…` with the options for instrumentation. *ret ends with NULL; free it with asm_arguments_free. An
 * error of kind usage: the compiler cannot be used. */
int asm_driver_arguments(const struct asm_driver *d, int arguments, char **argument, char ***ret, struct peet_err *err);
void asm_arguments_free(char **list);

#endif
