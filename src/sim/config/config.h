/* SPDX-License-Identifier: MIT */
/* A machine as it is described: what a machine file says (docs/machine-config.md). */
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
#include "sim/sync/sync.h"

enum { CONFIG_LEVELS = 3, CONFIG_MAX_CPUS = 64, CONFIG_MAX_CONTEXTS = 16 };

enum inclusion { INCLUSION_NONE, INCLUSION_INCLUSIVE };

struct level_config {
    uint64_t bytes; /* 0: there is no such level */
    uint32_t ways, line;
    uint32_t latency;      /* cycles that an access costs when it is found here, beyond those of the instruction */
    bool is_shared;        /* by all processors; else each has its own */
    bool is_write_through; /* every write goes on to the next level */
    bool allocates;        /* a write that misses brings the line */
    uint8_t inclusion;     /* enum inclusion: what is in the levels before it is here, too */
    uint32_t miss; /* of instructions: cycles of what is not here, which is near then; 0: it comes from memory */
    const struct replacement *replacement;
};

/* Lines of a set; 0 stands for one set of all of them. */
static inline uint32_t level_ways(const struct level_config *l)
{
    return l->ways ? l->ways : (uint32_t)(l->bytes / l->line);
}

struct tlb_config {
    uint32_t entries, ways; /* entries 0: there is none */
    uint32_t page;          /* bytes */
    uint32_t cost;          /* cycles of a miss */
    const struct replacement *replacement;
};

struct machine_config {
    char name[64];
    char summary[160];
    uint32_t cpus;
    uint32_t core_threads;                    /* hardware threads of each core */
    uint32_t cost[PEET_CLASS_COUNT];          /* cycles of an instruction of each class */
    struct level_config level[CONFIG_LEVELS]; /* data, from the processor outwards: private ones first */
    struct level_config instructions;         /* the cache for instructions; bytes 0: fetching costs nothing */
    struct tlb_config tlb;
    const struct protocol *protocol;
    const struct fabric_kind *fabric_kind;
    struct fabric_config fabric;
    const struct lock_kind *lock;
    const struct barrier_kind *barrier;
    struct sync_config sync;
    const struct sched_kind *scheduler;
    uint64_t quantum;     /* cycles */
    uint32_t switch_cost; /* cycles of a change of contexts in a hardware context */
    bool waits_busily;    /* who waits for a lock or a barrier keeps its processor; else others run there */
    bool by_reference;    /* processors take turns at every reference; else at every block */
    uint64_t slack;       /* cycles by which one may be ahead of the next when its turn ends */
    bool first_touch;     /* a page's home is the node of the processor that touches it first; else pages go round */
    uint32_t jitter;      /* cycles by which a thread that begins, or has waited, may be late, by the seed */
    uint64_t seed;
};

/* The machine of that name: a file if it has a '/' or a '.', else a preset. Then the settings, each "path=value". What comes back has
 * passed config_check, and its fabric knows processors and line. Mistakes of a file are PEET_ERR_FORMAT, of `set` PEET_ERR_USAGE. */
int config_load(struct machine_config *ret, const char *name, const char *const *set, size_t sets,
                struct peet_err *err);

/* What is the same in every machine that says nothing else; the name is empty. */
void config_defaults(struct machine_config *ret);

/* Whether it makes sense as a whole; else an error that says what does not. */
int config_check(const struct machine_config *c, struct peet_err *err);

/* The presets, one after the other, and what they are; NULL at the end. Both live for ever. */
const char *config_preset(size_t i, const char **ret_summary);

#endif
