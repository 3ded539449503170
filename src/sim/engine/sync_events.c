/* SPDX-License-Identifier: MIT */
/* What events mean to the machine. Locks and barriers are the machine's kind (sim/sync); what else contexts wait for
 * (semaphores, conditions, locks for many readers, posts, ends of threads) is served in the order in which they came,
 * and each operation is one update of the object's word. */
#include <assert.h>

#include "sim/engine/state.h"

/* ---- objects ---- */

static struct sync_barrier new_barrier(const struct sim *s, uint64_t addr)
{
    return (
        struct sync_barrier){ .kind = s->config.barrier, .host = &s->host, .config = &s->config.sync, .addr = addr };
}

/* What names an object that a process uses. In frames, it is where the object was for the machine when the process used it first, so that processes
 * that share it mean the same one; it stays that if the page moves. */
static uint64_t object_name(struct sim *s, uint32_t space, uint64_t tagged, uint64_t addr)
{
    if (!s->spaces.by_frame)
        return tagged;
    uint64_t *name = map_put(&s->object_names, tagged, 0);
    assert(name);
    if (*name == 0)
        *name = 1 + spaces_addr(&s->spaces, space, addr);
    return *name - 1;
}

static struct sync_object *object_at(struct sim *s, const struct hw_thread *hw, uint64_t addr,
                                     enum sync_object_kind kind)
{
    uint32_t space = hw->context->space;
    uint64_t tagged = spaces_tag(&s->spaces, space, addr);
    struct sync_object **o = map_put(&s->objects, object_name(s, space, tagged, addr), kind);

    assert(o);
    if (!*o) {
        *o = arena_alloc(&s->arena, sizeof **o);
        assert(*o);
        (*o)->seen = (struct sync_summary){ .addr = addr, .process = s->spaces.process[space], .kind = (uint8_t)kind };
        (*o)->addr = tagged;
        if (kind == SYNC_OBJECT_LOCK)
            (*o)->lock = (struct sync_lock){
                .kind = s->config.lock, .host = &s->host, .config = &s->config.sync, .addr = tagged
            };
        else if (kind == SYNC_OBJECT_BARRIER)
            (*o)->barrier = new_barrier(s, tagged);
        if (s->listener && addr && kind != SYNC_OBJECT_ARC)
            s->listener->object(s->listener->context, hw->context->sched.number, &(*o)->seen);
    }
    return *o;
}

/* A place's context goes on behind what it did with an object. */
static void spend(struct sim *s, struct hw_thread *hw, uint64_t until, enum time_kind as, struct sync_object *o)
{
    sim_spend(s, hw, until, as, hw->context, o);
}

/* One reference to the word of an object. */
static void touch(struct sim *s, struct hw_thread *hw, struct sync_object *o, enum peet_kind kind, enum time_kind as)
{
    spend(s, hw, s->host.access(s, &hw->context->party, o->addr, o->addr, kind, hw->clock), as, o);
}

static void append(struct sync_object *o, struct sim_thread *t)
{
    t->next = NULL;
    if (o->first)
        o->last->next = t;
    else
        o->first = t;
    o->last = t;
}

static struct sim_thread *take_first(struct sync_object *o)
{
    struct sim_thread *t = o->first;

    if (t)
        o->first = t->next;
    return t;
}

static void remove_from(struct sync_object *o, const struct sim_thread *t)
{
    struct sim_thread *all = o->first;

    o->first = o->last = NULL;
    while (all) {
        struct sim_thread *next = all->next;
        if (all != t)
            append(o, all);
        all = next;
    }
}

/* Waits in line. */
static void line_up(struct sim *s, struct sim_thread *t, struct sync_object *o, enum time_kind as)
{
    append(o, t);
    t->since = t->place->clock;
    t->waited = 0;
    sim_wait(s, t, o, as);
}

static void wake(struct sim *s, struct sync_object *o, struct sim_thread *t, uint64_t now)
{
    o->seen.waits++;
    sim_wake(s, t, now);
}

/* ---- locks ---- */

