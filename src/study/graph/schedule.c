/* SPDX-License-Identifier: MIT */
/* A simulation of events: of all pieces that run, the one that ends first ends next, and lets others begin. A piece is ready when
 * all that it needs has ended; what it then may have to wait for is a gate: a barrier, and, if locks count, a lock, a semaphore, a
 * condition. Waiting pieces stand in the gate's line in the order in which they came.
 *
 * It may come to a standstill: a thread was cut off on its way to a barrier, a lock was never given back, or locks were taken in
 * another order than here. Then the first piece that waits goes on as if it had not waited, and `broken` counts it. That may be long before
 * the time of the standstill: from then on, what comes later may happen earlier, and a piece begins when the last one ends of all that it
 * has waited for. */
#include "study/graph/schedule.h"

#include <assert.h>
#include <stdlib.h>

#include "base/err.h"

struct gate {
    uint32_t head, tail; /* of the line, linked by `next`; PIECE_NONE: nobody waits */
    uint64_t waiting;
    uint64_t units; /* semaphore: that can be taken; condition: signals so far; lock: how many hold it */
    bool exclusive; /* lock: held by one for itself */
    uint32_t giver; /* what was given here, by the piece that ended last */
};

struct run {
    uint64_t time, number; /* number: of two at the same time, who began first */
    uint32_t piece;
};

struct machine {
    struct schedule *s;
    const struct precedence *p;
    bool locks;
    uint32_t *missing; /* pieces that have to end before */
    uint32_t *needed;  /* of those that have ended, the last one, or PIECE_NONE */
    uint32_t *next;    /* in line */
    bool *begun;
    struct gate *gate; /* by object */
    struct run *heap;
    size_t runs, room;
    uint64_t begins;
    uint32_t done;
    uint32_t *low; /* by lane: no piece before it has not begun */
    size_t meeting_room;
    struct peet_err *err;
};

static int no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for a schedule");
}

/* ---- what runs ---- */

static bool before(const struct run *a, const struct run *b)
{
    return a->time != b->time ? a->time < b->time : a->number < b->number;
}

/* Which of two pieces that have ended did so later; if both did at once, the second. */
static uint32_t later(const struct machine *m, uint32_t a, uint32_t b)
{
    if (a == PIECE_NONE || b == PIECE_NONE)
        return a == PIECE_NONE ? b : a;
    return m->s->finish[b] >= m->s->finish[a] ? b : a;
}

