/* SPDX-License-Identifier: MIT */
/* OpenMP: what GCC makes of its directives are calls of libgomp, and these are events here. Linked only into programs that
 * have such calls.
 *
 *   parallel region     in the thread that meets it: doall_fork and doall_join with the number of threads;
 *                       in each of these, from 0: barrier_wait, doall_start … doall_finish with its own number, barrier_wait
 *   chunk of a loop     doall_start … doall_finish with its first iteration, where libgomp deals them out; one section is one
 *   barrier             barrier_wait, also at the ends of loops and sections that have one
 *   critical, atomic    mutex_lock, mutex_unlock; omp_*_lock likewise
 *   single              once
 *   ordered             wait, post: of the number of iterations before the chunk and up to its end
 *
 * The barrier at the beginning is there because threads of an earlier region wait for their master in the library, unseen.
 * A team's barrier is named by an address in its master's memory, another one for each number of threads.
 *
 * Not told: which tasks depend on which; a task is code of the thread that runs it, where it runs it. Doacross loops, teams
 * and targets. What libgomp itself allocates is told: it is an allocation of the program like others. */
#include <dlfcn.h>

#include "capture/runtime/rt.h"

enum { LEVELS = 4, SIZES = 256 }; /* regions in regions, and numbers of threads, that have names of their own */

/* omp.h is GCC's own; what the locks are inside is not for us. */
typedef struct omp_lock omp_lock_t;
typedef struct omp_nest_lock omp_nest_lock_t;
typedef unsigned long long ull;
typedef void body_fn(void *);

int omp_get_num_threads(void);
int omp_get_thread_num(void);
int omp_get_cancellation(void);

/* clang-format off */

/* ---- what there is: F(result, name, parameters) ---- */

/* The schedules. */
#define CHUNKED(X) X(static) X(dynamic) X(guided) X(nonmonotonic_dynamic) X(nonmonotonic_guided)
#define UNCHUNKED(X) X(runtime) X(nonmonotonic_runtime) X(maybe_nonmonotonic_runtime)
#define CHUNKED_ORDERED(X) X(static) X(dynamic) X(guided)

