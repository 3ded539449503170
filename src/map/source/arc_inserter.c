/* SPDX-License-Identifier: MIT */
#include "map/source/arc_inserter.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "map/source/conditions.h"

/* What is inserted before an event of a thread, or replaces it. Several points of one event are applied in this order. */
enum insert_point_kind { INSERT_TAIL, INSERT_WAIT, INSERT_HEAD };

/* A point of a thread's stream, before an event. */
struct insert_point {
    uint64_t event;     /* number of the event in its thread, from 1 */
    uint64_t arc;       /* number of the arc, from 1; INSERT_WAIT: 0 */
    uint64_t condition; /* address of the condition; INSERT_HEAD only */
    uint32_t thread;    /* index in the source */
    uint8_t kind;       /* enum insert_point_kind */
};

/* The points of a thread, and its position among them. */
struct inserter_thread {
    const struct insert_point *next, *end; /* the points that were not applied yet: [next, end) */
    uint64_t events;                       /* events so far */
    struct peet_record *record;            /* records of its last batch with points; NULL: none so far */
    struct peet_event *event;              /* events of that batch */
};

/* Points to insert into the streams of all threads. */
struct arc_inserter {
    struct insert_point *point; /* by thread and event */
    size_t points;
    struct inserter_thread *thread; /* by index in the source */
    uint32_t threads;
};

static int inserter_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for the order of critical sections");
}

static int inserter_compare_points(const void *a, const void *b)
{
    const struct insert_point *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    if (x->kind != y->kind)
        return (int)x->kind - (int)y->kind;
    return x->arc < y->arc ? -1 : x->arc > y->arc;
}

static void inserter_add(struct arc_inserter *k, const struct map *threads, uint32_t thread,
                         const struct insert_point *point)
{
    const uint32_t *index = map_find(threads, thread, 0);

    k->point[k->points] = *point;
    k->point[k->points].thread = *index;
    k->points++;
}

/* Makes the points of all arcs between threads of the source, and of all waits. */
static void inserter_fill(struct arc_inserter *k, const struct condition_order *o, const struct map *threads)
{
    for (size_t i = 0; i < o->arcs; i++) {
        const struct condition_arc *x = &o->arc[i];
        if (x->level > CONDITION_COUNTED || !map_find(threads, x->from_thread, 0)
            || !map_find(threads, x->to_thread, 0))
            continue;
        inserter_add(k, threads, x->from_thread,
                     &(struct insert_point){ .event = x->from_event, .arc = i + 1, .kind = INSERT_TAIL });
        inserter_add(k, threads, x->to_thread,
                     &(struct insert_point){
                         .event = x->to_event, .arc = i + 1, .condition = x->condition, .kind = INSERT_HEAD });
    }
    for (size_t i = 0; i < o->waits; i++)
        if (map_find(threads, o->wait[i].thread, 0))
            inserter_add(k, threads, o->wait[i].thread,
                         &(struct insert_point){ .event = o->wait[i].event, .kind = INSERT_WAIT });
    if (k->points)
        qsort(k->point, k->points, sizeof *k->point, inserter_compare_points);
    for (size_t i = 0, to; i < k->points; i = to) {
        for (to = i; to < k->points && k->point[to].thread == k->point[i].thread;)
            to++;
        k->thread[k->point[i].thread].next = k->point + i;
        k->thread[k->point[i].thread].end = k->point + to;
    }
}

static int inserter_make(struct arc_inserter *k, const struct condition_order *o, const struct source_thread *thread,
                         struct peet_err *err)
{
    struct map threads = { .value_size = sizeof(uint32_t) };
    bool fits = true;

    k->point = calloc(2 * o->arcs + o->waits + 1, sizeof *k->point);
    k->thread = calloc((size_t)k->threads + 1, sizeof *k->thread);
    for (uint32_t i = 0; fits && i < k->threads; i++) {
        uint32_t *number = map_put(&threads, thread[i].id, 0);
        fits = number != NULL;
        if (fits)
            *number = i;
    }
    fits = fits && k->point && k->thread;
    if (fits)
        inserter_fill(k, o, &threads);
    map_release(&threads);
    return fits ? 0 : inserter_no_memory(err);
}

