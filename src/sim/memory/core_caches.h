/* SPDX-License-Identifier: MIT */
/* References that a processor's own caches answer, without anybody else: the inside of memory.h that memory.c and near.c share.
 *
 * Most of these are easy (memory.h). The others: smooth ones change but the order of a set of the first level; silent writes change the state
 * of a line there; and lines of the second level come into the first, and what goes for them is behind it still. All can be taken
 * back: what they change is kept. */
#ifndef SIM_MEMORY_CORE_CACHES_H
#define SIM_MEMORY_CORE_CACHES_H

#include <stddef.h>

#include "sim/memory/hierarchy.h"

/* An entry's state is the protocol's, and one bit: others have lost the line and not come back, so that writes must be seen. */
enum { STATE_MASK = PROTOCOL_STATES - 1, TRACKED = PROTOCOL_STATES };

/* A word before it was changed: the order of a set, an entry, or a word of the mask of bytes of which others are told. Its address has room for what was counted when it
 * was changed. */
struct undo_record {
    uint64_t where, old;
};
enum { UNDO_WORDS = 1536, UNDO_WORDS_PER_ACCESS = 4 }; /* by a reference, but for bytes of which others are told */

/* What was counted: nothing; a silent store or update; or a reference of each kind that was behind, when the entry of the first level got another line. Or
 * no word is kept, but which way was used last in a set whose order does not say it. */
enum {
    UNDO_WORD,
    UNDO_SILENT_UPGRADE,
    UNDO_L2_HIT = UNDO_SILENT_UPGRADE + 2,
    UNDO_MRU = UNDO_L2_HIT + 4,
    UNDO_MASK = 7
};

struct core_caches {
    unsigned number;
    struct l1_filter front;
    struct cache level[CONFIG_LEVELS]; /* those that are private */
    struct cache tlb, instructions;
    uint32_t found[PEET_PREFETCH + 1]; /* as `fast` of the front would be if there were no TLB, whatever is replaced */
    uint64_t last_fetch;               /* number of the line */
    struct memory_counts counts;
    uint32_t *behind; /* by entry of the first level: where in the second one its line was when it came; or NULL */
    uint64_t *top;    /* of the front, if there are caches, */
    uint64_t *page;   /*   and a TLB */
    uint16_t *filled; /* by set of the first level: the lead that brought a line last */
    struct undo_record kept[UNDO_WORDS];
};

struct hierarchy {
    struct machine_config config;
    const struct protocol *protocol;
    unsigned cpus, levels, private_levels;
    unsigned page_shift;
    bool has_directory;
    bool goes_through; /* all private levels let writes through: memory has them all, and nothing is written back */
    uint8_t silent[CACHE_STATES]; /* the state behind a write that nobody sees; 0: others have to see it */
    struct core_caches *cpu;
    struct cache shared[CONFIG_LEVELS]; /* by level */
    struct fabric fabric;
    struct line_table line_table;
    struct map homes;    /* uint32_t: 1 + node, by page */
    bool reads_stay;     /* a core that can read a line still can after another core's read */
    uint32_t ignored;    /* a bit for each bus_op on which no snooping cache acts */
    snoop_hook *watcher; /* or NULL */
    void *watching;
    struct program_counts *programs; /* NULL: there is only one */
    uint32_t tag;                    /* of the access that is simulated */
    struct shadow_tags *shadow;      /* by core; NULL: hierarchy_keep_removals was not called */
};

/* What several programs do to each other. */
struct program_counts {
    uint32_t count;
    uint32_t *active;              /* by processor: the program that it executes; 0 before it executes one */
    unsigned actor;                /* the processor whose reference is on its way */
    struct memory_counts *counts;  /* by program: up to the processors' last changes of programs */
    struct memory_counts *settled; /* by processor: its counts at its last change */
    struct map owner;              /* uint32_t: 1 + the program for which a processor missed a line last, by line */
    uint64_t *private, *shared;    /* evictions, by evicting program * count + victim */
};

/* A line comes for a processor's program; one goes for the program of the processor whose reference is on its way. */
void program_counts_fill(struct program_counts *p, unsigned cpu, uint64_t line);
void program_counts_evict(struct program_counts *p, uint64_t line, uint64_t *evictions);
void program_counts_release(struct program_counts *p); /* and frees */

/* The bytes of one line that an access touches. */
struct line_access {
    uint64_t line, addr, size;
};

/* The bytes of its line that it touches. */
static inline struct line_bytes line_access_bytes(const struct hierarchy *h, const struct line_access *part)
{
    return (struct line_bytes){ (uint32_t)part->addr & (h->config.level[0].line - 1), (uint32_t)part->size };
}

static inline struct core_caches *core_of_filter(struct l1_filter *f)
{
    return (struct core_caches *)(void *)((char *)f - offsetof(struct core_caches, front));
}

void hierarchy_flush_core(struct hierarchy *h, unsigned cpu); /* the same as memory_settle, for one processor */

int core_init_filter(struct hierarchy *h, struct core_caches *core); /* when its caches are there; -1: no memory */
void core_release_filter(struct core_caches *core);

