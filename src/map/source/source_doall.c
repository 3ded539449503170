/* SPDX-License-Identifier: MIT */
/* Iterations of DOALL loops as threads.
 *
 * A program that runs the iterations of a DOALL one after the other marks begin and end of each (peet/mark.h). This source distributes them:
 * at the loop, the forking thread creates iteration threads. Each takes the next iteration whenever it has done one, and the forking thread
 * joins them all. So the machine's scheduler decides on the order of iterations (Grunwald, Nutt, Sloane, Wagner and Zorn, 1991).
 *
 * Iterations begin in the order of the stream. Records between iterations and after the last one control a loop that would not exist, and are left
 * out. Records between the fork and the first iteration belong to the forking thread. Loops inside an iteration stay as they are.
 * So does a fork whose next event is not the start of an iteration: a team of threads has shared that loop already (OpenMP).
 *
 * Records that are read before their iteration thread asks for them are kept, up to a limit per thread. Of a running program,
 * only the loops of its only thread are distributed: another thread could change what is read ahead. */
#include "map/source/source_doall.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

enum { FIRST_NUMBER = 1000000 }; /* least number of an iteration thread; greater than all thread numbers of the trace */

/* A copy of some records of a batch, in one allocation with its arrays. */
struct kept_batch {
    struct kept_batch *next; /* in the queue of its iteration thread; NULL: the last one */
    struct peet_batch batch;
    uint64_t records; /* with the records of strided loops */
};

/* An iteration thread, and the queue of records that it will execute. */
struct iteration_thread {
    uint32_t loop_thread;            /* index of the forking thread in the inner source */
    struct kept_batch *first, *last; /* the queue; first is NULL: it is empty */
    struct kept_batch *shown;        /* returned to the consumer, and freed with the next call; NULL: none */
    uint64_t kept;                   /* records in the queue */
};

/* What the forking thread returns next: its records; thread_create events; thread_join events; records after the joins. */
enum loop_thread_state { LOOP_NONE, LOOP_FORKS, LOOP_WAITS, LOOP_JOINED };

/* A thread of the inner source, which may fork loops. */
struct loop_thread {
    struct peet_batch raw;         /* last batch of the inner source */
    size_t at;                     /* index in raw.records of the next record */
    uint8_t state;                 /* enum loop_thread_state */
    bool has_forked;               /* the last event was a fork */
    bool in_iteration;             /* the next records belong to the iteration of thread `head` */
    bool is_loop_over;             /* the loop's join, or the end of the thread, has been read */
    uint64_t iterations;           /* of the loop, according to its fork; 0: unknown */
    uint64_t iteration;            /* number of the iteration being read */
    unsigned depth;                /* nested iterations being read */
    uint32_t head;                 /* index in doall.iteration_thread of the thread whose iteration is being read */
    uint32_t first;                /* index of its first iteration thread; the others follow */
    uint32_t iteration_threads;    /* of the current loop */
    struct peet_record *made;      /* records of thread_create or thread_join events; NULL: no loop so far */
    struct peet_event *made_event; /* their events */
};

/* What a thread of this source is: an iteration thread, or a thread of the inner source. */
struct role {
    bool is_iteration;
    uint32_t number; /* index in doall.iteration_thread, or of the thread in the inner source */
};

/* A source that distributes the iterations of an inner source's loops. */
struct doall {
    struct source source;
    struct source *inner; /* owned */
    struct doall_config config;
    struct source_thread *thread;              /* by index in this source */
    struct role *role;                         /* by index in this source */
    struct loop_thread *loop_thread;           /* by index in the inner source */
    struct iteration_thread *iteration_thread; /* of all loops; room for config.window for each thread that may fork */
    uint32_t iteration_threads;                /* in use in `iteration_thread` */
    uint32_t known;                            /* threads of the inner source that have an index here */
    uint32_t next_number;                      /* id of the next iteration thread, from FIRST_NUMBER */
    uint64_t peak;                             /* most records that one iteration thread had queued at a time */
};

static int doall_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for the iterations of parallel loops");
}

/* ---- threads ---- */

static uint32_t doall_add_thread(struct doall *d, struct source_thread thread, struct role role)
{
    uint32_t i = d->source.threads++;

    assert(i < d->source.max_threads);
    d->thread[i] = thread;
    d->role[i] = role;
    return i;
}

