/* SPDX-License-Identifier: MIT */
/* Simulation of an ideal machine (schedule.h). Of the segments that run, the one that ends first ends next. A segment is ready when its
 * predecessors have ended; it may then have to wait in the queue of a barrier and, if locks count, of a lock, semaphore or condition.
 *
 * It can deadlock: a thread was cut off before a barrier, a lock was never released, or locks were taken in another order. Then the first
 * waiting segment begins by force, and `forced` counts it. Its time may be earlier than that of the deadlock: a forced segment begins when its
 * last predecessor has ended. */
#include "study/graph/schedule.h"

#include <assert.h>
#include <stdlib.h>

#include "base/err.h"

/* An object of synchronization, and the segments that wait for it in the order of arrival. */
struct sync_queue {
    uint32_t head, tail; /* segments, linked by ideal_machine.next; SEGMENT_NONE: none waits */
    uint64_t waiting;    /* segments */
    uint64_t units;      /* semaphore: units that can be taken; condition: signals so far; lock: holders */
    bool exclusive;      /* lock: held exclusively */
    uint32_t giver;      /* last segment to end that released, posted or signalled; SEGMENT_NONE: none */
};

/* A segment that has begun and not ended. */
struct running_segment {
    uint64_t time;   /* of its end */
    uint64_t number; /* position in the order of begins; decides between equal times */
    uint32_t segment;
};

/* The simulation. Arrays are by segment, unless said otherwise. */
struct ideal_machine {
    struct schedule *s;
    const struct precedence *p;
    bool locks;                 /* locks, semaphores and conditions count */
    uint32_t *predecessors;     /* number of predecessors that have not ended */
    uint32_t *last_predecessor; /* predecessor that ended last; SEGMENT_NONE: none has */
    uint32_t *next;             /* next segment in its queue; SEGMENT_NONE: last */
    bool *begun;
    struct sync_queue *queue; /* by object */
    struct running_segment *heap;
    size_t runs, room; /* of heap */
    uint64_t begins;   /* segments that have begun */
    uint32_t done;     /* segments that have ended */
    uint32_t *low;     /* by thread: all its segments before this one have begun */
    size_t round_room;
    struct peet_err *err;
};

static int schedule_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for a schedule");
}

/* ---- what runs ---- */

static bool run_is_before(const struct running_segment *a, const struct running_segment *b)
{
    return a->time != b->time ? a->time < b->time : a->number < b->number;
}

/* Of two segments that have ended, the one that ended later; b at equal times. */
static uint32_t later_end(const struct ideal_machine *m, uint32_t a, uint32_t b)
{
    if (a == SEGMENT_NONE || b == SEGMENT_NONE)
        return a == SEGMENT_NONE ? b : a;
    return m->s->finish[b] >= m->s->finish[a] ? b : a;
}

