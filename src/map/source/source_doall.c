/* SPDX-License-Identifier: MIT */
/* Iterations of parallel loops as contexts of their own.
 *
 * A thread that runs the iterations of a DOALL one after the other (peet/mark.h) says where each begins and ends. This source stands
 * before another one and deals them out: the thread that forked creates contexts, each takes the next iteration whenever it has done
 * one, and the thread waits for all of them before it goes on behind the join. So the machine's scheduler decides about their order,
 * and each iteration's own order is as it was recorded (Grunwald, Nutt, Sloane, Wagner and Zorn, 1991).
 *
 * Iterations are begun in the order of the stream, so that the oldest one never waits for one that has not begun. What stands between
 * two of them, and behind the last one, is control of a loop that would not be there, and is left out. What stands between the fork and
 * the first one is the thread's own. Loops inside of an iteration belong to it and stay as they are. So does a fork whose
 * next event is not the start of an iteration: there a team of threads has shared the loop already (OpenMP).
 *
 * A stream is read as far as somebody wants to begin an iteration; what comes before that is kept, up to a limit for each context.
 * Of a program that runs, only the loops of its only thread are dealt out, for nobody else can have a say in what is read ahead. */
#include "map/source/source_doall.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

enum { FIRST_NUMBER = 1000000 }; /* of the contexts, as threads; greater ones where the trace has such threads */

/* What was copied from a batch; its arrays lie behind it. */
struct piece {
    struct piece *next;
    struct peet_batch batch;
    uint64_t records; /* with those of what is repeated */
};

struct slot { /* a context that takes iterations */
    uint32_t lane;
    struct piece *first, *last;
    struct piece *shown; /* that the consumer looks at */
    uint64_t kept;       /* records in the line */
};

enum lane_state { LANE_PLAIN, LANE_FORKS, LANE_WAITS, LANE_GOES_ON };

struct lane { /* a thread of the source behind */
    struct peet_batch raw;
    size_t at;           /* the next record of it */
    uint8_t state;       /* enum lane_state */
    bool has_forked;     /* and nothing has happened since */
    bool is_inside;      /* what is read belongs to the iteration of `head` */
    bool is_loop_over;   /* the join has come, or the end */
    uint64_t iterations; /* that the fork announced */
    uint64_t iteration;  /* that is read */
    unsigned depth;      /* of starts, in an iteration */
    uint32_t head;       /* slot */
    uint32_t first, slots;
    struct peet_record *made; /* creates and joins */
    struct peet_event *made_event;
};

struct role {
    bool is_slot;
    uint32_t number; /* of the slot, or of the context behind */
};

struct doall {
    struct source source;
    struct source *inner;
    struct doall_config config;
    struct source_thread *context;
    struct role *role;
    struct lane *lane; /* by the context behind */
    struct slot *slot;
    uint32_t slots, seen; /* seen: contexts behind */
    uint32_t next_number;
    uint64_t peak;
};

static int no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for the iterations of parallel loops");
}

/* ---- contexts ---- */

static uint32_t add_context(struct doall *d, struct source_thread context, struct role role)
{
    uint32_t i = d->source.threads++;

    assert(i < d->source.max_threads);
    d->context[i] = context;
    d->role[i] = role;
    return i;
}

static void see_contexts(struct doall *d)
{
    for (; d->seen < d->inner->threads; d->seen++) {
        const struct source_thread *c = &d->inner->thread[d->seen];
        add_context(d, *c, (struct role){ false, d->seen });
        d->next_number =
            c->id >= d->next_number && c->id < UINT32_MAX - d->source.max_threads ? c->id + 1 : d->next_number;
    }
}

/* The contexts of a thread's loops are made at its first, and serve all others. */
static int make_slots(struct doall *d, struct lane *l, struct peet_err *err)
{
    uint32_t parent = (uint32_t)(l - d->lane), n = d->config.window;

    if (l->made)
        return 0;
    l->made = calloc(n, sizeof *l->made);
    l->made_event = calloc(n, sizeof *l->made_event);
    if (!l->made || !l->made_event)
        return no_memory(err);
    l->first = d->source.threads;
    for (uint32_t i = 0; i < n; i++) {
        d->slot[d->slots] = (struct slot){ .lane = parent };
        add_context(d,
                    (struct source_thread){
                        .id = d->next_number++, .process = d->inner->thread[parent].process, .birth = BIRTH_ITERATION },
                    (struct role){ true, d->slots++ });
    }
    return 0;
}

