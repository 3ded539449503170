/* SPDX-License-Identifier: MIT */
/* The inside of the machine with one processor: plan.c makes stretches of items, solo.c runs them, code.c makes machine code of those that are run
 * often; what is not easy, refer.c does one by one, and two.c for two levels. cache.c knows what is where, lines.c what was, tell.c what the watcher knows. */
#ifndef SIM_SOLO_STATE_H
#define SIM_SOLO_STATE_H

#include "base/arena.h"
#include "base/map.h"
#include "format/loop.h"
#include "peet/trace.h"
#include "sim/solo/solo.h"

#define SOLO_NONE UINT64_MAX /* no line */

/* ---- lines (lines.c) ---- */

/* A line that was ever used: all that a miss has to know of it, in 32 bytes. */
struct solo_line {
    uint64_t stamp; /* number of the last reference to it, when it went out of the first cache */
    uint64_t use;   /* the number of its last use that counts (struct solo_recent); 0: it was never used */
    uint32_t entry[CONFIG_LEVELS]; /* 1 + where it is in each cache, 0: nowhere; in the first one: where it was last */
    uint32_t lost; /* 1 + cell to which it was lost, 0: it was not, SOLO_LOST: nobody knows to which; and, if there are
                      several levels, whether none has it */
};
#define SOLO_LOST UINT32_C(0x80000000)
_Static_assert(sizeof(struct solo_line) == 32, "two of them in a line of ours");

/* Whether some cache had a line once. */
static inline bool solo_was_here(const struct solo_line *l)
{
    return l->use != 0;
}

/* The cell to which a line was lost; UINT32_MAX: it was not. */
static inline uint32_t solo_lost_to(const struct solo_line *l)
{
    return (l->lost & ~SOLO_LOST) - 1;
}

enum { SOLO_PAGE_BITS = 7, SOLO_PAGES_NEAR = 4096 };
struct solo_lines {
    struct {
        uint64_t page;    /* UINT64_MAX: none */
        uintptr_t origin; /* where line 0 would be, if it were of this page */
    } near[SOLO_PAGES_NEAR];
    struct map pages; /* uintptr_t: their origins */
    struct arena arena;
};
uintptr_t solo_lines_page(struct solo_lines *l, uint64_t page);

static inline struct solo_line *solo_line_at(struct solo_lines *l, uint64_t line)
{
    uint64_t page = line >> SOLO_PAGE_BITS, k = page % SOLO_PAGES_NEAR;
    uintptr_t origin = l->near[k].page == page ? l->near[k].origin : solo_lines_page(l, page);

    return (struct solo_line *)(origin + line * sizeof(struct solo_line));
}

/* Which lines a cache of that size would have that may keep any: those for which fewer others were used since their last use. Time is cut into intervals, which end when as
 * many lines were used in them. The first use of a line in an interval counts, and has a number. What was used in this one is there. Of what was used in the one before,
 * the order is known, which was made at its end: for each line that comes from outside, that goes which was not used for the longest time, nor in this one. Of what was not
 * used in either, nothing is left. */
struct solo_recent {
    uint64_t most;              /* lines */
    uint64_t began;             /* number of the first reference of this interval, */
    uint64_t since;             /*   or since lines are told to a sample again, */
    uint64_t before;            /*   and what that was before */
    uint64_t now, last;         /* numbers of the first use in this interval, and in the one before it, */
    uint64_t ranks;             /*   of which that had so many: all, or, if there was none before, none */
    uint64_t next, end;         /* of the next use, and of that with which there are as many */
    uint32_t *rank;             /* by number from `last` on: how many were used last before it */
    uint8_t *again;             /* by rank: it was used in this interval, */
    uint64_t gone;              /*   and of the first so many, the others are not there any more */
    struct solo_line **used;    /* in this interval, by number from `now` on */
    uintptr_t rank_origin, used_origin; /* where those with the number 0 would be */
    uint32_t told, tell;        /* lines that a sample was told of, and with how many it is told of all again */
    uint64_t *key, *key_buffer; /* to put lines into order, */
    unsigned index_bits;        /*   whose numbers have so many bits */
};