/* Tries to take the lock; false: not yet. */
static bool try_lock(struct sim *s, struct hw_thread *hw, bool is_new)
{
    struct sim_thread *t = hw->context;
    struct sync_object *o = t->object;
    enum sync_outcome outcome;

    if (is_new) {
        t->since = hw->clock;
        t->waited = 0;
        t->found_taken = false;
    }
    t->found_taken |= o->holder != NULL;
    spend(s, hw, o->lock.kind->attempt(&o->lock, &t->party, is_new, hw->clock, &outcome), TIME_lock, o);
    t->pending = outcome == SYNC_DONE ? PENDING_NOTHING : PENDING_LOCK;
    if (outcome == SYNC_DONE) {
        assert(!o->holder);
        o->holder = t;
        o->since = hw->clock;
        o->seen.uses++;
        o->seen.waits += t->found_taken;
    } else if (outcome == SYNC_PARKED) {
        sim_wait(s, t, o, TIME_lock);
    }
    return outcome == SYNC_DONE;
}

static void lock(struct sim *s, struct hw_thread *hw, struct sync_object *o)
{
    if (o->holder == hw->context) {
        o->depth++;
        return;
    }
    hw->context->object = o;
    try_lock(s, hw, true);
}

static void unlock(struct sim *s, struct hw_thread *hw, struct sync_object *o)
{
    struct sim_thread *holder = o->holder;

    if (!holder) /* taken before the recording began */
        return;
    if (o->depth > 0) {
        o->depth--;
        return;
    }
    o->holder = NULL;
    o->seen.held += hw->clock - o->since;
    hw->context->waited = 0;
    spend(s, hw, o->lock.kind->release(&o->lock, &holder->party, hw->clock), TIME_lock, o);
}

/* ---- locks for many readers ---- */

static void grant(struct sim *s, struct sync_object *o, uint64_t now)
{
    while (o->first && !o->holder && (o->first->is_reader || o->readers == 0)) {
        struct sim_thread *t = take_first(o);
        o->seen.uses++;
        if (t->is_reader)
            o->readers++;
        else
            o->holder = t;
        wake(s, o, t, now);
    }
}

static void rwlock(struct sim *s, struct hw_thread *hw, struct sync_object *o, bool is_reader)
{
    struct sim_thread *t = hw->context;

    touch(s, hw, o, PEET_UPDATE, TIME_lock);
    t->is_reader = is_reader;
    if (o->holder || o->first || (!is_reader && o->readers > 0)) {
        line_up(s, t, o, TIME_lock);
        return;
    }
    o->seen.uses++;
    if (is_reader)
        o->readers++;
    else
        o->holder = t;
}

static void rwunlock(struct sim *s, struct hw_thread *hw, struct sync_object *o)
{
    touch(s, hw, o, PEET_UPDATE, TIME_lock);
    if (o->holder == hw->context)
        o->holder = NULL;
    else if (o->readers > 0)
        o->readers--;
    grant(s, o, hw->clock);
}

/* ---- barriers ---- */

static void barrier(struct sim *s, struct hw_thread *hw, uint64_t addr, uint64_t parties)
{
    struct sync_object *o = object_at(s, hw, addr, SYNC_OBJECT_BARRIER);
    struct sim_thread *t = hw->context;
    enum sync_outcome outcome;

    t->since = hw->clock;
    t->waited = 0;
    t->object = o;
    if (o->barrier.arrived == 0)
        o->barrier.parties = (uint32_t)parties;
    uint64_t done = o->barrier.kind->arrive(&o->barrier, &t->party, hw->clock, &outcome);
    spend(s, hw, done, TIME_barrier, o);
    if (outcome == SYNC_DONE) {
        o->seen.uses++;
        t->reply = 1; /* one of them is told that it was the last */
        return;
    }
    t->pending = PENDING_BARRIER;
    sim_wait(s, t, o, TIME_barrier);
}

/* ---- conditions, semaphores, posts ---- */

static void wait_for_condition(struct sim *s, struct hw_thread *hw, const uint64_t *arg, bool is_limited,
                               bool timed_out)
{
    struct sync_object *o = object_at(s, hw, arg[0], SYNC_OBJECT_CONDITION),
                       *held = object_at(s, hw, arg[1], SYNC_OBJECT_LOCK);
    struct sim_thread *t = hw->context;

    unlock(s, hw, held);
    touch(s, hw, o, PEET_UPDATE, TIME_other);
    t->is_limited = is_limited;
    if (timed_out || o->value > 0) {
        o->value -= o->value > 0 && !timed_out;
        lock(s, hw, held);
        return;
    }
    t->relock = held;
    t->pending = PENDING_RELOCK;
    line_up(s, t, o, TIME_other);
}

