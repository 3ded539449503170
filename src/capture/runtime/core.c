/* SPDX-License-Identifier: MIT */
/* The buffers of threads, and the way they go to the recorder.
 *
 * Instrumented code does not ask whether there is room: it writes into the guard behind the buffer and faults. The handler
 * (signal.c) hands the buffer over and lets the instruction write into the next one. Nothing here may fault itself.
 *
 * Without a recorder, or when it has stopped, instrumented code writes over the same buffer again and again. A thread that never had a
 * recorder writes to a small piece of memory that is mapped many times, one behind the other: the processor's caches keep what the program
 * had there, and there are few faults. */
#include <asm/prctl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"

enum { READ_WRITE = PROT_READ | PROT_WRITE, SECOND = 1 };
enum { SLOT_BYTES = RAW_BUFFER_BYTES + RAW_GUARD }; /* a buffer and its guard */
enum { UNHEARD_BYTES = RAW_BUFFERS * RAW_BUFFER_BYTES, PIECE_BYTES = 1 << 17 };
enum {
    SIGNAL_OFFSET = RAW_BUFFERS * SLOT_BYTES,
    APART_OFFSET = SIGNAL_OFFSET + RT_SIGNAL_WORDS * 8 + RAW_GUARD,
    APART_BYTES = 4096,
    STACK_OFFSET = APART_OFFSET + APART_BYTES + RAW_GUARD,
    MEMORY_BYTES = STACK_OFFSET + RT_ALTSTACK_BYTES
};

RT_PUBLIC RT_TLS uint64_t *peet_rt_cursor;
RT_PUBLIC bool peet_rt_on; /* docs/design/instrumentation.md */
RT_TLS struct rt_self peet_rt_self;
struct raw_header *peet_rt_header;

static char file[256];   /* path of the memory that is shared with the recorder; "": no recorder */
static char *shared;     /* all of that memory, mapped once; NULL: it is mapped piece by piece, through the path */
static uint32_t process; /* number of this process */
static char *discard;    /* a buffer whose content nobody wants, and its guard */
static char *reserved;   /* where each place's memory goes, so that it is not in the way of the program's; or NULL */

#define RESERVED_BYTES ((size_t)RAW_THREADS * MEMORY_BYTES)
#define SHARED_BYTES (RAW_DATA_OFFSET + (size_t)RAW_THREADS * RAW_BUFFERS * RAW_BUFFER_BYTES)

/* ---- memory ---- */

static char *map(void *at, size_t bytes, long protection, int flags, long fd, uint64_t offset)
{
    long r = peet_rt_call(SYS_mmap, (long)at, (long)bytes, protection, flags, fd, (long)offset);

    return r < 0 && r > -4096 ? NULL : (char *)r;
}

