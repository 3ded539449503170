/* SPDX-License-Identifier: MIT */
/* See unordered.h. The thread is read first, then the writes of all others of its process. */
#include "study/compare/unordered.h"

#include <stdlib.h>

#include "base/err.h"

enum { GRANULE = 3, MOST_GRANULES = 1 << 21, LOCK_BITS = 62, SEGMENTS_KEPT = 4 };
#define ATOMIC_BIT (UINT64_C(1) << 63)

/* Reads of a granule by the thread in one of its segments. */
struct granule_read {
    uint64_t record, code;   /* number in the thread; address of the instruction; of the last read */
    uint64_t held;           /* bits of the locks held at all of these reads */
    uint32_t segment, bytes; /* bytes: of the granule, a bit for each */
};

/* Reads of a granule in the last segments; the newest one is at (count - 1) % SEGMENTS_KEPT. */
struct granule_reads {
    struct granule_read read[SEGMENTS_KEPT];
    uint32_t count;
};

/* The search for one thread. */
struct unordered_search {
    const struct unordered *u;
    uint32_t *before;    /* by segment: 1 + the thread's last segment that certainly precedes it; 0: none */
    uint32_t *after;     /* by segment: the thread's first segment that certainly follows it; SEGMENT_NONE: none */
    struct map granules; /* struct granule_reads */
    struct map locks;    /* uint32_t: number of the bit, by address */
    struct unordered_read found;
    struct peet_err *err;
};

/* A thread while it is read. */
struct walker {
    const struct graph_thread *thread;
    uint32_t segment;          /* current one */
    uint64_t events, records;  /* so far */
    uint16_t depth[LOCK_BITS]; /* by bit: acquisitions that are not released */
    uint64_t held;             /* a bit for each lock that it holds */
    bool is_reader;            /* its reads are searched */
};

/* ---- order ---- */

static bool segment_is_of(const struct graph_thread *l, uint32_t segment)
{
    return segment >= l->first && segment < l->first + l->segments;
}

