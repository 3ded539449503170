/* SPDX-License-Identifier: MIT */
/* Coherence protocols as tables: what a cache does when its core reads, writes or evicts a line, and what it does when it snoops
 * another cache's transaction on a line that it holds.
 *
 * A transaction reaches all caches at once and is answered in one step: there are no transient states. The fabric says how long
 * that takes. An update carries the word that was written.
 *
 * A protocol names its states; state 0 is "not here" in all of them. coherence/step.h is the only reader of the tables. */
#ifndef SIM_COHERENCE_PROTOCOL_H
#define SIM_COHERENCE_PROTOCOL_H

#include <stdint.h>

enum { PROTOCOL_STATES = 8, PROTOCOL_ABSENT = 0 };

enum state_flag {
    STATE_READABLE = 1, /* the core may read the line */
    STATE_WRITABLE = 2, /* no other cache holds the line: the core may write it without a transaction */
    STATE_DIRTY = 4,    /* memory may be old, and this cache has to write the line back */
};

/* What a core, or its cache, wants to do with a line. */
enum own_event { OWN_READ, OWN_WRITE, OWN_EVICT, OWN_EVENTS };

/* Transactions. All but NONE are snooped by every other cache that holds the line. */
enum bus_op {
    BUS_NONE,
    BUS_READ,       /* fetches the line for a read */
    BUS_READ_OWN,   /* fetches the line for a write: all other copies are invalidated */
    BUS_INVALIDATE, /* the writer holds the line: all other copies are invalidated, and no line is moved */
    BUS_UPDATE,     /* sends the word that was written to all copies */
    BUS_WRITE_BACK, /* sends the line to memory */
    BUS_OPS
};

/* What a cache does for its own core: issues `op`; its next state is `shared` if another cache answers that it keeps a copy, else
 * `alone`. A write that is answered so issues `then` after `op`, and the answer to `then` decides. */
struct own_cell {
    uint8_t op;            /* enum bus_op */
    uint8_t alone, shared; /* next state */
    uint8_t then;          /* enum bus_op, after a BUS_READ; BUS_NONE: there is no second transaction */
    uint8_t acts;          /* enum own_act */
};
enum own_act {
    OWN_WRITES_MEMORY = 1, /* memory takes the word of an update, too */
};

/* What a cache does that snoops another cache's transaction. */
struct snoop_cell {
    uint8_t next; /* next state */
    uint8_t acts; /* enum snoop_act */
};
enum snoop_act {
    SNOOP_SHARED = 1, /* answers that it keeps a copy */
    SNOOP_SUPPLY = 2, /* supplies the line in place of memory */
    SNOOP_FLUSH = 4,  /* memory takes the line on its way */
    SNOOP_UPDATE = 8, /* writes the word of an update into its copy */
};

struct protocol_state {
    const char *name;    /* short: "M" */
    const char *meaning; /* one clause for the lists of peet */
};

struct protocol {
    const char *name, *summary; /* summary: one line that names its authors */
    unsigned states;
    struct protocol_state state[PROTOCOL_STATES];
    uint8_t flags[PROTOCOL_STATES]; /* enum state_flag */
    struct own_cell own[PROTOCOL_STATES][OWN_EVENTS];
    struct snoop_cell snoop[PROTOCOL_STATES][BUS_OPS]; /* all zero for BUS_NONE and for state 0 */
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