#define LOOP_CHUNKED(s) \
    F(bool, GOMP_loop_##s##_start, (long, long, long, long, long *, long *)) \
    F(bool, GOMP_loop_##s##_next, (long *, long *)) \
    F(bool, GOMP_loop_ull_##s##_start, (bool, ull, ull, ull, ull, ull *, ull *)) \
    F(bool, GOMP_loop_ull_##s##_next, (ull *, ull *)) \
    F(void, GOMP_parallel_loop_##s, (body_fn *, void *, unsigned, long, long, long, long, unsigned))
#define LOOP_UNCHUNKED(s) \
    F(bool, GOMP_loop_##s##_start, (long, long, long, long *, long *)) \
    F(bool, GOMP_loop_##s##_next, (long *, long *)) \
    F(bool, GOMP_loop_ull_##s##_start, (bool, ull, ull, ull, ull *, ull *)) \
    F(bool, GOMP_loop_ull_##s##_next, (ull *, ull *)) \
    F(void, GOMP_parallel_loop_##s, (body_fn *, void *, unsigned, long, long, long, unsigned))
#define LOOP_ORDERED(s) \
    F(bool, GOMP_loop_ordered_##s##_start, (long, long, long, long, long *, long *)) \
    F(bool, GOMP_loop_ordered_##s##_next, (long *, long *))

#define FUNCTIONS \
    F(void, GOMP_parallel, (body_fn *, void *, unsigned, unsigned)) \
    F(unsigned, GOMP_parallel_reductions, (body_fn *, void *, unsigned, unsigned)) \
    F(void, GOMP_parallel_sections, (body_fn *, void *, unsigned, unsigned, unsigned)) \
    CHUNKED(LOOP_CHUNKED) UNCHUNKED(LOOP_UNCHUNKED) CHUNKED_ORDERED(LOOP_ORDERED) \
    F(bool, GOMP_loop_ordered_runtime_start, (long, long, long, long *, long *)) \
    F(bool, GOMP_loop_ordered_runtime_next, (long *, long *)) \
    F(bool, GOMP_loop_start, (long, long, long, long, long, long *, long *, uintptr_t *, void **)) \
    F(bool, GOMP_loop_ordered_start, (long, long, long, long, long, long *, long *, uintptr_t *, void **)) \
    F(void, GOMP_loop_end, (void)) F(void, GOMP_loop_end_nowait, (void)) F(bool, GOMP_loop_end_cancel, (void)) \
    F(unsigned, GOMP_sections_start, (unsigned)) F(unsigned, GOMP_sections_next, (void)) \
    F(unsigned, GOMP_sections2_start, (unsigned, uintptr_t *, void **)) \
    F(void, GOMP_sections_end, (void)) F(void, GOMP_sections_end_nowait, (void)) F(bool, GOMP_sections_end_cancel, (void)) \
    F(void, GOMP_barrier, (void)) F(bool, GOMP_barrier_cancel, (void)) \
    F(void, GOMP_critical_start, (void)) F(void, GOMP_critical_end, (void)) \
    F(void, GOMP_critical_name_start, (void **)) F(void, GOMP_critical_name_end, (void **)) \
    F(void, GOMP_atomic_start, (void)) F(void, GOMP_atomic_end, (void)) \
    F(bool, GOMP_single_start, (void)) F(void *, GOMP_single_copy_start, (void)) F(void, GOMP_single_copy_end, (void *)) \
    F(void, GOMP_ordered_start, (void)) F(void, GOMP_ordered_end, (void)) \
    LOCKS(omp_lock_t, lock) LOCKS(omp_lock_t, lock_) LOCKS(omp_nest_lock_t, nest_lock) LOCKS(omp_nest_lock_t, nest_lock_)
/* For C and, with an underscore, for Fortran. */
#define LOCKS(type, name) \
    F(void, omp_init_##name, (type *)) F(void, omp_destroy_##name, (type *)) F(void, omp_set_##name, (type *)) \
    F(void, omp_unset_##name, (type *)) F(int, omp_test_##name, (type *))

#define F(result, name, parameters) result name parameters;
FUNCTIONS
#undef F

/* ---- the real ones ---- */

static struct {
#define F(result, name, parameters) result (*name) parameters;
    FUNCTIONS
#undef F
} real;

#ifdef RT_STATIC

#define F(result, name, parameters) extern result __real_##name parameters;
FUNCTIONS
#undef F

__attribute__((constructor)) static void find_all(void)
{
#define F(result, name, parameters) real.name = __real_##name;
    FUNCTIONS
#undef F
}

#else

/* Of the locks, whose names begin with an o, there are two versions in GCC's library; others have one. */
static void *find(const char *name)
{
    void *f = name[0] == 'o' ? dlvsym(RTLD_NEXT, name, "OMP_3.0") : NULL;

    return f ? f : dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void find_all(void)
{
#define F(result, name, parameters) *(void **)&real.name = find(#name);
    FUNCTIONS
#undef F
}

#endif

/* The constructors of libraries come before ours. */
#define REAL(name) (__builtin_expect(real.name != NULL, 1) ? real.name : (find_all(), real.name))

/* clang-format on */

#define TELL(name, site, ...) \
    do { \
        const uint64_t arg_[] = { __VA_ARGS__ }; \
        peet_rt_tell(PEET_EV_##name, site, sizeof arg_ / sizeof *arg_, arg_); \
    } while (0)

/* Of a program that is steered: who takes what is free is who comes first in simulated time, so that all that has been said so far has
 * to happen before. */
#define FIRST peet_rt_settle()

/* ---- teams ---- */

/* What a thread is in, and does. */
static RT_TLS struct member {
    uint64_t team; /* what its barrier is called */
    unsigned size, level;
    bool has_chunk, has_waited; /* for its turn in an ordered loop */
    uint64_t chunk;             /* its first iteration */
    long start, step;           /* of an ordered loop; step 0: it is none */
    long before, upto;          /* the chunk, in iterations */
} me;

static RT_TLS char names[LEVELS][SIZES];

struct region {
    uintptr_t reductions; /* libgomp looks for them here */
    body_fn *body;
    void *data;
    char *names; /* of the teams of the thread that met it */
    unsigned level;
    uint64_t site;
};

static void meet(uint64_t site)
{
    if (me.size)
        TELL(barrier_wait, site, me.team, me.size);
}

static void close_chunk(uint64_t site)
{
    if (me.step && me.upto > me.before)
        TELL(post, site, me.team, (uint64_t)me.upto);
    if (me.has_chunk)
        TELL(doall_finish, site, me.chunk);
    me.has_chunk = false;
    me.before = me.upto = 0;
}

static bool open_chunk(bool any, uint64_t first, uint64_t site)
{
    close_chunk(site);
    if (any)
        TELL(doall_start, site, first);
    me.has_chunk = any;
    me.chunk = first;
    me.has_waited = false;
    return any;
}

static void enter(const struct region *r, unsigned number)
{
    unsigned size = (unsigned)omp_get_num_threads();

    me = (struct member){ .team = RT_ADDR(r->names + size % SIZES), .size = size, .level = r->level + 1 };
    if (number == 0)
        TELL(doall_fork, r->site, size);
    meet(r->site);
    TELL(doall_start, r->site, number);
}

/* In each thread of the team. Tasks that are left are done at the barrier behind the region: it comes a little earlier here,
 * so that they stand where they belong. */
static void run_region(void *argument)
{
    const struct region *r = argument;
    struct member outer = me;
    unsigned number = (unsigned)omp_get_thread_num();

    enter(r, number);
    r->body(r->data);
    close_chunk(r->site);
    TELL(doall_finish, r->site, number);
    if (!omp_get_cancellation())
        REAL(GOMP_barrier)();
    meet(r->site);
    if (number == 0)
        TELL(doall_join, r->site, me.size);
    me = outer;
}

#define REGION(body, data) struct region region = { 0, body, data, names[me.level % LEVELS], me.level, RT_SITE }

RT_WRAPPER void GOMP_parallel(body_fn *body, void *data, unsigned threads, unsigned flags)
{
    REGION(body, data);

    REAL(GOMP_parallel)(run_region, &region, threads, flags);
}

RT_WRAPPER unsigned GOMP_parallel_reductions(body_fn *body, void *data, unsigned threads, unsigned flags)
{
    REGION(body, data);

    region.reductions = *(uintptr_t *)data;
    return REAL(GOMP_parallel_reductions)(run_region, &region, threads, flags);
}

RT_WRAPPER void GOMP_parallel_sections(body_fn *body, void *data, unsigned threads, unsigned count, unsigned flags)
{
    REGION(body, data);

    REAL(GOMP_parallel_sections)(run_region, &region, threads, count, flags);
}

RT_WRAPPER void GOMP_barrier(void)
{
    REAL(GOMP_barrier)();
    meet(RT_SITE);
}

RT_WRAPPER bool GOMP_barrier_cancel(void)
{
    bool cancelled = REAL(GOMP_barrier_cancel)();

    if (!cancelled)
        meet(RT_SITE);
    return cancelled;
}

/* ---- loops ---- */

/* An ordered loop begins: chunks are counted in iterations from its start. */
static void order(long start, long step)
{
    me.start = start;
    me.step = step;
    me.before = me.upto = 0;
}

static bool open_ordered(bool any, const long *first, const long *end, uint64_t site)
{
    open_chunk(any, any ? (uint64_t)*first : 0, site);
    if (any && me.step) {
        me.before = (*first - me.start) / me.step;
        me.upto = (*end - me.start + me.step + (me.step > 0 ? -1 : 1)) / me.step;
    }
    return any;
}

/* clang-format off */

#define WRAP_NEXT(s) \
    RT_WRAPPER bool GOMP_loop_##s##_next(long *from, long *to) \
    { \
        FIRST; \
        bool any = REAL(GOMP_loop_##s##_next)(from, to); \
        return open_chunk(any, any ? (uint64_t)*from : 0, RT_SITE); \
    } \
    RT_WRAPPER bool GOMP_loop_ull_##s##_next(ull *from, ull *to) \
    { \
        FIRST; \
        bool any = REAL(GOMP_loop_ull_##s##_next)(from, to); \
        return open_chunk(any, any ? *from : 0, RT_SITE); \
    }

#define WRAP_CHUNKED(s) \
    RT_WRAPPER bool GOMP_loop_##s##_start(long start, long end, long step, long size, long *from, long *to) \
    { \
        FIRST; \
        bool any = REAL(GOMP_loop_##s##_start)(start, end, step, size, from, to); \
        return open_chunk(any, any ? (uint64_t)*from : 0, RT_SITE); \
    } \
    RT_WRAPPER bool GOMP_loop_ull_##s##_start(bool up, ull start, ull end, ull step, ull size, ull *from, ull *to) \
    { \
        FIRST; \
        bool any = REAL(GOMP_loop_ull_##s##_start)(up, start, end, step, size, from, to); \
        return open_chunk(any, any ? *from : 0, RT_SITE); \
    } \
    WRAP_NEXT(s) \
    RT_WRAPPER void GOMP_parallel_loop_##s(body_fn *body, void *data, unsigned threads, long start, long end, long step, \
                                           long size, unsigned flags) \
    { \
        REGION(body, data); \
        REAL(GOMP_parallel_loop_##s)(run_region, &region, threads, start, end, step, size, flags); \
    }

#define WRAP_UNCHUNKED(s) \
    RT_WRAPPER bool GOMP_loop_##s##_start(long start, long end, long step, long *from, long *to) \
    { \
        FIRST; \
        bool any = REAL(GOMP_loop_##s##_start)(start, end, step, from, to); \
        return open_chunk(any, any ? (uint64_t)*from : 0, RT_SITE); \
    } \
    RT_WRAPPER bool GOMP_loop_ull_##s##_start(bool up, ull start, ull end, ull step, ull *from, ull *to) \
    { \
        FIRST; \
        bool any = REAL(GOMP_loop_ull_##s##_start)(up, start, end, step, from, to); \
        return open_chunk(any, any ? *from : 0, RT_SITE); \
    } \
    WRAP_NEXT(s) \
    RT_WRAPPER void GOMP_parallel_loop_##s(body_fn *body, void *data, unsigned threads, long start, long end, long step, \
                                           unsigned flags) \
    { \
        REGION(body, data); \
        REAL(GOMP_parallel_loop_##s)(run_region, &region, threads, start, end, step, flags); \
    }

#define WRAP_ORDERED_NEXT(s) \
    RT_WRAPPER bool GOMP_loop_ordered_##s##_next(long *from, long *to) \
    { \
        close_chunk(RT_SITE); /* before the next thread may go on */ \
        FIRST; \
        bool any = REAL(GOMP_loop_ordered_##s##_next)(from, to); \
        return open_ordered(any, from, to, RT_SITE); \
    }

#define WRAP_ORDERED(s) \
    RT_WRAPPER bool GOMP_loop_ordered_##s##_start(long start, long end, long step, long size, long *from, long *to) \
    { \
        FIRST; \
        bool any = REAL(GOMP_loop_ordered_##s##_start)(start, end, step, size, from, to); \
        order(start, step); \
        return open_ordered(any, from, to, RT_SITE); \
    } \
    WRAP_ORDERED_NEXT(s)

CHUNKED(WRAP_CHUNKED)
UNCHUNKED(WRAP_UNCHUNKED)
CHUNKED_ORDERED(WRAP_ORDERED)
WRAP_ORDERED_NEXT(runtime)
/* clang-format on */

RT_WRAPPER bool GOMP_loop_ordered_runtime_start(long start, long end, long step, long *from, long *to)
{
    FIRST;
    bool any = REAL(GOMP_loop_ordered_runtime_start)(start, end, step, from, to);
    order(start, step);
    return open_ordered(any, from, to, RT_SITE);
}

/* These have reductions of tasks; `from` is not set where a static loop is dealt out by the compiler. */
RT_WRAPPER bool GOMP_loop_start(long start, long end, long step, long schedule, long size, long *from, long *to,
                                uintptr_t *reductions, void **memory)
{
    FIRST;
    bool any = REAL(GOMP_loop_start)(start, end, step, schedule, size, from, to, reductions, memory);

    return from ? open_chunk(any, any ? (uint64_t)*from : 0, RT_SITE) : any;
}

RT_WRAPPER bool GOMP_loop_ordered_start(long start, long end, long step, long schedule, long size, long *from, long *to,
                                        uintptr_t *reductions, void **memory)
{
    FIRST;
    bool any = REAL(GOMP_loop_ordered_start)(start, end, step, schedule, size, from, to, reductions, memory);

    order(start, step);
    return from ? open_ordered(any, from, to, RT_SITE) : any;
}

static void end_loop(uint64_t site)
{
    close_chunk(site);
    me.step = 0;
}

RT_WRAPPER void GOMP_loop_end(void)
{
    end_loop(RT_SITE);
    REAL(GOMP_loop_end)();
    meet(RT_SITE);
}

RT_WRAPPER void GOMP_loop_end_nowait(void)
{
    end_loop(RT_SITE);
    REAL(GOMP_loop_end_nowait)();
}

RT_WRAPPER bool GOMP_loop_end_cancel(void)
{
    end_loop(RT_SITE);
    bool cancelled = REAL(GOMP_loop_end_cancel)();
    if (!cancelled)
        meet(RT_SITE);
    return cancelled;
}

RT_WRAPPER void GOMP_ordered_start(void)
{
    FIRST;
    REAL(GOMP_ordered_start)();
    if (me.step && me.before > 0 && !me.has_waited)
        TELL(wait, RT_SITE, me.team, (uint64_t)me.before);
    me.has_waited = true;
}

RT_WRAPPER void GOMP_ordered_end(void)
{
    REAL(GOMP_ordered_end)();
}

/* ---- sections: numbered from 1, 0 is the end ---- */

RT_WRAPPER unsigned GOMP_sections_start(unsigned count)
{
    FIRST;
    unsigned section = REAL(GOMP_sections_start)(count);

    open_chunk(section != 0, section, RT_SITE);
    return section;
}

RT_WRAPPER unsigned GOMP_sections2_start(unsigned count, uintptr_t *reductions, void **memory)
{
    FIRST;
    unsigned section = REAL(GOMP_sections2_start)(count, reductions, memory);

    open_chunk(section != 0, section, RT_SITE);
    return section;
}

RT_WRAPPER unsigned GOMP_sections_next(void)
{
    FIRST;
    unsigned section = REAL(GOMP_sections_next)();

    open_chunk(section != 0, section, RT_SITE);
    return section;
}

RT_WRAPPER void GOMP_sections_end(void)
{
    close_chunk(RT_SITE);
    REAL(GOMP_sections_end)();
    meet(RT_SITE);
}

RT_WRAPPER void GOMP_sections_end_nowait(void)
{
    close_chunk(RT_SITE);
    REAL(GOMP_sections_end_nowait)();
}

RT_WRAPPER bool GOMP_sections_end_cancel(void)
{
    close_chunk(RT_SITE);
    bool cancelled = REAL(GOMP_sections_end_cancel)();
    if (!cancelled)
        meet(RT_SITE);
    return cancelled;
}

/* ---- single: a copy has a barrier in it, in the thread that makes it at its end ---- */

RT_WRAPPER bool GOMP_single_start(void)
{
    FIRST;
    bool mine = REAL(GOMP_single_start)();

    TELL(once, RT_SITE, me.team, mine);
    return mine;
}

RT_WRAPPER void *GOMP_single_copy_start(void)
{
    FIRST;
    void *copy = REAL(GOMP_single_copy_start)();

    if (copy)
        meet(RT_SITE);
    TELL(once, RT_SITE, me.team, copy == NULL);
    return copy;
}

RT_WRAPPER void GOMP_single_copy_end(void *copy)
{
    REAL(GOMP_single_copy_end)(copy);
    meet(RT_SITE);
}

/* ---- locks ---- */

static char nameless, atomic; /* what the locks without addresses are called */

/* clang-format off */
#define TAKES(name, declared, passed, lock) \
    RT_WRAPPER void name declared \
    { \
        const uint64_t addr = RT_ADDR(lock); \
        uint64_t reply; \
        bool told = peet_rt_ask(PEET_EV_mutex_lock, RT_SITE, 1, &addr, &reply); \
        REAL(name) passed; \
        if (!told) \
            TELL(mutex_lock, RT_SITE, addr); \
    }
#define GIVES(name, declared, passed, lock) \
    RT_WRAPPER void name declared { TELL(mutex_unlock, RT_SITE, RT_ADDR(lock)); REAL(name) passed; }

TAKES(GOMP_critical_start, (void), (), &nameless)
GIVES(GOMP_critical_end, (void), (), &nameless)
TAKES(GOMP_critical_name_start, (void **lock), (lock), lock)
GIVES(GOMP_critical_name_end, (void **lock), (lock), lock)
TAKES(GOMP_atomic_start, (void), (), &atomic)
GIVES(GOMP_atomic_end, (void), (), &atomic)

#define LOCK(type, name) \
    RT_WRAPPER void omp_init_##name(type *lock) \
    { \
        REAL(omp_init_##name)(lock); \
        TELL(mutex_init, RT_SITE, RT_ADDR(lock)); \
    } \
    RT_WRAPPER void omp_destroy_##name(type *lock) \
    { \
        TELL(mutex_destroy, RT_SITE, RT_ADDR(lock)); \
        REAL(omp_destroy_##name)(lock); \
    } \
    RT_WRAPPER int omp_test_##name(type *lock) \
    { \
        const uint64_t arg[] = { RT_ADDR(lock), 0 }; \
        uint64_t reply; \
        if (peet_rt_ask(PEET_EV_mutex_trylock, RT_SITE, 2, arg, &reply)) \
            return reply ? 0 : REAL(omp_test_##name)(lock); \
        int times = REAL(omp_test_##name)(lock); \
        TELL(mutex_trylock, RT_SITE, RT_ADDR(lock), times == 0); \
        return times; \
    } \
    TAKES(omp_set_##name, (type *lock), (lock), lock) \
    GIVES(omp_unset_##name, (type *lock), (lock), lock)

LOCK(omp_lock_t, lock)
LOCK(omp_lock_t, lock_)
LOCK(omp_nest_lock_t, nest_lock)
LOCK(omp_nest_lock_t, nest_lock_)
/* clang-format on */
