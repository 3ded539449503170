/* SPDX-License-Identifier: MIT */
/* Locks and barriers as the simulated machine has them: who goes on when, and what that does to memory.
 *
 * A program says only "lock" and "barrier". Whether that is a test-and-set, a queue or a wire is the machine's choice, and the
 * references that it makes go through the caches like the program's own. Waiting is not simulated turn by turn where nothing
 * happens: who spins on a word in its own cache is parked until somebody writes that word, and then reads it again.
 *
 * Nothing here knows contexts or schedulers: a party is whoever waits, on the processor on which it waits. */
#ifndef SIM_SYNC_SYNC_H
#define SIM_SYNC_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "peet/record.h"

struct sync_waiter;

/* How the modules reach the machine; whoever uses them provides these. */
struct sync_host {
    void *context;
    /* A reference by party p, from its processor, at cycle `now`: PEET_LOAD, PEET_STORE or PEET_UPDATE of SYNC_WORD bytes, by one
     * instruction. `object` is the address of the program's lock or barrier to which the word at `addr` belongs; they are the same, or the
     * word is one that the program does not have (sync_word). Returns the cycle in which it is done. */
    uint64_t (*access)(void *context, const struct sync_waiter *p, uint64_t object, uint64_t addr, enum peet_kind kind,
                       uint64_t now);
    /* Lets a party that is parked go on at that time: a lock's is given back to `attempt`, a barrier's to `go_on`. */
    void (*wake)(void *context, struct sync_waiter *p, uint64_t when);
    uint64_t (*random)(void *context); /* the same numbers in every run */
};

enum { SYNC_WORD = 4 };    /* bytes of a reference to a lock or barrier */
enum { SYNC_ROUNDS = 32 }; /* of a barrier in which 2^32 expected meet */

/* Somebody who takes a lock or comes to a barrier. The host makes it, and keeps it until the party has the lock or has passed the
 * barrier; who holds a lock may wait elsewhere as the same party. The module uses what stands behind `priority`. */
struct sync_waiter {
    unsigned cpu;               /* where it waits */
    uint32_t number;            /* of the context: names its words in memory */
    uint64_t priority;          /* the greater, the more urgent */
    uint8_t phase;              /* what it does next */
    uint32_t level;             /* of a tree; round of a dissemination */
    uint64_t place;             /* failures so far, ticket, place in a barrier */
    uint64_t round;             /* the opening of a barrier for which it waits */
    uint64_t ready;             /* when its last reference was over */
    uint64_t flag[SYNC_ROUNDS]; /* when it had told its partner of each round */
    struct sync_waiter *next;
};

/* What became of an attempt. */
enum sync_outcome {
    SYNC_DONE,  /* it has the lock, or is through the barrier */
    SYNC_AGAIN, /* it tries again at the time that was returned */
    SYNC_PARKED /* it waits until it is woken */
};

enum lock_grant { GRANT_FIFO, GRANT_LIFO, GRANT_PRIORITY, GRANT_RANDOM };

struct sync_config {
    uint32_t spin;    /* cycles between two attempts of one that spins over the bus */
    uint32_t backoff; /* cycles more after a failure, twice as many after each further one, up to 64 times; 0: none */
    uint8_t grant;    /* enum lock_grant: whom an ideal lock goes to */
    uint32_t cost;    /* cycles from the last arrival to a wired or ideal barrier's opening; of an ideal lock's steps */
    uint32_t fan_in;  /* of a combining tree; at least 2 */
};

/* Words that a program does not have: a line of 256 bytes for each object, context and use, where no program has anything. */
uint64_t sync_word(uint64_t object, uint32_t party, unsigned use);
bool sync_is_word(uint64_t addr);

struct sync_lock {
    const struct lock_kind *kind;
    const struct sync_host *host;
    const struct sync_config *config;
    uint64_t addr; /* of the program's lock */
    bool taken;
    uint64_t free_at;                 /* for the module: when the last release was over; nobody has it before */
    uint64_t next, serving;           /* for the module: tickets, contexts */
    struct sync_waiter *first, *last; /* for the module: who waits */
};

struct lock_kind {
    const char *name, *summary;
    /* A party that has just come (is_new), whose time has come again, or who was woken tries to take it. Returns when the attempt is over. */
    uint64_t (*attempt)(struct sync_lock *l, struct sync_waiter *p, bool is_new, uint64_t now, enum sync_outcome *ret);
    /* The holder gives it back. Wakes who was parked and has to look. Returns when the holder goes on. */
    uint64_t (*release)(struct sync_lock *l, struct sync_waiter *holder, uint64_t now);
};

struct sync_barrier {
    const struct barrier_kind *kind;
    const struct sync_host *host;
    const struct sync_config *config;
    uint64_t addr;
    uint32_t expected; /* that have to come */
    uint32_t arrived;
    uint64_t round, opens; /* for the module */
    struct sync_waiter *first, *last;
};

struct barrier_kind {
    const char *name, *summary;
    /* A party arrives: DONE for the last one, or PARKED. Returns when its part is over. The last one wakes the others, or some of them,
     * and these wake the rest when they go on; the next round may begin before all have. */
    uint64_t (*arrive)(struct sync_barrier *b, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret);
    /* A party was woken: it looks, and goes on at the time that is returned. NULL: at once. */
    uint64_t (*go_on)(struct sync_barrier *b, struct sync_waiter *p, uint64_t now);
};

/* What all of them take for granted: memory is as the order of the calls makes it, whatever the times, so that each call is one
 * step; times say only how long it takes, and calls may come a little out of the order of time. Nobody has a lock before the release
 * before was over, and nobody passes a barrier before all arrived, in both orders. */

/* A new one is a file src/sim/sync/NAME.c and a line here. */
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
