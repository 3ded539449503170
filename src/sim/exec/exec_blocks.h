/* SPDX-License-Identifier: MIT */
/* One processor, fast, and under somebody's eyes: what a profile needs of each reference, at a few instructions for most of them.
 *
 * It takes the words of a producer as they are, not records: a block, or one iteration of a loop, is a translated block, whose references fall into groups, each at
 * fixed distances from one base. While the line of a group is in the first cache and its base stays inside the same data objects, it is
 * counted, and nothing else; what is executed often does that in machine code of its own. All that is more is done reference by reference, as the machine with several
 * processors would do it (memory.h), with the same results.
 *
 * For machines with one processor of one hardware context whose caches are private, write back, bring what is written, and replace the line that was not used
 * for the longest time; without TLB and without a cache for instructions. */
#ifndef SIM_EXEC_EXEC_BLOCKS_H
#define SIM_EXEC_EXEC_BLOCKS_H

#include "base/change_log.h"
#include "format/schema/schema.h"
#include "map/source/source.h"
#include "map/call_path.h"
#include "sim/memory/hierarchy.h"
#include "sim/exec/sample_log.h"

struct exec_blocks;

/* Data that a reference is to, for all addresses from start to before end. */
struct object_bounds {
    uint64_t start, end;
    uint64_t origin, stride; /* where it begins, and after how many bytes members come again; 0: it has none */
    uint32_t cell;
};

/* Accesses to lines that the first level did not answer, and that were alike. */
struct miss_report {
    uint32_t cell;                 /* index of their access counts; tags (access.h) are 1 + such an index */
    uint32_t path_counts;          /* index of their path counts; not set in reports to the observer */
    struct access_outcome outcome; /* of each of them; latency and contention are not set */
    uint64_t offset;               /* bytes from the start of an element; UINT64_MAX: the data have no members */
    uint64_t count, stall;         /* accesses; cycles that all of them waited beyond a hit in the first level */
};

/* Who looks on. Cells and leaves are numbers of its own: what an instruction does to an object; a block on a call path. */
struct block_observer {
    void *context;
    const struct change_log *changes; /* of what is where: at events, and when a cell is asked for */
    /* What a reference by an instruction (SIM_NO_INSN: by library code, for the call that stands at operand) is to. */
    void (*data)(void *context, uint32_t thread, uint32_t insn, uint64_t call_site, uint64_t addr,
                 struct object_bounds *ret);
    /* So many references of a cell, and of these, writes; what is told here is everything but misses. */
    void (*refer)(void *context, uint32_t cell, uint64_t references, uint64_t writes, uint64_t compute);
    void (*miss)(void *context, const struct miss_report *m);
    /* So many misses, and how long they waited, since it was called last, in the window of time that it told then. Returns the number of the reference with
     * which the window ends that this one is in. */
    uint64_t (*window)(void *context, uint64_t number, uint64_t misses, uint64_t stall);
    struct paths *paths;         /* on which threads are; their nodes are those of leaves */
    const struct source *source; /* of whose threads some may be of other processes */
    /* An event, before anything comes of it. */
    void (*event)(void *context, uint32_t thread, const struct peet_event *e);
    uint32_t (*path_counts)(void *context, uint32_t node, uint32_t block);
    /* So often a leaf's block was executed, in so many cycles, if all is found at once; and its misses, and how long they waited. UINT32_MAX: a thread has not come to
     * its first block. Cycles may also be taken back, modulo 2^64. */
    void (*run)(void *context, uint32_t path_counts, uint64_t runs, uint64_t cycles, uint64_t misses, uint64_t stall);
    /* Of samples, else NULL: caches are empty where a window begins. Whether it is known that a line missed that none has; if it is not, it is for the
     * watcher to count. is_new: no cache ever had it; number: of the reference, nearly. */
    bool (*knows)(void *context, struct exec_blocks *s, uint32_t cell, uint32_t path_counts, uint64_t line, bool is_new,
                  uint64_t number);
    /* A line of the first cache is used, the first time in a while, which is so long. */
    void (*use)(void *context, struct exec_blocks *s, uint64_t line, uint64_t number, uint64_t wait);
    /* The same, if there is one level that is direct-mapped: uses, and misses that are known since the line is known that had to go. In their order, and before
     * anything else is asked; these are its own to change. */
    void (*see)(void *context, struct sample_entry *log, size_t n);
    /* Of sets that are not told: so many misses by cell, and of lines that no sample has seen. Where one ends. */
    void (*missed)(void *context, const uint64_t *misses, uint32_t cells, uint64_t maybe_cold);
    struct logged_sets (*choose)(
        void *context); /* where one begins: the sets that are told in it; all of the first one's */
    uint32_t often;     /* executions after which an item becomes machine code; 0: as many as are sane */
};

/* The number of the last reference to a line that was used once; while the watcher is told of a use, of the one before. */
uint64_t blocks_last_use(struct exec_blocks *s, uint64_t line);

bool blocks_can_run(const struct machine_config *c);
int blocks_new(const struct machine_config *c, const struct peet_trace *t, const struct block_observer *w,
               struct exec_blocks **ret, struct peet_err *err);
void blocks_free(struct exec_blocks *s);

/* Executes words of a thread, or passes over them as they say, until they are used up or the limit is reached (0), or up to an event, which is told (1). */
int blocks_run(struct exec_blocks *s, uint32_t thread, struct source_words *w, uint64_t limit, struct peet_event *ret,
               struct peet_err *err);

void blocks_event(struct exec_blocks *s, uint32_t thread, const struct peet_event *e); /* the watcher is told */

/* Behind an event: of the words' references, library code may have made some, and another window may begin. */
void blocks_take_used(struct exec_blocks *s, uint32_t thread, struct source_words *w);

/* A reference of library code for the call at `operand`, at the time of blocks_clock; `issue`: cycles of its instructions. Returns how long it took. */
uint64_t blocks_libcall_access(struct exec_blocks *s, uint32_t thread, const struct peet_record *r, uint64_t call_site,
                               uint64_t issue);
/* The same of a lock or barrier, to a word of the object at the address `data`. Watchers of samples are not told. */
uint64_t blocks_sync_access(struct exec_blocks *s, uint32_t thread, const struct peet_record *r, uint64_t data,
                            uint64_t call_site, uint64_t issue);

/* The leaf of the block that a thread executed last; UINT32_MAX: it has not come to its first one. */
uint32_t blocks_path_counts(struct exec_blocks *s, uint32_t thread);

/* Tells the watcher all that was only counted so far. */
void blocks_flush(struct exec_blocks *s);

/* Time goes on here, and what it was spent for. */
struct exec_clock {
    uint64_t clock, compute, stall, bus, instructions, references; /* compute, stall, bus: as enum time_kind */
};
struct exec_clock *blocks_clock(struct exec_blocks *s);
void blocks_counts(const struct exec_blocks *s, struct memory_counts *ret);
const struct fabric_use *blocks_fabric(const struct exec_blocks *s);

#endif
