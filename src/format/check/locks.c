/* SPDX-License-Identifier: MIT */
/* Locks, thread by thread: who gives one back has it, who waits for a condition has its lock, who ends has none.
 *
 * A lock may be taken several times by one thread (recursive mutexes, readers): it is then held until it has been given
 * back as often. That two threads do not hold one lock at a time is not checked, for their order is unknown.
 *
 * A wait at a condition is recorded when it is over. A thread that is still waiting when its process ends, or when the
 * recording stops, has given its mutex up without a record of that; so of threads that did not return, no mutex is reported as held. */
#include <inttypes.h>

#include "format/check/family.h"

enum lock_kind { MUTEX, RWLOCK, SPIN };

static const char *const NAMES[] = { [MUTEX] = "mutex", [RWLOCK] = "rwlock", [SPIN] = "spin lock" };

struct held {
    uint64_t times, position; /* of the first time */
};

struct check_local {
    struct map held; /* struct held, by address; the tag is the kind */
    bool is_cut;     /* its thread_end says that the thread did not return: the process ended, or the recording did */
};

static int take(struct check *c, struct check_local *l, enum lock_kind kind, uint64_t lock, uint64_t position)
{
    l->held.value_size = sizeof(struct held);
    struct held *h = map_put(&l->held, lock, kind);
    if (!h)
        return check_no_memory(c);
    if (h->times++ == 0)
        h->position = position;
    return 0;
}

static void give(struct check *c, struct check_where where, struct check_local *l, enum lock_kind kind, uint64_t lock)
{
    struct held *h = map_find(&l->held, lock, kind);

    if (!h)
        check_found_at(c, CHECK_lock, check_severity(where.thread), where, lock,
                       "the %s at 0x%" PRIx64 " is unlocked, but this thread does not hold it", NAMES[kind], lock);
    else if (--h->times == 0)
        map_remove(&l->held, lock, kind);
}

static void wait_for_condition(struct check *c, struct check_where where, struct check_local *l,
                               const struct peet_event *e)
{
    if (!map_find(&l->held, e->arg[1], MUTEX))
        check_found_at(c, CHECK_condition, check_severity(where.thread), where, e->arg[1],
                       "waits for the condition at 0x%" PRIx64 " without holding its mutex at 0x%" PRIx64, e->arg[0],
                       e->arg[1]);
}

static int event(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l,
                 const struct peet_event *e, uint64_t position)
{
    struct check_where where = { th, position };
    uint64_t lock = e->arg[0];
    bool taken = e->arg[1] == 0; /* by the kinds that try */

    (void)s;
    switch (e->kind) {
    case PEET_EV_mutex_lock: return take(c, l, MUTEX, lock, position);
    case PEET_EV_rwlock_rdlock:
    case PEET_EV_rwlock_wrlock: return take(c, l, RWLOCK, lock, position);
    case PEET_EV_spin_lock: return take(c, l, SPIN, lock, position);
    case PEET_EV_mutex_trylock: return taken ? take(c, l, MUTEX, lock, position) : 0;
    case PEET_EV_rwlock_tryrdlock:
    case PEET_EV_rwlock_trywrlock: return taken ? take(c, l, RWLOCK, lock, position) : 0;
    case PEET_EV_spin_trylock: return taken ? take(c, l, SPIN, lock, position) : 0;
    case PEET_EV_mutex_unlock: give(c, where, l, MUTEX, lock); return 0;
    case PEET_EV_rwlock_unlock: give(c, where, l, RWLOCK, lock); return 0;
    case PEET_EV_spin_unlock: give(c, where, l, SPIN, lock); return 0;
    case PEET_EV_cond_wait:
    case PEET_EV_cond_timedwait: wait_for_condition(c, where, l, e); return 0;
    case PEET_EV_exec: map_clear(&l->held); return 0;
    case PEET_EV_thread_end: l->is_cut = e->arg[0] != PEET_END_EXIT; return 0;
    default: return 0;
    }
}

static int end(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l)
{
    const struct held *h;
    uint64_t lock;
    uint32_t kind;

    (void)s;
    for (size_t at = 0; th->whole && (h = map_next(&l->held, &at, &lock, &kind));) {
        if (l->is_cut && kind == MUTEX)
            continue;
        check_found_at(c, CHECK_held, CHECK_WARNING, (struct check_where){ th, h->position }, lock,
                       "the %s at 0x%" PRIx64 " is locked here and not unlocked before the thread ends", NAMES[kind],
                       lock);
    }
    return 0;
}

static void release_local(struct check_local *l)
{
    map_release(&l->held);
}

const struct check_family check_family_locks = {
    .name = "locks",
    .local_size = sizeof(struct check_local),
    .event = event,
    .end = end,
    .release_local = release_local,
};
