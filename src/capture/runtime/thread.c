/* SPDX-License-Identifier: MIT */
/* Threads: each gets an entry of the table from its creator, so that both have its number, and begins in a function of
 * the runtime. For the recorder it ends in the last round of destructors of thread-specific keys, which run however a
 * thread ends. */
#include <errno.h>
#include <sys/syscall.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"
#include "capture/runtime/host.h"

enum { KNOWN = 4096, ROUNDS = 4 /* PTHREAD_DESTRUCTOR_ITERATIONS */ };

/* Numbers of threads by their handles: the newest KNOWN of them. */
static struct known_thread {
    uint64_t handle;
    uint32_t number;
} known[KNOWN];
static _Atomic uint32_t lock;
static pthread_key_t key;
static bool key_made;

/* ---- numbers ---- */

static void lock_numbers(void)
{
    while (atomic_exchange_explicit(&lock, 1, memory_order_acquire))
        peet_rt_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static void unlock_numbers(void)
{
    atomic_store_explicit(&lock, 0, memory_order_release);
}

static uint32_t hash_start(uint64_t handle)
{
    return (uint32_t)(handle >> 12) * 2654435761u % KNOWN;
}

static void remember_number(uint64_t handle, uint32_t number)
{
    lock_numbers();
    uint32_t first = hash_start(handle), at = first;
    while (known[at].handle != 0 && known[at].handle != handle && (at + 1) % KNOWN != first)
        at = (at + 1) % KNOWN;
    known[at] = (struct known_thread){ handle, number };
    unlock_numbers();
}

/* 0: the thread is unknown */
static uint32_t thread_number(uint64_t handle)
{
    uint32_t number = 0, first = hash_start(handle), at = first;

    lock_numbers();
    do {
        if (known[at].handle == handle)
            number = known[at].number;
        at = (at + 1) % KNOWN;
    } while (!number && known[at].handle && at != first);
    unlock_numbers();
    return number;
}

/* ---- beginning and end ---- */

/* What a created thread has to execute. */
struct thread_start {
    _Atomic bool taken;        /* it is in use */
    void *(*function)(void *); /* of pthread_create; NULL: c11 is set */
    int (*c11)(void *);        /* of thrd_create */
    void *argument;
    struct raw_thread *entry; /* of the new thread, in the table of threads; NULL: not recorded */
    uint64_t mask;            /* signals that the creating thread blocks; of a recorded thread */
};

/* A start is free again as soon as its thread runs. They are not allocated by malloc, which would give a thread an
 * arena where it frees them. */
enum { STARTS = 256 };
static struct thread_start starts[STARTS];

static struct thread_start *take_start(void)
{
    for (unsigned i = 0;; i = (i + 1) % STARTS) {
        if (!atomic_exchange(&starts[i].taken, true))
            return &starts[i];
        if (i == STARTS - 1)
            peet_rt_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
}

static void free_start(struct thread_start *s)
{
    atomic_store(&s->taken, false);
}

static void thread_at_end(void *unused)
{
    (void)unused;
    if (++peet_rt_self.destructor_rounds < ROUNDS) { /* other destructors may be instrumented */
        pthread_setspecific(key, &key);
        return;
    }
    peet_rt_self.depth = 0;
    peet_rt_self.handlers.active = 0;
    RT_EVENT(thread_exit, 0, peet_rt_self.return_value);
    if (peet_rt_self.entry)
        peet_rt_self.entry->end_kind = 1 + PEET_END_EXIT;
    peet_rt_finish();
}

void peet_rt_threads_begin(void)
{
    atomic_store(&lock, 0); /* in the child of a fork, the holder may be gone */
    if (key_made)
        return;
    key_made = true;
    pthread_key_create(&key, thread_at_end);
}

/* ---- stacks ---- */

/* A reader of /proc/self/maps, "7f00-7f80 rw-p …", with a small buffer. It may not allocate, which would change what
 * the program allocates. */
struct maps_reader {
    long fd;       /* negative: not open */
    long have, at; /* bytes in `text`; index of the next one */
    char text[1024];
};

static int maps_char(struct maps_reader *m)
{
    if (m->at == m->have) {
        m->have = peet_rt_call(SYS_read, m->fd, (long)m->text, sizeof m->text, 0, 0, 0);
        m->at = 0;
        if (m->have <= 0) {
            m->have = 0;
            return -1;
        }
    }
    return m->text[m->at++];
}

/* A hexadecimal number; returns the character after it. */
static int maps_number(struct maps_reader *m, uint64_t *ret)
{
    int c;

    for (*ret = 0; (c = maps_char(m)) >= 0;) {
        if (c >= '0' && c <= '9')
            *ret = *ret << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            *ret = *ret << 4 | (uint64_t)(c - 'a' + 10);
        else
            break;
    }
    return c;
}

/* The bounds of the calling thread's stack, from the C library. It allocates, so it is asked only where /proc cannot be
 * read: after chroot, or without a free descriptor. */
static void thread_ask_stack(struct raw_thread *entry)
{
    pthread_attr_t attr;
    void *low;
    size_t bytes;
    bool was_private = peet_rt_self.hosted.is_private;

    peet_rt_self.hosted.is_private = true;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        if (pthread_attr_getstack(&attr, &low, &bytes) == 0) {
            entry->stack_low = RT_ADDR(low);
            entry->stack_high = RT_ADDR(low) + bytes;
        }
        pthread_attr_destroy(&attr);
    }
    peet_rt_self.hosted.is_private = was_private;
}

/* Finds the mapping that contains the calling thread's stack, before the recorder registers the thread. */
static void thread_find_stack(struct raw_thread *entry)
{
    struct maps_reader m = { .fd = peet_rt_call(SYS_openat, -100 /* AT_FDCWD */, (long)"/proc/self/maps",
                                                02000000 /* O_CLOEXEC */, 0, 0, 0) };
    uint64_t here = RT_ADDR(&m), low, high;

    while (entry && m.fd >= 0 && maps_number(&m, &low) == '-') {
        int c = maps_number(&m, &high);
        if (here >= low && here < high) {
            entry->stack_low = low;
            entry->stack_high = high;
            break;
        }
        while (c >= 0 && c != '\n')
            c = maps_char(&m);
    }
    if (m.fd >= 0)
        peet_rt_call(SYS_close, m.fd, 0, 0, 0, 0, 0);
    if (entry && entry->stack_high == 0)
        thread_ask_stack(entry);
}

static void thread_begin_recording(struct raw_thread *entry)
{
    peet_rt_self.depth++;
    thread_find_stack(entry);
    if (entry)
        remember_number(RT_ADDR(pthread_self()), entry->number);
    pthread_setspecific(key, &key); /* it may allocate, which is no event */
    peet_rt_begin(entry);
    peet_rt_self.depth = 0;
    if (peet_rt_self.entry) {
        RT_EVENT(thread_start, 0, entry->parent);
        if (entry->stack_high > entry->stack_low)
            RT_EVENT(map, 0, entry->stack_low, entry->stack_high - entry->stack_low, 6);
    }
}

/* ---- signals of a new thread: a handler that ran before the thread is recorded would be recorded as a separate thread ---- */

enum { MASK_BYTES = 8 };

static uint64_t thread_swap_mask(uint64_t mask)
{
    uint64_t old = 0;

    peet_rt_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, (long)&old, MASK_BYTES, 0, 0);
    return old;
}

