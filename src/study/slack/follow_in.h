/* SPDX-License-Identifier: MIT */
/* The follower's state, shared by follow.c and follow_events.c. */
#ifndef STUDY_SLACK_FOLLOW_IN_H
#define STUDY_SLACK_FOLLOW_IN_H

#include "map/call_path.h"
#include "study/slack/follow.h"

/* Threads that wait for each other at a barrier. */
struct follow_round {
    struct sync_channel channel;
    uint32_t unit, arrived, expected, left; /* left: threads that have continued */
    struct follow_round *next, *previous;   /* of all rounds that are not over */
    bool is_open;
};

/* A lock, barrier or another object, by address. */
struct follow_object {
    struct sync_channel channel; /* of a reader-writer lock: from writers */
    struct sync_channel readers; /* of a reader-writer lock: from readers */
    struct follow_round *round;  /* of a barrier: the one that is open; NULL: none */
    uint32_t unit;               /* of the last use; UNIT_NONE: none so far */
    bool is_like_lock;           /* a semaphore that began with a value */
};

enum pending_kind { WILL_TAKE, WILL_PASS_BARRIER, WILL_ACQUIRE, WILL_JOIN };

/* What a thread gets to know when it continues after an event. */
struct follow_pending {
    uint8_t kind; /* enum pending_kind */
    bool is_reader;
    uint32_t unit, child;
    uint64_t addr; /* WILL_TAKE: of the lock */
    struct follow_object *object;
    struct follow_round *round;
    uint64_t arc; /* WILL_ACQUIRE: of an arc; 0: of the object */
};

/* A lock that a thread holds. */
struct follow_held {
    struct follow_object *object;
    uint64_t addr;
    uint32_t unit, depth;
    bool is_reader;
};

struct follow_thread {
    struct peet_batch batch;
    size_t at; /* next record of the batch */
    struct follow_pending pending[3];
    unsigned pendings;
    struct follow_held *held;
    size_t helds;
    struct sync_channel end; /* what it knew at its end */
    uint64_t ended;          /* cycle */
    uint32_t waits_at[2];    /* units of its last event: lock, other; UNIT_NONE: none */
    bool has_begun, has_ended;
};

/* Memory that was mapped. */
struct follow_mapping {
    uint64_t start, end;
    uint32_t process;
};

/* Follows a run: a source that passes records on to the simulation, and what it learns from them about units. */
struct follower {
    struct source source; /* passes records of `inner` on */
    struct source *inner; /* owned */
    struct sim *sim;
    struct sim_listener listener;
    struct units *units;     /* borrowed */
    struct objects *objects; /* owned: data objects of the run */
    struct dependence_observer observer;
    struct dependences *dependences;
    struct paths paths;
    struct follow_thread *thread;   /* by index in the source */
    struct follow_round *rounds;    /* first of the rounds that are not over; NULL: none */
    struct map objects_by_addr;     /* struct follow_object *, by address and process with class */
    struct map arcs;                /* struct sync_channel, by number of the arc */
    struct map sizes;               /* uint64_t: bytes of a heap block, by address and process */
    struct map thread_by_id;        /* uint32_t: number in the source */
    struct follow_mapping *mapping; /* all that were made, oldest first; none is removed */
    size_t mappings;
    uint32_t *name_of;      /* 1 + name, by number of a data object; 0: not looked up */
    uint32_t names;         /* elements of `name_of` */
    struct wait_bins *bins; /* by thread */
    uint64_t bin_cycles;    /* length of a bin; it doubles as the run grows */
};

/* ---- follow.c ---- */

struct follow_object *follow_object_at(struct follower *f, uint32_t process, enum relax_class class, uint64_t addr);
uint32_t follow_unit(struct follower *f, uint32_t thread, enum relax_class class, uint64_t addr, uint64_t site);

/* ---- follow_events.c ---- */

void follow_begin(struct follower *f, uint32_t thread); /* unless it has begun */
void follow_end(struct follower *f, uint32_t thread);   /* unless it has ended */

/* The thread continues after its last event. */
void follow_continue(struct follower *f, uint32_t thread);

/* The thread reaches an event. */
void follow_event(struct follower *f, uint32_t thread, const struct peet_event *e);

void follow_free_rounds(struct follower *f);

#endif
