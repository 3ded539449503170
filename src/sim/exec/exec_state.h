/* SPDX-License-Identifier: MIT */
/* The state of the block executor, and the functions that its files share:
 *   exec_blocks.c   the executor: event words, loops, events
 *   translate.c     items of the schema to translated blocks
 *   access.c        references of a group, an operand, or library code; two_levels.c: of groups on two levels
 *   block_cache.c   the levels of the cache; lines.c, uses.h: lines, epochs and shadow tags
 *   miss_buffer.c   pending counts, and their reports to the observer
 *   sample.c        windows of samples, and skipping between them
 *   jit/            machine code
 * docs/design/blocks.md. */
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
#define EXEC_HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / golden ratio: multiplicative hashing */
enum { WAY_HINTS = 4096 };
enum { TIME_BIN_REST = 1024 };
enum { SAMPLE_LOG_ENTRIES = 256 }; /* reported at once */
enum { PATH_CACHE_BITS = 14, PATH_CACHE = 1 << PATH_CACHE_BITS };

/* Machine code (jit/). */
enum {
    JIT_RUNS = 16,             /* executions of an item before it is compiled */
    JIT_LOOP_REFERENCES = 256, /* references of a loop that weigh as much as one execution */
    JIT_PREVIEW = 64           /* iterations that are looked at if a loop is compiled before its first execution */
};
/* Routines that the code of all items shares: offsets in the code. */
struct code_routines {
    size_t leave;               /* returns to jit_run */
    size_t tail;                /* the next item, where the words of an item may be incomplete; or `leave` */
    size_t dispatch;            /* jumps to the item whose key is in rax */
    size_t chain;               /* chains the item in rsi with the one at r12 (call_chain) */
    size_t bind;                /* base_group_bind */
    size_t group;               /* group_run */
    size_t group_miss;          /* a group after a miss, by the function of access.c or two_levels.c for this machine */
    size_t first_use;           /* code_make_first_use */
    size_t end_access;          /* epoch_shadow_end_access */
    size_t add_offset;          /* code_make_offset */
    size_t second[2];           /* code_make_second, by is_write */
    size_t enter[PATH_UNKNOWN]; /* code_make_enter, by enum path_exit of the translated block */
};
/* The machine code of all items. */
struct code_cache {
    struct code_memory memory; /* all zero: the host allows no machine code */
    size_t used;               /* bytes */
    struct gen *gen;
    unsigned widest; /* words of an item that has code, at most */
    struct code_routines routine;
};

/* Pending counts of library code or a lock: references of one call site after one block, which share access counts. */
struct libcall_misses {
    uint64_t call_site;   /* address of the call, or return address: as in blocks_libcall_access */
    uint64_t version;     /* version of the address-to-object map for which `data` is valid */
    uint64_t addr;        /* of the current reference: by it, data object and member are found */
    uint32_t thread;      /* index of the thread that calls */
    uint32_t insn;        /* SIM_NO_INSN, or the instruction to which the references belong */
    uint32_t path_counts; /* index, of the block that called; UINT32_MAX: the thread has executed none */
    struct object_bounds data;
    uint64_t references, writes; /* counts; an update is a write */
    uint64_t compute;            /* cycles: of instructions, and of hits */
    uint64_t misses, stall;      /* lines missed; cycles beyond the hits */
};

/* The split bus of a single core. A fill that is issued when the bus is idle takes constant time, and so does its write-back, which is transferred
 * during the memory access. Such a pair is kept, and given to the fabric only if a later transaction overlaps with it. */
struct lone_bus {
    bool has_last, has_back; /* a fill is kept; with a write-back */
    uint8_t op;              /* of the fill: BUS_READ or BUS_READ_OWN */
    uint64_t last;           /* cycle in which the fill was issued */
    uint64_t idle;           /* cycle from which the bus is idle; UINT64_MAX: no pair is ever kept, since the fabric
                                is another one, or the bus is slower than memory */
    uint64_t line, back;     /* number of the line of the fill, of the write-back */
    uint64_t address, data;  /* core cycles for which the bus has a request, the data of a line */
    uint64_t reads, returns; /* cycles from issue to end: of a fill, of its write-back */
};

