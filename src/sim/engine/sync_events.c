/* SPDX-License-Identifier: MIT */
/* Execution of events. Locks and barriers are those of the machine (sim/sync). Other objects (semaphores, conditions, reader-writer
 * locks, posts, ends of threads) serve threads in order of arrival, and each operation is one update of the object's word. */
#include <assert.h>

#include "sim/engine/simulation.h"
#include "sim/spec/speculation.h"

/* ---- objects ---- */

struct sync_barrier sync_object_barrier(const struct sim *s, uint64_t addr)
{
    return (struct sync_barrier){
        .kind = s->config.barrier, .host = &s->sync.host, .config = &s->config.sync, .addr = addr
    };
}

/* The identity of an object that a process uses: its address with the address space. On machines with physical addresses it is the physical
 * address of the first use, so that processes that share the object find the same one; it stays if the page moves. */
static uint64_t object_identity(struct sim *s, uint32_t space, uint64_t tagged, uint64_t addr)
{
    if (!s->spaces.by_frame)
        return tagged;
    uint64_t *identity = map_put(&s->sync.identity, tagged, 0);
    assert(identity);
    if (*identity == 0)
        *identity = 1 + spaces_addr(&s->spaces, space, addr);
    return *identity - 1;
}

static struct sync_object *object_at(struct sim *s, const struct hw_thread *hw, uint64_t addr,
                                     enum sync_object_kind kind)
{
    uint32_t space = hw->thread->space;
    uint64_t tagged = spaces_tag(&s->spaces, space, addr);
    struct sync_object **o = map_put(&s->sync.object, object_identity(s, space, tagged, addr), kind);

    assert(o);
    if (!*o) {
        *o = arena_alloc(&s->arena, sizeof **o);
        assert(*o);
        (*o)->summary =
            (struct sync_summary){ .addr = addr, .process = s->spaces.process[space], .kind = (uint8_t)kind };
        (*o)->addr = tagged;
        if (kind == SYNC_OBJECT_LOCK)
            (*o)->lock = (struct sync_lock){
                .kind = s->config.lock, .host = &s->sync.host, .config = &s->config.sync, .addr = tagged
            };
        else if (kind == SYNC_OBJECT_BARRIER)
            (*o)->barrier = sync_object_barrier(s, tagged);
        if (s->hooks.listener && addr && kind != SYNC_OBJECT_ARC)
            s->hooks.listener->object(s->hooks.listener->self, hw->thread->sched.number, &(*o)->summary);
    }
    return *o;
}

/* The hardware thread's thread continues at cycle `until`, after an operation on an object. */
static void object_spend(struct sim *s, struct hw_thread *hw, uint64_t until, enum time_kind as, struct sync_object *o)
{
    sim_spend(s, hw, until, as, hw->thread, o);
}

/* One reference to the word of an object. */
static void object_touch(struct sim *s, struct hw_thread *hw, struct sync_object *o, enum peet_kind kind,
                         enum time_kind as)
{
    object_spend(s, hw, s->sync.host.access(s, &hw->thread->waiter, o->addr, o->addr, kind, hw->clock), as, o);
}

static void object_append(struct sync_object *o, struct sim_thread *t)
{
    t->next_queued = NULL;
    if (o->first)
        o->last->next_queued = t;
    else
        o->first = t;
    o->last = t;
}

static struct sim_thread *object_take_first(struct sync_object *o)
{
    struct sim_thread *t = o->first;

    if (t)
        o->first = t->next_queued;
    return t;
}

void sync_object_remove(struct sync_object *o, const struct sim_thread *t)
{
    struct sim_thread *all = o->first;

    o->first = o->last = NULL;
    while (all) {
        struct sim_thread *next = all->next_queued;
        if (all != t)
            object_append(o, all);
        all = next;
    }
}

/* The thread waits in the queue of the object. */
static void object_enqueue(struct sim *s, struct sim_thread *t, struct sync_object *o, enum time_kind as)
{
    object_append(o, t);
    t->wait.since = t->hw->clock;
    t->wait.cycles = 0;
    sim_wait(s, t, o, as);
}

static void object_wake(struct sim *s, struct sync_object *o, struct sim_thread *t, uint64_t now)
{
    o->summary.waits++;
    sim_wake(s, t, now);
}

/* ---- locks ---- */

