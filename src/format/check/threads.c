/* SPDX-License-Identifier: MIT */
/* The lives of threads: created once, started as their creator, joined or detached once, and silent after their end. */
#include <inttypes.h>

#include "format/check/family.h"

/* The events about a thread: how many of each kind. */
struct life {
    uint64_t created, joined, detached; /* events of each kind */
    bool exists, started;               /* the trace has its stream; that has a thread_start event */
    uint32_t creator;                   /* id of the thread of the last create */
    uint64_t position;                  /* of that event: instructions of the creator before it */
};

/* The state of the family. */
struct check_state {
    struct map lives; /* struct life, by number of the thread */
};

/* The state of a thread. */
struct check_local {
    uint64_t events;         /* so far */
    uint64_t end_position;   /* of thread_end: instructions before it */
    bool ended, is_reported; /* thread_end was read; records after it were reported */
};

static struct life *get_life(struct check *c, struct check_state *s, uint64_t thread)
{
    s->lives.value_size = sizeof(struct life);
    struct life *x = map_put(&s->lives, thread, 0);
    if (!x)
        check_no_memory(c);
    return x;
}

static void threads_start(struct check *c, struct check_position at, const struct check_local *l, struct life *life,
                          uint64_t parent)
{
    const struct peet_thread *info = at.thread->info;

    life->started = true;
    if (at.position > 0 || l->events > 1)
        check_found(c, CHECK_thread, check_severity(at.thread), at,
                    "thread_start is not the first record of its thread");
    if (info && info->parent != parent)
        check_found(c, CHECK_thread, peet_trace_problem(c->trace, 0) ? CHECK_WARNING : CHECK_VIOLATION, at,
                    "thread_start names thread %" PRIu64 " as its parent; %" PRIu32 " was expected", parent,
                    info->parent);
}

static void threads_create(struct check *c, struct check_position at, struct life *life, uint64_t child)
{
    if (life->created++)
        check_found(c, CHECK_thread, CHECK_VIOLATION, at, "thread %" PRIu64 " is created a second time", child);
    life->creator = at.thread->id;
    life->position = at.position;
}

static void threads_join_or_detach(struct check *c, struct check_position at, struct life *life, uint64_t child,
                                   bool is_join)
{
    uint64_t *times = is_join ? &life->joined : &life->detached;

    if (is_join && child == at.thread->id)
        check_found(c, CHECK_thread, CHECK_VIOLATION, at, "the thread joins itself");
    else if (*times > 0)
        check_found(c, CHECK_thread, CHECK_VIOLATION, at, "thread %" PRIu64 " is %s a second time", child,
                    is_join ? "joined" : "detached");
    else if (life->joined || life->detached)
        check_found(c, CHECK_thread, CHECK_VIOLATION, at, "thread %" PRIu64 " is both joined and detached", child);
    ++*times;
}

static int threads_event(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l,
                         const struct peet_event *e, uint64_t position)
{
    struct check_position at = { th, position };
    uint64_t whose = e->kind == PEET_EV_thread_start ? th->id : e->arg[0];
    struct life *life = NULL;

    l->events++;
    if (l->ended && !l->is_reported) {
        check_found(c, CHECK_end, CHECK_VIOLATION, at, "%s stands behind thread_end", peet_event_name(e->kind));
        l->is_reported = true;
    }
    if (e->kind == PEET_EV_thread_end) {
        l->ended = true;
        l->end_position = position;
    }
    if (e->kind != PEET_EV_thread_start && e->kind != PEET_EV_thread_create && e->kind != PEET_EV_thread_join
        && e->kind != PEET_EV_thread_detach)
        return 0;
    if (!(life = get_life(c, s, whose)))
        return PEET_ERR_MEMORY;
    if (e->kind == PEET_EV_thread_start)
        threads_start(c, at, l, life, e->arg[0]);
    else if (e->kind == PEET_EV_thread_create)
        threads_create(c, at, life, whose);
    else
        threads_join_or_detach(c, at, life, whose, e->kind == PEET_EV_thread_join);
    return 0;
}

static int threads_end(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l)
{
    struct life *life = get_life(c, s, th->id);

    if (!life)
        return PEET_ERR_MEMORY;
    life->exists = true;
    if (l->ended && !l->is_reported && th->position > l->end_position)
        check_found(c, CHECK_end, CHECK_VIOLATION, (struct check_position){ th, l->end_position },
                    "blocks stand behind thread_end");
    if (th->whole && !l->ended)
        check_found(c, CHECK_end, check_severity(th), (struct check_position){ th, th->position },
                    "the stream ends without thread_end");
    return 0;
}

static void check_life(struct check *c, uint64_t thread, const struct life *x)
{
    enum check_severity severity = c->whole && !c->has_gaps ? CHECK_VIOLATION : CHECK_WARNING;
    const struct peet_thread *info = NULL;
    struct check_position at = { &(struct check_thread){ .id = x->creator }, x->position };

    for (size_t i = 0; x->exists && (info = peet_trace_thread(c->trace, i)) && info->id != thread;)
        i++;
    if (!x->exists && x->created)
        check_found(c, CHECK_thread, severity, at, "thread %" PRIu64 " is created, but the trace does not have it",
                    thread);
    else if (!x->exists)
        check_found(c, CHECK_thread, severity, (struct check_position){ 0 },
                    "thread %" PRIu64 " is joined or detached, but the trace does not have it", thread);
    else if (x->created && info && info->parent != x->creator)
        check_found(c, CHECK_thread, severity, at,
                    "thread %" PRIu64 " is created here, but says that thread %" PRIu32 " is its parent", thread,
                    info->parent);
    else if (x->created && !x->started)
        check_found(c, CHECK_thread, severity, at, "thread %" PRIu64 " is created, but has no thread_start", thread);
    else if (x->started && !x->created)
        check_found(c, CHECK_thread, severity,
                    (struct check_position){ &(struct check_thread){ .id = (uint32_t)thread }, 0 },
                    c->whole ? "the thread starts, but no thread of the trace creates it"
                             : "the thread starts; the recording was cut off before it tells which thread creates it");
}

static int threads_finish(struct check *c, struct check_state *s)
{
    const char *unrecorded = peet_trace_meta_get(c->trace, "unrecorded");
    const struct life *x;
    uint64_t thread;
    uint32_t tag;

    if (unrecorded)
        check_found(c, CHECK_thread, CHECK_WARNING, (struct check_position){ 0 },
                    "the program had more threads than the trace has: %s could not be recorded", unrecorded);
    for (size_t at = 0; (x = map_next(&s->lives, &at, &thread, &tag));)
        check_life(c, thread, x);
    return 0;
}

static void threads_release(struct check_state *s)
{
    map_release(&s->lives);
}

const struct check_family check_family_threads = {
    .name = "threads",
    .state_size = sizeof(struct check_state),
    .local_size = sizeof(struct check_local),
    .event = threads_event,
    .end = threads_end,
    .finish = threads_finish,
    .release = threads_release,
};
