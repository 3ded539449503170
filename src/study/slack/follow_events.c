/* SPDX-License-Identifier: MIT */
/* What events do to order. An event that acquires or waits takes effect when the thread continues: then all that it waited for has happened. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "study/slack/follow_in.h"

static uint64_t follow_now(const struct follower *f, uint32_t thread)
{
    return sim_thread_clock(f->sim, thread);
}

static uint32_t follow_process(const struct follower *f, uint32_t thread)
{
    return f->source.thread[thread].process;
}

/* ---- knowledge that is passed on ---- */

static void follow_publish(struct follower *f, uint32_t thread, struct sync_channel *c, enum channel_order order,
                           uint32_t unit)
{
    struct unit_release r = { .must = dependences_segment(f->dependences, thread, CHANNEL_MUST),
                              .known = dependences_segment(f->dependences, thread, CHANNEL_LOCK),
                              .time = follow_now(f, thread) };

    dependences_publish(f->dependences, thread, c, order);
    if (unit != UNIT_NONE)
        unit_release(units_at(f->units, unit), thread, &r);
}

static struct follow_pending *follow_add_pending(struct follower *f, uint32_t thread, enum pending_kind kind,
                                                 uint32_t unit)
{
    struct follow_thread *t = &f->thread[thread];
    struct follow_pending *p = &t->pending[t->pendings++];

    assert(t->pendings <= sizeof t->pending / sizeof *t->pending);
    *p = (struct follow_pending){ .kind = (uint8_t)kind, .unit = unit };
    return p;
}

/* The thread uses a unit, at which it may wait. */
static void follow_use(struct follower *f, uint32_t thread, uint32_t unit, bool is_lock)
{
    f->thread[thread].waits_at[is_lock ? 0 : 1] = unit;
    unit_use(units_at(f->units, unit), thread, follow_now(f, thread));
}

/* ---- locks ---- */

static struct follow_held *follow_held_at(struct follow_thread *t, uint64_t addr)
{
    for (size_t i = 0; i < t->helds; i++)
        if (t->held[i].addr == addr)
            return &t->held[i];
    return NULL;
}

static void follow_lock(struct follower *f, uint32_t thread, const struct peet_event *e, enum relax_class class,
                        uint64_t addr, bool is_reader)
{
    struct follow_object *o = follow_object_at(f, follow_process(f, thread), class, addr);
    struct follow_held *h = follow_held_at(&f->thread[thread], addr);

    if (h) {
        h->depth++;
        return;
    }
    o->unit = follow_unit(f, thread, class, addr, e->site);
    follow_use(f, thread, o->unit, true);
    struct follow_pending *p = follow_add_pending(f, thread, WILL_TAKE, o->unit);
    p->object = o;
    p->addr = addr;
    p->is_reader = is_reader;
}

static void follow_take(struct follower *f, uint32_t thread, const struct follow_pending *p)
{
    struct follow_thread *t = &f->thread[thread];
    struct sync_unit *x = units_at(f->units, p->unit);

    dependences_hold(f->dependences, thread, 1);
    dependences_acquire(f->dependences, thread, &p->object->channel, p->unit, CHANNEL_LOCK);
    if (!p->is_reader)
        dependences_acquire(f->dependences, thread, &p->object->readers, p->unit, CHANNEL_LOCK);
    t->held = mem_room(t->held, t->helds, sizeof *t->held);
    t->held[t->helds++] = (struct follow_held){ p->object, p->addr, p->unit, 1, p->is_reader };
    if (unit_thread_at(x, thread)->depth++ == 0)
        unit_open_section(x, thread);
}

