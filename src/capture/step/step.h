/* SPDX-License-Identifier: MIT */
/* The single-step producer (docs/design/recording.md). A thread of the recorded program is a tracee. It stops after each instruction; then
 * the instruction is recorded (flow.c, calls.c), the next one is decoded (code.c), and the thread is resumed (stops.c).
 *
 * An instruction is `pending` from the resume until a stop shows that it was executed. Functions that can fail return 0 or a negative
 * code, with the reason in r->err; a failure ends the recording. */
#ifndef CAPTURE_STEP_STEP_H
#define CAPTURE_STEP_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/map.h"
#include "capture/modules.h"
#include "capture/producer.h"
#include "capture/x86/insn.h"
#include "capture/x86/layout.h"

/* ---- processes ---- */

/* An executable mapping. */
struct code_area {
    uint64_t start, end;
    bool is_writable; /* its bytes can change by stores, and are read at each execution */
};

/* A process of the recorded program. */
struct tracee_process {
    pid_t pid;
    uint32_t id;         /* in the trace */
    unsigned threads;    /* number of live tracees */
    int memory;          /* descriptor of /proc/PID/mem */
    uint32_t generation; /* number of changes of its code mappings */
    struct map insns;    /* struct cached_insn by address */
    struct modules modules;
    struct code_area *code;
    size_t codes;
    uint64_t brk;         /* end of the heap; 0: not known yet */
    uint64_t stack_low;   /* lowest mapped address of the first thread's stack */
    uint64_t stack_limit; /* lowest address to which it can grow */
};

/* The instruction at an address. */
struct cached_insn {
    const struct x86_insn *insn;
    uint32_t generation; /* of the process when its bytes were compared; 0: compare at each execution */
};

/* ---- threads ---- */

/* A call, or a signal handler, that has not returned. */
struct call_frame {
    uint64_t back, slot; /* return address; its address on the stack */
    bool is_signal;      /* a handler; `back` is not valid */
};

/* A signal handler that has not returned. */
struct handler_frame {
    int signal;
    uint64_t resume; /* address of the interrupted instruction */
};

enum { HANDLERS_MAX = 64 };

/* A thread of the recorded program. */
struct tracee {
    pid_t tid;
    uint32_t id;       /* in the trace */
    uint32_t children; /* number of threads and processes that it has created */
    struct tracee_process *process;
    struct peet_stream *stream;
    bool running;  /* resumed; otherwise in a stop */
    int deliver;   /* signal to be delivered at the next resume; 0: none */
    int delivered; /* signal delivered at the last resume; 0: none */

    const struct x86_insn *pending; /* NULL: none */
    struct x86_execution moment;    /* the execution of the pending instruction; moment.before is the member `before` */
    struct x86_state before;        /* registers before it */
    struct x86_vectors *vectors;    /* vector registers before it; NULL: not needed yet */

    struct x86_node *node; /* the last instruction of the open block; NULL: none is open */
    bool called;           /* the last instruction was a call */
    bool entry;            /* the open block began after a call */
    uint64_t slot[PEET_SLOTS];
    uint64_t block_fs, recorded_fs; /* base of %fs: at the block's beginning; in the trace */

    struct call_frame *frame;
    size_t frames, frame_room;
    struct handler_frame handler[HANDLERS_MAX];
    unsigned handlers;
};

/* ---- the recording ---- */

/* A stop, or the end, of a thread. */
struct tracee_stop {
    pid_t tid;
    int status; /* as waitpid has it */
};

/* Numbers of a thread in the trace. */
struct trace_numbers {
    uint32_t thread, process;
};

struct code_version; /* bytes that an address had; code.c */

