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

static struct object *object_at(struct sim *s, const struct place *p, uint64_t addr, enum sim_object_kind kind)
{
    uint32_t space = p->context->space;
    uint64_t tagged = spaces_tag(&s->spaces, space, addr);
    struct object **o = map_put(&s->objects, object_name(s, space, tagged, addr), kind);

    assert(o);
    if (!*o) {
        *o = arena_alloc(&s->arena, sizeof **o);
        assert(*o);
        (*o)->seen = (struct sim_object){ .addr = addr, .process = s->spaces.process[space], .kind = (uint8_t)kind };
        (*o)->addr = tagged;
        if (kind == OBJECT_LOCK)
            (*o)->lock = (struct sync_lock){
                .kind = s->config.lock, .host = &s->host, .config = &s->config.sync, .addr = tagged
            };
        else if (kind == OBJECT_BARRIER)
            (*o)->barrier = new_barrier(s, tagged);
        if (s->listener && addr && kind != OBJECT_ARC)
            s->listener->object(s->listener->context, p->context->sched.number, &(*o)->seen);
    }
    return *o;
}

/* A place's context goes on behind what it did with an object. */
static void spend(struct sim *s, struct place *p, uint64_t until, enum time_kind as, struct object *o)
{
    sim_spend(s, p, until, as, p->context, o);
}

/* One reference to the word of an object. */
static void touch(struct sim *s, struct place *p, struct object *o, enum peet_kind kind, enum time_kind as)
{
    spend(s, p, s->host.access(s, &p->context->party, o->addr, o->addr, kind, p->clock), as, o);
}

static void append(struct object *o, struct context *c)
{
    c->next = NULL;
    if (o->first)
        o->last->next = c;
    else
        o->first = c;
    o->last = c;
}

static struct context *take_first(struct object *o)
{
    struct context *c = o->first;

    if (c)
        o->first = c->next;
    return c;
}

static void remove_from(struct object *o, const struct context *c)
{
    struct context *all = o->first;

    o->first = o->last = NULL;
    while (all) {
        struct context *next = all->next;
        if (all != c)
            append(o, all);
        all = next;
    }
}

/* Waits in line. */
static void line_up(struct sim *s, struct context *c, struct object *o, enum time_kind as)
{
    append(o, c);
    c->since = c->place->clock;
    c->waited = 0;
    sim_wait(s, c, o, as);
}

static void wake(struct sim *s, struct object *o, struct context *c, uint64_t now)
{
    o->seen.waits++;
    sim_wake(s, c, now);
}

/* ---- locks ---- */

/* Tries to take the lock; false: not yet. */
static bool try_lock(struct sim *s, struct place *p, bool is_new)
{
    struct context *c = p->context;
    struct object *o = c->object;
    enum sync_outcome outcome;

    if (is_new) {
        c->since = p->clock;
        c->waited = 0;
        c->found_taken = false;
    }
    c->found_taken |= o->holder != NULL;
    spend(s, p, o->lock.kind->attempt(&o->lock, &c->party, is_new, p->clock, &outcome), TIME_lock, o);
    c->pending = outcome == SYNC_DONE ? PENDING_NOTHING : PENDING_LOCK;
    if (outcome == SYNC_DONE) {
        assert(!o->holder);
        o->holder = c;
        o->since = p->clock;
        o->seen.uses++;
        o->seen.waits += c->found_taken;
    } else if (outcome == SYNC_PARKED) {
        sim_wait(s, c, o, TIME_lock);
    }
    return outcome == SYNC_DONE;
}

static void lock(struct sim *s, struct place *p, struct object *o)
{
    if (o->holder == p->context) {
        o->depth++;
        return;
    }
    p->context->object = o;
    try_lock(s, p, true);
}

static void unlock(struct sim *s, struct place *p, struct object *o)
{
    struct context *holder = o->holder;

    if (!holder) /* taken before the recording began */
        return;
    if (o->depth > 0) {
        o->depth--;
        return;
    }
    o->holder = NULL;
    o->seen.held += p->clock - o->since;
    p->context->waited = 0;
    spend(s, p, o->lock.kind->release(&o->lock, &holder->party, p->clock), TIME_lock, o);
}

/* ---- locks for many readers ---- */

static void grant(struct sim *s, struct object *o, uint64_t now)
{
    while (o->first && !o->holder && (o->first->is_reader || o->readers == 0)) {
        struct context *c = take_first(o);
        o->seen.uses++;
        if (c->is_reader)
            o->readers++;
        else
            o->holder = c;
        wake(s, o, c, now);
    }
}

