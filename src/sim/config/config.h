/* SPDX-License-Identifier: MIT */
/* The description of a machine: the settings of a machine file (docs/machine-config.md). */
#ifndef SIM_CONFIG_CONFIG_H
#define SIM_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "map/sched/sched.h"
#include "peet/err.h"
#include "peet/schema.h"
#include "sim/cache/cache.h"
#include "sim/coherence/protocol.h"
#include "sim/fabric/fabric.h"
#include "sim/order/order.h"
#include "sim/sync/sync.h"

enum { CONFIG_LEVELS = 3, CONFIG_MAX_CPUS = 64, CONFIG_MAX_CONTEXTS = 16 };

/* What a level guarantees about the lines of levels before it. */
enum inclusion { INCLUSION_NONE, INCLUSION_INCLUSIVE };

/* A cache. */
struct level_config {
    uint64_t bytes; /* 0: there is no such level */
    uint32_t ways, line;
    uint32_t latency;      /* cycles of a hit, beyond those of the instruction */
    bool is_shared;        /* by all cores; else each has one */
    bool is_write_through; /* every write is passed on to the next level */
    bool allocates;        /* a write that misses fills the line */
    uint8_t inclusion;     /* enum inclusion: INCLUSIVE: it has all lines of the levels before it */
    uint32_t miss;         /* of instructions: cycles of a miss, which a next level always answers; 0: memory does */
    const struct replacement *replacement;
};

/* Lines of a set; `ways` 0: of the only set. */
static inline uint32_t level_ways(const struct level_config *l)
{
    return l->ways ? l->ways : (uint32_t)(l->bytes / l->line);
}

/* A TLB of each core. */
struct tlb_config {
    uint32_t entries, ways; /* entries 0: no TLB */
    uint32_t page;          /* bytes */
    uint32_t cost;          /* cycles of a miss */
    const struct replacement *replacement;
};

/* The hardware threads that share a store buffer. */
enum order_domain { ORDER_DOMAIN_CONTEXT, ORDER_DOMAIN_CORE, ORDER_DOMAIN_GROUP };

/* The memory order, and its store buffers. */
struct memory_order_config {
    const struct order_model *model; /* sc: there are no store buffers, a store performs when it issues */
    uint32_t stores;                 /* in a buffer */
    uint32_t outstanding;            /* stores of a buffer that may be on their way to memory at a time */
    uint32_t delay;                  /* least cycles from the issue of a store until it leaves the buffer */
    uint32_t fence, atomic;          /* cycles of a full fence, of an atomic, beyond waiting and instruction */
    uint32_t group;                  /* cores of a group */
    uint8_t drain;                   /* enum order_drain */
    uint8_t domain;                  /* enum order_domain */
    bool at_accesses;                /* threads of programs stop at shared accesses; else at synchronization only */
    bool forwards;                   /* a load reads a pending store; else it waits until that performs */
};

/* Where cores continue before a barrier opens. */
enum speculation_policy { SPECULATE_NONE, SPECULATE_BARRIER, SPECULATE_ADAPTIVE };

/* The lines that a roll-back makes invalid. */
enum speculation_drop { DROP_ALL, DROP_WRITTEN };

/* Speculation past barriers (docs/design/speculation.md). */
struct speculation_config {
    uint8_t policy;     /* enum speculation_policy */
    uint8_t drop;       /* enum speculation_drop */
    uint32_t save;      /* cycles to save a core's state at its arrival */
    uint32_t roll_back; /* cycles to restore it */
};

/* All settings of a machine. */
struct machine_config {
    char name[64];
    char summary[160];
    uint32_t cpus;
    uint32_t core_threads;                    /* hardware threads of each core */
    uint32_t cost[PEET_CLASS_COUNT];          /* cycles of an instruction of each class */
    struct level_config level[CONFIG_LEVELS]; /* for data, innermost first; private ones before shared ones */
    struct level_config instructions;         /* the instruction cache of each core; bytes 0: fetching takes no time */
    struct tlb_config tlb;
    const struct protocol *protocol;
    struct memory_order_config order;
    const struct fabric_kind *fabric_kind;
    struct fabric_config fabric;
    const struct lock_kind *lock;
    const struct barrier_kind *barrier;
    struct sync_config sync;
    struct speculation_config speculation;
    const struct sched_kind *scheduler;
    uint64_t quantum;     /* cycles */
    uint32_t switch_cost; /* cycles for a hardware thread to change its thread */
    bool
        waits_busily; /* a thread that waits for a lock or barrier keeps its hardware thread; else other threads run there */
    bool by_reference; /* a step is one reference; else one block */
    uint64_t slack;    /* bounded lag: cycles by which a core may be ahead of the next one when its step ends */
    bool
        first_touch; /* a page's home is the node of the core that touches it first; else pages are distributed in turn */
    uint32_t jitter; /* greatest random delay, in cycles, of a thread that begins or has waited */
    uint64_t seed;
};

/* Whether stores wait in buffers. */
static inline bool config_has_store_buffers(const struct machine_config *c)
{
    return c->order.model != &order_sc;
}

/* The machine of that name: a file if it has a '/' or a '.', else a preset. Then the settings, each "path=value". *ret has passed config_check,
 * and its fabric has `cpus` and `line`. Mistakes of a file are PEET_ERR_FORMAT, of `set` PEET_ERR_USAGE. */
int config_load(struct machine_config *ret, const char *name, const char *const *set, size_t sets,
                struct peet_err *err);

/* All settings at their initial values; the name is empty. */
void config_defaults(struct machine_config *ret);

/* Checks ranges and conflicts. */
int config_check(const struct machine_config *c, struct peet_err *err);

/* Name and summary of the i-th preset, which are never freed; NULL: the end. */
const char *config_preset(size_t i, const char **ret_summary);

#endif
