/* SPDX-License-Identifier: MIT */
/* Threads: each gets a place in the table from its creator, so that both can name it, and begins in a function of ours.
 * It ends for the recorder in the last round of key destructors, which run however it ends. */
#include <errno.h>
#include <sys/syscall.h>

#include "capture/rt/real.h"
#include "capture/rt/rt.h"

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
    void *(*function)(void *);
    int (*c11)(void *);
    void *argument;
    struct raw_thread *place;
};

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
        peet_rt_self.place->how = 1 + PEET_END_EXIT;
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

/* Before the recorder learns of the thread: where its stack is. */
static void find_stack(struct raw_thread *place)
{
    pthread_attr_t attr;
    void *low;
    size_t size;

    if (!place || pthread_getattr_np(pthread_self(), &attr) != 0)
        return;
    if (pthread_attr_getstack(&attr, &low, &size) == 0) {
        place->stack_low = RT_ADDR(low);
        place->stack_high = RT_ADDR(low) + size;
    }
    pthread_attr_destroy(&attr);
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
    struct start start = *(struct start *)argument;

    RT_REAL(free)(argument);
    begin(start.place);
    void *value = start.function ? start.function(start.argument) : (void *)(intptr_t)start.c11(start.argument);
    peet_rt_self.value = RT_ADDR(value);
    return value;
}

static int c11_trampoline(void *argument)
{
    return (int)(intptr_t)trampoline(argument);
}

/* A start for the child; NULL: no memory. */
static struct start *prepare(struct start start)
{
    struct start *p = RT_REAL(malloc)(sizeof *p);

    if (!p)
        return NULL;
    if (peet_rt_self.place)
        start.place = peet_rt_take_place(peet_rt_self.number, peet_rt_self.children, peet_rt_process());
    *p = start;
    return p;
}

/* Libraries make threads while the program waits for something else of theirs: that is an event in any case. */
static void created(bool ok, uint64_t handle, struct start *start, struct raw_thread *place, uint32_t number,
                    uint64_t site)
{
    if (!ok) {
        if (place)
            atomic_store(&place->life, RAW_FREE);
        RT_REAL(free)(start);
    } else if (place) {
        peet_rt_self.children++;
        remember(handle, number);
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
    struct start *start = prepare((struct start){ .function = function, .argument = argument });
    if (!start)
        return EAGAIN;
    struct raw_thread *place = start->place; /* `start` belongs to the child from now on */
    uint32_t number = place ? place->number : 0;
    bool detached = is_detached(attr);
    int r;
    RT_QUIET(r, RT_REAL(pthread_create)(ret, attr, trampoline, start));
    created(r == 0, r == 0 ? RT_ADDR(*ret) : 0, start, place, number, RT_SITE);
    if (r == 0 && number && detached)
        RT_EVENT_ALWAYS(thread_detach, RT_SITE, number);
    return r;
}

RT_WRAPPER int thrd_create(thrd_t *ret, thrd_start_t function, void *argument)
{
    if (!RT_FOUND(thrd_create))
        return thrd_error;
    struct start *start = prepare((struct start){ .c11 = function, .argument = argument });
    if (!start)
        return thrd_nomem;
    struct raw_thread *place = start->place;
    uint32_t number = place ? place->number : 0;
    int r;
    RT_QUIET(r, RT_REAL(thrd_create)(ret, c11_trampoline, start));
    created(r == thrd_success, r == thrd_success ? RT_ADDR(*ret) : 0, start, place, number, RT_SITE);
    return r;
}

/* ---- the rest of their lives ---- */

static int joined(int r, uint32_t number, uint64_t site)
{
    if (r == 0 && number) /* 0: thrd_success, too */
        RT_EVENT(thread_join, site, number);
    return r;
}

RT_WRAPPER int pthread_join(pthread_t thread, void **ret)
{
    uint32_t number = number_of(RT_ADDR(thread));
    int r;

    RT_QUIET_WAIT(r, RT_REAL(pthread_join)(thread, ret));
    return joined(r, number, RT_SITE);
}

RT_WRAPPER int pthread_tryjoin_np(pthread_t thread, void **ret)
{
    uint32_t number = number_of(RT_ADDR(thread));
    int r;

    RT_QUIET(r, RT_REAL(pthread_tryjoin_np)(thread, ret));
    return joined(r, number, RT_SITE);
}

RT_WRAPPER int pthread_timedjoin_np(pthread_t thread, void **ret, const struct timespec *until)
{
    uint32_t number = number_of(RT_ADDR(thread));
    int r;

    RT_QUIET_WAIT(r, RT_REAL(pthread_timedjoin_np)(thread, ret, until));
    return joined(r, number, RT_SITE);
}

RT_WRAPPER int pthread_clockjoin_np(pthread_t thread, void **ret, clockid_t clock, const struct timespec *until)
{
    uint32_t number = number_of(RT_ADDR(thread));
    int r;

    RT_QUIET_WAIT(r, RT_REAL(pthread_clockjoin_np)(thread, ret, clock, until));
    return joined(r, number, RT_SITE);
}

RT_WRAPPER int thrd_join(thrd_t thread, int *ret)
{
    uint32_t number = number_of(RT_ADDR(thread));
    int r;

    RT_QUIET_WAIT(r, RT_REAL(thrd_join)(thread, ret));
    return joined(r, number, RT_SITE);
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

RT_WRAPPER void pthread_exit(void *value)
{
    peet_rt_self.value = RT_ADDR(value);
    RT_REAL(pthread_exit)(value);
    __builtin_unreachable();
}

RT_WRAPPER void thrd_exit(int value)
{
    peet_rt_self.value = (uint64_t)value;
    RT_REAL(thrd_exit)(value);
    __builtin_unreachable();
}