static void doall_add_threads(struct doall *d)
{
    for (; d->known < d->inner->threads; d->known++) {
        const struct source_thread *c = &d->inner->thread[d->known];
        doall_add_thread(d, *c, (struct role){ false, d->known });
        d->next_number =
            c->id >= d->next_number && c->id < UINT32_MAX - d->source.max_threads ? c->id + 1 : d->next_number;
    }
}

/* Makes the iteration threads of a forking thread, at its first loop; they serve all its loops. */
static int doall_make_iteration_threads(struct doall *d, struct loop_thread *l, struct peet_err *err)
{
    uint32_t parent = (uint32_t)(l - d->loop_thread), n = d->config.window;

    if (l->made)
        return 0;
    l->made = calloc(n, sizeof *l->made);
    l->made_event = calloc(n, sizeof *l->made_event);
    if (!l->made || !l->made_event)
        return doall_no_memory(err);
    l->first = d->source.threads;
    for (uint32_t i = 0; i < n; i++) {
        d->iteration_thread[d->iteration_threads] = (struct iteration_thread){ .loop_thread = parent };
        doall_add_thread(d,
                         (struct source_thread){ .id = d->next_number++,
                                                 .process = d->inner->thread[parent].process,
                                                 .birth = BIRTH_ITERATION },
                         (struct role){ true, d->iteration_threads++ });
    }
    return 0;
}

/* ---- reading the inner source ---- */

static int doall_refill(struct doall *d, struct loop_thread *l, uint64_t reply, struct peet_err *err)
{
    int r = source_next(d->inner, (uint32_t)(l - d->loop_thread), reply, &l->raw, err);

    l->at = 0;
    if (r <= 0)
        l->raw.count = 0;
    doall_add_threads(d);
    return r;
}

static const struct peet_event *doall_event_at(const struct loop_thread *l, size_t i)
{
    const struct peet_record *r = &l->raw.records[i];

    return r->kind == PEET_EVENT ? &l->raw.events[r->id] : NULL;
}

static size_t doall_count_kind(const struct loop_thread *l, size_t from, size_t to, unsigned kind)
{
    size_t n = 0;

    for (size_t i = from; i < to; i++)
        n += l->raw.records[i].kind == kind;
    return n;
}

/* Records of one iteration of each strided loop in [from, to). */
static size_t count_repeated(const struct loop_thread *l, size_t from, size_t to)
{
    size_t n = 0;

    for (size_t i = from; i < to; i++)
        if (l->raw.records[i].kind == PEET_REPEAT)
            n += l->raw.repeats[l->raw.records[i].id].count;
    return n;
}

/* Copies a strided loop; `iteration_records` and `step` have room for its arrays. */
static void doall_copy_repeat(const struct peet_repeat *from, struct peet_repeat *to,
                              struct peet_record *iteration_records, uint64_t *step)
{
    memcpy(iteration_records, from->records, from->count * sizeof *iteration_records);
    memcpy(step, from->step, from->count * sizeof *step);
    *to = (struct peet_repeat){ from->times, from->count, iteration_records, step };
}

/* A copy of the records [from, to) of the current batch; NULL: no memory. */
static struct kept_batch *doall_copy(const struct loop_thread *l, size_t from, size_t to)
{
    size_t n = to - from, events = doall_count_kind(l, from, to, PEET_EVENT), more = count_repeated(l, from, to);
    size_t repeats = doall_count_kind(l, from, to, PEET_REPEAT);
    struct kept_batch *p =
        malloc(sizeof *p + (n + more) * sizeof(struct peet_record) + events * sizeof(struct peet_event)
               + more * sizeof(uint64_t) + repeats * sizeof(struct peet_repeat));

    if (!p)
        return NULL;
    struct peet_event *event = (struct peet_event *)(p + 1);
    struct peet_repeat *repeat = (struct peet_repeat *)(event + events);
    uint64_t *step = (uint64_t *)(repeat + repeats);
    struct peet_record *record = (struct peet_record *)(step + more), *iteration_records = record + n;
    *p = (struct kept_batch){ .records = n + more,
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
            doall_copy_repeat(x, &repeat[r], iteration_records, step);
            iteration_records += x->count;
            step += x->count;
            record[i].id = (uint32_t)r++;
        }
    return p;
}

static int doall_keep(struct doall *d, struct loop_thread *l, size_t to, struct peet_err *err)
{
    struct iteration_thread *s = &d->iteration_thread[l->head];
    struct kept_batch *p = doall_copy(l, l->at, to);

    if (!p)
        return doall_no_memory(err);
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
                   d->inner->thread[l - d->loop_thread].id, l->iteration, d->config.limit);
}

