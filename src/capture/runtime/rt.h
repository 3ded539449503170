/* SPDX-License-Identifier: MIT */
/* The runtime that is linked into instrumented programs (docs/design/instrumentation.md): its state of a thread, and its events.
 *
 * It shares a process with code that does not expect it: memory comes from mmap, system calls are made directly, and errno
 * does not change. Wrapped functions call the real ones (real.h); what those call in turn makes no events (`depth`).
 * All names are hidden, and local once the runtime is one object, except for wrapped functions and what is RT_PUBLIC. */
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
#define RT_WRAPPER __attribute__((visibility("default"), weak)) /* a definition of the program takes precedence */
#define RT_TLS __thread __attribute__((tls_model("initial-exec")))
#define RT_SITE ((uint64_t)(uintptr_t)__builtin_return_address(0))
#define RT_FRAME __builtin_frame_address(0)

enum { RT_BUFFER_WORDS = RAW_BUFFER_BYTES / 8, RT_SIGNAL_WORDS = 1 << 16, RT_ALTSTACK_BYTES = 1 << 16 };

/* A buffer for words: [start, end), with a guard after it. */
struct rt_span {
    uint64_t *start, *end;
};

/* A system call: its number and arguments. */
struct rt_call {
    long number, a[6];
};

/* What a carrier thread is to do: the kernel thread of a thread that the host runs. */
enum rt_carrier_task { CARRIER_SLEEP, CARRIER_RUN, CARRIER_REQUEST };

/* Signal handlers of the program that are active in a thread. */
struct rt_handlers {
    int active;             /* handlers that have not returned */
    bool overflow;          /* words of handlers did not fit into `buffer` */
    char *frame;            /* of the outermost handler */
    struct rt_span outer;   /* the thread's buffer when the outermost handler began */
    uint64_t *outer_cursor; /* and its cursor */
    struct rt_span buffer;  /* where handlers write */
    uint64_t *end;          /* words [buffer.start, end) of `buffer` are not in the stream yet */
};

/* A record that a handler interrupted, in the child of a fork by that handler. */
struct rt_forked_record {
    uint64_t *words;              /* in the child's buffer; NULL: none */
    unsigned preceding;           /* words before the interrupted cursor, of which only the last belong to the record */
    uint64_t copy[RAW_MAX_WORDS]; /* the preceding words as they were */
};

/* Skip mode of a thread (skip.h). */
struct rt_skip {
    uint64_t budget;        /* references with which the counter began; 0: not in skip mode */
    uint64_t *saved_cursor; /* the cursor after skip mode */
    uint64_t suspended;     /* references left while an event is written */
    uint64_t pending;       /* references to skip, beginning as soon as that is possible */
    struct rt_span spilled; /* the buffer whose last record is on the spill page; start NULL: none */
    uint64_t outer_budget;  /* budget when the outermost handler began */
    bool path_unknown;      /* references were skipped, and the calls since then are not known */
};

/* A thread of a program under controlled execution, with the simulator in its process (host.h). */
struct rt_hosted {
    void *sp; /* stack pointer of the stopped thread, whose registers are on the stack */
    uint64_t thread_pointer;
    uint64_t mask;          /* signals that it blocks */
    uint64_t signals;       /* signals that other threads have sent to it */
    bool is_private;        /* what it allocates is not the program's; also without a host */
    bool is_borrowed;       /* the host runs it */
    bool is_cancelled;      /* it is to end at the next point of cancellation */
    bool keeps_carrier;     /* it continues on its carrier thread, and the host does not run it again */
    _Atomic uint32_t task;  /* a futex: enum rt_carrier_task */
    struct rt_call request; /* for CARRIER_REQUEST */
    long result;            /* of the request, once is_done is set */
    _Atomic bool is_done;
    uint64_t handlers_run;  /* signal handlers of the program that this thread has run */
    uint64_t handlers_firm; /* of these, handlers without SA_RESTART, which end waiting system calls */
};

/* A thread of the program. */
struct rt_self {
    struct raw_thread *entry; /* of the table of threads (shared_memory.h); NULL: the thread is not recorded */
    struct rt_span buffer;    /* where it writes */
    char *memory;             /* mapping of its buffers, signal buffer, spill page and alternate stack */
    unsigned buffer_index;    /* of `buffer` in entry->buffer */
    int depth;                /* wrapped functions that it is in; above 0 nothing is an event */
    void *cancel_frame;       /* clean-up buffer of the wrapped wait that it is in, or NULL */
    uint32_t number;          /* of the thread in the trace */
    uint32_t children;        /* threads that it has created */
    uint64_t return_value;    /* of the thread's function */
    int destructor_rounds;    /* of thread-specific keys, at its end */
    bool has_ended;           /* for the recorder */
    struct rt_handlers handlers;
    struct rt_forked_record forked;
    struct rt_skip skip;
    struct rt_hosted hosted;
};

extern RT_TLS uint64_t *peet_rt_cursor; /* the cursor, or in skip mode the counter, outside of instrumented code */
extern bool peet_rt_on;                 /* a recorder was named; otherwise original copies run */
extern RT_TLS struct rt_self peet_rt_self;
extern struct raw_header *peet_rt_header; /* NULL: nothing is recorded */

/* ---- ordered.c ---- */

extern bool peet_rt_is_ordered; /* threads stop at shared accesses */
/* The calling thread is about to stop, or continues. */
void peet_rt_order_leave(struct raw_thread *entry);
void peet_rt_order_enter(struct raw_thread *entry);
/* After the first stop of a program, and each other one of its threads: takes over what the controller has set. */
void peet_rt_order_continue(struct raw_thread *entry);
/* Before an event of the calling thread: its domain's stores perform if the event is acquire or release. */
void peet_rt_order_event(unsigned kind);

