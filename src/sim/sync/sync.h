/* SPDX-License-Identifier: MIT */
/* Locks and barriers of the simulated machine: in which order threads pass them, and which references that takes.
 *
 * A program says only "lock" and "barrier"; the machine chooses the algorithm. Its references go through the caches like those of the program.
 * A thread that spins on a word in its own cache is parked until another thread writes that word, and then reads it again.
 *
 * Each call is one atomic step on memory, in the order of the calls, whose times may be slightly out of order. In both orders, no thread has a
 * lock before its last release is over, and none passes a barrier before all have arrived. docs/design/machines.md, "Locks and barriers". */
#ifndef SIM_SYNC_SYNC_H
#define SIM_SYNC_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "peet/record.h"

struct sync_waiter;

/* The machine as the modules see it; the engine provides the functions. `self` is passed to each of them. */
struct sync_host {
    void *self;
    /* A reference by waiter p, from its core, at cycle `now`: PEET_LOAD, PEET_STORE or PEET_UPDATE of SYNC_WORD bytes, by one
     * instruction. object: address of the program's lock or barrier to which the word at `addr` belongs; the word is in it, or is an extra
     * one (sync_word). Returns the cycle in which the reference is done. */
    uint64_t (*access)(void *self, const struct sync_waiter *p, uint64_t object, uint64_t addr, enum peet_kind kind,
                       uint64_t now);
    /* Resumes a parked waiter at cycle `when`: the engine then calls `attempt` of a lock, or `resume` of a barrier. */
    void (*wake)(void *self, struct sync_waiter *p, uint64_t when);
    uint64_t (*random)(void *self); /* the same sequence in every run */
};

enum { SYNC_WORD = 4 };    /* bytes of a reference to a lock or barrier */
enum { SYNC_ROUNDS = 32 }; /* of a dissemination barrier of 2^32 threads */

/* A thread at a lock or barrier. The engine makes it, and keeps it until the thread has the lock or has passed the barrier; a thread that holds
 * a lock can wait for another object with the same waiter. The module uses the fields from `phase` on. */
struct sync_waiter {
    unsigned cpu;               /* core on which it waits */
    uint32_t number;            /* of the thread; identifies its extra words */
    uint64_t priority;          /* the greater, the more urgent */
    uint8_t phase;              /* the module's own enum: its next step */
    uint32_t level;             /* of a combining tree, 0 is the lowest; or round of a dissemination barrier, from 0 */
    uint64_t slot;              /* failed attempts, ticket, or position among the threads of a barrier */
    uint64_t round;             /* number of the opening of a barrier for which it waits */
    uint64_t ready;             /* cycle in which its last reference was done */
    uint64_t flag[SYNC_ROUNDS]; /* dissemination: cycle in which it had set its partner's flag, by round */
    struct sync_waiter *next;   /* in the module's queue; NULL: the last one */
};

/* The outcome of an attempt. */
enum sync_outcome {
    SYNC_DONE,  /* the thread has the lock, or has passed the barrier */
    SYNC_AGAIN, /* it tries again at the cycle that was returned */
    SYNC_PARKED /* it waits until the host wakes it */
};

/* The waiter to which an ideal lock goes; the setting `grant`. */
enum lock_grant { GRANT_FIFO, GRANT_LIFO, GRANT_PRIORITY, GRANT_RANDOM };

/* The settings lock.* and barrier.*. */
struct sync_config {
    uint32_t spin;    /* cycles between two attempts of a thread that spins over the bus */
    uint32_t backoff; /* additional cycles after a failure; doubles with each further one, up to 64 times; 0: none */
    uint8_t grant;    /* enum lock_grant */
    uint32_t
        cost; /* cycles from the last arrival to the opening of a wired or ideal barrier; of a step of an ideal lock */
    uint32_t fan_in; /* children of a node of a combining tree; at least 2 */
};

/* The address of an extra word: a line of 256 bytes for each object, thread and use, where no program has data. */
uint64_t sync_word(uint64_t object, uint32_t thread, unsigned use);
bool sync_is_word(uint64_t addr);

/* A lock. Fields from `taken` on are the module's. */
struct sync_lock {
    const struct lock_kind *kind;
    const struct sync_host *host;
    const struct sync_config *config;
    uint64_t addr;                    /* of the program's lock */
    bool taken;                       /* a thread has it */
    uint64_t free_at;                 /* cycle in which the last release was done */
    uint64_t next;                    /* ticket to draw */
    uint64_t serving;                 /* ticket that has the lock; mcs: number of the thread that has it */
    struct sync_waiter *first, *last; /* queue of parked threads; first is NULL: empty */
};

/* An algorithm for locks. */
struct lock_kind {
    const char *name, *summary;
    /* A thread tries to take the lock: for the first time (is_new), after SYNC_AGAIN, or woken. Returns the cycle in which the attempt is done. */
    uint64_t (*attempt)(struct sync_lock *l, struct sync_waiter *p, bool is_new, uint64_t now, enum sync_outcome *ret);
    /* The holder releases the lock. Wakes parked threads that have to try again. Returns the cycle in which the holder continues. */
    uint64_t (*release)(struct sync_lock *l, struct sync_waiter *holder, uint64_t now);
};

/* A barrier. `round`, `opens` and the queue are the module's. */
struct sync_barrier {
    const struct barrier_kind *kind;
    const struct sync_host *host;
    const struct sync_config *config;
    uint64_t addr;                    /* of the program's barrier */
    uint32_t expected;                /* threads that have to arrive */
    uint32_t arrived;                 /* threads of the current round */
    uint64_t round;                   /* openings so far */
    uint64_t opens;                   /* cycle of the last arrival so far */
    struct sync_waiter *first, *last; /* queue of parked threads; first is NULL: empty */
};

/* An algorithm for barriers. */
struct barrier_kind {
    const char *name, *summary;
    /* A thread arrives: SYNC_DONE for the last one, else SYNC_PARKED. Returns the cycle in which its step is done. The last one wakes the others, or
     * some of them, which wake the rest when they resume. The next round may begin before all have resumed. */
    uint64_t (*arrive)(struct sync_barrier *b, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret);
    /* A woken thread reads its flag; returns the cycle in which it continues. NULL: it continues at once. */
    uint64_t (*resume)(struct sync_barrier *b, struct sync_waiter *p, uint64_t now);
};

/* A new lock or barrier (ARCHITECTURE.md, "Adding a thing") is a file src/sim/sync/NAME.c that defines lock_NAME or barrier_NAME, and a line here. Further state is a field of struct
 * sync_lock, sync_barrier or sync_waiter; extra words are an enum sync_use (parts.h). tests/unit/test_sync.c names each lock with its order. */
/* clang-format off */
#define LOCK_KINDS(X) X(ideal) X(tas) X(ttas) X(ticket) X(mcs)
#define BARRIER_KINDS(X) X(ideal) X(wired) X(central) X(tree) X(dissemination)
/* clang-format on */

#define X(name) extern const struct lock_kind lock_##name;
LOCK_KINDS(X)
#undef X
#define X(name) extern const struct barrier_kind barrier_##name;
BARRIER_KINDS(X)
#undef X

extern const struct lock_kind *const lock_kinds[]; /* NULL at the end */
extern const struct barrier_kind *const barrier_kinds[];
const struct lock_kind *lock_kind_find(const char *name); /* NULL: there is none */
const struct barrier_kind *barrier_kind_find(const char *name);

#endif
