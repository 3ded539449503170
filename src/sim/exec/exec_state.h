/* SPDX-License-Identifier: MIT */
/* The inside of the machine with one processor: plan.c makes translated blocks of items, solo.c runs them, code.c makes machine code of those that are run
 * often; what is not easy, refer.c does one by one, and two.c for two levels. cache.c knows what is where, lines.c what was, tell.c what the watcher knows. */
#ifndef SIM_EXEC_EXEC_STATE_H
#define SIM_EXEC_EXEC_STATE_H

#include "base/arena.h"
#include "base/map.h"
#include "format/schema/loop.h"
#include "peet/trace.h"
#include "sim/exec/jit/code_memory.h"
#include "sim/exec/lines.h"
#include "sim/exec/exec_blocks.h"
#include "sim/exec/tblock.h"

enum {
    ITEM_CACHE_BITS = 14,
    ITEM_CACHE = 1 << ITEM_CACHE_BITS,
    MISS_BUCKET_BITS = 10,
    MISS_BUCKETS = 1 << MISS_BUCKET_BITS
};
#define EXEC_HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15) /* of hashes */
enum { WAY_HINTS = 4096 };
enum { TIME_BIN_REST = 1024 };
enum { SAMPLE_LOG_ENTRIES = 256 }; /* that are told at once */
enum { PATH_CACHE_BITS = 14, PATH_CACHE = 1 << PATH_CACHE_BITS };

/* Machine code, from its beginning (code.c). */
enum {
    JIT_RUNS = 16,             /* executions of an item that are worth it, */
    JIT_LOOP_REFERENCES = 256, /*   references of a loop that are worth as much as one, */
    JIT_PREVIEW = 64           /*   and iterations that are looked at if they are made first */
};
struct code_cache {
    struct code_memory memory; /* all zero: there can be no machine code */
    size_t used;               /* bytes of it */
    struct gen *gen;
    unsigned widest; /* words of an item that has code */
    size_t leave, tail, dispatch, chain, locate, group, hint_miss, first_use, interval, offset,
        second[2];              /* where that is done, */
    size_t enter[PATH_UNKNOWN]; /*   and by how a translated block is left */
};

/* References of library code, or of a lock, for one call, from one block, to the data of a cell: what the watcher does not know yet. */
struct libcall_misses {
    uint64_t call_site, version;
    uint64_t addr; /* of the data that the reference that is on its way is to */
    uint32_t thread, insn, path_counts;
    struct object_bounds data; /* as it was after so many changes of what is where */
    uint64_t references, writes, compute, misses, stall;
};

/* A split bus, on which one processor is alone: a line that it asks for comes at once, if all before is over, and what that pushes out goes while memory is on its way. So the last one of these is kept, with
 * its write-back, and the fabric is told when somebody overlaps with it; or it is only added up. */
struct lone_bus {
    bool has_last, has_back;
    uint8_t op;
    uint64_t last,
        idle; /* when it was issued, and when all is over (UINT64_MAX: it is another fabric, and all is told), */
    uint64_t line, back;     /*   of which lines; */
    uint64_t address, data;  /* cycles of a request, and of a line's data; */
    uint64_t reads, returns; /*   and of all that a line takes, and its write-back */
};

struct block_thread {
    uint64_t register_[PEET_REGISTERS];
    uint32_t node;
    struct tblock *last;
};