static int left_by_a_jump(const struct doall *d, const struct loop_thread *l, struct peet_err *err)
{
    return err_set(err, PEET_ERR_FORMAT,
                   "thread %" PRIu32 ": iteration %" PRIu64
                   " of a parallel loop has no end (doall_finish was expected before "
                   "the thread's); was it left by break, goto or return? Take --doall keep",
                   d->inner->thread[l - d->loop_thread].id, l->iteration);
}

/* Reads more records of the current iteration into the queue of its iteration thread. */
static int doall_read_iteration(struct doall *d, struct loop_thread *l, struct peet_err *err)
{
    if (l->at == l->raw.count) {
        int r = doall_refill(d, l, 0, err);
        if (r <= 0) {
            l->in_iteration = false;
            l->is_loop_over = true;
            return r;
        }
    }
    size_t i = l->at;
    for (; l->in_iteration && i < l->raw.count; i++) {
        const struct peet_event *e = doall_event_at(l, i);
        if (!e)
            continue;
        if (e->kind == PEET_EV_thread_end)
            return left_by_a_jump(d, l, err);
        l->depth += e->kind == PEET_EV_doall_start;
        if (e->kind == PEET_EV_doall_finish && --l->depth == 0)
            l->in_iteration = false;
    }
    return doall_keep(d, l, i, err);
}

