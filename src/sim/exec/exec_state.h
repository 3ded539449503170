/* SPDX-License-Identifier: MIT */
/* The inside of the machine with one processor: plan.c makes stretches of items, solo.c runs them, code.c makes machine code of those that are run
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

enum { SOLO_NAME_BITS = 14, SOLO_NAMES = 1 << SOLO_NAME_BITS, SOLO_MET_BITS = 10, SOLO_MET = 1 << SOLO_MET_BITS };
#define SOLO_FACTOR UINT64_C(0x9e3779b97f4a7c15) /* of hashes */
enum { SOLO_GUESSES = 4096 };
enum { SOLO_WINDOW_REST = 1024 };
enum { SOLO_SEEN = 256 }; /* that are told at once */
enum { SOLO_PATH_BITS = 14, SOLO_PATHS_NEAR = 1 << SOLO_PATH_BITS };

/* Machine code, from its beginning (code.c). */
enum {
    SOLO_OFTEN = 16,   /* executions of an item that are worth it, */
    SOLO_LONG = 256,   /*   references of a loop that are worth as much as one, */
    SOLO_FORESEEN = 64 /*   and trips that are looked at if they are made first */
};
struct solo_code {
    struct code_memory memory; /* all zero: there can be no machine code */
    size_t used;               /* bytes of it */
    struct gen *gen;
    unsigned widest; /* words of an item that has code */
    size_t leave, tail, dispatch, link, locate, group, elsewhere, anew, interval, offset,
        second[2];           /* where that is done, */
    size_t enter[TURN_LOST]; /*   and by how a stretch is left */
};

/* References of library code, or of a lock, for one call, from one block, to the data of a cell: what the watcher does not know yet. */
struct solo_moved {
    uint64_t site, version;
    uint64_t addr; /* of the data that the reference that is on its way is to */
    uint32_t thread, insn, leaf;
    struct solo_data data; /* as it was after so many changes of what is where */
    uint64_t references, writes, compute, misses, stall;
};

/* A split bus, on which one processor is alone: a line that it asks for comes at once, if all before is over, and what that pushes out goes while memory is on its way. So the last one of these is kept, with
 * its write-back, and the fabric is told when somebody overlaps with it; or it is only added up. */
struct solo_bus {
    bool has_last, has_back;
    uint8_t op;
    uint64_t last,
        idle; /* when it was issued, and when all is over (UINT64_MAX: it is another fabric, and all is told), */
    uint64_t line, back;     /*   of which lines; */
    uint64_t address, data;  /* cycles of a request, and of a line's data; */
    uint64_t reads, returns; /*   and of all that a line takes, and its write-back */
};

struct solo_thread {
    uint64_t register_[PEET_REGISTERS];
    uint32_t node;
    struct solo_stretch *last;
};

struct solo {
    /* What machine code uses most, near the beginning, where it is reached by short instructions: */
    uint64_t easy; /* what `current` is, if a stretch for which that holds begins as it is; else SOLO_NONE */
    struct solo_stretch *last;        /* that ran */
    struct path_thread *calls;        /* of the thread */
    const uint64_t *word_end;         /* while code runs, */
    uintptr_t word_last;              /*   before which any item that has code is whole, */
    uint64_t limit, until;            /*   the time and the number with which it stops */
    uint64_t even;                    /* trips that go on as this one while a line is missed, */
    uint64_t number;                  /* of the next touch of a line: what stamps of the first cache are taken from; */
    uint64_t apart;                   /*   how much more it is than there were references */
    uint64_t window_end, window_lean; /* of a window (below), */
    uint64_t window_low;              /*   and a number that is in it, as are the next SOLO_WINDOW_REST */
    uint64_t lean_write_backs;        /* of misses of one level */
    struct solo_seen *seen_at, *seen_end; /* of what a sample is to be told (below), */
    uint64_t seen_new;                    /*   what a line is that none has seen: 0, or SOLO_MAYBE_COLD, */
    struct solo_choice choice;            /*   of which sets; */
    uint64_t *missed, missed_new;         /*   of others, misses by cell, and of lines that are new */
    struct solo_recent recent;
    uint64_t src[PEET_SOURCES + 8];