struct exec_blocks {
    /* What machine code uses most, near the beginning, where it is reached by short instructions: */
    uint64_t
        fast_entry; /* what `current` is, if a translated block for which that holds begins as it is; else NO_LINE */
    struct tblock *last;          /* that ran */
    struct path_thread *calls;    /* of the thread */
    const uint64_t *word_end;     /* while code runs, */
    uintptr_t word_last;          /*   before which any item that has code is whole, */
    uint64_t limit, until;        /*   the time and the number with which it stops */
    uint64_t fast_forward_count;  /* iterations that go on as this one while a line is missed, */
    uint64_t number;              /* of the next touch of a line: what stamps of the first cache are taken from; */
    uint64_t non_program_touches; /*   how much more it is than there were references */
    uint64_t bin_end, bin_fixed_misses;    /* of a window (below), */
    uint64_t bin_low;                      /*   and a number that is in it, as are the next TIME_BIN_REST */
    uint64_t fixed_write_backs;            /* of misses of one level */
    struct sample_entry *log_at, *log_end; /* of what a sample is to be told (below), */
    uint64_t log_new;                      /*   what a line is that none has seen: 0, or SAMPLE_MAYBE_COLD, */
    struct logged_sets logged;             /*   of which sets; */
    uint64_t *missed, missed_new;          /*   of others, misses by cell, and of lines that are new */
    struct epoch_shadow recent;
    uint64_t src[PEET_SOURCES + 8];

    struct machine_config config;
    const struct peet_trace *trace;
    struct block_observer observer;
    struct exec_clock time;
    uint64_t current;                   /* path, process and what is where: a number for each that was; */
    uint64_t base;                      /*   of that, all but the path */
    uint64_t version;                   /* changes of what is where so far, */
    uint32_t process, process_switches; /*   in that process; and how often it became another one */
    uint32_t node, thread;
    uint32_t shift, levels;
    uint64_t length;        /* of a line */
    struct l1_entry *first; /* the first cache */
    bool is_ideal;          /* the fabric keeps nobody waiting */
    bool has_second;        /* a second level, farther away than the first */
    bool fixed_miss_cost;   /*   and there is one level, and memory is farther away than that, */
    bool
        state_from_tags; /*   which is direct-mapped, and what can be written there is dirty: states need not be kept */
    uint8_t allows[PROTOCOL_STATES][2];     /* by state: whether it can be read so, and written */
    uint64_t perm_mask[PROTOCOL_STATES][2]; /*   what makes of its number one that is not seen so */
    bool is_readable;                       /* what can be written so can also be read */
    uint8_t
        silent[PROTOCOL_STATES]; /* by state: the one that a write makes of it without anything else; 0: that is more */
    uint8_t is_dirty[PROTOCOL_STATES];
    struct exec_level level[CONFIG_LEVELS];
    uint32_t way_hint
        [WAY_HINTS]; /* by a line's low bits: how many bytes in front of the entry, of several ways, where such a line was last */
    struct exec_lines lines;
    struct fabric fabric;
    struct lone_bus bus;
    struct memory_counts counts; /* of what was done one by one */
    uint32_t cell; /* 1 + that of the reference that is on its way; 0: it is a lock's, of which samples are not told */
    uint64_t touches; /* what stamps of the others are taken from: one reference may touch them twice */
    /* What the watcher does not know yet: misses that were alike, by hash, and those of a window, which ends before that reference. */
    struct miss_bucket bucket[MISS_BUCKETS];
    uint64_t bin_misses, bin_stall;
    uint8_t fill_state[2]; /* of a line that was missed, by whether it was written */
    uint64_t
        fixed_stall; /* how long what memos count waits beyond a hit: misses of one level, or lines of the second cache */
    bool read_fill_is_exclusive; /* what a miss has read can be written without anything else */
    bool memory_is_slower;       /* memory is farther away than the first cache */
    uint64_t second;             /* lines that the second cache had, */
    uint64_t fixed_misses[2][2]; /* misses of one level, by whether they wrote and whether the line was there before */
    /* samples */
    struct source_words *words; /* that are being used */
    uint64_t border;            /* the reference before which something else comes; 0: references are passed over, */
    uint64_t pass_left;         /*   so many */
    uint64_t mark;              /* references that were told to the words */
    struct sample_entry *log;   /* what is to be told; NULL: it is told at once */
    uint32_t missed_cells;      /* for which there is room */
    /* plans */
    struct arena arena;
    struct loop_plans plans;
    struct tb_item *by_name[ITEM_CACHE];
    struct map items;  /* struct tb_item *, by name */
    struct map blocks; /* struct tblock *, by block */
    struct tblock *tblocks;
    uint32_t tblock_count;
    struct map paths; /* struct tb_path *, by translated block and node */
    struct {
        uint64_t key; /* the translated block's number, and the node; 0: there is none */
        struct tb_path *path;
    } path_cache[PATH_CACHE];
    struct tb_path *all_paths;
    struct peet_loop_walk walk;
    struct block_thread *threads;
    uint32_t thread_count;
    struct code_cache code;
    struct libcall_misses libcall;
    struct tb_item no_item; /* whom by_name has where it knows nobody */
    struct exec_line empty; /* what is in a cache that is plain, and of which nobody takes samples, where nothing is */
    uint64_t *word;         /* where code has stopped */
};

