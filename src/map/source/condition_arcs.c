/* SPDX-License-Identifier: MIT */
/* Computes arcs between critical sections: for each condition, a sweep over the turns at its mutex in recorded order.
 * docs/design/mapper.md has the rules by which a turn enables a condition, a section consumes it, and how many enabling turns the k-th
 * consuming section needed. */
#include <stdlib.h>
#include <string.h>

#include "map/source/conditions_in.h"

enum { GRANULE = 3 /* log2 of bytes */, MOST_GRANULES = 1 << 12 /* of a turn that are looked at */ };

/* A consuming section, at its last turn. */
struct consumer {
    uint32_t turn;     /* index in sections.turn */
    uint32_t thread;   /* index in the trace */
    uint64_t order;    /* among consuming sections, of all threads (signals) or of this thread (broadcasts), from 1 */
    uint64_t before;   /* enabling turns when its wait began; if is_woken */
    uint64_t recorded; /* enabling turns before it in the recorded run */
    bool is_woken;     /* it waited, and the wait ended by a signal */
};

/* Bytes of a granule that turns have written. */
struct written_bytes {
    uint32_t thread; /* index of the last thread that wrote the granule */
    bool is_several; /* several threads wrote it */
    uint8_t bytes;   /* a bit per byte */
};

/* A set of written bytes. */
struct written {
    struct map granules; /* struct written_bytes, by address / 8 */
    bool is_all;         /* a turn wrote more than MOST_GRANULES: the set counts as all of memory */
};

/* A sweep over the turns at one condition's mutex. Counts are of the turns so far. */
struct sweep {
    struct condition_order *o;
    const struct sections *s;
    uint32_t condition; /* index in sections.condition */
    uint32_t *enabling; /* indices of enabling turns, in their order */
    size_t enablings;
    uint64_t *own;             /* by thread: enabling turns of the thread */
    uint64_t *consumed;        /* by thread: consuming sections */
    uint64_t *when;            /* by thread: enabling turns at the begin of its wait */
    uint32_t *waiting;         /* by thread: turn that its wait has ended; CONDITION_NONE: it does not wait */
    struct consumer *consumer; /* consuming sections, in the order of their turns */
    size_t consumers;
    struct written enabled;   /* bytes written by enabling turns */
    struct written signalled; /* bytes written by all turns that signal the condition, also later ones */
};

/* ---- bytes ---- */

static bool ranges_meet(const struct sections *s, const struct byte_ranges *a, const struct byte_ranges *b)
{
    if (a->count == 0 || b->count == 0)
        return false; /* s->range may be NULL */
    const struct byte_range *x = s->range + a->first, *x_end = x + a->count, *y = s->range + b->first,
                            *y_end = y + b->count;

    while (x < x_end && y < y_end) {
        if (x->from < y->to && y->from < x->to)
            return true;
        if (x->to <= y->to)
            x++;
        else
            y++;
    }
    return false;
}

/* The bytes of a range in a granule, as bits. */
static uint8_t range_bits(const struct byte_range *x, uint64_t granule)
{
    uint64_t from = granule << GRANULE;
    unsigned bits = 0xff;

    if (x->from > from)
        bits &= 0xffU << (x->from - from);
    if (x->to - from < 8)
        bits &= 0xffU >> (8 - (x->to - from));
    return (uint8_t)bits;
}

static int written_note(struct written *x, const struct sections *s, const struct turn *turn)
{
    uint64_t granules = 0;

    for (size_t i = 0; i < turn->wrote.count && !x->is_all; i++) {
        const struct byte_range *range = &s->range[turn->wrote.first + i];
        for (uint64_t g = range->from >> GRANULE; g <= (range->to - 1) >> GRANULE && !x->is_all; g++) {
            struct written_bytes *b = map_put(&x->granules, g, 0);
            if (!b)
                return sections_no_memory(s->err);
            b->is_several |= b->bytes && b->thread != turn->thread;
            b->thread = turn->thread;
            b->bytes |= range_bits(range, g);
            x->is_all = ++granules > MOST_GRANULES;
        }
    }
    return 0;
}

