/* SPDX-License-Identifier: MIT */
/* Coherence protocols as tables: what a cache does when its own processor reads, writes or pushes out a line, and what it does when
 * it sees somebody else's transaction on a line that it has.
 *
 * Assumes that a transaction is seen by all caches at once and answered in one step: protocols have no transient states. The
 * fabric says how long that takes. What a line holds is one value: updates carry the word that was written.
 *
 * A protocol names its own states; state 0 is "not here" in all of them. Everybody else reads only flags and tables. */
#ifndef SIM_COHERENCE_PROTOCOL_H
#define SIM_COHERENCE_PROTOCOL_H

#include <stdint.h>

enum { PROTOCOL_STATES = 8, PROTOCOL_ABSENT = 0 };

enum state_flag {
    STATE_READABLE = 1, /* a read needs no transaction */
    STATE_WRITABLE = 2, /* a write needs none: nobody else has it. It may still change the state, to a dirty one */
    STATE_DIRTY = 4,    /* memory may be old: it must be written back when it is pushed out */
};

enum own_event { OWN_READ, OWN_WRITE, OWN_EVICT, OWN_EVENTS };

/* Transactions. NONE is none; all others are seen by every other cache. */
enum bus_op {
    BUS_NONE,
    BUS_READ,       /* the line, to be read */
    BUS_READ_OWN,   /* the line, to be written: all others give theirs up */
    BUS_INVALIDATE, /* who writes has it: all others give theirs up; no line is moved */
    BUS_UPDATE,     /* the word that was written, for all who have the line */
    BUS_WRITE_BACK, /* the line goes to memory */
    BUS_OPS
};

/* What a cache does for its own processor. First the transaction; somebody who keeps a copy says so, and the state is then
 * `shared`, else `alone`. For writes: if somebody does, transaction `then` comes behind the first, and what it hears decides. */
struct own_cell {
    uint8_t op;            /* enum bus_op */
    uint8_t alone, shared; /* the new state */
    uint8_t then;          /* enum bus_op: behind a BUS_READ that found others; BUS_NONE: none */
    uint8_t acts;          /* enum own_act */
};
enum own_act {
    OWN_WRITES_MEMORY = 1, /* the update goes to memory, too */
};

/* What a cache does that sees another's transaction. */
struct snoop_cell {
    uint8_t next; /* the new state */
    uint8_t acts; /* enum snoop_act */
};
enum snoop_act {
    SNOOP_SHARED = 1, /* it says that it keeps a copy */
    SNOOP_SUPPLY = 2, /* it gives the line, memory does not */
    SNOOP_FLUSH = 4,  /* memory gets it, too */
    SNOOP_UPDATE = 8, /* it takes the word that is written into its copy */
};

struct protocol {
    const char *name, *summary; /* summary: one line, with who described it */
    unsigned states;
    const char *state[PROTOCOL_STATES]; /* names, short: "M" */
    uint8_t flags[PROTOCOL_STATES];     /* enum state_flag */
    struct own_cell own[PROTOCOL_STATES][OWN_EVENTS];
    struct snoop_cell snoop[PROTOCOL_STATES][BUS_OPS]; /* of BUS_NONE and of state 0: nothing happens */
};

/* A new protocol is a file src/sim/coherence/NAME.c that defines protocol_NAME, and a line here. */
/* clang-format off */
#define PROTOCOLS(X) \
    X(msi) X(mesi) X(moesi) X(berkeley) X(dragon) X(firefly)
/* clang-format on */

#define X(name) extern const struct protocol protocol_##name;
PROTOCOLS(X)
#undef X

extern const struct protocol *const protocols[];        /* NULL at the end */
const struct protocol *protocol_find(const char *name); /* NULL: there is none */

#endif