static void signal(struct sim *s, struct hw_thread *hw, uint64_t addr, bool all)
{
    struct sync_object *o = object_at(s, hw, addr, SYNC_OBJECT_CONDITION);
    struct sim_thread *t;

    touch(s, hw, o, PEET_UPDATE, TIME_other);
    o->seen.uses++;
    if (!o->first && !s->source->is_live)
        o->value = 1; /* for who comes late, which it did not do when it was recorded */
    while ((t = take_first(o))) {
        wake(s, o, t, hw->clock);
        if (!all)
            break;
    }
}

static void take_semaphore(struct sim *s, struct hw_thread *hw, uint64_t addr)
{
    struct sync_object *o = object_at(s, hw, addr, SYNC_OBJECT_SEMAPHORE);

    touch(s, hw, o, PEET_UPDATE, TIME_other);
    o->seen.uses++;
    if (o->value > 0)
        o->value--;
    else
        line_up(s, hw->context, o, TIME_other);
}

static void give_semaphore(struct sim *s, struct hw_thread *hw, uint64_t addr)
{
    struct sync_object *o = object_at(s, hw, addr, SYNC_OBJECT_SEMAPHORE);
    struct sim_thread *t = take_first(o);

    touch(s, hw, o, PEET_UPDATE, TIME_other);
    if (t)
        wake(s, o, t, hw->clock);
    else
        o->value++;
}

/* Whether what a context wants has been posted. */
static bool is_posted(const struct sim_thread *t, const struct sync_object *o)
{
    return t->forker ? sim_loop_may_go_on(t, o, t->wanted) : (int64_t)t->wanted <= (int64_t)o->value;
}

static void post(struct sim *s, struct hw_thread *hw, uint64_t addr, uint64_t value)
{
    struct sync_object *o = object_at(s, hw, addr, SYNC_OBJECT_POST);
    struct sim_thread *rest = o->first;

    touch(s, hw, o, PEET_STORE, TIME_other);
    if (hw->context->forker)
        sim_loop_post(s, hw->context, o, value);
    o->value = (int64_t)value > (int64_t)o->value ? value : o->value;
    o->first = NULL;
    while (rest) {
        struct sim_thread *t = rest;
        rest = t->next;
        if (is_posted(t, o))
            wake(s, o, t, hw->clock);
        else
            append(o, t);
    }
}

static void wait_for_post(struct sim *s, struct hw_thread *hw, uint64_t addr, uint64_t value)
{
    struct sync_object *o = object_at(s, hw, addr, SYNC_OBJECT_POST);

    touch(s, hw, o, PEET_LOAD, TIME_other);
    o->seen.uses++;
    hw->context->wanted = value;
    if (!is_posted(hw->context, o))
        line_up(s, hw->context, o, TIME_other);
}

void sim_leave_line(struct sim *s, struct sim_thread *t, uint64_t now)
{
    remove_from(t->object, t);
    wake(s, t->object, t, now);
}

/* ---- programs that run: what their libraries wait for ---- */

static void wait_for_word(struct sim *s, struct hw_thread *hw, uint64_t addr)
{
    struct sync_object *o = object_at(s, hw, addr, SYNC_OBJECT_FUTEX);

    o->seen.uses++;
    line_up(s, hw->context, o, TIME_other);
}

static void wake_for_word(struct sim *s, struct hw_thread *hw, uint64_t addr, uint64_t count)
{
    struct sync_object *o = object_at(s, hw, addr, SYNC_OBJECT_FUTEX);
    struct sim_thread *t;

    for (uint64_t i = 0; i < count && (t = take_first(o)); i++)
        wake(s, o, t, hw->clock);
}

/* ---- recordings: what threads decided on (map/source/conditions.h) ---- */

static void reach_arc(struct sim *s, struct hw_thread *hw, uint64_t arc)
{
    struct sync_object *o = object_at(s, hw, arc, SYNC_OBJECT_ARC);
    struct sim_thread *t;

    o->value = 1;
    while ((t = take_first(o))) {
        t->decides->seen.waits++;
        sim_wake(s, t, hw->clock);
    }
}

/* What the context decides on under the lock that it takes next is not there before the arc's tail. That is a wait at
 * a condition. */
