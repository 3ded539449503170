/* SPDX-License-Identifier: MIT */
/* The memory that an instrumented program shares with its recorder (docs/design/instrumentation.md): a header, the table of threads, and
 * RAW_BUFFERS buffers for each entry of that table. The recorder makes the file and names it in the environment variable RAW_VARIABLE.
 * The file is sparse: a buffer takes memory once its thread writes to it. Buffers are zero when a thread gets them. */
#ifndef CAPTURE_PROTOCOL_SHARED_MEMORY_H
#define CAPTURE_PROTOCOL_SHARED_MEMORY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RAW_VARIABLE "PEET_RECORD"
#define RAW_MAGIC 0x3174726563657065u /* "epecert1" */
enum { RAW_VERSION = 7, RAW_THREADS = 4096, RAW_BUFFERS = 4, RAW_BUFFER_BYTES = 1 << 20, RAW_GUARD = 65536 };
enum { RAW_STRINGS = 1024, RAW_STRING_BYTES = 128, RAW_PATH = 512 };

/* State of a buffer. The program changes EMPTY to FILLING and FILLING to FULL, the recorder FULL to EMPTY. */
enum raw_state { RAW_EMPTY, RAW_FILLING, RAW_FULL };

/* State of an entry of the table. The program changes FREE to TAKEN, then to LIVE, then to ENDED; the recorder ENDED to FREE. */
enum raw_life { RAW_FREE, RAW_TAKEN, RAW_LIVE, RAW_ENDED };

/* The header of a buffer of event words. */
struct raw_buffer {
    _Atomic uint32_t state; /* enum raw_state; a futex: the program waits for EMPTY */
    uint32_t bytes;         /* written; valid when FULL */
    uint64_t sp;            /* %rsp when the first record began; 0: that record has its own */
};

/* An entry of the table: a thread of an instrumented program. */
struct raw_thread {
    _Atomic uint32_t life;          /* enum raw_life */
    _Atomic uint32_t registered;    /* a futex; 1: the recorder has added the thread and the mappings of its process */
    uint32_t number;                /* of the thread, also in the trace; from 1 */
    uint32_t parent;                /* number of the creating thread; its own: none */
    uint32_t ordinal;               /* position among the children of its parent; from 0 */
    uint32_t process;               /* number of the first thread of the process */
    int32_t pid, tid;               /* the kernel's numbers of process and thread */
    uint32_t end_kind;              /* 1 + enum peet_end; 0: not known yet */
    uint32_t exit_code;             /* by end_kind: exit status, or number of the signal; else 0 */
    uint64_t thread_pointer;        /* %fs base */
    uint64_t stack_low, stack_high; /* addresses: [stack_low, stack_high); equal: not known */
    uint32_t program;               /* number of the string with the path that exec starts; 0: no exec */
    _Atomic uint32_t stopped;       /* controlled: enum raw_stop; a futex */
    _Atomic uint32_t go;            /* controlled: a futex; 1: the thread may run */
    uint32_t reserved;
    uint64_t reply; /* controlled: answer to the thread's last event */
    uint64_t skip;  /* references to leave out from the next resume on; the program takes it and sets 0 */
    uint64_t resume_regs
        [4]; /* after a gap: %rip, %rsp and %rbp of the next instruction, 1 if that follows a call; 0: unknown */
    struct raw_buffer buffer[RAW_BUFFERS];
};

/* A load that read memory while another domain had a pending store to its bytes. */
struct raw_overtaken {
    uint64_t load, store; /* addresses of the code after their hooks: where the instructions begin */
    uint64_t times;       /* 0: the entry is empty */
};
enum { RAW_OVERTAKEN = 64 };

/* Accesses by a memory order, of programs that were built for it (docs/design/live-orders.md). The controller sets it before a thread runs. */
struct raw_order {
    uint32_t model;                                /* 1 + index in memory_orders; 0: threads do not stop at accesses */
    uint32_t stores;                               /* in a store buffer */
    uint32_t drains_randomly;                      /* 1: any store that may perform is next; 0: the oldest */
    uint32_t delay;                                /* a store performs by itself at one of delay + 2 accesses */
    uint32_t group;                                /* threads of a domain */
    uint64_t random;                               /* state of the generator */
    uint64_t consulted;                            /* accesses at which threads have stopped */
    struct raw_overtaken overtaken[RAW_OVERTAKEN]; /* those that were found first */
    uint64_t alone; /* accesses without a stop: to the own stack, or a line that one thread alone has used */
};

/* Argument of a hook before an access: number of bytes, kind (enum peet_kind) from bit RAW_HOOK_KIND on, flags. */
enum {
    RAW_HOOK_SIZE = 0xff,
    RAW_HOOK_KIND = 8,
    RAW_HOOK_ATOMIC = 1 << 12,
    RAW_HOOK_FULL = 1 << 13,   /* a full fence */
    RAW_HOOK_STORES = 1 << 14, /* a fence between stores */
    RAW_HOOK_LOADS = 1 << 15,  /* a fence between loads */
};

/* The begin of the shared memory. */
struct raw_header {
    uint64_t magic;                  /* RAW_MAGIC */
    uint32_t version;                /* RAW_VERSION */
    uint32_t level;                  /* enum level of the recording; the recorder sets it */
    int32_t recorder;                /* process of the recorder */
    _Atomic uint32_t threads;        /* numbers given to threads */
    _Atomic uint32_t entries_used;   /* entries of the table that were ever taken */
    _Atomic uint32_t doorbell;       /* a futex; incremented when a buffer is FULL and when a thread begins or ends */
    _Atomic uint32_t recorder_waits; /* 1: the doorbell's futex has to be woken */
    _Atomic uint32_t stop;           /* 1: recording has failed; threads record nothing more and wait for no buffer */
    _Atomic uint32_t unrecorded;     /* threads that found no free entry */
    _Atomic uint32_t strings;        /* strings in use */
    _Atomic uint32_t string_lock;    /* 1: a thread adds a string */
    uint32_t controlled;             /* 1: the recorder says when threads run (control.h) */
    uint32_t in_process;             /* 1: and it runs in the program's process */
    uint32_t buffer_limit;           /* bytes of a buffer that are used; 0: all */
    uint32_t skip_line;     /* bytes moved by library code that count as one skipped reference; 0: never skipped */
    uint64_t skip;          /* references to leave out after each buffer; controlled: after each `skip` of a thread */
    char library[RAW_PATH]; /* in process: the file that the host loads */
    char job[RAW_PATH];     /* in process: what that library is to do */
    char string[RAW_STRINGS][RAW_STRING_BYTES]; /* string n at n - 1; longer ones are cut */
    struct raw_thread thread[RAW_THREADS];
    _Atomic uint32_t unmapped; /* threads that had an entry but could not map its buffers; not recorded */
    /* In process: the signal with which the user wants the end; 0: none. The program's process sets it, or the recorder when the
     * program handles that signal itself and continues. */
    volatile uint32_t want_end;
    _Atomic uint32_t ending; /* in process; 1: the machine ends as the user wants, and makes its report */
    struct raw_order order;
};

/* Byte at which the buffers of entry 0 begin; the buffers of entry n are n * RAW_BUFFERS * RAW_BUFFER_BYTES further. */
enum { RAW_DATA_OFFSET = 1 << 20 };

_Static_assert(sizeof(struct raw_header) <= RAW_DATA_OFFSET, "the table ends before the buffers");

#endif