/* Whether one of the ranges was written by a thread other than `thread` (CONDITION_NONE: by any thread). */
static bool written_meets(const struct written *x, const struct sections *s, const struct byte_ranges *ranges,
                          uint32_t thread)
{
    uint64_t granules = 0;

    for (size_t i = 0; i < ranges->count && !x->is_all; i++) {
        const struct byte_range *range = &s->range[ranges->first + i];
        for (uint64_t g = range->from >> GRANULE; g <= (range->to - 1) >> GRANULE; g++) {
            const struct written_bytes *b = map_find(&x->granules, g, 0);
            if (++granules > MOST_GRANULES)
                return true;
            if (b && (b->bytes & range_bits(range, g)) && (b->is_several || b->thread != thread))
                return true;
        }
    }
    return x->is_all;
}

static void written_clear(struct written *x)
{
    map_clear(&x->granules);
    x->is_all = false;
}

/* ---- what turns do ---- */

static bool turn_signals(const struct sections *s, const struct turn *turn, uint32_t condition)
{
    for (uint32_t i = turn->signals; i; i = s->signal[i - 1].next)
        if (s->signal[i - 1].condition == condition)
            return true;
    return false;
}

/* What sections of the turn's call site do: all threads' with the condition, its own thread's with the condition, and its own
 * thread's with any condition of the mutex. */
struct turn_info {
    struct site_info all, own, any;
};

static struct turn_info turn_info_of(const struct sweep *w, const struct turn *turn)
{
    const struct sections *s = w->s;
    const struct site_info *all = map_find(&s->info, turn->site, w->condition),
                           *own = map_find(&s->info_of_thread, site_key(turn->site, w->condition), turn->thread),
                           *any = map_find(&s->info_of_mutex, site_key(turn->site, turn->mutex), turn->thread);
    static const struct site_info NONE;

    return (struct turn_info){ all ? *all : NONE, own ? *own : NONE, any ? *any : NONE };
}

static bool turn_enables(const struct sweep *w, const struct turn *turn)
{
    if (turn_signals(w->s, turn, w->condition))
        return true;
    struct turn_info f = turn_info_of(w, turn);
    return turn->waits == CONDITION_NONE && f.all.signals && !f.all.waits && (f.own.signals || !f.any.signals)
           && written_meets(&w->signalled, w->s, &turn->wrote, CONDITION_NONE);
}

/* Whether a section that did not wait, has one turn, and does not enable, consumes. */
static bool turn_may_consume(const struct sweep *w, const struct turn *turn)
{
    if (turn->continues || turn->waits != CONDITION_NONE || !turn->number)
        return false;
    struct turn_info f = turn_info_of(w, turn);
    bool fits = f.own.waits || (!f.any.waits && (f.all.waits || !w->s->condition[w->condition].has_waits));
    return fits && w->enablings > w->own[turn->thread] && written_meets(&w->enabled, w->s, &turn->read, turn->thread);
}

/* ---- arcs ---- */

static int sweep_arc(struct sweep *w, uint32_t from, uint32_t to, enum condition_level level, bool meets)
{
    struct condition_order *o = w->o;
    const struct turn *a = &w->s->turn[from], *b = &w->s->turn[to];
    struct condition_arc *bigger = sections_room(o->arc, o->arcs, sizeof *bigger);

    if (!bigger)
        return sections_no_memory(w->s->err);
    o->arc = bigger;
    if (a->thread != b->thread && a->end)
        o->arc[o->arcs++] = (struct condition_arc){ .from_event = a->end,
                                                    .to_event = b->begin,
                                                    .condition = w->s->condition[w->condition].addr,
                                                    .from_thread = a->thread,
                                                    .to_thread = b->thread,
                                                    .level = (uint8_t)level,
                                                    .meets = meets };
    return 0;
}

/* Arcs to the turn from the last enabling turns of each thread among those from `done` to `needed` - 1. */
static int sweep_arcs(struct sweep *w, uint32_t to, uint64_t done, uint64_t needed, enum condition_level level,
                      uint64_t *reported)
{
    int r = 0;

    for (uint64_t i = needed; r == 0 && i-- > done;) {
        uint32_t thread = w->s->turn[w->enabling[i]].thread;
        if (reported[thread] == (uint64_t)to + 1)
            continue;
        reported[thread] = (uint64_t)to + 1;
        r = sweep_arc(w, w->enabling[i], to, level, false);
    }
    return r;
}