static void wait_for_arc(struct sim *s, struct hw_thread *hw, uint64_t arc, uint64_t condition)
{
    if (arc == 0) { /* begins to wait at the condition; heads of arcs follow */
        touch(s, hw, object_at(s, hw, condition, SYNC_OBJECT_CONDITION), PEET_UPDATE, TIME_other);
        return;
    }
    struct sync_object *o = object_at(s, hw, arc, SYNC_OBJECT_ARC);
    hw->context->decides = object_at(s, hw, condition, SYNC_OBJECT_CONDITION);
    if (o->value == 0)
        line_up(s, hw->context, o, TIME_other);
}

/* Whether anybody else does something, or will. */
static bool is_alone(const struct sim *s, const struct sim_thread *t)
{
    for (uint32_t i = 0; i < s->contexts; i++) {
        const struct sim_thread *other = &s->context[i];
        if (other != t && !other->yields && (other->status == STATUS_RUNNING || other->status == STATUS_READY))
            return false;
    }
    return true;
}

static void yield_thread(struct sim *s, struct hw_thread *hw, uint64_t cycles)
{
    struct sim_thread *t = hw->context;
    uint64_t now = hw->clock;

    t->reply = is_alone(s, t);
    t->yields = true;
    t->waited = 0;
    sim_wait(s, t, object_at(s, hw, 0, SYNC_OBJECT_YIELD), TIME_other);
    sim_wake(s, t, now + cycles);
}

/* ---- threads ---- */

static struct sim_thread *context_of(struct sim *s, uint64_t thread)
{
    const uint32_t *n = map_find(&s->threads, thread, 0);

    return n ? &s->context[*n - 1] : NULL;
}

static void create(struct sim *s, struct hw_thread *hw, uint64_t thread)
{
    struct sim_thread *t = context_of(s, thread);

    if (!t || (t->status != STATUS_UNBORN && t->status != STATUS_ENDED))
        return;
    if (s->source->thread[t->sched.number].birth == BIRTH_ITERATION)
        sim_loop_created(t, hw->context);
    if (t->status != STATUS_UNBORN)
        return;
    s->alive++;
    sim_wake(s, t, hw->clock);
}

/* Ends a wait in which a thread may be cancelled. Who waits for a condition gets its lock back first. */
static void cancel(struct sim *s, struct hw_thread *hw, uint64_t thread)
{
    struct sim_thread *t = context_of(s, thread);

    if (!t || t->status != STATUS_WAITING)
        return;
    if (!t->joins
        && (!t->object
            || (t->object->seen.kind != SYNC_OBJECT_CONDITION && t->object->seen.kind != SYNC_OBJECT_SEMAPHORE)))
        return;
    if (!t->joins)
        remove_from(t->object, t);
    t->joins = 0;
    t->reply = SOURCE_CANCELLED;
    sim_wake(s, t, hw->clock);
}

static void join(struct sim *s, struct hw_thread *hw, uint64_t thread)
{
    struct sim_thread *child = context_of(s, thread), *t = hw->context;

    if (!child || child->status == STATUS_ENDED || child->status == STATUS_UNBORN)
        return;
    struct sync_object *o = object_at(s, hw, 0, SYNC_OBJECT_JOIN);
    o->seen.waits++;
    t->waited = 0;
    t->joins = child->sched.number + 1;
    sim_wait(s, t, o, TIME_other);
}

/* A recorded thread that was cut off has not told what it waited for then, and so not that it had given up a lock for
 * that. Whatever it held, nobody waited for it; and nobody is to do so now who comes later than when it was recorded. */
static void give_all_back(struct sim *s, struct hw_thread *hw)
{
    struct sync_object **o;
    size_t at = 0;
    uint64_t key;
    uint32_t tag;

    while ((o = map_next(&s->objects, &at, &key, &tag))) {
        if ((*o)->holder != hw->context)
            continue;
        (*o)->depth = 0;
        if ((*o)->seen.kind == SYNC_OBJECT_RWLOCK)
            rwunlock(s, hw, *o);
        else
            unlock(s, hw, *o);
    }
}

void sim_end_thread(struct sim *s, struct hw_thread *hw)
{
    struct sim_thread *ended = hw->context;

    sim_end_program(s, hw);
    ended->status = STATUS_ENDED;
    s->alive--;
    for (uint32_t i = 0; i < s->contexts; i++) {
        struct sim_thread *t = &s->context[i];
        if (t->status == STATUS_WAITING && t->joins == ended->sched.number + 1) {
            t->joins = 0;
            sim_wake(s, t, hw->clock);
        }
    }
    ended->place = NULL;
    hw->context = NULL;
    hw->runs = false;
    s->is_changed = true;
    sim_dispatch(s, hw, hw->clock);
}

