/* SPDX-License-Identifier: MIT */
/* Cuts threads into segments at the events that order threads, and numbers the objects of these events. A lock that its thread already
 * holds is not taken again, so that no later step has to handle recursive locks. */
#include "study/graph/precedence_in.h"

/* What an event that ends a segment does. Events that are not in the table end none. */
enum role { ROLE_NONE, ROLE_PLAIN, ROLE_TAKE, ROLE_TRY, ROLE_GIVE, ROLE_MEET, ROLE_VALUE, ROLE_CONDITION, ROLE_LOOP };

/* clang-format off */
static const struct {
    uint8_t role;
    uint8_t class; /* enum graph_object_class */
    bool shared;
} CUT[PEET_EVENT_KINDS] = {
    [PEET_EV_thread_create]    = { ROLE_PLAIN,     0,                false },
    [PEET_EV_thread_join]      = { ROLE_PLAIN,     0,                false },
    [PEET_EV_fork]             = { ROLE_PLAIN,     0,                false },
    [PEET_EV_mutex_lock]       = { ROLE_TAKE,      GRAPH_LOCK,      false },
    [PEET_EV_mutex_trylock]    = { ROLE_TRY,       GRAPH_LOCK,      false },
    [PEET_EV_mutex_unlock]     = { ROLE_GIVE,      GRAPH_LOCK,      false },
    [PEET_EV_rwlock_rdlock]    = { ROLE_TAKE,      GRAPH_LOCK,      true  },
    [PEET_EV_rwlock_tryrdlock] = { ROLE_TRY,       GRAPH_LOCK,      true  },
    [PEET_EV_rwlock_wrlock]    = { ROLE_TAKE,      GRAPH_LOCK,      false },
    [PEET_EV_rwlock_trywrlock] = { ROLE_TRY,       GRAPH_LOCK,      false },
    [PEET_EV_rwlock_unlock]    = { ROLE_GIVE,      GRAPH_LOCK,      false },
    [PEET_EV_spin_lock]        = { ROLE_TAKE,      GRAPH_LOCK,      false },
    [PEET_EV_spin_trylock]     = { ROLE_TRY,       GRAPH_LOCK,      false },
    [PEET_EV_spin_unlock]      = { ROLE_GIVE,      GRAPH_LOCK,      false },
    [PEET_EV_cond_wait]        = { ROLE_CONDITION, GRAPH_CONDITION, false },
    [PEET_EV_cond_timedwait]   = { ROLE_CONDITION, GRAPH_CONDITION, false },
    [PEET_EV_cond_signal]      = { ROLE_VALUE,     GRAPH_CONDITION, false },
    [PEET_EV_cond_broadcast]   = { ROLE_VALUE,     GRAPH_CONDITION, false },
    [PEET_EV_barrier_wait]     = { ROLE_MEET,      GRAPH_BARRIER,   false },
    [PEET_EV_sem_wait]         = { ROLE_VALUE,     GRAPH_SEMAPHORE, false },
    [PEET_EV_sem_trywait]      = { ROLE_VALUE,     GRAPH_SEMAPHORE, false },
    [PEET_EV_sem_post]         = { ROLE_VALUE,     GRAPH_SEMAPHORE, false },
    [PEET_EV_once]             = { ROLE_VALUE,     GRAPH_ONCE,      false },
    [PEET_EV_post]             = { ROLE_VALUE,     GRAPH_POST,      false },
    [PEET_EV_wait]             = { ROLE_VALUE,     GRAPH_POST,      false },
    [PEET_EV_doall_fork]       = { ROLE_LOOP,      0,                false },
    [PEET_EV_doall_start]      = { ROLE_LOOP,      0,                false },
    [PEET_EV_doall_finish]     = { ROLE_LOOP,      0,                false },
    [PEET_EV_doall_join]       = { ROLE_LOOP,      0,                false },
};
/* clang-format on */

enum { NAMED_BYTES = 4096 }; /* bytes of an allocation with a name, at least: there may be billions of smaller ones */

/* ---- objects of events ---- */

static int graph_object_find(struct precedence *p, enum graph_object_class class, uint32_t process, uint64_t addr,
                             uint32_t *ret, struct peet_err *err)
{
    /* Addresses have 48 or 57 bits; the class is above them. */
    uint64_t key = addr ^ (uint64_t) class << 60;
    uint32_t *number;

    if ((number = map_find(&p->index.objects, key, process))) {
        *ret = *number;
        return 0;
    }
    *ret = (uint32_t)p->objects;
    *GROW(p, object, objects, object_room, err) =
        (struct graph_object){ .addr = addr, .process = process, .class = class };
    if (!(number = map_put(&p->index.objects, key, process)))
        return precedence_no_memory(err);
    *number = *ret;
    return 0;
}