/* The cause is a piece that has ended, or PIECE_NONE. */
static int begin(struct machine *m, uint32_t piece, uint32_t cause)
{
    struct run *bigger = study_room(m->heap, m->runs, &m->room, sizeof *bigger);
    size_t i = m->runs;

    if (!bigger)
        return no_memory(m->err);
    m->heap = bigger;
    m->begun[piece] = true;
    cause = later(m, m->needed[piece], cause);
    m->s->start[piece] = cause == PIECE_NONE ? 0 : m->s->finish[cause];
    m->s->cause[piece] = cause;
    struct run x = { m->s->start[piece] + m->p->piece[piece].instructions, m->begins++, piece };
    for (m->runs++; i > 0 && before(&x, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = x;
    return 0;
}

static struct run take_first(struct machine *m)
{
    struct run first = m->heap[0], x = m->heap[--m->runs];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < m->runs; i = child) {
        if (child + 1 < m->runs && before(&m->heap[child + 1], &m->heap[child]))
            child++;
        if (!before(&m->heap[child], &x))
            break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = x;
    return first;
}

/* ---- gates ---- */

static void line_up(struct machine *m, struct gate *g, uint32_t piece)
{
    m->next[piece] = PIECE_NONE;
    if (g->head == PIECE_NONE)
        g->head = piece;
    else
        m->next[g->tail] = piece;
    g->tail = piece;
    g->waiting++;
}

/* The first in line, who is then out of it; those that went on by force have gone already. */
static uint32_t first_in_line(struct machine *m, struct gate *g)
{
    uint32_t piece = g->head;

    if (piece != PIECE_NONE) {
        g->head = m->next[piece];
        g->waiting--;
    }
    return piece;
}

static void drop_gone(struct machine *m, struct gate *g)
{
    while (g->head != PIECE_NONE && m->begun[g->head])
        first_in_line(m, g);
}

/* All that have arrived go on together. The piece behind each arrival stands in line. */
static int meet(struct machine *m, struct gate *g, uint32_t object)
{
    uint64_t parties = g->waiting;
    uint32_t last = g->head - 1, piece;
    struct meeting *bigger = study_room(m->s->met, m->s->meetings, &m->meeting_room, sizeof *bigger);
    int r = 0;

    if (!bigger)
        return no_memory(m->err);
    m->s->met = bigger;
    for (piece = g->head; piece != PIECE_NONE; piece = m->next[piece])
        last = later(m, last, piece - 1);
    m->s->met[m->s->meetings] = (struct meeting){ object, last, m->s->finish[last], parties };
    while (r == 0 && (piece = first_in_line(m, g)) != PIECE_NONE) {
        m->s->meeting[piece - 1] = m->s->meetings;
        if (!m->begun[piece])
            r = begin(m, piece, last);
    }
    m->s->meetings++;
    return r;
}

static int arrive(struct machine *m, uint32_t piece)
{
    const struct piece *x = &m->p->piece[piece - 1];
    struct gate *g = &m->gate[x->object];

    drop_gone(m, g);
    line_up(m, g, piece);
    uint64_t parties = m->p->piece[g->head - 1].value;
    return g->waiting >= parties ? meet(m, g, x->object) : 0;
}

/* Whether the first in the line of a lock would get it. */
static bool lock_is_free(const struct gate *g, bool exclusive)
{
    return exclusive ? g->units == 0 : !g->exclusive;
}

static bool wants_exclusive(const struct machine *m, uint32_t piece)
{
    const struct piece *x = &m->p->piece[piece - 1];

    return x->lock != PIECE_NONE || x->value == 1; /* behind a wait at a condition it is a mutex */
}

static void hold(struct gate *g, bool exclusive)
{
    g->units++;
    g->exclusive = exclusive;
}

static int take_lock(struct machine *m, uint32_t piece, uint32_t object, uint32_t cause)
{
    struct gate *g = &m->gate[object];
    bool exclusive = wants_exclusive(m, piece);

    drop_gone(m, g);
    if (g->head != PIECE_NONE || !lock_is_free(g, exclusive)) {
        line_up(m, g, piece);
        return 0;
    }
    hold(g, exclusive);
    return begin(m, piece, later(m, g->giver, cause));
}

static int give_lock(struct machine *m, uint32_t object, uint32_t giver)
{
    struct gate *g = &m->gate[object];
    int r = 0;

    if (g->units > 0)
        g->units--;
    if (g->units == 0)
        g->exclusive = false;
    g->giver = later(m, g->giver, giver);
    for (drop_gone(m, g); r == 0 && g->head != PIECE_NONE; drop_gone(m, g)) {
        bool exclusive = wants_exclusive(m, g->head);
        if (!lock_is_free(g, exclusive))
            break;
        hold(g, exclusive);
        r = begin(m, first_in_line(m, g), g->giver);
    }
    return r;
}

static int take_unit(struct machine *m, uint32_t piece, uint32_t object, uint32_t cause)
{
    struct gate *g = &m->gate[object];

    drop_gone(m, g);
    if (!m->p->object[object].inits)
        return begin(m, piece, cause); /* nobody knows how many there were */
    if (g->head != PIECE_NONE || g->units == 0) {
        line_up(m, g, piece);
        return 0;
    }
    g->units--;
    return begin(m, piece, later(m, g->giver, cause));
}

static int give_unit(struct machine *m, uint32_t object, uint32_t giver)
{
    struct gate *g = &m->gate[object];

    g->units++;
    g->giver = later(m, g->giver, giver);
    drop_gone(m, g);
    if (g->head == PIECE_NONE)
        return 0;
    g->units--;
    return begin(m, first_in_line(m, g), g->giver);
}

/* A wait at a condition is over when the condition was signalled as often as its thread has waited there; then the lock. */
static int pass_condition(struct machine *m, uint32_t piece, uint32_t cause)
{
    const struct piece *x = &m->p->piece[piece - 1];

    m->needed[piece] = later(m, m->needed[piece], cause);
    return x->lock == PIECE_NONE ? begin(m, piece, cause) : take_lock(m, piece, x->lock, cause);
}

static int signal_condition(struct machine *m, uint32_t object, uint32_t giver)
{
    struct gate *g = &m->gate[object], line = *g;
    uint32_t piece;
    int r = 0;

    g->units++;
    g->giver = later(m, g->giver, giver);
    g->head = g->tail = PIECE_NONE;
    g->waiting = 0;
    while (r == 0 && (piece = first_in_line(m, &line)) != PIECE_NONE) {
        if (m->begun[piece])
            continue;
        if (m->p->piece[piece - 1].value <= g->units)
            r = pass_condition(m, piece, g->giver);
        else
            line_up(m, g, piece);
    }
    return r;
}

/* ---- pieces ---- */

/* All that the piece needs has ended; the event before it may hold it up. */
static int ready(struct machine *m, uint32_t piece, uint32_t cause)
{
    const struct lane *l = &m->p->lane[m->p->piece[piece].lane];
    const struct piece *x = piece > l->first && !m->p->piece[piece].detached ? &m->p->piece[piece - 1] : NULL;

    if (!x || x->object == PIECE_NONE)
        return begin(m, piece, cause);
    if (x->end == PEET_EV_barrier_wait && x->value > 0)
        return arrive(m, piece);
    if (!m->locks)
        return begin(m, piece, cause);
    switch (x->end) {
    case PEET_EV_mutex_lock:
    case PEET_EV_mutex_trylock:
    case PEET_EV_rwlock_rdlock:
    case PEET_EV_rwlock_tryrdlock:
    case PEET_EV_rwlock_wrlock:
    case PEET_EV_rwlock_trywrlock:
    case PEET_EV_spin_lock:
    case PEET_EV_spin_trylock: return take_lock(m, piece, x->object, cause);
    case PEET_EV_sem_wait:
    case PEET_EV_sem_trywait: return take_unit(m, piece, x->object, cause);
    case PEET_EV_cond_wait:
    case PEET_EV_cond_timedwait:
        if (x->value <= m->gate[x->object].units)
            return pass_condition(m, piece, later(m, m->gate[x->object].giver, cause));
        line_up(m, &m->gate[x->object], piece);
        return 0;
    default: return begin(m, piece, cause);
    }
}

/* What the event at the end of a piece gives to others. */
static int give(struct machine *m, uint32_t piece)
{
    const struct piece *x = &m->p->piece[piece];

    switch (m->locks ? x->end : PEET_EV_thread_end) {
    case PEET_EV_mutex_unlock:
    case PEET_EV_rwlock_unlock:
    case PEET_EV_spin_unlock: return give_lock(m, x->object, piece);
    case PEET_EV_sem_post: return give_unit(m, x->object, piece);
    case PEET_EV_cond_signal:
    case PEET_EV_cond_broadcast: return signal_condition(m, x->object, piece);
    case PEET_EV_cond_wait:
    case PEET_EV_cond_timedwait: return x->lock == PIECE_NONE ? 0 : give_lock(m, x->lock, piece);
    default: return 0;
    }
}

static int one_less(struct machine *m, uint32_t piece, uint32_t cause)
{
    if (m->missing[piece] == 0)
        return 0;
    m->needed[piece] = later(m, m->needed[piece], cause);
    return --m->missing[piece] == 0 && !m->begun[piece] ? ready(m, piece, m->needed[piece]) : 0;
}

static int finish(struct machine *m, uint32_t piece)
{
    const struct precedence *p = m->p;
    int r;

    m->s->order[m->done++] = piece;
    r = give(m, piece);
    for (uint64_t i = p->first_arc[piece]; r == 0 && i < p->first_arc[piece + 1]; i++)
        if (p->arc[i].level <= m->s->kind)
            r = one_less(m, p->arc[i].to, piece);
    if (r == 0 && piece_has_next(p, piece))
        r = one_less(m, piece + 1, piece);
    return r;
}

/* Nothing runs, but something has not begun: lets go one that stands in line, or else one whose partner never comes. */
static int force(struct machine *m)
{
    uint32_t choice = PIECE_NONE;

    for (size_t i = 0; i < m->p->lanes; i++) {
        const struct lane *l = &m->p->lane[i];
        while (m->low[i] < l->first + l->pieces && m->begun[m->low[i]])
            m->low[i]++;
        if (m->low[i] == l->first + l->pieces)
            continue;
        if (choice == PIECE_NONE || (m->missing[choice] > 0 && m->missing[m->low[i]] == 0))
            choice = m->low[i];
    }
    assert(choice != PIECE_NONE);
    m->s->broken++;
    m->missing[choice] = 0;
    return begin(m, choice, PIECE_NONE);
}

static void prepare(struct machine *m)
{
    const struct precedence *p = m->p;

    for (uint32_t i = 0; i < p->pieces; i++) {
        m->s->cause[i] = m->s->meeting[i] = m->needed[i] = PIECE_NONE;
        if (piece_has_next(p, i))
            m->missing[i + 1]++;
    }
    for (size_t i = 0; i < p->arcs; i++)
        if (p->arc[i].level <= m->s->kind)
            m->missing[p->arc[i].to]++;
    for (size_t i = 0; i < p->objects; i++)
        m->gate[i] = (struct gate){ .head = PIECE_NONE,
                                    .tail = PIECE_NONE,
                                    .giver = PIECE_NONE,
                                    .units = p->object[i].class == OBJECT_SEMAPHORE ? p->object[i].initial : 0 };
    for (size_t i = 0; i < p->lanes; i++)
        m->low[i] = p->lane[i].first;
}

static int simulate(struct machine *m)
{
    const struct precedence *p = m->p;
    int r = 0;

    prepare(m);
    for (uint32_t i = 0; r == 0 && i < p->pieces; i++)
        if (m->missing[i] == 0 && !m->begun[i])
            r = ready(m, i, PIECE_NONE);
    while (r == 0 && m->done < p->pieces) {
        if (m->runs == 0) {
            r = force(m);
            continue;
        }
        struct run x = take_first(m);
        m->s->finish[x.piece] = x.time;
        m->s->last = later(m, m->s->last, x.piece);
        m->s->span = m->s->finish[m->s->last];
        r = finish(m, x.piece);
    }
    return r;
}

int schedule_make(struct schedule *s, const struct precedence *p, enum schedule_kind kind, struct peet_err *err)
{
    size_t n = (size_t)p->pieces + 1;
    struct machine m = { .s = s, .p = p, .locks = kind == SCHEDULE_LOCKS, .err = err };

    *s = (struct schedule){ .last = PIECE_NONE, .kind = (uint8_t)kind };
    s->start = calloc(n, sizeof *s->start);
    s->finish = calloc(n, sizeof *s->finish);
    s->cause = calloc(n, sizeof *s->cause);
    s->meeting = calloc(n, sizeof *s->meeting);
    s->order = calloc(n, sizeof *s->order);
    m.missing = calloc(n, sizeof *m.missing);
    m.needed = calloc(n, sizeof *m.needed);
    m.next = calloc(n, sizeof *m.next);
    m.begun = calloc(n, sizeof *m.begun);
    m.gate = calloc(p->objects + 1, sizeof *m.gate);
    m.low = calloc(p->lanes + 1, sizeof *m.low);
    bool fits = s->start && s->finish && s->cause && s->meeting && s->order && m.missing && m.needed && m.next
                && m.begun && m.gate && m.low;
    int r = fits ? simulate(&m) : no_memory(err);
    free(m.missing);
    free(m.needed);
    free(m.next);
    free(m.begun);
    free(m.gate);
    free(m.low);
    free(m.heap);
    if (r < 0)
        schedule_release(s);
    return r;
}

void schedule_release(struct schedule *s)
{
    free(s->start);
    free(s->finish);
    free(s->cause);
    free(s->meeting);
    free(s->order);
    free(s->met);
    *s = (struct schedule){ 0 };
}

int schedule_tails(const struct schedule *s, const struct precedence *p, uint64_t **ret, struct peet_err *err)
{
    uint64_t *tail = calloc((size_t)p->pieces + 1, sizeof *tail);
    uint64_t *behind = calloc((size_t)s->meetings + 1, sizeof *behind); /* meetings: the longest way from there */

    if (!tail || !behind) {
        free(tail);
        free(behind);
        return no_memory(err);
    }
    for (uint32_t n = p->pieces; n-- > 0;) {
        uint32_t i = s->order[n];
        for (uint64_t k = p->first_arc[i]; k < p->first_arc[i + 1]; k++) {
            uint32_t to = p->arc[k].to;
            if (arc_is_known(&p->arc[k]) && p->arc[k].level <= s->kind
                && tail[to] + p->piece[to].instructions > tail[i])
                tail[i] = tail[to] + p->piece[to].instructions;
        }
        if (piece_has_next(p, i) && tail[i + 1] + p->piece[i + 1].instructions > tail[i])
            tail[i] = tail[i + 1] + p->piece[i + 1].instructions;
        if (s->meeting[i] != PIECE_NONE && behind[s->meeting[i]] > tail[i])
            tail[i] = behind[s->meeting[i]];
        const struct lane *l = &p->lane[p->piece[i].lane];
        uint32_t through = i > l->first ? s->meeting[i - 1] : PIECE_NONE;
        if (through != PIECE_NONE && tail[i] + p->piece[i].instructions > behind[through])
            behind[through] = tail[i] + p->piece[i].instructions;
    }
    free(behind);
    *ret = tail;
    return 0;
}