/* The arcs of one level to consuming sections of all threads (thread == CONDITION_NONE), or of one thread. */
static int sweep_arcs_to(struct sweep *w, uint32_t thread, int64_t distance, enum condition_level level, uint64_t *done,
                         uint64_t *reported)
{
    uint64_t all = 0, others = 0; /* number of enabling turns looked at; of these, of other threads */
    int r = 0;

    for (size_t i = 0; r == 0 && i < w->consumers; i++) {
        const struct consumer *c = &w->consumer[i];
        if (thread != CONDITION_NONE && c->thread != thread)
            continue;
        int64_t need = (int64_t)c->order + distance;
        if (c->is_woken && need < (int64_t)c->before + 1)
            need = (int64_t)c->before + 1;
        if (level == CONDITION_RECORDED || need > (int64_t)c->recorded)
            need = (int64_t)c->recorded;
        if (level == CONDITION_CERTAIN)
            need = c->is_woken && c->recorded > c->before ? (int64_t)c->before + 1 : 0;
        if (need <= 0)
            continue;
        for (; thread != CONDITION_NONE && others < (uint64_t)need; all++)
            others += w->s->turn[w->enabling[all]].thread != thread;
        uint64_t needed = thread == CONDITION_NONE ? (uint64_t)need : all;
        if (needed <= done[c->thread])
            continue;
        /* One turn ends a wait; the order to earlier turns follows from counting. */
        r = level == CONDITION_CERTAIN ? sweep_arc(w, w->enabling[needed - 1], c->turn, level, false)
                                       : sweep_arcs(w, c->turn, done[c->thread], needed, level, reported);
        done[c->thread] = needed;
    }
    return r;
}

static int sweep_all_arcs_to(struct sweep *w, uint32_t thread, uint64_t *done, uint64_t *reported)
{
    size_t bytes = w->s->threads * sizeof *done;
    int64_t distance = INT64_MAX;
    int r = 0;

    for (size_t i = 0; i < w->consumers; i++) {
        const struct consumer *c = &w->consumer[i];
        int64_t d = (int64_t)c->recorded - (int64_t)c->order;
        if (thread == CONDITION_NONE || c->thread == thread)
            distance = d < distance ? d : distance;
    }
    for (unsigned level = CONDITION_CERTAIN; r == 0 && level <= CONDITION_RECORDED; level++) {
        memset(done, 0, bytes);
        memset(reported, 0, bytes);
        r = sweep_arcs_to(w, thread, distance, (enum condition_level)level, done, reported);
    }
    return r;
}

/* ---- one condition ---- */

/* Arcs to a signal from waits of threads that had written data which the signalling turn read. */
static int sweep_meet(struct sweep *w, uint32_t at)
{
    const struct turn *turn = &w->s->turn[at];
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < w->s->threads; i++)
        if (w->waiting[i] != CONDITION_NONE && i != turn->thread
            && ranges_meet(w->s, &w->s->turn[w->waiting[i]].wrote, &turn->read))
            r = sweep_arc(w, w->waiting[i], at, CONDITION_CERTAIN, true);
    return r;
}

static int sweep_consume(struct sweep *w, uint32_t at, bool is_woken)
{
    const struct turn *turn = &w->s->turn[at];
    bool is_broadcast = w->s->condition[w->condition].is_broadcast;
    void *bigger = sections_room(w->consumer, w->consumers, sizeof *w->consumer);

    if (!bigger)
        return sections_no_memory(w->s->err);
    w->consumer = bigger;
    w->consumer[w->consumers] = (struct consumer){
        .turn = at,
        .thread = turn->thread,
        .order = is_broadcast ? ++w->consumed[turn->thread] : w->consumers + 1,
        .before = w->when[turn->thread],
        .recorded = w->enablings - (is_broadcast ? w->own[turn->thread] : 0),
        .is_woken = is_woken,
    };
    w->consumers++;
    w->o->unneeded += !is_woken;
    return 0;
}