/* ---- reading the stream behind ---- */

static int refill(struct doall *d, struct lane *l, uint64_t reply, struct peet_err *err)
{
    int r = source_next(d->inner, (uint32_t)(l - d->lane), reply, &l->raw, err);

    l->at = 0;
    if (r <= 0)
        l->raw.count = 0;
    see_contexts(d);
    return r;
}

static const struct peet_event *event_at(const struct lane *l, size_t i)
{
    const struct peet_record *r = &l->raw.records[i];

    return r->kind == PEET_EVENT ? &l->raw.events[r->id] : NULL;
}

static size_t count_kind(const struct lane *l, size_t from, size_t to, unsigned kind)
{
    size_t n = 0;

    for (size_t i = from; i < to; i++)
        n += l->raw.records[i].kind == kind;
    return n;
}

/* The records of one trip of each of what is repeated there. */
static size_t count_trips(const struct lane *l, size_t from, size_t to)
{
    size_t n = 0;

    for (size_t i = from; i < to; i++)
        if (l->raw.records[i].kind == PEET_REPEAT)
            n += l->raw.repeats[l->raw.records[i].id].count;
    return n;
}

/* What is repeated goes where there is room for it. */
static void copy_repeat(const struct peet_repeat *from, struct peet_repeat *to, struct peet_record *trip,
                        uint64_t *step)
{
    memcpy(trip, from->records, from->count * sizeof *trip);
    memcpy(step, from->step, from->count * sizeof *step);
    *to = (struct peet_repeat){ from->times, from->count, trip, step };
}

/* Some records of the batch at hand, as a piece; NULL: no memory. */
static struct piece *copy(const struct lane *l, size_t from, size_t to)
{
    size_t n = to - from, events = count_kind(l, from, to, PEET_EVENT), more = count_trips(l, from, to);
    size_t repeats = count_kind(l, from, to, PEET_REPEAT);
    struct piece *p = malloc(sizeof *p + (n + more) * sizeof(struct peet_record) + events * sizeof(struct peet_event)
                             + more * sizeof(uint64_t) + repeats * sizeof(struct peet_repeat));

    if (!p)
        return NULL;
    struct peet_event *event = (struct peet_event *)(p + 1);
    struct peet_repeat *repeat = (struct peet_repeat *)(event + events);
    uint64_t *step = (uint64_t *)(repeat + repeats);
    struct peet_record *record = (struct peet_record *)(step + more), *trip = record + n;
    *p = (struct piece){ .records = n + more,
                         .batch = { .count = n, .records = record, .events = event, .event_count = events } };
    p->batch.repeats = repeat;
    p->batch.thread = l->raw.thread;
    p->batch.position = l->raw.position;
    memcpy(record, l->raw.records + from, n * sizeof *record);
    for (size_t i = 0, e = 0, r = 0; i < n; i++)
        if (record[i].kind == PEET_EVENT) {
            event[e] = l->raw.events[record[i].id];
            record[i].id = (uint32_t)e++;
        } else if (record[i].kind == PEET_REPEAT) {
            const struct peet_repeat *x = &l->raw.repeats[record[i].id];
            copy_repeat(x, &repeat[r], trip, step);
            trip += x->count;
            step += x->count;
            record[i].id = (uint32_t)r++;
        }
    return p;
}

static int keep(struct doall *d, struct lane *l, size_t to, struct peet_err *err)
{
    struct slot *s = &d->slot[l->head];
    struct piece *p = copy(l, l->at, to);

    if (!p)
        return no_memory(err);
    if (s->first)
        s->last->next = p;
    else
        s->first = p;
    s->last = p;
    s->kept += p->records;
    d->peak = s->kept > d->peak ? s->kept : d->peak;
    l->at = to;
    if (s->kept <= d->config.limit)
        return 0;
    return err_set(err, PEET_ERR_LIMIT,
                   "thread %" PRIu32 ": iteration %" PRIu64 " of a parallel loop has more than %" PRIu64
                   " records to be kept while others run; raise --doall-records, or take --doall keep",
                   d->inner->thread[l - d->lane].id, l->iteration, d->config.limit);
}

static int left_by_a_jump(const struct doall *d, const struct lane *l, struct peet_err *err)
{
    return err_set(err, PEET_ERR_FORMAT,
                   "thread %" PRIu32 ": iteration %" PRIu64
                   " of a parallel loop has no end (doall_finish was expected before "
                   "the thread's); was it left by break, goto or return? Take --doall keep",
                   d->inner->thread[l - d->lane].id, l->iteration);
}

