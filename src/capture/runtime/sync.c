/* SPDX-License-Identifier: MIT */
/* Locks, conditions, barriers, semaphores. A call that acquires or waits is an event after it is done, one that
 * releases is an event before: so in every stream a lock is held between its events.
 * In a controlled program a call that acquires or waits is an event first, and continues when the machine allows it.
 * Then the real lock is free, because its holder released it before the machine received that event. Time limits have
 * no effect there, except for conditions. */
#include <errno.h>
#include <sys/syscall.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"
#include "capture/runtime/host.h"

/* ---- turns at mutexes ---- */

/* What a program decides under the mutex of a condition orders its threads, also where no thread had to wait. So from
 * the first use of a condition on, each acquisition of a mutex has a number. It is incremented while the mutex is held;
 * mutexes that share a counter leave numbers out. */
enum { TURN_BITS = 10 };
static _Atomic uint64_t turns[1 << TURN_BITS];
static atomic_bool has_conditions;

static void note_condition(void)
{
    if (!atomic_load_explicit(&has_conditions, memory_order_relaxed))
        atomic_store_explicit(&has_conditions, true, memory_order_relaxed);
}

static void note_turn(uint64_t site, uint64_t lock)
{
    if (atomic_load_explicit(&has_conditions, memory_order_relaxed)) {
        uint64_t number =
            atomic_fetch_add_explicit(&turns[lock * 0x9e3779b97f4a7c15 >> (64 - TURN_BITS)], 1, memory_order_relaxed);
        RT_EVENT(lock_turn, site, lock, number + 1);
    }
}

/* clang-format off */

#define IN_TURN(object) note_turn(RT_SITE, RT_ADDR(object))
#define IN_NO_TURN(object) (void)0

/* int name(type *object): an event after success. */
#define TAKES(name, type, event, quiet, turn) \
    RT_WRAPPER int name(type *object) \
    { \
        const volatile bool controlled = peet_rt_is_controlled(); /* a wait may be left by a longjmp */ \
        int r; \
        if (controlled) { \
            RT_EVENT(event, RT_SITE, RT_ADDR(object)); \
            if (peet_rt_stop() == RAW_CANCELLED) \
                peet_rt_cancel_here(); \
        } \
        quiet(r, RT_REAL(name)(object)); \
        if (!controlled && (r == 0 || r == EOWNERDEAD)) { \
            RT_EVENT(event, RT_SITE, RT_ADDR(object)); \
            turn(object); \
        } \
        return r; \
    }

/* An event before the call. */
#define GIVES(name, type, event, before) \
    RT_WRAPPER int name(type *object) \
    { \
        int r; \
        before; \
        RT_EVENT(event, RT_SITE, RT_ADDR(object)); \
        RT_QUIET(r, RT_REAL(name)(object)); \
        return r; \
    }

/* An event with the result. busy: the result if another thread has the object. */
#define TRIES(name, type, event, busy, turn) \
    RT_WRAPPER int name(type *object) \
    { \
        int r; \
        if (peet_rt_is_controlled()) { \
            RT_EVENT(event, RT_SITE, RT_ADDR(object), 0); \
            if (peet_rt_stop()) \
                return (busy); \
            RT_QUIET(r, RT_REAL(name)(object)); \
            return r; \
        } \
        RT_QUIET(r, RT_REAL(name)(object)); \
        RT_EVENT(event, RT_SITE, RT_ADDR(object), r == EOWNERDEAD ? 0 : (uint64_t)(unsigned)r); \
        if (r == 0 || r == EOWNERDEAD) \
            turn(object); \
        return r; \
    }

TAKES(pthread_mutex_lock, pthread_mutex_t, mutex_lock, RT_QUIET, IN_TURN)
TRIES(pthread_mutex_trylock, pthread_mutex_t, mutex_trylock, EBUSY, IN_TURN)
GIVES(pthread_mutex_unlock, pthread_mutex_t, mutex_unlock, (void)0)
GIVES(pthread_mutex_destroy, pthread_mutex_t, mutex_destroy, (void)0)

TAKES(pthread_rwlock_rdlock, pthread_rwlock_t, rwlock_rdlock, RT_QUIET, IN_NO_TURN)
TRIES(pthread_rwlock_tryrdlock, pthread_rwlock_t, rwlock_tryrdlock, EBUSY, IN_NO_TURN)
TAKES(pthread_rwlock_wrlock, pthread_rwlock_t, rwlock_wrlock, RT_QUIET, IN_NO_TURN)
TRIES(pthread_rwlock_trywrlock, pthread_rwlock_t, rwlock_trywrlock, EBUSY, IN_NO_TURN)
GIVES(pthread_rwlock_unlock, pthread_rwlock_t, rwlock_unlock, (void)0)