/* How many there were. */
static inline uint64_t blocks_references(const struct exec_blocks *s)
{
    return s->number - s->non_program_touches;
}

/* So many touches were no references. */
static inline void blocks_count_non_program(struct exec_blocks *s, uint64_t touches)
{
    s->non_program_touches += touches;
    s->bin_low += touches;
}

/* 1 + where a line is in the first cache; 0: it is not there. */
static inline uint32_t line_in_l1(const struct exec_blocks *s, const struct exec_line *l, uint64_t line)
{
    uint32_t e = s->state_from_tags ? 1 + (uint32_t)(line & s->level[0].mask) : l->entry[0];

    return e && s->first[e - 1].info == l ? e : 0;
}
static inline uint32_t line_in_level(const struct exec_blocks *s, const struct exec_line *l, uint64_t line,
                                     unsigned level)
{
    return level ? l->entry[level] : line_in_l1(s, l, line);
}
/* It comes there. */
static inline void line_enters_l1(const struct exec_blocks *s, struct exec_line *l, uint32_t entry)
{
    if (!s->state_from_tags)
        l->entry[0] = entry + 1;
}

/* The state of a line in the first cache. */
static inline uint8_t l1_state(const struct exec_blocks *s, uint32_t entry)
{
    return s->state_from_tags ? s->fill_state[s->first[entry].tag[1] != NO_LINE] : s->level[0].state[entry];
}

/* The number of the last reference to a line. */
static inline uint64_t line_last_use(const struct exec_blocks *s, const struct exec_line *l, uint64_t line)
{
    uint32_t e = line_in_l1(s, l, line);

    return e ? s->first[e - 1].stamp : l->stamp;
}

/* ---- caches (cache.c) ---- */

/* A line in that state as it can be seen at an entry of the first cache. */
static inline void l1_set_tags(const struct exec_blocks *s, struct l1_entry *at, uint64_t line, unsigned state)
{
    at->tag[0] = line << s->shift | s->perm_mask[state][0];
    at->tag[1] = line << s->shift | s->perm_mask[state][1];
}
/* Whether it can be read there, or written. */
static inline bool l1_tag_matches(const struct exec_blocks *s, uint32_t entry, uint64_t line, bool is_write)
{
    return s->first[entry].tag[is_write] == line << s->shift;
}

int blocks_caches_init(struct exec_blocks *s, struct peet_err *err);
void blocks_caches_release(struct exec_blocks *s);
struct exec_outcome blocks_touch(struct exec_blocks *s, struct exec_line *l, uint64_t line, enum peet_kind kind,
                                 uint64_t now);
