/* SPDX-License-Identifier: MIT */
/* A profile: cycles that a program waits for memory, by data object, by place in the code, and by cause. See docs/design/profile.md.
 *
 * Every reference of a simulation (sim/engine/sim.h) belongs to an instruction and to a data object. Its stall is the time beyond a hit in the
 * first-level cache. A miss is a line that no private cache of the core had. Its cause: the core never had the line (cold); it was evicted, and a
 * fully associative LRU cache of equal size would still hold it (conflict), or would not (capacity); another core wrote the bytes that are
 * referred to (true sharing), or other bytes of the line (false sharing).
 *
 * A profile is made by a profiler (profiler.h), and does not change afterwards. */
#ifndef STUDY_PROFILE_PROFILE_H
#define STUDY_PROFILE_PROFILE_H

#include "map/call_path.h"
#include "sim/engine/sim.h"
#include "study/objects/objects.h"
#include "study/profile/member_costs.h"
#include "study/table.h"
#include "study/symbols/symbols.h"

/* X(name, title): why a reference waits. farther: a private level after the first had the line, or only the TLB lacked its page. upgrade, update: the
 * line was there, and others had to give it up or to take the word. uncached: the machine has no caches. */
/* clang-format off */
#define PROFILE_CAUSES(X) \
    X(cold, "cold") X(capacity, "capacity") X(conflict, "conflict") X(true_sharing, "true sharing") \
    X(false_sharing, "false sharing") X(farther, "in a farther cache") X(upgrade, "upgrade") X(update, "update") \
    X(uncached, "no cache") \
    X(unknown, "unknown")
/* clang-format on */
enum profile_cause {
#define X(name, title) CAUSE_##name,
    PROFILE_CAUSES(X) CAUSES
#undef X
};

/* A place is the number of an instruction of the schema, or insns + the number of a call: of library code that moves bytes, takes locks, or waits. */

/* Counts of one place that refers to one data object. References to a lock belong to the object that contains it. */
struct access_counts {
    uint32_t place, object;
    uint64_t references, writes; /* writes: those of the references that write */
    uint64_t misses;             /* lines missed: no private cache had them; a reference may have several */
    uint64_t unknown;            /* lines of references whose outcome a sample does not determine */
    uint64_t compute;            /* cycles of first-level hits, and of library code that moves bytes */
    uint64_t cause[CAUSES];      /* line accesses that waited, or missed, by cause; not all are misses */
    uint64_t stall[CAUSES];      /* cycles, by cause */
};

/* Misses of one place and object (the victim) on lines that another place (the aggressor) evicted or wrote. */
struct interference_pair {
    uint32_t of, by;            /* places of victim and aggressor; `by` is UINT32_MAX: unknown */
    uint32_t object, by_object; /* their data objects; `by_object` is UINT32_MAX: unknown */
    uint8_t cause;              /* enum profile_cause */
    uint64_t misses, stall;     /* lines missed; cycles */
};

/* Counts of one block on one call path. */
struct path_counts {
    uint32_t node;             /* of the calling context tree, struct paths */
    uint32_t block;            /* item; PROFILE_NO_BLOCK: library code, before the first block of a thread */
    uint64_t compute, stall;   /* cycles; compute: includes the wait for instructions; stall: waited for data */
    uint64_t misses;           /* lines missed */
    uint64_t wait[TIME_COUNT]; /* cycles, by enum time_kind: lock, barrier, other */
};

/* Time that a call waits for other threads. */
struct profile_wait {
    uint32_t place;   /* of the call */
    uint32_t object;  /* data object that contains the lock or barrier; UINT32_MAX: none */
    uint32_t process; /* index in `paths` */
    uint8_t kind, as; /* enum sync_object_kind, enum time_kind */
    uint64_t cycles;  /* in which a hardware thread had no other thread to run */
};

#define PROFILE_NO_BLOCK UINT32_MAX

/* Counts of an interval of the run, of profile.over_time.length references. */
struct time_bin {
    uint64_t references, misses, stall; /* misses: lines missed; stall: cycles */
};
enum { TIME_BINS = 256 };

/* Counts of a block. */
struct block_counts {
    uint64_t runs, fetch; /* executions; cycles waited for instructions */
};

/* What a process executed. */
struct process_code {
    struct block_counts *block; /* by item */
    uint32_t items;
};

/* The trace, and for a sampled profile the source, must outlive it. */
struct profile {
    struct machine_config machine; /* that was simulated */
    const struct peet_trace *trace;
    struct symbols *symbols;
    struct objects *objects;
    struct paths paths; /* call paths of by_path */
    struct sim_result result;
    struct access_counts *access;
    size_t accesses;
    struct interference_pair *pair;
    size_t pairs;
    struct path_counts *by_path;
    size_t by_paths;
    struct profile_wait *wait;
    size_t waits;
    struct process_code *code; /* by index of the process in `paths` */
    uint32_t codes;
    struct {
        uint64_t *call; /* return addresses of calls; the place of call i is insns + i */
        uint32_t insns, calls;
    } places;
    struct {
        struct time_bin bin[TIME_BINS];
        uint64_t length; /* of a bin, in references */
    } over_time;
    struct member_costs members;    /* of objects whose types have members */
    uint64_t references, misses;    /* misses: lines missed */
    uint64_t compute, stall, fetch; /* cycles; stall: waited for data; fetch: waited for instructions */
    struct sampled *sampled;        /* NULL: not sampled; otherwise all numbers are estimates of the whole run */
};

void profile_free(struct profile *p);

uint64_t path_counts_wait(const struct path_counts *l); /* cycles of all kinds */
uint64_t profile_place_addr(const struct profile *p, uint32_t place);

/* The index in `paths` of the process that an object belongs to. */
uint32_t profile_object_process(const struct profile *p, uint32_t object);
/* Writes the name of its program (process_label) if there are several processes, otherwise "". */
enum { PROFILE_PROGRAM = 96 };
const char *profile_process_name(const struct profile *p, uint32_t process, char ret[PROFILE_PROGRAM]);
/* The frames of a code address in the process with that index (symbols_code). */
size_t profile_symbols(const struct profile *p, uint32_t process, uint64_t addr, struct symbols_frame *ret);
const char *profile_cause_title(enum profile_cause c);

/* What of a profile is shown. */
struct profile_wants {
    uint64_t top;      /* rows of a table at most; 0: all */
    const char *focus; /* only rows about this object or function; NULL: all */
    const char *sort;  /* "stall", "misses" or "references"; NULL: stall */
    bool source;       /* also the source lines of the functions with most stall */
    double allow;      /* of a comparison: changes up to this fraction count as none */
};
/* Adds the tables of a profile to a result. */
void profile_report(const struct profile *p, const struct profile_wants *w, struct result *ret);

/* Adds tables of what changed between two profiles, by names of data and functions. Returns whether the second one is worse by more than is allowed. */
bool profile_diff(const struct profile *before, const struct profile *after, const struct profile_wants *w,
                  struct result *ret);

#endif
