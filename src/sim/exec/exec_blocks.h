/* SPDX-License-Identifier: MIT */
/* The block executor: executes event words of threads on a machine with one core, and reports to an observer what a profile needs, as sums. The
 * results equal those of the record executor. docs/design/blocks.md. */
#ifndef SIM_EXEC_EXEC_BLOCKS_H
#define SIM_EXEC_EXEC_BLOCKS_H

#include "base/change_log.h"
#include "format/schema/schema.h"
#include "map/source/source.h"
#include "map/call_path.h"
#include "sim/memory/hierarchy.h"
#include "sim/exec/sample_log.h"

struct exec_blocks;

/* The data object of the addresses [start, end). */
struct object_bounds {
    uint64_t start, end;     /* addresses */
    uint64_t origin, stride; /* address of the object; bytes after which its members repeat, 0: it has no members */
    uint32_t access;         /* index of the access counts of the instruction and this object */
    bool on_path;            /* valid while the thread is at the node of its call path */
};

/* Accesses to lines that the first level did not answer, and that were alike. */
struct miss_report {
    uint32_t access;               /* index of their access counts; removal tags (access.h) are 1 + such an index */
    uint32_t path_counts;          /* index of their path counts; not set in reports to the observer */
    struct access_outcome outcome; /* of each of them; latency and contention are not set */
    uint64_t offset;               /* bytes from the start of an element; UINT64_MAX: the data have no members */
    uint64_t count, stall;         /* accesses; cycles that all of them waited beyond a hit in the first level */
};

/* The observer. Indices of access counts and of path counts are the observer's. `self` is passed to each function. */
struct block_observer {
    void *self;
    const struct change_log *changes; /* of the address-to-object map; it changes at events, and in `object` */
    /* The object at an address to which an instruction refers; SIM_NO_INSN: library code, for the call at call_site. */
    void (*object)(void *self, uint32_t thread, uint32_t insn, uint64_t call_site, uint64_t addr,
                   struct object_bounds *ret);
    /* References, those of them that write, and compute cycles, to be added to access counts. */
    void (*references)(void *self, uint32_t access, uint64_t references, uint64_t writes, uint64_t compute);
    void (*miss)(void *self, const struct miss_report *m);
    /* Misses and their stall cycles since the last call, in the time bin of that call. `number`: the current reference. Returns the number of the
     * first reference after its time bin. */
    uint64_t (*time_bin)(void *self, uint64_t number, uint64_t misses, uint64_t stall);
    struct paths *paths;         /* call paths of threads; path counts refer to their nodes */
    const struct source *source; /* of the threads; they may belong to several processes */
    void (*event)(void *self, uint32_t thread, const struct peet_event *e); /* before it is executed */
    uint32_t (*path_counts)(void *self, uint32_t node, uint32_t block);     /* index, for a block on a path */
    /* Executions of the block, cycles without misses, misses and stall cycles, to be added to path counts; UINT32_MAX: a thread has not entered its
     * first block. Cycles may be negative, modulo 2^64. */
    void (*runs)(void *self, uint32_t path_counts, uint64_t runs, uint64_t cycles, uint64_t misses, uint64_t stall);
    /* The following are for samples, otherwise NULL. Caches are empty where a window of a sample begins. */
    /* Called for an access to a line that no level has. Returns whether it is certainly a miss; if not, the observer counts the access as unknown.
     * is_new: no level ever had the line; number: of the reference, approximately. */
    bool (*classify)(void *self, struct exec_blocks *s, uint32_t access, uint32_t path_counts, uint64_t line,
                     bool is_new, uint64_t number);
    /* A line of the first level is used, for the first time within `wait` references. */
    void (*use)(void *self, struct exec_blocks *s, uint64_t line, uint64_t number, uint64_t wait);
    /* For one direct-mapped level: uses, and misses in sets that have a known line, in order; the observer may change the entries. Called before
     * any other function. */
    void (*log)(void *self, struct sample_entry *log, size_t n);
    /* At the end of a window: misses in sets that are not logged, by index of access counts, and how many were of lines that no sample has seen. */
    void (*misses)(void *self, const uint64_t *misses, uint32_t accesses, uint64_t maybe_cold);
    struct logged_sets (*choose_sets)(
        void *self);        /* at the start of a window: sets to log; the first window logs all */
    uint32_t jit_threshold; /* executions after which an item becomes machine code; 0: the default */
};

/* Number of the last reference to a line that was used before; within observer.use, of the one before the current. */
uint64_t blocks_last_use(struct exec_blocks *s, uint64_t line);

bool blocks_can_run(const struct machine_config *c);
int blocks_new(const struct machine_config *c, const struct peet_trace *t, const struct block_observer *observer,
               struct exec_blocks **ret, struct peet_err *err);
void blocks_free(struct exec_blocks *s);

/* Executes words of a thread, or skips them between windows. Returns 0 when none is left or the time is `limit`, 1 at an event (*ret), or an
 * error. */
int blocks_run(struct exec_blocks *s, uint32_t thread, struct source_words *w, uint64_t limit, struct peet_event *ret,
               struct peet_err *err);

void blocks_event(struct exec_blocks *s, uint32_t thread, const struct peet_event *e); /* the observer is notified */

/* After an event: library code may have made references, and a window may have begun or ended. */
void blocks_take_used(struct exec_blocks *s, uint32_t thread, struct source_words *w);

/* A reference of library code for the call at call_site, at the time of blocks_clock; issue: cycles of its instructions. Returns its cycles. */
uint64_t blocks_libcall_access(struct exec_blocks *s, uint32_t thread, const struct peet_record *r, uint64_t call_site,
                               uint64_t issue);
/* A reference of a lock or barrier to a word of the object at the address `data`. It is not part of samples. */
uint64_t blocks_sync_access(struct exec_blocks *s, uint32_t thread, const struct peet_record *r, uint64_t data,
                            uint64_t call_site, uint64_t issue);

/* Index of the path counts of the block that a thread executed last; UINT32_MAX: it has executed none. */
uint32_t blocks_path_counts(struct exec_blocks *s, uint32_t thread);

/* Reports all pending counts to the observer. */
void blocks_flush(struct exec_blocks *s);

/* Time, and what it was spent for. compute, stall and instructions are without what is pending (blocks_flush). */
struct exec_clock {
    uint64_t clock;               /* cycle that execution has reached */
    uint64_t compute, stall, bus; /* cycles, as in enum time_kind */
    uint64_t instructions;        /* executed so far */
    uint64_t references;          /* of the program, up to the end of the last call of this interface */
};
struct exec_clock *blocks_clock(struct exec_blocks *s);
void blocks_counts(const struct exec_blocks *s, struct memory_counts *ret);
const struct fabric_use *blocks_fabric(const struct exec_blocks *s);

#endif
