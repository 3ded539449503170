/* SPDX-License-Identifier: MIT */
/* References that a processor's own caches answer, without anybody else: the inside of memory.h that memory.c and near.c share.
 *
 * Most of these are easy (memory.h). The others: smooth ones change but the order of a set of the first level; silent writes change the state
 * of a line there; and lines of the second level come into the first, and what goes for them is behind it still. All can be taken
 * back: what they change is kept. */
#ifndef SIM_MEMORY_CORE_LOCAL_H
#define SIM_MEMORY_CORE_LOCAL_H

#include <stddef.h>

#include "sim/memory/memory.h"

/* An entry's state is the protocol's, and one bit: others have lost the line and not come back, so that writes must be seen. */
enum { STATE_MASK = PROTOCOL_STATES - 1, WATCHED = PROTOCOL_STATES };

/* A word before it was changed: the order of a set, an entry, or a word of the mask of bytes of which others are told. Its address has room for what was counted when it
 * was changed. */
struct kept {
    uint64_t where, old;
};
enum { KEPT = 1536, KEPT_BY_ONE = 4 }; /* by a reference, but for bytes of which others are told */

/* What was counted: nothing; a silent store or update; or a reference of each kind that was behind, when the entry of the first level got another line. Or
 * no word is kept, but which way was used last in a set whose order does not say it. */
enum {
    COUNTED_NOTHING,
    COUNTED_SILENT,
    COUNTED_BEHIND = COUNTED_SILENT + 2,
    COUNTED_RECENT = COUNTED_BEHIND + 4,
    COUNTED_MASK = 7
};

struct processor {
    unsigned number;
    struct memory_front front;
    struct cache level[CONFIG_LEVELS]; /* those that are private */
    struct cache tlb, instructions;
    uint32_t found[PEET_PREFETCH + 1]; /* as `fast` of the front would be if there were no TLB, whatever is replaced */
    uint64_t last_fetch;               /* number of the line */
    struct memory_counts counts;
    uint32_t *behind; /* by entry of the first level: where in the second one its line was when it came; or NULL */
    uint64_t *top;    /* of the front, if there are caches, */
    uint64_t *page;   /*   and a TLB */
    uint16_t *filled; /* by set of the first level: the lead that brought a line last */
    struct kept kept[KEPT];
};

struct memory {
    struct machine_config config;
    const struct protocol *protocol;
    unsigned cpus, levels, private_levels;
    unsigned page_shift;
    bool has_directory;
    bool goes_through; /* all private levels let writes through: memory has them all, and nothing is written back */
    uint8_t silent[CACHE_STATES]; /* the state behind a write that nobody sees; 0: others have to see it */
    struct processor *cpu;
    struct cache shared[CONFIG_LEVELS]; /* by level */
    struct fabric fabric;
    struct histories histories;
    struct map homes;        /* uint32_t: 1 + node, by page */
    bool reads_stay;         /* who can read a line still can when another one reads it, too */
    memory_watcher *watcher; /* or NULL */
    void *watching;
    struct memory_programs *programs;                                         /* NULL: there is only one */
    void (*loser)(void *context, unsigned cpu, uint64_t line, enum lost how); /* or NULL */
    void *losing;
};

/* What several programs do to each other. */
struct memory_programs {
    uint32_t count;
    uint32_t *active;              /* by processor: the program that it executes; 0 before it executes one */
    unsigned actor;                /* the processor whose reference is on its way */
    struct memory_counts *counts;  /* by program: up to the processors' last changes of programs */
    struct memory_counts *settled; /* by processor: its counts at its last change */
    struct map owner;              /* uint32_t: 1 + the program for which a processor missed a line last, by line */
    uint64_t *private, *shared;    /* evictions, by evicting program * count + victim */
};

/* A line comes for a processor's program; one goes for the program of the processor whose reference is on its way. */
void programs_bring(struct memory_programs *p, unsigned cpu, uint64_t line);
void programs_evict(struct memory_programs *p, uint64_t line, uint64_t *evictions);
void programs_release(struct memory_programs *p); /* and frees */

/* What a reference wants of a line. */
struct part {
    uint64_t line, addr, size;
};

/* The bytes of its line that it touches. */
static inline struct line_bytes bytes_of(const struct memory *m, const struct part *part)
{
    return (struct line_bytes){ (uint32_t)part->addr & (m->config.level[0].line - 1), (uint32_t)part->size };
}

static inline struct processor *processor_of(struct memory_front *f)
{
    return (struct processor *)(void *)((char *)f - offsetof(struct processor, front));
}

void memory_settle_one(struct memory *m, unsigned cpu); /* the same as memory_settle, for one processor */

int near_init(struct memory *m, struct processor *p); /* when its caches are there; -1: no memory */
void near_release(struct processor *p);

