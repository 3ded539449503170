/* SPDX-License-Identifier: MIT */
/* What the plugin has to know of each architecture that it watches: registers by the names that QEMU's gdb stub has for them,
 * instructions by what they do to memory and to control. Nothing here needs QEMU. A new one is one file and one line in
 * GUESTS. */
#ifndef CAPTURE_QEMU_GUEST_H
#define CAPTURE_QEMU_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peet/schema.h"

#define GUESTS(X) X(x86_64) X(aarch64) X(riscv64)

/* What QEMU tells of an instruction's accesses, and what an exception leaves of it. */
enum guest_access {
    GUEST_NONE,      /* no access, and no exception either */
    GUEST_FAULTS,    /* no access, but it may fail */
    GUEST_ONE,       /* one access */
    GUEST_SEVERAL,   /* as many as it has operands */
    GUEST_WIDE,      /* one operand in several accesses, the first of which tells its address */
    GUEST_REPEATED,  /* a string instruction: element by element, may be left and entered again */
    GUEST_IRREGULAR, /* any number */
};

enum { GUEST_OPERANDS = 2, GUEST_ARGUMENTS = 5, GUEST_BYTES = 16 };

struct guest_operand {
    uint32_t size; /* of GUEST_REPEATED: of an element; 0: as QEMU tells it */
    uint8_t kind;  /* PEET_LOAD … PEET_UPDATE */
};

struct guest_insn {
    struct peet_insn insn;
    uint8_t access; /* enum guest_access */
    uint8_t operands;
    bool is_call;       /* of the kernel */
    bool loads, stores; /* which accesses count: of an update the load alone */
    struct guest_operand operand[GUEST_OPERANDS];
};

/* Why a program is in the kernel, by the number of the system call that it made. */
enum guest_call {
    GUEST_CALL_OTHER,
    GUEST_CALL_EXIT,
    GUEST_CALL_EXIT_ALL,
    GUEST_CALL_CLONE,
    GUEST_CALL_EXEC,
    GUEST_CALL_SIGRETURN,
    GUEST_CALL_MMAP,
    GUEST_CALL_MUNMAP,
    GUEST_CALL_MREMAP,
    GUEST_CALL_BRK,
};

/* A program at its first instruction in the kernel: what is read of it, by functions of who has it. */
struct guest_probe {
    uint64_t (*reg)(void *context, const char *name);
    bool (*memory)(void *context, uint64_t addr, void *into, size_t n);
    void *context;
};

/* How the kernel was entered. */
struct guest_entry {
    uint64_t pc;   /* where the program goes on, or the instruction that has to be tried again */
    bool is_call;  /* by a system call, which is done with */
    bool is_fault; /* an instruction failed; else it was interrupted, between two blocks of QEMU's */
    bool is_vague; /* an instruction may have failed, if it is one that can without an access to memory */
};

struct guest_isa {
    const char *name;                 /* as QEMU and uname call it */
    const char *sp, *pc, *root;       /* names of registers */
    const char *pointer;              /* of the thread */
    const char *level;                /* the register that holds the privilege */
    const char *number, *tid;         /* of a system call; where the paper's pattern leaves the thread's */
    const char *result;               /* of a system call, and of a function */
    const char *arg[GUEST_ARGUMENTS]; /* of a function; the first three are a system call's, too */
    const char
        *link; /* holds the address that a function returns to; NULL: it lies where the stack pointer points to */
    uint64_t root_mask;
    bool (*is_user)(uint64_t level);
    void (*decode)(const uint8_t *bytes, size_t n, uint64_t addr, struct guest_insn *ret);
    bool (*leaves_kernel)(const uint8_t *bytes, size_t n);
    /* At the kernel's first instruction: why it was entered; false: nobody knows. */
    bool (*read_entry)(const struct guest_probe *p, struct guest_entry *ret);
    /* At a program's first instruction behind the kernel: the number of the signal whose handler begins there, or 0. */
    unsigned (*entered_handler)(const struct guest_probe *p);
    enum guest_call (*call_kind)(uint64_t number);
};

#define X(name) extern const struct guest_isa guest_##name;
GUESTS(X)
#undef X

const struct guest_isa *guest_find(const char *name); /* NULL: no such */

#endif
