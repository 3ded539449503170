/* SPDX-License-Identifier: MIT */
/* The inside of the hierarchy, for hierarchy*.c, undo_log.c and program_counts.c; and the accesses that a core's private caches answer without a
 * transaction, each of which can be undone. docs/design/memory.md, "Undo". */
#ifndef SIM_MEMORY_CORE_CACHES_H
#define SIM_MEMORY_CORE_CACHES_H

#include <stddef.h>

#include "sim/memory/hierarchy.h"
#include "sim/memory/speculative.h"

/* State of an entry: that of the protocol, and one bit. TRACKED: another core lost the line by an invalidation, and writes are noted for it. */
enum { STATE_MASK = PROTOCOL_STATES - 1, TRACKED = PROTOCOL_STATES };

/* An entry of the undo log: a word before it was changed. */
struct undo_record {
    uint64_t word, old; /* address of the word + UNDO_… of what was counted when it changed; its value */
};
enum { UNDO_WORDS = 1536, UNDO_WORDS_PER_ACCESS = 4 }; /* of an access at most, but for masks of written bytes */

enum {
    UNDO_WORD,                             /* nothing was counted */
    UNDO_SILENT_UPGRADE,                   /* a silent store; + 1: a silent update */
    UNDO_L2_HIT = UNDO_SILENT_UPGRADE + 2, /* + kind - PEET_LOAD: a fill from the second level */
    UNDO_MRU = UNDO_L2_HIT + 4,            /* no word, but the MRU way of the set with that order */
    UNDO_MASK = 7
};

/* The private caches of a core. */
struct core_caches {
    unsigned number; /* of the core */
    struct l1_filter filter;
    struct cache level[CONFIG_LEVELS]; /* the private ones */
    struct cache tlb, instructions;    /* without entries: the machine has none */
    uint32_t
        hit_states[PEET_PREFETCH + 1]; /* a bit for each state in which an access of that kind has no side effect */
    const uint8_t *silent_next;        /* of hierarchy.silent_next: for the mode of the core */
    bool speculates;                   /* its accesses are speculative */
    bool
        is_marked; /* a line may be unsafe or expire: since the last bulk operation, the core has speculated, or lost a line to expiration */
    uint64_t last_fetch; /* number of a line of instructions; UINT64_MAX: none */
    struct memory_counts counts;
    uint32_t
        *l2_entry; /* by entry of the first level: entry of the second one that had its line then; NULL: not kept */
    uint64_t *mru; /* l1_filter.mru; NULL: there are no caches */
    uint64_t *tlb_page;  /* l1_filter.tlb_page; NULL: there is no TLB */
    uint16_t *filled_in; /* by set of the first level: number of the lookahead that filled a line last */
    struct undo_record undo[UNDO_WORDS];
};

/* Speculation, where cores may speculate (speculative.c). */
struct speculative_lines {
    enum bulk_event roll_back; /* BULK_ROLL_BACK or BULK_ROLL_BACK_WRITTEN */
    violation_hook *hook;
    void *self;        /* first argument of hook */
    uint64_t *dropped; /* lines that a bulk operation makes invalid; scratch */
    uint64_t *changed; /* sets of the first level with a line that it changes; scratch */
    size_t changes;    /* of these sets; a set may be listed several times */
    struct map
        undone; /* by line and core: lines that a roll-back made invalid, and that the core has not missed since */
    uint64_t *misses; /* by core: misses on such lines */
};

/* The caches of all cores, the shared levels, and what connects them. */
struct hierarchy {
    struct machine_config config;
    const struct protocol *protocol;
    unsigned cpus;                        /* cores */
    unsigned levels, private_levels;      /* of caches; of these, those that each core has */
    unsigned page_shift;                  /* log2 of the bytes of a page */
    bool has_directory;                   /* of the fabric: transactions name the sharers of a line */
    bool is_write_through_all;            /* all private levels are write-through: memory has every word */
    uint8_t silent_next[2][CACHE_STATES]; /* by mode (1: speculative), state: the one after a silent write; 0: none */
    struct core_caches *cpu;              /* by core */
    struct cache shared[CONFIG_LEVELS];   /* by level */
    struct fabric fabric;
    struct line_table line_table;
    struct map homes;                      /* uint32_t: 1 + node with the memory of a page, by page; first touch */
    bool remote_read_keeps_readable;       /* a snooped read leaves every readable state readable */
    uint32_t ignored_ops;                  /* a bit for each bus_op on which no snooping cache acts */
    snoop_hook *snoop_hook;                /* NULL: none */
    void *snoop_self;                      /* first argument of snoop_hook */
    struct program_counts *programs;       /* NULL: there is one program */
    uint32_t tag;                          /* of the access that is simulated */
    struct speculative_lines *speculative; /* NULL: no core can speculate */
    struct shadow_tags *shadow;            /* by core; NULL: hierarchy_keep_removals was not called */
};

