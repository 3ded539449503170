/* SPDX-License-Identifier: MIT */
/* Controlled execution: the recorder says which thread runs, one at a time (docs/design/controlled-execution.md). A thread stops when it
 * has begun, when it has written an event that waits for an answer, when it has handed over a buffer, and when it has ended. It sets
 * raw_thread.stopped and waits for raw_thread.go. */
#ifndef CAPTURE_PROTOCOL_CONTROL_H
#define CAPTURE_PROTOCOL_CONTROL_H

#include <stddef.h>
#include <stdint.h>

struct raw_header;

/* Why a thread does not run. RAW_TO_CARRIER: it asks to continue on its own kernel thread, in order to begin or to end. RAW_ACCESS: it is before a
 * shared access, and has handed over no words (raw_order). */
enum raw_stop { RAW_RUNS, RAW_STOPPED, RAW_FINISHED, RAW_TO_CARRIER, RAW_ACCESS };

/* A reply: the wait was ended because the thread is cancelled. */
enum { RAW_CANCELLED = 2 };

/* A system call that was replaced by ud2. */
struct raw_trap {
    uint64_t address;
    uint64_t
        has_futex; /* 1: a call of futex is simulated, too; 0: it is the C library's own wait, and the kernel makes it */
};

/* What the runtime offers to a machine in the program's process. */
struct raw_host {
    struct raw_header *header;
    const char *file;               /* name of the shared memory's file */
    void (*resume)(uint32_t entry); /* runs the thread of this entry of the table until it stops */
    /* Replaces system calls by ud2; the runtime carries them out. Addresses rise, and stay allocated. */
    void (*set_traps)(const struct raw_trap *trap, size_t count);
    /* From its next resume on, the thread leaves out about this number of references, or fewer if it stops for an event. The words that
     * follow begin with a gap that has their number. */
    void (*set_skip)(uint32_t entry, uint64_t references);
    uint64_t syscall;                  /* address of the function syscall in the program's C library */
    const volatile uint32_t *want_end; /* raw_header.want_end */
};

/* The machine's entry point in raw_header.library. Returns the process's exit status, or RAW_CONTINUE: the thread that stopped last
 * continues to the program's own end. The name has the version of struct raw_host: a change of that struct changes the name. Programs that were
 * built before find RAW_MACHINE_OLD, which ends with a message: build them again. */
#define RAW_MACHINE "peet_machine_2"
#define RAW_MACHINE_OLD "peet_machine"
typedef int raw_machine(const struct raw_host *host);
enum { RAW_CONTINUE = -1 };

#endif
