/* SPDX-License-Identifier: MIT */
#include "capture/control/control.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/protocol/control.h"
#include "capture/recorder/live.h"
#include "capture/control/stack.h"
#include "capture/control/traps.h"
#include "capture/runtime/crossing.h"
#include "format/file/trace.h"
#include "format/read/feed.h"
#include "format/schema/schema_builder.h"

enum { LOOKS = 400, PATIENCE_NS = 20000000, GRACE_MS = 1500 };

static char program_name[] = "the program"; /* in messages about its records */

#define NO_EXEC "the program starts another one by exec: that cannot be simulated while it runs"

/* A thread of the controlled program. */
struct controlled_thread {
    uint32_t entry;             /* index of its entry in the table of threads */
    uint32_t number, process;   /* in the trace */
    uint64_t pointer;           /* its thread pointer at its beginning */
    struct raw_thread *raw;     /* that entry */
    struct live_thread *thread; /* its state for the recorder's functions */
    struct peet_feed *feed;     /* expands its event words to records */
    struct peet_names names;
    bool has_words;       /* the caller reads its buffer, which is not returned yet */
    uint64_t *word;       /* event words of the buffer */
    size_t words;         /* their number; 0: control_next_words has returned them */
    bool is_pointer_read; /* control_next_words has returned the thread pointer */
    bool is_over;         /* it will not run again */
    bool is_gone;         /* its entry of the table is free for other threads */
};

/* A controlled program. */
struct control {
    const struct raw_host *host; /* NULL: the program is another process */
    struct recorder state;
    struct producer_config config;
    struct schema_builder builder; /* definitions of the code that runs */
    struct peet_trace schema;      /* the builder's schema, as readers use it */
    struct recording recording;
    struct peet_err err;
    struct controlled_thread **thread; /* in the order of their begins */
    uint32_t threads;                  /* elements of `thread` */
    unsigned want;                     /* PEET_WANT_… of the caller */
    struct stack_rules *rules;         /* NULL: control_calls was not called yet */
    struct controlled_thread
        *ender;                  /* the thread in which the program ends; no thread runs then. NULL: not at its end */
    bool is_over;                /* the caller has read all records of `ender` */
    bool has_ended;              /* the program's process has ended */
    int status;                  /* as waitpid has it; if has_ended */
    bool has_signals;            /* the user's signals go to the program (control_start) */
    struct live_signals signals; /* how peet handled them before */
    int64_t asked_at;            /* milliseconds: when the controller noticed that the user wants the end; 0: not yet */
};

/* ---- the program ---- */

static bool has_died(struct control *s)
{
    if (!s->host && !s->has_ended && waitpid(s->state.pid, &s->status, WNOHANG) == s->state.pid)
        s->has_ended = true;
    return s->has_ended;
}

/* A program that does not end after the user's signal is killed after GRACE_MS. */
static void control_insist(struct control *s)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    if (s->asked_at == 0)
        s->asked_at = now;
    else if (now - s->asked_at > GRACE_MS)
        kill(s->state.pid, SIGKILL);
}

/* Waits until the word differs from `value`, or the program has ended. */
static void control_wait_while(struct control *s, _Atomic uint32_t *word, uint32_t value)
{
    const struct timespec limit = { 0, PATIENCE_NS };

    if (s->has_signals && !s->has_ended && live_asked())
        control_insist(s);
    for (int i = 0; i < LOOKS; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != value)
            return;
        __builtin_ia32_pause();
    }
    while (atomic_load_explicit(word, memory_order_acquire) == value && !has_died(s))
        syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

/* Waits until the kernel thread is gone. Until then it may unmap its stack, on which the addresses of later mappings depend. */
static void control_await_exit(struct control *s, const struct raw_thread *raw)
{
    while (raw->tid != raw->pid && !has_died(s) && syscall(SYS_tgkill, raw->pid, raw->tid, 0) == 0)
        nanosleep(&(struct timespec){ 0, 20000 }, NULL);
}