/* A thread while another one runs. */
struct block_thread {
    uint64_t register_[PEET_REGISTERS]; /* values of the trace registers */
    uint32_t node;                      /* of the calling context tree: path on which it executes */
    struct tblock *last;                /* translated block that it executed last; NULL: none */
};

/* The position of the current thread on its call path. */
struct exec_path {
    uint64_t
        fast_entry; /* exec_binding.current for which the next block can be entered as it is bound; NO_LINE: none */
    struct tblock *last;       /* translated block that was executed last; NULL: none */
    struct path_thread *calls; /* call path of the thread */
    uint64_t stack_pointer;    /* before the block that was entered last with tblock_stack.has_entry */
};

/* Limits of machine code, while it runs. */
struct exec_code_limits {
    const uint64_t *word_end;    /* end of the event words */
    uintptr_t word_last;         /* address of a key below which any item with code is complete */
    uint64_t limit;              /* cycle at which code stops */
    uint64_t until;              /* number of the touch before which code stops; UINT64_MAX: none */
    uint64_t fast_forward_count; /* iterations that are counted together with the one in which a line is missed */
};

/* The current time bin. */
struct exec_time_bin {
    uint64_t end;          /* number of its last reference + 1 */
    uint64_t fixed_misses; /* pending counts of tb_operand.fixed in the bin: misses, or second-level hits */
    uint64_t low;          /* generated code counts misses itself while exec_blocks.number is below; 0: never */
};

/* The sample log, and counts of what it leaves out. */
struct exec_sample_log {
    struct sample_entry *at, *end; /* next entry of the log, and its end; NULL: there is no log */
    uint64_t new_flag; /* of a line that no sample has seen: SAMPLE_MAYBE_COLD; 0: no reference was skipped yet */
    struct logged_sets sets;
    uint64_t *missed;    /* misses in sets that are not logged, by index of access counts */
    uint64_t missed_new; /* those of lines that no sample has seen */
};

/* What the bindings of translated blocks are valid for. */
struct exec_binding {
    uint64_t current;          /* (version + process_switches) << 32 | node */
    uint64_t base;             /* `current` without the node */
    uint64_t version;          /* of the address-to-object map */
    uint32_t process;          /* of the current thread */
    uint32_t process_switches; /* changes of `process` so far */
    uint32_t node;             /* of the calling context tree */
    uint32_t thread;           /* index of the current thread in the source */
};

/* The levels of the cache, and what their configuration implies. */
struct exec_caches {
    uint32_t shift, levels; /* log2 of the bytes of a line; number of levels */
    uint64_t length;        /* bytes of a line */
    struct l1_entry *first; /* the first level */
    bool is_ideal;          /* the fabric has no contention */
    bool has_second;        /* there is a second level, and it is not faster than the first */
    bool fixed_miss_cost;   /* is_ideal, one level, and memory is not faster: each miss costs the same */
    bool state_from_tags;   /* fixed_miss_cost, direct-mapped; a line is dirty exactly if its tag[1] matches */
    uint8_t allows[PROTOCOL_STATES][2];     /* by state: a read, a write hits without transaction and without change of
                                               state; 0 for a write that is a silent upgrade */
    uint64_t perm_mask[PROTOCOL_STATES][2]; /* by state, for l1_entry.tag: 0 where `allows` is set; else NO_LINE */
    bool is_readable;                       /* in all states, `allows` of a write implies that of a read */
    uint8_t silent[PROTOCOL_STATES];        /* by state: the state after a silent upgrade; 0: there is none */
    uint8_t is_dirty[PROTOCOL_STATES];      /* by state: 1: memory does not have the data of the line */
    struct exec_level level[CONFIG_LEVELS];
    uint32_t way_hint[WAY_HINTS]; /* by low bits of a line number: entry of the first level that last held such a line,
                                     as a byte offset in `first` */
};