static int sweep_enable(struct sweep *w, uint32_t at)
{
    const struct turn *turn = &w->s->turn[at];
    void *bigger = sections_room(w->enabling, w->enablings, sizeof *w->enabling);

    if (!bigger)
        return sections_no_memory(w->s->err);
    w->enabling = bigger;
    w->enabling[w->enablings++] = at;
    w->own[turn->thread]++;
    return written_note(&w->enabled, w->s, turn);
}

/* The next turn at the mutex. */
static int sweep_turn(struct sweep *w, uint32_t at)
{
    const struct turn *turn = &w->s->turn[at];
    bool is_broadcast = w->s->condition[w->condition].is_broadcast, enables = turn_enables(w, turn);
    uint32_t thread = turn->thread;
    int r = 0;

    w->waiting[thread] = CONDITION_NONE;
    if (turn->woken == w->condition && turn->waits == CONDITION_NONE && turn->number)
        r = sweep_consume(w, at, true);
    else if (!enables && turn_may_consume(w, turn))
        r = sweep_consume(w, at, false);
    if (r == 0 && turn_signals(w->s, turn, w->condition))
        r = sweep_meet(w, at);
    if (r == 0 && enables)
        r = sweep_enable(w, at);
    if (turn->waits == w->condition) {
        w->waiting[thread] = at;
        w->when[thread] = w->enablings - (is_broadcast ? w->own[thread] : 0);
    }
    return r;
}

static int sweep_run(struct sweep *w, const uint32_t *turn, size_t turns, uint64_t *done, uint64_t *reported)
{
    int r = 0;

    for (uint32_t i = 0; i < w->s->threads; i++) {
        w->own[i] = w->consumed[i] = w->when[i] = 0;
        w->waiting[i] = CONDITION_NONE;
    }
    written_clear(&w->enabled);
    written_clear(&w->signalled);
    for (size_t i = 0; r == 0 && i < turns; i++)
        if (turn_signals(w->s, &w->s->turn[turn[i]], w->condition))
            r = written_note(&w->signalled, w->s, &w->s->turn[turn[i]]);
    for (size_t i = 0; r == 0 && i < turns; i++)
        r = sweep_turn(w, turn[i]);
    if (!w->s->condition[w->condition].is_broadcast)
        return r < 0 ? r : sweep_all_arcs_to(w, CONDITION_NONE, done, reported);
    for (uint32_t i = 0; r == 0 && i < w->s->threads; i++)
        r = w->consumed[i] ? sweep_all_arcs_to(w, i, done, reported) : 0;
    return r;
}

/* ---- all of them ---- */

/* A key to sort turns at mutexes with conditions by mutex, then by number. */
struct turn_position {
    uint64_t number;      /* turn.number */
    uint32_t mutex, turn; /* indices in `sections` */
};

static int turn_rising(const void *a, const void *b)
{
    const struct turn_position *x = a, *y = b;

    if (x->mutex != y->mutex)
        return x->mutex < y->mutex ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->turn < y->turn ? -1 : x->turn > y->turn;
}

/* Turns in that order, and the index of each mutex's first one. The caller frees both arrays, also after a failure. */
static int sort_turns(const struct sections *s, uint32_t **ret_turn, size_t **ret_first)
{
    struct turn_position *position = calloc(s->turns + 1, sizeof *position);
    uint32_t *turn = calloc(s->turns + 1, sizeof *turn);
    size_t *first = calloc(s->mutexes + 1, sizeof *first), n = 0;

    if (position && turn && first) {
        for (size_t i = 0; i < s->turns; i++)
            if (s->mutexe[s->turn[i].mutex].has_conditions)
                position[n++] = (struct turn_position){ s->turn[i].number, s->turn[i].mutex, (uint32_t)i };
        if (n)
            qsort(position, n, sizeof *position, turn_rising);
        for (size_t i = 0; i < n; i++) {
            turn[i] = position[i].turn;
            first[position[i].mutex + 1] = i + 1;
        }
        for (size_t i = 1; i <= s->mutexes; i++)
            first[i] = first[i] > first[i - 1] ? first[i] : first[i - 1];
    }
    bool fits = position && turn && first;
    free(position);
    *ret_turn = turn;
    *ret_first = first;
    return fits ? 0 : sections_no_memory(s->err);
}

