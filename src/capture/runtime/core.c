/* SPDX-License-Identifier: MIT */
/* The buffers of threads, and how they reach the recorder.
 * Instrumented code does not test for room: it writes into the guard after the buffer and faults. The handler
 * (signal.c) hands the buffer over and lets the instruction write into the next one. Code in this file may not fault.
 * Without a recorder, or after it has stopped, instrumented code writes over one buffer again and again. A thread that
 * never had a recorder writes to a small piece of memory that is mapped many times in sequence: it stays in the
 * processor's caches, and there are few faults. */
#include <asm/prctl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"
#include "capture/runtime/host.h"
#include "capture/runtime/skip.h"

enum { READ_WRITE = PROT_READ | PROT_WRITE, SECOND = 1 };
enum { SLOT_BYTES = RAW_BUFFER_BYTES + RAW_GUARD }; /* a buffer and its guard */
enum { DISCARDED_BYTES = RAW_BUFFERS * RAW_BUFFER_BYTES, PIECE_BYTES = 1 << 17 };
enum {
    SIGNAL_OFFSET = RAW_BUFFERS * SLOT_BYTES,
    SPILL_OFFSET = SIGNAL_OFFSET + RT_SIGNAL_WORDS * 8 + RAW_GUARD,
    SPILL_BYTES = 4096,
    STACK_OFFSET = SPILL_OFFSET + SPILL_BYTES + RAW_GUARD,
    MEMORY_BYTES = STACK_OFFSET + RT_ALTSTACK_BYTES
};

RT_PUBLIC RT_TLS uint64_t *peet_rt_cursor;
RT_PUBLIC bool peet_rt_on; /* docs/design/instrumentation.md */
RT_TLS struct rt_self peet_rt_self;
struct raw_header *peet_rt_header;

static char shared_path[256]; /* path of the shared memory; "": no recorder */
static char *shared;          /* all of the shared memory, mapped once; NULL: it is mapped in parts, through the path */
static uint32_t process;      /* number of the process's first thread; 0: not recorded */
static char *discard;         /* a buffer whose content is discarded, and its guard */
static char *reserved;        /* address space for the memory of each entry, away from the program's; or NULL */

#define RESERVED_BYTES ((size_t)RAW_THREADS * MEMORY_BYTES)
#define SHARED_BYTES (RAW_DATA_OFFSET + (size_t)RAW_THREADS * RAW_BUFFERS * RAW_BUFFER_BYTES)

/* ---- memory ---- */

static char *core_map(void *at, size_t bytes, long protection, int flags, long fd, uint64_t offset)
{
    long r = peet_rt_call(SYS_mmap, (long)at, (long)bytes, protection, flags, fd, (long)offset);

    return r < 0 && r > -4096 ? NULL : (char *)r;
}