/* ---- all ---- */

/* Numbers of their own, so that what else is random stays as it is. */
uint64_t sim_start_jitter(struct sim *s)
{
    if (s->config.jitter == 0)
        return 0;
    uint64_t v = s->config.seed * 0x9e3779b97f4a7c15 + ++s->lates;
    for (int i = 0; i < 3; i++) {
        v ^= v >> 32;
        v *= 0xd6e8feb86659fd93;
    }
    return (v >> 32) % ((uint64_t)s->config.jitter + 1);
}

bool sim_pending(struct sim *s, struct hw_thread *hw)
{
    struct sim_thread *t = hw->context;
    struct sync_object *o = t->object;
    uint8_t pending = t->pending;

    t->pending = PENDING_NOTHING;
    switch (pending) {
    case PENDING_LOCK: return try_lock(s, hw, false);
    case PENDING_RELOCK: lock(s, hw, t->relock); return hw->context == t && hw->runs && !t->pending;
    case PENDING_BARRIER:
        if (o->barrier.kind->go_on)
            spend(s, hw, o->barrier.kind->go_on(&o->barrier, &t->party, hw->clock), TIME_barrier, o);
        o->seen.waits++;
        return true;
    default: return true;
    }
}

static uint64_t time_of(const struct sim_thread *t)
{
    return t->place ? t->place->clock : t->since;
}

static bool waits_at(const struct sim_thread *t, const struct sync_object *barrier)
{
    return t->status == STATUS_WAITING && !t->joins && t->object == barrier;
}

/* Those for whom a barrier waits are not in the trace, or were cut off on their way: it opens for those that have
 * come. Nobody is still on his way out of it, for nobody can go on, so that it can be as new. */
static void open_barrier(struct sim *s, struct sync_object *o)
{
    uint64_t last = 0;

    for (uint32_t i = 0; i < s->contexts; i++)
        if (waits_at(&s->context[i], o) && time_of(&s->context[i]) > last)
            last = time_of(&s->context[i]);
    for (uint32_t i = 0; i < s->contexts; i++) {
        struct sim_thread *t = &s->context[i];
        if (!waits_at(t, o))
            continue;
        s->broken++;
        t->pending = PENDING_NOTHING;
        sim_wake(s, t, last);
    }
    o->barrier = new_barrier(s, o->addr);
}

/* The first barrier at which somebody waits; of a recorded program only, for others have made a mistake. */
static bool force_barrier(struct sim *s)
{
    for (uint32_t i = 0; i < s->contexts && !s->source->is_live; i++) {
        const struct sim_thread *t = &s->context[i];
        if (t->object && t->object->seen.kind == SYNC_OBJECT_BARRIER && waits_at(t, t->object)) {
            open_barrier(s, t->object);
            return true;
        }
    }
    return false;
}

bool sim_force_wakeup(struct sim *s)
{
    bool any = false;

    for (uint32_t i = 0; i < s->contexts; i++) {
        struct sim_thread *t = &s->context[i];
        bool waits = t->status == STATUS_WAITING && t->object && !t->joins
                     && (t->object->seen.kind == SYNC_OBJECT_CONDITION || t->object->seen.kind == SYNC_OBJECT_SEMAPHORE
                         || t->object->seen.kind == SYNC_OBJECT_ARC);
        if (!waits || (s->source->is_live && !(t->object->seen.kind == SYNC_OBJECT_CONDITION && t->is_limited)))
            continue;
        any = true;
        s->broken += !s->source->is_live;
        t->reply = 1; /* its time is over */
        remove_from(t->object, t);
        sim_wake(s, t, time_of(t));
    }
    return any || force_barrier(s);
}

/* An attempt that does not wait: of a recorded program it is known what came of it. */
static bool is_refused(struct sim *s, struct hw_thread *hw, const struct peet_event *e, struct sync_object *o,
                       bool is_taken)
{
    bool refused = s->source->is_live ? is_taken : e->arg[1] != 0;

    if (refused)
        touch(s, hw, o, PEET_LOAD, TIME_lock);
    hw->context->reply = refused;
    return refused;
}