static void rwlock(struct sim *s, struct place *p, struct object *o, bool is_reader)
{
    struct context *c = p->context;

    touch(s, p, o, PEET_UPDATE, TIME_lock);
    c->is_reader = is_reader;
    if (o->holder || o->first || (!is_reader && o->readers > 0)) {
        line_up(s, c, o, TIME_lock);
        return;
    }
    o->seen.uses++;
    if (is_reader)
        o->readers++;
    else
        o->holder = c;
}

static void rwunlock(struct sim *s, struct place *p, struct object *o)
{
    touch(s, p, o, PEET_UPDATE, TIME_lock);
    if (o->holder == p->context)
        o->holder = NULL;
    else if (o->readers > 0)
        o->readers--;
    grant(s, o, p->clock);
}

/* ---- barriers ---- */

static void barrier(struct sim *s, struct place *p, uint64_t addr, uint64_t parties)
{
    struct object *o = object_at(s, p, addr, OBJECT_BARRIER);
    struct context *c = p->context;
    enum sync_outcome outcome;

    c->since = p->clock;
    c->waited = 0;
    c->object = o;
    if (o->barrier.arrived == 0)
        o->barrier.parties = (uint32_t)parties;
    uint64_t done = o->barrier.kind->arrive(&o->barrier, &c->party, p->clock, &outcome);
    spend(s, p, done, TIME_barrier, o);
    if (outcome == SYNC_DONE) {
        o->seen.uses++;
        c->reply = 1; /* one of them is told that it was the last */
        return;
    }
    c->pending = PENDING_BARRIER;
    sim_wait(s, c, o, TIME_barrier);
}

/* ---- conditions, semaphores, posts ---- */

static void wait_for_condition(struct sim *s, struct place *p, const uint64_t *arg, bool is_limited, bool timed_out)
{
    struct object *o = object_at(s, p, arg[0], OBJECT_CONDITION), *held = object_at(s, p, arg[1], OBJECT_LOCK);
    struct context *c = p->context;

    unlock(s, p, held);
    touch(s, p, o, PEET_UPDATE, TIME_other);
    c->is_limited = is_limited;
    if (timed_out || o->value > 0) {
        o->value -= o->value > 0 && !timed_out;
        lock(s, p, held);
        return;
    }
    c->relock = held;
    c->pending = PENDING_RELOCK;
    line_up(s, c, o, TIME_other);
}

static void signal(struct sim *s, struct place *p, uint64_t addr, bool all)
{
    struct object *o = object_at(s, p, addr, OBJECT_CONDITION);
    struct context *c;

    touch(s, p, o, PEET_UPDATE, TIME_other);
    o->seen.uses++;
    if (!o->first && !s->source->is_live)
        o->value = 1; /* for who comes late, which it did not do when it was recorded */
    while ((c = take_first(o))) {
        wake(s, o, c, p->clock);
        if (!all)
            break;
    }
}

static void take_semaphore(struct sim *s, struct place *p, uint64_t addr)
{
    struct object *o = object_at(s, p, addr, OBJECT_SEMAPHORE);

    touch(s, p, o, PEET_UPDATE, TIME_other);
    o->seen.uses++;
    if (o->value > 0)
        o->value--;
    else
        line_up(s, p->context, o, TIME_other);
}

static void give_semaphore(struct sim *s, struct place *p, uint64_t addr)
{
    struct object *o = object_at(s, p, addr, OBJECT_SEMAPHORE);
    struct context *c = take_first(o);

    touch(s, p, o, PEET_UPDATE, TIME_other);
    if (c)
        wake(s, o, c, p->clock);
    else
        o->value++;
}

/* Whether what a context wants has been posted. */
static bool is_posted(const struct context *c, const struct object *o)
{
    return c->forker ? sim_loop_may_go_on(c, o, c->wanted) : (int64_t)c->wanted <= (int64_t)o->value;
}

static void post(struct sim *s, struct place *p, uint64_t addr, uint64_t value)
{
    struct object *o = object_at(s, p, addr, OBJECT_POST);
    struct context *rest = o->first;

    touch(s, p, o, PEET_STORE, TIME_other);
    if (p->context->forker)
        sim_loop_post(s, p->context, o, value);
    o->value = (int64_t)value > (int64_t)o->value ? value : o->value;
    o->first = NULL;
    while (rest) {
        struct context *c = rest;
        rest = c->next;
        if (is_posted(c, o))
            wake(s, o, c, p->clock);
        else
            append(o, c);
    }
}

static void wait_for_post(struct sim *s, struct place *p, uint64_t addr, uint64_t value)
{
    struct object *o = object_at(s, p, addr, OBJECT_POST);

    touch(s, p, o, PEET_LOAD, TIME_other);
    o->seen.uses++;
    p->context->wanted = value;
    if (!is_posted(p->context, o))
        line_up(s, p->context, o, TIME_other);
}

