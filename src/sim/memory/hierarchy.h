/* SPDX-License-Identifier: MIT */
/* The memory of a simulated machine: every processor's caches, what keeps them coherent, what connects them, and memory behind.
 *
 * Model. References are taken one line at a time, in the order in which they are asked for; each is over before the next one
 * begins, as far as states go: there are no transient states. Time only says how long the processor has to wait; all transactions of a
 * reference are issued when it begins, but for a second one behind the first. All levels have lines of one length.
 *
 * Private levels. A line has one coherence state per processor: if several of its private levels have the line, the innermost has the
 * valid one. They fill together; a hit touches only the level that has it, and a miss costs no lookups. What one of them pushes out: a level
 * behind it that has the line takes the state; else a dirty line goes into the next level, and a clean one is forgotten. A line that several
 * give up at once leaves once. A dirty line that leaves the last one is written back, which occupies the fabric but keeps nobody
 * waiting. Writes go through to memory if all private levels let them; nothing is written back then. A store that misses a first level that
 * does not allocate brings no line: it takes it from all others, in every protocol and in no time, and who had it dirty writes it back; an
 * update always brings its line.
 *
 * Shared levels see what goes between processors and memory. What an inclusive one pushes out it takes from all levels before it; that, and
 * what shared levels push out, does not occupy the fabric. A line that memory takes on its way to another cache is no write-back; of
 * several caches that supply, the highest processor's does. Words that go to memory touch no shared level.
 *
 * Nobody waits for a prefetch, which counts as a read. A TLB's misses are part of the stall. A machine may have no caches at all: then each
 * reference takes as long as memory, and nothing else is counted.
 *
 * Why a line was missing is told for each miss: cold (this processor never had it), replaced (it was pushed out of its last private
 * level), or invalidated; and then whether the bytes that are wanted now were written by others since (true sharing) or not (false
 * sharing), as Dubois and others define it, for lines of any length. */
#ifndef SIM_MEMORY_HIERARCHY_H
#define SIM_MEMORY_HIERARCHY_H

#include <assert.h>

#include "base/map.h"
#include "sim/config/config.h"
#include "sim/memory/line_info.h"
#include "sim/memory/shadow_tags.h"

/* What a processor has seen. References are counted per line that they touch. */
struct memory_counts {
    uint64_t reads, writes;       /* a reference that reads and writes is one of each */
    uint64_t hits[CONFIG_LEVELS]; /* found in that level, and not before it */
    uint64_t misses;              /* not in a private level */
    uint64_t causes[MISS_KINDS];  /*   and why */
    uint64_t from_caches;         /*   another processor's cache had it */
    uint64_t upgrades;       /* writes that found a line of which others may have copies, which they then gave up */
    uint64_t updates;        /* words that were sent to others, which keep their copies */
    uint64_t invalidations;  /* lines that were taken away from here */
    uint64_t write_backs;    /* lines that went from here to memory or a shared level */
    uint64_t write_throughs; /* words that did */
    uint64_t stall, waited;  /* cycles that it waited for memory; those of them that the fabric was busy */
    uint64_t tlb_misses, tlb_stall;
    uint64_t fetches, fetch_misses, fetch_stall; /* of lines of instructions */
};

struct hierarchy;

/* What is found at once: where its set of the first cache was used last, in a state in which nothing else happens. Most references are of
 * this kind, so that this is all that is done for them. */
enum { SIGNATURE_ENTRIES = 2048 };
struct l1_filter {
    uint64_t *top; /* by set of the first cache: the entry that was used last, as it is there */
    uint64_t mask;
    uint32_t ways, shift, line, latency;
    uint32_t fast[PEET_PREFETCH + 1]; /* by kind, a bit for each state: it changes nothing */
    uint32_t calm[PEET_PREFETCH + 1]; /* the same, if its page is the one that its set of the TLB has used last: */
    uint64_t *page, page_mask;        /*   by set, number of the page; without TLB, 0 */
    uint32_t page_shift;
    uint64_t
        page_offset; /* of what the next reference is to: what the TLB translates (with its address space) is so much farther up than the
                             machine's address, modulo 2^64; 0 where the machine sees the addresses that the TLB does */
    uint64_t easy[PEET_PREFETCH + 1]; /* so many, by kind; also smooth ones, */
    uint64_t smooth;                  /*   which are so many */
    uint64_t silent[PEET_PREFETCH + 1], behind[PEET_PREFETCH + 1];
    uint64_t changes;      /* so often something but its references has changed what is in the private caches */
    uint16_t lead, *marks; /* number of the lead; by lines' numbers: of the last one that read, or wrote, such a line */
    size_t kept;           /* words that can be taken back */
    struct shadow_tags *shadow; /* the core's shadow directory; NULL: none (hierarchy_keep_removals) */
};

/* After a hit that the filter, or hierarchy_reorder_hit, has found: the line is used in the shadow directory, if there is one. */
static inline void l1_filter_use_shadow(struct l1_filter *f, uint64_t addr)
{
    if (f->shadow)
        shadow_tags_use(f->shadow, addr >> f->shift);
}

static inline bool l1_filter_matches(const struct l1_filter *f, uint32_t states, uint64_t addr, uint64_t size)
{
    uint64_t line = addr >> f->shift, state = f->top[line & f->mask] ^ line << CACHE_STATE_BITS; /* if it is the line */

    return state < CACHE_STATES && states >> state & 1 && (addr & (f->line - 1)) + size <= f->line;
}