/* Counts by program, if there are several. */
struct program_counts {
    uint32_t count;
    uint32_t *active;              /* by core: the program that it executes; 0 before it executes one */
    unsigned actor;                /* core of the access that is simulated */
    struct memory_counts *counts;  /* by program: up to the last change of program of each core */
    struct memory_counts *flushed; /* by core: its counts at its last change of program */
    struct map owner;              /* uint32_t, by line: 1 + the program for which a core missed the line last */
    uint64_t *private, *shared;    /* evictions from private and shared caches: [by * count + of] */
};

/* A line is filled for the core's program; a line is evicted for the program of the core whose access is simulated. */
void program_counts_fill(struct program_counts *p, unsigned cpu, uint64_t line);
void program_counts_evict(struct program_counts *p, uint64_t line, uint64_t *evictions);
void program_counts_release(struct program_counts *p); /* and frees */

/* The bytes of one line that an access touches. */
struct line_access {
    uint64_t line;       /* number of the line */
    uint64_t addr, size; /* machine's address of the first byte; bytes */
};

/* These bytes, relative to the line. */
static inline struct line_bytes line_access_bytes(const struct hierarchy *h, const struct line_access *part)
{
    return (struct line_bytes){ (uint32_t)part->addr & (h->config.level[0].line - 1), (uint32_t)part->size };
}

static inline struct core_caches *core_of_filter(struct l1_filter *f)
{
    return (struct core_caches *)(void *)((char *)f - offsetof(struct core_caches, filter));
}

void hierarchy_flush_core(struct hierarchy *h, unsigned cpu); /* hierarchy_flush_counts for one core */

/* Sets the states in which accesses of the core have no side effect, by its mode. */
void core_set_mode(struct hierarchy *h, struct core_caches *core, bool speculates);

/* ---- speculative.c ---- */

/* Makes all of a core's lines that its speculation has accessed invalid, and ends it. */
void speculative_undo(struct hierarchy *h, unsigned cpu);

/* Likewise, and calls the hook. */
void speculative_violate(struct hierarchy *h, unsigned cpu, enum violation why);

/* A core misses a line. */
void speculative_miss(struct hierarchy *h, unsigned cpu, uint64_t line);
void speculative_release(struct hierarchy *h);

/* Whether a line in that state was accessed speculatively; whether it is a copy that expires. */
static inline bool state_is_unsafe(const struct hierarchy *h, unsigned state)
{
    return h->protocol->flags[state & STATE_MASK] & STATE_UNSAFE;
}

static inline bool state_is_expiring(const struct hierarchy *h, unsigned state)
{
    return h->speculative && state & STATE_MASK && !state_is_unsafe(h, state)
           && h->protocol->bulk[BULK_ARRIVE][state & STATE_MASK] == PROTOCOL_ABSENT;
}

int core_init_filter(struct hierarchy *h, struct core_caches *core); /* after its caches were made; -1: no memory */
void core_release_filter(struct core_caches *core);

static inline void set_state(uint64_t *entry, unsigned state)
{
    *entry = (*entry & ~(uint64_t)(CACHE_STATES - 1)) | state;
}

/* Whether the first level has the line in a state without side effects; its set, and its entry or NULL. */
static inline bool core_find_reorder_hit(const struct core_caches *core, uint64_t line, enum peet_kind kind,
                                         uint64_t *ret_set, uint64_t **ret_entry)
{
    const struct cache *c = &core->level[0];
    uint64_t set = cache_set(c, line), *e = cache_find_in(c, set, line);

    *ret_set = set;
    *ret_entry = e;
    return e && core->filter.hit_states[kind] >> cache_state(*e) & 1;
}

/* An entry of the set, or its order, has changed. */
static inline void l1_filter_refresh(struct core_caches *core, uint64_t set)
{
    const struct cache *c = &core->level[0];

    core->filter.mru[set] = c->entry[set * c->ways + cache_recent(c, set)];
}