void sim_leave_line(struct sim *s, struct context *c, uint64_t now)
{
    remove_from(c->object, c);
    wake(s, c->object, c, now);
}

/* ---- programs that run: what their libraries wait for ---- */

static void wait_for_word(struct sim *s, struct place *p, uint64_t addr)
{
    struct object *o = object_at(s, p, addr, OBJECT_FUTEX);

    o->seen.uses++;
    line_up(s, p->context, o, TIME_other);
}

static void wake_for_word(struct sim *s, struct place *p, uint64_t addr, uint64_t count)
{
    struct object *o = object_at(s, p, addr, OBJECT_FUTEX);
    struct context *c;

    for (uint64_t i = 0; i < count && (c = take_first(o)); i++)
        wake(s, o, c, p->clock);
}

/* ---- recordings: what threads decided on (map/source/conditions.h) ---- */

static void reach_arc(struct sim *s, struct place *p, uint64_t arc)
{
    struct object *o = object_at(s, p, arc, OBJECT_ARC);
    struct context *c;

    o->value = 1;
    while ((c = take_first(o))) {
        c->decides->seen.waits++;
        sim_wake(s, c, p->clock);
    }
}

/* What the context decides on under the lock that it takes next is not there before the arc's tail. That is a wait at
 * a condition. */
static void wait_for_arc(struct sim *s, struct place *p, uint64_t arc, uint64_t condition)
{
    if (arc == 0) { /* begins to wait at the condition; heads of arcs follow */
        touch(s, p, object_at(s, p, condition, OBJECT_CONDITION), PEET_UPDATE, TIME_other);
        return;
    }
    struct object *o = object_at(s, p, arc, OBJECT_ARC);
    p->context->decides = object_at(s, p, condition, OBJECT_CONDITION);
    if (o->value == 0)
        line_up(s, p->context, o, TIME_other);
}

/* Whether anybody else does something, or will. */
static bool is_alone(const struct sim *s, const struct context *c)
{
    for (uint32_t i = 0; i < s->contexts; i++) {
        const struct context *other = &s->context[i];
        if (other != c && !other->yields && (other->status == STATUS_RUNNING || other->status == STATUS_READY))
            return false;
    }
    return true;
}

static void give_way(struct sim *s, struct place *p, uint64_t cycles)
{
    struct context *c = p->context;
    uint64_t now = p->clock;

    c->reply = is_alone(s, c);
    c->yields = true;
    c->waited = 0;
    sim_wait(s, c, object_at(s, p, 0, OBJECT_YIELD), TIME_other);
    sim_wake(s, c, now + cycles);
}

/* ---- threads ---- */

static struct context *context_of(struct sim *s, uint64_t thread)
{
    const uint32_t *n = map_find(&s->threads, thread, 0);

    return n ? &s->context[*n - 1] : NULL;
}

static void create(struct sim *s, struct place *p, uint64_t thread)
{
    struct context *c = context_of(s, thread);

    if (!c || (c->status != STATUS_UNBORN && c->status != STATUS_ENDED))
        return;
    if (s->source->thread[c->sched.number].birth == BIRTH_ITERATION)
        sim_loop_created(c, p->context);
    if (c->status != STATUS_UNBORN)
        return;
    s->alive++;
    sim_wake(s, c, p->clock);
}

/* Ends a wait in which a thread may be cancelled. Who waits for a condition gets its lock back first. */
static void cancel(struct sim *s, struct place *p, uint64_t thread)
{
    struct context *c = context_of(s, thread);

    if (!c || c->status != STATUS_WAITING)
        return;
    if (!c->joins
        && (!c->object || (c->object->seen.kind != OBJECT_CONDITION && c->object->seen.kind != OBJECT_SEMAPHORE)))
        return;
    if (!c->joins)
        remove_from(c->object, c);
    c->joins = 0;
    c->reply = SOURCE_CANCELLED;
    sim_wake(s, c, p->clock);
}

static void join(struct sim *s, struct place *p, uint64_t thread)
{
    struct context *child = context_of(s, thread), *c = p->context;

    if (!child || child->status == STATUS_ENDED || child->status == STATUS_UNBORN)
        return;
    struct object *o = object_at(s, p, 0, OBJECT_JOIN);
    o->seen.waits++;
    c->waited = 0;
    c->joins = child->sched.number + 1;
    sim_wait(s, c, o, TIME_other);
}