static inline bool l1_filter_has(const struct l1_filter *f, uint64_t addr, uint64_t size, unsigned kind)
{
    return l1_filter_matches(f, f->fast[kind], addr, size);
}

/* If it is, it is counted. */
static inline bool l1_filter_hit(struct l1_filter *f, uint64_t addr, uint64_t size, unsigned kind)
{
    bool is_found = l1_filter_has(f, addr, size, kind);

    f->easy[kind] += is_found;
    return is_found;
}

/* The same where there may be a TLB. */
static inline bool l1_filter_hit_tlb(struct l1_filter *f, uint64_t addr, uint64_t size, unsigned kind)
{
    uint64_t page = (addr + f->page_offset) >> f->page_shift;

    if (!l1_filter_matches(f, f->calm[kind], addr, size) || f->page[page & f->page_mask] != page)
        return false;
    f->easy[kind]++;
    return true;
}

int hierarchy_new(const struct machine_config *config, struct hierarchy **ret, struct peet_err *err);
void hierarchy_free(struct hierarchy *h);

struct l1_filter *hierarchy_filter(struct hierarchy *h, unsigned cpu);

/* Does a reference to one line that the first cache has, if nothing but the order of its set changes, and that of the TLB; false: it is something else, and nothing was done. */
bool hierarchy_reorder_hit(struct hierarchy *h, unsigned cpu, uint64_t addr, uint64_t size, enum peet_kind kind);

/* Is called whenever a line in a processor's private caches is about to be changed by what another one does; `reads`: it can still be
 * read as before. It may ask for easy and smooth references of that processor. */
typedef void snoop_hook(void *context, unsigned cpu, uint64_t line, bool reads);
void hierarchy_set_snoop_hook(struct hierarchy *h, snoop_hook *watcher, void *context);

/* From now on, which is before the first access: outcomes of misses have the tag of the access that removed the line, and tell conflicts. */
void hierarchy_keep_removals(struct hierarchy *h);

/* References before their time: from the beginning of a lead on, the processor's references that nobody else sees. Those that are
 * easy are to be marked; and they, and smooth ones, to be counted. */
enum local_hit {
    LOCAL_NONE,           /* others would see it, or it could not be taken back: nothing has happened */
    LOCAL_REORDER_HIT,    /* elsewhere in its set of the first cache: it changes but the order there */
    LOCAL_SILENT_UPGRADE, /* a write there that changes the state of its line */
    LOCAL_L2_HIT,         /* in the second cache */
};
bool hierarchy_can_undo(const struct hierarchy *h);
void undo_log_begin(struct hierarchy *h, unsigned cpu);
enum local_hit undo_log_access(struct hierarchy *h, struct l1_filter *f, uint64_t addr, uint64_t size,
                               enum peet_kind kind);
static inline void signature_add(struct l1_filter *f, uint64_t line, unsigned kind)
{
    static_assert((PEET_STORE & PEET_UPDATE & 2) && !((PEET_LOAD | PEET_PREFETCH) & 2), "a bit tells who writes");
    f->marks[line % SIGNATURE_ENTRIES + (kind & 2) * (SIGNATURE_ENTRIES / 2)] = f->lead;
}

/* Whether a change of that line, which others are about to make, matters to what was done, also if it can still be read. Then that has to be
 * taken back first, up to so many words. */
bool signature_has(const struct hierarchy *h, unsigned cpu, uint64_t line, bool reads);
void undo_log_roll_back(struct l1_filter *f, size_t kept);

/* Whether the first cache has the line. */
bool hierarchy_l1_has(const struct hierarchy *h, unsigned cpu, uint64_t line);

/* Whether what was used last stays there the longest: lines that were used since, as many as there are ways or fewer, leave it there. */
bool hierarchy_l1_is_lru(const struct hierarchy *h);

/* An access to one line, or any bytes if there are no caches. l1_filter_hit and hierarchy_reorder_hit are its fast paths, for hits. */
struct access_outcome hierarchy_access(struct hierarchy *h, const struct memory_access *a);

/* Instructions from addr on. */
uint64_t hierarchy_fetch(struct hierarchy *h, unsigned cpu, uint64_t addr, uint64_t size, uint64_t now);

/* So many more lines of instructions that are where they were. */
void hierarchy_add_fetches(struct hierarchy *h, unsigned cpu, uint64_t lines);

/* Counts are whole when easy references have been added to them. */
void hierarchy_flush_counts(struct hierarchy *h);
const struct memory_counts *hierarchy_counts(const struct hierarchy *h, unsigned cpu);
const struct fabric_use *hierarchy_fabric(const struct hierarchy *h);

/* ---- several programs (program_counts.c) ---- */

/* From now on, what each of so many programs sees is known apart. -1: an error. */
int hierarchy_set_programs(struct hierarchy *h, uint32_t programs, struct peet_err *err);
/* Whose references, and instructions, those of a processor are from now on. */
void hierarchy_set_program(struct hierarchy *h, unsigned cpu, uint32_t program);
/* When counts are whole: what processors have counted while they executed a program. */
const struct memory_counts *hierarchy_program_counts(struct hierarchy *h, uint32_t program);
/* How many lines of the second program went out for one of the first: out of all caches of a processor, and out of the last shared level. */
uint64_t hierarchy_private_evictions(const struct hierarchy *h, uint32_t by, uint32_t of);
uint64_t hierarchy_shared_evictions(const struct hierarchy *h, uint32_t by, uint32_t of);

/* For tests: the state of a line in a processor's eyes. */
unsigned hierarchy_state(struct hierarchy *h, unsigned cpu, uint64_t addr);

#endif