/* Tries to take the lock; false: the thread has to try again or waits. */
static bool object_try_lock(struct sim *s, struct hw_thread *hw, bool is_new)
{
    struct sim_thread *t = hw->thread;
    struct sync_object *o = t->wait.object;
    enum sync_outcome outcome;

    if (is_new) {
        t->wait.since = hw->clock;
        t->wait.cycles = 0;
        t->wait.found_held = false;
    }
    t->wait.found_held |= o->holder != NULL;
    object_spend(s, hw, o->lock.kind->attempt(&o->lock, &t->waiter, is_new, hw->clock, &outcome), TIME_lock, o);
    t->pending = outcome == SYNC_DONE ? PENDING_NOTHING : PENDING_LOCK;
    if (outcome == SYNC_DONE) {
        assert(!o->holder);
        o->holder = t;
        o->since = hw->clock;
        o->summary.uses++;
        o->summary.waits += t->wait.found_held;
    } else if (outcome == SYNC_PARKED) {
        sim_wait(s, t, o, TIME_lock);
    }
    return outcome == SYNC_DONE;
}

static void object_lock(struct sim *s, struct hw_thread *hw, struct sync_object *o)
{
    if (o->holder == hw->thread) {
        o->depth++;
        return;
    }
    hw->thread->wait.object = o;
    object_try_lock(s, hw, true);
}

static void object_unlock(struct sim *s, struct hw_thread *hw, struct sync_object *o)
{
    struct sim_thread *holder = o->holder;

    if (!holder) /* taken before the recording began */
        return;
    if (o->depth > 0) {
        o->depth--;
        return;
    }
    o->holder = NULL;
    o->summary.held += hw->clock - o->since;
    hw->thread->wait.cycles = 0;
    object_spend(s, hw, o->lock.kind->release(&o->lock, &holder->waiter, hw->clock), TIME_lock, o);
}

/* ---- locks for many readers ---- */

static void rwlock_grant(struct sim *s, struct sync_object *o, uint64_t now)
{
    while (o->first && !o->holder && (o->first->wait.is_reader || o->readers == 0)) {
        struct sim_thread *t = object_take_first(o);
        o->summary.uses++;
        if (t->wait.is_reader)
            o->readers++;
        else
            o->holder = t;
        object_wake(s, o, t, now);
    }
}

static void rwlock_take(struct sim *s, struct hw_thread *hw, struct sync_object *o, bool is_reader)
{
    struct sim_thread *t = hw->thread;

    object_touch(s, hw, o, PEET_UPDATE, TIME_lock);
    t->wait.is_reader = is_reader;
    if (o->holder || o->first || (!is_reader && o->readers > 0)) {
        object_enqueue(s, t, o, TIME_lock);
        return;
    }
    o->summary.uses++;
    if (is_reader)
        o->readers++;
    else
        o->holder = t;
}

static void rwlock_release(struct sim *s, struct hw_thread *hw, struct sync_object *o)
{
    object_touch(s, hw, o, PEET_UPDATE, TIME_lock);
    if (o->holder == hw->thread)
        o->holder = NULL;
    else if (o->readers > 0)
        o->readers--;
    rwlock_grant(s, o, hw->clock);
}

/* ---- barriers ---- */

static void event_barrier_wait(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    struct sync_object *o = object_at(s, hw, e->arg[0], SYNC_OBJECT_BARRIER);
    struct sim_thread *t = hw->thread;
    enum sync_outcome outcome;

    t->wait.since = hw->clock;
    t->wait.cycles = 0;
    t->wait.object = o;
    if (o->barrier.arrived == 0)
        o->barrier.expected = (uint32_t)e->arg[1];
    if (s->sync.speculation) {
        speculation_arrive(s, hw, o);
        return;
    }
    uint64_t done = o->barrier.kind->arrive(&o->barrier, &t->waiter, hw->clock, &outcome);
    object_spend(s, hw, done, TIME_barrier, o);
    if (outcome == SYNC_DONE) {
        o->summary.uses++;
        t->reply = 1; /* PTHREAD_BARRIER_SERIAL_THREAD: the last to arrive */
        return;
    }
    t->pending = PENDING_BARRIER;
    sim_wait(s, t, o, TIME_barrier);
}

/* ---- conditions, semaphores, posts ---- */

