/* SPDX-License-Identifier: MIT */
/* Translated blocks: operands, base groups, paths; and items, which keys name. docs/design/blocks.md. */
#ifndef SIM_EXEC_TBLOCK_H
#define SIM_EXEC_TBLOCK_H

#include "format/schema/loop.h"
#include "peet/trace.h"
#include "sim/exec/exec_blocks.h"

/* Equal accesses of an operand with one cost: misses if exec_caches.fixed_miss_cost, else second-level hits. */
enum { FIXED_COST_BUCKETS = 32, MISS_OFFSET_SHIFT = 33 };
#define MISS_STRIDE_MAX INT32_MAX /* bytes; data with a longer stride are counted in miss_bucket */
struct fixed_cost_misses {
    uint64_t what; /* bit 0: a miss of a line that is not in the shadow directory; bits 1 to 32: exec_line.remover; from
                       bit MISS_OFFSET_SHIFT on: member offset + 1, 0: the data have no members */
    uint64_t count; /* accesses, pending */
};

/* Equal misses of an operand in all levels, whose costs differ. */
enum { VARIABLE_COST_BUCKETS = 8 };
struct variable_cost_misses {
    uint64_t what;         /* as in struct fixed_cost_misses; never 0: bit 0 is set for lines that were never removed */
    uint64_t count, stall; /* misses; cycles that all of them waited beyond a first-level hit; pending */
};

static inline unsigned miss_bucket_index(uint64_t what)
{
    return (unsigned)(what ^ what >> (MISS_OFFSET_SHIFT + 2))
           % FIXED_COST_BUCKETS; /* offsets are multiples of four, mostly */
}

/* A memory operand of a translated block, bound to a data object, and its pending counts. */
struct tb_operand {
    int64_t disp;               /* bytes; the address is source base + (source index << scale) + disp */
    uint64_t issued;            /* cycles from the start of its translated block, if all earlier references hit */
    uint32_t size;              /* bytes */
    uint16_t base, index, part; /* PEET_SRC_… of base and index; index of its block in tblock.part */
    uint8_t scale, kind;        /* kind: enum peet_kind */
    bool is_write, has_data, has_variable; /* has_data: `data` is set; has_variable: `variable` has counts */
    bool is_dropped;                       /* `data` was of another path */
    uint32_t insn;                         /* number of its instruction */
    struct object_bounds data;             /* to which it refers */
    uint64_t inverse;     /* 2^64 / stride, to compute remainders; data.stride is at most MISS_STRIDE_MAX then */
    uint32_t removal_tag; /* 1 + access: kept with the lines that it evicts */
    uint64_t since;       /* tblock.runs up to which its references are reported */
    uint64_t extra;       /* references of a varying block, where executions do not count them */
    uint64_t map_version; /* version of the address-to-object map for which `data` is valid */
    uint32_t fixed_used;  /* a bit for each element of `fixed` that may have counts */
    struct fixed_cost_misses fixed[FIXED_COST_BUCKETS]; /* by miss_bucket_index */
    struct variable_cost_misses variable[VARIABLE_COST_BUCKETS];
};

/* Bounds of a base: in [low, low + span), each operand with that base stays in its data object. span 0: not known. */
struct base_bounds {
    uint64_t low, span;
};

/* Consecutive operands with one base, that lie within the bytes of a line. The leader is the first group of the block with its base. */
struct base_group {
    uint64_t least, most;    /* of a leader: distances of the first and last byte of all groups with its base */
    uint64_t first, last;    /* distances from the base of the first and last byte */
    uint64_t base_residues;  /* a bit for each base modulo 64 that occurred */
    uint16_t base, index;    /* as in struct tb_operand */
    uint16_t from, operands; /* index of its first operand in tblock.operand; number of operands */
    uint16_t owner;          /* index of its leader in tblock.group */
    uint16_t extent;         /* of a leader: index of its bounds in tblock.extent */
    uint8_t scale;           /* as in struct tb_operand */
    bool is_write;           /* some operand writes */
    bool is_simple;          /* no operand is a prefetch */
};

/* Equal misses (struct miss_report), in words that are quick to compare. */
struct miss_bucket {
    uint64_t key;    /* index of access counts << 32 | that of the access that removed the line, UINT32_MAX: none */
    uint64_t offset; /* as in miss_report */
    uint64_t how;    /* level, cause, is_conflict, is_upgrade: a byte each, from the lowest on */
    uint64_t count, stall; /* as in miss_report; pending */
};

/* A block of a translated block. */
struct tb_block {
    struct peet_record head; /* its record, of kind PEET_BLOCK */
    uint64_t cycles;         /* of an execution in which all references hit */
};