static void follow_unlock(struct follower *f, uint32_t thread, uint64_t addr)
{
    struct follow_thread *t = &f->thread[thread];
    struct follow_held *h = follow_held_at(t, addr);

    if (!h || --h->depth > 0)
        return;
    struct sync_unit *x = units_at(f->units, h->unit);
    follow_publish(f, thread, h->is_reader ? &h->object->readers : &h->object->channel, CHANNEL_LOCK, h->unit);
    dependences_hold(f->dependences, thread, -1);
    struct unit_thread *ut = unit_thread_at(x, thread);
    if (ut->depth && --ut->depth == 0)
        unit_close_section(f->units, x, thread);
    *h = t->held[--t->helds];
}

/* ---- barriers ---- */

static void follow_barrier(struct follower *f, uint32_t thread, const struct peet_event *e)
{
    struct follow_object *o = follow_object_at(f, follow_process(f, thread), RELAX_BARRIER, e->arg[0]);
    uint32_t unit = follow_unit(f, thread, RELAX_BARRIER, e->arg[0], e->site);
    struct follow_round *r = o->round;

    if (!r) {
        r = o->round = mem_alloc(1, sizeof *r);
        *r = (struct follow_round){ .unit = unit, .expected = (uint32_t)e->arg[1], .is_open = true, .next = f->rounds };
        if (f->rounds)
            f->rounds->previous = r;
        f->rounds = r;
    } else if (units_at(f->units, r->unit) != units_at(f->units, unit)) {
        units_join(f->units, unit, r->unit); /* both places are one barrier */
    }
    follow_use(f, thread, unit, false);
    follow_publish(f, thread, &r->channel, CHANNEL_MUST, unit);
    r->arrived++;
    struct sync_unit *x = units_at(f->units, unit);
    if (r->arrived > x->most_members)
        x->most_members = r->arrived;
    struct follow_pending *p = follow_add_pending(f, thread, WILL_PASS_BARRIER, unit);
    p->round = r;
    p->object = o;
    if (r->arrived >= r->expected) {
        r->is_open = false;
        o->round = NULL;
    }
}

static void follow_round_free(struct follower *f, struct follow_round *r)
{
    if (r->next)
        r->next->previous = r->previous;
    if (r->previous)
        r->previous->next = r->next;
    else
        f->rounds = r->next;
    channel_release(&r->channel);
    free(r);
}

void follow_free_rounds(struct follower *f)
{
    while (f->rounds)
        follow_round_free(f, f->rounds);
}

static void follow_pass_barrier(struct follower *f, uint32_t thread, const struct follow_pending *p)
{
    struct follow_round *r = p->round;

    if (r->is_open) { /* forced to open for fewer threads */
        r->is_open = false;
        p->object->round = NULL;
    }
    dependences_acquire(f->dependences, thread, &r->channel, p->unit, CHANNEL_MUST);
    if (++r->left == r->arrived)
        follow_round_free(f, r);
}

/* ---- conditions, semaphores, posts ---- */

static void follow_condition(struct follower *f, uint32_t thread, const struct peet_event *e)
{
    bool has_timed_out = e->kind == PEET_EV_cond_timedwait && e->arg[2] != 0;
    struct follow_object *o = follow_object_at(f, follow_process(f, thread), RELAX_CONDITION, e->arg[0]);

    follow_unlock(f, thread, e->arg[1]);
    o->unit = follow_unit(f, thread, RELAX_CONDITION, e->arg[0], e->site);
    follow_use(f, thread, o->unit, false);
    if (!has_timed_out)
        follow_add_pending(f, thread, WILL_ACQUIRE, o->unit)->object = o;
    follow_lock(f, thread, e, RELAX_LOCK, e->arg[1], false);
}

static void follow_signal(struct follower *f, uint32_t thread, const struct peet_event *e)
{
    struct follow_object *o = follow_object_at(f, follow_process(f, thread), RELAX_CONDITION, e->arg[0]);

    follow_publish(f, thread, &o->channel, CHANNEL_MUST, o->unit);
}

static struct sync_channel *follow_arc(struct follower *f, uint64_t arc)
{
    struct sync_channel *c = map_put(&f->arcs, arc, 0);