static void condition_wait(struct sim *s, struct hw_thread *hw, const uint64_t *arg, bool is_limited, bool timed_out)
{
    struct sync_object *o = object_at(s, hw, arg[0], SYNC_OBJECT_CONDITION),
                       *held = object_at(s, hw, arg[1], SYNC_OBJECT_LOCK);
    struct sim_thread *t = hw->thread;

    object_unlock(s, hw, held);
    object_touch(s, hw, o, PEET_UPDATE, TIME_other);
    t->wait.has_timeout = is_limited;
    if (timed_out || o->value > 0) {
        o->value -= o->value > 0 && !timed_out;
        object_lock(s, hw, held);
        return;
    }
    t->wait.relock = held;
    t->pending = PENDING_RELOCK;
    object_enqueue(s, t, o, TIME_other);
}

static void sync_condition_signal(struct sim *s, struct hw_thread *hw, uint64_t addr, bool all)
{
    struct sync_object *o = object_at(s, hw, addr, SYNC_OBJECT_CONDITION);
    struct sim_thread *t;

    object_touch(s, hw, o, PEET_UPDATE, TIME_other);
    o->summary.uses++;
    if (!o->first && !s->source->is_live)
        o->value = 1; /* a recorded thread that arrives late here was in time when it was recorded */
    while ((t = object_take_first(o))) {
        object_wake(s, o, t, hw->clock);
        if (!all)
            break;
    }
}

static void event_sem_wait(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    struct sync_object *o = object_at(s, hw, e->arg[0], SYNC_OBJECT_SEMAPHORE);

    object_touch(s, hw, o, PEET_UPDATE, TIME_other);
    o->summary.uses++;
    if (o->value > 0)
        o->value--;
    else
        object_enqueue(s, hw->thread, o, TIME_other);
}

static void event_sem_post(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    struct sync_object *o = object_at(s, hw, e->arg[0], SYNC_OBJECT_SEMAPHORE);
    struct sim_thread *t = object_take_first(o);

    object_touch(s, hw, o, PEET_UPDATE, TIME_other);
    if (t)
        object_wake(s, o, t, hw->clock);
    else
        o->value++;
}

/* Whether the value for which a thread waits was posted. */
static bool value_is_posted(const struct sim_thread *t, const struct sync_object *o)
{
    return t->doall.forker ? sim_loop_may_continue(t, o, t->wait.value) : (int64_t)t->wait.value <= (int64_t)o->value;
}

static void event_post(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    uint64_t value = e->arg[1];
    struct sync_object *o = object_at(s, hw, e->arg[0], SYNC_OBJECT_POST);
    struct sim_thread *rest = o->first;

    object_touch(s, hw, o, PEET_STORE, TIME_other);
    if (hw->thread->doall.forker)
        sim_loop_post(s, hw->thread, o, value);
    o->value = (int64_t)value > (int64_t)o->value ? value : o->value;
    o->first = NULL;
    while (rest) {
        struct sim_thread *t = rest;
        rest = t->next_queued;
        if (value_is_posted(t, o))
            object_wake(s, o, t, hw->clock);
        else
            object_append(o, t);
    }
}

static void event_wait(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    struct sync_object *o = object_at(s, hw, e->arg[0], SYNC_OBJECT_POST);

    object_touch(s, hw, o, PEET_LOAD, TIME_other);
    o->summary.uses++;
    hw->thread->wait.value = e->arg[1];
    if (!value_is_posted(hw->thread, o))
        object_enqueue(s, hw->thread, o, TIME_other);
}

void sim_leave_queue(struct sim *s, struct sim_thread *t, uint64_t now)
{
    sync_object_remove(t->wait.object, t);
    object_wake(s, t->wait.object, t, now);
}

/* ---- live programs: waits of their libraries ---- */

static void event_futex_wait(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    struct sync_object *o = object_at(s, hw, e->arg[0], SYNC_OBJECT_FUTEX);

    o->summary.uses++;
    object_enqueue(s, hw->thread, o, TIME_other);
}

static void event_futex_wake(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    struct sync_object *o = object_at(s, hw, e->arg[0], SYNC_OBJECT_FUTEX);
    struct sim_thread *t;

    for (uint64_t i = 0; i < e->arg[1] && (t = object_take_first(o)); i++)
        object_wake(s, o, t, hw->clock);
}

/* ---- recordings: arcs between an update and a decision that depends on it (map/source/conditions.h) ---- */

static void event_arc_tail(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    struct sync_object *o = object_at(s, hw, e->arg[0], SYNC_OBJECT_ARC);
    struct sim_thread *t;

    o->value = 1;
    while ((t = object_take_first(o))) {
        t->wait.condition->summary.waits++;
        sim_wake(s, t, hw->clock);
    }
}