/* A recording by single steps. */
struct stepper {
    const struct producer_config *config;
    struct peet_writer *writer;
    struct peet_err *err;
    struct recording *ret;
    pid_t root;
    bool started, root_ended;
    bool aslr_kept;                /* ASLR could not be switched off */
    struct map threads, processes; /* struct tracee * by tid; struct tracee_process * by pid */
    struct map early;              /* int by tid: stopped threads whose creation is not known yet */
    struct map numbers;            /* struct trace_numbers by tid; also of threads that have ended */
    uint32_t next_thread, next_process;
    enum level level;
    struct x86_layout layout;
    struct map versions; /* struct code_version * by address */
    struct arena arena;
    struct tracee_stop *queue; /* stops from index queue_at on are not handled yet */
    size_t queue_at, queued, queue_room;
    uint64_t steps;    /* number of stops, for the progress line */
    uint64_t executed; /* number of instructions, recorded or not */
};

/* start.c: runs the program to its first instruction, as a tracee. *ret_moved: ASLR could not be switched off. */
int start_subject(const struct producer_config *config, pid_t *ret, bool *ret_moved, struct peet_err *err);

/* memory.c: memory and registers of tracees. memory_read returns the number of bytes that could be read. */
size_t memory_read(const struct tracee_process *p, uint64_t addr, void *into, size_t n);
void memory_write(const struct tracee_process *p, uint64_t addr, const void *from, size_t n);
int registers_read(pid_t tid, struct x86_state *ret, int64_t *ret_call, bool *ret_is_64); /* -1: it has ended */
int vectors_read(pid_t tid, struct x86_vectors *ret);

/* code.c: the instruction at addr. */
int code_at(struct stepper *r, struct tracee_process *p, uint64_t addr, const struct x86_insn **ret);

/* process.c */
int process_new(struct stepper *r, pid_t pid, uint32_t parent, struct tracee_process **ret); /* parent 0: none */
void process_free(struct tracee_process *p);
int process_scan(struct stepper *r, struct tracee_process *p, bool is_new); /* reads its mappings again */
bool process_has_code(const struct tracee_process *p, uint64_t start, uint64_t size);

/* thread.c: kinds of events and their arguments are those of peet/record.h. */
/* The process and the parent of a new thread. */
struct tracee_parent {
    struct tracee_process *process;
    bool has_parent;
    uint32_t parent, ordinal; /* number of the parent in the trace; position among its children, from 0 */
};
int tracee_new(struct stepper *r, pid_t tid, struct tracee_parent family, struct tracee **ret);
void tracee_inherit(struct tracee *t, const struct tracee *from);                 /* after a fork: copies its calls */
int tracee_end(struct stepper *r, struct tracee *t, uint64_t how, uint64_t code); /* frees it */
void tracee_free(struct tracee *t);
struct tracee *tracee_find(const struct stepper *r, pid_t tid);
int event_put(struct stepper *r, struct tracee *t, uint32_t kind, uint64_t site, const uint64_t *args);
#define PUT_EVENT(r, t, kind, site, ...) event_put(r, t, PEET_EV_##kind, site, (const uint64_t[]){ __VA_ARGS__ })

/* flow.c: flow_commit records the pending instruction (X86_INTERRUPTED: a part of it); flow_arrive records how control reached `after`. */
int flow_commit(struct stepper *r, struct tracee *t, unsigned variant);
int flow_arrive(struct stepper *r, struct tracee *t, const struct x86_insn *from, const struct x86_state *after);
int flow_close(struct stepper *r, struct tracee *t);
int flow_enter_signal(struct stepper *r, struct tracee *t, int signal, uint64_t resume, const struct x86_state *after);
int flow_exit_signal(struct stepper *r, struct tracee *t, const struct x86_state *after);

/* calls.c: records the system call of t->before with its result. Numbers of processes and threads are replaced by those of the trace. */
int call_done(struct stepper *r, struct tracee *t, uint64_t site, int64_t result);

/* stops.c */
int stop_take(struct stepper *r, struct tracee_stop stop);
void tracee_resume(struct tracee *t);
int tracee_go(struct stepper *r, struct tracee *t); /* decodes the next instruction, and resumes the thread */

/* release.c: detaches from the program, which continues unrecorded. */
void release_all(struct stepper *r);
void release_thread(struct stepper *r, struct tracee *t);

#endif