    struct machine_config config;
    const struct peet_trace *trace;
    struct solo_watch watch;
    struct solo_time time;
    uint64_t current;        /* path, process and what is where: a number for each that was; */
    uint64_t base;           /*   of that, all but the path */
    uint64_t version;        /* changes of what is where so far, */
    uint32_t process, moves; /*   in that process; and how often it became another one */
    uint32_t node, thread;
    uint32_t shift, levels;
    uint64_t length;          /* of a line */
    struct solo_entry *first; /* the first cache */
    bool is_ideal;            /* the fabric keeps nobody waiting */
    bool has_second;          /* a second level, farther away than the first */
    bool is_lean;             /*   and there is one level, and memory is farther away than that, */
    bool is_plain; /*   which is direct-mapped, and what can be written there is dirty: states need not be kept */
    uint8_t seen_as[PROTOCOL_STATES][2]; /* by state: whether it can be read so, and written */
    uint64_t hidden[PROTOCOL_STATES][2]; /*   what makes of its number one that is not seen so */
    bool is_readable;                    /* what can be written so can also be read */
    uint8_t
        silent[PROTOCOL_STATES]; /* by state: the one that a write makes of it without anything else; 0: that is more */
    uint8_t is_dirty[PROTOCOL_STATES];
    struct solo_level level[CONFIG_LEVELS];
    uint32_t guess
        [SOLO_GUESSES]; /* by a line's low bits: how many bytes in front of the entry, of several ways, where such a line was last */
    struct solo_lines lines;
    struct fabric fabric;
    struct solo_bus bus;
    struct memory_counts counts; /* of what was done one by one */
    uint32_t cell; /* 1 + that of the reference that is on its way; 0: it is a lock's, of which samples are not told */
    uint64_t touches; /* what stamps of the others are taken from: one reference may touch them twice */
    /* What the watcher does not know yet: misses that were alike, by hash, and those of a window, which ends before that reference. */
    struct solo_met met[SOLO_MET];
    uint64_t window_misses, window_stall;
    uint8_t lean_state[2]; /* of a line that was missed, by whether it was written */
    uint64_t
        lean_stall; /* how long what memos count waits beyond a hit: misses of one level, or lines of the second cache */
    bool is_quiet;  /* what a miss has read can be written without anything else */
    bool is_far;    /* memory is farther away than the first cache */
    uint64_t second;     /* lines that the second cache had, */
    uint64_t lean[2][2]; /* misses of one level, by whether they wrote and whether the line was there before */
    /* samples */
    struct source_words *words; /* that are being used */
    uint64_t border;            /* the reference before which something else comes; 0: references are passed over, */
    uint64_t pass_left;         /*   so many */
    uint64_t mark;              /* references that were told to the words */
    struct solo_seen *seen;     /* what is to be told; NULL: it is told at once */
    uint32_t missed_cells;      /* for which there is room */
    /* plans */
    struct arena arena;
    struct loop_plans plans;
    struct solo_item *by_name[SOLO_NAMES];
    struct map items;  /* struct solo_item *, by name */
    struct map blocks; /* struct solo_stretch *, by block */
    struct solo_stretch *stretches;
    uint32_t stretch_count;
    struct map paths; /* struct solo_path *, by stretch and node */
    struct {
        uint64_t who; /* the stretch's number, and the node; 0: there is none */
        struct solo_path *path;
    } path_near[SOLO_PATHS_NEAR];
    struct solo_path *all_paths;
    struct peet_loop_walk walk;
    struct solo_thread *threads;
    uint32_t thread_count;
    struct solo_code code;
    struct solo_moved moved;
    struct solo_item nobody; /* whom by_name has where it knows nobody */
    struct solo_line empty;  /* what is in a cache that is plain, and of which nobody takes samples, where nothing is */
    uint64_t *word;          /* where code has stopped */
};

/* How many there were. */
static inline uint64_t solo_references(const struct solo *s)
{
    return s->number - s->apart;
}

/* So many touches were no references. */
static inline void solo_count_apart(struct solo *s, uint64_t touches)
{
    s->apart += touches;
    s->window_low += touches;
}

/* 1 + where a line is in the first cache; 0: it is not there. */
static inline uint32_t solo_in_first(const struct solo *s, const struct solo_line *l, uint64_t line)
{
    uint32_t e = s->is_plain ? 1 + (uint32_t)(line & s->level[0].mask) : l->entry[0];

    return e && s->first[e - 1].record == l ? e : 0;
}
static inline uint32_t solo_in(const struct solo *s, const struct solo_line *l, uint64_t line, unsigned level)
{
    return level ? l->entry[level] : solo_in_first(s, l, line);
}
/* It comes there. */
static inline void solo_comes_to(const struct solo *s, struct solo_line *l, uint32_t entry)
{
    if (!s->is_plain)
        l->entry[0] = entry + 1;
}

/* The state of a line in the first cache. */
static inline uint8_t solo_state(const struct solo *s, uint32_t entry)
{
    return s->is_plain ? s->lean_state[s->first[entry].seen[1] != SOLO_NONE] : s->level[0].state[entry];
}

