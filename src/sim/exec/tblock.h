/* SPDX-License-Identifier: MIT */
/* Translated blocks: operands, base groups, paths; and items, which event words name. docs/design/blocks.md. */
#ifndef SIM_EXEC_TBLOCK_H
#define SIM_EXEC_TBLOCK_H

#include "format/schema/loop.h"
#include "peet/trace.h"
#include "sim/exec/exec_blocks.h"

/* Equal misses of one level, where each miss costs the same. */
enum { FIXED_COST_BUCKETS = 32, MISS_OFFSET_SHIFT = 33 };
#define MISS_STRIDE_MAX INT32_MAX /* bytes; data with a longer stride are counted in miss_bucket */
struct fixed_cost_misses {
    uint64_t
        what; /* from bit MISS_OFFSET_SHIFT on: member offset + 1, 0: none; removal tag; bit 0: not in the shadow directory */
    uint64_t count; /* misses, pending */
};

/* Equal misses of several levels, with their stall cycles. */
enum { VARIABLE_COST_BUCKETS = 8 };
struct variable_cost_misses {
    uint64_t what;         /* as in struct fixed_cost_misses; never 0: bit 0 is set for lines that were never removed */
    uint64_t count, stall; /* misses; their cycles beyond a hit; pending */
};

static inline unsigned miss_bucket_index(uint64_t what)
{
    return (unsigned)(what ^ what >> (MISS_OFFSET_SHIFT + 2))
           % FIXED_COST_BUCKETS; /* offsets are multiples of four, mostly */
}

/* A memory operand of a translated block, bound to a data object, and its pending counts. */
struct tb_operand {
    int64_t disp;
    uint64_t issued;            /* cycles from the start of its block, if all earlier references hit */
    uint32_t size;              /* bytes */
    uint16_t base, index, part; /* sources; block of the translated block */
    uint8_t scale, kind;
    bool is_write, has_cell, has_variable; /* has_cell: `data` is set; has_variable: `variable` has counts */
    uint32_t insn;
    struct object_bounds data; /* to which it refers */
    uint64_t inverse;          /* 2^64 / stride, to compute remainders; data.stride is at most MISS_STRIDE_MAX then */
    uint32_t removal_tag;      /* 1 + cell: kept with the lines that it evicts */
    uint64_t since;            /* executions of the block when the operand was bound to `data` */
    uint64_t extra;            /* references of a varying block, where executions do not count them */
    uint64_t map_version;      /* version of the address-to-object map for which `data` is valid */
    uint32_t fixed_used;       /* a bit for each element of `fixed` that may have counts */
    struct fixed_cost_misses fixed[FIXED_COST_BUCKETS]; /* by miss_bucket_index */
    struct variable_cost_misses variable[VARIABLE_COST_BUCKETS];
};

/* Bounds of a base: in [low, low + span), each operand with that base stays in its data object. */
struct base_bounds {
    uint64_t low, span;
};

/* Consecutive operands with one base, that lie within the bytes of a line. The leader is the first group of the block with its base. */
struct base_group {
    uint64_t least, most;    /* of a leader: distances of the first and last byte of all groups with its base */
    uint64_t first, last;    /* distances from the base of the first and last byte */
    uint64_t base_residues;  /* a bit for each base modulo 64 that occurred */
    uint16_t base, index;    /* sources */
    uint16_t from, operands; /* number of its first operand; number of operands */
    uint16_t owner;          /* number of its leader */
    uint16_t extent;         /* of a leader: number of its base_bounds */
    uint8_t scale;
    bool is_write;  /* some operand writes */
    bool is_simple; /* no operand is a prefetch */
};

/* Equal misses (struct miss_report), in words that are quick to compare. */
struct miss_bucket {
    uint64_t key, offset; /* cell << 32 | cell that removed the line, UINT32_MAX: none; as in miss_report */
    uint64_t how;         /* level, cause, is_conflict, is_upgrade: a byte each */
    uint64_t count, stall;
};

/* A block of a translated block. */
struct tb_block {
    struct peet_record head;
    uint64_t cycles; /* of an execution in which all references hit */
};

/* A translated block on a call path: pending counts. */
struct tb_path {
    struct tblock *tblock;
    struct tb_path *next; /* of all */
    uint64_t runs;
    uint32_t node, callee;  /* nodes; callee: which its call enters, 0: not known */
    struct tb_path_counts { /* of a block */
        uint32_t path_counts;
        uint64_t misses, stall;
        uint64_t fixed_misses; /* misses in `fixed` of operands, not in `misses` */
    } part[];
};

/* Cycles of an execution of a translated block. */
struct tblock_cost {
    uint64_t all_hit;      /* if all references hit in the first level */
    uint64_t instructions; /* of its instructions alone */
};

/* What the bindings of its operands are valid for. */
struct tblock_binding {
    uint64_t version;          /* of the address-to-object map */
    uint32_t process_switches; /* exec_binding.process_switches at that time */
};

/* A translated block: straight-line code whose operands are sums of sources. */
struct tblock {
    struct tblock_binding bound;
    uint64_t counted; /* executions when they were reported last */
    struct tblock_cost cost;
    uint32_t insns;
    uint32_t operands, groups, parts;
    bool is_varying; /* number or size of its references differs between executions */
    bool has_code;
    uint8_t turn;          /* enum path_exit: how it ends */
    struct path_call call; /* with which it ends */
    uint64_t addr;         /* of its first instruction */
    bool is_entry;         /* a function begins there */
    uint32_t number;
    struct tb_operand *operand;
    struct tb_block *part;
    uint64_t kinds[PEET_PREFETCH + 1]; /* operands, by kind */
    struct tblock *next;               /* of all */
    struct base_group *group;
    /* Used in each execution, and therefore adjacent: */
    uint64_t current;      /* exec_binding.current for which operands and path are bound */
    uint64_t runs;         /* executions */
    uint64_t runs_at_bind; /* executions when `path` was bound */
    uint64_t fixed_misses; /* of its first block, since then (tb_path_counts) */
    struct tb_path *path;  /* NULL: it was not executed */
    struct base_bounds extent[];
};

/* Whether all operands with a base are known to stay in their data objects; owner: the leader of that base. */
static inline bool base_in_bounds(const struct tblock *x, const struct base_group *owner, uint64_t base)
{
    const struct base_bounds *e = &x->extent[owner->extent];

    return base - e->low < e->span;
}

enum { CHAIN_SLOTS = 3 }; /* items to which the code of an item jumps directly */
enum tb_item_kind { TB_BLOCK, TB_COMPUTE, TB_VARYING, TB_LOOP, TB_EVENT };

/* An item, which a word names. */
struct tb_item {
    uint64_t name;
    uint16_t slots;
    uint8_t kind; /* enum tb_item_kind */
    const struct item *item;
    struct tblock *tblock;               /* of a block */
    struct tblock **node;                /* of a loop: by node of its plan */
    const struct loop_plan *plan;        /* of a loop; NULL: it is executed by peet_loop_walk */
    const struct peet_trips *iterations; /* of a loop; NULL: its words are its slots */
    const void *code;                    /* machine code, or the return to exec_blocks.c */
    bool has_code;
    uint8_t chains;                /* elements of chain[] in use */
    size_t fast;                   /* offset of its code for words that are complete */
    size_t chain[CHAIN_SLOTS + 1]; /* offsets of jumps to items that followed it; the last: to all others */
    uint32_t executed;             /* executions before it had code */
};

#endif