/* Leaves out records up to the next iteration, which that iteration thread gets, or to the end of the loop. */
static int doall_find_iteration(struct doall *d, struct loop_thread *l, uint32_t thread, struct peet_err *err)
{
    while (!l->is_loop_over) {
        if (l->at == l->raw.count) {
            int r = doall_refill(d, l, 0, err);
            l->is_loop_over = r <= 0;
            if (r <= 0)
                return r;
        }
        for (; l->at < l->raw.count; l->at++) {
            const struct peet_event *e = doall_event_at(l, l->at);
            if (e && e->kind == PEET_EV_doall_start) {
                l->in_iteration = true;
                l->depth = 0;
                l->head = thread;
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

/* ---- iteration threads ---- */

static int doall_iteration_next(struct doall *d, uint32_t number, struct peet_batch *ret, struct peet_err *err)
{
    struct iteration_thread *s = &d->iteration_thread[number];
    struct loop_thread *l = &d->loop_thread[s->loop_thread];
    int r = 0;

    free(s->shown);
    s->shown = NULL;
    while (r >= 0 && !s->first) {
        if (l->in_iteration) /* of this thread, or of an earlier one that has to be read before */
            r = doall_read_iteration(d, l, err);
        else if (l->is_loop_over)
            return 0;
        else
            r = doall_find_iteration(d, l, number, err);
    }
    if (r < 0)
        return r;
    s->shown = s->first;
    s->first = s->first->next;
    s->kept -= s->shown->records;
    *ret = s->shown->batch;
    return 1;
}

/* ---- forking threads ---- */

/* Most batches have nothing to do with loops, and then their events say so at once. */
static bool batch_has_loops(const struct peet_batch *b)
{
    for (size_t i = 0; i < b->event_count; i++)
        if (b->events[i].kind == PEET_EV_doall_fork || b->events[i].kind == PEET_EV_doall_start)
            return true;
    return false;
}

/* Index of the first iteration of a loop to distribute in the current batch; raw.count: there is none. */
static size_t doall_find_loop(const struct doall *d, struct loop_thread *l)
{
    if (!batch_has_loops(&l->raw)) {
        l->has_forked &= l->raw.event_count == 0;
        return l->raw.count;
    }
    for (size_t i = l->at; i < l->raw.count; i++) {
        const struct peet_event *e = doall_event_at(l, i);
        if (!e)
            continue;
        if (l->has_forked && e->kind == PEET_EV_doall_start && (!d->inner->is_live || d->inner->threads == 1)) {
            l->has_forked = false;
            l->state = LOOP_FORKS;
            return i;
        }
        l->has_forked = e->kind == PEET_EV_doall_fork;
        l->iterations = e->arg[0];
    }
    return l->raw.count;
}

/* An event of a kind for each iteration thread of the loop. */
static int doall_make_events(struct doall *d, struct loop_thread *l, uint32_t kind, struct peet_batch *ret)
{
    for (uint32_t i = 0; i < l->iteration_threads; i++) {
        uint32_t thread = d->thread[l->first + i].id;
        l->made_event[i] = (struct peet_event){ .kind = kind, .args = 1, .arg = { thread } };
        l->made[i] = (struct peet_record){ .addr = thread, .id = i, .kind = PEET_EVENT };
    }
    *ret = (struct peet_batch){ .count = l->iteration_threads,
                                .records = l->made,
                                .events = l->made_event,
                                .event_count = l->iteration_threads,
                                .thread = l->raw.thread,
                                .position = l->raw.position };
    return 1;
}

static int doall_fork_loop(struct doall *d, struct loop_thread *l, struct peet_batch *ret, struct peet_err *err)
{
    int r = doall_make_iteration_threads(d, l, err);

    if (r < 0)
        return r;
    l->iteration_threads =
        l->iterations && l->iterations < d->config.window ? (uint32_t)l->iterations : d->config.window;
    l->is_loop_over = false;
    l->state = LOOP_WAITS;
    return doall_make_events(d, l, PEET_EV_thread_create, ret);
}

static int doall_thread_next(struct doall *d, struct loop_thread *l, uint64_t reply, struct peet_batch *ret,
                             struct peet_err *err)
{
    if (l->state == LOOP_FORKS)
        return doall_fork_loop(d, l, ret, err);
    if (l->state == LOOP_WAITS) {
        l->state = LOOP_JOINED;
        return doall_make_events(d, l, PEET_EV_thread_join, ret);
    }
    if (l->state == LOOP_JOINED && !l->is_loop_over)
        return err_set(err, PEET_ERR_USAGE,
                       "thread %" PRIu32 ": asked for what follows a parallel loop before its iterations were read",
                       d->inner->thread[l - d->loop_thread].id);
    l->state = LOOP_NONE;
    if (l->at == l->raw.count) {
        int r = doall_refill(d, l, reply, err);
        d->source.has_ended = d->inner->has_ended;
        if (r <= 0)
            return r;
    }
    size_t from = l->at, to = doall_find_loop(d, l);
    if (to == from)
        return doall_fork_loop(d, l, ret, err);
    l->at = to;
    *ret = l->raw;
    ret->records += from;
    ret->count = to - from;
    return 1;
}

static int doall_next(struct source *s, uint32_t thread, uint64_t reply, struct peet_batch *ret, struct peet_err *err)
{
    struct doall *d = (struct doall *)(void *)s;
    const struct role *role = &d->role[thread];

    return role->is_iteration ? doall_iteration_next(d, role->number, ret, err)
                              : doall_thread_next(d, &d->loop_thread[role->number], reply, ret, err);
}

static void doall_free(struct source *s)
{
    struct doall *d = (struct doall *)(void *)s;

    for (uint32_t i = 0; i < d->iteration_threads; i++) {
        free(d->iteration_thread[i].shown);
        for (struct kept_batch *p = d->iteration_thread[i].first, *after; p; p = after) {
            after = p->next;
            free(p);
        }
    }
    for (uint32_t i = 0; d->loop_thread && i < d->known; i++) {
        free(d->loop_thread[i].made);
        free(d->loop_thread[i].made_event);
    }
    free(d->iteration_thread);
    free(d->loop_thread);
    free(d->role);
    free(d->thread);
    source_free(d->inner);
    free(d);
}

static const struct source_kind DOALL = { .next = doall_next, .free = doall_free };

/* ---- public functions ---- */

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
        return doall_no_memory(err);
    }
    d->inner = inner;
    d->config = *config;
    d->next_number = FIRST_NUMBER;
    d->thread = calloc(most + 1, sizeof *d->thread);
    d->role = calloc(most + 1, sizeof *d->role);
    d->loop_thread = calloc(inner->max_threads + 1, sizeof *d->loop_thread);
    d->iteration_thread = calloc(slots + 1, sizeof *d->iteration_thread);
    d->source = (struct source){ &DOALL, inner->trace, d->thread, 0, most, inner->is_live, false, false };
    if (!d->thread || !d->role || !d->loop_thread || !d->iteration_thread) {
        doall_free(&d->source);
        return doall_no_memory(err);
    }
    doall_add_threads(d);
    *ret = &d->source;
    return 0;
}

uint64_t source_doall_peak(const struct source *s)
{
    return ((const struct doall *)(const void *)s)->peak;
}