/* Where a line comes to in the first cache: into an entry that is empty, or in place of the one that was not used for the longest time. */
enum { STAMP_WAY_BITS = 6 }; /* with which ways are put behind stamps, so that both are compared at once */
uint32_t l1_victim(const struct exec_blocks *s, uint64_t line);
uint32_t exec_level_victim(const struct exec_level *l, uint64_t line); /* the same in a level behind it */
/* A line that is there, in a level behind the first, is touched. */
static inline void exec_level_touch(struct exec_blocks *s, struct exec_level *l, uint64_t line, uint32_t entry)
{
    uint64_t set = line & l->mask;

    if (!l->order) {
        l->stamp[entry] = ++s->touches;
        return;
    }
    uint64_t order = l->order[set], way = entry - set * l->ways, differs = order ^ way * LRU_ORDER_ONES;
    uint64_t same = (differs - LRU_ORDER_ONES) & ~differs & LRU_ORDER_ONES << 3;
    uint64_t here = same ^ (same - 1); /* bits up to the first that do not differ */
    l->order[set] ^= (order ^ (order << 4 | way)) & here;
}
/* How long the fabric takes for it. */
uint64_t lone_bus_transact_any(struct exec_blocks *s, uint64_t line, unsigned op, uint64_t now);
void lone_bus_end(struct exec_blocks *s); /* nothing overlaps with what was kept */
static inline uint64_t lone_bus_transact(struct exec_blocks *s, uint64_t line, unsigned op, uint64_t now)
{
    struct lone_bus *b = &s->bus;

    if (now >= b->idle && (op == BUS_READ || op == BUS_READ_OWN)) {
        lone_bus_end(s);
        b->has_last = true;
        b->op = (uint8_t)op;
        b->last = now;
        b->line = line;
        b->idle = now + b->reads;
        return b->reads;
    }
    if (b->has_last && now == b->last && op == BUS_WRITE_BACK && !b->has_back) {
        b->has_back = true;
        b->back = line;
        return b->returns;
    }
    return lone_bus_transact_any(s, line, op, now);
}
/* A line that is in the second cache alone comes into the first. */
void blocks_fill_from_l2(struct exec_blocks *s, struct exec_line *l, uint64_t line, uint64_t now);
/* Whether a line in that entry is written without anything else; it can be seen so then. */
bool blocks_silent_upgrade(struct exec_blocks *s, uint32_t entry, uint64_t line);
/* What comes of misses that were only counted. */
void blocks_flush_fixed_misses(struct exec_blocks *s);

/* In the first cache. */
static inline uint32_t exec_level_find(const struct exec_level *l, uint64_t line) /* UINT32_MAX: it is not there */
{
    uint32_t first = (uint32_t)(line & l->mask) * l->ways;

    for (uint32_t i = first; i < first + l->ways; i++)
        if (l->line[i] == line)
            return i;
    return UINT32_MAX;
}

/* ---- translated blocks (plan.c) ---- */

/* NULL: there is no such item, or no memory. */
struct tb_item *tb_item_find(struct exec_blocks *s, const struct peet_names *names, uint64_t name,
                             struct peet_err *err);
struct tblock *tblock_of(struct exec_blocks *s, const struct peet_block *b);
/* References that were always in one line are put into one group. */
void tblock_join_groups(struct exec_blocks *s, struct tblock *x);

/* The path on which the thread is. */
static inline void blocks_set_node(struct exec_blocks *s, uint32_t node)
{
    s->node = node;
    s->base = (s->version + s->process_switches) << 32;
    s->current = s->base | node;
}
/* The last block was left. */
static inline void blocks_set_fast_entry(struct exec_blocks *s)
{
    s->fast_entry = s->calls->turn == PATH_NEXT ? s->current : NO_LINE;
}

/* Perhaps other data lie there now. */
static inline void blocks_check_map_version(struct exec_blocks *s)
{
    if (s->observer.changes->count == s->version)
        return;
    s->version = s->observer.changes->count;
    blocks_set_node(s, s->node);
    if (s->fast_entry != NO_LINE)
        s->fast_entry = s->current;
}

/* ---- one by one (refer.c) ---- */

/* Whether a line that comes from memory can be used by all of a group. */
static inline bool fill_serves_group(const struct exec_blocks *s, const struct base_group *g,
                                     const struct tb_operand *first)
{
    return g->is_write == first->is_write || s->read_fill_is_exclusive;
}

