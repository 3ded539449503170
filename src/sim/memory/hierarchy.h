/* SPDX-License-Identifier: MIT */
/* The memory of a simulated machine: caches of each core, what keeps them coherent, the fabric, shared levels, and memory.
 * Model, one access step by step, causes of misses: docs/design/memory.md. */
#ifndef SIM_MEMORY_HIERARCHY_H
#define SIM_MEMORY_HIERARCHY_H

#include <assert.h>

#include "base/map.h"
#include "sim/config/config.h"
#include "sim/memory/line_info.h"
#include "sim/memory/shadow_tags.h"

/* Counts of a core. A reference counts once for each line that it touches. */
struct memory_counts {
    uint64_t reads, writes;       /* an update is one of each */
    uint64_t hits[CONFIG_LEVELS]; /* lines found in that level, and in none before it */
    uint64_t misses;              /* lines that no private level had */
    uint64_t causes[MISS_KINDS];  /* misses, by enum miss_cause */
    uint64_t from_caches;         /* misses that another core's cache supplied */
    uint64_t upgrades;            /* writes to a present line that issued an invalidation (access_outcome.is_upgrade) */
    uint64_t updates;             /* words sent to other cores, which keep their copies */
    uint64_t invalidations;       /* lines that this core lost to writes of others */
    uint64_t write_backs;         /* lines sent to memory or a shared level */
    uint64_t write_throughs;      /* words sent to memory or a shared level */
    uint64_t stall, waited;       /* cycles waited for memory, with those of hits; those in which the fabric was busy */
    uint64_t tlb_misses, tlb_stall; /* misses of the TLB; cycles waited for them, which are part of stall */
    uint64_t fetches, fetch_misses; /* lines of instructions; those that the instruction cache lacked */
    uint64_t fetch_stall;           /* cycles waited for lines of instructions */
};

struct hierarchy;

enum { SIGNATURE_ENTRIES = 2048 };

/* The L1 filter of a core: the MRU line of each set of the first level. It answers most accesses: hits that change nothing. Per kind of access
 * it has a bit for each state in which such a hit is possible; 0: the filter does not answer that kind. */
struct l1_filter {
    uint64_t *mru;                              /* by set: a copy of the entry that was used last */
    uint64_t mask;                              /* sets - 1 */
    uint32_t ways, shift, line;                 /* of the first level; shift: log2 of line, which is in bytes */
    uint32_t latency;                           /* of the first level: cycles */
    uint32_t hit_states[PEET_PREFETCH + 1];     /* by kind: a bit for each state; without a TLB */
    uint32_t tlb_hit_states[PEET_PREFETCH + 1]; /* likewise, if the page is the one that its set of the TLB used last */
    uint64_t *tlb_page, page_mask;              /* by set of the TLB: number of that page; 0 without TLB */
    uint32_t page_shift;                        /* log2 of the bytes of a page */
    uint64_t page_offset; /* of the next access: virtual (with its address space) minus physical address, modulo 2^64 */
    uint64_t hits[PEET_PREFETCH + 1];            /* pending: hits that changed nothing, and reorder hits, by kind */
    uint64_t reorder_hits;                       /* of these: hits that changed the LRU order */
    uint64_t silent_upgrades[PEET_PREFETCH + 1]; /* pending, by kind */
    uint64_t l2_hits[PEET_PREFETCH + 1];         /* pending: fills from the second level, by kind */
    uint64_t epoch;      /* changes of the private caches by something other than this core's accesses */
    uint16_t lookahead;  /* number of the current lookahead, from 1 */
    uint16_t *signature; /* by line number: the last lookahead that read such a line; then: the last that wrote one */
    size_t undo_length;  /* entries of the undo log */
    struct shadow_tags *shadow; /* the core's shadow directory; NULL: none (hierarchy_keep_removals) */
};

/* After a hit that the filter, or hierarchy_reorder_hit, has found: uses the line in the shadow directory, if there is one. */
static inline void l1_filter_use_shadow(struct l1_filter *f, uint64_t addr)
{
    if (f->shadow)
        shadow_tags_use(f->shadow, addr >> f->shift);
}

static inline bool l1_filter_matches(const struct l1_filter *f, uint32_t states, uint64_t addr, uint64_t size)
{
    uint64_t line = addr >> f->shift,
             state =
                 f->mru[line & f->mask] ^ line << CACHE_STATE_BITS; /* below CACHE_STATES if the MRU line is this one */

    return state < CACHE_STATES && states >> state & 1 && (addr & (f->line - 1)) + size <= f->line;
}

static inline bool l1_filter_has(const struct l1_filter *f, uint64_t addr, uint64_t size, unsigned kind)
{
    return l1_filter_matches(f, f->hit_states[kind], addr, size);
}

/* Counts the access and returns true if it is a hit that changes nothing; otherwise does nothing. Only where there is no TLB. */
static inline bool l1_filter_hit(struct l1_filter *f, uint64_t addr, uint64_t size, unsigned kind)
{
    bool is_found = l1_filter_has(f, addr, size, kind);

    f->hits[kind] += is_found;
    return is_found;
}