/* A thread decides on data under the lock that it takes next; the data are there after the arc's tail. So it waits as at a condition. */
static void event_arc_head(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    uint64_t arc = e->arg[0], condition = e->arg[1];

    if (arc == 0) { /* the thread begins to wait at the condition; heads of arcs follow */
        object_touch(s, hw, object_at(s, hw, condition, SYNC_OBJECT_CONDITION), PEET_UPDATE, TIME_other);
        return;
    }
    struct sync_object *o = object_at(s, hw, arc, SYNC_OBJECT_ARC);
    hw->thread->wait.condition = object_at(s, hw, condition, SYNC_OBJECT_CONDITION);
    if (o->value == 0)
        object_enqueue(s, hw->thread, o, TIME_other);
}

/* Whether no other thread runs, or will run, but idle ones. */
static bool thread_is_alone(const struct sim *s, const struct sim_thread *t)
{
    for (uint32_t i = 0; i < s->threads; i++) {
        const struct sim_thread *other = &s->thread[i];
        if (other != t && !other->is_idle && (other->status == STATUS_RUNNING || other->status == STATUS_READY))
            return false;
    }
    return true;
}

static void event_yield(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    struct sim_thread *t = hw->thread;
    uint64_t now = hw->clock;

    t->reply = thread_is_alone(s, t);
    t->is_idle = true;
    t->wait.cycles = 0;
    sim_wait(s, t, object_at(s, hw, 0, SYNC_OBJECT_YIELD), TIME_other);
    sim_wake(s, t, now + e->arg[0]);
}

/* ---- threads ---- */

static struct sim_thread *thread_find(struct sim *s, uint64_t thread)
{
    const uint32_t *n = map_find(&s->thread_by_id, thread, 0);

    return n ? &s->thread[*n - 1] : NULL;
}

static void event_thread_create(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    struct sim_thread *t = thread_find(s, e->arg[0]);

    if (!t || (t->status != STATUS_UNBORN && t->status != STATUS_ENDED))
        return;
    if (s->source->thread[t->sched.number].birth == BIRTH_ITERATION)
        sim_loop_created(t, hw->thread);
    if (t->status != STATUS_UNBORN)
        return;
    s->counts.alive++;
    if (s->sync.speculation)
        speculation_make_room(s);
    sim_wake(s, t, hw->clock);
}

/* Ends the wait of a thread at a cancellation point. A thread that waits for a condition takes its lock again first. */
static void event_thread_cancel(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    struct sim_thread *t = thread_find(s, e->arg[0]);

    if (!t || t->status != STATUS_WAITING)
        return;
    if (!t->wait.joined
        && (!t->wait.object
            || (t->wait.object->summary.kind != SYNC_OBJECT_CONDITION
                && t->wait.object->summary.kind != SYNC_OBJECT_SEMAPHORE)))
        return;
    if (!t->wait.joined)
        sync_object_remove(t->wait.object, t);
    t->wait.joined = 0;
    t->reply = SOURCE_CANCELLED;
    sim_wake(s, t, hw->clock);
}

static void event_thread_join(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    struct sim_thread *child = thread_find(s, e->arg[0]), *t = hw->thread;

    if (!child || child->status == STATUS_ENDED || child->status == STATUS_UNBORN)
        return;
    struct sync_object *o = object_at(s, hw, 0, SYNC_OBJECT_JOIN);
    o->summary.waits++;
    t->wait.cycles = 0;
    t->wait.joined = child->sched.number + 1;
    sim_wait(s, t, o, TIME_other);
}

/* The recording of a thread may end within a wait for which it had released a lock, and not contain the release. No recorded thread waited for
 * its locks afterwards; so none may do so here, where threads arrive at other times. */
static void thread_release_all(struct sim *s, struct hw_thread *hw)
{
    struct sync_object **o;
    size_t at = 0;
    uint64_t key;
    uint32_t tag;

    while ((o = map_next(&s->sync.object, &at, &key, &tag))) {
        if ((*o)->holder != hw->thread)
            continue;
        (*o)->depth = 0;
        if ((*o)->summary.kind == SYNC_OBJECT_RWLOCK)
            rwlock_release(s, hw, *o);
        else
            object_unlock(s, hw, *o);
    }
}

