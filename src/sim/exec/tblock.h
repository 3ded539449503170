/* SPDX-License-Identifier: MIT */
/* What is executed: stretches of references, and items, which words stand for (plan.c). */
#ifndef SIM_EXEC_TBLOCK_H
#define SIM_EXEC_TBLOCK_H

#include "format/schema/loop.h"
#include "peet/trace.h"
#include "sim/exec/exec_blocks.h"

/* Misses of one level that were alike. */
enum { SOLO_MEMOS = 32, SOLO_OFFSET_AT = 33 };
#define SOLO_MOST_STRIDE INT32_MAX /* of data whose offsets are kept so */
struct solo_memo {
    uint64_t what; /* 1 + the offset, or 0; to whom the line was lost; whether it was not recent */
    uint64_t count;
};

/* Misses of several levels that were alike, which wait as long as the fabric makes them. */
enum { SOLO_FAR = 8 };
struct solo_far {
    uint64_t what; /* as in struct solo_memo; never 0, for a line that was not lost was not recent */
    uint64_t count, stall;
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
    bool is_write, has_cell, has_far; /* has_far: some of `far` count something */
    uint32_t insn;
    struct solo_data data;             /* that it refers to */
    uint64_t inverse;                  /* 2^64 by its stride, if that is not too long, or one byte */
    uint32_t loses;                    /* 1 + the cell, to which lines are lost that it pushes out */
    uint64_t since;                    /* its stretch had run so often when that began */
    uint64_t extra;                    /* references besides: of blocks whose references vary */
    uint64_t located;                  /* after so many changes of what is where its data were where they are */
    uint32_t memos;                    /* a bit for each memo that may count something */
    struct solo_memo memo[SOLO_MEMOS]; /* by a few bits of what they are of */
    struct solo_far far[SOLO_FAR];
};

/* While a base is there, no site of a group that has it leaves its object. */
struct solo_extent {
    uint64_t low, span;
};

/* References in a row at fixed distances from one base, no farther apart than a line is long. */
struct solo_group {
    uint64_t least, most; /* distances of the first and last byte of all groups that it owns; */
    uint64_t first, last; /* distances of the first and last byte */
    uint64_t places;      /* a bit for each base that it had, modulo 64 */
    uint16_t base, index; /* sources */
    uint16_t from, sites; /* its first one, and how many */
    uint16_t owner;       /* the first group of its stretch that has the same base, */
    uint16_t extent;      /*   and of such a one: where its base may be */
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
    uint32_t node, callee; /* callee: where it calls; 0: that is not known yet */
    struct solo_leaf {     /* a block of it */
        uint32_t leaf;
        uint64_t misses, stall;
        uint64_t lean; /* those that memos count */
    } part[];
};

struct solo_stretch {
    uint64_t version; /* after so many changes of what is where its sites were what they are, */
    uint32_t moves;   /*   and of the process */
    uint64_t counted; /* how often it had run when its runs were counted last */
    uint64_t cycles;  /* of a run in which all is found at once */
    uint64_t cost;
    uint32_t insns;
    uint32_t sites, groups, parts;
    bool is_varying; /* its references are not the same in each run */
    bool has_code;
    uint8_t turn;          /* enum path_turn: how it is left, */
    struct path_call call; /*   and by which call */
    uint64_t addr;         /* where it begins, */
    bool is_entry;         /*   as a function does */
    uint32_t number;
    struct solo_site *site;
    struct solo_part *part;
    uint64_t kinds[PEET_PREFETCH + 1];
    struct solo_stretch *next; /* of all */
    struct solo_group *group;
    /* What is used in each run stands together, so that few lines of ours have it: */
    uint64_t current;       /* what the sites and leaves hold for; */
    uint64_t runs, settled; /* how often; and how often when it came to this path; */
    uint64_t lean;          /*   and since then: misses of its first block, as in struct solo_leaf */
    struct solo_path *path; /* NULL: it was not entered */
    struct solo_extent extent[];
};

/* Whether all references from a base, which that group owns, are known to stay in their data. */
static inline bool solo_is_inside(const struct solo_stretch *x, const struct solo_group *owner, uint64_t base)
{
    const struct solo_extent *e = &x->extent[owner->extent];

    return base - e->low < e->span;
}

enum { SOLO_LINKS = 3 }; /* items that are jumped to */
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
    uint8_t links;               /* items that are known to come behind it, */
    size_t fast;                 /* where its code begins if all of its words are there, */
    size_t link[SOLO_LINKS + 1]; /*   and where it jumps to those, and to all others */
    uint32_t executed;           /* so often before it had */
};

#endif