/* A recorded thread that was cut off has not told what it waited for then, and so not that it had given up a lock for
 * that. Whatever it held, nobody waited for it; and nobody is to do so now who comes later than when it was recorded. */
static void give_all_back(struct sim *s, struct place *p)
{
    struct object **o;
    size_t at = 0;
    uint64_t key;
    uint32_t tag;

    while ((o = map_next(&s->objects, &at, &key, &tag))) {
        if ((*o)->holder != p->context)
            continue;
        (*o)->depth = 0;
        if ((*o)->seen.kind == OBJECT_RWLOCK)
            rwunlock(s, p, *o);
        else
            unlock(s, p, *o);
    }
}

void sim_end_context(struct sim *s, struct place *p)
{
    struct context *ended = p->context;

    sim_end_program(s, p);
    ended->status = STATUS_ENDED;
    s->alive--;
    for (uint32_t i = 0; i < s->contexts; i++) {
        struct context *c = &s->context[i];
        if (c->status == STATUS_WAITING && c->joins == ended->sched.number + 1) {
            c->joins = 0;
            sim_wake(s, c, p->clock);
        }
    }
    ended->place = NULL;
    p->context = NULL;
    p->runs = false;
    s->is_changed = true;
    sim_employ(s, p, p->clock);
}

/* ---- all ---- */

/* Numbers of their own, so that what else is random stays as it is. */
uint64_t sim_late(struct sim *s)
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

bool sim_pending(struct sim *s, struct place *p)
{
    struct context *c = p->context;
    struct object *o = c->object;
    uint8_t pending = c->pending;

    c->pending = PENDING_NOTHING;
    switch (pending) {
    case PENDING_LOCK: return try_lock(s, p, false);
    case PENDING_RELOCK: lock(s, p, c->relock); return p->context == c && p->runs && !c->pending;
    case PENDING_BARRIER:
        if (o->barrier.kind->go_on)
            spend(s, p, o->barrier.kind->go_on(&o->barrier, &c->party, p->clock), TIME_barrier, o);
        o->seen.waits++;
        return true;
    default: return true;
    }
}

static uint64_t time_of(const struct context *c)
{
    return c->place ? c->place->clock : c->since;
}

static bool waits_at(const struct context *c, const struct object *barrier)
{
    return c->status == STATUS_WAITING && !c->joins && c->object == barrier;
}

/* Those for whom a barrier waits are not in the trace, or were cut off on their way: it opens for those that have
 * come. Nobody is still on his way out of it, for nobody can go on, so that it can be as new. */
static void open_barrier(struct sim *s, struct object *o)
{
    uint64_t last = 0;

    for (uint32_t i = 0; i < s->contexts; i++)
        if (waits_at(&s->context[i], o) && time_of(&s->context[i]) > last)
            last = time_of(&s->context[i]);
    for (uint32_t i = 0; i < s->contexts; i++) {
        struct context *c = &s->context[i];
        if (!waits_at(c, o))
            continue;
        s->broken++;
        c->pending = PENDING_NOTHING;
        sim_wake(s, c, last);
    }
    o->barrier = new_barrier(s, o->addr);
}

/* The first barrier at which somebody waits; of a recorded program only, for others have made a mistake. */
static bool break_barrier(struct sim *s)
{
    for (uint32_t i = 0; i < s->contexts && !s->source->is_live; i++) {
        const struct context *c = &s->context[i];
        if (c->object && c->object->seen.kind == OBJECT_BARRIER && waits_at(c, c->object)) {
            open_barrier(s, c->object);
            return true;
        }
    }
    return false;
}

bool sim_break(struct sim *s)
{
    bool any = false;

    for (uint32_t i = 0; i < s->contexts; i++) {
        struct context *c = &s->context[i];
        bool waits = c->status == STATUS_WAITING && c->object && !c->joins
                     && (c->object->seen.kind == OBJECT_CONDITION || c->object->seen.kind == OBJECT_SEMAPHORE
                         || c->object->seen.kind == OBJECT_ARC);
        if (!waits || (s->source->is_live && !(c->object->seen.kind == OBJECT_CONDITION && c->is_limited)))
            continue;
        any = true;
        s->broken += !s->source->is_live;
        c->reply = 1; /* its time is over */
        remove_from(c->object, c);
        sim_wake(s, c, time_of(c));
    }
    return any || break_barrier(s);
}

/* An attempt that does not wait: of a recorded program it is known what came of it. */
static bool is_refused(struct sim *s, struct place *p, const struct peet_event *e, struct object *o, bool is_taken)
{
    bool refused = s->source->is_live ? is_taken : e->arg[1] != 0;

    if (refused)
        touch(s, p, o, PEET_LOAD, TIME_lock);
    p->context->reply = refused;
    return refused;
}