TAKES(pthread_spin_lock, pthread_spinlock_t, spin_lock, RT_QUIET, IN_NO_TURN)
TRIES(pthread_spin_trylock, pthread_spinlock_t, spin_trylock, EBUSY, IN_NO_TURN)
GIVES(pthread_spin_unlock, pthread_spinlock_t, spin_unlock, (void)0)

GIVES(pthread_cond_signal, pthread_cond_t, cond_signal, note_condition())
GIVES(pthread_cond_broadcast, pthread_cond_t, cond_broadcast, note_condition())

TAKES(sem_wait, sem_t, sem_wait, RT_QUIET_WAIT, IN_NO_TURN)
TRIES(sem_trywait, sem_t, sem_trywait, (errno = EAGAIN, -1), IN_NO_TURN)
GIVES(sem_post, sem_t, sem_post, (void)0)

TAKES(mtx_lock, mtx_t, mutex_lock, RT_QUIET, IN_TURN)
TRIES(mtx_trylock, mtx_t, mutex_trylock, thrd_busy, IN_TURN)
GIVES(mtx_unlock, mtx_t, mutex_unlock, (void)0)
GIVES(cnd_signal, cnd_t, cond_signal, note_condition())
GIVES(cnd_broadcast, cnd_t, cond_broadcast, note_condition())
/* clang-format on */

RT_WRAPPER int pthread_mutex_init(pthread_mutex_t *lock, const pthread_mutexattr_t *attr)
{
    int r;

    RT_QUIET(r, RT_REAL(pthread_mutex_init)(lock, attr));
    if (r == 0)
        RT_EVENT(mutex_init, RT_SITE, RT_ADDR(lock));
    return r;
}

RT_WRAPPER int mtx_init(mtx_t *lock, int type)
{
    int r;

    RT_QUIET(r, RT_REAL(mtx_init)(lock, type));
    if (r == thrd_success)
        RT_EVENT(mutex_init, RT_SITE, RT_ADDR(lock));
    return r;
}

RT_WRAPPER void mtx_destroy(mtx_t *lock)
{
    RT_EVENT(mutex_destroy, RT_SITE, RT_ADDR(lock));
    peet_rt_self.depth++;
    RT_REAL(mtx_destroy)(lock);
    peet_rt_self.depth--;
}

/* ---- with a time limit: events like those of try functions ---- */

/* clang-format off */