/* A translated block on a call path: pending counts. */
struct tb_path {
    struct tblock *tblock;
    struct tb_path *next;      /* of all */
    uint64_t runs;             /* executions, pending; without those since tblock.runs_at_bind */
    uint32_t node, callee;     /* nodes of the calling context tree; callee: that its call enters, 0: not known */
    uint32_t stack_version;    /* tblock_stack.version of bounds that are valid on this path */
    struct tb_path_counts {    /* of a block */
        uint32_t path_counts;  /* index, for the observer */
        uint64_t misses;       /* lines missed, without fixed_misses */
        uint64_t stall;        /* cycles beyond hits, without those of fixed_misses */
        uint64_t fixed_misses; /* accesses counted in tb_operand.fixed */
    } part[];                  /* as in tblock.part */
};

/* Cycles of an execution of a translated block. */
struct tblock_cost {
    uint64_t all_hit;      /* cycles if all references hit in the first level */
    uint64_t instructions; /* cycles of its instructions alone */
};

/* What the bindings of its operands are valid for. */
struct tblock_binding {
    uint64_t version;          /* of the address-to-object map */
    uint32_t process_switches; /* exec_binding.process_switches at that time */
};

/* What a translated block shows of the stack (map/call_path.h). */
struct tblock_stack {
    uint16_t slot;    /* number of the operand by which its call stores the return address; NO_OPERAND: none is known */
    bool has_entry;   /* its first slot is the stack pointer where a function begins */
    uint32_t version; /* changes of bounds that hold only on a path (object_bounds.on_path); 0: it has none */
};
enum { NO_OPERAND = UINT16_MAX };

/* The begin of a translated block. */
struct tblock_entry {
    uint64_t addr;    /* of its first instruction */
    bool is_function; /* a function begins there */
};

/* A translated block: straight-line code whose operands are sums of sources. */
struct tblock {
    struct tblock_binding bound;
    uint64_t counted; /* `runs` up to which exec_clock and exec_memory.counts have its executions */
    struct tblock_cost cost;
    uint32_t insns;                   /* instructions */
    uint32_t operands, groups, parts; /* elements of `operand`, `group`, `part` */
    bool is_varying;                  /* number or size of its references differs between executions */
    bool has_code;
    uint8_t exit;          /* enum path_exit: how it ends */
    struct path_call call; /* with which it ends */
    struct tblock_entry entry;
    struct tblock_stack stack;
    uint32_t number; /* among all translated blocks, from 1 on */
    struct tb_operand *operand;
    struct tb_block *part;             /* its blocks, in the order of execution */
    uint64_t kinds[PEET_PREFETCH + 1]; /* operands, by kind */
    struct tblock *next;               /* of all */
    struct base_group *group;
    /* Used in each execution, and therefore adjacent: */
    uint64_t current;            /* exec_binding.current for which operands and path are bound */
    uint64_t runs;               /* executions so far */
    uint64_t runs_at_bind;       /* `runs` up to which tb_path.runs counts them */
    uint64_t fixed_misses;       /* of its first block, since then: not yet in tb_path_counts.fixed_misses */
    struct tb_path *path;        /* NULL: it was not executed */
    struct base_bounds extent[]; /* by base_group.extent of a leader; in memory, the groups follow */
};

/* Whether all operands with a base are known to stay in their data objects; owner: the leader of that base. */
static inline bool base_in_bounds(const struct tblock *x, const struct base_group *owner, uint64_t base)
{
    const struct base_bounds *e = &x->extent[owner->extent];

    return base - e->low < e->span;
}

enum { CHAIN_SLOTS = 3 }; /* items to which the code of an item jumps directly */
enum tb_item_kind { TB_BLOCK, TB_COMPUTE, TB_VARYING, TB_LOOP, TB_EVENT };

/* An item of the schema, as the executor finds it by a key. */
struct tb_item {
    uint64_t key;   /* event word that names it; UINT64_MAX: exec_sentinels.no_item */
    uint16_t slots; /* words after the key */
    uint8_t kind;   /* enum tb_item_kind */
    const struct item *item;
    struct tblock *tblock;               /* of a block */
    struct tblock **node;                /* of a loop: by node of its plan; NULL elements: loops */
    const struct loop_plan *plan;        /* of a loop; NULL: it is executed by peet_loop_walk */
    const struct peet_trips *iterations; /* of a loop; NULL: its words are its slots */
    const void *code;                    /* machine code, or the return to exec_blocks.c */
    bool has_code;
    uint8_t chains;                /* elements of chain[] in use */
    size_t fast;                   /* offset of its code after the test whether its words are complete */
    size_t chain[CHAIN_SLOTS + 1]; /* offsets of jumps to items that followed it; the last: to all others */
    uint32_t executed;             /* executions before it had code */
};

#endif
