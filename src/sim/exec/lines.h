/* SPDX-License-Identifier: MIT */
/* What is where, and what was: lines (lines.c), and caches that have them (cache.c). */
#ifndef SIM_EXEC_LINES_H
#define SIM_EXEC_LINES_H

#include "base/arena.h"
#include "base/map.h"
#include "sim/memory/hierarchy.h"

#define NO_LINE UINT64_MAX /* no line */

/* A line that was ever used: all that a miss has to know of it, in 32 bytes; of a machine that is plain (state.h), the first 16. */
struct exec_line {
    uint64_t stamp; /* number of the last reference to it, when it went out of the first cache */
    uint32_t use;   /* the number of its last use that counts (struct epoch_shadow); 0: it was never used */
    uint32_t
        remover; /* 1 + cell to which it was lost, 0: it was not, REMOVER_UNKNOWN: nobody knows to which; and, if there are
                       several levels, whether none has it */
    uint32_t entry[CONFIG_LEVELS]; /* 1 + where it is in each cache, 0: nowhere; in the first one: where it was last */
    uint32_t unused;
};
#define REMOVER_UNKNOWN UINT32_C(0x80000000)
enum { EXEC_LINE_BITS = 5, EXEC_SHORT_LINE_BITS = 4 };
_Static_assert(sizeof(struct exec_line) == 1 << EXEC_LINE_BITS, "two of them in a line of ours");
_Static_assert(offsetof(struct exec_line, entry) == 1 << EXEC_SHORT_LINE_BITS, "or four");

/* Whether some cache had a line once. */
static inline bool line_was_used(const struct exec_line *l)
{
    return l->use != 0;
}

/* The cell to which a line was lost; UINT32_MAX: it was not. */
static inline uint32_t line_remover(const struct exec_line *l)
{
    return (l->remover & ~REMOVER_UNKNOWN) - 1;
}

extern bool exec_short_epochs; /* tests set it: numbers of uses begin anew soon */

enum { LINE_PAGE_BITS = 8, LINE_PAGE_CACHE = 4096 };
struct exec_lines {
    struct {
        uint64_t page;    /* UINT64_MAX: none */
        uintptr_t origin; /* where line 0 would be, if it were of this page */
    } page_cache[LINE_PAGE_CACHE];
    struct map pages;        /* uintptr_t: their origins */
    struct exec_line **page; /* their first lines, */
    size_t page_count;       /*   and how many there are */
    struct arena arena;
    unsigned bits; /* a line has 2^bits bytes */
};
uintptr_t exec_lines_page(struct exec_lines *l, uint64_t page);

static inline struct exec_line *exec_line_at(struct exec_lines *l, uint64_t line)
{
    uint64_t page = line >> LINE_PAGE_BITS, k = page % LINE_PAGE_CACHE;
    uintptr_t origin = l->page_cache[k].page == page ? l->page_cache[k].origin : exec_lines_page(l, page);

    return (struct exec_line *)(origin + (line << l->bits));
}

/* Which lines a cache of that size would have that may keep any: those for which fewer others were used since their last use. Time is cut into intervals, which end when as
 * many lines were used in them. The first use of a line in an interval counts, and has a number. What was used in this one is there. Of what was used in the one before,
 * the order is known, which was made at its end: for each line that comes from outside, that goes which was not used for the longest time, nor in this one. Of what was not
 * used in either, nothing is left. */
struct epoch_shadow {
    uint64_t most;           /* lines */
    uint64_t began;          /* number of the first reference of this interval, */
    uint64_t since;          /*   or since lines are told to a sample again, */
    uint64_t before;         /*   and what that was before */
    uint64_t now, last;      /* numbers of the first use in this interval, and in the one before it, */
    uint64_t ranks;          /*   of which that had so many: all, or, if there was none before, none */
    uint64_t next, end;      /* of the next use, and of that with which there are as many */
    uint32_t *rank;          /* by number from `last` on: how many were used last before it */
    uint8_t *used_again;     /* by rank: it was used in this interval, */
    uint64_t evicted_below;  /*   and of the first so many, the others are not there any more */
    struct exec_line **used; /* in this interval, by number from `now` on, */
    uint32_t *used_at;       /*   and, of a machine that is plain, how many bytes before its entry */
    uintptr_t rank_origin, used_origin, used_at_origin; /* where those with the number 0 would be */
    uint64_t limit;                                     /* numbers have to be smaller */
    uint32_t logged_lines, log_limit; /* lines that a sample was told of, and with how many it is told of all again */
    bool has_popcount;                /* the processor counts bits */
    uint64_t *key, *key_buffer;       /* to put lines into order, */
    unsigned index_bits;              /*   whose numbers have so many bits */
};

/* ---- caches (cache.c) ---- */

/* What is in the first cache at one place, as it is looked at. */
struct l1_entry {
    uint64_t tag[2]; /* where the line begins if it can be read, or written, without anything else; else NO_LINE */
    uint64_t stamp;  /* number of the last reference that touched it; 0: it is empty */
    struct exec_line *info;
};

#define LRU_ORDER_ONES UINT64_C(0x1111111111111111) /* 4 bits for each way, in the order in which they were touched */
struct exec_level {
    uint64_t *line;          /* by entry: set * ways + way; NO_LINE: empty */
    uint8_t *state;          /* of the protocol */
    struct exec_line **info; /* behind the first cache: what it is; NULL: it is empty; */
    uint64_t *order;         /*   by set: its ways from the last one that was touched on, 4 bits each; */
    uint64_t *stamp; /*   or, if there are more than that can tell, number of the last touch by entry, 0: it is empty */
    uint32_t *full;  /* entries that are not empty, */
    uint32_t filled; /*   and how many */
    uint64_t mask;
    uint32_t ways, latency;
};

/* How a reference to one line went. */
struct exec_outcome {
    uint64_t stall;
    uint8_t level, cause;
    bool is_upgrade;
};

#endif
