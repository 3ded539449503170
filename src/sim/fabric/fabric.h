/* SPDX-License-Identifier: MIT */
/* What connects processors and memory: how long a transaction takes, and who has to wait for whom.
 *
 * A fabric is asked once for each transaction, when it is issued, and says when it is over. Transactions are issued in the order of
 * simulated time, but for what one block of instructions does by itself: a fabric must cope with one that was issued a
 * little before the last. What is used is busy until a time; who comes earlier waits for it. */
#ifndef SIM_FABRIC_FABRIC_H
#define SIM_FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/coherence/protocol.h"

enum { FABRIC_MEMORY = -1, FABRIC_MAX_CPUS = 64 };

struct fabric_config {
    uint32_t cpus;
    uint32_t line;     /* bytes */
    uint32_t width;    /* bytes that are moved in one bus cycle */
    uint32_t clock;    /* processor cycles of one bus cycle */
    uint32_t address;  /* bus cycles that a request or an invalidation takes */
    uint32_t hop;      /* processor cycles from one node of a mesh to the next */
    uint32_t port;     /* processor cycles for which a message occupies a port or a link, besides its data */
    uint32_t memory;   /* processor cycles until memory answers */
    uint32_t transfer; /* processor cycles until another cache answers */
    uint32_t banks;    /* of memory, in a crossbar */
};

struct transaction {
    uint8_t op;    /* enum bus_op */
    unsigned cpu;  /* who asks */
    uint64_t line; /* number of the line */
    int supplier;  /* processor whose cache gives the line, or FABRIC_MEMORY */
    uint32_t
        latency; /* processor cycles until the supplier answers; the cost of a shared cache that has it, for instance */
    uint32_t bytes;     /* of data that are moved: a line, a word, or none */
    unsigned home;      /* node whose memory the line is in */
    bool writes_memory; /* of an update: memory takes the word, too */
    uint64_t sharers;   /* in a directory's eyes: others that have to be told, a bit each; BUS_READ tells none */
};

/* When it is over for who asked, and how much of that was waiting for others. A write-back is over when it may be forgotten there. */
struct fabric_time {
    uint64_t done, waited;
};

/* How busy it was: a row of stretches of equal length, which gets longer as time goes on. */
enum { FABRIC_STRETCHES = 512 };
struct fabric_use {
    uint64_t stretch;                    /* cycles of each */
    uint64_t busy[FABRIC_STRETCHES];     /* cycles */
    uint64_t total, transactions, moved; /* moved: bytes */
    uint64_t waited;
    uint64_t by_op[BUS_OPS];
    uint64_t memory_updates; /* updates whose word memory has taken */
    uint32_t parallel;       /* so much can be busy at a time: a bus 1, a crossbar its connections, a mesh its links */
};

/* Adds [from, to) to what was busy. All zero is a row in which nothing was. */
void fabric_use_any(struct fabric_use *u, uint64_t from, uint64_t to);
static inline void fabric_use_add(struct fabric_use *u, uint64_t from, uint64_t to)
{
    uint64_t here = from & -u->stretch; /* a power of two, or 0 */

    if (from >= to || to - here > u->stretch || to > u->stretch * FABRIC_STRETCHES) {
        fabric_use_any(u, from, to);
    } else { /* mostly */
        u->total += to - from;
        u->busy[from >> __builtin_ctzll(u->stretch)] += to - from;
    }
}

struct fabric_state;

struct fabric {
    const struct fabric_kind *kind;
    struct fabric_config config;
    struct fabric_use use;
    uint64_t line_cycles;       /* in which the data of a line are moved */
    struct fabric_state *state; /* each kind's own */
};

struct fabric_kind {
    const char *name, *summary;
    size_t (*state_size)(
        const struct fabric_config *c); /* bytes of its state, which is zero at first; NULL: it has none */
    void (*init)(struct fabric *f);     /* or NULL */
    struct fabric_time (*transact)(struct fabric *f, const struct transaction *t, uint64_t now);
    bool has_directory; /* it tells those only who have the line, and transactions name them */
};

uint64_t fabric_cycles_of(const struct fabric_config *c, uint32_t bytes); /* in which so many are moved */
int fabric_init(struct fabric *f, const struct fabric_kind *kind,
                const struct fabric_config *config); /* -1: no memory */
void fabric_release(struct fabric *f);
struct fabric_time fabric_transact(struct fabric *f, const struct transaction *t, uint64_t now);

/* A new fabric is a file src/sim/fabric/NAME.c that defines fabric_NAME, and a line here. */
#define FABRICS(X) X(ideal) X(bus) X(split) X(crossbar) X(mesh)

#define X(name) extern const struct fabric_kind fabric_##name;
FABRICS(X)
#undef X

extern const struct fabric_kind *const fabrics[]; /* NULL at the end */
const struct fabric_kind *fabric_find(const char *name);

#endif
