/* SPDX-License-Identifier: MIT */
/* OpenMP: GCC's directives become calls of libgomp, and these are events here. Linked only into programs that have such
 * calls.
 *     parallel region     in the thread that begins it: doall_fork and doall_join with the number of threads;
 *                         in each of its threads, from 0: barrier_wait, doall_start …
 *                         doall_finish with its number, barrier_wait
 *     chunk of a loop     doall_start … doall_finish with its first iteration, if libgomp assigns chunks;
 *                         a section is one chunk
 *     barrier             barrier_wait, also at the ends of loops and sections that have one
 *     critical, atomic    mutex_lock, mutex_unlock; omp_*_lock likewise
 *     single              once
 *     ordered             wait, post: with the number of iterations before the chunk and up to its end
 * The barrier at the beginning of a region is there because its threads wait for their master in the library,
 * unrecorded. The barrier of a team is identified by an address in its master's memory, a different one for each number
 * of threads.
 * Left out: dependences between tasks; a task is code of the thread that runs it. Doacross loops, teams and targets.
 * Allocations of libgomp are events, like others of the program. */
#include <dlfcn.h>

#include "capture/runtime/rt.h"
#include "capture/runtime/host.h"

enum { LEVELS = 4, SIZES = 256 }; /* nested regions and numbers of threads that have separate names */

/* Declared here, because omp.h belongs to GCC; the contents of locks are not used. */
typedef struct omp_lock omp_lock_t;
typedef struct omp_nest_lock omp_nest_lock_t;
typedef unsigned long long ull;
typedef void body_fn(void *);

int omp_get_num_threads(void);
int omp_get_thread_num(void);
int omp_get_cancellation(void);

/* clang-format off */

/* ---- functions: F(result, name, parameters) ---- */

/* Schedules of loops. */
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

/* ---- the real functions ---- */

static struct {
#define F(result, name, parameters) result (*name) parameters;
    FUNCTIONS
#undef F
} real;

#ifdef RT_STATIC

#define F(result, name, parameters) extern result __real_##name parameters;
FUNCTIONS
#undef F

__attribute__((constructor)) static void omp_find_all(void)
{
#define F(result, name, parameters) real.name = __real_##name;
    FUNCTIONS
#undef F
}

#else

