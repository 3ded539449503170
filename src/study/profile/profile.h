/* SPDX-License-Identifier: MIT */
/* Which data, which code, and why: what a program waits for memory, by data object and by place in the code.
 *
 * A simulation (sim/engine/sim.h) is looked on at: every reference belongs to an instruction and to a data object, and what it waited beyond a hit in the
 * first cache is its stall (of instructions that are fetched, only how long they were waited for is known). Why a line was missing is known for lines that no private cache of the processor had: it never had it (cold); it was
 * pushed out although a cache of the same size that may keep any lines would have it (conflict), or would not either (capacity); another processor
 * wrote to what is wanted now (true sharing), or to its neighbours (false sharing). Who pushed a line out, or wrote to it, is kept for each line that is lost.
 *
 * Life: profile_new, profile_run once, then look at it and report; profile_free. */
#ifndef STUDY_PROFILE_PROFILE_H
#define STUDY_PROFILE_PROFILE_H

#include "map/call_path.h"
#include "sim/engine/sim.h"
#include "study/objects/objects.h"
#include "study/profile/members.h"
#include "study/table.h"
#include "study/symbols/symbols.h"

/* X(name, title): what stall is for. */
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

/* What an instruction did to an object. Places are the schema's instructions, and behind them calls: of library functions that move bytes, and
 * of those that take locks, come to barriers, and wait. What a lock refers to belongs to the object in which it lies. */
struct profile_cell {
    uint32_t place, object;
    uint64_t references, writes, misses; /* misses: lines that no private cache had; a reference may have several */
    uint64_t unknown; /* lines of references of which a sample does not know whether they were missed */
    uint64_t compute; /* cycles of hits in the first cache, and of library code that moves bytes */
    uint64_t cause[CAUSES],
        stall[CAUSES]; /* how often, and cycles; an upgrade, an update or a line in a farther cache is no miss */
};

/* Two that met: `of` missed what `by` had pushed out, or written to. */
struct profile_pair {
    uint32_t of, by; /* places; of evictions: objects; UINT32_MAX: nobody knows */
    uint32_t object, by_object;
    uint8_t cause; /* enum profile_cause */
    uint64_t misses, stall;
};

struct profile_leaf {     /* what was spent in a block on a path */
    uint32_t node, block; /* PROFILE_NO_BLOCK: by library code, before a thread has come to its first block */
    uint64_t compute, stall, misses;
    uint64_t wait[TIME_COUNT]; /* cycles, by enum time_kind: lock, barrier, other */
};

struct profile_wait {       /* what a call waited for */
    uint32_t place, object; /* object: in which it lies; UINT32_MAX: in none */
    uint32_t process;       /* its index in `paths` */
    uint8_t kind, as;       /* enum sim_object_kind, enum time_kind */
    uint64_t cycles;        /* for which a hardware context had nothing else to do */
};

#define PROFILE_NO_BLOCK UINT32_MAX

struct profile_window { /* of time, counted in references */
    uint64_t references, misses, stall;
};
enum { PROFILE_WINDOWS = 256 };

struct profile {
    struct machine_config machine;
    const struct peet_trace *trace;
    struct symbols *symbols;
    struct objects *objects;
    struct paths paths;
    struct sim_result result;
    struct profile_cell *cell;
    size_t cells;
    struct profile_pair *pair;
    size_t pairs;
    struct profile_leaf *leaf;
    size_t leaves;
    struct profile_wait *wait;
    size_t waits;
    struct profile_code {
        struct profile_block {
            uint64_t runs, fetch; /* how often it was executed, and how long it waited for its instructions */
        } * block;                /* by item */
        uint32_t items;
    } * code; /* what each process executed, by its index in `paths` */
    uint32_t codes;
    uint64_t *call; /* places behind the instructions: where calls return to */
    uint32_t insns, calls;
    struct profile_window window[PROFILE_WINDOWS];
    uint64_t window_length; /* references */
    struct members members; /* of objects whose types have members */
    uint64_t references, misses;
    uint64_t compute, stall, fetch; /* cycles; stall is for data, fetch for instructions */
    bool is_slow;                   /* for tests: each reference is looked at, also where less would do, */
    uint32_t often;                 /*   or else as in struct block_observer; */
    uint64_t stride;                /*   not 0: members of objects with names come again after so many bytes */
    struct sampled
        *sampled; /* (estimate_profile.h) not NULL: all numbers are estimates of the whole run, from samples */
};

/* The source must not give repeats; it must live as long as the profile. */
int profile_new(const struct machine_config *machine, struct source *source, struct profile **ret,
                struct peet_err *err);

/* Before profile_run, if the source is one of source_take_sample with that config. */
struct sample_config;
int profile_set_sample(struct profile *p, const struct sample_config *config, struct peet_err *err);

int profile_run(struct profile *p, const volatile uint32_t *stop, struct progress *progress, struct peet_err *err);
void profile_free(struct profile *p);

uint64_t profile_leaf_wait(const struct profile_leaf *l); /* cycles of all kinds */
uint64_t profile_place_addr(const struct profile *p, uint32_t place);

/* The index, in `paths`, of the process that has an object, and executes the instructions that refer to it as that. */
uint32_t profile_object_process(const struct profile *p, uint32_t object);
/* What its program is called, if there are several (process_label); else "". */
enum { PROFILE_PROGRAM = 96 };
const char *profile_process_name(const struct profile *p, uint32_t process, char ret[PROFILE_PROGRAM]);
/* What the code at an address is called in the process with that index (symbols_code). */
size_t profile_symbols(const struct profile *p, uint32_t process, uint64_t addr, struct symbols_frame *ret);
const char *profile_cause_title(enum profile_cause c);

/* The report: tables for all views. */
struct profile_wants {
    uint64_t top;      /* rows; 0: all */
    const char *focus; /* only what has to do with this object or function; or NULL */
    const char *sort;  /* "stall", "misses" or "references" */
    bool source;       /* also the source of what costs most, line by line */
    double allow;      /* of a comparison: what changes by no more than this part of itself is the same */
};
void profile_report(const struct profile *p, const struct profile_wants *w, struct result *ret);

/* What has changed from one to the other, by names of data and functions. Whether the second one is worse by more than is allowed. */
bool profile_diff(const struct profile *before, const struct profile *after, const struct profile_wants *w,
                  struct result *ret);

#endif
