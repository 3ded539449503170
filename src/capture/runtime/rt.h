/* SPDX-License-Identifier: MIT */
/* The inside of the runtime that is linked into instrumented programs.
 *
 * It shares a process with code that knows nothing of it: memory comes from mmap, system calls are made directly, and errno
 * stays as it is. Wrapped functions call the real ones (real.h); what the real ones call in turn makes no events (`depth`).
 * All names are hidden, and local once the runtime is one object, except for the wrapped functions and what is RT_PUBLIC. */
#ifndef CAPTURE_RUNTIME_RT_H
#define CAPTURE_RUNTIME_RT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/protocol/control.h"
#include "capture/protocol/schema_section.h"
#include "capture/protocol/shared_memory.h"
#include "capture/protocol/words.h"
#include "peet/record.h"

#define RT_PUBLIC __attribute__((visibility("default")))
#define RT_WRAPPER __attribute__((visibility("default"), weak)) /* a program that has its own keeps it */
#define RT_TLS __thread __attribute__((tls_model("initial-exec")))
#define RT_SITE ((uint64_t)(uintptr_t)__builtin_return_address(0))
#define RT_FRAME __builtin_frame_address(0)

enum { RT_BUFFER_WORDS = RAW_BUFFER_BYTES / 8, RT_SIGNAL_WORDS = 1 << 16, RT_ALTSTACK_BYTES = 1 << 16 };

/* Where a thread writes: between start and end; behind end lies a guard. */
struct rt_window {
    uint64_t *start, *end;
};

struct rt_registers;

/* A system call: its number, and what it is given. */
struct rt_call {
    long number, a[6];
};

/* What a thread of the kernel whose thread the host runs is to do. */
enum rt_home { HOME_SLEEP, HOME_GO_ON, HOME_REQUEST };

struct rt_self {
    struct raw_thread *place; /* NULL: not recorded */
    struct rt_window now;
    char *memory; /* all that was mapped for the thread: buffers, signal buffer, alternate stack */
    unsigned turn;
    int depth;     /* inside wrapped functions */
    void *waiting; /* one of them in which it may be cancelled: where that is registered */
    uint32_t number, children;
    uint64_t value; /* what the thread's function returned */
    int rounds;     /* of key destructors, at the end */
    bool over;      /* the thread has ended, for the recorder */
    int handlers;   /* signal handlers that are running */
    bool lost;      /* words of signal handlers did not fit */
    char *handler_frame;
    struct rt_window stream;        /* when the outermost handler came: the window, */
    uint64_t *interrupted;          /*   and the cursor */
    struct rt_window signal;        /* the signal buffer, */
    uint64_t *signal_end;           /*   and what it holds that is not in the stream yet: [signal.start, signal_end) */
    uint64_t *doubtful;             /* words of which only the last belong to the record that went on here, or NULL: */
    unsigned doubtful_words;        /*   so many, */
    uint64_t copied[RAW_MAX_WORDS]; /*   and what they were */
    /* of a thread that leaves something out (off.c): */
    uint64_t off;    /* references from which it counts down; 0: it does not */
    uint64_t *kept;  /*   and where its words go on then */
    uint64_t paused; /* references that are left when an event has been told */
    uint64_t wish;   /* so many are to be left out as soon as it can be done */
    struct rt_window
        whole; /* the window, when its last record goes to a page apart so that the next one faults; start NULL: it does not */
    uint64_t interrupted_off;
    bool is_astray; /* it has left something out, and nobody knows what it has called since */
    /* of a thread that a host runs (inside.c): */
    void *sp; /* where it goes on */
    uint64_t thread_pointer;
    uint64_t mask;          /* signals that it blocks */
    uint64_t signals;       /* that others have sent it */
    bool is_private;        /* what it allocates is not the program's: steered programs alone */
    bool is_lent;           /* the host runs it */
    bool is_cancelled;      /* it is to end where it may */
    bool stays_home;        /* and will not run it again */
    _Atomic uint32_t home;  /* a futex: enum rt_home, what its own thread of the kernel is to do */
    struct rt_call request; /* that its own thread of the kernel makes, */
    long result;            /*   and what came of it, once `is_done` holds */
    _Atomic bool is_done;
    uint64_t handled;      /* runs of the program's signal handlers in this thread, */
    uint64_t handled_firm; /*   and those of handlers without SA_RESTART: they end system calls that wait */
};

extern RT_TLS uint64_t *peet_rt_cursor;
extern bool peet_rt_on;
extern RT_TLS struct rt_self peet_rt_self;
extern struct raw_header *peet_rt_header; /* NULL: nothing is recorded */

/* ---- core.c ---- */

/* A place in the table and a number, for a thread that is about to be; NULL: there is none. */
struct raw_thread *peet_rt_take_place(uint32_t parent, uint32_t ordinal, uint32_t process);
/* The calling thread begins to write; `place` may be NULL. */
void peet_rt_begin(struct raw_thread *place);
/* The calling thread writes nothing more that counts. */
void peet_rt_finish(void);
/* Hands over what is in front of `upto` and makes the next buffer the current one; the cursor is its start. stack: %rsp when the
 * record began that goes on there, or 0: none does. */