/* Makes an entry of the first level the MRU one. */
static inline void core_touch(struct core_caches *core, uint64_t set, uint64_t *entry)
{
    core->filter.mru[set] = *cache_touch_in(&core->level[0], set, entry);
}

static inline void undo_log_add(struct core_caches *core, uint64_t *word, unsigned counted)
{
    core->undo[core->filter.undo_length++] = (struct undo_record){ (uintptr_t)word | counted, *word };
}

/* The order of a set of the first level. */
static inline void undo_log_add_order(struct core_caches *core, uint64_t set)
{
    const struct cache *c = &core->level[0];

    undo_log_add(core, &c->order[set], UNDO_WORD);
    if (!c->is_ranked)
        core->undo[core->filter.undo_length++] =
            (struct undo_record){ (uintptr_t)&c->order[set] | UNDO_MRU, c->recent[set] };
}

/* Notes the written bytes for cores that have lost the line by an invalidation. False: the undo log is full, and nothing is done.
 * *ret_tracked: another write to the line can still change a mask. */
bool core_write_tracked(struct hierarchy *h, struct core_caches *core, const struct line_access *part, bool keep,
                        bool *ret_tracked);

/* A write that hits in the first level, in a state that it changes. keep: it is to be undoable. */
static inline enum local_hit core_write_hit(struct hierarchy *h, struct core_caches *core, uint64_t *e,
                                            const struct line_access *part, enum peet_kind kind, bool keep)
{
    struct cache *first = &core->level[0];
    unsigned state = cache_state(*e);
    unsigned next = kind == PEET_STORE || kind == PEET_UPDATE ? core->silent_next[state & STATE_MASK] : 0;
    bool is_tracked = false;

    if (!next || (state & TRACKED && !core_write_tracked(h, core, part, keep, &is_tracked)))
        return LOCAL_NONE;
    next |= is_tracked ? TRACKED : 0u;
    if (keep) {
        undo_log_add_order(core, cache_set(first, part->line));
        undo_log_add(core, e, UNDO_SILENT_UPGRADE + (unsigned)kind - PEET_STORE);
    }
    set_state(e, next);
    core_touch(core, cache_set(first, part->line), e);
    core->filter.silent_upgrades[kind]++;
    return LOCAL_SILENT_UPGRADE;
}

/* Fills a line into the first level from entry e of the second. Both levels are LRU, with numbers of sets that are powers of two. */
static inline __attribute__((always_inline)) enum local_hit core_fill_from_l2(struct core_caches *core, uint64_t line,
                                                                              uint64_t *e, enum peet_kind kind,
                                                                              bool keep)
{
    struct cache *first = &core->level[0], *second = &core->level[1];
    uint64_t set = line & first->mask, set2 = line & second->mask;

    if (!first->is_full[set])
        return LOCAL_NONE;
    unsigned state = cache_state(*e), way = cache_oldest(first, set);
    bool is_write = kind == PEET_STORE || kind == PEET_UPDATE;
    if (is_write ? !(state = core->silent_next[state]) : !(core->hit_states[PEET_LOAD] >> state & 1))
        return LOCAL_NONE;
    uint64_t at = set * first->ways + way, *slot = first->entry + at, old = *slot;
    uint64_t *home = second->entry + core->l2_entry[at];
    if ((*home ^ old) >> CACHE_STATE_BITS && !(home = cache_find(second, old >> CACHE_STATE_BITS)))
        return LOCAL_NONE;
    if (keep) {
        undo_log_add(core, &first->order[set], UNDO_WORD);
        undo_log_add(core, &second->order[set2], UNDO_WORD);
        undo_log_add(core, home, UNDO_WORD);
        undo_log_add(core, slot, UNDO_L2_HIT + (unsigned)kind - PEET_LOAD);
        core->filled_in[set] = core->filter.lookahead;
        signature_add(&core->filter, old >> CACHE_STATE_BITS, PEET_STORE); /* its state is in the undo log */
    }
    *home = old;
    *slot = line << CACHE_STATE_BITS | state;
    core->l2_entry[at] = (uint32_t)(e - second->entry);
    cache_set_tag(first, set, way, line);
    cache_rank_oldest(first, set);
    core->filter.mru[set] = *slot;
    cache_rank(second, set2, (unsigned)(e - (second->entry + set2 * second->ways)));
    core->filter.l2_hits[kind]++;
    return LOCAL_L2_HIT;
}

#endif