/* l1_filter_hit for machines with or without a TLB; the page must be the one that its set of the TLB used last. */
static inline bool l1_filter_hit_tlb(struct l1_filter *f, uint64_t addr, uint64_t size, unsigned kind)
{
    uint64_t page = (addr + f->page_offset) >> f->page_shift;

    if (!l1_filter_matches(f, f->tlb_hit_states[kind], addr, size) || f->tlb_page[page & f->page_mask] != page)
        return false;
    f->hits[kind]++;
    return true;
}

int hierarchy_new(const struct machine_config *config, struct hierarchy **ret, struct peet_err *err);
void hierarchy_free(struct hierarchy *h);

struct l1_filter *hierarchy_filter(struct hierarchy *h, unsigned cpu);

/* Does an access that changes only the LRU order of its set, and that of the TLB, and counts it. False: the access needs more, and nothing is done. */
bool hierarchy_reorder_hit(struct hierarchy *h, unsigned cpu, uint64_t addr, uint64_t size, enum peet_kind kind);

/* Pre-snoop hook: called before a transaction of another core changes a line in a core's private caches. is_read: the core can read the line
 * afterwards. The hook may roll back a lookahead of that core. */
typedef void snoop_hook(void *self, unsigned cpu, uint64_t line, bool is_read);
void hierarchy_set_snoop_hook(struct hierarchy *h, snoop_hook *hook, void *self);

/* From now on, which is before the first access: outcomes of misses have the tag of the access that removed the line, and is_conflict. */
void hierarchy_keep_removals(struct hierarchy *h);

/* ---- lookahead (undo_log.c) ---- */

/* An access that the private caches of a core answer without a transaction, so that it can be undone. */
enum local_hit {
    LOCAL_NONE,           /* the access needs a transaction, or cannot be undone: nothing is done */
    LOCAL_REORDER_HIT,    /* in the first level; only the LRU order of its set changes */
    LOCAL_SILENT_UPGRADE, /* a write in the first level that changes the state of its line */
    LOCAL_L2_HIT,         /* the second level has the line */
};
bool hierarchy_can_undo(const struct hierarchy *h);
void undo_log_begin(struct hierarchy *h, unsigned cpu);
enum local_hit undo_log_access(struct hierarchy *h, struct l1_filter *f, uint64_t addr, uint64_t size,
                               enum peet_kind kind);
static inline void signature_add(struct l1_filter *f, uint64_t line, unsigned kind)
{
    static_assert((PEET_STORE & PEET_UPDATE & 2) && !((PEET_LOAD | PEET_PREFETCH) & 2),
                  "a bit of the kind means a write");
    f->signature[line % SIGNATURE_ENTRIES + (kind & 2) * (SIGNATURE_ENTRIES / 2)] = f->lookahead;
}

/* Whether the current lookahead depends on a line that another core is about to change; is_read: the line can be read afterwards. */
bool signature_has(const struct hierarchy *h, unsigned cpu, uint64_t line, bool is_read);
/* Restores what was changed since the undo log had `length` entries. */
void undo_log_roll_back(struct l1_filter *f, size_t length);

/* Whether the first level has the line. */
bool hierarchy_l1_has(const struct hierarchy *h, unsigned cpu, uint64_t line);

/* Whether the first level is LRU, so that a set keeps a line until as many others were used as it has ways. */
bool hierarchy_l1_is_lru(const struct hierarchy *h);

/* An access to one line, or any bytes if there are no caches. l1_filter_hit and hierarchy_reorder_hit are its fast paths, for hits. */
struct access_outcome hierarchy_access(struct hierarchy *h, const struct memory_access *a);
/* As hierarchy_access, for the frequent caller: a copy of *ret right after its single bytes were written would wait for them. */
void hierarchy_access_into(struct hierarchy *h, const struct memory_access *a, struct access_outcome *ret);

/* Fetches the instructions in [addr, addr + size) at cycle `now`; returns the cycles that the core waits. */
uint64_t hierarchy_fetch(struct hierarchy *h, unsigned cpu, uint64_t addr, uint64_t size, uint64_t now);

/* Counts lines of instructions that are in the instruction cache. */
void hierarchy_add_fetches(struct hierarchy *h, unsigned cpu, uint64_t lines);

/* Adds pending hits of the filters to the counts, which are complete then. */
void hierarchy_flush_counts(struct hierarchy *h);
const struct memory_counts *hierarchy_counts(const struct hierarchy *h, unsigned cpu);
const struct fabric_use *hierarchy_fabric(const struct hierarchy *h);

/* ---- several programs (program_counts.c) ---- */

/* From now on, each of that number of programs has counts. A negative result is an error. */
int hierarchy_set_programs(struct hierarchy *h, uint32_t programs, struct peet_err *err);
/* A core executes that program from now on. */
void hierarchy_set_program(struct hierarchy *h, unsigned cpu, uint32_t program);
/* After hierarchy_flush_counts: sum over all cores, while they executed a program. */
const struct memory_counts *hierarchy_program_counts(struct hierarchy *h, uint32_t program);
/* Lines of program `of` that accesses of program `by` evicted: from all private caches of a core; from the last shared level. */
uint64_t hierarchy_private_evictions(const struct hierarchy *h, uint32_t by, uint32_t of);
uint64_t hierarchy_shared_evictions(const struct hierarchy *h, uint32_t by, uint32_t of);

/* For tests: the state of a line in a core. */
unsigned hierarchy_state(struct hierarchy *h, unsigned cpu, uint64_t addr);

#endif
