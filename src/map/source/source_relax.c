/* SPDX-License-Identifier: MIT */
/* Batches without an event of the unit are passed on as they are. */
#include "map/source/source_relax.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* New objects lie above all addresses of programs, 256 bytes apart. */
#define NEW_OBJECTS (UINT64_C(1) << 47)
enum { NEW_OBJECT_BYTES = 256 };

/* A lock of the unit that a thread holds. */
struct relax_held {
    uint64_t addr;
    uint32_t depth; /* acquisitions that are not released */
    uint32_t part;
};

/* A thread while its records pass. */
struct relax_state {
    uint32_t uses; /* acquisitions or arrivals of the unit so far */
    size_t need;   /* next element of relax_thread.need */
    struct relax_held *held;
    size_t helds;
    struct peet_record *record; /* of the last batch that was changed */
    struct peet_event *event;
    size_t records, record_room, events, event_room;
};

struct relaxed_source {
    struct source source;
    struct source *inner;
    const struct relaxation *r;
    struct relax_state *state; /* by thread */
    struct map parts;          /* uint32_t: number of the new object from 1, by address and part */
};

/* ---- the copy of a batch ---- */

static void relax_put(struct relax_state *s, const struct peet_record *r)
{
    if (s->records == s->record_room) {
        s->record_room = s->record_room ? 2 * s->record_room : 256;
        s->record = realloc(s->record, s->record_room * sizeof *s->record);
        assert(s->record);
    }
    s->record[s->records++] = *r;
}

static void relax_put_event(struct relax_state *s, const struct peet_event *e)
{
    if (s->events == s->event_room) {
        s->event_room = s->event_room ? 2 * s->event_room : 64;
        s->event = realloc(s->event, s->event_room * sizeof *s->event);
        assert(s->event);
    }
    relax_put(s, &(struct peet_record){ .addr = e->arg[0], .id = (uint32_t)s->events, .kind = PEET_EVENT });
    s->event[s->events++] = *e;
}

static void relax_put_made(struct relax_state *s, const struct peet_event *like, uint32_t kind, uint64_t a, uint64_t b)
{
    relax_put_event(s,
                    &(struct peet_event){
                        .kind = kind, .args = (uint32_t)peet_event_arity(kind), .site = like->site, .arg = { a, b } });
}

/* ---- events of the unit ---- */

/* What an event does to an object of the unit's class. */
enum relax_role { ROLE_NONE, ROLE_USE, ROLE_TAKE, ROLE_RELEASE, ROLE_FAIL };

static enum relax_role role_of_try(const struct peet_event *e)
{
    return e->arg[1] == 0 ? ROLE_TAKE : ROLE_FAIL;
}

static enum relax_role role_of_lock(const struct peet_event *e)
{
    switch (e->kind) {
    case PEET_EV_mutex_lock:
    case PEET_EV_spin_lock: return ROLE_TAKE;
    case PEET_EV_mutex_trylock:
    case PEET_EV_spin_trylock: return role_of_try(e);
    case PEET_EV_mutex_unlock:
    case PEET_EV_spin_unlock: return ROLE_RELEASE;
    default: return ROLE_NONE;
    }
}

static enum relax_role role_of_rwlock(const struct peet_event *e)
{
    switch (e->kind) {
    case PEET_EV_rwlock_rdlock:
    case PEET_EV_rwlock_wrlock: return ROLE_TAKE;
    case PEET_EV_rwlock_tryrdlock:
    case PEET_EV_rwlock_trywrlock: return role_of_try(e);
    case PEET_EV_rwlock_unlock: return ROLE_RELEASE;
    default: return ROLE_NONE;
    }
}