void peet_rt_turn(uint64_t *upto, uint64_t stack);
/* All words of the calling thread are with the recorder, and it has taken them. */
void peet_rt_drain(void);
/* How all threads of this process end; how is an enum peet_end, -1: not yet, after all. */
void peet_rt_tell_end(int how, uint32_t code);
void peet_rt_new_process(struct raw_thread *place); /* in the child of a fork */
uint32_t peet_rt_process(void);

struct rt_window peet_rt_apart(void); /* a page of the calling thread with a guard behind it */
char *peet_rt_stack_top(void);        /* of the calling thread's stack for signals */

/* An event, for parts of the runtime that are linked on their own. */
void peet_rt_tell(unsigned kind, uint64_t site, unsigned n, const uint64_t *arg);

/* ---- off.c: references that are left out ---- */

/* From now on the calling thread counts, with the cursor as it is. */
void peet_rt_go_off(uint64_t references);
/* It does no more: what it has left out is told, and the cursor is one. */
void peet_rt_wake(void);
/* Around an event of a thread that counts. */
void peet_rt_pause(void);
void peet_rt_go_on(void);
/* A thread whose buffer ended at this instruction, with `words` of a record written, leaves out what it is to: true, and where it goes on. */
bool peet_rt_off_at(const uint64_t *record, size_t words, uint64_t r14, uint64_t *rip, uint64_t *ret_r15);
/* The calling thread came to instrumented code with a counter, at the key of a record: where it goes on in the other copy, or 0. */
uint64_t peet_rt_other_copy(uint64_t rip, uint64_t r14);
/* The same where it counts no more. */
void peet_rt_come_on(struct rt_registers *r);
uint64_t peet_rt_come_on_at(uint64_t counter, uint64_t stack); /* the cursor */

/* Whether a thread counts bytes that library code reads or writes, at one place or two, and they are no event. */
bool peet_rt_count_bytes(size_t n, const void *a, const void *b);
/* A thread that counts has allocated: who steers it may want to know who called. frame: of the function that was called, with %rbp and the return address. */
void peet_rt_show_calls(const void *frame);
/* The same place in the copy that is recorded, of where a call returns to. */
uint64_t peet_rt_recorded_site(uint64_t site);

static inline bool peet_rt_has_cursor(void)
{
    return peet_rt_cursor || peet_rt_self.off;
}

static inline bool peet_rt_leaves_out(size_t n, const void *a, const void *b)
{
    return __builtin_expect(peet_rt_self.off != 0, 0) && peet_rt_count_bytes(n, a, b);
}

/* ---- steer.c: programs that run as a simulator says ---- */

/* Hands over what has been said, and waits until the thread may go on; the reply to its last event. */
uint64_t peet_rt_stop(void);
/* The thread has stopped, or ended (RAW_FINISHED, and nothing is waited for). */
uint64_t peet_rt_stop_as(struct raw_thread *place, enum raw_stop how);
/* All that has been said has happened: what the thread finds now is what others have made of it by this time. */
void peet_rt_settle(void);
/* For parts of the runtime that are linked on their own. peet_rt_ask tells an event and waits until it may happen; false: the program
 * is not steered, and nothing was told. */
bool peet_rt_ask(unsigned kind, uint64_t site, unsigned n, const uint64_t *arg, uint64_t *ret_reply);
/* Waits until a new thread has stopped for the first time. */
void peet_rt_await_child(struct raw_thread *place);

/* ---- inside.c: a simulator in the process itself, docs/design/controlled-execution.md ---- */

extern bool peet_rt_inside; /* there is a host */

void peet_rt_host_begin(const char *file);
/* The calling thread has stopped; the host goes on. */
void peet_rt_lend(struct raw_thread *place, enum raw_stop how);
/* From now on the calling thread runs by itself again, when it is its turn. */
void peet_rt_go_home(void);
/* Whether a signal that comes now interrupts the machine and not the program: then it comes again when it is the program's turn. */
bool peet_rt_is_for_later(int number);
bool peet_rt_is_machine(void);   /* what runs now is no code of the program */
void peet_rt_on_end(int number); /* a handler: the machine is to come to its end */
/* The interrupted code goes on in `function` on its own stack, with all its registers kept, and then where it was. */
void peet_rt_detour(void *context, void (*function)(struct rt_registers *));
struct rt_registers {
    uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax, flags, rip;
};
/* Makes the calling thread, which the host runs, block these signals: what it blocked before. */
uint64_t peet_rt_set_mask(uint64_t mask);
/* Takes one of these signals out of those that threads have sent to the calling one; 0: there is none. */
int peet_rt_take_signal(uint64_t among);
/* The calling thread's own thread of the kernel, which sleeps while the host runs the thread, makes a system call; the host goes on. */
void peet_rt_request(const struct rt_call *c);
bool peet_rt_is_done(long *ret_result);

/* ---- waits.c: system calls in which a thread waits ---- */

/* Does what the call would do; while it would wait, other threads run. */
long peet_rt_wait(const struct rt_call *c);

/* ---- calls.c: where such calls were ---- */

