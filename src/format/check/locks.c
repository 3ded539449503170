/* SPDX-License-Identifier: MIT */
/* Locks of a thread: it releases only locks that it holds, holds the lock of a condition at which it waits, and none at its end.
 *
 * A thread may acquire a lock several times (recursive mutexes, readers), and releases it as many times. Mutual exclusion is not
 * checked, since the order of threads is unknown.
 *
 * A wait at a condition is recorded at its end. A thread that waits when its process or the recording ends has released its mutex without
 * a record. So held mutexes are reported only of threads that returned. */
#include <inttypes.h>

#include "format/check/family.h"

enum lock_kind { MUTEX, RWLOCK, SPIN };

static const char *const NAMES[] = { [MUTEX] = "mutex", [RWLOCK] = "rwlock", [SPIN] = "spin lock" };

/* A lock that a thread has. */
struct held {
    uint64_t times;    /* acquisitions that were not released */
    uint64_t position; /* of the first of them: instructions of the thread before it */
};

/* The state of a thread. */
struct check_local {
    struct map held; /* struct held, by address; the tag is the kind */
    bool is_cut;     /* according to its thread_end, the thread did not return: its process or the recording ended */
};

static int locks_acquire(struct check *c, struct check_local *l, enum lock_kind kind, uint64_t lock, uint64_t position)
{
    l->held.value_size = sizeof(struct held);
    struct held *h = map_put(&l->held, lock, kind);
    if (!h)
        return check_no_memory(c);
    if (h->times++ == 0)
        h->position = position;
    return 0;
}

static void locks_release_one(struct check *c, struct check_position at, struct check_local *l, enum lock_kind kind,
                              uint64_t lock)
{
    struct held *h = map_find(&l->held, lock, kind);

    if (!h)
        check_found_at(c, CHECK_lock, check_severity(at.thread), at, lock,
                       "the %s at 0x%" PRIx64 " is unlocked, but this thread does not hold it", NAMES[kind], lock);
    else if (--h->times == 0)
        map_remove(&l->held, lock, kind);
}

static void locks_wait(struct check *c, struct check_position at, struct check_local *l, const struct peet_event *e)
{
    if (!map_find(&l->held, e->arg[1], MUTEX))
        check_found_at(c, CHECK_condition, check_severity(at.thread), at, e->arg[1],
                       "waits for the condition at 0x%" PRIx64 " without holding its mutex at 0x%" PRIx64, e->arg[0],
                       e->arg[1]);
}

static int locks_event(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l,
                       const struct peet_event *e, uint64_t position)
{
    struct check_position at = { th, position };
    uint64_t lock = e->arg[0];
    bool taken = e->arg[1] == 0; /* by the kinds that try */

    (void)s;
    switch (e->kind) {
    case PEET_EV_mutex_lock: return locks_acquire(c, l, MUTEX, lock, position);
    case PEET_EV_rwlock_rdlock:
    case PEET_EV_rwlock_wrlock: return locks_acquire(c, l, RWLOCK, lock, position);
    case PEET_EV_spin_lock: return locks_acquire(c, l, SPIN, lock, position);
    case PEET_EV_mutex_trylock: return taken ? locks_acquire(c, l, MUTEX, lock, position) : 0;
    case PEET_EV_rwlock_tryrdlock:
    case PEET_EV_rwlock_trywrlock: return taken ? locks_acquire(c, l, RWLOCK, lock, position) : 0;
    case PEET_EV_spin_trylock: return taken ? locks_acquire(c, l, SPIN, lock, position) : 0;
    case PEET_EV_mutex_unlock: locks_release_one(c, at, l, MUTEX, lock); return 0;
    case PEET_EV_rwlock_unlock: locks_release_one(c, at, l, RWLOCK, lock); return 0;
    case PEET_EV_spin_unlock: locks_release_one(c, at, l, SPIN, lock); return 0;
    case PEET_EV_cond_wait:
    case PEET_EV_cond_timedwait: locks_wait(c, at, l, e); return 0;
    case PEET_EV_exec: map_clear(&l->held); return 0;
    case PEET_EV_thread_end: l->is_cut = e->arg[0] != PEET_END_EXIT; return 0;
    default: return 0;
    }
}

static int locks_end(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l)
{
    const struct held *h;
    uint64_t lock;
    uint32_t kind;

    (void)s;
    for (size_t at = 0; th->whole && (h = map_next(&l->held, &at, &lock, &kind));) {
        if (l->is_cut && kind == MUTEX)
            continue;
        check_found_at(c, CHECK_held, CHECK_WARNING, (struct check_position){ th, h->position }, lock,
                       "the %s at 0x%" PRIx64 " is locked here and not unlocked before the thread ends", NAMES[kind],
                       lock);
    }
    return 0;
}

static void locks_release_local(struct check_local *l)
{
    map_release(&l->held);
}

const struct check_family check_family_locks = {
    .name = "locks",
    .local_size = sizeof(struct check_local),
    .event = locks_event,
    .end = locks_end,
    .release_local = locks_release_local,
};