/* ---- core.c ---- */

/* Takes an entry of the table and a number for a thread that is about to begin; NULL: there is none. */
struct raw_thread *peet_rt_take_entry(uint32_t parent, uint32_t ordinal, uint32_t process);
/* The calling thread begins to write. entry: of the table of threads; NULL: it is not recorded. */
void peet_rt_begin(struct raw_thread *entry);
/* Hands over the last words of the calling thread. What it writes afterwards is discarded. */
void peet_rt_finish(void);
/* Hands over the words before `upto`, and sets the cursor to the start of the next buffer. sp: %rsp at the beginning of the
 * record that continues there; 0: none does. */
void peet_rt_next_buffer(uint64_t *upto, uint64_t sp);
/* Hands over all words of the calling thread, and waits until the recorder has taken them. */
void peet_rt_drain(void);
/* Sets how the threads of this process end. how: enum peet_end; -1: they do not end after all. */
void peet_rt_set_end(int how, uint32_t code);
void peet_rt_new_process(struct raw_thread *entry); /* in the child of a fork */
uint32_t peet_rt_process(void);

struct rt_span peet_rt_spill_page(void); /* a page of the calling thread with a guard after it */
char *peet_rt_stack_top(void);           /* of the calling thread's alternate stack */

/* Writes an event, if it is one. For parts of the runtime that are linked separately. */
void peet_rt_report(unsigned kind, uint64_t site, unsigned n, const uint64_t *arg);

static inline bool peet_rt_has_cursor(void)
{
    return peet_rt_cursor || peet_rt_self.skip.budget;
}

static inline bool peet_rt_is_controlled(void)
{
    return peet_rt_header && peet_rt_header->controlled && peet_rt_self.entry && peet_rt_self.depth == 0
           && peet_rt_self.handlers.active == 0;
}

/* ---- signal.c ---- */

void peet_rt_signals_begin(void);
void peet_rt_traps_begin(void);
void peet_rt_signals_append(void); /* copies what handlers wrote into the stream, at the cursor */

/* ---- thread.c, system.c, heap.c ---- */

void peet_rt_threads_begin(void);
void peet_rt_processes_begin(void);
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

/* skip.c */
void peet_rt_skip_suspend(void);
void peet_rt_skip_resume(void);
uint64_t peet_rt_recorded_site(uint64_t site);

/* Whether a call of the program is an event: it is recorded, the thread has a cursor, and it is not in a wrapped function. The header
 * is tested first: in a static program memcpy is called before thread-local variables exist. */
static inline bool peet_rt_is_recording(void)
{
    return peet_rt_header && peet_rt_has_cursor() && peet_rt_self.depth == 0;
}

static inline uint64_t *peet_rt_room(unsigned words)
{
    if (__builtin_expect(peet_rt_self.skip.budget != 0, 0))
        peet_rt_skip_suspend();
    if (__builtin_expect(
            peet_rt_self.handlers.end != peet_rt_self.handlers.buffer.start && peet_rt_self.handlers.active == 0, 0))
        peet_rt_signals_append();
    if (__builtin_expect(peet_rt_self.buffer.end - peet_rt_cursor < (ptrdiff_t)words, 0))
        peet_rt_next_buffer(peet_rt_cursor, 0);
    return peet_rt_cursor;
}

/* Writes an event of a thread that is not in skip mode. The key comes last (docs/design/instrumentation.md). */
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
    if (__builtin_expect(peet_rt_is_ordered, 0))
        peet_rt_order_event(kind);
    if (__builtin_expect(peet_rt_self.skip.budget != 0, 0))
        site = peet_rt_recorded_site(site);
    peet_rt_put(kind, site, n, arg);
    if (__builtin_expect((peet_rt_self.skip.suspended | peet_rt_self.skip.pending) != 0, 0))
        peet_rt_skip_resume();
}

#define RT_EVENT_IF(condition, name, site, ...) \
    do { \
        if (condition) { \
            const uint64_t arg_[] = { __VA_ARGS__ }; \
            peet_rt_event(PEET_EV_##name, site, sizeof arg_ / sizeof *arg_, arg_); \
        } \
    } while (0)
#define RT_EVENT(name, site, ...) RT_EVENT_IF(peet_rt_is_recording(), name, site, __VA_ARGS__)
/* Also within wrapped functions. */
#define RT_EVENT_ALWAYS(name, site, ...) RT_EVENT_IF(peet_rt_header &&peet_rt_has_cursor(), name, site, __VA_ARGS__)

#define RT_ADDR(p) ((uint64_t)(uintptr_t)(p))

/* Calls the real function; what that calls makes no events. */
#define RT_QUIET(result, call) \
    do { \
        peet_rt_self.depth++; \
        result = (call); \
        peet_rt_self.depth--; \
    } while (0)

/* Calls a real function in which the thread may be cancelled; clean-up handlers of the program make events again. For files
 * that include pthread.h, whose name for the buffer is __cancel_buf. */
#define RT_QUIET_WAIT(result, call) \
    do { \
        void *outer_ = peet_rt_self.cancel_frame; \
        peet_rt_self.depth++; \
        pthread_cleanup_push(peet_rt_cancelled_wait, NULL); \
        peet_rt_self.cancel_frame = &__cancel_buf; \
        result = (call); \
        peet_rt_self.cancel_frame = outer_; \
        pthread_cleanup_pop(1); \
    } while (0)

static inline void peet_rt_cancelled_wait(void *unused)
{
    (void)unused;
    peet_rt_self.depth--;
}

#endif