static inline void set_state(uint64_t *entry, unsigned state)
{
    *entry = (*entry & ~(uint64_t)(CACHE_STATES - 1)) | state;
}

/* Whether the first level has the line in a state in which nothing else happens; its set, and its entry or NULL. */
static inline bool core_find_reorder_hit(const struct core_caches *core, uint64_t line, enum peet_kind kind,
                                         uint64_t *ret_set, uint64_t **ret_entry)
{
    const struct cache *c = &core->level[0];
    uint64_t set = cache_set(c, line), *e = cache_find_in(c, set, line);

    *ret_set = set;
    *ret_entry = e;
    return e && core->front.fast[kind] >> cache_state(*e) & 1;
}

/* Something of the set has changed. */
static inline void l1_filter_refresh(struct core_caches *core, uint64_t set)
{
    const struct cache *c = &core->level[0];

    core->front.top[set] = c->entry[set * c->ways + cache_recent(c, set)];
}

/* An entry of the first level is used. */
static inline void core_touch(struct core_caches *core, uint64_t set, uint64_t *entry)
{
    core->front.top[set] = *cache_touch_in(&core->level[0], set, entry);
}

static inline void undo_log_add(struct core_caches *core, uint64_t *word, unsigned counted)
{
    core->kept[core->front.kept++] = (struct undo_record){ (uintptr_t)word | counted, *word };
}

/* The order of a set of the first level. */
static inline void undo_log_add_order(struct core_caches *core, uint64_t set)
{
    const struct cache *c = &core->level[0];

    undo_log_add(core, &c->order[set], UNDO_WORD);
    if (!c->is_ranked)
        core->kept[core->front.kept++] = (struct undo_record){ (uintptr_t)&c->order[set] | UNDO_MRU, c->recent[set] };
}

/* Others who have lost the line will see which bytes were written, when they come back; false: it could not be taken back. *ret_watched:
 * whether there is still something to tell them. */
bool core_write_tracked(struct hierarchy *h, struct core_caches *core, const struct line_access *part, bool keep,
                        bool *ret_watched);

/* A write to a line of the first level that is not easy. */
static inline enum local_hit core_write_hit(struct hierarchy *h, struct core_caches *core, uint64_t *e,
                                            const struct line_access *part, enum peet_kind kind, bool keep)
{
    struct cache *first = &core->level[0];
    unsigned state = cache_state(*e);
    unsigned next = kind == PEET_STORE || kind == PEET_UPDATE ? h->silent[state & STATE_MASK] : 0;
    bool watched = false;

    if (!next || (state & TRACKED && !core_write_tracked(h, core, part, keep, &watched)))
        return LOCAL_NONE;
    next |= watched ? TRACKED : 0u;
    if (keep) {
        undo_log_add_order(core, cache_set(first, part->line));
        undo_log_add(core, e, UNDO_SILENT_UPGRADE + (unsigned)kind - PEET_STORE);
    }
    set_state(e, next);
    core_touch(core, cache_set(first, part->line), e);
    core->front.silent[kind]++;
    return LOCAL_SILENT_UPGRADE;
}

/* A line that is not in the first level, from the second one, where its entry is given. Both are ranked, and have numbers of sets that are
 * powers of two. */
static inline __attribute__((always_inline)) enum local_hit core_fill_from_l2(const struct hierarchy *h,
                                                                              struct core_caches *core, uint64_t line,
                                                                              uint64_t *e, enum peet_kind kind,
                                                                              bool keep)
{
    struct cache *first = &core->level[0], *second = &core->level[1];
    uint64_t set = line & first->mask, behind = line & second->mask;

    if (!first->is_full[set])
        return LOCAL_NONE;
    unsigned state = cache_state(*e), way = cache_oldest(first, set);
    bool is_write = kind == PEET_STORE || kind == PEET_UPDATE;
    if (is_write ? !(state = h->silent[state]) : !(core->found[PEET_LOAD] >> state & 1))
        return LOCAL_NONE;
    uint64_t at = set * first->ways + way, *slot = first->entry + at, old = *slot;
    uint64_t *home = second->entry + core->behind[at];
    if ((*home ^ old) >> CACHE_STATE_BITS && !(home = cache_find(second, old >> CACHE_STATE_BITS)))
        return LOCAL_NONE;
    if (keep) {
        undo_log_add(core, &first->order[set], UNDO_WORD);
        undo_log_add(core, &second->order[behind], UNDO_WORD);
        undo_log_add(core, home, UNDO_WORD);
        undo_log_add(core, slot, UNDO_L2_HIT + (unsigned)kind - PEET_LOAD);
        core->filled[set] = core->front.lead;
        signature_add(&core->front, old >> CACHE_STATE_BITS, PEET_STORE); /* its state is kept, to be taken back */
    }
    *home = old;
    *slot = line << CACHE_STATE_BITS | state;
    core->behind[at] = (uint32_t)(e - second->entry);
    cache_set_tag(first, set, way, line);
    cache_rank_oldest(first, set);
    core->front.top[set] = *slot;
    cache_rank(second, behind, (unsigned)(e - (second->entry + behind * second->ways)));
    core->front.behind[kind]++;
    return LOCAL_L2_HIT;
}

#endif
