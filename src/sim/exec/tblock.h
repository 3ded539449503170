/* SPDX-License-Identifier: MIT */
/* What is executed: translated blocks of references, and items, which words stand for (plan.c). */
#ifndef SIM_EXEC_TBLOCK_H
#define SIM_EXEC_TBLOCK_H

#include "format/schema/loop.h"
#include "peet/trace.h"
#include "sim/exec/exec_blocks.h"

/* Misses of one level that were alike. */
enum { FIXED_COST_BUCKETS = 32, MISS_OFFSET_SHIFT = 33 };
#define MISS_STRIDE_MAX INT32_MAX /* of data whose offsets are kept so */
struct fixed_cost_misses {
    uint64_t what; /* 1 + the offset, or 0; to whom the line was lost; whether it was not recent */
    uint64_t count;
};

/* Misses of several levels that were alike, which wait as long as the fabric makes them. */
enum { VARIABLE_COST_BUCKETS = 8 };
struct variable_cost_misses {
    uint64_t what; /* as in struct fixed_cost_misses; never 0, for a line that was not lost was not recent */
    uint64_t count, stall;
};

static inline unsigned miss_bucket_index(uint64_t what)
{
    return (unsigned)(what ^ what >> (MISS_OFFSET_SHIFT + 2))
           % FIXED_COST_BUCKETS; /* offsets are multiples of four, mostly */
}

/* A reference of a translated block, and what it is to the watcher. */
struct tb_operand {
    int64_t disp;
    uint64_t issued; /* cycles from the beginning of its translated block, if all before it is found at once */
    uint32_t size;
    uint16_t base, index, part;
    uint8_t scale, kind;
    bool is_write, has_cell, has_variable; /* has_far: some of `far` count something */
    uint32_t insn;
    struct object_bounds data; /* that it refers to */
    uint64_t inverse;          /* 2^64 by its stride, if that is not too long, or one byte */
    uint32_t removal_tag;      /* 1 + the cell, to which lines are lost that it pushes out */
    uint64_t since;            /* its translated block had run so often when that began */
    uint64_t extra;            /* references besides: of blocks whose references vary */
    uint64_t map_version;      /* after so many changes of what is where its data were where they are */
    uint32_t fixed_used;       /* a bit for each memo that may count something */
    struct fixed_cost_misses fixed[FIXED_COST_BUCKETS]; /* by a few bits of what they are of */
    struct variable_cost_misses variable[VARIABLE_COST_BUCKETS];
};

/* While a base is there, no operand of a group that has it leaves its object. */
struct base_bounds {
    uint64_t low, span;
};

/* References in a row at fixed distances from one base, no farther apart than a line is long. */
struct base_group {
    uint64_t least, most;    /* distances of the first and last byte of all groups that it owns; */
    uint64_t first, last;    /* distances of the first and last byte */
    uint64_t base_residues;  /* a bit for each base that it had, modulo 64 */
    uint16_t base, index;    /* sources */
    uint16_t from, operands; /* its first one, and how many */
    uint16_t owner;          /* the first group of its translated block that has the same base, */
    uint16_t extent;         /*   and of such a one: where its base may be */
    uint8_t scale;
    bool is_write;  /* some of them */
    bool is_simple; /* all of them wait for what they want */
};

/* Misses that were alike (struct miss_report), in words that are quickly compared. */
struct miss_bucket {
    uint64_t key, offset; /* who: the cell, and to which it lost its line */
    uint64_t how;         /* level, cause, is_conflict, is_upgrade: a byte each */
    uint64_t count, stall;
};

struct tb_block { /* a block of a translated block */
    struct peet_record head;
    uint64_t cycles; /* of a run in which all is found at once */
};

/* A translated block on a call path: what the watcher does not know yet. */
struct tb_path {
    struct tblock *tblock;
    struct tb_path *next; /* of all */
    uint64_t runs;
    uint32_t node, callee;  /* callee: where it calls; 0: that is not known yet */
    struct tb_path_counts { /* a block of it */
        uint32_t path_counts;
        uint64_t misses, stall;
        uint64_t fixed_misses; /* those that memos count */
    } part[];
};

struct tblock {
    uint64_t version;          /* after so many changes of what is where its operands were what they are, */
    uint32_t process_switches; /*   and of the process */
    uint64_t counted;          /* how often it had run when its runs were counted last */
    uint64_t cycles;           /* of a run in which all is found at once */
    uint64_t cost;
    uint32_t insns;
    uint32_t operands, groups, parts;
    bool is_varying; /* its references are not the same in each run */
    bool has_code;
    uint8_t turn;          /* enum path_exit: how it is left, */
    struct path_call call; /*   and by which call */
    uint64_t addr;         /* where it begins, */
    bool is_entry;         /*   as a function does */
    uint32_t number;
    struct tb_operand *operand;
    struct tb_block *part;
    uint64_t kinds[PEET_PREFETCH + 1];
    struct tblock *next; /* of all */
    struct base_group *group;
    /* What is used in each run stands together, so that few lines of ours have it: */
    uint64_t current;            /* what the operands and leaves hold for; */
    uint64_t runs, runs_at_bind; /* how often; and how often when it came to this path; */
    uint64_t fixed_misses;       /*   and since then: misses of its first block, as in struct tb_path_counts */
    struct tb_path *path;        /* NULL: it was not entered */
    struct base_bounds extent[];
};

/* Whether all references from a base, which that group owns, are known to stay in their data. */
static inline bool base_in_bounds(const struct tblock *x, const struct base_group *owner, uint64_t base)
{
    const struct base_bounds *e = &x->extent[owner->extent];

    return base - e->low < e->span;
}

enum { CHAIN_SLOTS = 3 }; /* items that are jumped to */
enum tb_item_kind { TB_BLOCK, TB_COMPUTE, TB_VARYING, TB_LOOP, TB_EVENT };

/* What a word stands for. */
struct tb_item {
    uint64_t name;
    uint16_t slots;
    uint8_t kind; /* enum tb_item_kind; MACHINE: it computes, or changes registers */
    const struct item *item;
    struct tblock *tblock;               /* of a block */
    struct tblock **node;                /* of a loop: of its nodes, */
    const struct loop_plan *plan;        /*   NULL: it has to be walked */
    const struct peet_trips *iterations; /* NULL: its words are its slots */
    const void *code;                    /* that executes it, or lets solo.c do so */
    bool has_code;
    uint8_t chains;                /* items that are known to come behind it, */
    size_t fast;                   /* where its code begins if all of its words are there, */
    size_t chain[CHAIN_SLOTS + 1]; /*   and where it jumps to those, and to all others */
    uint32_t executed;             /* so often before it had */
};

#endif
