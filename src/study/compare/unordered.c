/* SPDX-License-Identifier: MIT */
#include "study/compare/unordered.h"

#include <stdlib.h>

#include "base/err.h"

enum { GRANULE = 3, MOST_GRANULES = 1 << 21, LOCK_BITS = 62, PIECES_KEPT = 4 };
#define ATOMIC_BIT (UINT64_C(1) << 63)

/* How the thread read a granule in one of its pieces. */
struct read {
    uint64_t record, code;
    uint64_t held;         /* locks that it held each time: a bit for each */
    uint32_t piece, bytes; /* of the granule: a bit for each */
};

struct reads { /* of a granule; the newest piece is at last % PIECES_KEPT */
    struct read read[PIECES_KEPT];
    uint32_t count;
};

struct search {
    const struct unordered *u;
    uint32_t *before,
        *after; /* by piece: the thread's last that certainly precedes it, + 1; its first that certainly follows */
    struct map granules; /* struct reads */
    struct map locks;    /* uint32_t: number of the bit, by address */
    struct unordered_read found;
    struct peet_err *err;
};

struct walker { /* a thread while it is read */
    const struct lane *lane;
    uint32_t piece;
    uint64_t events, records;
    uint16_t depth[LOCK_BITS]; /* how often it holds the locks of each bit */
    uint64_t held;
    bool is_reader; /* it is the one that is asked about */
};

/* ---- order ---- */

static bool is_in(const struct lane *l, uint32_t piece)
{
    return piece >= l->first && piece < l->first + l->pieces;
}

static uint32_t lower(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t higher(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The piece that the thread goes on with at once, or PIECE_NONE. */
static uint32_t next_of(const struct precedence *p, uint32_t piece)
{
    bool any = piece + 1 < p->pieces && p->piece[piece + 1].lane == p->piece[piece].lane;

    return any && !p->piece[piece + 1].detached ? piece + 1 : PIECE_NONE;
}

/* From the first piece to the last: each tells those that follow it. */
static void find_before(struct search *x, const struct lane *l, uint32_t *met)
{
    const struct precedence *p = &x->u->p;
    const struct schedule *s = &x->u->s;

    for (uint32_t i = 0; i < p->pieces; i++) {
        uint32_t at = s->order[i], m = at > 0 && next_of(p, at - 1) == at ? s->meeting[at - 1] : PIECE_NONE;
        if (m != PIECE_NONE)
            x->before[at] = higher(x->before[at], met[m]);
        uint32_t value = is_in(l, at) ? at + 1 : x->before[at], next = next_of(p, at);
        if (next != PIECE_NONE)
            x->before[next] = higher(x->before[next], value);
        if (s->meeting[at] != PIECE_NONE)
            met[s->meeting[at]] = higher(met[s->meeting[at]], value);
        for (uint64_t k = p->first_arc[at]; k < p->first_arc[at + 1]; k++)
            if (arc_is_known(&p->arc[k]))
                x->before[p->arc[k].to] = higher(x->before[p->arc[k].to], value);
    }
}

/* From the last to the first: each learns from those that follow it. */
static void find_after(struct search *x, const struct lane *l, uint32_t *met)
{
    const struct precedence *p = &x->u->p;
    const struct schedule *s = &x->u->s;

    for (uint32_t i = p->pieces; i-- > 0;) {
        uint32_t at = s->order[i], next = next_of(p, at), least = PIECE_NONE;
        if (next != PIECE_NONE)
            least = is_in(l, next) ? next : x->after[next];
        if (s->meeting[at] != PIECE_NONE)
            least = lower(least, met[s->meeting[at]]);
        for (uint64_t k = p->first_arc[at]; k < p->first_arc[at + 1]; k++)
            if (arc_is_known(&p->arc[k]))
                least = lower(least, is_in(l, p->arc[k].to) ? p->arc[k].to : x->after[p->arc[k].to]);
        x->after[at] = least;
        uint32_t m = at > 0 && next_of(p, at - 1) == at ? s->meeting[at - 1] : PIECE_NONE;
        if (m != PIECE_NONE)
            met[m] = lower(met[m], is_in(l, at) ? at : least);
    }
}

/* What of the thread certainly precedes and follows each piece of the others. */
static int find_order(struct search *x, const struct lane *l)
{
    uint32_t pieces = x->u->p.pieces, meetings = x->u->s.meetings;
    uint32_t *met = calloc(meetings + 1, sizeof *met);

    x->before = calloc(pieces + 1, sizeof *x->before);
    x->after = calloc(pieces + 1, sizeof *x->after);
    if (met && x->before && x->after) {
        find_before(x, l, met);
        for (uint32_t i = 0; i < meetings; i++)
            met[i] = PIECE_NONE;
        find_after(x, l, met);
    }
    free(met);
    return met && x->before && x->after
               ? 0
               : err_set(x->err, PEET_ERR_MEMORY, "no memory for the order of %u pieces", pieces);
}

/* ---- locks ---- */

static void hold(struct search *x, struct walker *w, uint64_t addr, int more)
{
    uint32_t *bit = map_put(&x->locks, addr, w->lane->process);

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

static void see_lock(struct search *x, struct walker *w, const struct peet_event *e)
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
    case PEET_EV_rwlock_wrlock: hold(x, w, e->arg[0], 1); break;
    case PEET_EV_mutex_unlock:
    case PEET_EV_spin_unlock:
    case PEET_EV_rwlock_unlock: hold(x, w, e->arg[0], -1); break;
    default: break;
    }
}

/* ---- accesses ---- */

struct access {
    uint64_t addr, size, code, held;
};

static void note_read(struct search *x, const struct walker *w, uint64_t granule, unsigned bytes,
                      const struct access *a)
{
    struct reads *g = map_find(&x->granules, granule, 0);

    if (!g && x->granules.count >= MOST_GRANULES) {
        x->found.is_partial = true;
        return;
    }
    if (!g)
        g = map_put(&x->granules, granule, 0);
    if (!g)
        return;
    if (g->count == 0 || g->read[(g->count - 1) % PIECES_KEPT].piece != w->piece)
        g->read[g->count++ % PIECES_KEPT] = (struct read){ .piece = w->piece, .held = UINT64_MAX };
    struct read *r = &g->read[(g->count - 1) % PIECES_KEPT];
    *r = (struct read){ w->records, a->code, r->held & a->held, w->piece, r->bytes | bytes };
}

static void note_write(struct search *x, const struct walker *w, uint64_t granule, unsigned bytes,
                       const struct access *a)
{
    const struct reads *g = map_find(&x->granules, granule, 0);

    for (uint32_t i = 0; g && i < PIECES_KEPT && i < g->count; i++) {
        const struct read *r = &g->read[i];
        enum unordered_kind kind = r->held & a->held ? UNORDERED_CHOICE : UNORDERED_RACE;
        bool is_ordered = r->piece < x->before[w->piece] || r->piece >= x->after[w->piece];
        if (!(r->bytes & bytes) || is_ordered || kind < x->found.kind
            || (kind == x->found.kind && r->record <= x->found.record))
            continue;
        x->found.kind = kind;
        x->found.record = r->record;
        x->found.addr = granule << GRANULE;
        x->found.code = r->code;
        x->found.writer = w->lane->id;
    }
}

static void touch(struct search *x, const struct walker *w, bool writes, const struct access *a)
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
        w->is_reader ? note_read(x, w, g, bytes, a) : note_write(x, w, g, bytes, a);
    }
}