/* In a controlled program these wait without a limit, and succeed. */
#define CONTROLLED_LOCK(name, event, object, quiet, ...) \
        if (peet_rt_is_controlled()) { \
            RT_EVENT(UNLIMITED_##event, RT_SITE, RT_ADDR(object)); \
            peet_rt_stop(); \
            quiet(r, RT_REAL(name)(object, __VA_ARGS__)); \
            return r; \
        }
#define PEET_EV_UNLIMITED_mutex_trylock PEET_EV_mutex_lock
#define PEET_EV_UNLIMITED_rwlock_tryrdlock PEET_EV_rwlock_rdlock
#define PEET_EV_UNLIMITED_rwlock_trywrlock PEET_EV_rwlock_wrlock
#define PEET_EV_UNLIMITED_sem_trywait PEET_EV_sem_wait

#define LIMITED(name, type, event, quiet, turn) \
    RT_WRAPPER int name(type *restrict object, const struct timespec *restrict until) \
    { \
        int r; \
        CONTROLLED_LOCK(name, event, object, quiet, until) \
        quiet(r, RT_REAL(name)(object, until)); \
        RT_EVENT(event, RT_SITE, RT_ADDR(object), r == EOWNERDEAD ? 0 : (uint64_t)(unsigned)r); \
        if (r == 0 || r == EOWNERDEAD) \
            turn(object); \
        return r; \
    }

#define LIMITED_BY_CLOCK(name, type, event, quiet, turn) \
    RT_WRAPPER int name(type *restrict object, clockid_t clock, const struct timespec *restrict until) \
    { \
        int r; \
        CONTROLLED_LOCK(name, event, object, quiet, clock, until) \
        quiet(r, RT_REAL(name)(object, clock, until)); \
        RT_EVENT(event, RT_SITE, RT_ADDR(object), r == EOWNERDEAD ? 0 : (uint64_t)(unsigned)r); \
        if (r == 0 || r == EOWNERDEAD) \
            turn(object); \
        return r; \
    }

LIMITED(pthread_mutex_timedlock, pthread_mutex_t, mutex_trylock, RT_QUIET, IN_TURN)
LIMITED_BY_CLOCK(pthread_mutex_clocklock, pthread_mutex_t, mutex_trylock, RT_QUIET, IN_TURN)
LIMITED(mtx_timedlock, mtx_t, mutex_trylock, RT_QUIET, IN_TURN)
LIMITED(pthread_rwlock_timedrdlock, pthread_rwlock_t, rwlock_tryrdlock, RT_QUIET, IN_NO_TURN)
LIMITED_BY_CLOCK(pthread_rwlock_clockrdlock, pthread_rwlock_t, rwlock_tryrdlock, RT_QUIET, IN_NO_TURN)
LIMITED(pthread_rwlock_timedwrlock, pthread_rwlock_t, rwlock_trywrlock, RT_QUIET, IN_NO_TURN)
LIMITED_BY_CLOCK(pthread_rwlock_clockwrlock, pthread_rwlock_t, rwlock_trywrlock, RT_QUIET, IN_NO_TURN)
LIMITED(sem_timedwait, sem_t, sem_trywait, RT_QUIET_WAIT, IN_NO_TURN)
LIMITED_BY_CLOCK(sem_clockwait, sem_t, sem_trywait, RT_QUIET_WAIT, IN_NO_TURN)
/* clang-format on */

/* ---- conditions ---- */

/* Releases the lock. Other threads run until the machine reports that the condition was signalled and the thread has
 * the lock again. */
#define CONTROLLED_WAIT(kind, lock_, unlock, relock, result, ...) \
    do { \
        if (peet_rt_is_controlled()) { \
            int ignored_; \
            RT_QUIET(ignored_, RT_REAL(unlock)(lock_)); \
            RT_EVENT(kind, RT_SITE, __VA_ARGS__); \
            uint64_t reply_ = peet_rt_stop(); \
            RT_QUIET(ignored_, RT_REAL(relock)(lock_)); \
            (void)ignored_; \
            if (reply_ == RAW_CANCELLED) \
                peet_rt_cancel_here(); \
            return reply_ ? (result) : 0; \
        } \
    } while (0)

RT_WRAPPER int pthread_cond_wait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict lock)
{
    int r;

    note_condition();
    CONTROLLED_WAIT(cond_wait, lock, pthread_mutex_unlock, pthread_mutex_lock, 0, RT_ADDR(cond), RT_ADDR(lock));
    RT_QUIET_WAIT(r, RT_REAL(pthread_cond_wait)(cond, lock));
    if (r == 0) {
        RT_EVENT(cond_wait, RT_SITE, RT_ADDR(cond), RT_ADDR(lock));
        note_turn(RT_SITE, RT_ADDR(lock));
    }
    return r;
}

RT_WRAPPER int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict lock,
                                      const struct timespec *restrict until)
{
    int r;

    note_condition();
    CONTROLLED_WAIT(cond_timedwait, lock, pthread_mutex_unlock, pthread_mutex_lock, ETIMEDOUT, RT_ADDR(cond),
                    RT_ADDR(lock), 0);
    RT_QUIET_WAIT(r, RT_REAL(pthread_cond_timedwait)(cond, lock, until));
    RT_EVENT(cond_timedwait, RT_SITE, RT_ADDR(cond), RT_ADDR(lock), (uint64_t)(unsigned)r);
    note_turn(RT_SITE, RT_ADDR(lock));
    return r;
}

RT_WRAPPER int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict lock, clockid_t clock,
                                      const struct timespec *restrict until)
{
    int r;

    note_condition();
    CONTROLLED_WAIT(cond_timedwait, lock, pthread_mutex_unlock, pthread_mutex_lock, ETIMEDOUT, RT_ADDR(cond),
                    RT_ADDR(lock), 0);
    RT_QUIET_WAIT(r, RT_REAL(pthread_cond_clockwait)(cond, lock, clock, until));
    RT_EVENT(cond_timedwait, RT_SITE, RT_ADDR(cond), RT_ADDR(lock), (uint64_t)(unsigned)r);
    note_turn(RT_SITE, RT_ADDR(lock));
    return r;
}

RT_WRAPPER int cnd_wait(cnd_t *cond, mtx_t *lock)
{
    int r;

    note_condition();
    CONTROLLED_WAIT(cond_wait, lock, mtx_unlock, mtx_lock, 0, RT_ADDR(cond), RT_ADDR(lock));
    RT_QUIET_WAIT(r, RT_REAL(cnd_wait)(cond, lock));
    if (r == thrd_success) {
        RT_EVENT(cond_wait, RT_SITE, RT_ADDR(cond), RT_ADDR(lock));
        note_turn(RT_SITE, RT_ADDR(lock));
    }
    return r;
}