static char *map_private(void *at, size_t bytes)
{
    return map(at, bytes, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
}

static char *reserve(void *at, size_t bytes)
{
    return map(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
}

/* Gives back what a thread had; its place in the reserve stays. */
static void unmap(char *memory)
{
    if (reserved && memory >= reserved && memory < reserved + RESERVED_BYTES)
        reserve(memory, MEMORY_BYTES);
    else
        peet_rt_call(SYS_munmap, (long)memory, MEMORY_BYTES, 0, 0, 0, 0);
}

static long open_file(void)
{
    return file[0]
               ? peet_rt_call(SYS_openat, -100 /* AT_FDCWD */, (long)file, 02000002 /* O_RDWR | O_CLOEXEC */, 0, 0, 0)
               : -1;
}

static void close_file(long fd)
{
    if (fd >= 0)
        peet_rt_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* Bytes of each buffer that are used; a guard follows them. */
static size_t window(void)
{
    return peet_rt_header->buffer_limit ? peet_rt_header->buffer_limit : RAW_BUFFER_BYTES;
}

static struct rt_window buffer_at(char *memory, unsigned i)
{
    uint64_t *start = (uint64_t *)(void *)(memory + (size_t)i * SLOT_BYTES);

    return (struct rt_window){ start, start + window() / 8 };
}

struct rt_window peet_rt_apart(void)
{
    uint64_t *start = (uint64_t *)(void *)(peet_rt_self.memory + APART_OFFSET);

    return (struct rt_window){ start, start + APART_BYTES / 8 };
}

char *peet_rt_stack_top(void)
{
    return peet_rt_self.memory + STACK_OFFSET + RT_ALTSTACK_BYTES;
}

/* A window for words that nobody wants. */
static struct rt_window map_unheard(char *memory)
{
    struct rt_window w = { (uint64_t *)(void *)memory, (uint64_t *)(void *)memory };
    long fd = peet_rt_call(SYS_memfd_create, (long)"peet", 1 /* MFD_CLOEXEC */, 0, 0, 0, 0);

    if (fd >= 0 && peet_rt_call(SYS_ftruncate, fd, PIECE_BYTES, 0, 0, 0, 0) == 0)
        while ((char *)w.end < memory + UNHEARD_BYTES
               && map(w.end, PIECE_BYTES, READ_WRITE, MAP_SHARED | MAP_FIXED, fd, 0))
            w.end += PIECE_BYTES / 8;
    close_file(fd);
    if (w.end == w.start && map_private(memory, RAW_BUFFER_BYTES))
        w.end += RT_BUFFER_WORDS;
    return w;
}

/* Maps `bytes` of the shared memory, from `offset` on, once more at `to`. A duplicate of the mapping that is there needs no descriptor and no
 * path: a program that has given up its rights, its root or all its descriptors still gets it. */
static bool map_shared(char *to, size_t bytes, uint64_t offset)
{
    if (shared) {
        long r = peet_rt_call(SYS_mremap, (long)(shared + offset), 0, (long)bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                              (long)to, 0);
        if (r == (long)to)
            return true;
    }
    long fd = open_file();
    bool is_mapped = fd >= 0 && map(to, bytes, READ_WRITE, MAP_SHARED | MAP_FIXED, fd, offset);
    close_file(fd);
    return is_mapped;
}

/* Maps the buffers of a thread's place into its memory. */
static bool map_place(const struct raw_thread *place, char *memory)
{
    uint64_t first = (uint64_t)(place - peet_rt_header->thread) * RAW_BUFFERS;
    unsigned used = peet_rt_inside ? 1 : RAW_BUFFERS;

    for (unsigned i = 0; i < used; i++)
        if (!map_shared(memory + (size_t)i * SLOT_BYTES, window(), RAW_DATA_OFFSET + (first + i) * RAW_BUFFER_BYTES))
            return false;
    return true;
}

/* Wakes the recorder, if it sleeps: a buffer is full, or a thread has begun or ended. */
static void core_ring(void)
{
    atomic_fetch_add(&peet_rt_header->doorbell, 1);
    if (atomic_exchange(&peet_rt_header->recorder_waits, 0))
        peet_rt_call(SYS_futex, (long)&peet_rt_header->doorbell, FUTEX_WAKE, 1, 0, 0, 0);
}

/* The recorder learns that a thread has begun which cannot hand over anything. */
static void give_up_place(struct rt_self *s)
{
    atomic_fetch_add(&peet_rt_header->unmapped, 1);
    s->place->pid = (int32_t)peet_rt_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    s->place->tid = (int32_t)peet_rt_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    s->place->end_kind = 1 + PEET_END_STOPPED;
    atomic_store(&s->place->life, RAW_ENDED);
    core_ring();
    if (peet_rt_header->controlled)
        peet_rt_stop_as(s->place, RAW_FINISHED);
    s->place = NULL;
}

/* Maps the buffers of a place, or one of the thread's own when it has none. False: not even that was possible. */
static bool map_buffers(struct rt_self *s)
{
    char *memory = s->place && reserved ? reserved + (size_t)(s->place - peet_rt_header->thread) * MEMORY_BYTES
                                        : reserve(NULL, MEMORY_BYTES);

    if (s->place && (!memory || !map_place(s->place, memory)))
        give_up_place(s);
    if (!memory)
        return false;
    s->now = s->place ? buffer_at(memory, 0) : map_unheard(memory);
    if (s->now.end == s->now.start || !map_private(memory + SIGNAL_OFFSET, RT_SIGNAL_WORDS * 8)
        || (s->place && !map_private(memory + APART_OFFSET, APART_BYTES))
        || !map_private(memory + STACK_OFFSET, RT_ALTSTACK_BYTES))
        return false;
    s->memory = memory;
    return true;
}

/* ---- waiting ---- */

static bool stopped(void)
{
    return atomic_load_explicit(&peet_rt_header->stop, memory_order_relaxed) != 0;
}

/* Waits while *word is `value`; false: there is nobody to wait for any more. */
static bool wait_while(_Atomic uint32_t *word, uint32_t value)
{
    struct timespec limit = { SECOND, 0 };

    while (atomic_load_explicit(word, memory_order_acquire) == value) {
        if (stopped())
            return false;
        long r = peet_rt_call(SYS_futex, (long)word, FUTEX_WAIT, value, (long)&limit, 0, 0);
        if (r == -110 /* ETIMEDOUT */
            && peet_rt_call(SYS_kill, peet_rt_header->recorder, 0, 0, 0, 0, 0) == -3 /* ESRCH */)
            atomic_store(&peet_rt_header->stop, 1);
    }
    return true;
}

/* ---- buffers ---- */

/* The record that was interrupted has its key where the first of the doubtful words has changed; if none has, it is behind them.
 * What stands in front of it is not of this process. Returns where the words end then. */
static uint64_t *without_doubt(uint64_t *upto)
{
    struct rt_self *s = &peet_rt_self;
    uint64_t *to = s->doubtful, *from = to;

    if (!to)
        return upto;
    while (from < to + s->doubtful_words && *from == s->copied[from - to])
        from++;
    while (from < upto)
        *to++ = *from++;
    for (uint64_t *p = to; p < upto; p++)
        *p = 0;
    s->doubtful = NULL;
    return to;
}

/* The last record of a buffer stands apart: it is put where it belongs. */
static void put_back(uint64_t *upto)
{
    struct rt_self *s = &peet_rt_self;
    uint64_t *to = s->whole.start;

    for (const uint64_t *from = s->now.start; from < upto; from++)
        *to++ = *from;
    s->now = s->whole;
    s->whole.start = NULL;
    peet_rt_cursor = to;
}

void peet_rt_turn(uint64_t *upto, uint64_t stack)
{
    struct rt_self *s = &peet_rt_self;

    if (s->whole.start && s->handlers == 0) {
        put_back(upto);
        return;
    }
    if (s->handlers > 0) { /* the signal buffer is full */
        s->lost = true;
        s->now = (struct rt_window){ (uint64_t *)(void *)discard, (uint64_t *)(void *)discard + RT_BUFFER_WORDS };
    } else if (s->place && !stopped()) {
        struct raw_buffer *b = &s->place->buffer[s->turn], *next;
        b->bytes = (uint32_t)((char *)without_doubt(upto) - (char *)s->now.start);
        atomic_store_explicit(&b->state, RAW_FULL, memory_order_release);
        if (peet_rt_inside) { /* it comes back when everything has been read */
            peet_rt_lend(s->place, RAW_STOPPED);
            s->wish = s->place->skip;
            s->place->skip = 0;
            b->sp = stack;
            peet_rt_cursor = s->now.start;
            return;
        }
        core_ring();
        if (peet_rt_header->controlled)
            peet_rt_stop_as(s->place, RAW_STOPPED);
        s->wish = peet_rt_header->controlled ? s->place->skip : peet_rt_header->skip;
        s->place->skip = 0;
        s->turn = (s->turn + 1) % RAW_BUFFERS;
        next = &s->place->buffer[s->turn];
        if (wait_while(&next->state, RAW_FULL)) {
            next->sp = stack;
            atomic_store_explicit(&next->state, RAW_FILLING, memory_order_release);
        }
        s->now = buffer_at(s->memory, s->turn);
    }
    peet_rt_cursor = s->now.start;
}

void peet_rt_drain(void)
{
    struct rt_self *s = &peet_rt_self;

    if (!s->place || s->handlers > 0)
        return;
    peet_rt_wake();
    if (s->signal_end != s->signal.start)
        peet_rt_signals_append();
    peet_rt_turn(peet_rt_cursor, 0);
    for (unsigned i = 0; !peet_rt_inside && i < RAW_BUFFERS; i++)
        wait_while(&s->place->buffer[i].state, RAW_FULL);
}

RT_PUBLIC void peet_rt_tell(unsigned kind, uint64_t site, unsigned n, const uint64_t *arg)
{
    if (peet_rt_listens())
        peet_rt_event(kind, site, n, arg);
}

/* ---- threads ---- */

struct raw_thread *peet_rt_take_place(uint32_t parent, uint32_t ordinal, uint32_t of_process)
{
    struct raw_header *h = peet_rt_header;

    if (!h || stopped())
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

void peet_rt_begin(struct raw_thread *place)
{
    struct rt_self *s = &peet_rt_self;

    *s = (struct rt_self){ .place = place, .depth = s->depth, .is_private = s->is_private };
    s->value = UINT64_MAX; /* PTHREAD_CANCELED, unless it says something else */
    if (!map_buffers(s)) {
        peet_rt_finish();
        return;
    }
    s->signal.start = s->signal_end = (uint64_t *)(void *)(s->memory + SIGNAL_OFFSET);
    s->signal.end = s->signal.start + RT_SIGNAL_WORDS;
    stack_t stack = { .ss_sp = s->memory + STACK_OFFSET, .ss_size = RT_ALTSTACK_BYTES };
    peet_rt_call(SYS_sigaltstack, (long)&stack, 0, 0, 0, 0, 0);
    if (s->place) {
        s->number = place->number;
        place->pid = (int32_t)peet_rt_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
        place->tid = (int32_t)peet_rt_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
        peet_rt_call(SYS_arch_prctl, ARCH_GET_FS, (long)&place->thread_pointer, 0, 0, 0, 0);
        place->buffer[0].sp = 0;
        atomic_store(&place->buffer[0].state, RAW_FILLING);
        atomic_store(&place->life, RAW_LIVE);
        core_ring();
        if (place->process == place->number)
            wait_while(&place->registered, 0);
        if (peet_rt_header->controlled)
            peet_rt_stop_as(place, RAW_STOPPED);
        s->wish = place->skip;
        place->skip = 0;
    }
    peet_rt_cursor = s->now.start;
    if (s->wish)
        peet_rt_go_on();
}

void peet_rt_finish(void)
{
    struct rt_self *s = &peet_rt_self;
    struct raw_thread *place = s->place;
    stack_t none = { .ss_flags = SS_DISABLE };

    if (place) {
        peet_rt_wake();
        if (s->whole.start)
            put_back(peet_rt_cursor);
        if (s->signal_end != s->signal.start)
            peet_rt_signals_append();
        if (!stopped()) {
            place->buffer[s->turn].bytes = (uint32_t)((char *)without_doubt(peet_rt_cursor) - (char *)s->now.start);
            atomic_store_explicit(&place->buffer[s->turn].state, RAW_FULL, memory_order_release);
        }
    }
    s->place = NULL;
    s->wish = 0;
    s->over = true;
    s->signal_end = s->signal.start = s->signal.end = NULL;
    s->now = (struct rt_window){ (uint64_t *)(void *)discard, (uint64_t *)(void *)discard + RT_BUFFER_WORDS };
    peet_rt_cursor = s->now.start;
    if (s->memory) {
        peet_rt_call(SYS_sigaltstack, (long)&none, 0, 0, 0, 0, 0);
        unmap(s->memory);
        s->memory = NULL;
    }
    if (place) { /* the next thread that takes it has its memory where ours was */
        atomic_store(&place->life, RAW_ENDED);
        core_ring();
        if (peet_rt_header->controlled)
            peet_rt_stop_as(place, RAW_FINISHED);
    }
}

/* ---- the process ---- */

uint32_t peet_rt_process(void)
{
    return process;
}

void peet_rt_tell_end(int how, uint32_t code)
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

void peet_rt_new_process(struct raw_thread *place)
{
    char *old = peet_rt_self.handlers ? NULL : peet_rt_self.memory; /* a handler may have its stack there */

    process = place ? place->number : 0;
    if (!place)
        peet_rt_header = NULL;
    peet_rt_forget_host();
    peet_rt_threads_begin();
    peet_rt_begin(place); /* with an alternate stack of its own, so that the old memory can go */
    if (old)
        unmap(old);
}

/* The last thing that exit calls, for it was the first to be registered. */
static void at_exit(int status, void *unused)
{
    (void)unused;
    peet_rt_self.depth = 0;
    peet_rt_tell_end(PEET_END_PROCESS_EXIT, (uint32_t)status);
    peet_rt_drain();
}

/* A program that was to be recorded cannot be: it began after its process gave up the right to reach the recorder. */
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
        peet_rt_on = true; /* also if nobody is there */
        for (i = 0; i + 1 < sizeof file && value[i]; i++)
            file[i] = value[i];
        file[i] = 0;
    }
    long fd = open_file();
    if (fd < 0) {
        if (file[0])
            say_unreachable(fd);
        return;
    }
    shared = map(NULL, SHARED_BYTES, READ_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    struct raw_header *h =
        (void *)(shared ? shared
                        : map(NULL, RAW_DATA_OFFSET, READ_WRITE, MAP_SHARED, fd, 0)); /* little room: ulimit -v */
    close_file(fd);
    bool is_for_us = h && h->magic == RAW_MAGIC && h->version == RAW_VERSION;
    if (is_for_us && h->controlled
        && atomic_load(&h->threads) > 0) { /* a child of the program that is simulated runs natively */
        is_for_us = false;
        peet_rt_on = false;
    }
    if (is_for_us)
        peet_rt_header = h;
    if (peet_rt_header)
        reserved = reserve(NULL, RESERVED_BYTES);
}

static void begin(int argc, char **argv, char **environment)
{
    (void)argc;
    (void)argv;
    discard = reserve(NULL, SLOT_BYTES);
    if (discard && map_private(discard, RAW_BUFFER_BYTES))
        peet_rt_cursor =
            (uint64_t *)(void *)discard; /* the dynamic linker may call an allocator that is instrumented */
    peet_rt_find_all();
    open_header(environment);
    peet_rt_signals_begin();
    peet_rt_threads_begin();
    peet_rt_processes_begin();
    if (peet_rt_header && peet_rt_header->controlled)
        peet_rt_heap_begin();
    if (peet_rt_header && peet_rt_header->in_process)
        peet_rt_host_begin(file);
    struct raw_thread *place = peet_rt_take_place(0, 0, 0);
    process = place ? place->number : 0;
    peet_rt_begin(place);
    on_exit(at_exit, NULL);
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(int, char **, char **) = begin;