/* In the creating thread: the new one inherits that it blocks all signals, except those for errors. */
static void thread_block_signals(struct thread_start *start)
{
    if (start->entry)
        start->mask = thread_swap_mask(peet_rt_blocking_mask());
}

static void thread_unblock_signals(const struct raw_thread *entry, uint64_t mask)
{
    if (entry)
        thread_swap_mask(mask);
}

/* In the new thread, unless its attributes have another mask. */
static void thread_take_mask(const struct raw_thread *entry, uint64_t mask, uint64_t now)
{
    if (!entry || now != peet_rt_blocking_mask())
        return;
    thread_swap_mask(mask);
    peet_rt_mask_changed();
}

static uint64_t thread_mask(void)
{
    uint64_t now = 0;

    peet_rt_call(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&now, MASK_BYTES, 0, 0);
    return now;
}

static void *thread_main(void *argument)
{
    struct thread_start *start = argument;
    void *(*function)(void *) = start->function, *own = start->argument;
    int (*c11)(void *) = start->c11;
    struct raw_thread *entry = start->entry;
    uint64_t mask = start->mask, now = thread_mask();

    free_start(start);
    thread_begin_recording(entry);
    thread_take_mask(entry, mask, now);
    void *value = function ? function(own) : (void *)(intptr_t)c11(own);
    peet_rt_self.return_value = RT_ADDR(value);
    peet_rt_to_carrier();
    return value;
}

