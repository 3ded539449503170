/* SPDX-License-Identifier: MIT */
/* The interconnect of cores and memory: how long a transaction takes, and how long it waits for others.
 *
 * A fabric gets each transaction once, when it is issued, and returns when it is over. Transactions are issued in order of simulated time,
 * except within a block of instructions: one may be issued slightly before the last. docs/design/machines.md, "Fabrics". */
#ifndef SIM_FABRIC_FABRIC_H
#define SIM_FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/coherence/protocol.h"

enum { FABRIC_MEMORY = -1, FABRIC_MAX_CPUS = 64 };

/* The settings fabric.*, and what they depend on. */
struct fabric_config {
    uint32_t cpus;     /* cores */
    uint32_t line;     /* bytes */
    uint32_t width;    /* bytes transferred in a bus cycle */
    uint32_t clock;    /* core cycles of a bus cycle */
    uint32_t address;  /* bus cycles that a request or an invalidation takes */
    uint32_t hop;      /* core cycles from one node of a mesh to the next */
    uint32_t port;     /* core cycles for which a message occupies a port or a link, besides its data */
    uint32_t memory;   /* core cycles until memory answers */
    uint32_t transfer; /* core cycles until another cache answers */
    uint32_t banks;    /* of memory, in a crossbar */
};

/* A request of a core to other caches and memory. */
struct transaction {
    uint8_t op;       /* enum bus_op */
    unsigned cpu;     /* of the core that issues it */
    uint64_t line;    /* number of the line */
    int supplier;     /* core with the cache that supplies the line, or FABRIC_MEMORY */
    uint32_t latency; /* core cycles until the supplier answers; for instance, the cost of a shared cache that has it */
    uint32_t bytes;   /* of data: of a line, of a word, or 0 */
    unsigned home;    /* node with the memory of the line */
    bool writes_memory; /* of an update: the word is also written to memory */
    uint64_t sharers;   /* a bit for each other core that the directory has to notify; of BUS_READ: not used */
};

/* The end of a transaction for its core. A write-back is over when the core no longer needs its data. */
struct fabric_time {
    uint64_t done;   /* cycle */
    uint64_t waited; /* cycles, of those up to `done`, in which it waited for other transactions */
};

enum { FABRIC_BINS = 512 };

/* The utilization of a fabric, in time bins of equal length that grows with the run. All zero: unused. */
struct fabric_use {
    uint64_t bin;                 /* cycles of a bin, a power of two; 0: not yet chosen */
    uint64_t busy[FABRIC_BINS];   /* by bin: core cycles, summed over the resources in use */
    uint64_t total;               /* sum of `busy` */
    uint64_t transactions;        /* so far */
    uint64_t bytes;               /* transferred */
    uint64_t waited;              /* cycles for which transactions waited for others */
    uint64_t by_op[BUS_BASE_OPS]; /* transactions, by enum bus_op */
    uint64_t memory_updates;      /* updates that also wrote memory */
    uint32_t parallel; /* resources that can be busy at a time: a bus 1, a crossbar its connections, a mesh its links */
};

/* One resource was busy in cycles [from, to). */
void fabric_use_any(struct fabric_use *u, uint64_t from, uint64_t to);
static inline void fabric_use_add(struct fabric_use *u, uint64_t from, uint64_t to)
{
    uint64_t here = from & -u->bin; /* a power of two, or 0 */

    if (from >= to || to - here > u->bin || to > u->bin * FABRIC_BINS) {
        fabric_use_any(u, from, to);
    } else { /* the common case */
        u->total += to - from;
        u->busy[from >> __builtin_ctzll(u->bin)] += to - from;
    }
}

struct fabric_state;

/* A fabric of a machine. */
struct fabric {
    const struct fabric_kind *kind;
    struct fabric_config config;
    struct fabric_use use;
    uint64_t line_cycles;       /* core cycles in which the data of a line are transferred */
    struct fabric_state *state; /* of the kind; NULL: it has none */
};

/* A kind of fabrics. */
struct fabric_kind {
    const char *name, *summary;
    /* Bytes of its state, initially zero; NULL: it has none. */
    size_t (*state_size)(const struct fabric_config *c);
    void (*init)(struct fabric *f); /* NULL: not needed */
    struct fabric_time (*transact)(struct fabric *f, const struct transaction *t, uint64_t now);
    bool has_directory; /* only sharers of a line are notified, and transactions name them */
};

uint64_t fabric_cycles_of(const struct fabric_config *c, uint32_t bytes); /* core cycles of a transfer */
int fabric_init(struct fabric *f, const struct fabric_kind *kind,
                const struct fabric_config *config); /* -1: no memory */
void fabric_release(struct fabric *f);
struct fabric_time fabric_transact(struct fabric *f, const struct transaction *t, uint64_t now);

/* A new fabric (ARCHITECTURE.md, "Adding a thing") is a file src/sim/fabric/NAME.c that defines fabric_NAME, and a line here. A parameter that it needs is a field of struct
 * fabric_config, and a setting (src/sim/config/settings.c). tests/unit/test_fabric.c has the times of each fabric in a table. */
#define FABRICS(X) X(ideal) X(bus) X(split) X(crossbar) X(mesh)

#define X(name) extern const struct fabric_kind fabric_##name;
FABRICS(X)
#undef X

extern const struct fabric_kind *const fabrics[]; /* NULL at the end */
const struct fabric_kind *fabric_find(const char *name);

#endif