    assert(c);
    return c;
}

static void follow_arc_head(struct follower *f, uint32_t thread, const struct peet_event *e)
{
    uint32_t unit = follow_unit(f, thread, RELAX_CONDITION, e->arg[1], e->site);

    if (e->arg[0] == 0)
        return;
    follow_use(f, thread, unit, false);
    follow_add_pending(f, thread, WILL_ACQUIRE, unit)->arc = e->arg[0];
}

static void follow_wait_for(struct follower *f, uint32_t thread, const struct peet_event *e, enum relax_class class)
{
    struct follow_object *o = follow_object_at(f, follow_process(f, thread), class, e->arg[0]);

    o->unit = follow_unit(f, thread, class, e->arg[0], e->site);
    follow_use(f, thread, o->unit, false);
    follow_add_pending(f, thread, WILL_ACQUIRE, o->unit)->object = o;
}

static void follow_post(struct follower *f, uint32_t thread, const struct peet_event *e, enum relax_class class)
{
    struct follow_object *o = follow_object_at(f, follow_process(f, thread), class, e->arg[0]);

    follow_publish(f, thread, &o->channel, o->is_like_lock ? CHANNEL_LOCK : CHANNEL_MUST, o->unit);
}

static void follow_acquire(struct follower *f, uint32_t thread, const struct follow_pending *p)
{
    if (p->arc)
        dependences_acquire(f->dependences, thread, follow_arc(f, p->arc), p->unit, CHANNEL_MUST);
    else
        dependences_acquire(f->dependences, thread, &p->object->channel, p->unit,
                            p->object->is_like_lock ? CHANNEL_LOCK : CHANNEL_MUST);
}

/* ---- threads ---- */

/* The stack of a thread is the mapping in which its thread pointer lies. */
static void follow_find_stack(struct follower *f, uint32_t thread)
{
    uint64_t pointer = source_pointer(f->inner, thread);
    uint32_t process = follow_process(f, thread);

    if (pointer)
        objects_thread(f->objects, process, pointer);
    for (size_t i = f->mappings; i-- > 0;)
        if (f->mapping[i].process == process && pointer >= f->mapping[i].start && pointer < f->mapping[i].end) {
            dependences_stack(f->dependences, thread, f->mapping[i].start, f->mapping[i].end);
            return;
        }
}

static void follow_begin_from(struct follower *f, uint32_t thread, uint32_t creator)
{
    if (f->thread[thread].has_begun)
        return;
    f->thread[thread].has_begun = true;
    f->thread[thread].waits_at[0] = f->thread[thread].waits_at[1] = UNIT_NONE;
    dependences_begin(f->dependences, thread, follow_process(f, thread), creator);
    follow_find_stack(f, thread);
}

void follow_begin(struct follower *f, uint32_t thread)
{
    follow_begin_from(f, thread, UNIT_NONE);
}

void follow_end(struct follower *f, uint32_t thread)
{
    struct follow_thread *t = &f->thread[thread];

    if (t->has_ended || !t->has_begun)
        return;
    follow_continue(f, thread);
    while (t->helds)
        follow_unlock(f, thread, t->held[0].addr);
    t->has_ended = true;
    t->ended = follow_now(f, thread);
    dependences_publish(f->dependences, thread, &t->end, CHANNEL_MUST);
    dependences_end(f->dependences, thread);
}

static uint32_t follow_thread_of(const struct follower *f, uint64_t id)
{
    const uint32_t *number = map_find(&f->thread_by_id, id, 0);

    return number ? *number : UINT32_MAX;
}

static void follow_create(struct follower *f, uint32_t thread, const struct peet_event *e)
{
    uint32_t child = follow_thread_of(f, e->arg[0]);

    if (child != UINT32_MAX)
        follow_begin_from(f, child, thread);
}