void sim_end_thread(struct sim *s, struct hw_thread *hw)
{
    struct sim_thread *ended = hw->thread;

    sim_end_program(s, hw);
    ended->status = STATUS_ENDED;
    s->counts.alive--;
    for (uint32_t i = 0; i < s->threads; i++) {
        struct sim_thread *t = &s->thread[i];
        if (t->status == STATUS_WAITING && t->wait.joined == ended->sched.number + 1) {
            t->wait.joined = 0;
            sim_wake(s, t, hw->clock);
        }
    }
    ended->hw = NULL;
    hw->thread = NULL;
    hw->runs = false;
    s->order.needs_sort = true;
    sim_dispatch(s, hw, hw->clock);
}

/* ---- all ---- */

/* Not from the generator for locks, whose sequence does not depend on the setting `jitter`. */
uint64_t sim_start_jitter(struct sim *s)
{
    if (s->config.jitter == 0)
        return 0;
    uint64_t v = s->config.seed * 0x9e3779b97f4a7c15 + ++s->counts.start_jitters;
    for (int i = 0; i < 3; i++) {
        v ^= v >> 32;
        v *= 0xd6e8feb86659fd93;
    }
    return (v >> 32) % ((uint64_t)s->config.jitter + 1);
}

bool sim_pending(struct sim *s, struct hw_thread *hw)
{
    struct sim_thread *t = hw->thread;
    struct sync_object *o = t->wait.object;
    uint8_t pending = t->pending;

    t->pending = PENDING_NOTHING;
    switch (pending) {
    case PENDING_LOCK: return object_try_lock(s, hw, false);
    case PENDING_RELOCK: object_lock(s, hw, t->wait.relock); return hw->thread == t && hw->runs && !t->pending;
    case PENDING_BARRIER:
        if (o->barrier.kind->resume)
            object_spend(s, hw, o->barrier.kind->resume(&o->barrier, &t->waiter, hw->clock), TIME_barrier, o);
        o->summary.waits++;
        return true;
    default: return true;
    }
}

/* Whether an attempt that does not wait fails. For a recorded program, the event has the result. */
static bool try_is_refused(struct sim *s, struct hw_thread *hw, const struct peet_event *e, struct sync_object *o,
                           bool is_taken)
{
    bool refused = s->source->is_live ? is_taken : e->arg[1] != 0;

    if (refused)
        object_touch(s, hw, o, PEET_LOAD, TIME_lock);
    hw->thread->reply = refused;
    return refused;
}

/* ---- the table of events ---- */

static void event_thread_end(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    if (e->arg[0] != PEET_END_EXIT)
        thread_release_all(s, hw);
}

static void event_lock(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    object_lock(s, hw, object_at(s, hw, e->arg[0], SYNC_OBJECT_LOCK));
}

static void event_trylock(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    struct sync_object *o = object_at(s, hw, e->arg[0], SYNC_OBJECT_LOCK);

    if (!try_is_refused(s, hw, e, o, o->holder != NULL))
        object_lock(s, hw, o);
}

static void event_unlock(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    object_unlock(s, hw, object_at(s, hw, e->arg[0], SYNC_OBJECT_LOCK));
}

static void event_rdlock(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    rwlock_take(s, hw, object_at(s, hw, e->arg[0], SYNC_OBJECT_RWLOCK), true);
}

static void event_wrlock(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    rwlock_take(s, hw, object_at(s, hw, e->arg[0], SYNC_OBJECT_RWLOCK), false);
}

static void event_tryrdlock(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    struct sync_object *o = object_at(s, hw, e->arg[0], SYNC_OBJECT_RWLOCK);

    if (!try_is_refused(s, hw, e, o, o->holder || o->first))
        rwlock_take(s, hw, o, true);
}

static void event_trywrlock(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    struct sync_object *o = object_at(s, hw, e->arg[0], SYNC_OBJECT_RWLOCK);

    if (!try_is_refused(s, hw, e, o, o->holder || o->first || o->readers > 0))
        rwlock_take(s, hw, o, false);
}

static void event_rwlock_unlock(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    rwlock_release(s, hw, object_at(s, hw, e->arg[0], SYNC_OBJECT_RWLOCK));
}

static void event_cond_wait(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    condition_wait(s, hw, e->arg, false, false);
}

static void event_cond_timedwait(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    condition_wait(s, hw, e->arg, true, e->arg[2] != 0);
}

static void event_cond_signal(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    sync_condition_signal(s, hw, e->arg[0], false);
}

