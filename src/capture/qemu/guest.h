/* SPDX-License-Identifier: MIT */
/* Architectures of guests: their registers, by the names of QEMU's gdb stub; the accesses and the control flow of their instructions.
 * Independent of QEMU. A new architecture is one file and one line in GUESTS. */
#ifndef CAPTURE_QEMU_GUEST_H
#define CAPTURE_QEMU_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peet/schema.h"

#define GUESTS(X) X(x86_64) X(aarch64) X(riscv64)

/* The accesses of an instruction, as QEMU reports them. */
enum guest_access {
    GUEST_NONE,      /* no access; it cannot fail */
    GUEST_FAULTS,    /* no access; it can fail */
    GUEST_ONE,       /* one access */
    GUEST_SEVERAL,   /* one access for each operand */
    GUEST_WIDE,      /* one operand in several accesses, of which the first has the operand's address */
    GUEST_REPEATED,  /* a string instruction: one access for each element; interrupts can come between elements */
    GUEST_IRREGULAR, /* any number of accesses */
};

enum { GUEST_OPERANDS = 2, GUEST_ARGUMENTS = 5, GUEST_BYTES = 16 };

/* A memory operand of an instruction. */
struct guest_operand {
    uint32_t size; /* bytes; of GUEST_REPEATED: of an element. 0: the size that QEMU reports */
    uint8_t kind;  /* PEET_LOAD … PEET_UPDATE */
};

/* A decoded instruction. */
struct guest_insn {
    struct peet_insn insn;
    uint8_t access;     /* enum guest_access */
    uint8_t operands;   /* elements of `operand` in use */
    bool is_call;       /* system call */
    bool loads, stores; /* which of its accesses are recorded; of an update only the load */
    struct guest_operand operand[GUEST_OPERANDS];
};

/* System calls that the plugin distinguishes. */
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

/* Access to a processor's registers and memory, by functions of the caller. */
struct guest_probe {
    uint64_t (*reg)(void *context, const char *name);
    bool (*memory)(void *context, uint64_t addr, void *into, size_t n);
    void *context;
};

/* The cause of an entry of the kernel. */
struct guest_entry {
    uint64_t pc;   /* address at which user code resumes; of a fault, the instruction that failed */
    bool is_call;  /* a system call, which has been executed */
    bool is_fault; /* an instruction failed; otherwise an interrupt between two blocks of QEMU */
    bool
        is_vague; /* a fault if the instruction can fail without a memory access (GUEST_FAULTS); otherwise an interrupt */
};

/* What the plugin has to know of an instruction set and its Linux. */
struct guest_isa {
    const char *name; /* in QEMU and uname */
    /* Names of registers. */
    const char *sp, *pc, *root;       /* root: of the address space */
    const char *pointer;              /* thread pointer */
    const char *level;                /* privilege level */
    const char *number;               /* number of a system call */
    const char *tid;                  /* the thread's number after the paper's pattern */
    const char *result;               /* of a system call, and of a function */
    const char *arg[GUEST_ARGUMENTS]; /* of a function; the first three also of a system call */
    const char *link;                 /* return address; NULL: it is on the stack */
    uint64_t root_mask;               /* bits of `root` that identify the address space */
    bool (*is_user)(uint64_t level);
    void (*decode)(const uint8_t *bytes, size_t n, uint64_t addr, struct guest_insn *ret);
    bool (*leaves_kernel)(const uint8_t *bytes, size_t n);
    /* At the kernel's first instruction: the cause of the entry. False: not known. */
    bool (*read_entry)(const struct guest_probe *p, struct guest_entry *ret);
    /* At the first instruction of user code after the kernel: number of the signal whose handler begins there; 0: no handler. */
    unsigned (*entered_handler)(const struct guest_probe *p);
    enum guest_call (*call_kind)(uint64_t number);
};

#define X(name) extern const struct guest_isa guest_##name;
GUESTS(X)
#undef X

const struct guest_isa *guest_find(const char *name); /* NULL: no such */

#endif