static void follow_join(struct follower *f, uint32_t thread, const struct peet_event *e)
{
    uint32_t child = follow_thread_of(f, e->arg[0]), unit;

    if (child == UINT32_MAX)
        return;
    unit = follow_unit(f, thread, RELAX_JOIN, 0, e->site);
    follow_use(f, thread, unit, false);
    follow_add_pending(f, thread, WILL_JOIN, unit)->child = child;
}

/* The end of the child passes on what it knew. A dependence on an earlier part of the child needs its end, too. */
static void follow_joined(struct follower *f, uint32_t thread, const struct follow_pending *p)
{
    const struct follow_thread *child = &f->thread[p->child];

    if (!child->has_ended)
        return;
    unit_release(units_at(f->units, p->unit), p->child,
                 &(struct unit_release){ .must = UINT32_MAX, .known = UINT32_MAX, .time = child->ended });
    dependences_acquire(f->dependences, thread, &child->end, p->unit, CHANNEL_MUST);
}

void follow_continue(struct follower *f, uint32_t thread)
{
    struct follow_thread *t = &f->thread[thread];

    for (unsigned i = 0; i < t->pendings; i++) {
        const struct follow_pending *p = &t->pending[i];
        switch (p->kind) {
        case WILL_TAKE: follow_take(f, thread, p); break;
        case WILL_PASS_BARRIER: follow_pass_barrier(f, thread, p); break;
        case WILL_JOIN: follow_joined(f, thread, p); break;
        default: follow_acquire(f, thread, p); break;
        }
    }
    t->pendings = 0;
}

/* ---- memory ---- */

static void follow_block_begins(struct follower *f, uint32_t thread, uint64_t addr, uint64_t size)
{
    uint64_t *known = addr ? map_put(&f->sizes, addr, follow_process(f, thread)) : NULL;

    if (!known)
        return;
    *known = size;
    dependences_forget(f->dependences, thread, addr, size);
}

static void follow_block_ends(struct follower *f, uint32_t thread, uint64_t addr)
{
    uint32_t process = follow_process(f, thread);
    const uint64_t *size = addr ? map_find(&f->sizes, addr, process) : NULL;

    if (!size)
        return;
    dependences_discard(f->dependences, thread, addr, *size);
    dependences_flush(f->dependences, thread); /* while the block has its name */
    map_remove(&f->sizes, addr, process);
}

static void follow_range(struct follower *f, uint32_t thread, uint64_t addr, uint64_t size, bool writes)
{
    dependences_access(f->dependences, thread, addr, size, !writes, writes);
}

static void follow_map(struct follower *f, uint32_t thread, const struct peet_event *e)
{
    f->mapping = mem_room(f->mapping, f->mappings, sizeof *f->mapping);
    f->mapping[f->mappings++] = (struct follow_mapping){ e->arg[0], e->arg[0] + e->arg[1], follow_process(f, thread) };
}

static void follow_memory(struct follower *f, uint32_t thread, const struct peet_event *e)
{
    uint64_t path[OBJECT_PATH];

    switch (e->kind) {
    case PEET_EV_malloc: follow_block_begins(f, thread, e->arg[0], e->arg[1]); break;
    case PEET_EV_calloc: follow_block_begins(f, thread, e->arg[0], e->arg[1] * e->arg[2]); break;
    case PEET_EV_memalign: follow_block_begins(f, thread, e->arg[0], e->arg[2]); break;
    case PEET_EV_realloc:
        if (e->arg[0] != e->arg[1]) {
            follow_block_ends(f, thread, e->arg[1]);
            follow_block_begins(f, thread, e->arg[0], e->arg[2]);
        }
        break;
    case PEET_EV_free: follow_block_ends(f, thread, e->arg[0]); break;
    case PEET_EV_map: follow_map(f, thread, e); break;
    case PEET_EV_range_read: follow_range(f, thread, e->arg[0], e->arg[1], false); break;
    case PEET_EV_range_write: follow_range(f, thread, e->arg[0], e->arg[1], true); break;
    case PEET_EV_range_copy:
        follow_range(f, thread, e->arg[1], e->arg[2], false);
        follow_range(f, thread, e->arg[0], e->arg[2], true);
        break;
    case PEET_EV_range_compare:
        follow_range(f, thread, e->arg[0], e->arg[2], false);
        follow_range(f, thread, e->arg[1], e->arg[2], false);
        break;
    default: break;
    }
    if (objects_wants(e->kind)) {
        const struct source_thread *c = &f->source.thread[thread];
        paths_calls(&f->paths, thread, path, OBJECT_PATH);
        objects_event(f->objects, c->process, c->id, e, path);
    }
}

