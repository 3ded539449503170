/* SPDX-License-Identifier: MIT */
/* Schedulers: which thread of the program runs on which hardware thread, and for how long.
 *
 * A scheduler is the queue of ready threads. The simulator asks it when a hardware thread is idle, and when a thread has run for
 * its quantum. It has no clock, and draws random numbers from its seed only: equal calls give equal answers. */
#ifndef MAP_SCHED_SCHED_H
#define MAP_SCHED_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A thread of the program, as an element of a scheduler's queue. The simulator sets the first five fields, and `last` after each run. */
struct sched_thread {
    uint32_t number;           /* of the thread in the source */
    uint32_t group;            /* number of its process; threads of a group want to run at the same time */
    uint32_t members;          /* threads of its group that have not ended */
    uint64_t priority;         /* a greater number is more urgent */
    int last;                  /* hardware thread on which it ran last; -1: it has not run */
    uint64_t ready_at;         /* cycle; set by sched_ready */
    struct sched_thread *next; /* the next one in the queue; NULL: the last one */
};

/* The setting scheduler.*, as far as policies need it. */
struct sched_config {
    uint32_t hw_threads; /* of the machine */
    uint64_t quantum;    /* cycles; 0: threads run until they wait */
    uint64_t seed;       /* of policy random */
};

/* A queue of ready threads, with a policy. */
struct scheduler {
    const struct sched_kind *kind;
    struct sched_config config;
    struct sched_thread *first, *last; /* the queue, in the order in which threads became ready; NULL: it is empty */
    size_t count;                      /* threads in the queue */
    uint64_t state; /* private to the policy, at first 0: numbers drawn, or 1 + the group that has its turn */
    uint64_t since; /* private to the policy: cycle at which that turn began */
};

/* A scheduling policy. */
struct sched_kind {
    const char *name, *summary;
    /* Removes the thread that `hw_thread` is to run from the queue, which is not empty. NULL: it is to stay idle. */
    struct sched_thread *(*pick)(struct scheduler *s, unsigned hw_thread, uint64_t now);
    /* Whether the thread on `hw_thread`, which has run for `ran` cycles by now, has to make room for ready threads. NULL: after the quantum, if there is one. */
    bool (*is_over)(struct scheduler *s, const struct sched_thread *c, unsigned hw_thread, uint64_t ran, uint64_t now);
};

void sched_init(struct scheduler *s, const struct sched_kind *kind, const struct sched_config *config);
void sched_ready(struct scheduler *s, struct sched_thread *c, uint64_t now); /* it can run, from now on */
struct sched_thread *sched_pick(struct scheduler *s, unsigned hw_thread, uint64_t now);
/* Whether the running thread has to make room for a ready one. Any number of calls has the same effect as one. */
bool sched_is_over(struct scheduler *s, const struct sched_thread *c, unsigned hw_thread, uint64_t ran, uint64_t now);

/* For policies: removes a thread from the queue, and returns it. */
struct sched_thread *sched_remove(struct scheduler *s, struct sched_thread *c);

/* A new scheduler is a file src/map/sched/NAME.c that defines sched_NAME, and a line here: ARCHITECTURE.md, "Adding a thing". */
#define SCHEDULERS(X) X(fcfs) X(robin) X(affinity) X(gang) X(random)

#define X(name) extern const struct sched_kind sched_##name;
SCHEDULERS(X)
#undef X

extern const struct sched_kind *const schedulers[]; /* NULL at the end */
const struct sched_kind *sched_find(const char *name);

#endif