/* Lines, the bus, and counts of accesses. */
struct exec_memory {
    struct exec_lines lines;
    struct fabric fabric;
    struct lone_bus bus;
    struct memory_counts counts; /* without what is pending in blocks and operands (blocks_flush) */
    uint32_t removal_tag;        /* of the current reference: 1 + index of its access counts; 0: a lock's in a sampled
                             profile, which is no part of samples */
    uint64_t touches;            /* numbers given to exec_level.stamp so far, in levels with more than 16 ways */
};

/* Pending misses. */
struct exec_pending {
    struct miss_bucket bucket[MISS_BUCKETS]; /* by hash of the miss (miss_buffer_add) */
    uint64_t bin_misses, bin_stall; /* lines missed, stall cycles in the time bin, without exec_time_bin.fixed_misses */
};

/* Fills: what the configuration implies for them, and pending counts. */
struct exec_fill {
    uint8_t state[2];       /* state of a line that is filled for a read, for a write */
    uint64_t fixed_stall;   /* cycles beyond a first-level hit: of a second-level hit if has_second, else of a miss */
    bool read_is_exclusive; /* a line that was filled for a read can be written without a transaction */
    bool memory_not_faster; /* than the first level: no miss takes less than a hit */
    uint64_t l2_hits;       /* pending */
    uint64_t fixed_misses[2][2]; /* pending misses of fixed cost, by is_write and by whether the line was used before */
};

/* The state of sampling in the current event words. */
struct exec_sampling {
    struct source_words *words; /* in use; NULL: there were none */
    uint64_t border;            /* number of the reference at which skipping begins; 0: references are skipped;
                                   UINT64_MAX: never */
    uint64_t pass_left;         /* references still to skip */
    uint64_t used_until;        /* number of the reference up to which words->used counts */
    struct sample_entry *log;   /* first entry of the sample log; NULL: there is no log */
    uint32_t missed_room;       /* elements of exec_sample_log.missed */
};

/* Translated items, blocks and paths. */
struct exec_translation {
    struct arena arena;
    struct loop_plans plans;
    struct tb_item *by_key[ITEM_CACHE]; /* lookup cache, by hash of the key */
    struct map items;                   /* struct tb_item *, by key */
    struct map blocks;                  /* struct tblock *, by number of the block in the schema */
    struct tblock *tblocks;             /* list of all, the newest first */
    uint32_t tblock_count;
    struct map paths; /* struct tb_path *, by tblock.number and node of the calling context tree */
    struct tb_path_cache {
        uint64_t key; /* tblock.number << 32 | node; 0: unused */
        struct tb_path *path;
    } path_cache[PATH_CACHE];
    struct tb_path *all_paths;  /* list of all */
    struct peet_loop_walk walk; /* of a loop without plan */
};

/* The threads of the program. */
struct exec_threads {
    struct block_thread *thread; /* by index in the source */
    uint32_t count;              /* room of `thread` */
};

/* Sentinels. */
struct exec_sentinels {
    struct tb_item no_item; /* in unused elements of exec_translation.by_key */
    struct exec_line empty; /* info of empty entries, with state_from_tags and without samples */
};

/* The block executor. Machine code uses the first members most: they are at small offsets. */
struct exec_blocks {
    struct exec_path path;
    struct exec_code_limits run;
    uint64_t number;              /* of the next touch of a line, from 1 on: stamps of the first level */
    uint64_t non_program_touches; /* 1 + touches that are no references of the program: blocks_references */
    struct exec_time_bin bin;
    uint64_t fixed_write_backs; /* of misses of fixed cost, pending */
    struct exec_sample_log log;
    struct epoch_shadow recent;
    uint64_t src[PEET_SOURCES]; /* inputs of operands, by PEET_SRC_… */
    struct machine_config config;
    const struct peet_trace *trace;
    struct block_observer observer;
    struct exec_clock time;
    struct exec_binding binding;
    struct exec_caches cache;
    struct exec_memory memory;
    struct exec_pending pending;
    struct exec_fill fill;
    struct exec_sampling sample;
    struct exec_translation translated;
    struct exec_threads threads;
    struct code_cache code;
    struct libcall_misses libcall;
    struct exec_sentinels sentinel;
    uint64_t *word; /* the event word at which code has stopped */
};