static uint32_t segment_lower(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t segment_higher(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The segment after it that depends on it; SEGMENT_NONE: none. */
static uint32_t segment_next(const struct precedence *p, uint32_t segment)
{
    bool any = segment + 1 < p->segments && p->segment[segment + 1].thread == p->segment[segment].thread;

    return any && !p->segment[segment + 1].detached ? segment + 1 : SEGMENT_NONE;
}

/* The pass from the first segment to the last. */
static void unordered_find_before(struct unordered_search *x, const struct graph_thread *l, uint32_t *round_value)
{
    const struct precedence *p = &x->u->p;
    const struct schedule *s = &x->u->s;

    for (uint32_t i = 0; i < p->segments; i++) {
        uint32_t at = s->order[i], m = at > 0 && segment_next(p, at - 1) == at ? s->round_of[at - 1] : SEGMENT_NONE;
        if (m != SEGMENT_NONE)
            x->before[at] = segment_higher(x->before[at], round_value[m]);
        uint32_t value = segment_is_of(l, at) ? at + 1 : x->before[at], next = segment_next(p, at);
        if (next != SEGMENT_NONE)
            x->before[next] = segment_higher(x->before[next], value);
        if (s->round_of[at] != SEGMENT_NONE)
            round_value[s->round_of[at]] = segment_higher(round_value[s->round_of[at]], value);
        for (uint64_t k = p->first_arc[at]; k < p->first_arc[at + 1]; k++)
            if (arc_is_known(&p->arc[k]))
                x->before[p->arc[k].to] = segment_higher(x->before[p->arc[k].to], value);
    }
}

/* The pass from the last segment to the first. */
static void unordered_find_after(struct unordered_search *x, const struct graph_thread *l, uint32_t *round_value)
{
    const struct precedence *p = &x->u->p;
    const struct schedule *s = &x->u->s;

    for (uint32_t i = p->segments; i-- > 0;) {
        uint32_t at = s->order[i], next = segment_next(p, at), least = SEGMENT_NONE;
        if (next != SEGMENT_NONE)
            least = segment_is_of(l, next) ? next : x->after[next];
        if (s->round_of[at] != SEGMENT_NONE)
            least = segment_lower(least, round_value[s->round_of[at]]);
        for (uint64_t k = p->first_arc[at]; k < p->first_arc[at + 1]; k++)
            if (arc_is_known(&p->arc[k]))
                least = segment_lower(least, segment_is_of(l, p->arc[k].to) ? p->arc[k].to : x->after[p->arc[k].to]);
        x->after[at] = least;
        uint32_t m = at > 0 && segment_next(p, at - 1) == at ? s->round_of[at - 1] : SEGMENT_NONE;
        if (m != SEGMENT_NONE)
            round_value[m] = segment_lower(round_value[m], segment_is_of(l, at) ? at : least);
    }
}

/* Finds the thread's segments that certainly precede and follow each segment. */
static int unordered_find_order(struct unordered_search *x, const struct graph_thread *l)
{
    uint32_t segments = x->u->p.segments, rounds = x->u->s.rounds;
    uint32_t *round_value = calloc(rounds + 1, sizeof *round_value);

    x->before = calloc(segments + 1, sizeof *x->before);
    x->after = calloc(segments + 1, sizeof *x->after);
    if (round_value && x->before && x->after) {
        unordered_find_before(x, l, round_value);
        for (uint32_t i = 0; i < rounds; i++)
            round_value[i] = SEGMENT_NONE;
        unordered_find_after(x, l, round_value);
    }
    free(round_value);
    return round_value && x->before && x->after
               ? 0
               : err_set(x->err, PEET_ERR_MEMORY, "no memory for the order of %u pieces", segments);
}

/* ---- locks ---- */

static void walker_hold(struct unordered_search *x, struct walker *w, uint64_t addr, int more)
{
    uint32_t *bit = map_put(&x->locks, addr, w->thread->process);

    if (!bit)
        return;
    if (!*bit)
        *bit = (uint32_t)((x->locks.count - 1) % LOCK_BITS) + 1;
    uint16_t *depth = &w->depth[*bit - 1];
    if (more < 0 && *depth == 0)
        return; /* taken before the recording began */
    *depth = (uint16_t)(*depth + more);
    uint64_t mask = UINT64_C(1) << (*bit - 1);
    w->held = *depth ? w->held | mask : w->held & ~mask;
}

static void walker_lock_event(struct unordered_search *x, struct walker *w, const struct peet_event *e)
{
    switch (e->kind) {
    case PEET_EV_mutex_trylock:
    case PEET_EV_spin_trylock:
    case PEET_EV_rwlock_tryrdlock:
    case PEET_EV_rwlock_trywrlock:
        if (e->arg[1] != 0)
            return;
        /* fallthrough */
    case PEET_EV_mutex_lock:
    case PEET_EV_spin_lock:
    case PEET_EV_rwlock_rdlock:
    case PEET_EV_rwlock_wrlock: walker_hold(x, w, e->arg[0], 1); break;
    case PEET_EV_mutex_unlock:
    case PEET_EV_spin_unlock:
    case PEET_EV_rwlock_unlock: walker_hold(x, w, e->arg[0], -1); break;
    default: break;
    }
}

/* ---- accesses ---- */

/* An access of a thread. */
struct walker_access {
    uint64_t addr, size; /* address; bytes */
    uint64_t code;       /* address of the instruction */
    uint64_t held;       /* a bit for each lock that the thread holds */
};

static void unordered_note_read(struct unordered_search *x, const struct walker *w, uint64_t granule, unsigned bytes,
                                const struct walker_access *a)
{
    struct granule_reads *g = map_find(&x->granules, granule, 0);

    if (!g && x->granules.count >= MOST_GRANULES) {
        x->found.is_partial = true;
        return;
    }
    if (!g)
        g = map_put(&x->granules, granule, 0);
    if (!g)
        return;
    if (g->count == 0 || g->read[(g->count - 1) % SEGMENTS_KEPT].segment != w->segment)
        g->read[g->count++ % SEGMENTS_KEPT] = (struct granule_read){ .segment = w->segment, .held = UINT64_MAX };
    struct granule_read *r = &g->read[(g->count - 1) % SEGMENTS_KEPT];
    *r = (struct granule_read){ w->records, a->code, r->held & a->held, w->segment, r->bytes | bytes };
}

static void unordered_note_write(struct unordered_search *x, const struct walker *w, uint64_t granule, unsigned bytes,
                                 const struct walker_access *a)
{
    const struct granule_reads *g = map_find(&x->granules, granule, 0);

    for (uint32_t i = 0; g && i < SEGMENTS_KEPT && i < g->count; i++) {
        const struct granule_read *r = &g->read[i];
        enum unordered_kind kind = r->held & a->held ? UNORDERED_SYNCHRONIZED : UNORDERED_RACE;
        bool is_ordered = r->segment < x->before[w->segment] || r->segment >= x->after[w->segment];
        if (!(r->bytes & bytes) || is_ordered || kind < x->found.kind
            || (kind == x->found.kind && r->record <= x->found.record))
            continue;
        x->found.kind = kind;
        x->found.record = r->record;
        x->found.addr = granule << GRANULE;
        x->found.code = r->code;
        x->found.writer = w->thread->id;
    }
}

static void walker_touch(struct unordered_search *x, const struct walker *w, bool writes, const struct walker_access *a)
{
    uint64_t last = a->addr + a->size - 1;

    if (writes == w->is_reader || a->size == 0 || last < a->addr)
        return;
    for (uint64_t g = a->addr >> GRANULE; g <= last >> GRANULE; g++) {
        unsigned bytes = 0xff;
        if (g == a->addr >> GRANULE)
            bytes &= 0xffU << (a->addr & 7);
        if (g == last >> GRANULE)
            bytes &= 0xffU >> (7 - (last & 7));
        w->is_reader ? unordered_note_read(x, w, g, bytes, a) : unordered_note_write(x, w, g, bytes, a);
    }
}

static void walker_range_event(struct unordered_search *x, const struct walker *w, const struct peet_event *e)
{
    const uint64_t *arg = e->arg;

    switch (e->kind) {
    case PEET_EV_range_read:
        walker_touch(x, w, false, &(struct walker_access){ arg[0], arg[1], e->site, w->held });
        break;
    case PEET_EV_range_write:
        walker_touch(x, w, true, &(struct walker_access){ arg[0], arg[1], e->site, w->held });
        break;
    case PEET_EV_range_copy:
        walker_touch(x, w, false, &(struct walker_access){ arg[1], arg[2], e->site, w->held });
        walker_touch(x, w, true, &(struct walker_access){ arg[0], arg[2], e->site, w->held });
        break;
    case PEET_EV_range_compare:
        walker_touch(x, w, false, &(struct walker_access){ arg[0], arg[2], e->site, w->held });
        walker_touch(x, w, false, &(struct walker_access){ arg[1], arg[2], e->site, w->held });
        break;
    default: break;
    }
}

static void walker_reference(struct unordered_search *x, const struct walker *w, const struct peet_record *r)
{
    const struct peet_insn *insn = peet_trace_insn(x->u->p.trace, r->id);
    bool is_atomic = insn && insn->flags & PEET_FL_ATOMIC;
    struct walker_access a = { r->addr, r->size, insn ? insn->addr : 0, w->held | (is_atomic ? ATOMIC_BIT : 0) };

    if (r->kind == PEET_LOAD || r->kind == PEET_UPDATE)
        walker_touch(x, w, false, &a);
    if (r->kind == PEET_STORE || r->kind == PEET_UPDATE)
        walker_touch(x, w, true, &a);
}

static void walker_event(struct unordered_search *x, struct walker *w, const struct peet_event *e)
{
    bool is_last = w->segment == w->thread->first + w->thread->segments - 1;

    walker_range_event(x, w, e);
    walker_lock_event(x, w, e);
    w->events++;
    if (!is_last && w->events == x->u->p.segment[w->segment].events)
        w->segment++;
}

/* ---- threads ---- */

static int walker_run(struct unordered_search *x, const struct graph_thread *l, bool is_reader, uint64_t most)
{
    struct walker w = { .thread = l, .segment = l->first, .is_reader = is_reader };
    struct peet_cursor *c;
    struct peet_batch b;
    int r = peet_cursor_open(x->u->p.trace, l->id, 0, &c, x->err);

    if (r < 0)
        return r;
    while (w.records < most && (r = peet_cursor_next(c, &b, x->err)) != 0) {
        if (r < 0 && r != PEET_ERR_DAMAGED)
            break;
        for (size_t i = 0; r == 1 && i < b.count && w.records < most; i++, w.records++) {
            if (b.records[i].kind == PEET_EVENT)
                walker_event(x, &w, &b.events[b.records[i].id]);
            else if (peet_is_reference(&b.records[i]))
                walker_reference(x, &w, &b.records[i]);
        }
    }
    peet_cursor_free(c);
    return r < 0 && r != PEET_ERR_DAMAGED ? r : 0;
}

int unordered_find(const struct unordered *u, uint32_t thread, uint64_t before, struct unordered_read *ret,
                   struct peet_err *err)
{
    struct unordered_search x = { .u = u, .err = err };
    const struct graph_thread *l = precedence_thread(&u->p, thread);
    int r = l ? unordered_find_order(&x, l) : 0;

    x.granules.value_size = sizeof(struct granule_reads);
    x.locks.value_size = sizeof(uint32_t);
    if (l && r == 0)
        r = walker_run(&x, l, true, before);
    for (size_t i = 0; l && r == 0 && i < u->p.threads; i++)
        if (&u->p.thread[i] != l && u->p.thread[i].process == l->process)
            r = walker_run(&x, &u->p.thread[i], false, UINT64_MAX);
    if (r == 0)
        *ret = x.found;
    map_release(&x.granules);
    map_release(&x.locks);
    free(x.before);
    free(x.after);
    return r;
}

int unordered_init(struct unordered *u, struct peet_trace *t, struct peet_err *err)
{
    int r = precedence_read(&u->p, t, NULL, err);

    return r < 0 ? r : schedule_make(&u->s, &u->p, SCHEDULE_KNOWN, err);
}

void unordered_release(struct unordered *u)
{
    schedule_release(&u->s);
    precedence_release(&u->p);
    *u = (struct unordered){ 0 };
}
