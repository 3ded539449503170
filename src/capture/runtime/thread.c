/* SPDX-License-Identifier: MIT */
/* Threads: each gets a place in the table from its creator, so that both can name it, and begins in a function of ours.
 * It ends for the recorder in the last round of key destructors, which run however it ends. */
#include <errno.h>
#include <sys/syscall.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"

enum { KNOWN = 4096, ROUNDS = 4 /* PTHREAD_DESTRUCTOR_ITERATIONS */ };

/* Handles of threads and their numbers: a ring of the newest. */
static struct known {
    uint64_t handle;
    uint32_t number;
} known[KNOWN];
static _Atomic uint32_t lock;
static pthread_key_t key;
static bool key_made;

/* ---- numbers ---- */

static void acquire(void)
{
    while (atomic_exchange_explicit(&lock, 1, memory_order_acquire))
        peet_rt_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static void release(void)
{
    atomic_store_explicit(&lock, 0, memory_order_release);
}

static uint32_t start_of(uint64_t handle)
{
    return (uint32_t)(handle >> 12) * 2654435761u % KNOWN;
}

static void remember(uint64_t handle, uint32_t number)
{
    acquire();
    uint32_t first = start_of(handle), at = first;
    while (known[at].handle != 0 && known[at].handle != handle && (at + 1) % KNOWN != first)
        at = (at + 1) % KNOWN;
    known[at] = (struct known){ handle, number };
    release();
}

/* 0: it is none that we know. */
static uint32_t number_of(uint64_t handle)
{
    uint32_t number = 0, first = start_of(handle), at = first;

    acquire();
    do {
        if (known[at].handle == handle)
            number = known[at].number;
        at = (at + 1) % KNOWN;
    } while (!number && known[at].handle && at != first);
    release();
    return number;
}

/* ---- beginning and end ---- */

struct start {
    _Atomic bool taken;
    void *(*function)(void *);
    int (*c11)(void *);
    void *argument;
    struct raw_thread *place;
};

/* Each is free again as soon as its thread runs: there is always one soon. They do not come from malloc, which would give the
 * thread an arena of its own where it frees it. */
enum { STARTS = 256 };
static struct start starts[STARTS];

static struct start *take_start(void)
{
    for (unsigned i = 0;; i = (i + 1) % STARTS) {
        if (!atomic_exchange(&starts[i].taken, true))
            return &starts[i];
        if (i == STARTS - 1)
            peet_rt_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
}

static void free_start(struct start *s)
{
    atomic_store(&s->taken, false);
}

static void at_end(void *unused)
{
    (void)unused;
    if (++peet_rt_self.rounds < ROUNDS) { /* others may have destructors that are instrumented */
        pthread_setspecific(key, &key);
        return;
    }
    peet_rt_self.depth = 0;
    peet_rt_self.handlers = 0;
    RT_EVENT(thread_exit, 0, peet_rt_self.value);
    if (peet_rt_self.place)
        peet_rt_self.place->end_kind = 1 + PEET_END_EXIT;
    peet_rt_finish();
}

void peet_rt_threads_begin(void)
{
    atomic_store(&lock, 0); /* in the child of a fork nobody is left who could give it back */
    if (key_made)
        return;
    key_made = true;
    pthread_key_create(&key, at_end);
}

/* ---- where stacks are ---- */

/* The kernel's list of mappings, "7f00-7f80 rw-p …", read through a small window: nothing here may allocate, for it would be in
 * the way of what the program allocates. */
struct maps {
    long fd;
    long have, at;
    char text[1024];
};

static int next_char(struct maps *m)
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

/* A hexadecimal number, and the character behind it. */
static int next_number(struct maps *m, uint64_t *ret)
{
    int c;

    for (*ret = 0; (c = next_char(m)) >= 0;) {
        if (c >= '0' && c <= '9')
            *ret = *ret << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            *ret = *ret << 4 | (uint64_t)(c - 'a' + 10);
        else
            break;
    }
    return c;
}

/* Where the C library says that the stack of the calling thread is. It allocates, so it is asked only where the kernel cannot be: behind chroot, or
 * without a free descriptor. */
static void thread_ask_stack(struct raw_thread *place)
{
    pthread_attr_t attr;
    void *low;
    size_t bytes;
    bool was_private = peet_rt_self.is_private;

    peet_rt_self.is_private = true;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        if (pthread_attr_getstack(&attr, &low, &bytes) == 0) {
            place->stack_low = RT_ADDR(low);
            place->stack_high = RT_ADDR(low) + bytes;
        }
        pthread_attr_destroy(&attr);
    }
    peet_rt_self.is_private = was_private;
}

/* Before the recorder learns of the thread: the mapping that its stack is. */
static void find_stack(struct raw_thread *place)
{
    struct maps m = { .fd = peet_rt_call(SYS_openat, -100 /* AT_FDCWD */, (long)"/proc/self/maps",
                                         02000000 /* O_CLOEXEC */, 0, 0, 0) };
    uint64_t here = RT_ADDR(&m), low, high;

    while (place && m.fd >= 0 && next_number(&m, &low) == '-') {
        int c = next_number(&m, &high);
        if (here >= low && here < high) {
            place->stack_low = low;
            place->stack_high = high;
            break;
        }
        while (c >= 0 && c != '\n')
            c = next_char(&m);
    }
    if (m.fd >= 0)
        peet_rt_call(SYS_close, m.fd, 0, 0, 0, 0, 0);
    if (place && place->stack_high == 0)
        thread_ask_stack(place);
}

static void begin(struct raw_thread *place)
{
    peet_rt_self.depth++;
    find_stack(place);
    if (place)
        remember(RT_ADDR(pthread_self()), place->number);
    pthread_setspecific(key, &key); /* it may allocate, which nobody is to hear */
    peet_rt_begin(place);
    peet_rt_self.depth = 0;
    if (peet_rt_self.place) {
        RT_EVENT(thread_start, 0, place->parent);
        if (place->stack_high > place->stack_low)
            RT_EVENT(map, 0, place->stack_low, place->stack_high - place->stack_low, 6);
    }
}

static void *trampoline(void *argument)
{
    struct start *start = argument;
    void *(*function)(void *) = start->function, *own = start->argument;
    int (*c11)(void *) = start->c11;
    struct raw_thread *place = start->place;

    free_start(start);
    begin(place);
    void *value = function ? function(own) : (void *)(intptr_t)c11(own);
    peet_rt_self.value = RT_ADDR(value);
    peet_rt_go_home();
    return value;
}

static int c11_trampoline(void *argument)
{
    return (int)(intptr_t)trampoline(argument);
}

/* A start for the child. */
static struct start *prepare(void *(*function)(void *), int (*c11)(void *), void *argument)
{
    struct start *p = take_start();

    p->function = function;
    p->c11 = c11;
    p->argument = argument;
    p->place =
        peet_rt_self.place ? peet_rt_take_place(peet_rt_self.number, peet_rt_self.children, peet_rt_process()) : NULL;
    return p;
}

/* Libraries make threads while the program waits for something else of theirs: that is an event in any case. */
static void created(bool ok, uint64_t handle, struct start *start, struct raw_thread *place, uint32_t number,
                    uint64_t site)
{
    if (!ok) {
        if (place)
            atomic_store(&place->life, RAW_FREE);
        free_start(start);
    } else if (place) {
        peet_rt_self.children++;
        remember(handle, number);
        if (peet_rt_header->controlled)
            peet_rt_await_child(place);
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
    struct start *start = prepare(function, NULL, argument);
    struct raw_thread *place = start->place; /* `start` belongs to the child from now on */
    uint32_t number = place ? place->number : 0;
    bool detached = is_detached(attr);
    int r;
    peet_rt_self.is_private = true;
    RT_QUIET(r, RT_REAL(pthread_create)(ret, attr, trampoline, start));
    peet_rt_self.is_private = false;
    created(r == 0, r == 0 ? RT_ADDR(*ret) : 0, start, place, number, RT_SITE);
    if (r == 0 && number && detached)
        RT_EVENT_ALWAYS(thread_detach, RT_SITE, number);
    return r;
}

RT_WRAPPER int thrd_create(thrd_t *ret, thrd_start_t function, void *argument)
{
    if (!RT_FOUND(thrd_create))
        return thrd_error;
    struct start *start = prepare(NULL, function, argument);
    struct raw_thread *place = start->place;
    uint32_t number = place ? place->number : 0;
    int r;
    peet_rt_self.is_private = true;
    RT_QUIET(r, RT_REAL(thrd_create)(ret, c11_trampoline, start));
    peet_rt_self.is_private = false;
    created(r == thrd_success, r == thrd_success ? RT_ADDR(*ret) : 0, start, place, number, RT_SITE);
    return r;
}

/* ---- the rest of their lives ---- */

/* Before a join: in a steered program it is told first, and returns when the thread has ended. */
static bool join_first(uint32_t number, uint64_t site)
{
    if (!number || !peet_rt_is_controlled())
        return false;
    RT_EVENT(thread_join, site, number);
    peet_rt_stop();
    peet_rt_cancel_here();
    return true;
}

static int joined(int r, uint32_t number, bool told, uint64_t site)
{
    if (r == 0 && number && !told) /* 0: thrd_success, too */
        RT_EVENT(thread_join, site, number);
    return r;
}

RT_WRAPPER int pthread_join(pthread_t thread, void **ret)
{
    uint32_t number = number_of(RT_ADDR(thread));
    bool told = join_first(number, RT_SITE);
    int r;

    RT_QUIET_WAIT(r, RT_REAL(pthread_join)(thread, ret));
    return joined(r, number, told, RT_SITE);
}

RT_WRAPPER int pthread_tryjoin_np(pthread_t thread, void **ret)
{
    uint32_t number = number_of(RT_ADDR(thread));
    int r;

    RT_QUIET(r, RT_REAL(pthread_tryjoin_np)(thread, ret));
    return joined(r, number, false, RT_SITE);
}

RT_WRAPPER int pthread_timedjoin_np(pthread_t thread, void **ret, const struct timespec *until)
{
    uint32_t number = number_of(RT_ADDR(thread));
    bool told = join_first(number, RT_SITE);
    int r;

    RT_QUIET_WAIT(r, RT_REAL(pthread_timedjoin_np)(thread, ret, until));
    return joined(r, number, told, RT_SITE);
}

RT_WRAPPER int pthread_clockjoin_np(pthread_t thread, void **ret, clockid_t clock, const struct timespec *until)
{
    uint32_t number = number_of(RT_ADDR(thread));
    bool told = join_first(number, RT_SITE);
    int r;

    RT_QUIET_WAIT(r, RT_REAL(pthread_clockjoin_np)(thread, ret, clock, until));
    return joined(r, number, told, RT_SITE);
}

RT_WRAPPER int thrd_join(thrd_t thread, int *ret)
{
    uint32_t number = number_of(RT_ADDR(thread));
    bool told = join_first(number, RT_SITE);
    int r;

    RT_QUIET_WAIT(r, RT_REAL(thrd_join)(thread, ret));
    return joined(r, number, told, RT_SITE);
}

RT_WRAPPER int pthread_detach(pthread_t thread)
{
    uint32_t number = number_of(RT_ADDR(thread));
    int r;

    RT_QUIET(r, RT_REAL(pthread_detach)(thread));
    if (r == 0 && number)
        RT_EVENT(thread_detach, RT_SITE, number);
    return r;
}

RT_WRAPPER int thrd_detach(thrd_t thread)
{
    uint32_t number = number_of(RT_ADDR(thread));
    int r;

    RT_QUIET(r, RT_REAL(thrd_detach)(thread));
    if (r == thrd_success && number)
        RT_EVENT(thread_detach, RT_SITE, number);
    return r;
}

/* The first thread has no function of ours to begin in; when it ends alone, it is told like others. */
static void leave(void)
{
    if (peet_rt_is_controlled() && !pthread_getspecific(key))
        pthread_setspecific(key, &key);
    peet_rt_go_home();
}

/* In a steered program a thread is cancelled where it waits for others, and finds out by itself. */
RT_WRAPPER int pthread_cancel(pthread_t thread)
{
    uint32_t number = number_of(RT_ADDR(thread));
    struct rt_self *to = number && peet_rt_is_controlled() ? peet_rt_find_lent(number) : NULL;

    if (!to)
        return RT_REAL(pthread_cancel)(thread);
    to->is_cancelled = true;
    RT_EVENT(thread_cancel, RT_SITE, number);
    peet_rt_stop();
    return 0;
}

RT_WRAPPER void pthread_testcancel(void)
{
    if (peet_rt_self.is_lent)
        peet_rt_cancel_here();
    RT_REAL(pthread_testcancel)();
}

/* A signal handler may call it: without a host, nothing of ours is locked. */
RT_WRAPPER int pthread_kill(pthread_t thread, int signal)
{
    uint32_t number = peet_rt_inside && signal > 0 && signal < 64 ? number_of(RT_ADDR(thread)) : 0;
    struct rt_self *to = number ? peet_rt_find_lent(number) : NULL;

    if (!to)
        return RT_REAL(pthread_kill)(thread, signal);
    peet_rt_send(to, signal);
    return 0;
}

RT_WRAPPER void pthread_exit(void *value)
{
    peet_rt_self.value = RT_ADDR(value);
    leave();
    RT_REAL(pthread_exit)(value);
    __builtin_unreachable();
}

RT_WRAPPER void thrd_exit(int value)
{
    peet_rt_self.value = (uint64_t)value;
    leave();
    RT_REAL(thrd_exit)(value);
    __builtin_unreachable();
}