void sim_event(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    const uint64_t *arg = e->arg;

    switch (e->kind) {
    case PEET_EV_thread_create: create(s, hw, arg[0]); break;
    case PEET_EV_thread_cancel: cancel(s, hw, arg[0]); break;
    case PEET_EV_thread_join: join(s, hw, arg[0]); break;
    case PEET_EV_thread_end:
        if (arg[0] != PEET_END_EXIT)
            give_all_back(s, hw);
        break;
    case PEET_EV_mutex_trylock:
    case PEET_EV_spin_trylock: {
        struct sync_object *o = object_at(s, hw, arg[0], SYNC_OBJECT_LOCK);
        if (is_refused(s, hw, e, o, o->holder != NULL))
            break;
    }
        /* fallthrough */
    case PEET_EV_mutex_lock:
    case PEET_EV_spin_lock: lock(s, hw, object_at(s, hw, arg[0], SYNC_OBJECT_LOCK)); break;
    case PEET_EV_mutex_unlock:
    case PEET_EV_spin_unlock: unlock(s, hw, object_at(s, hw, arg[0], SYNC_OBJECT_LOCK)); break;
    case PEET_EV_rwlock_tryrdlock:
    case PEET_EV_rwlock_trywrlock: {
        struct sync_object *o = object_at(s, hw, arg[0], SYNC_OBJECT_RWLOCK);
        if (is_refused(s, hw, e, o, o->holder || o->first || (e->kind == PEET_EV_rwlock_trywrlock && o->readers > 0)))
            break;
    }
        /* fallthrough */
    case PEET_EV_rwlock_rdlock:
    case PEET_EV_rwlock_wrlock:
        rwlock(s, hw, object_at(s, hw, arg[0], SYNC_OBJECT_RWLOCK),
               e->kind == PEET_EV_rwlock_rdlock || e->kind == PEET_EV_rwlock_tryrdlock);
        break;
    case PEET_EV_rwlock_unlock: rwunlock(s, hw, object_at(s, hw, arg[0], SYNC_OBJECT_RWLOCK)); break;
    case PEET_EV_cond_wait: wait_for_condition(s, hw, arg, false, false); break;
    case PEET_EV_cond_timedwait: wait_for_condition(s, hw, arg, true, arg[2] != 0); break;
    case PEET_EV_cond_signal: signal(s, hw, arg[0], false); break;
    case PEET_EV_cond_broadcast: signal(s, hw, arg[0], true); break;
    case PEET_EV_barrier_wait: barrier(s, hw, arg[0], arg[1]); break;
    case PEET_EV_sem_init: object_at(s, hw, arg[0], SYNC_OBJECT_SEMAPHORE)->value = arg[1]; break;
    case PEET_EV_sem_trywait: {
        struct sync_object *o = object_at(s, hw, arg[0], SYNC_OBJECT_SEMAPHORE);
        if (is_refused(s, hw, e, o, o->value == 0))
            break;
    }
        /* fallthrough */
    case PEET_EV_sem_wait: take_semaphore(s, hw, arg[0]); break;
    case PEET_EV_sem_post: give_semaphore(s, hw, arg[0]); break;
    case PEET_EV_futex_wait: wait_for_word(s, hw, arg[0]); break;
    case PEET_EV_futex_wake: wake_for_word(s, hw, arg[0], arg[1]); break;
    case PEET_EV_arc_tail: reach_arc(s, hw, arg[0]); break;
    case PEET_EV_arc_head: wait_for_arc(s, hw, arg[0], arg[1]); break;
    case PEET_EV_yield: yield_thread(s, hw, arg[0]); break;
    case PEET_EV_post: post(s, hw, arg[0], arg[1]); break;
    case PEET_EV_wait: wait_for_post(s, hw, arg[0], arg[1]); break;
    case PEET_EV_doall_start: sim_loop_start(hw->context, arg[0]); break;
    case PEET_EV_doall_finish: sim_loop_finish(s, hw->context, hw->clock); break;
    case PEET_EV_doall_join: sim_loop_join(s, hw->context); break;
    case PEET_EV_range_read: sim_range(s, hw, arg[0], arg[1], PEET_LOAD); break;
    case PEET_EV_range_write: sim_range(s, hw, arg[0], arg[1], PEET_STORE); break;
    case PEET_EV_range_copy:
        sim_range(s, hw, arg[1], arg[2], PEET_LOAD);
        sim_range(s, hw, arg[0], arg[2], PEET_STORE);
        break;
    case PEET_EV_range_compare:
        sim_range(s, hw, arg[0], arg[2], PEET_LOAD);
        sim_range(s, hw, arg[1], arg[2], PEET_LOAD);
        break;
    default: break; /* costs nothing */
    }
}