static int name_bytes(struct graph_reader *r, const struct thread_reader *t, const struct peet_event *e)
{
    struct named_range n = { .process = t->thread.process,
                             .thread = t->thread.id,
                             .kind = (uint8_t)e->kind,
                             .site = e->site,
                             .start = e->arg[0] };

    switch (e->kind) {
    case PEET_EV_name_data:
        n.string = e->arg[0];
        n.start = e->arg[1];
        n.size = e->arg[2];
        break;
    case PEET_EV_calloc: n.size = e->arg[1] * e->arg[2]; break;
    case PEET_EV_realloc:
    case PEET_EV_memalign: n.size = e->arg[2]; break;
    default: n.size = e->arg[1]; break;
    }
    bool told = e->kind == PEET_EV_name_data || e->kind == PEET_EV_map;
    if (n.start && n.size && (told || n.size >= NAMED_BYTES))
        *GROW(r->p, named, named_count, named_room, r->err) = n;
    return 0;
}

/* ---- segments ---- */

int precedence_cut(struct graph_reader *r, struct thread_reader *t, const struct peet_event *e, uint32_t object,
                   uint64_t value)
{
    struct graph_thread *l = &t->thread;

    *GROW(t, segment, segments, segment_room, r->err) = (struct graph_segment){
        .instructions = l->instructions - t->start.instructions,
        .references = l->references - t->start.references,
        .position = t->start.instructions,
        .events = l->events,
        .object = object,
        .lock = SEGMENT_NONE,
        .value = value,
        .site = e->site,
        .end = (uint8_t)e->kind,
        .share = t->shares,
    };
    t->start.instructions = l->instructions;
    t->start.references = l->references;
    for (size_t i = 0; i < t->touches; i++) {
        *GROW(t, share, shares, share_room, r->err) = (struct function_share){ t->count[t->touched[i]], t->touched[i] };
        t->count[t->touched[i]] = 0;
    }
    t->touches = 0;
    return 0;
}

static struct held_lock *held_lock_find(const struct thread_reader *t, uint32_t object)
{
    for (size_t i = t->helds; i-- > 0;)
        if (t->held[i].object == object)
            return &t->held[i];
    return NULL;
}

static int take_lock(struct graph_reader *r, struct thread_reader *t, const struct peet_event *e)
{
    uint32_t object;
    int code = graph_object_find(r->p, GRAPH_LOCK, t->thread.process, e->arg[0], &object, r->err);
    struct held_lock *held = code < 0 ? NULL : held_lock_find(t, object);
    bool shared = CUT[e->kind].shared;

    if (code < 0 || (CUT[e->kind].role == ROLE_TRY && e->arg[1] != 0))
        return code;
    if (held) {
        held->depth++;
        return 0;
    }
    *GROW(t, held, helds, held_room, r->err) = (struct held_lock){ object, 1, shared };
    return precedence_cut(r, t, e, object, !shared);
}

static int give_lock(struct graph_reader *r, struct thread_reader *t, const struct peet_event *e)
{
    uint32_t object;
    int code = graph_object_find(r->p, GRAPH_LOCK, t->thread.process, e->arg[0], &object, r->err);
    struct held_lock *held = code < 0 ? NULL : held_lock_find(t, object);

    if (!held || --held->depth > 0)
        return code; /* taken before the recording began, or not for the last time */
    bool shared = held->shared;
    *held = t->held[--t->helds];
    return precedence_cut(r, t, e, object, !shared);
}

static int wait_at_condition(struct graph_reader *r, struct thread_reader *t, const struct peet_event *e)
{
    uint32_t condition, lock;
    int code = graph_object_find(r->p, GRAPH_CONDITION, t->thread.process, e->arg[0], &condition, r->err);

    if (code == 0)
        code = graph_object_find(r->p, GRAPH_LOCK, t->thread.process, e->arg[1], &lock, r->err);
    if (code < 0)
        return code;
    bool woken = e->kind == PEET_EV_cond_wait || e->arg[2] == 0;
    uint64_t *waits = map_put(&r->waits, condition, t->thread.id);
    if (!waits)
        return precedence_no_memory(r->err);
    *waits += woken;
    code = precedence_cut(r, t, e, condition, woken ? *waits : 0);
    if (code == 0 && held_lock_find(t, lock))
        t->segment[t->segments - 1].lock = lock;
    return code;
}

static int arrive_at_barrier(struct graph_reader *r, struct thread_reader *t, const struct peet_event *e)
{
    uint32_t object;
    int code = graph_object_find(r->p, GRAPH_BARRIER, t->thread.process, e->arg[0], &object, r->err);

    if (code < 0)
        return code;
    struct graph_object *o = &r->p->object[object];
    uint8_t *used = map_put(&r->uses, object, t->thread.id);
    if (!used)
        return precedence_no_memory(r->err);
    o->users += !*used;
    *used = 1;
    o->arrivals = o->arrivals == 0 || e->arg[1] < o->arrivals ? e->arg[1] : o->arrivals;
    return precedence_cut(r, t, e, object, e->arg[1]);
}