static char *map_private(void *at, size_t bytes)
{
    return core_map(at, bytes, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
}

static char *core_reserve(void *at, size_t bytes)
{
    return core_map(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
}

/* Unmaps a thread's memory; reserved address space stays reserved. */
static void core_unmap(char *memory)
{
    if (reserved && memory >= reserved && memory < reserved + RESERVED_BYTES)
        core_reserve(memory, MEMORY_BYTES);
    else
        peet_rt_call(SYS_munmap, (long)memory, MEMORY_BYTES, 0, 0, 0, 0);
}

static long open_shared_file(void)
{
    return shared_path[0] ? peet_rt_call(SYS_openat, -100 /* AT_FDCWD */, (long)shared_path,
                                         02000002 /* O_RDWR | O_CLOEXEC */, 0, 0, 0)
                          : -1;
}

static void close_file(long fd)
{
    if (fd >= 0)
        peet_rt_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* Bytes of each buffer that are used; a guard follows. */
static size_t buffer_bytes(void)
{
    return peet_rt_header->buffer_limit ? peet_rt_header->buffer_limit : RAW_BUFFER_BYTES;
}

static struct rt_span buffer_at(char *memory, unsigned i)
{
    uint64_t *start = (uint64_t *)(void *)(memory + (size_t)i * SLOT_BYTES);

    return (struct rt_span){ start, start + buffer_bytes() / 8 };
}

struct rt_span peet_rt_spill_page(void)
{
    uint64_t *start = (uint64_t *)(void *)(peet_rt_self.memory + SPILL_OFFSET);

    return (struct rt_span){ start, start + SPILL_BYTES / 8 };
}

char *peet_rt_stack_top(void)
{
    return peet_rt_self.memory + STACK_OFFSET + RT_ALTSTACK_BYTES;
}

/* A span for words that are discarded. */
static struct rt_span map_discarded(char *memory)
{
    struct rt_span w = { (uint64_t *)(void *)memory, (uint64_t *)(void *)memory };
    long fd = peet_rt_call(SYS_memfd_create, (long)"peet", 1 /* MFD_CLOEXEC */, 0, 0, 0, 0);

    if (fd >= 0 && peet_rt_call(SYS_ftruncate, fd, PIECE_BYTES, 0, 0, 0, 0) == 0)
        while ((char *)w.end < memory + DISCARDED_BYTES
               && core_map(w.end, PIECE_BYTES, READ_WRITE, MAP_SHARED | MAP_FIXED, fd, 0))
            w.end += PIECE_BYTES / 8;
    close_file(fd);
    if (w.end == w.start && map_private(memory, RAW_BUFFER_BYTES))
        w.end += RT_BUFFER_WORDS;
    return w;
}

/* Maps `bytes` of the shared memory from `offset` on at `to`, a second time. A duplicate of the first mapping needs no
 * descriptor and no path, so that it works for a program without rights, root folder or free descriptors. */
static bool map_shared(char *to, size_t bytes, uint64_t offset)
{
    if (shared) {
        long r = peet_rt_call(SYS_mremap, (long)(shared + offset), 0, (long)bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                              (long)to, 0);
        if (r == (long)to)
            return true;
    }
    long fd = open_shared_file();
    bool is_mapped = fd >= 0 && core_map(to, bytes, READ_WRITE, MAP_SHARED | MAP_FIXED, fd, offset);
    close_file(fd);
    return is_mapped;
}

/* Maps the buffers of an entry into its memory. */
static bool map_entry(const struct raw_thread *entry, char *memory)
{
    uint64_t first = (uint64_t)(entry - peet_rt_header->thread) * RAW_BUFFERS;
    unsigned used = peet_rt_in_process ? 1 : RAW_BUFFERS;

    for (unsigned i = 0; i < used; i++)
        if (!map_shared(memory + (size_t)i * SLOT_BYTES, buffer_bytes(),
                        RAW_DATA_OFFSET + (first + i) * RAW_BUFFER_BYTES))
            return false;
    return true;
}

/* Wakes the recorder if it sleeps: a buffer is full, or a thread has begun or ended. */
static void core_notify(void)
{
    atomic_fetch_add(&peet_rt_header->doorbell, 1);
    if (atomic_exchange(&peet_rt_header->recorder_waits, 0))
        peet_rt_call(SYS_futex, (long)&peet_rt_header->doorbell, FUTEX_WAKE, 1, 0, 0, 0);
}

/* Reports a thread whose buffers could not be mapped. */
static void give_up_place(struct rt_self *s)
{
    atomic_fetch_add(&peet_rt_header->unmapped, 1);
    s->entry->pid = (int32_t)peet_rt_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    s->entry->tid = (int32_t)peet_rt_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    s->entry->end_kind = 1 + PEET_END_STOPPED;
    atomic_store(&s->entry->life, RAW_ENDED);
    core_notify();
    if (peet_rt_header->controlled)
        peet_rt_stop_as(s->entry, RAW_FINISHED);
    s->entry = NULL;
}

/* Maps the buffers of an entry, or a discarded one if there is none. False: not even that was possible. */
static bool map_buffers(struct rt_self *s)
{
    char *memory = s->entry && reserved ? reserved + (size_t)(s->entry - peet_rt_header->thread) * MEMORY_BYTES
                                        : core_reserve(NULL, MEMORY_BYTES);

    if (s->entry && (!memory || !map_entry(s->entry, memory)))
        give_up_place(s);
    if (!memory)
        return false;
    s->buffer = s->entry ? buffer_at(memory, 0) : map_discarded(memory);
    if (s->buffer.end == s->buffer.start || !map_private(memory + SIGNAL_OFFSET, RT_SIGNAL_WORDS * 8)
        || (s->entry && !map_private(memory + SPILL_OFFSET, SPILL_BYTES))
        || !map_private(memory + STACK_OFFSET, RT_ALTSTACK_BYTES))
        return false;
    s->memory = memory;
    return true;
}

/* ---- waiting ---- */

static bool recording_stopped(void)
{
    return atomic_load_explicit(&peet_rt_header->stop, memory_order_relaxed) != 0;
}

/* Waits while *word is `value`; false: the recorder has stopped. */
static bool wait_while(_Atomic uint32_t *word, uint32_t value)
{
    struct timespec limit = { SECOND, 0 };

    while (atomic_load_explicit(word, memory_order_acquire) == value) {
        if (recording_stopped())
            return false;
        long r = peet_rt_call(SYS_futex, (long)word, FUTEX_WAIT, value, (long)&limit, 0, 0);
        if (r == -110 /* ETIMEDOUT */
            && peet_rt_call(SYS_kill, peet_rt_header->recorder, 0, 0, 0, 0, 0) == -3 /* ESRCH */)
            atomic_store(&peet_rt_header->stop, 1);
    }
    return true;
}

/* ---- buffers ---- */

/* In the child of a fork by a handler, the interrupted record begins at the first of the preceding words that has
 * changed, or after all of them. Removes the words before it, which belong to the parent. Returns the new end of the
 * words. */
static uint64_t *end_forked_record(uint64_t *upto)
{
    struct rt_self *s = &peet_rt_self;
    uint64_t *to = s->forked.words, *from = to;

    if (!to)
        return upto;
    while (from < to + s->forked.preceding && *from == s->forked.copy[from - to])
        from++;
    while (from < upto)
        *to++ = *from++;
    for (uint64_t *p = to; p < upto; p++)
        *p = 0;
    s->forked.words = NULL;
    return to;
}

/* Copies the record on the spill page to the buffer where it belongs. */
static void unspill_record(uint64_t *upto)
{
    struct rt_self *s = &peet_rt_self;
    uint64_t *to = s->skip.spilled.start;

    for (const uint64_t *from = s->buffer.start; from < upto; from++)
        *to++ = *from;
    s->buffer = s->skip.spilled;
    s->skip.spilled.start = NULL;
    peet_rt_cursor = to;
}

void peet_rt_next_buffer(uint64_t *upto, uint64_t stack)
{
    struct rt_self *s = &peet_rt_self;

    if (s->skip.spilled.start && s->handlers.active == 0) {
        unspill_record(upto);
        return;
    }
    if (s->handlers.active > 0) { /* the signal buffer is full */
        s->handlers.overflow = true;
        s->buffer = (struct rt_span){ (uint64_t *)(void *)discard, (uint64_t *)(void *)discard + RT_BUFFER_WORDS };
    } else if (s->entry && !recording_stopped()) {
        struct raw_buffer *b = &s->entry->buffer[s->buffer_index], *next;
        b->bytes = (uint32_t)((char *)end_forked_record(upto) - (char *)s->buffer.start);
        atomic_store_explicit(&b->state, RAW_FULL, memory_order_release);
        if (peet_rt_is_ordered)
            peet_rt_order_leave(s->entry);
        if (peet_rt_in_process) { /* the thread runs again once the buffer has been read */
            peet_rt_yield_to_host(s->entry, RAW_STOPPED);
            peet_rt_order_continue(s->entry);
            s->skip.pending = s->entry->skip;
            s->entry->skip = 0;
            b->sp = stack;
            peet_rt_cursor = s->buffer.start;
            return;
        }
        core_notify();
        if (peet_rt_header->controlled)
            peet_rt_stop_as(s->entry, RAW_STOPPED);
        peet_rt_order_continue(s->entry);
        s->skip.pending = peet_rt_header->controlled ? s->entry->skip : peet_rt_header->skip;
        s->entry->skip = 0;
        s->buffer_index = (s->buffer_index + 1) % RAW_BUFFERS;
        next = &s->entry->buffer[s->buffer_index];
        if (wait_while(&next->state, RAW_FULL)) {
            next->sp = stack;
            atomic_store_explicit(&next->state, RAW_FILLING, memory_order_release);
        }
        s->buffer = buffer_at(s->memory, s->buffer_index);
    }
    peet_rt_cursor = s->buffer.start;
}

void peet_rt_drain(void)
{
    struct rt_self *s = &peet_rt_self;

    if (!s->entry || s->handlers.active > 0)
        return;
    peet_rt_skip_end();
    if (s->handlers.end != s->handlers.buffer.start)
        peet_rt_signals_append();
    peet_rt_next_buffer(peet_rt_cursor, 0);
    for (unsigned i = 0; !peet_rt_in_process && i < RAW_BUFFERS; i++)
        wait_while(&s->entry->buffer[i].state, RAW_FULL);
}

RT_PUBLIC void peet_rt_report(unsigned kind, uint64_t site, unsigned n, const uint64_t *arg)
{
    if (peet_rt_is_recording())
        peet_rt_event(kind, site, n, arg);
}

/* ---- threads ---- */

struct raw_thread *peet_rt_take_entry(uint32_t parent, uint32_t ordinal, uint32_t of_process)
{
    struct raw_header *h = peet_rt_header;

    if (!h || recording_stopped())
        return NULL;
    for (uint32_t i = 0; i < RAW_THREADS; i++) {
        struct raw_thread *t = &h->thread[i];
        uint32_t none = RAW_FREE;
        if (!atomic_compare_exchange_strong(&t->life, &none, RAW_TAKEN))
            continue;
        uint32_t seen = atomic_load(&h->entries_used);
        while (seen <= i && !atomic_compare_exchange_weak(&h->entries_used, &seen, i + 1))
            ;
        t->number = atomic_fetch_add(&h->threads, 1) + 1;
        t->parent = parent ? parent : t->number;
        t->ordinal = ordinal;
        t->process = of_process ? of_process : t->number;
        t->end_kind = t->exit_code = 0;
        t->pid = 0;
        t->stack_low = t->stack_high = 0;
        t->program = 0;
        t->skip = 0;
        t->resume_regs[0] = 0;
        atomic_store(&t->stopped, RAW_RUNS);
        atomic_store(&t->go, 0);
        atomic_store(&t->registered, 0);
        return t;
    }
    atomic_fetch_add(&h->unrecorded, 1);
    return NULL;
}

void peet_rt_begin(struct raw_thread *entry)
{
    struct rt_self *s = &peet_rt_self;

    *s = (struct rt_self){ .entry = entry, .depth = s->depth, .hosted.is_private = s->hosted.is_private };
    s->return_value = UINT64_MAX; /* PTHREAD_CANCELED, unless the function returns */
    if (!map_buffers(s)) {
        peet_rt_finish();
        return;
    }
    s->handlers.buffer.start = s->handlers.end = (uint64_t *)(void *)(s->memory + SIGNAL_OFFSET);
    s->handlers.buffer.end = s->handlers.buffer.start + RT_SIGNAL_WORDS;
    stack_t stack = { .ss_sp = s->memory + STACK_OFFSET, .ss_size = RT_ALTSTACK_BYTES };
    peet_rt_call(SYS_sigaltstack, (long)&stack, 0, 0, 0, 0, 0);
    if (s->entry) {
        s->number = entry->number;
        entry->pid = (int32_t)peet_rt_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
        entry->tid = (int32_t)peet_rt_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
        peet_rt_call(SYS_arch_prctl, ARCH_GET_FS, (long)&entry->thread_pointer, 0, 0, 0, 0);
        entry->buffer[0].sp = 0;
        atomic_store(&entry->buffer[0].state, RAW_FILLING);
        atomic_store(&entry->life, RAW_LIVE);
        core_notify();
        if (entry->process == entry->number)
            wait_while(&entry->registered, 0);
        if (peet_rt_header->controlled)
            peet_rt_stop_as(entry, RAW_STOPPED);
        s->skip.pending = entry->skip;
        entry->skip = 0;
    }
    peet_rt_cursor = s->buffer.start;
    if (s->skip.pending)
        peet_rt_skip_resume();
}

void peet_rt_finish(void)
{
    struct rt_self *s = &peet_rt_self;
    struct raw_thread *entry = s->entry;
    stack_t none = { .ss_flags = SS_DISABLE };

    if (entry) {
        peet_rt_skip_end();
        if (s->skip.spilled.start)
            unspill_record(peet_rt_cursor);
        if (s->handlers.end != s->handlers.buffer.start)
            peet_rt_signals_append();
        if (!recording_stopped()) {
            entry->buffer[s->buffer_index].bytes =
                (uint32_t)((char *)end_forked_record(peet_rt_cursor) - (char *)s->buffer.start);
            atomic_store_explicit(&entry->buffer[s->buffer_index].state, RAW_FULL, memory_order_release);
        }
    }
    s->entry = NULL;
    s->skip.pending = 0;
    s->has_ended = true;
    s->handlers.end = s->handlers.buffer.start = s->handlers.buffer.end = NULL;
    s->buffer = (struct rt_span){ (uint64_t *)(void *)discard, (uint64_t *)(void *)discard + RT_BUFFER_WORDS };
    peet_rt_cursor = s->buffer.start;
    if (s->memory) {
        peet_rt_call(SYS_sigaltstack, (long)&none, 0, 0, 0, 0, 0);
        core_unmap(s->memory);
        s->memory = NULL;
    }
    if (entry) { /* the next thread of this entry maps its memory at the same address */
        atomic_store(&entry->life, RAW_ENDED);
        core_notify();
        if (peet_rt_header->controlled)
            peet_rt_stop_as(entry, RAW_FINISHED);
    }
}

/* ---- the process ---- */

uint32_t peet_rt_process(void)
{
    return process;
}

void peet_rt_set_end(int how, uint32_t code)
{
    struct raw_header *h = peet_rt_header;

    for (uint32_t i = 0; h && i < atomic_load(&h->entries_used); i++) {
        struct raw_thread *t = &h->thread[i];
        uint32_t life = atomic_load(&t->life);
        if ((life != RAW_LIVE && life != RAW_TAKEN) || t->process != process)
            continue;
        t->end_kind = (uint32_t)(how + 1);
        t->exit_code = code;
    }
}

void peet_rt_new_process(struct raw_thread *entry)
{
    char *old = peet_rt_self.handlers.active ? NULL : peet_rt_self.memory; /* a handler may have its stack there */

    process = entry ? entry->number : 0;
    if (!entry)
        peet_rt_header = NULL;
    peet_rt_forget_host();
    peet_rt_threads_begin();
    peet_rt_begin(entry); /* it gets another alternate stack, so that the old memory can be unmapped */
    if (old)
        core_unmap(old);
}

/* Registered first, and therefore called last by exit. */
static void core_at_exit(int status, void *unused)
{
    (void)unused;
    peet_rt_self.depth = 0;
    peet_rt_set_end(PEET_END_PROCESS_EXIT, (uint32_t)status);
    peet_rt_drain();
}

/* A program that was started without the right to reach the recorder is not recorded. */
static void say_unreachable(long code)
{
    static const char text[] = "peet: this program is not recorded: it was started without access to its recorder\n";

    if (code == -2 /* ENOENT */ || code == -13 /* EACCES */ || code == -1 /* EPERM */)
        peet_rt_call(SYS_write, 2, (long)text, sizeof text - 1, 0, 0, 0);
}

static void open_header(char **environment)
{
    static const char name[] = RAW_VARIABLE "=";

    for (; *environment; environment++) {
        size_t i = 0;
        while (name[i] && (*environment)[i] == name[i])
            i++;
        if (name[i])
            continue;
        const char *value = *environment + i;
        peet_rt_on = true; /* also if the value is empty */
        for (i = 0; i + 1 < sizeof shared_path && value[i]; i++)
            shared_path[i] = value[i];
        shared_path[i] = 0;
    }
    long fd = open_shared_file();
    if (fd < 0) {
        if (shared_path[0])
            say_unreachable(fd);
        return;
    }
    shared = core_map(NULL, SHARED_BYTES, READ_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    struct raw_header *h = (void *)(shared ? shared
                                           /* little address space: ulimit -v */
                                           : core_map(NULL, RAW_DATA_OFFSET, READ_WRITE, MAP_SHARED, fd, 0));
    close_file(fd);
    bool is_for_us = h && h->magic == RAW_MAGIC && h->version == RAW_VERSION;
    if (is_for_us && h->controlled && atomic_load(&h->threads) > 0) { /* a child of a simulated program runs natively */
        is_for_us = false;
        peet_rt_on = false;
    }
    if (is_for_us)
        peet_rt_header = h;
    if (peet_rt_header)
        reserved = core_reserve(NULL, RESERVED_BYTES);
}

static void core_begin(int argc, char **argv, char **environment)
{
    (void)argc;
    (void)argv;
    discard = core_reserve(NULL, SLOT_BYTES);
    if (discard && map_private(discard, RAW_BUFFER_BYTES))
        peet_rt_cursor = (uint64_t *)(void *)discard; /* the dynamic linker may call an instrumented allocator */
    peet_rt_find_all();
    open_header(environment);
    peet_rt_signals_begin();
    peet_rt_threads_begin();
    peet_rt_processes_begin();
    if (peet_rt_header && peet_rt_header->controlled)
        peet_rt_heap_begin();
    if (peet_rt_header && peet_rt_header->in_process)
        peet_rt_host_begin(shared_path);
    struct raw_thread *entry = peet_rt_take_entry(0, 0, 0);
    process = entry ? entry->number : 0;
    peet_rt_begin(entry);
    on_exit(core_at_exit, NULL);
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(int, char **, char **) = core_begin;
