/* SPDX-License-Identifier: MIT */
/* Schedulers: which software context runs on which hardware context, and for how long.
 *
 * A scheduler holds the contexts that can run and do not. It is asked when a hardware context has nothing to do, and when a
 * context has run for its quantum. It knows no clock of its own, and no random numbers but those of its seed. */
#ifndef MAP_SCHED_SCHED_H
#define MAP_SCHED_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A software context in a scheduler's eyes; who makes it sets the first five, and `last` whenever it has run. */
struct sched_thread {
    uint32_t number;
    uint32_t group;    /* contexts that want to run at the same time: a process */
    uint32_t members;  /* how many of its group are alive */
    uint64_t priority; /* the greater, the more urgent */
    int last;          /* hardware context on which it ran last; -1: none yet */
    uint64_t ready_at; /* set by sched_ready */
    struct sched_thread *next;
};

struct sched_config {
    uint32_t hw_threads; /* hardware contexts */
    uint64_t quantum;    /* cycles; 0: contexts run until they wait */
    uint64_t seed;
};

struct scheduler {
    const struct sched_kind *kind;
    struct sched_config config;
    struct sched_thread *first, *last; /* in the order in which they became ready */
    size_t count;
    uint64_t state; /* the kind's own, 0 at first: random numbers, the group whose turn it is */
    uint64_t since; /* when that turn began */
};

struct sched_kind {
    const char *name, *summary;
    /* Takes the one that is to run on `hw_thread` out of the queue; NULL: none of those that are there. */
    struct sched_thread *(*pick)(struct scheduler *s, unsigned hw_thread, uint64_t now);
    /* Whether the one that runs on `hw_thread`, for `ran` cycles by now, has to make room for those that are ready. NULL: after the quantum, if any is. */
    bool (*is_over)(struct scheduler *s, const struct sched_thread *c, unsigned hw_thread, uint64_t ran, uint64_t now);
};

void sched_init(struct scheduler *s, const struct sched_kind *kind, const struct sched_config *config);
void sched_ready(struct scheduler *s, struct sched_thread *c, uint64_t now); /* it can run, from now on */
struct sched_thread *sched_pick(struct scheduler *s, unsigned hw_thread, uint64_t now);
/* May be asked as often as one likes. */
bool sched_is_over(struct scheduler *s, const struct sched_thread *c, unsigned hw_thread, uint64_t ran, uint64_t now);

/* For kinds: takes one that is there out of the queue, and returns it. */
struct sched_thread *sched_remove(struct scheduler *s, struct sched_thread *c);

/* A new scheduler is a file src/map/sched/NAME.c that defines sched_NAME, and a line here. */
#define SCHEDULERS(X) X(fcfs) X(robin) X(affinity) X(gang) X(random)

#define X(name) extern const struct sched_kind sched_##name;
SCHEDULERS(X)
#undef X

extern const struct sched_kind *const schedulers[]; /* NULL at the end */
const struct sched_kind *sched_find(const char *name);

#endif