static void event_cond_broadcast(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    sync_condition_signal(s, hw, e->arg[0], true);
}

static void event_sem_init(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    object_at(s, hw, e->arg[0], SYNC_OBJECT_SEMAPHORE)->value = e->arg[1];
}

static void event_sem_trywait(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    struct sync_object *o = object_at(s, hw, e->arg[0], SYNC_OBJECT_SEMAPHORE);

    if (!try_is_refused(s, hw, e, o, o->value == 0))
        event_sem_wait(s, hw, e);
}

static void event_doall_start(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    (void)s;
    sim_loop_start(hw->thread, e->arg[0]);
}

static void event_doall_finish(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    (void)e;
    sim_loop_finish(s, hw->thread, hw->clock);
}

static void event_doall_join(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    (void)e;
    sim_loop_join(s, hw->thread);
}

static void event_range_read(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    sim_range(s, hw, e->arg[0], e->arg[1], PEET_LOAD);
}

static void event_range_write(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    sim_range(s, hw, e->arg[0], e->arg[1], PEET_STORE);
}

static void event_range_copy(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    sim_range(s, hw, e->arg[1], e->arg[2], PEET_LOAD);
    sim_range(s, hw, e->arg[0], e->arg[2], PEET_STORE);
}

static void event_range_compare(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    sim_range(s, hw, e->arg[0], e->arg[2], PEET_LOAD);
    sim_range(s, hw, e->arg[1], e->arg[2], PEET_LOAD);
}

/* By event kind, in the order of PEET_EVENTS; NULL: the event takes no time and has no effect on the machine. */
typedef void event_handler(struct sim *s, struct hw_thread *hw, const struct peet_event *e);
/* clang-format off */
static event_handler *const EVENT_HANDLERS[PEET_EVENT_KINDS] = {
    [PEET_EV_thread_create]        = event_thread_create,
    [PEET_EV_thread_join]          = event_thread_join,
    [PEET_EV_thread_end]           = event_thread_end,
    [PEET_EV_mutex_lock]           = event_lock,
    [PEET_EV_mutex_trylock]        = event_trylock,
    [PEET_EV_mutex_unlock]         = event_unlock,
    [PEET_EV_rwlock_rdlock]        = event_rdlock,
    [PEET_EV_rwlock_tryrdlock]     = event_tryrdlock,
    [PEET_EV_rwlock_wrlock]        = event_wrlock,
    [PEET_EV_rwlock_trywrlock]     = event_trywrlock,
    [PEET_EV_rwlock_unlock]        = event_rwlock_unlock,
    [PEET_EV_spin_lock]            = event_lock,
    [PEET_EV_spin_trylock]         = event_trylock,
    [PEET_EV_spin_unlock]          = event_unlock,
    [PEET_EV_cond_wait]            = event_cond_wait,
    [PEET_EV_cond_timedwait]       = event_cond_timedwait,
    [PEET_EV_cond_signal]          = event_cond_signal,
    [PEET_EV_cond_broadcast]       = event_cond_broadcast,
    [PEET_EV_barrier_wait]         = event_barrier_wait,
    [PEET_EV_sem_init]             = event_sem_init,
    [PEET_EV_sem_wait]             = event_sem_wait,
    [PEET_EV_sem_trywait]          = event_sem_trywait,
    [PEET_EV_sem_post]             = event_sem_post,
    [PEET_EV_post]                 = event_post,
    [PEET_EV_wait]                 = event_wait,
    [PEET_EV_doall_start]          = event_doall_start,
    [PEET_EV_doall_finish]         = event_doall_finish,
    [PEET_EV_doall_join]           = event_doall_join,
    [PEET_EV_range_read]           = event_range_read,
    [PEET_EV_range_write]          = event_range_write,
    [PEET_EV_range_copy]           = event_range_copy,
    [PEET_EV_range_compare]        = event_range_compare,
    [PEET_EV_futex_wait]           = event_futex_wait,
    [PEET_EV_futex_wake]           = event_futex_wake,
    [PEET_EV_yield]                = event_yield,
    [PEET_EV_thread_cancel]        = event_thread_cancel,
    [PEET_EV_arc_tail]             = event_arc_tail,
    [PEET_EV_arc_head]             = event_arc_head,
};
/* clang-format on */

void sim_event(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    if (e->kind < PEET_EVENT_KINDS && EVENT_HANDLERS[e->kind])
        EVENT_HANDLERS[e->kind](s, hw, e);
}
