/* SPDX-License-Identifier: MIT */
/* Arcs between threads, as far as events force them (docs/design/studies.md, "Arcs"). */
#include <stdlib.h>

#include "base/err.h"
#include "study/graph/precedence.h"

static int arcs_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for the arcs of the precedence graph");
}

int precedence_arc(struct precedence *p, struct graph_arc arc, struct peet_err *err)
{
    struct graph_arc *bigger = array_room(p->arc, p->arcs, &p->arc_room, sizeof *bigger);

    if (!bigger)
        return arcs_no_memory(err);
    p->arc = bigger;
    p->arc[p->arcs++] = arc;
    return 0;
}

/* ---- threads and processes ---- */

static int connect_thread(struct precedence *p, uint32_t segment, struct peet_err *err)
{
    const struct graph_segment *x = &p->segment[segment];
    const struct graph_thread *child = precedence_thread(p, x->value);

    if (!child || child == &p->thread[x->thread]) {
        p->unknown.unmatched_waits++;
        return 0;
    }
    struct graph_arc arc =
        x->end == PEET_EV_thread_create
            ? (struct graph_arc){ segment, child->first, x->end, ARC_CERTAIN }
            : (struct graph_arc){ child->first + child->segments - 1, segment + 1, x->end, ARC_CERTAIN };
    return precedence_arc(p, arc, err);
}

/* A child process begins with the thread whose creator is in another process. */
static int connect_process(struct precedence *p, uint32_t segment, struct peet_err *err)
{
    const struct peet_thread *th, *parent;

    for (size_t i = 0; (th = peet_trace_thread(p->trace, i)); i++) {
        const struct graph_thread *child =
            th->process == p->segment[segment].value ? precedence_thread(p, th->id) : NULL;
        bool in_process = false;
        for (size_t k = 0; child && (parent = peet_trace_thread(p->trace, k)); k++)
            in_process = in_process || (parent->id == th->parent && parent->process == th->process && parent != th);
        if (child && !in_process && child->process != p->thread[p->segment[segment].thread].process)
            return precedence_arc(p, (struct graph_arc){ segment, child->first, PEET_EV_fork, ARC_CERTAIN }, err);
    }
    p->unknown.unmatched_waits++;
    return 0;
}

static int connect_threads(struct precedence *p, struct peet_err *err)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < p->segments; i++) {
        uint8_t end = p->segment[i].end;
        if (end == PEET_EV_thread_create || end == PEET_EV_thread_join)
            r = connect_thread(p, i, err);
        else if (end == PEET_EV_fork)
            r = connect_process(p, i, err);
    }
    return r;
}

/* ---- semaphores ---- */

/* The segments that end with an event of one object, by thread, then in program order. */
struct object_events {
    const uint32_t *segment;
    size_t count;
};

/* The segments of one thread that end with an event of one object. */
struct thread_events {
    const uint32_t *from, *to; /* first; after the last */
    uint64_t posts;            /* of these */
};

static bool is_sem_post(const struct precedence *p, uint32_t segment)
{
    return p->segment[segment].end == PEET_EV_sem_post;
}

/* Adds arcs from the posts of one thread to the waits of another. others: the initial value and the posts of all other threads. */
static int connect_semaphore_pair(struct precedence *p, const struct thread_events *waiter,
                                  const struct thread_events *poster, uint64_t others, struct peet_err *err)
{
    uint64_t waits = 0, given = 0, reached = 0; /* reached: posts before `at` */
    const uint32_t *at = poster->from;
    int r = 0;

    for (const uint32_t *w = waiter->from; r == 0 && w < waiter->to; w++) {
        if (is_sem_post(p, *w)) {
            given++;
            continue;
        }
        waits++;
        uint64_t forced = waits > others + given ? waits - others - given : 0;
        if (forced > poster->posts)
            return 0; /* more waits than posts: the trace lacks posts */
        if (forced <= reached)
            continue; /* an earlier wait of the same thread has that arc */
        for (; reached < forced; at++)
            reached += is_sem_post(p, *at);
        r = precedence_arc(p, (struct graph_arc){ at[-1], *w + 1, PEET_EV_sem_wait, ARC_CERTAIN }, err);
    }
    return r;
}