/* ---- all events ---- */

static void follow_try(struct follower *f, uint32_t thread, const struct peet_event *e, enum relax_class class,
                       bool is_reader)
{
    if (e->arg[1] == 0)
        follow_lock(f, thread, e, class, e->arg[0], is_reader);
}

void follow_event(struct follower *f, uint32_t thread, const struct peet_event *e)
{
    f->thread[thread].waits_at[0] = f->thread[thread].waits_at[1] = UNIT_NONE;
    switch (e->kind) {
    case PEET_EV_thread_create: follow_create(f, thread, e); break;
    case PEET_EV_thread_join: follow_join(f, thread, e); break;
    case PEET_EV_thread_end: follow_end(f, thread); break;
    case PEET_EV_mutex_lock:
    case PEET_EV_spin_lock: follow_lock(f, thread, e, RELAX_LOCK, e->arg[0], false); break;
    case PEET_EV_mutex_trylock:
    case PEET_EV_spin_trylock: follow_try(f, thread, e, RELAX_LOCK, false); break;
    case PEET_EV_rwlock_rdlock: follow_lock(f, thread, e, RELAX_RWLOCK, e->arg[0], true); break;
    case PEET_EV_rwlock_wrlock: follow_lock(f, thread, e, RELAX_RWLOCK, e->arg[0], false); break;
    case PEET_EV_rwlock_tryrdlock: follow_try(f, thread, e, RELAX_RWLOCK, true); break;
    case PEET_EV_rwlock_trywrlock: follow_try(f, thread, e, RELAX_RWLOCK, false); break;
    case PEET_EV_mutex_unlock:
    case PEET_EV_spin_unlock:
    case PEET_EV_rwlock_unlock: follow_unlock(f, thread, e->arg[0]); break;
    case PEET_EV_barrier_wait: follow_barrier(f, thread, e); break;
    case PEET_EV_cond_wait:
    case PEET_EV_cond_timedwait: follow_condition(f, thread, e); break;
    case PEET_EV_cond_signal:
    case PEET_EV_cond_broadcast: follow_signal(f, thread, e); break;
    case PEET_EV_arc_tail: dependences_publish(f->dependences, thread, follow_arc(f, e->arg[0]), CHANNEL_MUST); break;
    case PEET_EV_arc_head: follow_arc_head(f, thread, e); break;
    case PEET_EV_sem_init:
        follow_object_at(f, follow_process(f, thread), RELAX_SEMAPHORE, e->arg[0])->is_like_lock = e->arg[1] > 0;
        break;
    case PEET_EV_sem_trywait:
        if (e->arg[1] == 0)
            follow_wait_for(f, thread, e, RELAX_SEMAPHORE);
        break;
    case PEET_EV_sem_wait: follow_wait_for(f, thread, e, RELAX_SEMAPHORE); break;
    case PEET_EV_sem_post: follow_post(f, thread, e, RELAX_SEMAPHORE); break;
    case PEET_EV_wait: follow_wait_for(f, thread, e, RELAX_POST); break;
    case PEET_EV_post: follow_post(f, thread, e, RELAX_POST); break;
    default: follow_memory(f, thread, e); break;
    }
}