static int use_value(struct graph_reader *r, struct thread_reader *t, const struct peet_event *e)
{
    uint32_t object;
    int code = graph_object_find(r->p, CUT[e->kind].class, t->thread.process, e->arg[0], &object, r->err);

    if (code < 0 || (e->kind == PEET_EV_sem_trywait && e->arg[1] != 0))
        return code;
    return precedence_cut(r, t, e, object, e->arg[1]);
}

/* Detaches the last segment, which is between two iterations or after the last one: it depends on the fork alone. The join then depends
 * on the iteration before it. */
static int detach_control(struct graph_reader *r, struct thread_reader *t, const struct open_loop *loop)
{
    uint32_t control = (uint32_t)t->segments - 1;

    t->segment[control].detached = true;
    *GROW(t, arc, arcs, arc_room, r->err) = (struct graph_arc){ loop->fork, control, PEET_EV_doall_fork, ARC_CERTAIN };
    *GROW(t, finished, finisheds, finished_room, r->err) = control - 1;
    return 0;
}

static int parallel_loop(struct graph_reader *r, struct thread_reader *t, const struct peet_event *e)
{
    int code = precedence_cut(r, t, e, SEGMENT_NONE, e->arg[0]);
    uint32_t segment = (uint32_t)t->segments - 1;

    if (code < 0)
        return code;
    bool after_iteration = t->segments > 1 && t->segment[segment - 1].end == PEET_EV_doall_finish;
    if (after_iteration && t->opens && t->open[t->opens - 1].is_loop
        && (e->kind == PEET_EV_doall_start || e->kind == PEET_EV_doall_join))
        code = detach_control(r, t, &t->open[t->opens - 1]);
    if (code < 0)
        return code;
    if (e->kind == PEET_EV_doall_fork || e->kind == PEET_EV_doall_start) {
        *GROW(t, open, opens, open_room, r->err) =
            (struct open_loop){ e->kind == PEET_EV_doall_fork, segment, t->finisheds };
    } else if (e->kind == PEET_EV_doall_finish) {
        t->opens -= t->opens && !t->open[t->opens - 1].is_loop;
    } else {
        while (t->opens && !t->open[t->opens - 1].is_loop) /* left by a jump */
            t->opens--;
        if (!t->opens)
            return 0;
        size_t from = t->open[--t->opens].finished;
        for (size_t i = from; i < t->finisheds; i++)
            *GROW(t, arc, arcs, arc_room, r->err) =
                (struct graph_arc){ t->finished[i], segment + 1, PEET_EV_doall_join, ARC_CERTAIN };
        t->finisheds = from;
    }
    return 0;
}

static int other_event(struct graph_reader *r, struct thread_reader *t, const struct peet_event *e)
{
    uint32_t object;
    int code;

    switch (e->kind) {
    case PEET_EV_gap:
        r->p->unknown.gaps++;
        r->p->unknown.missing_instructions += e->arg[0];
        return 0;
    case PEET_EV_spin_wait: r->p->unknown.spin_waits++; return 0;
    case PEET_EV_sem_init:
        code = graph_object_find(r->p, GRAPH_SEMAPHORE, t->thread.process, e->arg[0], &object, r->err);
        if (code == 0) {
            r->p->object[object].inits++;
            r->p->object[object].initial += e->arg[1];
        }
        return code;
    case PEET_EV_malloc:
    case PEET_EV_calloc:
    case PEET_EV_realloc:
    case PEET_EV_memalign:
    case PEET_EV_map:
    case PEET_EV_name_data: return name_bytes(r, t, e);
    default: return 0;
    }
}

int precedence_event(struct graph_reader *r, struct thread_reader *t, const struct peet_event *e)
{
    t->thread.events++;
    switch (e->kind < PEET_EVENT_KINDS ? CUT[e->kind].role : ROLE_NONE) {
    case ROLE_PLAIN: return precedence_cut(r, t, e, SEGMENT_NONE, e->arg[0]);
    case ROLE_TAKE:
    case ROLE_TRY: return take_lock(r, t, e);
    case ROLE_GIVE: return give_lock(r, t, e);
    case ROLE_MEET: return arrive_at_barrier(r, t, e);
    case ROLE_VALUE: return use_value(r, t, e);
    case ROLE_CONDITION: return wait_at_condition(r, t, e);
    case ROLE_LOOP: return parallel_loop(r, t, e);
    default: return other_event(r, t, e);
    }
}