/* References of the program so far, which is the number of the next one. */
static inline uint64_t blocks_references(const struct exec_blocks *s)
{
    return s->number - s->non_program_touches;
}

/* These touches are no references of the program. */
static inline void blocks_count_non_program(struct exec_blocks *s, uint64_t touches)
{
    s->non_program_touches += touches;
    s->bin.low += touches;
}

/* 1 + entry of a line in the first level; 0: none. */
static inline uint32_t line_in_l1(const struct exec_blocks *s, const struct exec_line *l, uint64_t line)
{
    uint32_t e = s->cache.state_from_tags ? 1 + (uint32_t)(line & s->cache.level[0].mask) : l->entry[0];

    return e && s->cache.first[e - 1].info == l ? e : 0;
}
static inline uint32_t line_in_level(const struct exec_blocks *s, const struct exec_line *l, uint64_t line,
                                     unsigned level)
{
    return level ? l->entry[level] : line_in_l1(s, l, line);
}
/* The line was filled into that entry of the first level. */
static inline void line_enters_l1(const struct exec_blocks *s, struct exec_line *l, uint32_t entry)
{
    if (!s->cache.state_from_tags)
        l->entry[0] = entry + 1;
}

/* The state of an entry of the first level. */
static inline uint8_t l1_state(const struct exec_blocks *s, uint32_t entry)
{
    return s->cache.state_from_tags ? s->fill.state[s->cache.first[entry].tag[1] != NO_LINE]
                                    : s->cache.level[0].state[entry];
}

/* The number of the last touch of a line. */
static inline uint64_t line_last_use(const struct exec_blocks *s, const struct exec_line *l, uint64_t line)
{
    uint32_t e = line_in_l1(s, l, line);

    return e ? s->cache.first[e - 1].stamp : l->stamp;
}

/* ---- levels (block_cache.c) ---- */

/* Sets read tag and write tag of an entry. */
static inline void l1_set_tags(const struct exec_blocks *s, struct l1_entry *at, uint64_t line, unsigned state)
{
    at->tag[0] = line << s->cache.shift | s->cache.perm_mask[state][0];
    at->tag[1] = line << s->cache.shift | s->cache.perm_mask[state][1];
}
/* Whether the line can be read, or written, at that entry without side effect. */
static inline bool l1_tag_matches(const struct exec_blocks *s, uint32_t entry, uint64_t line, bool is_write)
{
    return s->cache.first[entry].tag[is_write] == line << s->cache.shift;
}

int blocks_caches_init(struct exec_blocks *s, struct peet_err *err);
void blocks_caches_release(struct exec_blocks *s);
/* Accesses a line at cycle `now`, as touch s->number, and counts it. l: its descriptor. */
struct exec_outcome blocks_touch(struct exec_blocks *s, struct exec_line *l, uint64_t line, enum peet_kind kind,
                                 uint64_t now);