/* ---- caches (cache.c) ---- */

/* What is in the first cache at one place, as it is looked at. */
struct solo_entry {
    uint64_t seen[2]; /* the line if it can be read, or written, without anything else; else SOLO_NONE */
    uint64_t stamp;   /* number of the last reference that touched it; 0: it is empty */
    struct solo_line *record;
};

#define SOLO_ORDER_ONES UINT64_C(0x1111111111111111) /* 4 bits for each way, in the order in which they were touched */
struct solo_level {
    uint64_t *line;            /* by entry: set * ways + way; SOLO_NONE: empty */
    uint8_t *state;            /* of the protocol */
    struct solo_line **record; /* behind the first cache: what it is; NULL: it is empty; */
    uint64_t *order;           /*   by set: its ways from the last one that was touched on, 4 bits each; */
    uint64_t *stamp; /*   or, if there are more than that can tell, number of the last touch by entry, 0: it is empty */
    uint32_t *full;  /* entries that are not empty, */
    uint32_t filled; /*   and how many */
    uint64_t mask;
    uint32_t ways, latency;
};

/* How a reference to one line went. */
struct solo_outcome {
    uint64_t stall;
    uint8_t level, cause;
    bool is_upgrade;
};

/* ---- stretches (plan.c) ---- */

/* Misses of one level that were alike. */
enum { SOLO_MEMOS = 8, SOLO_OFFSET_AT = 33 };
#define SOLO_MOST_STRIDE INT32_MAX /* of data whose offsets are kept so */
struct solo_memo {
    uint64_t what; /* 1 + the offset, or 0; to whom the line was lost; whether it was not recent */
    uint64_t count;
};

static inline unsigned solo_memo_of(uint64_t what)
{
    return (unsigned)(what ^ what >> (SOLO_OFFSET_AT + 2)) % SOLO_MEMOS; /* offsets are multiples of four, mostly */
}

/* A reference of a stretch, and what it is to the watcher. */
struct solo_site {
    int64_t disp;
    uint64_t issued; /* cycles from the beginning of its stretch, if all before it is found at once */
    uint32_t size;
    uint16_t base, index, part;
    uint8_t scale, kind;
    bool is_write, has_cell;
    uint32_t insn;
    struct solo_data data;             /* that it refers to */
    uint64_t inverse;                  /* 2^64 by its stride, if that is not too long, or one byte */
    uint64_t since;                    /* its stretch had run so often when that began */
    uint64_t extra;                    /* references besides: of blocks whose references vary, */
    uint64_t version;                  /*   and of which its object is */
    struct solo_memo memo[SOLO_MEMOS]; /* by a few bits of these */
};

/* References in a row at fixed distances from one base, no farther apart than a line is long. */
struct solo_group {
    uint64_t low, span;   /* while its base is there, no site of a group that has the same leaves its object */
    uint64_t first, last; /* distances of the first and last byte */
    uint64_t places;      /* a bit for each base that it had, modulo 64 */
    uint16_t base, index; /* sources */
    uint16_t from, sites; /* its first one, and how many */
    uint16_t owner;       /* the first group of its stretch that has the same base; that knows what is above */
    uint8_t scale;
    bool is_write;  /* some of them */
    bool is_simple; /* all of them wait for what they want */
};

/* Misses that were alike (struct solo_miss), in words that are quickly compared. */
struct solo_met {
    uint64_t who, offset; /* who: the cell, and to which it lost its line */
    uint64_t how;         /* level, cause, was_recent, is_upgrade: a byte each */
    uint64_t count, stall;
};

struct solo_part { /* a block of a stretch */
    struct peet_record head;
    uint64_t cycles; /* of a run in which all is found at once */
};