/* Begins a segment. cause: segment that has ended, for which it waited; SEGMENT_NONE: none. */
static int schedule_begin(struct ideal_machine *m, uint32_t segment, uint32_t cause)
{
    struct running_segment *bigger = array_room(m->heap, m->runs, &m->room, sizeof *bigger);
    size_t i = m->runs;

    if (!bigger)
        return schedule_no_memory(m->err);
    m->heap = bigger;
    m->begun[segment] = true;
    cause = later_end(m, m->last_predecessor[segment], cause);
    m->s->start[segment] = cause == SEGMENT_NONE ? 0 : m->s->finish[cause];
    m->s->cause[segment] = cause;
    struct running_segment x = { m->s->start[segment] + m->p->segment[segment].instructions, m->begins++, segment };
    for (m->runs++; i > 0 && run_is_before(&x, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = x;
    return 0;
}

static struct running_segment schedule_next_end(struct ideal_machine *m)
{
    struct running_segment first = m->heap[0], x = m->heap[--m->runs];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < m->runs; i = child) {
        if (child + 1 < m->runs && run_is_before(&m->heap[child + 1], &m->heap[child]))
            child++;
        if (!run_is_before(&m->heap[child], &x))
            break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = x;
    return first;
}

/* ---- queues ---- */

static void queue_append(struct ideal_machine *m, struct sync_queue *g, uint32_t segment)
{
    m->next[segment] = SEGMENT_NONE;
    if (g->head == SEGMENT_NONE)
        g->head = segment;
    else
        m->next[g->tail] = segment;
    g->tail = segment;
    g->waiting++;
}

/* Removes and returns the first segment of a queue; SEGMENT_NONE: empty. The caller has dropped segments that began by force. */
static uint32_t queue_pop(struct ideal_machine *m, struct sync_queue *g)
{
    uint32_t segment = g->head;

    if (segment != SEGMENT_NONE) {
        g->head = m->next[segment];
        g->waiting--;
    }
    return segment;
}

static void queue_drop_begun(struct ideal_machine *m, struct sync_queue *g)
{
    while (g->head != SEGMENT_NONE && m->begun[g->head])
        queue_pop(m, g);
}

/* Completes a round: all segments that wait begin. In the queue is the segment after each arrival. */
static int barrier_release(struct ideal_machine *m, struct sync_queue *g, uint32_t object)
{
    uint64_t arrivals = g->waiting;
    uint32_t last = g->head - 1, segment;
    struct barrier_round *bigger = array_room(m->s->round, m->s->rounds, &m->round_room, sizeof *bigger);
    int r = 0;

    if (!bigger)
        return schedule_no_memory(m->err);
    m->s->round = bigger;
    for (segment = g->head; segment != SEGMENT_NONE; segment = m->next[segment])
        last = later_end(m, last, segment - 1);
    m->s->round[m->s->rounds] = (struct barrier_round){ object, last, m->s->finish[last], arrivals };
    while (r == 0 && (segment = queue_pop(m, g)) != SEGMENT_NONE) {
        m->s->round_of[segment - 1] = m->s->rounds;
        if (!m->begun[segment])
            r = schedule_begin(m, segment, last);
    }
    m->s->rounds++;
    return r;
}

static int barrier_arrive(struct ideal_machine *m, uint32_t segment)
{
    const struct graph_segment *x = &m->p->segment[segment - 1];
    struct sync_queue *g = &m->queue[x->object];

    queue_drop_begun(m, g);
    queue_append(m, g, segment);
    uint64_t arrivals = m->p->segment[g->head - 1].value;
    return g->waiting >= arrivals ? barrier_release(m, g, x->object) : 0;
}

/* Whether a lock can be taken. */
static bool lock_is_free(const struct sync_queue *g, bool exclusive)
{
    return exclusive ? g->units == 0 : !g->exclusive;
}

static bool wants_exclusive(const struct ideal_machine *m, uint32_t segment)
{
    const struct graph_segment *x = &m->p->segment[segment - 1];

    return x->lock != SEGMENT_NONE || x->value == 1; /* after a wait at a condition it is a mutex */
}

static void lock_hold(struct sync_queue *g, bool exclusive)
{
    g->units++;
    g->exclusive = exclusive;
}

static int lock_take(struct ideal_machine *m, uint32_t segment, uint32_t object, uint32_t cause)
{
    struct sync_queue *g = &m->queue[object];
    bool exclusive = wants_exclusive(m, segment);

    queue_drop_begun(m, g);
    if (g->head != SEGMENT_NONE || !lock_is_free(g, exclusive)) {
        queue_append(m, g, segment);
        return 0;
    }
    lock_hold(g, exclusive);
    return schedule_begin(m, segment, later_end(m, g->giver, cause));
}

static int lock_give(struct ideal_machine *m, uint32_t object, uint32_t giver)
{
    struct sync_queue *g = &m->queue[object];
    int r = 0;

    if (g->units > 0)
        g->units--;
    if (g->units == 0)
        g->exclusive = false;
    g->giver = later_end(m, g->giver, giver);
    for (queue_drop_begun(m, g); r == 0 && g->head != SEGMENT_NONE; queue_drop_begun(m, g)) {
        bool exclusive = wants_exclusive(m, g->head);
        if (!lock_is_free(g, exclusive))
            break;
        lock_hold(g, exclusive);
        r = schedule_begin(m, queue_pop(m, g), g->giver);
    }
    return r;
}

static int semaphore_take(struct ideal_machine *m, uint32_t segment, uint32_t object, uint32_t cause)
{
    struct sync_queue *g = &m->queue[object];

    queue_drop_begun(m, g);
    if (!m->p->object[object].inits)
        return schedule_begin(m, segment, cause); /* its initial value is unknown */
    if (g->head != SEGMENT_NONE || g->units == 0) {
        queue_append(m, g, segment);
        return 0;
    }
    g->units--;
    return schedule_begin(m, segment, later_end(m, g->giver, cause));
}

static int semaphore_give(struct ideal_machine *m, uint32_t object, uint32_t giver)
{
    struct sync_queue *g = &m->queue[object];

    g->units++;
    g->giver = later_end(m, g->giver, giver);
    queue_drop_begun(m, g);
    if (g->head == SEGMENT_NONE)
        return 0;
    g->units--;
    return schedule_begin(m, queue_pop(m, g), g->giver);
}

/* A wait at a condition ends when the number of signals reaches the number of the wait in its thread; then the mutex is taken. */
static int condition_pass(struct ideal_machine *m, uint32_t segment, uint32_t cause)
{
    const struct graph_segment *x = &m->p->segment[segment - 1];

    m->last_predecessor[segment] = later_end(m, m->last_predecessor[segment], cause);
    return x->lock == SEGMENT_NONE ? schedule_begin(m, segment, cause) : lock_take(m, segment, x->lock, cause);
}

static int condition_signal(struct ideal_machine *m, uint32_t object, uint32_t giver)
{
    struct sync_queue *g = &m->queue[object], waiting = *g;
    uint32_t segment;
    int r = 0;

    g->units++;
    g->giver = later_end(m, g->giver, giver);
    g->head = g->tail = SEGMENT_NONE;
    g->waiting = 0;
    while (r == 0 && (segment = queue_pop(m, &waiting)) != SEGMENT_NONE) {
        if (m->begun[segment])
            continue;
        if (m->p->segment[segment - 1].value <= g->units)
            r = condition_pass(m, segment, g->giver);
        else
            queue_append(m, g, segment);
    }
    return r;
}

/* ---- segments ---- */

/* The predecessors of a segment have ended; the event before it may make it wait. */
static int segment_ready(struct ideal_machine *m, uint32_t segment, uint32_t cause)
{
    const struct graph_thread *l = &m->p->thread[m->p->segment[segment].thread];
    const struct graph_segment *x =
        segment > l->first && !m->p->segment[segment].detached ? &m->p->segment[segment - 1] : NULL;

    if (!x || x->object == SEGMENT_NONE)
        return schedule_begin(m, segment, cause);
    if (x->end == PEET_EV_barrier_wait && x->value > 0)
        return barrier_arrive(m, segment);
    if (!m->locks)
        return schedule_begin(m, segment, cause);
    switch (x->end) {
    case PEET_EV_mutex_lock:
    case PEET_EV_mutex_trylock:
    case PEET_EV_rwlock_rdlock:
    case PEET_EV_rwlock_tryrdlock:
    case PEET_EV_rwlock_wrlock:
    case PEET_EV_rwlock_trywrlock:
    case PEET_EV_spin_lock:
    case PEET_EV_spin_trylock: return lock_take(m, segment, x->object, cause);
    case PEET_EV_sem_wait:
    case PEET_EV_sem_trywait: return semaphore_take(m, segment, x->object, cause);
    case PEET_EV_cond_wait:
    case PEET_EV_cond_timedwait:
        if (x->value <= m->queue[x->object].units)
            return condition_pass(m, segment, later_end(m, m->queue[x->object].giver, cause));
        queue_append(m, &m->queue[x->object], segment);
        return 0;
    default: return schedule_begin(m, segment, cause);
    }
}

/* The event at the end of a segment releases, posts or signals. */
static int segment_give(struct ideal_machine *m, uint32_t segment)
{
    const struct graph_segment *x = &m->p->segment[segment];

    switch (m->locks ? x->end : PEET_EV_thread_end) {
    case PEET_EV_mutex_unlock:
    case PEET_EV_rwlock_unlock:
    case PEET_EV_spin_unlock: return lock_give(m, x->object, segment);
    case PEET_EV_sem_post: return semaphore_give(m, x->object, segment);
    case PEET_EV_cond_signal:
    case PEET_EV_cond_broadcast: return condition_signal(m, x->object, segment);
    case PEET_EV_cond_wait:
    case PEET_EV_cond_timedwait: return x->lock == SEGMENT_NONE ? 0 : lock_give(m, x->lock, segment);
    default: return 0;
    }
}

static int segment_predecessor_ended(struct ideal_machine *m, uint32_t segment, uint32_t cause)
{
    if (m->predecessors[segment] == 0)
        return 0;
    m->last_predecessor[segment] = later_end(m, m->last_predecessor[segment], cause);
    return --m->predecessors[segment] == 0 && !m->begun[segment]
               ? segment_ready(m, segment, m->last_predecessor[segment])
               : 0;
}

static int segment_finish(struct ideal_machine *m, uint32_t segment)
{
    const struct precedence *p = m->p;
    int r;

    m->s->order[m->done++] = segment;
    r = segment_give(m, segment);
    for (uint64_t i = p->first_arc[segment]; r == 0 && i < p->first_arc[segment + 1]; i++)
        if (p->arc[i].level <= m->s->kind)
            r = segment_predecessor_ended(m, p->arc[i].to, segment);
    if (r == 0 && segment_has_next(p, segment))
        r = segment_predecessor_ended(m, segment + 1, segment);
    return r;
}

/* Deadlock: begins the first segment that waits in a queue or, if there is none, the first that has predecessors. */
static int schedule_force(struct ideal_machine *m)
{
    uint32_t first = SEGMENT_NONE;

    for (size_t i = 0; i < m->p->threads; i++) {
        const struct graph_thread *l = &m->p->thread[i];
        while (m->low[i] < l->first + l->segments && m->begun[m->low[i]])
            m->low[i]++;
        if (m->low[i] == l->first + l->segments)
            continue;
        if (first == SEGMENT_NONE || (m->predecessors[first] > 0 && m->predecessors[m->low[i]] == 0))
            first = m->low[i];
    }
    assert(first != SEGMENT_NONE);
    m->s->forced++;
    m->predecessors[first] = 0;
    return schedule_begin(m, first, SEGMENT_NONE);
}

static void schedule_prepare(struct ideal_machine *m)
{
    const struct precedence *p = m->p;

    for (uint32_t i = 0; i < p->segments; i++) {
        m->s->cause[i] = m->s->round_of[i] = m->last_predecessor[i] = SEGMENT_NONE;
        if (segment_has_next(p, i))
            m->predecessors[i + 1]++;
    }
    for (size_t i = 0; i < p->arcs; i++)
        if (p->arc[i].level <= m->s->kind)
            m->predecessors[p->arc[i].to]++;
    for (size_t i = 0; i < p->objects; i++)
        m->queue[i] = (struct sync_queue){ .head = SEGMENT_NONE,
                                           .tail = SEGMENT_NONE,
                                           .giver = SEGMENT_NONE,
                                           .units = p->object[i].class == GRAPH_SEMAPHORE ? p->object[i].initial : 0 };
    for (size_t i = 0; i < p->threads; i++)
        m->low[i] = p->thread[i].first;
}

static int schedule_run(struct ideal_machine *m)
{
    const struct precedence *p = m->p;
    int r = 0;

    schedule_prepare(m);
    for (uint32_t i = 0; r == 0 && i < p->segments; i++)
        if (m->predecessors[i] == 0 && !m->begun[i])
            r = segment_ready(m, i, SEGMENT_NONE);
    while (r == 0 && m->done < p->segments) {
        if (m->runs == 0) {
            r = schedule_force(m);
            continue;
        }
        struct running_segment x = schedule_next_end(m);
        m->s->finish[x.segment] = x.time;
        m->s->last = later_end(m, m->s->last, x.segment);
        m->s->span = m->s->finish[m->s->last];
        r = segment_finish(m, x.segment);
    }
    return r;
}

int schedule_make(struct schedule *s, const struct precedence *p, enum schedule_kind kind, struct peet_err *err)
{
    size_t n = (size_t)p->segments + 1;
    struct ideal_machine m = { .s = s, .p = p, .locks = kind == SCHEDULE_LOCKS, .err = err };

    *s = (struct schedule){ .last = SEGMENT_NONE, .kind = (uint8_t)kind };
    s->start = calloc(n, sizeof *s->start);
    s->finish = calloc(n, sizeof *s->finish);
    s->cause = calloc(n, sizeof *s->cause);
    s->round_of = calloc(n, sizeof *s->round_of);
    s->order = calloc(n, sizeof *s->order);
    m.predecessors = calloc(n, sizeof *m.predecessors);
    m.last_predecessor = calloc(n, sizeof *m.last_predecessor);
    m.next = calloc(n, sizeof *m.next);
    m.begun = calloc(n, sizeof *m.begun);
    m.queue = calloc(p->objects + 1, sizeof *m.queue);
    m.low = calloc(p->threads + 1, sizeof *m.low);
    bool fits = s->start && s->finish && s->cause && s->round_of && s->order && m.predecessors && m.last_predecessor
                && m.next && m.begun && m.queue && m.low;
    int r = fits ? schedule_run(&m) : schedule_no_memory(err);
    free(m.predecessors);
    free(m.last_predecessor);
    free(m.next);
    free(m.begun);
    free(m.queue);
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
    free(s->round_of);
    free(s->order);
    free(s->round);
    *s = (struct schedule){ 0 };
}

int schedule_tails(const struct schedule *s, const struct precedence *p, uint64_t **ret, struct peet_err *err)
{
    uint64_t *tail = calloc((size_t)p->segments + 1, sizeof *tail);
    uint64_t *after_round =
        calloc((size_t)s->rounds + 1, sizeof *after_round); /* by round: longest path from its end */

    if (!tail || !after_round) {
        free(tail);
        free(after_round);
        return schedule_no_memory(err);
    }
    for (uint32_t n = p->segments; n-- > 0;) {
        uint32_t i = s->order[n];
        for (uint64_t k = p->first_arc[i]; k < p->first_arc[i + 1]; k++) {
            uint32_t to = p->arc[k].to;
            if (arc_is_known(&p->arc[k]) && p->arc[k].level <= s->kind
                && tail[to] + p->segment[to].instructions > tail[i])
                tail[i] = tail[to] + p->segment[to].instructions;
        }
        if (segment_has_next(p, i) && tail[i + 1] + p->segment[i + 1].instructions > tail[i])
            tail[i] = tail[i + 1] + p->segment[i + 1].instructions;
        if (s->round_of[i] != SEGMENT_NONE && after_round[s->round_of[i]] > tail[i])
            tail[i] = after_round[s->round_of[i]];
        const struct graph_thread *l = &p->thread[p->segment[i].thread];
        uint32_t before_round = i > l->first ? s->round_of[i - 1] : SEGMENT_NONE;
        if (before_round != SEGMENT_NONE && tail[i] + p->segment[i].instructions > after_round[before_round])
            after_round[before_round] = tail[i] + p->segment[i].instructions;
    }
    free(after_round);
    *ret = tail;
    return 0;
}