/* Some more of the iteration that is read, up to its end: into the line of who has it. */
static int read_iteration(struct doall *d, struct lane *l, struct peet_err *err)
{
    if (l->at == l->raw.count) {
        int r = refill(d, l, 0, err);
        if (r <= 0) {
            l->is_inside = false;
            l->is_loop_over = true;
            return r;
        }
    }
    size_t i = l->at;
    for (; l->is_inside && i < l->raw.count; i++) {
        const struct peet_event *e = event_at(l, i);
        if (!e)
            continue;
        if (e->kind == PEET_EV_thread_end)
            return left_by_a_jump(d, l, err);
        l->depth += e->kind == PEET_EV_doall_start;
        if (e->kind == PEET_EV_doall_finish && --l->depth == 0)
            l->is_inside = false;
    }
    return keep(d, l, i, err);
}

/* Leaves out what is between iterations; then the next one begins, or the loop is over. */
static int find_iteration(struct doall *d, struct lane *l, uint32_t slot, struct peet_err *err)
{
    while (!l->is_loop_over) {
        if (l->at == l->raw.count) {
            int r = refill(d, l, 0, err);
            l->is_loop_over = r <= 0;
            if (r <= 0)
                return r;
        }
        for (; l->at < l->raw.count; l->at++) {
            const struct peet_event *e = event_at(l, l->at);
            if (e && e->kind == PEET_EV_doall_start) {
                l->is_inside = true;
                l->depth = 0;
                l->head = slot;
                l->iteration = e->arg[0];
                return 0;
            }
            if (e && (e->kind == PEET_EV_doall_join || e->kind == PEET_EV_thread_end)) {
                l->is_loop_over = true;
                return 0;
            }
        }
    }
    return 0;
}

/* ---- contexts that take iterations ---- */

static int slot_next(struct doall *d, uint32_t number, struct peet_batch *ret, struct peet_err *err)
{
    struct slot *s = &d->slot[number];
    struct lane *l = &d->lane[s->lane];
    int r = 0;

    free(s->shown);
    s->shown = NULL;
    while (r >= 0 && !s->first) {
        if (l->is_inside) /* its own, or somebody's before whom it cannot read */
            r = read_iteration(d, l, err);
        else if (l->is_loop_over)
            return 0;
        else
            r = find_iteration(d, l, number, err);
    }
    if (r < 0)
        return r;
    s->shown = s->first;
    s->first = s->first->next;
    s->kept -= s->shown->records;
    *ret = s->shown->batch;
    return 1;
}

/* ---- threads ---- */

/* Most batches have nothing to do with loops, and then their events say so at once. */
static bool has_loops(const struct peet_batch *b)
{
    for (size_t i = 0; i < b->event_count; i++)
        if (b->events[i].kind == PEET_EV_doall_fork || b->events[i].kind == PEET_EV_doall_start)
            return true;
    return false;
}

/* Where the batch at hand comes to the first iteration of a loop that is to be dealt out; its end, if it does not. */
static size_t find_loop(const struct doall *d, struct lane *l)
{
    if (!has_loops(&l->raw)) {
        l->has_forked &= l->raw.event_count == 0;
        return l->raw.count;
    }
    for (size_t i = l->at; i < l->raw.count; i++) {
        const struct peet_event *e = event_at(l, i);
        if (!e)
            continue;
        if (l->has_forked && e->kind == PEET_EV_doall_start && (!d->inner->is_live || d->inner->threads == 1)) {
            l->has_forked = false;
            l->state = LANE_FORKS;
            return i;
        }
        l->has_forked = e->kind == PEET_EV_doall_fork;
        l->iterations = e->arg[0];
    }
    return l->raw.count;
}

/* An event about each of the contexts of the loop. */
static int make_events(struct doall *d, struct lane *l, uint32_t kind, struct peet_batch *ret)
{
    for (uint32_t i = 0; i < l->slots; i++) {
        uint32_t thread = d->context[l->first + i].id;
        l->made_event[i] = (struct peet_event){ .kind = kind, .args = 1, .arg = { thread } };
        l->made[i] = (struct peet_record){ .addr = thread, .id = i, .kind = PEET_EVENT };
    }
    *ret = (struct peet_batch){ .count = l->slots,
                                .records = l->made,
                                .events = l->made_event,
                                .event_count = l->slots,
                                .thread = l->raw.thread,
                                .position = l->raw.position };
    return 1;
}