/* A stretch on a call path: what the watcher does not know yet. */
struct solo_path {
    struct solo_stretch *stretch;
    struct solo_path *next; /* of all */
    uint64_t runs;
    uint32_t node;
    struct solo_leaf { /* a block of it */
        uint32_t leaf;
        uint64_t misses, stall;
        uint64_t lean; /* those that memos count */
    } part[];
};

struct solo_stretch {
    uint64_t current;       /* what the sites and leaves hold for */
    uint64_t runs, settled; /* how often; and how often when it came to this path */
    struct solo_path *path; /* NULL: it was not entered */
    uint64_t counted;       /* and how often when they were counted last */
    uint64_t cycles;        /* of a run in which all is found at once */
    uint64_t cost;
    uint32_t insns;
    uint32_t sites, groups, parts;
    bool is_varying; /* its references are not the same in each run */
    bool has_code;
    uint8_t turn;          /* enum solo_turn: how it is left */
    struct peet_insn last; /* of its first block */
    uint32_t number;
    struct solo_site *site;
    struct solo_part *part;
    uint64_t kinds[PEET_PREFETCH + 1];
    struct solo_stretch *next; /* of all */
    struct solo_group group[];
};

enum solo_kind { SOLO_BLOCK, SOLO_MACHINE, SOLO_VARYING, SOLO_LOOP, SOLO_EVENT };

/* What a word stands for. */
struct solo_item {
    uint64_t name;
    uint16_t slots;
    uint8_t kind; /* enum solo_kind; MACHINE: it computes, or changes registers */
    const struct item *item;
    struct solo_stretch *stretch;   /* of a block */
    struct solo_stretch **node;     /* of a loop: of its nodes, */
    const struct loop_plan *plan;   /*   NULL: it has to be walked */
    const struct peet_trips *trips; /* NULL: its words are its slots */
    const void *code;               /* that executes it, or lets solo.c do so */
    bool has_code;
    uint32_t executed; /* so often before it had */
};

enum { SOLO_NAME_BITS = 14, SOLO_NAMES = 1 << SOLO_NAME_BITS, SOLO_MET_BITS = 10, SOLO_MET = 1 << SOLO_MET_BITS };
#define SOLO_NAME_FACTOR UINT64_C(0x9e3779b97f4a7c15)
enum { SOLO_GUESSES = 4096 };
enum { SOLO_SEEN = 256 }; /* that are told at once */
enum { SOLO_PATH_BITS = 12, SOLO_PATHS_NEAR = 1 << SOLO_PATH_BITS };

/* Machine code, from its beginning (code.c). */
enum { SOLO_OFTEN = 16 }; /* executions of an item that are worth it */
struct solo_code {
    uint8_t *bytes; /* NULL: there can be none */
    size_t used;
    struct gen *gen;
    size_t leave, group, elsewhere, enter, anew, interval, offset, second[2]; /* where that is done */
};

struct solo_thread {
    uint64_t register_[PEET_REGISTERS];
    uint32_t node;
    uint8_t turn; /* enum solo_turn: of the last block */
    struct solo_way way;
    struct solo_stretch *last;
};

struct solo {
    /* What machine code uses most, near the beginning, where it is reached by short instructions: */
    uint64_t easy;              /* what `current` is, if a stretch for which that holds begins as it is; else SOLO_NONE */
    struct solo_stretch *last;  /* that ran */
    const uint64_t *word_end;   /* while code runs, */
    uint64_t limit, until;      /*   the time and the number with which it stops */
    uint64_t number;            /* of the next touch of a line: what stamps of the first cache are taken from; */
    uint64_t apart;             /*   how much more it is than there were references */
    uint64_t window_end, window_lean; /* of a window (below) */
    uint64_t lean_write_backs;  /* of misses of one level */
    struct solo_seen *seen_at, *seen_end; /* of what a sample is to be told (below) */
    struct solo_recent recent;
    uint64_t src[PEET_SOURCES + 8];