static enum relax_role role_in_class(uint8_t class, const struct peet_event *e)
{
    switch (class) {
    case RELAX_BARRIER: return e->kind == PEET_EV_barrier_wait ? ROLE_USE : ROLE_NONE;
    case RELAX_LOCK: return role_of_lock(e);
    case RELAX_RWLOCK: return role_of_rwlock(e);
    case RELAX_JOIN: return e->kind == PEET_EV_thread_join ? ROLE_USE : ROLE_NONE;
    case RELAX_SEMAPHORE: return e->kind == PEET_EV_sem_wait ? ROLE_USE : ROLE_NONE;
    case RELAX_POST: return e->kind == PEET_EV_wait ? ROLE_USE : ROLE_NONE;
    default:
        return e->kind == PEET_EV_cond_wait || e->kind == PEET_EV_cond_timedwait || e->kind == PEET_EV_arc_head
                   ? ROLE_USE
                   : ROLE_NONE;
    }
}

static bool relax_has_key(const struct map *keys, uint64_t key, uint32_t tag)
{
    return keys->count == 0 || map_find(keys, key, tag);
}

static enum relax_role relax_role_of(const struct relaxed_source *x, uint32_t thread, const struct peet_event *e)
{
    const struct relaxation *r = x->r;
    enum relax_role role = role_in_class(r->class, e);
    uint64_t addr = e->kind == PEET_EV_arc_head ? e->arg[1] : e->arg[0];

    if (role == ROLE_NONE || !relax_has_key(&r->addrs, addr, x->source.thread[thread].process)
        || !relax_has_key(&r->sites, e->site, 0))
        return ROLE_NONE;
    return role;
}

/* ---- changes ---- */

static struct relax_held *relax_held_at(struct relax_state *s, uint64_t addr)
{
    for (size_t i = 0; i < s->helds; i++)
        if (s->held[i].addr == addr)
            return &s->held[i];
    s->held = mem_room(s->held, s->helds, sizeof *s->held);
    s->held[s->helds] = (struct relax_held){ .addr = addr };
    return &s->held[s->helds++];
}

static uint64_t relax_part_addr(struct relaxed_source *x, uint64_t addr, uint32_t part)
{
    uint32_t *number = map_put(&x->parts, addr, part);

    if (number && *number == 0)
        *number = (uint32_t)x->parts.count;
    return NEW_OBJECTS + (number ? *number : 0) * (uint64_t)NEW_OBJECT_BYTES;
}

static uint32_t relax_next_part(const struct relaxed_source *x, uint32_t thread)
{
    const struct relax_thread *t = thread < x->r->threads ? &x->r->thread[thread] : NULL;
    uint32_t use = x->state[thread].uses;

    return t && use < t->parts ? t->part[use] : 0;
}

/* The event that a part of a split lock has instead. */
static void relax_put_part(struct relaxed_source *x, struct relax_state *s, const struct peet_event *e,
                           enum relax_role role, uint32_t part)
{
    struct peet_event made = *e;

    made.arg[0] = relax_part_addr(x, e->arg[0], x->r->change == RELAX_SPLIT ? part : 0);
    if (x->r->change == RELAX_READERS && x->r->class == RELAX_LOCK)
        made.kind = role == ROLE_RELEASE ? PEET_EV_rwlock_unlock
                    : part == 1          ? PEET_EV_rwlock_rdlock
                                         : PEET_EV_rwlock_wrlock;
    relax_put_event(s, &made);
}

/* Locks: the part is that of the outermost acquisition. */
static void relax_lock(struct relaxed_source *x, uint32_t thread, const struct peet_event *e, enum relax_role role)
{
    struct relax_state *s = &x->state[thread];
    struct relax_held *h = relax_held_at(s, e->arg[0]);

    if (role == ROLE_FAIL)
        return;
    if (role == ROLE_TAKE) {
        if (h->depth++ > 0)
            return;
        h->part = relax_next_part(x, thread);
        s->uses++;
    } else {
        if (h->depth == 0 || --h->depth > 0)
            return;
    }
    if (h->part != RELAX_NO_PART)
        relax_put_part(x, s, e, role, h->part);
}