int arc_inserter_new(struct peet_trace *t, const struct source_thread *thread, uint32_t threads,
                     struct arc_inserter **ret, struct peet_err *err)
{
    struct condition_order o;
    struct arc_inserter *k = NULL;
    int r = condition_order_read(&o, t, err);

    if (r == 0 && (o.arcs || o.waits)) {
        k = calloc(1, sizeof *k);
        r = k ? 0 : inserter_no_memory(err);
    }
    if (k) {
        k->threads = threads;
        r = inserter_make(k, &o, thread, err);
    }
    condition_order_release(&o);
    if (r < 0)
        arc_inserter_free(k);
    else
        *ret = k;
    return r;
}

void arc_inserter_free(struct arc_inserter *k)
{
    if (!k)
        return;
    for (uint32_t i = 0; k->thread && i < k->threads; i++) {
        free(k->thread[i].record);
        free(k->thread[i].event);
    }
    free(k->thread);
    free(k->point);
    free(k);
}

/* A copy of a batch, with points. */
struct inserter_copy {
    struct peet_record *record;
    struct peet_event *event;
    size_t records, events; /* so far */
};

static void inserter_copy_event(struct inserter_copy *to, const struct peet_event *e)
{
    to->event[to->events] = *e;
    to->record[to->records++] =
        (struct peet_record){ .addr = e->arg[0], .id = (uint32_t)to->events, .kind = PEET_EVENT };
    to->events++;
}

static void inserter_copy_made(struct inserter_copy *to, const struct peet_event *like, uint32_t kind, uint32_t args,
                               uint64_t a, uint64_t b)
{
    inserter_copy_event(to, &(struct peet_event){ .kind = kind, .args = args, .site = like->site, .arg = { a, b } });
}

/* An event and the points that belong to it. */
static void inserter_copy_with_points(struct inserter_copy *to, struct inserter_thread *c, const struct peet_event *e)
{
    bool is_wait = false;

    for (; c->next < c->end && c->next->event <= c->events; c->next++) {
        const struct insert_point *x = c->next;
        if (x->event < c->events)
            continue; /* its event is in a damaged chunk */
        if (x->kind == INSERT_TAIL) {
            inserter_copy_made(to, e, PEET_EV_arc_tail, 1, x->arc, 0);
        } else if (x->kind == INSERT_HEAD) {
            inserter_copy_made(to, e, PEET_EV_arc_head, 2, x->arc, x->condition);
        } else {
            is_wait = true;
            inserter_copy_made(to, e, PEET_EV_mutex_unlock, 1, e->arg[1], 0);
            inserter_copy_made(to, e, PEET_EV_arc_head, 2, 0, e->arg[0]);
        }
    }
    if (is_wait)
        inserter_copy_made(to, e, PEET_EV_mutex_lock, 1, e->arg[1], 0);
    else
        inserter_copy_event(to, e);
}

int arc_inserter_apply(struct arc_inserter *k, uint32_t thread, struct peet_batch *batch, struct peet_err *err)
{
    struct inserter_thread *c = &k->thread[thread];
    size_t points = 0;

    for (const struct insert_point *x = c->next; x < c->end && x->event <= c->events + batch->event_count; x++)
        points++;
    if (points == 0) {
        c->events += batch->event_count;
        return 0;
    }
    free(c->record);
    free(c->event);
    c->record = calloc(batch->count + 2 * points, sizeof *c->record); /* a wait becomes three events */
    c->event = calloc(batch->event_count + 2 * points, sizeof *c->event);
    if (!c->record || !c->event)
        return inserter_no_memory(err);
    struct inserter_copy to = { .record = c->record, .event = c->event };
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->records[i].kind != PEET_EVENT) {
            to.record[to.records++] = batch->records[i];
            continue;
        }
        c->events++;
        inserter_copy_with_points(&to, c, &batch->events[batch->records[i].id]);
    }
    batch->records = to.record;
    batch->count = to.records;
    batch->events = to.event;
    batch->event_count = to.events;
    return 0;
}