/* The number of the last reference to a line. */
static inline uint64_t solo_used_last(const struct solo *s, const struct solo_line *l, uint64_t line)
{
    uint32_t e = solo_in_first(s, l, line);

    return e ? s->first[e - 1].stamp : l->stamp;
}

/* ---- caches (cache.c) ---- */

/* A line in that state as it can be seen at an entry of the first cache. */
static inline void solo_show(const struct solo *s, struct solo_entry *at, uint64_t line, unsigned state)
{
    at->seen[0] = line << s->shift | s->hidden[state][0];
    at->seen[1] = line << s->shift | s->hidden[state][1];
}
/* Whether it can be read there, or written. */
static inline bool solo_is_seen(const struct solo *s, uint32_t entry, uint64_t line, bool is_write)
{
    return s->first[entry].seen[is_write] == line << s->shift;
}

int solo_caches_init(struct solo *s, struct peet_err *err);
void solo_caches_release(struct solo *s);
struct solo_outcome solo_touch(struct solo *s, struct solo_line *l, uint64_t line, enum peet_kind kind, uint64_t now);
/* Where a line comes to in the first cache: into an entry that is empty, or in place of the one that was not used for the longest time. */
enum { SOLO_WAY_BITS = 6 }; /* with which ways are put behind stamps, so that both are compared at once */
uint32_t solo_oldest(const struct solo *s, uint64_t line);
uint32_t solo_oldest_behind(const struct solo_level *l, uint64_t line); /* the same in a level behind it */
/* A line that is there, in a level behind the first, is touched. */
static inline void solo_touch_behind(struct solo *s, struct solo_level *l, uint64_t line, uint32_t entry)
{
    uint64_t set = line & l->mask;

    if (!l->order) {
        l->stamp[entry] = ++s->touches;
        return;
    }
    uint64_t order = l->order[set], way = entry - set * l->ways, differs = order ^ way * SOLO_ORDER_ONES;
    uint64_t same = (differs - SOLO_ORDER_ONES) & ~differs & SOLO_ORDER_ONES << 3;
    uint64_t here = same ^ (same - 1); /* bits up to the first that do not differ */
    l->order[set] ^= (order ^ (order << 4 | way)) & here;
}
/* How long the fabric takes for it. */
uint64_t solo_transact_any(struct solo *s, uint64_t line, unsigned op, uint64_t now);
void solo_end_transaction(struct solo *s); /* nothing overlaps with what was kept */
static inline uint64_t solo_transact(struct solo *s, uint64_t line, unsigned op, uint64_t now)
{
    struct solo_bus *b = &s->bus;

    if (now >= b->idle && (op == BUS_READ || op == BUS_READ_OWN)) {
        solo_end_transaction(s);
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
    return solo_transact_any(s, line, op, now);
}
/* A line that is in the second cache alone comes into the first. */
void solo_take_second(struct solo *s, struct solo_line *l, uint64_t line, uint64_t now);
/* Whether a line in that entry is written without anything else; it can be seen so then. */
bool solo_write_silently(struct solo *s, uint32_t entry, uint64_t line);
/* What comes of misses that were only counted. */
void solo_count_lean(struct solo *s);

/* In the first cache. */
static inline uint32_t solo_find(const struct solo_level *l, uint64_t line) /* UINT32_MAX: it is not there */
{
    uint32_t first = (uint32_t)(line & l->mask) * l->ways;

    for (uint32_t i = first; i < first + l->ways; i++)
        if (l->line[i] == line)
            return i;
    return UINT32_MAX;
}

/* ---- stretches (plan.c) ---- */

/* NULL: there is no such item, or no memory. */
struct solo_item *solo_item_named(struct solo *s, const struct peet_names *names, uint64_t name, struct peet_err *err);
struct solo_stretch *solo_stretch_of(struct solo *s, const struct peet_block *b);
/* References that were always in one line are put into one group. */
void solo_join_groups(struct solo *s, struct solo_stretch *x);

/* The path on which the thread is. */
static inline void solo_set_node(struct solo *s, uint32_t node)
{
    s->node = node;
    s->base = (s->version + s->moves) << 32;
    s->current = s->base | node;
}
/* The last block was left. */
static inline void solo_set_easy(struct solo *s)
{
    s->easy = s->calls->turn == TURN_ON ? s->current : SOLO_NONE;
}

/* Perhaps other data lie there now. */
static inline void solo_see_version(struct solo *s)
{
    if (s->watch.changes->count == s->version)
        return;
    s->version = s->watch.changes->count;
    solo_set_node(s, s->node);
    if (s->easy != SOLO_NONE)
        s->easy = s->current;
}

/* ---- one by one (refer.c) ---- */

/* Whether a line that comes from memory can be used by all of a group. */
static inline bool solo_is_enough(const struct solo *s, const struct solo_group *g, const struct solo_site *first)
{
    return g->is_write == first->is_write || s->is_quiet;
}

/* The references of a group one after the other. */
void solo_run_group(struct solo *s, struct solo_stretch *x, struct solo_group *g, uint64_t base);
/* The same for a simple group that stays in its objects and in one line, which is not seen where it was looked for, or was not used for a while. */
void solo_run_elsewhere(struct solo *s, struct solo_stretch *x, struct solo_group *g, uint64_t base);
/* The same for one level that is direct-mapped, if nobody takes samples, or is told of them later: most often. */
void solo_run_direct(struct solo *s, struct solo_stretch *x, struct solo_group *g, uint64_t base);
/* The same for two levels, if nobody takes samples (two.c). */
bool solo_has_two(const struct solo *s);
void solo_run_two(struct solo *s, struct solo_stretch *x, struct solo_group *g, uint64_t base);
/* A run of a block of whose references some vary in size, or do not happen. */
int solo_run_varying(struct solo *s, struct solo_stretch *x, const struct peet_block *b, struct peet_err *err);

/* Where a line was last in a first cache of several ways; it may be another one that is there now. */
static inline uint32_t solo_guess(const struct solo *s, uint64_t line)
{
    return s->guess[line % SOLO_GUESSES] / (uint32_t)sizeof *s->first;
}
static inline void solo_is_at(struct solo *s, uint64_t line, uint32_t entry)
{
    s->guess[line % SOLO_GUESSES] = entry * (uint32_t)sizeof *s->first;
}

/* Where a line would be in the first cache; UINT32_MAX: it is not there. */
static inline __attribute__((always_inline)) uint32_t solo_entry_of(struct solo *s, uint64_t line, bool is_write)
{
    if (s->level[0].ways == 1)
        return (uint32_t)(line & s->level[0].mask);
    uint32_t e = solo_guess(s, line);
    if (!solo_is_seen(s, e, line, is_write) && (e = solo_find(&s->level[0], line)) != UINT32_MAX)
        solo_is_at(s, line, e);
    return e;
}

/* Whether all references of a group are found at once in one line, which was used not long ago; then that is stamped. */
static inline __attribute__((always_inline)) bool solo_is_easy(struct solo *s, const struct solo_stretch *x,
                                                               const struct solo_group *g, uint64_t base)
{
    uint64_t line = (base + g->first) >> s->shift;

    if (!solo_is_inside(x, &x->group[g->owner], base) || (base + g->last) >> s->shift != line)
        return false;
    uint32_t e = solo_entry_of(s, line, g->is_write);
    if (e == UINT32_MAX || !solo_is_seen(s, e, line, g->is_write) || s->first[e].stamp < s->recent.since)
        return false;
    s->number += g->sites;
    s->first[e].stamp = s->number - 1;
    return true;
}

/* ---- machine code (code.c) ---- */

void solo_code_init(struct solo *s);
void solo_code_release(struct solo *s);
/* Makes it for an item, if it can. */
void solo_code_make(struct solo *s, struct solo_item *it);
/* Executes words from an item's, which has code, on; returns where it had to stop. That may be there. */
uint64_t *solo_code_run(struct solo *s, const struct solo_item *it, uint64_t *word, const uint64_t *end,
                        uint64_t limit);
/* A stretch is to be run. */
void solo_enter(struct solo *s, struct solo_stretch *x);

/* ---- samples (sample.c) ---- */

void solo_begin_words(struct solo *s, struct source_words *w);
void solo_end_words(struct solo *s);
/* At the border: if there is nothing left to do before something else comes, that begins. */
void solo_turn(struct solo *s);
static inline bool solo_is_turn(const struct solo *s)
{
    return __builtin_expect(solo_references(s) >= s->border, 0) && (s->border || s->pass_left == 0);
}
static inline bool solo_passes(const struct solo *s)
{
    return __builtin_expect(s->border == 0, 0);
}
/* So many references are passed over. */
void solo_pass(struct solo *s, uint64_t references);
void solo_pass_varying(struct solo *s, const struct peet_block *b);
/* How many trips come before the border, of so many; at least one. */
uint64_t solo_trips_now(const struct solo *s, const struct solo_stretch *x, uint64_t trips);
/* Nobody knows any more what is in the caches. */
void solo_forget(struct solo *s);
void solo_begin_sample(struct solo *s); /* after that, and when the watcher knows */

#endif