/* The entry of the first level for a new line: an empty one, or the LRU one. */
enum { STAMP_WAY_BITS = 6 }; /* stamp << STAMP_WAY_BITS | way: compared in one word */
uint32_t l1_victim(const struct exec_blocks *s, uint64_t line);
uint32_t exec_level_victim(const struct exec_level *l, uint64_t line); /* in another level */
/* Touches an entry of a level other than the first. */
static inline void exec_level_touch(struct exec_blocks *s, struct exec_level *l, uint64_t line, uint32_t entry)
{
    uint64_t set = line & l->mask;

    if (!l->order) {
        l->stamp[entry] = ++s->memory.touches;
        return;
    }
    uint64_t order = l->order[set], way = entry - set * l->ways, differs = order ^ way * LRU_ORDER_ONES;
    uint64_t same = (differs - LRU_ORDER_ONES) & ~differs & LRU_ORDER_ONES << 3;
    uint64_t here = same ^ (same - 1); /* bits up to the first that do not differ */
    l->order[set] ^= (order ^ (order << 4 | way)) & here;
}
/* A transaction of the core: BUS_… `op` at cycle `now`. Returns its cycles. */
uint64_t lone_bus_transact_any(struct exec_blocks *s, uint64_t line, unsigned op, uint64_t now);
void lone_bus_end(struct exec_blocks *s); /* counts the kept pair, with which nothing overlaps */
static inline uint64_t lone_bus_transact(struct exec_blocks *s, uint64_t line, unsigned op, uint64_t now)
{
    struct lone_bus *b = &s->memory.bus;

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
/* Fills a line that only the second level has into the first. */
void blocks_fill_from_l2(struct exec_blocks *s, struct exec_line *l, uint64_t line, uint64_t now);
/* Whether the entry can be written after a silent upgrade, which is done then. */
bool blocks_silent_upgrade(struct exec_blocks *s, uint32_t entry, uint64_t line);
/* Adds pending misses of fixed cost to the counts. */
void blocks_flush_fixed_misses(struct exec_blocks *s);

/* Entry of a line in a level whose `line` is kept: not with state_from_tags. */
static inline uint32_t exec_level_find(const struct exec_level *l, uint64_t line) /* UINT32_MAX: none */
{
    uint32_t first = (uint32_t)(line & l->mask) * l->ways;

    for (uint32_t i = first; i < first + l->ways; i++)
        if (l->line[i] == line)
            return i;
    return UINT32_MAX;
}

/* ---- translation (translate.c) ---- */

/* The item of a key; NULL: the schema has none, and *err is set. */
struct tb_item *tb_item_find(struct exec_blocks *s, const struct peet_names *names, uint64_t key, struct peet_err *err);
struct tblock *tblock_of(struct exec_blocks *s, const struct peet_block *b);
/* Joins groups whose references were always in one line. */
void tblock_join_groups(struct exec_blocks *s, struct tblock *x);

/* The thread is at that node of the calling context tree. */
static inline void blocks_set_node(struct exec_blocks *s, uint32_t node)
{
    s->binding.node = node;
    s->binding.base = (s->binding.version + s->binding.process_switches) << 32;
    s->binding.current = s->binding.base | node;
}
/* After a block: whether the next one can be entered as it is bound. */
static inline void blocks_set_fast_entry(struct exec_blocks *s)
{
    s->path.fast_entry = s->path.calls->exit == PATH_NEXT ? s->binding.current : NO_LINE;
}

/* Takes over the version of the address-to-object map. */
static inline void blocks_check_map_version(struct exec_blocks *s)
{
    if (s->observer.changes->count == s->binding.version)
        return;
    s->binding.version = s->observer.changes->count;
    blocks_set_node(s, s->binding.node);
    if (s->path.fast_entry != NO_LINE)
        s->path.fast_entry = s->binding.current;
}

/* ---- references (access.c) ---- */

/* Whether a line that is filled for the first operand of a group serves all of them. */
static inline bool fill_serves_group(const struct exec_blocks *s, const struct base_group *g,
                                     const struct tb_operand *first)
{
    return g->is_write == first->is_write || s->fill.read_is_exclusive;
}

/* Executes a group one reference after the other. */
void group_run(struct exec_blocks *s, struct tblock *x, struct base_group *g, uint64_t base);
/* Executes a simple group whose references are in bounds and in one line, after a way-hint miss, or for the first use of the line since recent.since. */
void group_run_hint_miss(struct exec_blocks *s, struct tblock *x, struct base_group *g, uint64_t base);
/* Executes such a group after a miss in a single direct-mapped level, without samples or with a log. */
void group_run_direct_mapped(struct exec_blocks *s, struct tblock *x, struct base_group *g, uint64_t base);
/* Executes such a group on two levels, without samples (two_levels.c). */
bool blocks_has_two_levels(const struct exec_blocks *s);
void group_run_two_levels(struct exec_blocks *s, struct tblock *x, struct base_group *g, uint64_t base);
/* Executes a varying block. */
int tblock_run_varying(struct exec_blocks *s, struct tblock *x, const struct peet_block *b, struct peet_err *err);

/* The entry of the first level that last held a line with these low bits; it may hold another line. */
static inline uint32_t way_hint_of(const struct exec_blocks *s, uint64_t line)
{
    return s->cache.way_hint[line % WAY_HINTS] / (uint32_t)sizeof *s->cache.first;
}
static inline void way_hint_set(struct exec_blocks *s, uint64_t line, uint32_t entry)
{
    s->cache.way_hint[line % WAY_HINTS] = entry * (uint32_t)sizeof *s->cache.first;
}

/* The entry that has the line; of a direct-mapped level, the one that would; UINT32_MAX: none. */
static inline __attribute__((always_inline)) uint32_t l1_lookup(struct exec_blocks *s, uint64_t line, bool is_write)
{
    if (s->cache.level[0].ways == 1)
        return (uint32_t)(line & s->cache.level[0].mask);
    uint32_t e = way_hint_of(s, line);
    if (!l1_tag_matches(s, e, line, is_write) && (e = exec_level_find(&s->cache.level[0], line)) != UINT32_MAX)
        way_hint_set(s, line, e);
    return e;
}

/* Whether all references of a group hit in one line that was used in this epoch; stamps the line then. */
static inline __attribute__((always_inline)) bool group_hits(struct exec_blocks *s, const struct tblock *x,
                                                             const struct base_group *g, uint64_t base)
{
    uint64_t line = (base + g->first) >> s->cache.shift;

    if (!base_in_bounds(x, &x->group[g->owner], base) || (base + g->last) >> s->cache.shift != line)
        return false;
    uint32_t e = l1_lookup(s, line, g->is_write);
    if (e == UINT32_MAX || !l1_tag_matches(s, e, line, g->is_write) || s->cache.first[e].stamp < s->recent.since)
        return false;
    s->number += g->operands;
    s->cache.first[e].stamp = s->number - 1;
    return true;
}

/* ---- machine code (jit/code.c) ---- */

void jit_init(struct exec_blocks *s);
void jit_release(struct exec_blocks *s);
/* Compiles an item, if possible. */
void jit_compile(struct exec_blocks *s, struct tb_item *it);
/* Executes words up to `end` or cycle `limit`, from an item with code on. Returns the word at which it stopped, possibly the first. */
uint64_t *jit_run(struct exec_blocks *s, const struct tb_item *it, uint64_t *word, const uint64_t *end, uint64_t limit);
/* Follows the call path into a translated block, and binds it. */
void tblock_enter(struct exec_blocks *s, struct tblock *x);

/* ---- samples (sample.c) ---- */

void blocks_begin_words(struct exec_blocks *s, struct source_words *w);
void blocks_end_words(struct exec_blocks *s);
/* At the border: changes between executing and skipping. */
void blocks_cross_border(struct exec_blocks *s);
static inline bool blocks_at_border(const struct exec_blocks *s)
{
    return __builtin_expect(blocks_references(s) >= s->sample.border, 0)
           && (s->sample.border || s->sample.pass_left == 0);
}
static inline bool blocks_skips(const struct exec_blocks *s)
{
    return __builtin_expect(s->sample.border == 0, 0);
}
/* Skips references. */
void blocks_skip(struct exec_blocks *s, uint64_t references);
void blocks_skip_varying(struct exec_blocks *s, const struct peet_block *b);
/* Those of the next `iterations` that end before the border; at least one. */
uint64_t blocks_iterations_to_border(const struct exec_blocks *s, const struct tblock *x, uint64_t iterations);
/* Empties the levels: their lines are not known. */
void blocks_invalidate_all(struct exec_blocks *s);
void blocks_begin_sample(struct exec_blocks *s); /* after blocks_invalidate_all and observer.event */

#endif
