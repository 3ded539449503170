/* SPDX-License-Identifier: MIT */
/* Memory orders: which of a thread's loads and stores may perform, that is, read memory or reach it, ahead of earlier ones.
 *
 * A buffer holds the operations of a domain (a thread, a core or a group of cores) that were issued and have not performed.
 * It has neither memory nor time: the executor decides when an operation performs, reads and writes memory, and retires
 * the operation. docs/design/orders.md has the models, and how executors use a buffer. */
#ifndef SIM_ORDER_ORDER_H
#define SIM_ORDER_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORDER_SLOTS = 64, ORDER_MAX_BYTES = 64, ORDER_VALUE_BYTES = 8, ORDER_NONE = -1 };

/* Sets of accesses. */
enum { ORDER_LOAD = 1, ORDER_STORE = 2, ORDER_ATOMIC = ORDER_LOAD | ORDER_STORE };

/* Flags of an access. Models without release and acquire ignore them. */
enum { ORDER_ACQUIRE = 1, ORDER_RELEASE = 2 };

/* What a fence orders. */
enum order_fence {
    ORDER_FENCE_FULL,
    ORDER_FENCE_STORES, /* between stores */
    ORDER_FENCE_LOADS,  /* between loads */
};

/* A memory model. All of them are coherent, multi-copy atomic, and keep atomics atomic. */
struct order_model {
    const char *name, *summary;
    uint8_t keeps[ORDER_ATOMIC
                  + 1];   /* [ORDER_LOAD], [ORDER_STORE]: the later accesses that wait for it at other locations */
    bool atomic_is_fence; /* an atomic performs at once, after all earlier accesses and before all later ones */
    bool has_release;     /* ORDER_ACQUIRE and ORDER_RELEASE count */
    bool release_before_acquire; /* an acquire load waits for earlier release stores */
};

/* A load, a store, or an atomic, which is both. */
struct order_op {
    uint64_t address;
    uint64_t value; /* of a store: its low bytes; not used if it has more than ORDER_VALUE_BYTES */
    uint64_t needs; /* slots of loads that a store's value depends on */
    uint32_t tag;   /* for the executor: an instruction, a source line */
    uint8_t size;   /* 1 to ORDER_MAX_BYTES bytes */
    uint8_t access;
    uint8_t flags; /* ORDER_ACQUIRE, ORDER_RELEASE */
};

/* The store that performs next, of those that may. */
enum order_drain {
    ORDER_DRAIN_OLDEST, /* of the stores that may perform */
    ORDER_DRAIN_RANDOM,
};

/* The store buffer of a domain. */
struct order_config {
    uint32_t stores; /* stores that the buffer holds; 0: ORDER_SLOTS */
    enum order_drain drain;
    bool no_forwarding; /* a load waits for an earlier store to its bytes, rather than reading it */
};

/* The operations of a domain that have not performed. Slots are given in turn; those of an explorer are in program order. */
struct order_buffer {
    const struct order_model *order;
    struct order_config config;
    uint64_t pending;                     /* slots that have not performed; an explorer may set it */
    uint64_t loads, stores, releases;     /* of these */
    uint64_t halves;                      /* slots of stores that are the second half of an atomic */
    uint64_t before_loads, before_stores; /* slots for which every later load, store waits */
    uint64_t blockers[ORDER_SLOTS];       /* slots for which it waits */
    uint64_t sources[ORDER_SLOTS];        /* slots of earlier stores to its bytes */
    struct order_op op[ORDER_SLOTS];
    uint32_t next; /* slot of the next operation */
};

void order_init(struct order_buffer *b, const struct order_model *order, const struct order_config *config);

/* Adds an operation and returns its slot. An atomic takes two slots, unless it is a fence: its load, then its store.
 * There must be room: order_wait returned ORDER_NONE, or fewer than ORDER_SLOTS slots were ever used. */
int order_issue(struct order_buffer *b, const struct order_op *op);

/* Orders the accesses before it and after it. Returns the slots for which it makes later accesses wait. */
uint64_t order_fence(struct order_buffer *b, enum order_fence fence);

/* Whether a pending operation may perform now. */
static inline bool order_may_perform(const struct order_buffer *b, int slot)
{
    return !(b->blockers[slot] & b->pending);
}

/* Marks an operation as performed. */
void order_retire(struct order_buffer *b, int slot);

/* For executors whose loads and atomics perform when they are issued: a store that has to perform first, and may; ORDER_NONE: the
 * load or atomic performs now and needs no slot, the store can be issued. `random` is for ORDER_DRAIN_RANDOM. */
int order_wait(const struct order_buffer *b, const struct order_op *op, uint64_t random);

/* A store among these slots that may perform, by the configured policy; ORDER_NONE: there is none. */
int order_drain(const struct order_buffer *b, uint64_t among, uint64_t random);

/* What pending stores hide of the bytes of a load that performs now. */
enum order_covered { ORDER_COVERED_NOT, ORDER_COVERED_PARTLY, ORDER_COVERED };
enum order_covered order_covers(const struct order_buffer *b, const struct order_op *load);

/* The youngest pending store that hides a byte of a load; ORDER_NONE: there is none. */
int order_first_covering(const struct order_buffer *b, const struct order_op *load);

/* What a load that performs now reads, if memory holds `memory` at its bytes: bytes of pending earlier stores hide it. The load has at
 * most ORDER_VALUE_BYTES, and so have these stores. */
uint64_t order_value(const struct order_buffer *b, const struct order_op *load, uint64_t memory);

/* The youngest pending store among `sources`; ORDER_NONE: none is pending. */
int order_source(const struct order_buffer *b, uint64_t sources);

/* Whether an atomic of this domain has read these bytes, and its store is the next one that may write them: until then no other
 * domain may store there, and no atomic of another domain may read there. */
bool order_reserves(const struct order_buffer *b, uint64_t address, uint32_t size);

/* A new order is a file src/sim/order/NAME.c that defines order_NAME, and a word here: ARCHITECTURE.md, "Adding a thing". */
#define MEMORY_ORDERS(X) X(sc) X(tso) X(pso) X(rmo) X(rcsc) X(rcpc)

#define X(name) extern const struct order_model order_##name;
MEMORY_ORDERS(X)
#undef X

extern const struct order_model *const memory_orders[]; /* NULL at the end */
const struct order_model *order_find(const char *name);

#endif