static size_t split_by_thread(const struct precedence *p, const struct object_events *u, struct thread_events *run)
{
    size_t n = 0;

    for (const uint32_t *x = u->segment; x < u->segment + u->count; x++) {
        if (n == 0 || p->segment[*x].thread != p->segment[x[-1]].thread)
            run[n++] = (struct thread_events){ .from = x };
        run[n - 1].to = x + 1;
        run[n - 1].posts += is_sem_post(p, *x);
    }
    return n;
}

static int connect_semaphore(struct precedence *p, const struct graph_object *o, const struct object_events *u,
                             struct peet_err *err)
{
    struct thread_events *run = calloc(p->threads, sizeof *run);
    size_t n = run ? split_by_thread(p, u, run) : 0;
    uint64_t posts = 0, waits = 0;
    int r = run ? 0 : arcs_no_memory(err);

    for (size_t i = 0; i < n; i++) {
        posts += run[i].posts;
        waits += (uint64_t)(run[i].to - run[i].from) - run[i].posts;
    }
    /* Posts that are not in the trace could have given units, too. */
    bool known = o->inits && !p->unknown.damaged && !p->unknown.gaps;
    if (!known)
        p->unknown.unmatched_waits += waits;
    for (size_t i = 0; r == 0 && known && i < n; i++)
        for (size_t k = 0; r == 0 && k < n; k++)
            if (i != k && run[k].posts)
                r = connect_semaphore_pair(p, &run[i], &run[k], o->initial + posts - run[i].posts - run[k].posts, err);
    free(run);
    return r;
}

/* ---- post and wait, once ---- */

/* A post of a value. */
struct post {
    uint64_t value;
    uint32_t segment; /* that ends with it */
};

static int compare_posts(const void *a, const void *b)
{
    const struct post *x = a, *y = b;

    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->segment < y->segment ? -1 : x->segment > y->segment;
}