    struct machine_config config;
    const struct peet_trace *trace;
    struct solo_watch watch;
    struct solo_time time;
    uint64_t current;          /* thread, path and what is where: a number for each that was */
    uint64_t version, watched; /* of what is where: here, and in the watcher's eyes */
    uint32_t node, thread;
    uint8_t turn;        /* enum solo_turn: of the last block */
    struct solo_way way; /* that was told last */
    uint32_t shift, levels;
    uint64_t length;                     /* of a line */
    struct solo_entry *first;            /* the first cache */
    bool is_ideal;                       /* the fabric keeps nobody waiting */
    bool has_second;                     /* a second level, farther away than the first */
    bool is_lean;                        /*   and there is one level, and memory is farther away than that, */
    bool is_plain;                       /*   which is direct-mapped, and what can be written there is dirty: states need not be kept */
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
    struct memory_counts counts; /* of what was done one by one */
    uint32_t cell;               /* 1 + that of the reference that is on its way; 0: it is a lock's */
    uint64_t touches;            /* what stamps of the others are taken from: one reference may touch them twice */
    /* What the watcher does not know yet: misses that were alike, by hash, and those of a window, which ends before that reference. */
    struct solo_met met[SOLO_MET];
    uint64_t window_misses, window_stall;
    uint8_t lean_state[2]; /* of a line that was missed, by whether it was written */
    uint64_t
        lean_stall; /* how long what memos count waits beyond a hit: misses of one level, or lines of the second cache */
    bool is_quiet;  /* what a miss has read can be written without anything else */
    bool is_far;    /* memory is farther away than the first cache */
    uint64_t second; /* lines that the second cache had, */
    uint64_t lean[2][2]; /* misses of one level, by whether they wrote and whether the line was there before */
    /* samples */
    struct source_words *words; /* that are being used */
    uint64_t border;            /* the reference before which something else comes; 0: references are passed over, */
    uint64_t pass_left;         /*   so many */
    uint64_t mark;              /* references that were told to the words */
    struct solo_seen *seen; /* what is to be told; NULL: it is told at once */
    /* plans */
    struct arena arena;
    struct loop_plans plans;
    struct solo_item *by_name[SOLO_NAMES];
    struct map items;  /* struct solo_item *, by name */
    struct map blocks; /* struct solo_stretch *, by block */
    struct solo_stretch *stretches;
    uint32_t stretch_count;
    struct map paths; /* struct solo_path *, by stretch and node */
    struct solo_path *path_near[SOLO_PATHS_NEAR], *all_paths;
    struct peet_loop_walk walk;
    struct solo_thread *threads;
    uint32_t thread_count;
    struct solo_code code;
    struct solo_item nobody; /* whom by_name has where it knows nobody */
    uint64_t *word;          /* where code has stopped */
};

/* How many there were. */
static inline uint64_t solo_references(const struct solo *s)
{
    return s->number - s->apart;
}

/* 1 + where a line is in the first cache; 0: it is not there. */
static inline uint32_t solo_in_first(const struct solo *s, const struct solo_line *l)
{
    return l->entry[0] && s->first[l->entry[0] - 1].record == l ? l->entry[0] : 0;
}
static inline uint32_t solo_in(const struct solo *s, const struct solo_line *l, unsigned level)
{
    return level ? l->entry[level] : solo_in_first(s, l);
}

/* The state of a line in the first cache. */
static inline uint8_t solo_state(const struct solo *s, uint32_t entry)
{
    return s->is_plain ? s->lean_state[s->first[entry].seen[1] != SOLO_NONE] : s->level[0].state[entry];
}

/* The number of the last reference to a line. */
static inline uint64_t solo_used_last(const struct solo *s, const struct solo_line *l)
{
    uint32_t e = solo_in_first(s, l);

    return e ? s->first[e - 1].stamp : l->stamp;
}