static void relax_point_to_point(struct relaxed_source *x, uint32_t thread, const struct peet_event *e)
{
    struct relax_state *s = &x->state[thread];
    const struct relax_thread *t = thread < x->r->threads ? &x->r->thread[thread] : NULL;

    s->uses++;
    if (t && t->is_needed)
        relax_put_made(s, e, PEET_EV_post, NEW_OBJECTS + thread * (uint64_t)NEW_OBJECT_BYTES, s->uses);
    for (; t && s->need < t->needs && t->need[s->need].arrival <= s->uses; s->need++)
        if (t->need[s->need].arrival == s->uses)
            relax_put_made(s, e, PEET_EV_wait, NEW_OBJECTS + t->need[s->need].from * (uint64_t)NEW_OBJECT_BYTES,
                           t->need[s->need].from_arrival);
}

static void relax_group(struct relaxed_source *x, uint32_t thread, const struct peet_event *e)
{
    const struct relax_thread *t = thread < x->r->threads ? &x->r->thread[thread] : NULL;
    struct peet_event made = *e;

    if (t && t->members < 2)
        return;
    if (t) {
        made.arg[0] = relax_part_addr(x, e->arg[0], t->group);
        made.arg[1] = t->members;
    }
    relax_put_event(&x->state[thread], &made);
}

static void relax_event(struct relaxed_source *x, uint32_t thread, const struct peet_event *e)
{
    enum relax_role role = relax_role_of(x, thread, e);

    if (role == ROLE_NONE)
        relax_put_event(&x->state[thread], e);
    else if (x->r->change == RELAX_POINT_TO_POINT)
        relax_point_to_point(x, thread, e);
    else if (x->r->change == RELAX_GROUPS)
        relax_group(x, thread, e);
    else if (x->r->change != RELAX_REMOVE)
        relax_lock(x, thread, e, role);
}

static void relax_batch(struct relaxed_source *x, uint32_t thread, struct peet_batch *b)
{
    struct relax_state *s = &x->state[thread];

    s->records = s->events = 0;
    for (size_t i = 0; i < b->count; i++) {
        if (b->records[i].kind == PEET_EVENT)
            relax_event(x, thread, &b->events[b->records[i].id]);
        else
            relax_put(s, &b->records[i]);
    }
    b->records = s->record;
    b->count = s->records;
    b->events = s->event;
    b->event_count = s->events;
}

/* ---- the source ---- */

static int relaxed_next(struct source *s, uint32_t thread, uint64_t reply, struct peet_batch *ret, struct peet_err *err)
{
    struct relaxed_source *x = (struct relaxed_source *)(void *)s;

    for (;;) {
        int r = source_next(x->inner, thread, reply, ret, err);
        bool changes = false;
        if (r <= 0)
            return r;
        for (size_t i = 0; i < ret->event_count && !changes; i++)
            changes = relax_role_of(x, thread, &ret->events[i]) != ROLE_NONE;
        if (changes)
            relax_batch(x, thread, ret);
        if (ret->count > 0)
            return r;
    }
}

static uint64_t relaxed_pointer(struct source *s, uint32_t thread)
{
    return source_pointer(((struct relaxed_source *)(void *)s)->inner, thread);
}

static void relaxed_free(struct source *s)
{
    struct relaxed_source *x = (struct relaxed_source *)(void *)s;

    for (uint32_t i = 0; i < s->max_threads; i++) {
        free(x->state[i].held);
        free(x->state[i].record);
        free(x->state[i].event);
    }
    free(x->state);
    map_release(&x->parts);
    source_free(x->inner);
    free(x);
}

static const struct source_kind RELAXED_SOURCE = { .next = relaxed_next,
                                                   .free = relaxed_free,
                                                   .pointer = relaxed_pointer };

struct source *source_take_relaxed(struct source *inner, const struct relaxation *r)
{
    struct relaxed_source *x = mem_alloc(1, sizeof *x);

    x->source = *inner;
    x->source.kind = &RELAXED_SOURCE;
    x->inner = inner;
    x->r = r;
    x->state = mem_alloc((size_t)inner->max_threads + 1, sizeof *x->state);
    x->parts.value_size = sizeof(uint32_t);
    return &x->source;
}
