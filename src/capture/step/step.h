/* SPDX-License-Identifier: MIT */
/* The single-step producer, inside. A thread of the subject is a tracee: it stops after each instruction, what that did is
 * written down (flow.c, calls.c), the next one is looked at (code.c), and the thread goes on (stops.c).
 *
 * An instruction is `pending` from the moment the thread is let go until a stop tells that it was executed. Functions that
 * can fail return 0 or a negative code, with the reason in r->err; such a failure ends the recording. */
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

/* Memory that holds code. */
struct area {
    uint64_t start, end;
    bool unsteady; /* it can be written: what stands there has to be read each time */
};

struct process {
    pid_t pid;
    uint32_t id;
    unsigned threads;    /* alive, of those that are traced */
    int memory;          /* /proc/PID/mem */
    uint32_t generation; /* of its code: grows when mappings of code change */
    struct map seen;     /* struct seen, by address */
    struct modules modules;
    struct area *code;
    size_t codes;
    uint64_t brk;                    /* end of the heap, 0: unknown yet */
    uint64_t stack_low, stack_limit; /* how far down the first thread's stack reaches, and may reach */
};

struct seen {
    const struct x86_insn *insn;
    uint32_t generation; /* in which its bytes were looked at last */
};

/* ---- threads ---- */

/* A call that has not returned: what it pushed, and where. Or a signal handler that has not. */
struct frame {
    uint64_t back, slot;
    bool is_signal;
};

struct interruption {
    int signal;
    uint64_t resume; /* where the program goes on behind the handler */
};

enum { INTERRUPTIONS_MAX = 64 };

struct thread {
    pid_t tid;
    uint32_t id;
    uint32_t children; /* so far */
    struct process *process;
    struct peet_stream *stream;
    bool running;  /* let go; else it waits in a stop */
    int deliver;   /* the signal that it gets when it goes on */
    int delivered; /* the one that it got when it was let go last */

    const struct x86_insn *pending; /* NULL: none */
    struct x86_execution moment;    /* of the pending instruction; its `before` is the following */
    struct x86_state before;
    struct x86_vectors *vectors; /* allocated when the first instruction wants it */

    struct x86_node *node; /* in the block that is being executed; NULL: between two blocks */
    bool called;           /* the instruction before was a call */
    bool entry;            /* the block began behind one */
    uint64_t slot[PEET_SLOTS];
    uint64_t block_fs, told_fs; /* base of %fs at the block's entry, and what the trace has been told */

    struct frame *frame;
    size_t frames, frame_room;
    struct interruption interruption[INTERRUPTIONS_MAX];
    unsigned interruptions;
};

/* ---- the recording ---- */

struct stop {
    pid_t tid;
    int status;
};

struct number {
    uint32_t thread, process; /* of the trace */
};

struct version; /* of the code at an address, code.c */

struct producer_state {
    const struct producer_config *config;
    struct peet_writer *writer;
    struct peet_err *err;
    struct recording *ret;
    pid_t root;
    bool started, root_ended;
    bool moved;                    /* ASLR stays on */
    struct map threads, processes; /* struct thread *, by tid; struct process *, by pid */
    struct map early;              /* int: stops of threads whose makers have not yet told of them, by tid */
    struct map numbers;            /* struct number: what the trace calls them, by tid; also of those that have ended */
    uint32_t next_thread, next_process;
    enum level level;
    struct x86_layout layout;
    struct map versions; /* struct version *, by address */
    struct arena arena;
    struct stop *queue; /* stops that wait for their turn, from queue_at on */
    size_t queue_at, queued, queue_room;
    uint64_t steps;    /* for the progress line */
    uint64_t executed; /* instructions, recorded or not */
};

/* start.c: runs the program up to its first instruction, as a tracee. *ret_moved: ASLR could not be switched off. */
int start_subject(const struct producer_config *config, pid_t *ret, bool *ret_moved, struct peet_err *err);

/* memory.c: what lies in a process and in its registers. Reading yields the number of bytes that could be read. */
size_t memory_read(const struct process *p, uint64_t addr, void *into, size_t n);
void memory_write(const struct process *p, uint64_t addr, const void *from, size_t n);
int registers_read(pid_t tid, struct x86_state *ret, int64_t *ret_call, bool *ret_is_64); /* -1: it is gone */
int vectors_read(pid_t tid, struct x86_vectors *ret);

/* code.c: the instruction at addr. */
int code_at(struct producer_state *r, struct process *p, uint64_t addr, const struct x86_insn **ret);

/* process.c */
int process_new(struct producer_state *r, pid_t pid, uint32_t parent, struct process **ret); /* parent 0: none */
void process_free(struct process *p);
int process_scan(struct producer_state *r, struct process *p, bool is_new); /* looks at the mappings again */
bool process_has_code(const struct process *p, uint64_t start, uint64_t size);

/* thread.c: kinds of events and their arguments are those of peet/record.h. */
struct family {
    struct process *process;
    bool has_parent;
    uint32_t parent, ordinal;
};
int thread_new(struct producer_state *r, pid_t tid, struct family family, struct thread **ret);
void thread_inherit(struct thread *t, const struct thread *from);                        /* after a fork: its calls */
int thread_end(struct producer_state *r, struct thread *t, uint64_t how, uint64_t code); /* frees it */
void thread_free(struct thread *t);
struct thread *thread_find(const struct producer_state *r, pid_t tid);
int event_put(struct producer_state *r, struct thread *t, uint32_t kind, uint64_t site, const uint64_t *args);
#define EVENT(r, t, kind, site, ...) event_put(r, t, PEET_EV_##kind, site, (const uint64_t[]){ __VA_ARGS__ })

/* flow.c: the pending instruction was executed (or, X86_INTERRUPTED, part of it); control is now at `after`. */
int flow_commit(struct producer_state *r, struct thread *t, unsigned variant);
int flow_arrive(struct producer_state *r, struct thread *t, const struct x86_insn *from, const struct x86_state *after);
int flow_close(struct producer_state *r, struct thread *t);
int flow_enter_signal(struct producer_state *r, struct thread *t, int signal, uint64_t resume,
                      const struct x86_state *after);
int flow_exit_signal(struct producer_state *r, struct thread *t, const struct x86_state *after);

/* calls.c: the system call of t->before, with its result, behind its instruction. Numbers of processes and threads are
 * written as the trace's own. */
int call_done(struct producer_state *r, struct thread *t, uint64_t site, int64_t result);

/* stops.c */
int stop_take(struct producer_state *r, struct stop stop);
void thread_resume(struct thread *t);
int thread_go(struct producer_state *r,
              struct thread *t); /* looks at the next instruction, and lets the thread execute it */

/* release.c: the subject goes on without us. */
void release_all(struct producer_state *r);
void release_thread(struct producer_state *r, struct thread *t);

#endif