int solo_lines_init(struct solo *s, uint64_t most); /* -1: no memory */
void solo_lines_release(struct solo *s);
/* Whether the cache that may keep any lines would have it. */
static inline bool solo_is_recent(const struct solo *s, const struct solo_line *l)
{
    const struct solo_recent *r = &s->recent;

    return l->use >= r->now || (l->use >= r->last && r->rank[l->use - r->last] >= r->gone);
}
static inline bool solo_is_used(const struct solo *s, const struct solo_line *l) /* in this interval */
{
    return l->use >= s->recent.now;
}
/* A line is used that was not in this interval. */
static inline void solo_use_anew(struct solo *s, struct solo_line *l)
{
    struct solo_recent *r = &s->recent;
    uint64_t before = l->use - r->last;

    r->used[r->next - r->now] = l;
    l->use = r->next++;
    if (before < r->ranks) {
        r->again[r->rank[before]] = 1;
        if (r->rank[before] >= r->gone)
            return;
    }
    if (r->ranks) {
        while (r->again[r->gone])
            r->gone++;
        r->gone++;
    }
}
static inline void solo_use_untold(struct solo *s, struct solo_line *l)
{
    s->recent.told++;
    if (!solo_is_used(s, l))
        solo_use_anew(s, l);
}
/* What a sample is told of later, all at once. */
void solo_tell_seen(struct solo *s);
static inline void solo_see(struct solo *s, uint64_t line, uint64_t last, uint64_t what)
{
    if (s->seen_at == s->seen_end)
        solo_tell_seen(s);
    *s->seen_at++ = (struct solo_seen){ line, s->number, last, what };
}
static inline void solo_see_use(struct solo *s, const struct solo_line *l, uint64_t line, uint64_t wait)
{
    if (s->seen)
        solo_see(s, line, solo_used_last(s, l), SOLO_USES | wait);
    else if (__builtin_expect(s->watch.use != NULL, 0))
        s->watch.use(s->watch.context, s, line, s->number, wait);
}
static inline void solo_use(struct solo *s, struct solo_line *l, uint64_t line)
{
    solo_see_use(s, l, line, s->recent.since - s->recent.before);
    solo_use_untold(s, l);
}
/* Behind all uses of a reference: perhaps it is time for another interval. */
void solo_end_interval(struct solo *s);
void solo_tell_again(struct solo *s);
static inline void solo_uses_end(struct solo *s)
{
    const struct solo_recent *r = &s->recent;

    if (__builtin_expect(r->next >= r->end, 0))
        solo_end_interval(s);
    else if (__builtin_expect(s->watch.use != NULL, 0) && r->told >= r->tell)
        solo_tell_again(s);
}

/* A line in that state as it can be seen at an entry of the first cache. */
static inline void solo_show(const struct solo *s, struct solo_entry *at, uint64_t line, unsigned state)
{
    at->seen[0] = line | s->hidden[state][0];
    at->seen[1] = line | s->hidden[state][1];
}

int solo_caches_init(struct solo *s, struct peet_err *err);
void solo_caches_release(struct solo *s);
struct solo_outcome solo_touch(struct solo *s, struct solo_line *l, uint64_t line, enum peet_kind kind, uint64_t now);
/* Where a line comes to in the first cache: into an entry that is empty, or in place of the one that was not used for the longest time. */
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
uint64_t solo_transact(struct solo *s, uint64_t line, unsigned op, uint64_t now);
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

/* NULL: there is no such item, or no memory. */
struct solo_item *solo_item_named(struct solo *s, const struct peet_names *names, uint64_t name, struct peet_err *err);
struct solo_stretch *solo_stretch_of(struct solo *s, const struct peet_block *b);
/* References that were always in one line are put into one group. */
void solo_join_groups(struct solo *s, struct solo_stretch *x);

static inline void solo_set_current(struct solo *s)
{
    s->current = s->version << 32 | s->node;
    s->easy = s->turn == SOLO_ON ? s->current : SOLO_NONE;
}

/* Perhaps other data lie there now. */
static inline void solo_see_version(struct solo *s)
{
    if (*s->watch.version == s->watched)
        return;
    s->watched = *s->watch.version;
    s->version++;
    solo_set_current(s);
}