/* GCC's library has two versions of the lock functions, whose names begin with o; other libraries have one. */
static void *omp_find(const char *name)
{
    void *f = name[0] == 'o' ? dlvsym(RTLD_NEXT, name, "OMP_3.0") : NULL;

    return f ? f : dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void omp_find_all(void)
{
#define F(result, name, parameters) *(void **)&real.name = omp_find(#name);
    FUNCTIONS
#undef F
}

#endif

/* Constructors of libraries run before this file's. */
#define REAL(name) (__builtin_expect(real.name != NULL, 1) ? real.name : (omp_find_all(), real.name))

/* clang-format on */

#define OMP_EVENT(name, site, ...) \
    do { \
        const uint64_t arg_[] = { __VA_ARGS__ }; \
        peet_rt_report(PEET_EV_##name, site, sizeof arg_ / sizeof *arg_, arg_); \
    } while (0)

/* In a controlled program the first thread in simulated time takes what is free, so all earlier events have to happen
 * before. */
#define SYNCHRONIZE_FIRST peet_rt_synchronize()

/* ---- teams ---- */

/* The calling thread's part in its team. */
static RT_TLS struct omp_member {
    uint64_t team; /* address that identifies the team's barrier */
    unsigned size, level;
    bool has_chunk, has_waited; /* has_waited: for its turn in an ordered loop */
    uint64_t chunk;             /* its first iteration */
    long start, step;           /* of an ordered loop; step 0: none */
    long before, upto;          /* the chunk's iterations [before, upto) */
} current;

static RT_TLS char names[LEVELS][SIZES];

/* A parallel region, for the threads of its team. */
struct omp_region {
    uintptr_t reductions; /* libgomp reads it at this place */
    body_fn *body;        /* the compiler's function, and its argument */
    void *data;
    char *names;    /* of the teams of the thread that began it */
    unsigned level; /* regions around it */
    uint64_t site;  /* return address of the call that began it */
};

static void team_barrier(uint64_t site)
{
    if (current.size)
        OMP_EVENT(barrier_wait, site, current.team, current.size);
}

static void omp_close_chunk(uint64_t site)
{
    if (current.step && current.upto > current.before)
        OMP_EVENT(post, site, current.team, (uint64_t)current.upto);
    if (current.has_chunk)
        OMP_EVENT(doall_finish, site, current.chunk);
    current.has_chunk = false;
    current.before = current.upto = 0;
}

static bool omp_open_chunk(bool any, uint64_t first, uint64_t site)
{
    omp_close_chunk(site);
    if (any)
        OMP_EVENT(doall_start, site, first);
    current.has_chunk = any;
    current.chunk = first;
    current.has_waited = false;
    return any;
}

static void team_enter(const struct omp_region *r, unsigned number)
{
    unsigned size = (unsigned)omp_get_num_threads();

    current = (struct omp_member){ .team = RT_ADDR(r->names + size % SIZES), .size = size, .level = r->level + 1 };
    if (number == 0)
        OMP_EVENT(doall_fork, r->site, size);
    team_barrier(r->site);
    OMP_EVENT(doall_start, r->site, number);
}

/* Runs in each thread of the team. Tasks that are left run at the barrier after the region. That barrier comes a little
 * earlier here, so that they belong to the region. */
static void omp_run_region(void *argument)
{
    const struct omp_region *r = argument;
    struct omp_member outer = current;
    unsigned number = (unsigned)omp_get_thread_num();

    team_enter(r, number);
    r->body(r->data);
    omp_close_chunk(r->site);
    OMP_EVENT(doall_finish, r->site, number);
    if (!omp_get_cancellation())
        REAL(GOMP_barrier)();
    team_barrier(r->site);
    if (number == 0)
        OMP_EVENT(doall_join, r->site, current.size);
    current = outer;
}

#define REGION(body, data) \
    struct omp_region region = { 0, body, data, names[current.level % LEVELS], current.level, RT_SITE }

RT_WRAPPER void GOMP_parallel(body_fn *body, void *data, unsigned threads, unsigned flags)
{
    REGION(body, data);

    REAL(GOMP_parallel)(omp_run_region, &region, threads, flags);
}

RT_WRAPPER unsigned GOMP_parallel_reductions(body_fn *body, void *data, unsigned threads, unsigned flags)
{
    REGION(body, data);

    region.reductions = *(uintptr_t *)data;
    return REAL(GOMP_parallel_reductions)(omp_run_region, &region, threads, flags);
}

RT_WRAPPER void GOMP_parallel_sections(body_fn *body, void *data, unsigned threads, unsigned count, unsigned flags)
{
    REGION(body, data);

    REAL(GOMP_parallel_sections)(omp_run_region, &region, threads, count, flags);
}

RT_WRAPPER void GOMP_barrier(void)
{
    REAL(GOMP_barrier)();
    team_barrier(RT_SITE);
}

RT_WRAPPER bool GOMP_barrier_cancel(void)
{
    bool cancelled = REAL(GOMP_barrier_cancel)();

    if (!cancelled)
        team_barrier(RT_SITE);
    return cancelled;
}

/* ---- loops ---- */

/* Begins an ordered loop: chunks are counted in iterations from its start. */
static void begin_ordered(long start, long step)
{
    current.start = start;
    current.step = step;
    current.before = current.upto = 0;
}

static bool omp_open_ordered(bool any, const long *first, const long *end, uint64_t site)
{
    omp_open_chunk(any, any ? (uint64_t)*first : 0, site);
    if (any && current.step) {
        current.before = (*first - current.start) / current.step;
        current.upto = (*end - current.start + current.step + (current.step > 0 ? -1 : 1)) / current.step;
    }
    return any;
}

/* clang-format off */

#define WRAP_NEXT(s) \
    RT_WRAPPER bool GOMP_loop_##s##_next(long *from, long *to) \
    { \
        SYNCHRONIZE_FIRST; \
        bool any = REAL(GOMP_loop_##s##_next)(from, to); \
        return omp_open_chunk(any, any ? (uint64_t)*from : 0, RT_SITE); \
    } \
    RT_WRAPPER bool GOMP_loop_ull_##s##_next(ull *from, ull *to) \
    { \
        SYNCHRONIZE_FIRST; \
        bool any = REAL(GOMP_loop_ull_##s##_next)(from, to); \
        return omp_open_chunk(any, any ? *from : 0, RT_SITE); \
    }

#define WRAP_CHUNKED(s) \
    RT_WRAPPER bool GOMP_loop_##s##_start(long start, long end, long step, long size, long *from, long *to) \
    { \
        SYNCHRONIZE_FIRST; \
        bool any = REAL(GOMP_loop_##s##_start)(start, end, step, size, from, to); \
        return omp_open_chunk(any, any ? (uint64_t)*from : 0, RT_SITE); \
    } \
    RT_WRAPPER bool GOMP_loop_ull_##s##_start(bool up, ull start, ull end, ull step, ull size, ull *from, ull *to) \
    { \
        SYNCHRONIZE_FIRST; \
        bool any = REAL(GOMP_loop_ull_##s##_start)(up, start, end, step, size, from, to); \
        return omp_open_chunk(any, any ? *from : 0, RT_SITE); \
    } \
    WRAP_NEXT(s) \
    RT_WRAPPER void GOMP_parallel_loop_##s(body_fn *body, void *data, unsigned threads, long start, long end, long step, \
                                           long size, unsigned flags) \
    { \
        REGION(body, data); \
        REAL(GOMP_parallel_loop_##s)(omp_run_region, &region, threads, start, end, step, size, flags); \
    }

#define WRAP_UNCHUNKED(s) \
    RT_WRAPPER bool GOMP_loop_##s##_start(long start, long end, long step, long *from, long *to) \
    { \
        SYNCHRONIZE_FIRST; \
        bool any = REAL(GOMP_loop_##s##_start)(start, end, step, from, to); \
        return omp_open_chunk(any, any ? (uint64_t)*from : 0, RT_SITE); \
    } \
    RT_WRAPPER bool GOMP_loop_ull_##s##_start(bool up, ull start, ull end, ull step, ull *from, ull *to) \
    { \
        SYNCHRONIZE_FIRST; \
        bool any = REAL(GOMP_loop_ull_##s##_start)(up, start, end, step, from, to); \
        return omp_open_chunk(any, any ? *from : 0, RT_SITE); \
    } \
    WRAP_NEXT(s) \
    RT_WRAPPER void GOMP_parallel_loop_##s(body_fn *body, void *data, unsigned threads, long start, long end, long step, \
                                           unsigned flags) \
    { \
        REGION(body, data); \
        REAL(GOMP_parallel_loop_##s)(omp_run_region, &region, threads, start, end, step, flags); \
    }

#define WRAP_ORDERED_NEXT(s) \
    RT_WRAPPER bool GOMP_loop_ordered_##s##_next(long *from, long *to) \
    { \
        omp_close_chunk(RT_SITE); /* before the next thread may continue */ \
        SYNCHRONIZE_FIRST; \
        bool any = REAL(GOMP_loop_ordered_##s##_next)(from, to); \
        return omp_open_ordered(any, from, to, RT_SITE); \
    }

#define WRAP_ORDERED(s) \
    RT_WRAPPER bool GOMP_loop_ordered_##s##_start(long start, long end, long step, long size, long *from, long *to) \
    { \
        SYNCHRONIZE_FIRST; \
        bool any = REAL(GOMP_loop_ordered_##s##_start)(start, end, step, size, from, to); \
        begin_ordered(start, step); \
        return omp_open_ordered(any, from, to, RT_SITE); \
    } \
    WRAP_ORDERED_NEXT(s)

CHUNKED(WRAP_CHUNKED)
UNCHUNKED(WRAP_UNCHUNKED)
CHUNKED_ORDERED(WRAP_ORDERED)
WRAP_ORDERED_NEXT(runtime)
/* clang-format on */

RT_WRAPPER bool GOMP_loop_ordered_runtime_start(long start, long end, long step, long *from, long *to)
{
    SYNCHRONIZE_FIRST;
    bool any = REAL(GOMP_loop_ordered_runtime_start)(start, end, step, from, to);
    begin_ordered(start, step);
    return omp_open_ordered(any, from, to, RT_SITE);
}

/* These have reductions of tasks; `from` is NULL where the compiler distributes a static loop. */
RT_WRAPPER bool GOMP_loop_start(long start, long end, long step, long schedule, long size, long *from, long *to,
                                uintptr_t *reductions, void **memory)
{
    SYNCHRONIZE_FIRST;
    bool any = REAL(GOMP_loop_start)(start, end, step, schedule, size, from, to, reductions, memory);

    return from ? omp_open_chunk(any, any ? (uint64_t)*from : 0, RT_SITE) : any;
}

RT_WRAPPER bool GOMP_loop_ordered_start(long start, long end, long step, long schedule, long size, long *from, long *to,
                                        uintptr_t *reductions, void **memory)
{
    SYNCHRONIZE_FIRST;
    bool any = REAL(GOMP_loop_ordered_start)(start, end, step, schedule, size, from, to, reductions, memory);

    begin_ordered(start, step);
    return from ? omp_open_ordered(any, from, to, RT_SITE) : any;
}

static void omp_end_loop(uint64_t site)
{
    omp_close_chunk(site);
    current.step = 0;
}

RT_WRAPPER void GOMP_loop_end(void)
{
    omp_end_loop(RT_SITE);
    REAL(GOMP_loop_end)();
    team_barrier(RT_SITE);
}

RT_WRAPPER void GOMP_loop_end_nowait(void)
{
    omp_end_loop(RT_SITE);
    REAL(GOMP_loop_end_nowait)();
}

RT_WRAPPER bool GOMP_loop_end_cancel(void)
{
    omp_end_loop(RT_SITE);
    bool cancelled = REAL(GOMP_loop_end_cancel)();
    if (!cancelled)
        team_barrier(RT_SITE);
    return cancelled;
}

RT_WRAPPER void GOMP_ordered_start(void)
{
    SYNCHRONIZE_FIRST;
    REAL(GOMP_ordered_start)();
    if (current.step && current.before > 0 && !current.has_waited)
        OMP_EVENT(wait, RT_SITE, current.team, (uint64_t)current.before);
    current.has_waited = true;
}

RT_WRAPPER void GOMP_ordered_end(void)
{
    REAL(GOMP_ordered_end)();
}

/* ---- sections: numbered from 1; 0 is the end ---- */

RT_WRAPPER unsigned GOMP_sections_start(unsigned count)
{
    SYNCHRONIZE_FIRST;
    unsigned section = REAL(GOMP_sections_start)(count);

    omp_open_chunk(section != 0, section, RT_SITE);
    return section;
}

RT_WRAPPER unsigned GOMP_sections2_start(unsigned count, uintptr_t *reductions, void **memory)
{
    SYNCHRONIZE_FIRST;
    unsigned section = REAL(GOMP_sections2_start)(count, reductions, memory);

    omp_open_chunk(section != 0, section, RT_SITE);
    return section;
}

RT_WRAPPER unsigned GOMP_sections_next(void)
{
    SYNCHRONIZE_FIRST;
    unsigned section = REAL(GOMP_sections_next)();

    omp_open_chunk(section != 0, section, RT_SITE);
    return section;
}

RT_WRAPPER void GOMP_sections_end(void)
{
    omp_close_chunk(RT_SITE);
    REAL(GOMP_sections_end)();
    team_barrier(RT_SITE);
}

RT_WRAPPER void GOMP_sections_end_nowait(void)
{
    omp_close_chunk(RT_SITE);
    REAL(GOMP_sections_end_nowait)();
}

RT_WRAPPER bool GOMP_sections_end_cancel(void)
{
    omp_close_chunk(RT_SITE);
    bool cancelled = REAL(GOMP_sections_end_cancel)();
    if (!cancelled)
        team_barrier(RT_SITE);
    return cancelled;
}

/* ---- single: a copy contains a barrier, which the thread that makes the copy reaches at its end ---- */

RT_WRAPPER bool GOMP_single_start(void)
{
    SYNCHRONIZE_FIRST;
    bool mine = REAL(GOMP_single_start)();

    OMP_EVENT(once, RT_SITE, current.team, mine);
    return mine;
}

RT_WRAPPER void *GOMP_single_copy_start(void)
{
    SYNCHRONIZE_FIRST;
    void *copy = REAL(GOMP_single_copy_start)();

    if (copy)
        team_barrier(RT_SITE);
    OMP_EVENT(once, RT_SITE, current.team, copy == NULL);
    return copy;
}

RT_WRAPPER void GOMP_single_copy_end(void *copy)
{
    REAL(GOMP_single_copy_end)(copy);
    team_barrier(RT_SITE);
}

/* ---- locks ---- */

static char nameless, atomic; /* addresses for locks without an address */

/* clang-format off */
#define TAKES(name, declared, passed, lock) \
    RT_WRAPPER void name declared \
    { \
        const uint64_t addr = RT_ADDR(lock); \
        uint64_t reply; \
        bool told = peet_rt_ask(PEET_EV_mutex_lock, RT_SITE, 1, &addr, &reply); \
        REAL(name) passed; \
        if (!told) \
            OMP_EVENT(mutex_lock, RT_SITE, addr); \
    }
#define GIVES(name, declared, passed, lock) \
    RT_WRAPPER void name declared { OMP_EVENT(mutex_unlock, RT_SITE, RT_ADDR(lock)); REAL(name) passed; }

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
        OMP_EVENT(mutex_init, RT_SITE, RT_ADDR(lock)); \
    } \
    RT_WRAPPER void omp_destroy_##name(type *lock) \
    { \
        OMP_EVENT(mutex_destroy, RT_SITE, RT_ADDR(lock)); \
        REAL(omp_destroy_##name)(lock); \
    } \
    RT_WRAPPER int omp_test_##name(type *lock) \
    { \
        const uint64_t arg[] = { RT_ADDR(lock), 0 }; \
        uint64_t reply; \
        if (peet_rt_ask(PEET_EV_mutex_trylock, RT_SITE, 2, arg, &reply)) \
            return reply ? 0 : REAL(omp_test_##name)(lock); \
        int times = REAL(omp_test_##name)(lock); \
        OMP_EVENT(mutex_trylock, RT_SITE, RT_ADDR(lock), times == 0); \
        return times; \
    } \
    TAKES(omp_set_##name, (type *lock), (lock), lock) \
    GIVES(omp_unset_##name, (type *lock), (lock), lock)

LOCK(omp_lock_t, lock)
LOCK(omp_lock_t, lock_)
LOCK(omp_nest_lock_t, nest_lock)
LOCK(omp_nest_lock_t, nest_lock_)
/* clang-format on */