static int condition_find_arcs(struct condition_order *o, const struct sections *s, const uint32_t *turn,
                               const size_t *first)
{
    size_t threads = (size_t)s->threads + 1;
    struct sweep w = { .o = o, .s = s };
    uint64_t *done = calloc(threads, sizeof *done), *reported = calloc(threads, sizeof *reported);
    int r = 0;

    w.own = calloc(threads, sizeof *w.own);
    w.consumed = calloc(threads, sizeof *w.consumed);
    w.when = calloc(threads, sizeof *w.when);
    w.waiting = calloc(threads, sizeof *w.waiting);
    w.enabled.granules.value_size = w.signalled.granules.value_size = sizeof(struct written_bytes);
    if (!done || !reported || !w.own || !w.consumed || !w.when || !w.waiting)
        r = sections_no_memory(s->err);
    for (size_t i = 0; r == 0 && i < s->conditions; i++) {
        uint32_t mutex = s->condition[i].mutex;
        if (mutex == CONDITION_NONE)
            continue;
        w.condition = (uint32_t)i;
        w.enablings = w.consumers = 0;
        free(w.enabling);
        free(w.consumer);
        w.enabling = NULL;
        w.consumer = NULL;
        r = sweep_run(&w, turn + first[mutex], first[mutex + 1] - first[mutex], done, reported);
    }
    free(done);
    free(reported);
    free(w.own);
    free(w.consumed);
    free(w.when);
    free(w.waiting);
    free(w.enabling);
    free(w.consumer);
    map_release(&w.enabled.granules);
    map_release(&w.signalled.granules);
    return r;
}

static int arc_rising(const void *a, const void *b)
{
    const struct condition_arc *x = a, *y = b;

    if (x->to_thread != y->to_thread)
        return x->to_thread < y->to_thread ? -1 : 1;
    if (x->to_event != y->to_event)
        return x->to_event < y->to_event ? -1 : 1;
    if (x->from_thread != y->from_thread)
        return x->from_thread < y->from_thread ? -1 : 1;
    if (x->from_event != y->from_event)
        return x->from_event < y->from_event ? -1 : 1;
    return (int)x->level - (int)y->level;
}

/* Arcs in order, each pair of ends once, at its most certain. */
static void condition_merge_arcs(struct condition_order *o)
{
    size_t n = 0;

    if (o->arcs)
        qsort(o->arc, o->arcs, sizeof *o->arc, arc_rising);
    for (size_t i = 0; i < o->arcs; i++) {
        const struct condition_arc *x = &o->arc[i], *last = n ? &o->arc[n - 1] : NULL;
        if (!last || last->to_thread != x->to_thread || last->to_event != x->to_event
            || last->from_thread != x->from_thread || last->from_event != x->from_event)
            o->arc[n++] = *x;
    }
    o->arcs = n;
}

static int condition_find_waits(struct condition_order *o, const struct sections *s)
{
    for (size_t i = 0; i < s->turns; i++) {
        const struct turn *turn = &s->turn[i];
        if (turn->woken == CONDITION_NONE || !turn->number)
            continue;
        struct condition_wait *bigger = sections_room(o->wait, o->waits, sizeof *bigger);
        if (!bigger)
            return sections_no_memory(s->err);
        o->wait = bigger;
        o->wait[o->waits++] = (struct condition_wait){ turn->begin, turn->thread };
    }
    return 0;
}

int condition_arcs_find(struct condition_order *o, const struct sections *s)
{
    uint32_t *turn = NULL;
    size_t *first = NULL;
    int r = sort_turns(s, &turn, &first);

    if (r == 0)
        r = condition_find_arcs(o, s, turn, first);
    if (r == 0)
        r = condition_find_waits(o, s);
    free(turn);
    free(first);
    if (r < 0)
        return r;
    for (size_t i = 0; i < o->arcs; i++) {
        o->arc[i].from_thread = peet_trace_thread(s->trace, o->arc[i].from_thread)->id;
        o->arc[i].to_thread = peet_trace_thread(s->trace, o->arc[i].to_thread)->id;
    }
    for (size_t i = 0; i < o->waits; i++)
        o->wait[i].thread = peet_trace_thread(s->trace, o->wait[i].thread)->id;
    condition_merge_arcs(o);
    return 0;
}