void sim_event(struct sim *s, struct place *p, const struct peet_event *e)
{
    const uint64_t *arg = e->arg;

    switch (e->kind) {
    case PEET_EV_thread_create: create(s, p, arg[0]); break;
    case PEET_EV_thread_cancel: cancel(s, p, arg[0]); break;
    case PEET_EV_thread_join: join(s, p, arg[0]); break;
    case PEET_EV_thread_end:
        if (arg[0] != PEET_END_EXIT)
            give_all_back(s, p);
        break;
    case PEET_EV_mutex_trylock:
    case PEET_EV_spin_trylock: {
        struct object *o = object_at(s, p, arg[0], OBJECT_LOCK);
        if (is_refused(s, p, e, o, o->holder != NULL))
            break;
    }
        /* fallthrough */
    case PEET_EV_mutex_lock:
    case PEET_EV_spin_lock: lock(s, p, object_at(s, p, arg[0], OBJECT_LOCK)); break;
    case PEET_EV_mutex_unlock:
    case PEET_EV_spin_unlock: unlock(s, p, object_at(s, p, arg[0], OBJECT_LOCK)); break;
    case PEET_EV_rwlock_tryrdlock:
    case PEET_EV_rwlock_trywrlock: {
        struct object *o = object_at(s, p, arg[0], OBJECT_RWLOCK);
        if (is_refused(s, p, e, o, o->holder || o->first || (e->kind == PEET_EV_rwlock_trywrlock && o->readers > 0)))
            break;
    }
        /* fallthrough */
    case PEET_EV_rwlock_rdlock:
    case PEET_EV_rwlock_wrlock:
        rwlock(s, p, object_at(s, p, arg[0], OBJECT_RWLOCK),
               e->kind == PEET_EV_rwlock_rdlock || e->kind == PEET_EV_rwlock_tryrdlock);
        break;
    case PEET_EV_rwlock_unlock: rwunlock(s, p, object_at(s, p, arg[0], OBJECT_RWLOCK)); break;
    case PEET_EV_cond_wait: wait_for_condition(s, p, arg, false, false); break;
    case PEET_EV_cond_timedwait: wait_for_condition(s, p, arg, true, arg[2] != 0); break;
    case PEET_EV_cond_signal: signal(s, p, arg[0], false); break;
    case PEET_EV_cond_broadcast: signal(s, p, arg[0], true); break;
    case PEET_EV_barrier_wait: barrier(s, p, arg[0], arg[1]); break;
    case PEET_EV_sem_init: object_at(s, p, arg[0], OBJECT_SEMAPHORE)->value = arg[1]; break;
    case PEET_EV_sem_trywait: {
        struct object *o = object_at(s, p, arg[0], OBJECT_SEMAPHORE);
        if (is_refused(s, p, e, o, o->value == 0))
            break;
    }
        /* fallthrough */
    case PEET_EV_sem_wait: take_semaphore(s, p, arg[0]); break;
    case PEET_EV_sem_post: give_semaphore(s, p, arg[0]); break;
    case PEET_EV_futex_wait: wait_for_word(s, p, arg[0]); break;
    case PEET_EV_futex_wake: wake_for_word(s, p, arg[0], arg[1]); break;
    case PEET_EV_arc_tail: reach_arc(s, p, arg[0]); break;
    case PEET_EV_arc_head: wait_for_arc(s, p, arg[0], arg[1]); break;
    case PEET_EV_yield: give_way(s, p, arg[0]); break;
    case PEET_EV_post: post(s, p, arg[0], arg[1]); break;
    case PEET_EV_wait: wait_for_post(s, p, arg[0], arg[1]); break;
    case PEET_EV_doall_start: sim_loop_start(p->context, arg[0]); break;
    case PEET_EV_doall_finish: sim_loop_finish(s, p->context, p->clock); break;
    case PEET_EV_doall_join: sim_loop_join(s, p->context); break;
    case PEET_EV_range_read: sim_range(s, p, arg[0], arg[1], PEET_LOAD); break;
    case PEET_EV_range_write: sim_range(s, p, arg[0], arg[1], PEET_STORE); break;
    case PEET_EV_range_copy:
        sim_range(s, p, arg[1], arg[2], PEET_LOAD);
        sim_range(s, p, arg[0], arg[2], PEET_STORE);
        break;
    case PEET_EV_range_compare:
        sim_range(s, p, arg[0], arg[2], PEET_LOAD);
        sim_range(s, p, arg[1], arg[2], PEET_LOAD);
        break;
    default: break; /* costs nothing */
    }
}
