/* SPDX-License-Identifier: MIT */
/* Barriers and semaphores. Over a whole trace, the waits at each barrier make full rounds, and
 * a semaphore is taken at most as often as it was given. Memory of an object may be reused for another one: a
 * barrier then has as many counts as it was initialised with. */
#include <inttypes.h>

#include "format/check/family.h"

enum { COUNTS = 4 }; /* different counts of one barrier that are distinguished */

/* Waits at the barriers that had one address, by the count that they were for. */
struct barrier_counts {
    unsigned counts; /* elements of `round` in use; the last one also takes waits for further counts */
    struct round {
        uint64_t count;    /* threads of a round */
        uint64_t inits;    /* barrier_init events with this count */
        uint64_t waits;    /* barrier_wait events with this count */
        uint32_t thread;   /* id of the thread of the first of these waits */
        uint64_t position; /* of that wait: instructions of its thread before it */
    } round[COUNTS];
};

/* Events of the semaphores that had one address. */
struct semaphore {
    uint64_t inits; /* sem_init events */
    uint64_t given; /* initial values, and sem_post events */
    uint64_t taken; /* sem_wait events, and sem_trywait events that succeeded */
};

/* The state of the family. */
struct check_state {
    struct map barriers, semaphores; /* by address and process */
    struct map cut_off;              /* by process: threads that were cut off */
};

static struct round *barrier_find_round(struct barrier_counts *b, uint64_t count)
{
    for (unsigned i = 0; i < b->counts; i++)
        if (b->round[i].count == count)
            return &b->round[i];
    if (b->counts == COUNTS)
        return &b->round[COUNTS - 1];
    b->round[b->counts].count = count;
    return &b->round[b->counts++];
}

static int barrier_event(struct check *c, struct check_state *s, const struct check_thread *th,
                         const struct peet_event *e, uint64_t position)
{
    s->barriers.value_size = sizeof(struct barrier_counts);
    struct barrier_counts *b = map_put(&s->barriers, e->arg[0], th->process);
    if (!b)
        return check_no_memory(c);
    struct round *r = barrier_find_round(b, e->arg[1]);
    if (e->kind == PEET_EV_barrier_init) {
        r->inits++;
    } else if (r->waits++ == 0) {
        r->thread = th->id;
        r->position = position;
    }
    return 0;
}

static int semaphore_event(struct check *c, struct check_state *s, const struct check_thread *th,
                           const struct peet_event *e)
{
    s->semaphores.value_size = sizeof(struct semaphore);
    struct semaphore *m = map_put(&s->semaphores, e->arg[0], th->process);
    if (!m)
        return check_no_memory(c);
    if (e->kind == PEET_EV_sem_init) {
        m->inits++;
        m->given += e->arg[1];
    } else if (e->kind == PEET_EV_sem_post) {
        m->given++;
    } else if (e->kind == PEET_EV_sem_wait || e->arg[1] == 0) {
        m->taken++;
    }
    return 0;
}

static int thread_ends(struct check *c, struct check_state *s, const struct check_thread *th, uint64_t how)
{
    if (how == PEET_END_EXIT)
        return 0;
    s->cut_off.value_size = sizeof(uint64_t);
    uint64_t *n = map_put(&s->cut_off, th->process, 0);
    if (!n)
        return check_no_memory(c);
    *n += how == PEET_END_PROCESS_EXIT ? 1 : 2;
    return 0;
}

static int meetings_event(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l,
                          const struct peet_event *e, uint64_t position)
{
    (void)l;
    switch (e->kind) {
    case PEET_EV_barrier_init:
    case PEET_EV_barrier_wait: return barrier_event(c, s, th, e, position);
    case PEET_EV_sem_init:
    case PEET_EV_sem_post:
    case PEET_EV_sem_wait:
    case PEET_EV_sem_trywait: return semaphore_event(c, s, th, e);
    case PEET_EV_thread_end: return thread_ends(c, s, th, e->arg[0]);
    default: return 0;
    }
}

static void check_barrier(struct check *c, uint64_t addr, const struct barrier_counts *b, enum check_severity severity)
{
    const struct round *first = &b->round[0]; /* that was initialised, or else of all */

    for (unsigned i = b->counts; i-- > 0;)
        first = b->round[i].inits ? &b->round[i] : first;
    for (unsigned i = 0; i < b->counts; i++) {
        const struct round *r = &b->round[i];
        struct check_position at = { &(struct check_thread){ .id = r->thread }, r->position };
        if (r->waits == 0)
            continue;
        if (r->count == 0)
            check_found_at(c, CHECK_barrier, CHECK_VIOLATION, at, addr,
                           "waits at the barrier at 0x%" PRIx64 " for 0 threads", addr);
        else if (r != first && !r->inits)
            check_found_at(c, CHECK_barrier, CHECK_VIOLATION, at, addr,
                           "waits at the barrier at 0x%" PRIx64 " for %" PRIu64 " threads; %" PRIu64 " was expected",
                           addr, r->count, first->count);
        else if (r->waits % r->count && c->whole)
            check_found_at(c, CHECK_barrier, severity, (struct check_position){ 0 }, addr,
                           "the barrier at 0x%" PRIx64 " is for %" PRIu64 " threads, but was waited at %" PRIu64
                           " times",
                           addr, r->count, r->waits);
    }
}

static int meetings_finish(struct check *c, struct check_state *s)
{
    const struct barrier_counts *b;
    const struct semaphore *m;
    uint64_t addr;
    uint32_t process;

    for (size_t at = 0; (b = map_next(&s->barriers, &at, &addr, &process));) {
        /* One thread may end the process; if others were cut off by that, they may have been on their way here. */
        const uint64_t *cut_off = map_find(&s->cut_off, process, 0);
        check_barrier(c, addr, b, c->has_gaps || (cut_off && *cut_off > 1) ? CHECK_WARNING : CHECK_VIOLATION);
    }
    for (size_t at = 0; c->whole && (m = map_next(&s->semaphores, &at, &addr, &process));)
        if (m->inits && m->taken > m->given)
            check_found_at(
                c, CHECK_semaphore, c->has_gaps ? CHECK_WARNING : CHECK_VIOLATION, (struct check_position){ 0 }, addr,
                "the semaphore at 0x%" PRIx64 " was taken %" PRIu64 " times, but given only %" PRIu64 " times", addr,
                m->taken, m->given);
    return 0;
}

static void meetings_release(struct check_state *s)
{
    map_release(&s->barriers);
    map_release(&s->semaphores);
    map_release(&s->cut_off);
}

const struct check_family check_family_meetings = {
    .name = "meetings",
    .state_size = sizeof(struct check_state),
    .event = meetings_event,
    .finish = meetings_finish,
    .release = meetings_release,
};