void peet_rt_set_traps(const uint64_t *site, size_t count);
bool peet_rt_is_trap(void *context); /* the interrupted instruction was one; it will be done */
/* Nothing to do for a while: others run. False: there was nobody, and it has slept instead. */
bool peet_rt_give_way(uint64_t cycles);

/* In a thread that is lent: where it ends if somebody has cancelled it. */
void peet_rt_cancel_here(void);
struct rt_self *peet_rt_find_lent(uint32_t number); /* NULL: that thread is not */
void peet_rt_send(struct rt_self *to, int signal);
void peet_rt_mask_changed(void); /* the calling thread blocks other signals now */
void peet_rt_forget_host(void);  /* in the child of a fork */

static inline bool peet_rt_is_controlled(void)
{
    return peet_rt_header && peet_rt_header->controlled && peet_rt_self.place && peet_rt_self.depth == 0
           && peet_rt_self.handlers == 0;
}

/* ---- signal.c ---- */

void peet_rt_signals_begin(void);
void peet_rt_traps_begin(void);
void peet_rt_signals_append(void); /* puts what handlers wrote into the stream, at the cursor */

/* ---- thread.c ---- */

void peet_rt_threads_begin(void);

/* ---- system.c ---- */

void peet_rt_processes_begin(void);

/* ---- heap.c ---- */

void peet_rt_heap_begin(void);

/* ---- mark.c ---- */

uint32_t peet_rt_string(const char *text); /* its number; 0: it has none */

/* ---- system calls ---- */

static inline long peet_rt_call(long n, long a, long b, long c, long d, long e, long f)
{
    long r;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;

    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return r;
}

/* ---- events ---- */

/* Whether what the program calls now is an event: somebody records it, it has a cursor, and this is not a call from inside
 * another one. The header comes first: in a static program memcpy is called before there are variables of threads. */
static inline bool peet_rt_listens(void)
{
    return peet_rt_header && peet_rt_has_cursor() && peet_rt_self.depth == 0;
}

static inline uint64_t *peet_rt_room(unsigned words)
{
    if (__builtin_expect(peet_rt_self.off != 0, 0))
        peet_rt_pause();
    if (__builtin_expect(peet_rt_self.signal_end != peet_rt_self.signal.start && peet_rt_self.handlers == 0, 0))
        peet_rt_signals_append();
    if (__builtin_expect(peet_rt_self.now.end - peet_rt_cursor < (ptrdiff_t)words, 0))
        peet_rt_turn(peet_rt_cursor, 0);
    return peet_rt_cursor;
}

/* An event, as long as the thread does not count. The key comes last: docs/design/instrumentation.md. */
static inline void peet_rt_put(unsigned kind, uint64_t site, unsigned n, const uint64_t *arg)
{
    uint64_t *p = peet_rt_room(n + 1);

    for (unsigned i = 0; i < n; i++)
        p[i + 1] = arg[i];
    __atomic_store_n(p, raw_event_key(kind, site), __ATOMIC_RELEASE);
    peet_rt_cursor = p + n + 1;
}

static inline void peet_rt_event(unsigned kind, uint64_t site, unsigned n, const uint64_t *arg)
{
    if (__builtin_expect(peet_rt_self.off != 0, 0))
        site = peet_rt_recorded_site(site);
    peet_rt_put(kind, site, n, arg);
    if (__builtin_expect((peet_rt_self.paused | peet_rt_self.wish) != 0, 0))
        peet_rt_go_on();
}

#define RT_EVENT_IF(condition, name, site, ...) \
    do { \
        if (condition) { \
            const uint64_t arg_[] = { __VA_ARGS__ }; \
            peet_rt_event(PEET_EV_##name, site, sizeof arg_ / sizeof *arg_, arg_); \
        } \
    } while (0)
#define RT_EVENT(name, site, ...) RT_EVENT_IF(peet_rt_listens(), name, site, __VA_ARGS__)
/* Also inside of others. */
#define RT_EVENT_ALWAYS(name, site, ...) RT_EVENT_IF(peet_rt_header &&peet_rt_has_cursor(), name, site, __VA_ARGS__)

#define RT_ADDR(p) ((uint64_t)(uintptr_t)(p))

/* The real function, without events of what it calls. */
#define RT_QUIET(result, call) \
    do { \
        peet_rt_self.depth++; \
        result = (call); \
        peet_rt_self.depth--; \
    } while (0)

/* The same for functions in which a thread may be cancelled: the program's clean-up handlers make events again. For files
 * that include pthread.h, whose name for the buffer is __cancel_buf. */
#define RT_QUIET_WAIT(result, call) \
    do { \
        void *outer_ = peet_rt_self.waiting; \
        peet_rt_self.depth++; \
        pthread_cleanup_push(peet_rt_left, NULL); \
        peet_rt_self.waiting = &__cancel_buf; \
        result = (call); \
        peet_rt_self.waiting = outer_; \
        pthread_cleanup_pop(1); \
    } while (0)

static inline void peet_rt_left(void *unused)
{
    (void)unused;
    peet_rt_self.depth--;
}

#endif