RT_WRAPPER int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict lock, const struct timespec *restrict until)
{
    int r;

    note_condition();
    CONTROLLED_WAIT(cond_timedwait, lock, mtx_unlock, mtx_lock, thrd_timedout, RT_ADDR(cond), RT_ADDR(lock), 0);
    RT_QUIET_WAIT(r, RT_REAL(cnd_timedwait)(cond, lock, until));
    RT_EVENT(cond_timedwait, RT_SITE, RT_ADDR(cond), RT_ADDR(lock), (uint64_t)(unsigned)r);
    note_turn(RT_SITE, RT_ADDR(lock));
    return r;
}

/* ---- barriers: the number of threads is known from barrier_init ---- */

enum { BARRIERS = 1024 };

static struct barrier {
    _Atomic uint64_t address;
    _Atomic uint32_t count;
} barriers[BARRIERS];

static struct barrier *find_barrier(uint64_t address, bool make)
{
    uint32_t first = (uint32_t)(address >> 3) * 2654435761u % BARRIERS;

    for (uint32_t i = 0; i < BARRIERS; i++) {
        struct barrier *b = &barriers[(first + i) % BARRIERS];
        uint64_t there = atomic_load(&b->address);
        if (there == address)
            return b;
        if (there == 0) {
            if (!make)
                return NULL;
            if (atomic_compare_exchange_strong(&b->address, &there, address))
                return b;
        }
    }
    return NULL;
}

RT_WRAPPER int pthread_barrier_init(pthread_barrier_t *restrict barrier, const pthread_barrierattr_t *restrict attr,
                                    unsigned count)
{
    int r;

    RT_QUIET(r, RT_REAL(pthread_barrier_init)(barrier, attr, count));
    if (r == 0) {
        struct barrier *b = find_barrier(RT_ADDR(barrier), true);
        if (b)
            atomic_store(&b->count, count);
        RT_EVENT(barrier_init, RT_SITE, RT_ADDR(barrier), count);
    }
    return r;
}

RT_WRAPPER int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    struct barrier *b = find_barrier(RT_ADDR(barrier), false);
    uint32_t count = b ? atomic_load(&b->count) : 0; /* read before the wait: after it the barrier may be gone */
    int r;

    if (peet_rt_is_controlled() && count) {
        RT_EVENT(barrier_wait, RT_SITE, RT_ADDR(barrier), count);
        return peet_rt_stop() ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
    }

    RT_QUIET(r, RT_REAL(pthread_barrier_wait)(barrier));
    if (r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD)
        RT_EVENT(barrier_wait, RT_SITE, RT_ADDR(barrier), count);
    return r;
}

GIVES(pthread_barrier_destroy, pthread_barrier_t, barrier_destroy, (void)0)

/* ---- semaphores: initial values are events, unless other processes can use the semaphore ---- */

RT_WRAPPER int sem_init(sem_t *sem, int shared, unsigned value)
{
    int r;

    RT_QUIET(r, RT_REAL(sem_init)(sem, shared, value));
    if (r == 0 && !shared)
        RT_EVENT(sem_init, RT_SITE, RT_ADDR(sem), value);
    return r;
}

/* ---- once: the function is the program's, and is recorded ---- */

static RT_TLS struct once {
    void (*function)(void);
    bool ran;
} once;

static void run_once(void)
{
    once.ran = true;
    once.function();
}

/* Calls of pthread_once that are active in a controlled program. Another thread must not wait for them in the C
 * library. */
enum { ONCES = 64, ONCE_CYCLES = 100 };
static void *onces[ONCES];

static void **enter_once(void *control)
{
    for (;;) {
        void **free = NULL, **found = NULL;
        peet_rt_synchronize();
        for (unsigned i = 0; i < ONCES; i++) {
            if (onces[i] == control)
                found = &onces[i];
            else if (!onces[i])
                free = &onces[i];
        }
        if (!found && free) {
            *free = control;
            return free;
        }
        peet_rt_yield(ONCE_CYCLES);
    }
}

RT_WRAPPER int pthread_once(pthread_once_t *control, void (*function)(void))
{
    struct once outer = once;
    int r;

    void **entered = peet_rt_is_controlled() ? enter_once(control) : NULL;
    once = (struct once){ function, false };
    r = RT_REAL(pthread_once)(control, run_once);
    if (entered)
        *entered = NULL;
    if (r == 0)
        RT_EVENT(once, RT_SITE, RT_ADDR(control), once.ran);
    once = outer;
    return r;
}

RT_WRAPPER void call_once(once_flag *control, void (*function)(void))
{
    struct once outer = once;

    void **entered = peet_rt_is_controlled() ? enter_once(control) : NULL;
    once = (struct once){ function, false };
    RT_REAL(call_once)(control, run_once);
    if (entered)
        *entered = NULL;
    RT_EVENT(once, RT_SITE, RT_ADDR(control), once.ran);
    once = outer;
}