/* The references of a group one after the other. */
void group_run(struct exec_blocks *s, struct tblock *x, struct base_group *g, uint64_t base);
/* The same for a simple group that stays in its objects and in one line, which is not seen where it was looked for, or was not used for a while. */
void group_run_hint_miss(struct exec_blocks *s, struct tblock *x, struct base_group *g, uint64_t base);
/* The same for one level that is direct-mapped, if nobody takes samples, or is told of them later: most often. */
void group_run_direct_mapped(struct exec_blocks *s, struct tblock *x, struct base_group *g, uint64_t base);
/* The same for two levels, if nobody takes samples (two.c). */
bool blocks_has_two_levels(const struct exec_blocks *s);
void group_run_two_levels(struct exec_blocks *s, struct tblock *x, struct base_group *g, uint64_t base);
/* A run of a block of whose references some vary in size, or do not happen. */
int tblock_run_varying(struct exec_blocks *s, struct tblock *x, const struct peet_block *b, struct peet_err *err);

/* Where a line was last in a first cache of several ways; it may be another one that is there now. */
static inline uint32_t way_hint_of(const struct exec_blocks *s, uint64_t line)
{
    return s->way_hint[line % WAY_HINTS] / (uint32_t)sizeof *s->first;
}
static inline void way_hint_set(struct exec_blocks *s, uint64_t line, uint32_t entry)
{
    s->way_hint[line % WAY_HINTS] = entry * (uint32_t)sizeof *s->first;
}

/* Where a line would be in the first cache; UINT32_MAX: it is not there. */
static inline __attribute__((always_inline)) uint32_t l1_lookup(struct exec_blocks *s, uint64_t line, bool is_write)
{
    if (s->level[0].ways == 1)
        return (uint32_t)(line & s->level[0].mask);
    uint32_t e = way_hint_of(s, line);
    if (!l1_tag_matches(s, e, line, is_write) && (e = exec_level_find(&s->level[0], line)) != UINT32_MAX)
        way_hint_set(s, line, e);
    return e;
}

/* Whether all references of a group are found at once in one line, which was used not long ago; then that is stamped. */
static inline __attribute__((always_inline)) bool group_hits(struct exec_blocks *s, const struct tblock *x,
                                                             const struct base_group *g, uint64_t base)
{
    uint64_t line = (base + g->first) >> s->shift;

    if (!base_in_bounds(x, &x->group[g->owner], base) || (base + g->last) >> s->shift != line)
        return false;
    uint32_t e = l1_lookup(s, line, g->is_write);
    if (e == UINT32_MAX || !l1_tag_matches(s, e, line, g->is_write) || s->first[e].stamp < s->recent.since)
        return false;
    s->number += g->operands;
    s->first[e].stamp = s->number - 1;
    return true;
}

/* ---- machine code (code.c) ---- */

void jit_init(struct exec_blocks *s);
void jit_release(struct exec_blocks *s);
/* Makes it for an item, if it can. */
void jit_compile(struct exec_blocks *s, struct tb_item *it);
/* Executes words from an item's, which has code, on; returns where it had to stop. That may be there. */
uint64_t *jit_run(struct exec_blocks *s, const struct tb_item *it, uint64_t *word, const uint64_t *end, uint64_t limit);
/* A translated block is to be run. */
void tblock_enter(struct exec_blocks *s, struct tblock *x);

/* ---- samples (sample.c) ---- */

void blocks_begin_words(struct exec_blocks *s, struct source_words *w);
void blocks_end_words(struct exec_blocks *s);
/* At the border: if there is nothing left to do before something else comes, that begins. */
void blocks_cross_border(struct exec_blocks *s);
static inline bool blocks_at_border(const struct exec_blocks *s)
{
    return __builtin_expect(blocks_references(s) >= s->border, 0) && (s->border || s->pass_left == 0);
}
static inline bool blocks_skips(const struct exec_blocks *s)
{
    return __builtin_expect(s->border == 0, 0);
}
/* So many references are passed over. */
void blocks_skip(struct exec_blocks *s, uint64_t references);
void blocks_skip_varying(struct exec_blocks *s, const struct peet_block *b);
/* How many iterations come before the border, of so many; at least one. */
uint64_t blocks_iterations_to_border(const struct exec_blocks *s, const struct tblock *x, uint64_t iterations);
/* Nobody knows any more what is in the caches. */
void blocks_invalidate_all(struct exec_blocks *s);
void blocks_begin_sample(struct exec_blocks *s); /* after that, and when the watcher knows */

#endif