/* ---- what the watcher is told (tell.c) ---- */

/* What the stretch was told is of another path, or of other data. */
void solo_renew(struct solo *s, struct solo_stretch *x);
/* The data to which a site refers; and the sites of all groups that have the base of that one. */
void solo_locate_site(struct solo *s, struct solo_stretch *x, struct solo_site *site, uint64_t addr);
void solo_locate(struct solo *s, struct solo_stretch *x, struct solo_group *owner, uint64_t base);
/* References that were alike: as in struct solo_met. */
void solo_meet(struct solo *s, uint64_t who, uint64_t how, uint64_t offset, uint64_t count, uint64_t stall);
void solo_tell_memo(struct solo *s, const struct solo_site *site, struct solo_memo *m);
/* The window of time ends before that reference. */
void solo_end_window(struct solo *s, uint64_t reference);

static inline uint64_t solo_how(unsigned level, unsigned cause, bool was_recent, bool is_upgrade)
{
    return level | cause << 8 | (unsigned)was_recent << 16 | (unsigned)is_upgrade << 24;
}

/* Those of the window that this reference is in; perhaps it is the first one there. */
static inline void solo_see_window(struct solo *s, uint64_t reference, uint64_t misses, uint64_t stall)
{
    if (__builtin_expect(reference >= s->window_end, 0))
        solo_end_window(s, reference);
    s->window_misses += misses;
    s->window_stall += stall;
}

static inline uint64_t solo_offset_in(const struct solo_data *d, uint64_t addr)
{
    return d->stride ? (addr - d->origin) % d->stride : UINT64_MAX;
}

/* Puts the offset of a site into what a memo is of, if it has one. False: it is too far away for that. The remainder by the stride of what has 32 bits is its part of 2^64, times the
 * stride (D. Lemire and others, 2019). */
static inline bool solo_memo_offset(const struct solo_site *site, uint64_t base, uint64_t *what)
{
    const struct solo_data *d = &site->data;
    uint64_t distance = base + (uint64_t)site->disp - d->origin;

    if (d->stride == 0)
        return true;
    if (distance > UINT32_MAX || d->stride > SOLO_MOST_STRIDE)
        return false;
    uint64_t offset = (uint64_t)((unsigned __int128)(site->inverse * distance) * d->stride >> 64);
    *what |= (offset + 1) << SOLO_OFFSET_AT;
    return true;
}

/* A reference that waits as long as all that memos count. */
static inline void solo_count_memo(struct solo *s, struct solo_stretch *x, struct solo_site *site, uint64_t what)
{
    struct solo_memo *memo = &site->memo[solo_memo_of(what)];

    if (__builtin_expect(memo->what != what, 0)) {
        solo_tell_memo(s, site, memo);
        memo->what = what;
    }
    memo->count++;
    if (__builtin_expect(solo_references(s) >= s->window_end, 0))
        solo_end_window(s, solo_references(s));
    s->window_lean++;
    x->path->part[site->part].lean++;
    s->time.clock += s->lean_stall;
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
    if (s->first[e].seen[is_write] != line && (e = solo_find(&s->level[0], line)) != UINT32_MAX)
        solo_is_at(s, line, e);
    return e;
}

/* Whether all references of a group are found at once in one line, which was used not long ago; then that is stamped. */
static inline __attribute__((always_inline)) bool solo_is_easy(struct solo *s, const struct solo_stretch *x,
                                                               const struct solo_group *g, uint64_t base)
{
    const struct solo_group *owner = &x->group[g->owner];
    uint64_t line = (base + g->first) >> s->shift;

    if (base - owner->low >= owner->span || (base + g->last) >> s->shift != line)
        return false;
    uint32_t e = solo_entry_of(s, line, g->is_write);
    if (e == UINT32_MAX || s->first[e].seen[g->is_write] != line || s->first[e].stamp < s->recent.since)
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

#endif