static int thread_main_c11(void *argument)
{
    return (int)(intptr_t)thread_main(argument);
}

/* Makes a start for a child. */
static struct thread_start *thread_prepare(void *(*function)(void *), int (*c11)(void *), void *argument)
{
    struct thread_start *p = take_start();

    p->function = function;
    p->c11 = c11;
    p->argument = argument;
    p->entry =
        peet_rt_self.entry ? peet_rt_take_entry(peet_rt_self.number, peet_rt_self.children, peet_rt_process()) : NULL;
    return p;
}

/* An event also within wrapped functions, because libraries create threads while the program waits in them. */
static void thread_created(bool ok, uint64_t handle, struct thread_start *start, struct raw_thread *entry,
                           uint32_t number, uint64_t site)
{
    if (!ok) {
        if (entry)
            atomic_store(&entry->life, RAW_FREE);
        free_start(start);
    } else if (entry) {
        peet_rt_self.children++;
        remember_number(handle, number);
        if (peet_rt_header->controlled)
            peet_rt_await_child(entry);
        RT_EVENT_ALWAYS(thread_create, site, number);
    }
}

static bool is_detached(const pthread_attr_t *attr)
{
    int state;

    return attr && pthread_attr_getdetachstate(attr, &state) == 0 && state == PTHREAD_CREATE_DETACHED;
}

RT_WRAPPER int pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*function)(void *), void *argument)
{
    if (!RT_FOUND(pthread_create))
        return EAGAIN;
    struct thread_start *start = thread_prepare(function, NULL, argument);
    struct raw_thread *entry = start->entry; /* `start` belongs to the child from now on */
    uint32_t number = entry ? entry->number : 0;
    bool detached = is_detached(attr);
    int r;
    peet_rt_self.hosted.is_private = true;
    thread_block_signals(start);
    uint64_t mask = start->mask;
    RT_QUIET(r, RT_REAL(pthread_create)(ret, attr, thread_main, start));
    thread_unblock_signals(entry, mask);
    peet_rt_self.hosted.is_private = false;
    thread_created(r == 0, r == 0 ? RT_ADDR(*ret) : 0, start, entry, number, RT_SITE);
    if (r == 0 && number && detached)
        RT_EVENT_ALWAYS(thread_detach, RT_SITE, number);
    return r;
}

RT_WRAPPER int thrd_create(thrd_t *ret, thrd_start_t function, void *argument)
{
    if (!RT_FOUND(thrd_create))
        return thrd_error;
    struct thread_start *start = thread_prepare(NULL, function, argument);
    struct raw_thread *entry = start->entry;
    uint32_t number = entry ? entry->number : 0;
    int r;
    peet_rt_self.hosted.is_private = true;
    thread_block_signals(start);
    uint64_t mask = start->mask;
    RT_QUIET(r, RT_REAL(thrd_create)(ret, thread_main_c11, start));
    thread_unblock_signals(entry, mask);
    peet_rt_self.hosted.is_private = false;
    thread_created(r == thrd_success, r == thrd_success ? RT_ADDR(*ret) : 0, start, entry, number, RT_SITE);
    return r;
}

/* ---- join, detach, cancel, exit ---- */

/* Before a join in a controlled program: the event comes first, and the call returns once the thread has ended. */
static bool thread_join_controlled(uint32_t number, uint64_t site)
{
    if (!number || !peet_rt_is_controlled())
        return false;
    RT_EVENT(thread_join, site, number);
    peet_rt_stop();
    peet_rt_cancel_here();
    return true;
}

static int thread_joined(int r, uint32_t number, bool told, uint64_t site)
{
    if (r == 0 && number && !told) /* 0 is thrd_success, too */
        RT_EVENT(thread_join, site, number);
    return r;
}

RT_WRAPPER int pthread_join(pthread_t thread, void **ret)
{
    uint32_t number = thread_number(RT_ADDR(thread));
    bool told = thread_join_controlled(number, RT_SITE);
    int r;

    RT_QUIET_WAIT(r, RT_REAL(pthread_join)(thread, ret));
    return thread_joined(r, number, told, RT_SITE);
}

