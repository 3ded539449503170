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
    STATE_UNSAFE = 8,   /* a speculating core has accessed the line */
};

/* What a core, or its cache, wants to do with a line. */
enum own_event {
    OWN_READ,
    OWN_WRITE,
    OWN_EVICT,
    OWN_BASE_EVENTS,
    OWN_READ_SPEC = OWN_BASE_EVENTS, /* a read, or a write, of a core that speculates */
    OWN_WRITE_SPEC,
    OWN_EVENTS
};

/* Transactions. All but NONE are snooped by every other cache that holds the line. */
enum bus_op {
    BUS_NONE,
    BUS_READ,       /* fetches the line for a read */
    BUS_READ_OWN,   /* fetches the line for a write: all other copies are invalidated */
    BUS_INVALIDATE, /* the writer holds the line: all other copies are invalidated, and no line is moved */
    BUS_UPDATE,     /* sends the word that was written to all copies */
    BUS_WRITE_BACK, /* sends the line to memory */
    BUS_BASE_OPS,
    BUS_READ_OWN_SPEC = BUS_BASE_OPS, /* BUS_READ_OWN with the tag of a speculative write: other copies expire */
    BUS_INVALIDATE_SPEC,              /* BUS_INVALIDATE with that tag */
    BUS_OPS
};

/* What a cache does for its own core: issues `op`; its next state is `old` if another cache answers SNOOP_OLD, `shared` if another cache
 * answers that it keeps a copy, else `alone`. A write that is answered so issues `then` after `op`, and the answer to `then` decides. */
struct own_cell {
    uint8_t op;            /* enum bus_op */
    uint8_t alone, shared; /* next state */
    uint8_t then;          /* enum bus_op, after a BUS_READ; BUS_NONE: there is no second transaction */
    uint8_t acts;          /* enum own_act */
    uint8_t old;           /* next state; of reads of absent lines, in protocols with speculative states */
};
enum own_act {
    OWN_WRITES_MEMORY = 1, /* memory takes the word of an update, too */
    OWN_ROLLS_BACK = 2,    /* the core is rolled back, where the next state is PROTOCOL_ABSENT */
};

/* What a cache does that snoops another cache's transaction. */
struct snoop_cell {
    uint8_t next; /* next state */
    uint8_t acts; /* enum snoop_act */
};
enum snoop_act {
    SNOOP_SHARED = 1,      /* answers that it keeps a copy */
    SNOOP_SUPPLY = 2,      /* supplies the line in place of memory */
    SNOOP_FLUSH = 4,       /* memory takes the line on its way */
    SNOOP_UPDATE = 8,      /* writes the word of an update into its copy */
    SNOOP_OLD = 16,        /* answers that memory has the line as before this cache's speculative write */
    SNOOP_ROLLS_BACK = 32, /* the core of this cache is rolled back */
};

/* What changes the states of all lines of a cache at once. */
enum bulk_event {
    BULK_ARRIVE,            /* the core arrives at a barrier */
    BULK_CONFIRM,           /* all cores have arrived: the core's speculation has succeeded */
    BULK_ROLL_BACK,         /* its speculation has failed */
    BULK_ROLL_BACK_WRITTEN, /* likewise, but lines that were only read stay */
    BULK_EVENTS
};

/* A state; without a name: the protocol has no state of that number. */
struct protocol_state {
    const char *name;    /* short: "M" */
    const char *meaning; /* one clause for the lists of peet */
};

/* A protocol. */
struct protocol {
    const char *name, *summary; /* summary: one line that names its authors */
    unsigned states;            /* elements of `state` in use */
    struct protocol_state state[PROTOCOL_STATES];
    uint8_t flags[PROTOCOL_STATES]; /* enum state_flag */
    struct own_cell own[PROTOCOL_STATES][OWN_EVENTS];
    struct snoop_cell snoop[PROTOCOL_STATES][BUS_OPS]; /* all zero for BUS_NONE and for state 0 */
    uint8_t bulk[BULK_EVENTS][PROTOCOL_STATES];        /* next state; of protocols with speculative states */
    const struct protocol *extension;                  /* this protocol and speculative states; NULL: there is none */
};

/* A new protocol is a file src/sim/coherence/NAME.c that defines protocol_NAME, and a word here: ARCHITECTURE.md, "Adding a thing". Its name
 * has lower-case letters only, and it has at most PROTOCOL_STATES states. */
/* clang-format off */
#define PROTOCOLS(X) \
    X(msi) X(mesi) X(moesi) X(berkeley) X(dragon) X(firefly)
/* clang-format on */

/* The extensions by speculative states (docs/design/speculation.md): a file likewise, named by the member `extension` of its base. */
#define SPECULATIVE_PROTOCOLS(X) X(smsi) X(smesi)

#define X(name) extern const struct protocol protocol_##name;
PROTOCOLS(X)
SPECULATIVE_PROTOCOLS(X)
#undef X

extern const struct protocol *const protocols[]; /* NULL at the end */
extern const struct protocol *const speculative_protocols[];
const struct protocol *protocol_find(const char *name); /* of `protocols`; NULL: there is none */

#endif