/* The first of n sorted posts with at least that value; n: none. */
static size_t find_value(const struct post *post, size_t n, uint64_t value)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (post[middle].value < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The segment with the post that certainly precedes a wait; SEGMENT_NONE: none. */
static uint32_t find_post(const struct precedence *p, const struct post *post, size_t n, uint32_t wait)
{
    const struct graph_segment *w = &p->segment[wait];
    size_t from = find_value(post, n, w->value);
    size_t to = from;
    uint32_t first = SEGMENT_NONE, own = SEGMENT_NONE;
    bool alone = true;

    while (to < n && post[to].value == w->value)
        to++;
    to = to > from ? to : n; /* no post of that value: a greater one ends the wait */
    for (size_t i = from; i < to; i++) {
        uint32_t segment = post[i].segment, thread = p->segment[segment].thread;
        own = thread == w->thread && segment < wait ? segment : own;
        alone = alone && (first == SEGMENT_NONE || p->segment[first].thread == thread);
        first = segment < first ? segment : first;
    }
    return own != SEGMENT_NONE ? own : alone ? first : SEGMENT_NONE;
}

static int connect_posts(struct precedence *p, const struct object_events *u, struct peet_err *err)
{
    struct post *post = calloc(u->count, sizeof *post);
    size_t n = 0;
    int r = post ? 0 : arcs_no_memory(err);

    for (size_t i = 0; r == 0 && i < u->count; i++)
        if (p->segment[u->segment[i]].end == PEET_EV_post)
            post[n++] = (struct post){ p->segment[u->segment[i]].value, u->segment[i] };
    if (n)
        qsort(post, n, sizeof *post, compare_posts);
    for (size_t i = 0; r == 0 && i < u->count; i++) {
        uint32_t wait = u->segment[i];
        if (p->segment[wait].end != PEET_EV_wait || find_value(post, n, p->segment[wait].value) == n)
            continue; /* no post of at least that value: the word had it from the begin of the run */
        uint32_t from = find_post(p, post, n, wait);
        bool backwards = from != SEGMENT_NONE && p->segment[from].thread == p->segment[wait].thread && from > wait;
        if (from == SEGMENT_NONE || backwards)
            p->unknown.unmatched_waits++;
        else if (from != wait)
            r = precedence_arc(p, (struct graph_arc){ from, wait + 1, PEET_EV_wait, ARC_CERTAIN }, err);
    }
    free(post);
    return r;
}

/* A thread that finds that the function has run follows the thread that ran it: assumed only, because OpenMP's single is the same event, and there threads do not wait. */
static int connect_once(struct precedence *p, const struct object_events *u, struct peet_err *err)
{
    uint32_t ran = SEGMENT_NONE;
    uint64_t times = 0;
    int r = 0;

    for (size_t i = 0; i < u->count; i++) {
        if (p->segment[u->segment[i]].value == 1) {
            ran = u->segment[i];
            times++;
        }
    }
    for (size_t i = 0; r == 0 && times == 1 && i < u->count; i++)
        if (p->segment[u->segment[i]].thread != p->segment[ran].thread)
            r = precedence_arc(p, (struct graph_arc){ ran, u->segment[i] + 1, PEET_EV_once, ARC_ASSUMED }, err);
    return r;
}

/* ---- all of them ---- */

static int connect_object(struct precedence *p, const struct graph_object *o, const struct object_events *u,
                          struct peet_err *err)
{
    if (u->count == 0)
        return 0;
    switch (o->class) {
    case GRAPH_SEMAPHORE: return connect_semaphore(p, o, u, err);
    case GRAPH_POST: return connect_posts(p, u, err);
    case GRAPH_ONCE: return connect_once(p, u, err);
    default: return 0;
    }
}

/* Sorts segments by the object of the event that ends them, and connects the segments of each object. */
static int connect_objects(struct precedence *p, struct peet_err *err)
{
    size_t *first = calloc(p->objects + 2, sizeof *first);
    uint32_t *segment = calloc((size_t)p->segments + 1, sizeof *segment);
    int r = first && segment ? 0 : arcs_no_memory(err);

    if (r == 0) {
        for (uint32_t i = 0; i < p->segments; i++)
            if (p->segment[i].object != SEGMENT_NONE)
                first[p->segment[i].object + 2]++;
        for (size_t i = 2; i < p->objects + 2; i++)
            first[i] += first[i - 1];
        for (uint32_t i = 0; i < p->segments; i++)
            if (p->segment[i].object != SEGMENT_NONE)
                segment[first[p->segment[i].object + 1]++] = i;
    }
    for (size_t i = 0; r == 0 && i < p->objects; i++)
        r = connect_object(p, &p->object[i], &(struct object_events){ segment + first[i], first[i + 1] - first[i] },
                           err);
    free(first);
    free(segment);
    return r;
}

/* Sorts the arcs by `from`; stable. */
static int index_arcs(struct precedence *p, struct peet_err *err)
{
    uint64_t *first = calloc((size_t)p->segments + 2, sizeof *first);
    struct graph_arc *sorted = calloc(p->arcs + 1, sizeof *sorted);

    if (!first || !sorted) {
        free(first);
        free(sorted);
        return arcs_no_memory(err);
    }
    for (size_t i = 0; i < p->arcs; i++)
        first[p->arc[i].from + 1]++;
    for (uint32_t i = 0; i < p->segments; i++)
        first[i + 1] += first[i];
    for (size_t i = 0; i < p->arcs; i++)
        sorted[first[p->arc[i].from]++] = p->arc[i];
    for (uint32_t i = p->segments; i > 0; i--)
        first[i] = first[i - 1];
    first[0] = 0;
    free(p->arc);
    free(p->first_arc);
    p->arc = sorted;
    p->arc_room = p->arcs + 1;
    p->first_arc = first;
    return 0;
}

int precedence_connect(struct precedence *p, struct peet_err *err)
{
    int r = connect_threads(p, err);

    if (r == 0)
        r = connect_objects(p, err);
    return r < 0 ? r : index_arcs(p, err);
}