RT_WRAPPER int pthread_tryjoin_np(pthread_t thread, void **ret)
{
    uint32_t number = thread_number(RT_ADDR(thread));
    int r;

    RT_QUIET(r, RT_REAL(pthread_tryjoin_np)(thread, ret));
    return thread_joined(r, number, false, RT_SITE);
}

RT_WRAPPER int pthread_timedjoin_np(pthread_t thread, void **ret, const struct timespec *until)
{
    uint32_t number = thread_number(RT_ADDR(thread));
    bool told = thread_join_controlled(number, RT_SITE);
    int r;

    RT_QUIET_WAIT(r, RT_REAL(pthread_timedjoin_np)(thread, ret, until));
    return thread_joined(r, number, told, RT_SITE);
}

RT_WRAPPER int pthread_clockjoin_np(pthread_t thread, void **ret, clockid_t clock, const struct timespec *until)
{
    uint32_t number = thread_number(RT_ADDR(thread));
    bool told = thread_join_controlled(number, RT_SITE);
    int r;

    RT_QUIET_WAIT(r, RT_REAL(pthread_clockjoin_np)(thread, ret, clock, until));
    return thread_joined(r, number, told, RT_SITE);
}

RT_WRAPPER int thrd_join(thrd_t thread, int *ret)
{
    uint32_t number = thread_number(RT_ADDR(thread));
    bool told = thread_join_controlled(number, RT_SITE);
    int r;

    RT_QUIET_WAIT(r, RT_REAL(thrd_join)(thread, ret));
    return thread_joined(r, number, told, RT_SITE);
}

RT_WRAPPER int pthread_detach(pthread_t thread)
{
    uint32_t number = thread_number(RT_ADDR(thread));
    int r;

    RT_QUIET(r, RT_REAL(pthread_detach)(thread));
    if (r == 0 && number)
        RT_EVENT(thread_detach, RT_SITE, number);
    return r;
}

RT_WRAPPER int thrd_detach(thrd_t thread)
{
    uint32_t number = thread_number(RT_ADDR(thread));
    int r;

    RT_QUIET(r, RT_REAL(thrd_detach)(thread));
    if (r == thrd_success && number)
        RT_EVENT(thread_detach, RT_SITE, number);
    return r;
}

/* The first thread does not begin in a function of the runtime. If it ends alone, its end is recorded like that of
 * others. */
static void thread_leave(void)
{
    if (peet_rt_is_controlled() && !pthread_getspecific(key))
        pthread_setspecific(key, &key);
    peet_rt_to_carrier();
}

/* In a controlled program a thread is cancelled where it waits, and ends itself there. */
RT_WRAPPER int pthread_cancel(pthread_t thread)
{
    uint32_t number = thread_number(RT_ADDR(thread));
    struct rt_self *to = number && peet_rt_is_controlled() ? peet_rt_find_borrowed(number) : NULL;

    if (!to)
        return RT_REAL(pthread_cancel)(thread);
    to->hosted.is_cancelled = true;
    RT_EVENT(thread_cancel, RT_SITE, number);
    peet_rt_stop();
    return 0;
}

RT_WRAPPER void pthread_testcancel(void)
{
    if (peet_rt_self.hosted.is_borrowed)
        peet_rt_cancel_here();
    RT_REAL(pthread_testcancel)();
}

/* A signal handler may call it: without a host, no lock of the runtime is taken. */
RT_WRAPPER int pthread_kill(pthread_t thread, int signal)
{
    uint32_t number = peet_rt_in_process && signal > 0 && signal < 64 ? thread_number(RT_ADDR(thread)) : 0;
    struct rt_self *to = number ? peet_rt_find_borrowed(number) : NULL;

    if (!to)
        return RT_REAL(pthread_kill)(thread, signal);
    peet_rt_send(to, signal);
    return 0;
}

RT_WRAPPER void pthread_exit(void *value)
{
    peet_rt_self.return_value = RT_ADDR(value);
    thread_leave();
    RT_REAL(pthread_exit)(value);
    __builtin_unreachable();
}

RT_WRAPPER void thrd_exit(int value)
{
    peet_rt_self.return_value = (uint64_t)value;
    thread_leave();
    RT_REAL(thrd_exit)(value);
    __builtin_unreachable();
}