/* ---- threads ---- */

static int control_adopt_thread(struct control *s, uint32_t entry, struct peet_err *err)
{
    struct recorder *state = &s->state;
    struct raw_thread *raw = &state->header->thread[entry];
    struct live_thread *t = &state->thread[entry];
    bool is_first = raw->process == raw->number;

    if (is_first && s->threads)
        return err_set(err, PEET_ERR_USAGE, NO_EXEC);
    int r = is_first ? processes_add(state, raw) : 0;
    struct live_process *p = processes_find(state, raw->process);
    if (r < 0 || !p)
        return r < 0 ? r : err_set(err, PEET_ERR_FORMAT, "a thread of no process");
    *t = (struct live_thread){ .number = raw->number, .recorder = state, .process = p };
    t->reader.thread = t;
    struct controlled_thread *x = mem_alloc(1, sizeof *x);
    x->entry = entry;
    x->raw = raw;
    x->number = raw->number;
    x->process = raw->process;
    x->pointer = raw->thread_pointer;
    x->thread = t;
    x->names = live_names(&t->reader);
    s->thread = mem_room(s->thread, s->threads, sizeof *s->thread);
    s->thread[s->threads++] = x;
    r = feed_new(&s->schema, raw->number, s->want, &x->feed, err);
    if (r == 0)
        peet_feed_register(x->feed, X86_FS_REGISTER, raw->thread_pointer);
    atomic_store(&raw->registered, 1);
    syscall(SYS_futex, &raw->registered, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    return r;
}

/* Adds threads that have begun, in the order of their numbers. */
static int control_adopt_threads(struct control *s, struct peet_err *err)
{
    struct raw_header *h = s->state.header;
    int r = 0;

    if (atomic_load(&h->unmapped))
        return err_set(
            err, PEET_ERR_MEMORY,
            "the program has a thread that cannot be simulated: there is no address space for its buffers (ulimit -v?)");
    if (atomic_load_explicit(&h->threads, memory_order_acquire) == s->threads)
        return 0;
    for (bool found = true; r == 0 && found;) {
        found = false;
        for (uint32_t i = 0; r == 0 && i < atomic_load(&h->entries_used) && i < RAW_THREADS; i++) {
            uint32_t life = atomic_load(&h->thread[i].life);
            bool is_new = (life == RAW_LIVE || life == RAW_ENDED) && !s->state.thread[i].number;
            if (is_new && h->thread[i].number == (s->threads ? s->thread[s->threads - 1]->number : 0) + 1) {
                r = control_adopt_thread(s, i, err);
                found = true;
            }
        }
    }
    return r;
}

/* Lets a thread run to its next stop. */
static int control_resume(struct control *s, struct controlled_thread *x, uint64_t reply, struct peet_err *err)
{
    x->raw->reply = reply;
    if (s->host) {
        s->host->resume(x->entry);
        if (*s->host->want_end)
            atomic_store(&s->state.header->ending, 1);
    } else {
        atomic_store_explicit(&x->raw->stopped, RAW_RUNS, memory_order_relaxed);
        atomic_store_explicit(&x->raw->go, 1, memory_order_release);
        syscall(SYS_futex, &x->raw->go, FUTEX_WAKE, 1, NULL, NULL, 0);
        control_wait_while(s, &x->raw->stopped, RAW_RUNS);
    }
    if (atomic_load(&x->raw->stopped) == RAW_FINISHED) {
        x->is_over = true;
        control_await_exit(s, x->raw);
    }
    bool is_dead = atomic_load(&x->raw->stopped) == RAW_RUNS && s->has_ended; /* it ended before its next stop */
    if (is_dead || x->raw->end_kind > 1 + PEET_END_EXIT)
        s->ender = x;
    if (is_dead)
        return 0;
    int r = live_strings(&s->state);
    return r < 0 ? err_set(err, r, "%s", s->err.text) : control_adopt_threads(s, err);
}

/* Takes the buffer that the thread has handed over. */
static void control_take_words(struct control *s, struct controlled_thread *x)
{
    struct live_thread *t = x->thread;
    struct raw_buffer *b = &x->raw->buffer[t->next_buffer];

    if (atomic_load_explicit(&b->state, memory_order_acquire) != RAW_FULL)
        return;
    x->word = live_buffer(&s->state, x->entry, t->next_buffer);
    x->words = b->bytes / 8;
    peet_feed_put(x->feed, x->word, x->words, &x->names);
    x->has_words = true;
}

/* Lets the program end: all its records were read. */
static int control_let_end(struct control *s, struct controlled_thread *x, struct peet_err *err)
{
    if (x->raw->end_kind == 1 + PEET_END_EXEC)
        return err_set(err, PEET_ERR_USAGE, NO_EXEC);
    if (!s->host) {
        atomic_store_explicit(&x->raw->go, 1, memory_order_release);
        syscall(SYS_futex, &x->raw->go, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
    s->is_over = true;
    return 0;
}

static void control_return_buffer(struct control *s, struct controlled_thread *x)
{
    struct live_thread *t = x->thread;
    struct raw_buffer *b = &x->raw->buffer[t->next_buffer];

    x->has_words = false;
    if (s->host) {
        atomic_store_explicit(&b->state, RAW_FILLING, memory_order_relaxed);
    } else {
        live_empty(b, live_buffer(&s->state, x->entry, t->next_buffer), b->bytes);
        t->next_buffer = (t->next_buffer + 1) % RAW_BUFFERS;
    }
}

/* Frees the table entry of a thread that has ended and whose records were read. */
static void control_free_slot(struct control *s, struct controlled_thread *x)
{
    if (x->is_gone || atomic_load(&x->raw->life) != RAW_ENDED || atomic_load(&x->raw->stopped) != RAW_FINISHED)
        return;
    x->is_gone = true;
    s->state.thread[x->entry] = (struct live_thread){ 0 };
    for (unsigned i = 0; i < RAW_BUFFERS; i++)
        atomic_store(&x->raw->buffer[i].state, RAW_EMPTY);
    atomic_store(&x->raw->life, RAW_FREE);
}

/* Resumes a thread whose records were read. Returns 1 if it has run, 0 at its end, or an error. */
static int control_advance(struct control *s, struct controlled_thread *x, uint64_t reply, struct peet_err *err)
{
    if (x->has_words)
        control_return_buffer(s, x);
    if (x == s->ender)
        return control_let_end(s, x, err);
    if (x->is_over || s->ender) {
        control_free_slot(s, x);
        return 0;
    }
    int r = control_resume(s, x, reply, err);
    if (r < 0)
        return r;
    control_take_words(s, x);
    return 1;
}

static bool control_is_at_access(const struct controlled_thread *x)
{
    return !x->has_words && atomic_load(&x->raw->stopped) == RAW_ACCESS;
}

int control_next(struct control *s, uint32_t thread, uint64_t reply, struct peet_batch *ret, struct peet_err *err)
{
    struct controlled_thread *x = s->thread[thread];

    for (;;) {
        int r = x->has_words ? peet_feed_next(x->feed, ret, err) : 0;
        if (r != 0 || (r = control_advance(s, x, reply, err)) <= 0)
            return r;
        if (control_is_at_access(x)) {
            *ret = (struct peet_batch){ .thread = x->number };
            return 1;
        }
    }
}

int control_next_words(struct control *s, uint32_t thread, uint64_t reply, uint64_t **ret_word, uint64_t **ret_end,
                       const struct peet_names **ret_names, uint64_t *ret_pointer, struct peet_err *err)
{
    struct controlled_thread *x = s->thread[thread];
    int r;

    while (x->words == 0)
        if ((r = control_advance(s, x, reply, err)) <= 0)
            return r;
    *ret_word = x->word;
    *ret_end = x->word + x->words;
    *ret_names = &x->names;
    *ret_pointer = x->is_pointer_read ? 0 : x->pointer;
    x->words = 0;
    x->is_pointer_read = true;
    return 1;
}

void control_set_order(struct control *s, const struct raw_order *order)
{
    s->state.header->order = *order;
}

const struct raw_order *control_order(const struct control *s)
{
    return &s->state.header->order;
}

void control_skip(struct control *s, uint32_t thread, uint64_t references, uint32_t line_bytes)
{
    struct controlled_thread *x = s->thread[thread];

    s->state.header->skip_line = line_bytes;
    if (!x->is_over) /* then another thread may have its entry of the table */
        x->raw->skip = references;
}

/* Finds the call in instrumented code that returned to a frame. False: the frame is of other code. */
static bool control_find_call(const struct live_process *p, const struct stack_frame *f, struct control_call *ret)
{
    uint64_t unused, over = 0, back = f->pc;

    for (size_t i = 0; i < p->modules; i++) {
        const struct live_module *m = p->module[i];
        size_t left;
        if (!module_bytes(m, back, &left))
            continue;
        over = raw_crossing_target(back, &unused);
        ret->slot = f->sp - sizeof(uint64_t);
        return code_call(m, over ? over : back, &ret->site, &ret->back);
    }
    return false;
}

unsigned control_calls(struct control *s, uint32_t thread, struct control_call *ret, unsigned most, uint64_t *ret_root)
{
    const struct controlled_thread *x = s->thread[thread];
    const uint64_t *stands = x->raw->resume_regs;
    const struct live_process *p = processes_find(&s->state, x->process);
    struct stack_frame frame = { stands[0], stands[1], stands[2], stands[3] != 0, false };
    unsigned n = 0;
    uint64_t root =
        0; /* where the call of the outermost function of instrumented code so far stored the return address */
    bool is_own = true;

    *ret_root = 0;
    if (!s->host || x->is_over || !p || !frame.pc)
        return 0;
    if (!s->rules)
        s->rules = stack_rules_new();
    n += frame.is_caller && control_find_call(p, &frame, &ret[0]);
    while (n < most && stack_up(s->rules, &frame)) {
        root = is_own ? frame.sp - sizeof(uint64_t) : root;
        is_own = control_find_call(p, &frame, &ret[n]);
        n += is_own;
    }
    *ret_root = frame.is_first ? root : 0;
    return n;
}

/* ---- beginning and end ---- */

/* Whether the program is linked statically. Its C library then calls intercepted functions itself, at places where no thread may stop.
 * The process has just been started: its memory holds the program and, unless it is static, the dynamic linker. */
static bool is_static(pid_t pid)
{
    struct mappings m;
    struct peet_err err;
    bool has_linker = false;

    if (mappings_read(pid, &m, &err) < 0)
        return false;
    for (size_t i = 0; i < m.count; i++)
        has_linker |= strstr(m.at[i].name, "/ld-") != NULL || strstr(m.at[i].name, "/ld.so") != NULL;
    mappings_release(&m);
    return !has_linker;
}

int live_refuse_static(pid_t pid, const char *name, struct peet_err *err)
{
    if (!is_static(pid))
        return 0;
    return err_set(err, PEET_ERR_USAGE,
                   "%s: a static program cannot be simulated while it runs; record it, and simulate the trace", name);
}

/* Makes the recorder's state for a program whose records are read instead of written. */
static int control_new(unsigned want, struct control **ret, struct peet_err *err)
{
    struct control *s = mem_alloc(1, sizeof *s);
    struct recorder *state = &s->state;

    s->want = want;
    state->config = &s->config;
    state->ret = &s->recording;
    state->err = &s->err;
    state->fd = -1;
    pthread_mutex_init(&state->children.lock, NULL);
    pthread_mutex_init(&state->code_lock, NULL);
    code_init(&state->code, LEVEL_NONE);
    int r = schema_builder_init(&s->builder, NULL, NULL, err);
    state->schema = state->code.schema = &s->builder;
    trace_view(&s->schema, program_name, s->builder.schema);
    *ret = s;
    return r;
}

/* Waits until the first thread has stopped. On errors, frees s. */
static int control_begin(struct control *s, int r, struct control **ret, struct peet_err *err)
{
    if (r == 0)
        r = control_adopt_threads(s, err);
    if (r < 0) {
        if (s->err.code)
            *err = s->err;
        control_free(s);
        return r;
    }
    control_wait_while(s, &s->state.header->thread[0].stopped, RAW_RUNS);
    *ret = s;
    return 0;
}

int control_start(char *const *argv, uint32_t ahead, unsigned want, struct control **ret, struct peet_err *err)
{
    struct control *s;
    int r = control_new(want, &s, err);
    struct recorder *state = &s->state;

    s->config = (struct producer_config){ .argv = argv, .ahead = ahead, .controlled = true };
    if (r == 0)
        r = live_start(state, err);
    if (r == 0)
        r = live_refuse_static(state->pid, argv[0], err);
    if (r == 0) {
        live_take_signals(state->pid, &s->signals); /* the program decides what becomes of Ctrl-C */
        s->has_signals = true;
        live_let_go(state);
        control_wait_while(s, &state->header->thread[0].life, RAW_FREE);
        control_wait_while(s, &state->header->thread[0].life, RAW_TAKEN);
        if (has_died(s))
            r = err_set(err, PEET_ERR_USAGE, "%s: it was not built with peet cc, or ended at once", argv[0]);
    }
    return control_begin(s, r, ret, err);
}

int control_attach(const struct raw_host *host, unsigned want, struct control **ret, struct peet_err *err)
{
    struct control *s;
    int r = control_new(want, &s, err);

    s->host = host;
    if (r == 0)
        r = live_share(&s->state, host->file, err);
    if (r == 0)
        r = traps_set(host, err);
    if (r == 0) {
        control_wait_while(s, &s->state.header->thread[0].life, RAW_FREE);
        control_wait_while(s, &s->state.header->thread[0].life, RAW_TAKEN);
    }
    return control_begin(s, r, ret, err);
}

void control_free(struct control *s)
{
    struct recorder *state = &s->state;

    if (s->has_signals)
        live_give_signals_back(&s->signals);
    if (state->pid > 0 && !s->has_ended) {
        if (!s->is_over) /* otherwise it ends by itself, and may still write output */
            kill(state->pid, SIGKILL);
        while (waitpid(state->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    for (uint32_t i = 0; i < s->threads; i++) {
        peet_feed_free(s->thread[i]->feed);
        free(s->thread[i]);
    }
    free(s->thread);
    stack_rules_free(s->rules);
    processes_release(state);
    code_release(&state->code);
    schema_builder_release(&s->builder);
    if (state->header)
        munmap(state->header, state->bytes);
    if (state->fd >= 0)
        close(state->fd);
    pthread_mutex_destroy(&state->children.lock);
    pthread_mutex_destroy(&state->code_lock);
    recording_release(&s->recording);
    free(s);
}

int control_status(struct control *s)
{
    while (!s->has_ended)
        if (waitpid(s->state.pid, &s->status, 0) == s->state.pid || errno != EINTR)
            s->has_ended = true;
    return s->status;
}

const struct peet_trace *control_schema(const struct control *s)
{
    return &s->schema;
}

bool control_is_over(const struct control *s)
{
    return s->is_over;
}

uint32_t control_threads(const struct control *s)
{
    return s->threads;
}

uint32_t control_thread_number(const struct control *s, uint32_t thread)
{
    return s->thread[thread]->number;
}

uint32_t control_thread_process(const struct control *s, uint32_t thread)
{
    return s->thread[thread]->process;
}

uint64_t control_thread_pointer(const struct control *s, uint32_t thread)
{
    return s->thread[thread]->pointer;
}