static int fork_loop(struct doall *d, struct lane *l, struct peet_batch *ret, struct peet_err *err)
{
    int r = make_slots(d, l, err);

    if (r < 0)
        return r;
    l->slots = l->iterations && l->iterations < d->config.window ? (uint32_t)l->iterations : d->config.window;
    l->is_loop_over = false;
    l->state = LANE_WAITS;
    return make_events(d, l, PEET_EV_thread_create, ret);
}

static int lane_next(struct doall *d, struct lane *l, uint64_t reply, struct peet_batch *ret, struct peet_err *err)
{
    if (l->state == LANE_FORKS)
        return fork_loop(d, l, ret, err);
    if (l->state == LANE_WAITS) {
        l->state = LANE_GOES_ON;
        return make_events(d, l, PEET_EV_thread_join, ret);
    }
    if (l->state == LANE_GOES_ON && !l->is_loop_over)
        return err_set(err, PEET_ERR_USAGE,
                       "thread %" PRIu32 ": asked for what follows a parallel loop before its iterations were read",
                       d->inner->thread[l - d->lane].id);
    l->state = LANE_PLAIN;
    if (l->at == l->raw.count) {
        int r = refill(d, l, reply, err);
        d->source.has_ended = d->inner->has_ended;
        if (r <= 0)
            return r;
    }
    size_t from = l->at, to = find_loop(d, l);
    if (to == from)
        return fork_loop(d, l, ret, err);
    l->at = to;
    *ret = l->raw;
    ret->records += from;
    ret->count = to - from;
    return 1;
}

static int next(struct source *s, uint32_t context, uint64_t reply, struct peet_batch *ret, struct peet_err *err)
{
    struct doall *d = (struct doall *)(void *)s;
    const struct role *role = &d->role[context];

    return role->is_slot ? slot_next(d, role->number, ret, err) : lane_next(d, &d->lane[role->number], reply, ret, err);
}

static void free_doall(struct source *s)
{
    struct doall *d = (struct doall *)(void *)s;

    for (uint32_t i = 0; i < d->slots; i++) {
        free(d->slot[i].shown);
        for (struct piece *p = d->slot[i].first, *after; p; p = after) {
            after = p->next;
            free(p);
        }
    }
    for (uint32_t i = 0; d->lane && i < d->seen; i++) {
        free(d->lane[i].made);
        free(d->lane[i].made_event);
    }
    free(d->slot);
    free(d->lane);
    free(d->role);
    free(d->context);
    source_free(d->inner);
    free(d);
}

static const struct source_kind DOALL = { .next = next, .free = free_doall };

/* ---- from outside ---- */

bool trace_has_doall(const struct peet_trace *t)
{
    for (uint32_t i = 1; i < peet_trace_items(t); i++) {
        const struct peet_event_item *e = peet_trace_event(t, i);
        if (e && e->kind == PEET_EV_doall_start)
            return true;
    }
    return false;
}

int source_take_doall(struct source *inner, const struct doall_config *config, struct source **ret,
                      struct peet_err *err)
{
    struct doall *d = calloc(1, sizeof *d);
    uint32_t forking = inner->is_live ? 1 : inner->max_threads; /* threads that can have loops */
    uint32_t slots = forking * config->window, most = inner->max_threads + slots;

    assert(config->window > 0 && config->window <= DOALL_MAX_WINDOW);
    if (!d) {
        source_free(inner);
        return no_memory(err);
    }
    d->inner = inner;
    d->config = *config;
    d->next_number = FIRST_NUMBER;
    d->context = calloc(most + 1, sizeof *d->context);
    d->role = calloc(most + 1, sizeof *d->role);
    d->lane = calloc(inner->max_threads + 1, sizeof *d->lane);
    d->slot = calloc(slots + 1, sizeof *d->slot);
    d->source = (struct source){ &DOALL, inner->trace, d->context, 0, most, inner->is_live, false };
    if (!d->context || !d->role || !d->lane || !d->slot) {
        free_doall(&d->source);
        return no_memory(err);
    }
    see_contexts(d);
    *ret = &d->source;
    return 0;
}

uint64_t source_doall_peak(const struct source *s)
{
    return ((const struct doall *)(const void *)s)->peak;
}