static void see_range(struct search *x, const struct walker *w, const struct peet_event *e)
{
    const uint64_t *arg = e->arg;

    switch (e->kind) {
    case PEET_EV_range_read: touch(x, w, false, &(struct access){ arg[0], arg[1], e->site, w->held }); break;
    case PEET_EV_range_write: touch(x, w, true, &(struct access){ arg[0], arg[1], e->site, w->held }); break;
    case PEET_EV_range_copy:
        touch(x, w, false, &(struct access){ arg[1], arg[2], e->site, w->held });
        touch(x, w, true, &(struct access){ arg[0], arg[2], e->site, w->held });
        break;
    case PEET_EV_range_compare:
        touch(x, w, false, &(struct access){ arg[0], arg[2], e->site, w->held });
        touch(x, w, false, &(struct access){ arg[1], arg[2], e->site, w->held });
        break;
    default: break;
    }
}

static void see_reference(struct search *x, const struct walker *w, const struct peet_record *r)
{
    const struct peet_insn *insn = peet_trace_insn(x->u->p.trace, r->id);
    bool is_atomic = insn && insn->flags & PEET_FL_ATOMIC;
    struct access a = { r->addr, r->size, insn ? insn->addr : 0, w->held | (is_atomic ? ATOMIC_BIT : 0) };

    if (r->kind == PEET_LOAD || r->kind == PEET_UPDATE)
        touch(x, w, false, &a);
    if (r->kind == PEET_STORE || r->kind == PEET_UPDATE)
        touch(x, w, true, &a);
}

static void see_event(struct search *x, struct walker *w, const struct peet_event *e)
{
    bool is_last = w->piece == w->lane->first + w->lane->pieces - 1;

    see_range(x, w, e);
    see_lock(x, w, e);
    w->events++;
    if (!is_last && w->events == x->u->p.piece[w->piece].events)
        w->piece++;
}

/* ---- threads ---- */

static int walk(struct search *x, const struct lane *l, bool is_reader, uint64_t most)
{
    struct walker w = { .lane = l, .piece = l->first, .is_reader = is_reader };
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
                see_event(x, &w, &b.events[b.records[i].id]);
            else if (peet_is_reference(&b.records[i]))
                see_reference(x, &w, &b.records[i]);
        }
    }
    peet_cursor_free(c);
    return r < 0 && r != PEET_ERR_DAMAGED ? r : 0;
}

int unordered_find(const struct unordered *u, uint32_t thread, uint64_t before, struct unordered_read *ret,
                   struct peet_err *err)
{
    struct search x = { .u = u, .err = err };
    const struct lane *l = precedence_lane(&u->p, thread);
    int r = l ? find_order(&x, l) : 0;

    x.granules.value_size = sizeof(struct reads);
    x.locks.value_size = sizeof(uint32_t);
    if (l && r == 0)
        r = walk(&x, l, true, before);
    for (size_t i = 0; l && r == 0 && i < u->p.lanes; i++)
        if (&u->p.lane[i] != l && u->p.lane[i].process == l->process)
            r = walk(&x, &u->p.lane[i], false, UINT64_MAX);
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
