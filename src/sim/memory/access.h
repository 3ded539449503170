/* SPDX-License-Identifier: MIT */
/* One access to one line, and what it did: two values. See docs/design/memory.md. */
#ifndef SIM_MEMORY_ACCESS_H
#define SIM_MEMORY_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "peet/record.h"
#include "sim/config/config.h"

/* X(name, title): why no private cache of a core had a line. Conflicts are part of `replaced` (access_outcome.is_conflict). */
/* clang-format off */
#define MISS_CAUSES(X) \
    X(cold, "cold") X(replaced, "replacement") X(true_sharing, "true sharing") X(false_sharing, "false sharing")
/* clang-format on */
enum miss_cause {
#define X(name, title) MISS_##name,
    MISS_CAUSES(X) MISS_KINDS
#undef X
};

/* An access to bytes of one line. A machine without caches has no lines, and takes any bytes as one access. */
struct memory_access {
    uint64_t addr, now; /* physical address of the first byte; cycle in which the access begins */
    uint32_t size;      /* bytes; 0: the line is accessed, but none of its bytes */
    uint32_t tag; /* observer's number, kept with each line that the access removes; 0: the previous one is kept */
    uint8_t kind; /* enum peet_kind: PEET_LOAD … PEET_PREFETCH */
    uint8_t core; /* number of the core */
};

/* Instead of the number of an instruction: library code that moves bytes, or a lock or barrier. */
#define SIM_NO_INSN UINT32_MAX

/* Instead of a level: no cache level between the core and memory supplied the line; another core's cache or memory did. */
enum { LEVEL_BEYOND = CONFIG_LEVELS };

/* What an access did. */
struct access_outcome {
    uint64_t latency;    /* cycles that the core waits; 0 for a prefetch */
    uint64_t contention; /* those of them in which the fabric was busy */
    uint32_t removed_by; /* of a miss: tag of the access that removed the line from this core; 0: none, or not kept */
    uint8_t level;       /* that supplied the line, private or shared; 0 is the innermost; LEVEL_BEYOND: none did; on a
                            machine without caches 0. `cause` says whether it is a miss */
    uint8_t cause;       /* enum miss_cause; MISS_KINDS: a private cache had the line, or the machine has no caches */
    bool is_conflict;    /* cause is MISS_replaced, and the shadow directory has the line */
    bool is_upgrade;     /* the core had the line and issued an invalidation, whether or not others had copies */
    bool is_update;      /* the word that was written was sent to other cores, which keep their copies */
    bool from_cache;     /* another core's cache supplied the line */
};

/* Cycles of an access beyond those of a hit in the first level, which are no stall. */
static inline uint64_t access_stall(const struct machine_config *c, unsigned kind, uint64_t latency)
{
    uint64_t hit = c->level[0].bytes && kind != PEET_PREFETCH ? c->level[0].latency : 0;

    return latency > hit ? latency - hit : 0;
}

#endif