static inline void set_state(uint64_t *entry, unsigned state)
{
    *entry = (*entry & ~(uint64_t)(CACHE_STATES - 1)) | state;
}

/* Whether the first level has the line in a state in which nothing else happens; its set, and its entry or NULL. */
static inline bool near_find_smooth(const struct processor *p, uint64_t line, enum peet_kind kind, uint64_t *ret_set,
                                    uint64_t **ret_entry)
{
    const struct cache *c = &p->level[0];
    uint64_t set = cache_set(c, line), *e = cache_find_in(c, set, line);

    *ret_set = set;
    *ret_entry = e;
    return e && p->front.fast[kind] >> cache_state(*e) & 1;
}

/* Something of the set has changed. */
static inline void near_refresh(struct processor *p, uint64_t set)
{
    const struct cache *c = &p->level[0];

    p->front.top[set] = c->entry[set * c->ways + cache_recent(c, set)];
}

/* An entry of the first level is used. */
static inline void near_touch(struct processor *p, uint64_t set, uint64_t *entry)
{
    p->front.top[set] = *cache_touch_in(&p->level[0], set, entry);
}

static inline void near_keep(struct processor *p, uint64_t *word, unsigned counted)
{
    p->kept[p->front.kept++] = (struct kept){ (uintptr_t)word | counted, *word };
}

/* The order of a set of the first level. */
static inline void near_keep_order(struct processor *p, uint64_t set)
{
    const struct cache *c = &p->level[0];

    near_keep(p, &c->order[set], COUNTED_NOTHING);
    if (!c->is_ranked)
        p->kept[p->front.kept++] = (struct kept){ (uintptr_t)&c->order[set] | COUNTED_RECENT, c->recent[set] };
}

/* Others who have lost the line will see which bytes were written, when they come back; false: it could not be taken back. *ret_watched:
 * whether there is still something to tell them. */
bool near_tell(struct memory *m, struct processor *p, const struct part *part, bool keep, bool *ret_watched);

/* A write to a line of the first level that is not easy. */
static inline enum near near_write(struct memory *m, struct processor *p, uint64_t *e, const struct part *part,
                                   enum peet_kind kind, bool keep)
{
    struct cache *first = &p->level[0];
    unsigned state = cache_state(*e);
    unsigned next = kind == PEET_STORE || kind == PEET_UPDATE ? m->silent[state & STATE_MASK] : 0;
    bool watched = false;

    if (!next || (state & WATCHED && !near_tell(m, p, part, keep, &watched)))
        return NEAR_NOT;
    next |= watched ? WATCHED : 0u;
    if (keep) {
        near_keep_order(p, cache_set(first, part->line));
        near_keep(p, e, COUNTED_SILENT + (unsigned)kind - PEET_STORE);
    }
    set_state(e, next);
    near_touch(p, cache_set(first, part->line), e);
    p->front.silent[kind]++;
    return NEAR_SILENT;
}

/* A line that is not in the first level, from the second one, where its entry is given. Both are ranked, and have numbers of sets that are
 * powers of two. */
static inline __attribute__((always_inline)) enum near near_bring(const struct memory *m, struct processor *p,
                                                                  uint64_t line, uint64_t *e, enum peet_kind kind,
                                                                  bool keep)
{
    struct cache *first = &p->level[0], *second = &p->level[1];
    uint64_t set = line & first->mask, behind = line & second->mask;

    if (!first->is_full[set])
        return NEAR_NOT;
    unsigned state = cache_state(*e), way = cache_oldest(first, set);
    if ((kind == PEET_STORE || kind == PEET_UPDATE) && !(state = m->silent[state]))
        return NEAR_NOT;
    uint64_t at = set * first->ways + way, *slot = first->entry + at, old = *slot;
    uint64_t *home = second->entry + p->behind[at];
    if ((*home ^ old) >> CACHE_STATE_BITS && !(home = cache_find(second, old >> CACHE_STATE_BITS)))
        return NEAR_NOT;
    if (keep) {
        near_keep(p, &first->order[set], COUNTED_NOTHING);
        near_keep(p, &second->order[behind], COUNTED_NOTHING);
        near_keep(p, home, COUNTED_NOTHING);
        near_keep(p, slot, COUNTED_BEHIND + (unsigned)kind - PEET_LOAD);
        p->filled[set] = p->front.lead;
        memory_mark(&p->front, old >> CACHE_STATE_BITS, PEET_STORE); /* its state is kept, to be taken back */
    }
    *home = old;
    *slot = line << CACHE_STATE_BITS | state;
    p->behind[at] = (uint32_t)(e - second->entry);
    cache_set_tag(first, set, way, line);
    cache_rank_oldest(first, set);
    p->front.top[set] = *slot;
    cache_rank(second, behind, (unsigned)(e - (second->entry + behind * second->ways)));
    p->front.behind[kind]++;
    return NEAR_BEHIND;
}

#endif
