/* SPDX-License-Identifier: MIT */
/* What a block of code costs and refers to in each of its executions on this machine. */
#ifndef SIM_ENGINE_BLOCK_H
#define SIM_ENGINE_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "peet/record.h"

/* Contiguous instructions of a block. */
struct code_range {
    uint64_t addr, bytes;
};

/* A word of reference counts has KIND_COUNT_BITS for each kind from PEET_LOAD on. Half of a count's range is kept free, so that a test of the top
 * bits finds a word to which another block cannot be added. */
enum { KIND_COUNT_BITS = 16, KIND_COUNT_MAX = (1 << (KIND_COUNT_BITS - 1)) - 1 };

/* One reference of a kind, as a word of reference counts. */
static inline uint64_t kind_count_one(unsigned kind)
{
    return (uint64_t)1 << KIND_COUNT_BITS * (kind - PEET_LOAD);
}

struct ordering_insn;

/* A block as the machine sees it. Its code may be in several ranges: it can be a path through several basic blocks. */
struct block_info {
    bool is_known;       /* the other fields are set */
    bool has_fixed_cost; /* each execution takes `cost` cycles and no more is to be done: no instruction cache, one
                                  hardware thread per core, no observer */
    bool has_fixed_references;      /* has_fixed_cost, and each execution makes all of its references */
    uint16_t references;            /* operands of the block; made in each execution if has_fixed_references */
    uint64_t kinds;                 /* the references as a word of counts */
    uint64_t cost;                  /* cycles of its instructions */
    uint64_t fetches;               /* lines that its ranges occupy in the instruction cache; 0: the machine has none */
    uint32_t ranges;                /* elements of `range` */
    struct code_range *range;       /* in the order of execution */
    struct ordering_insn *ordering; /* its instructions that order memory; only with store buffers */
    uint32_t orderings;             /* elements of `ordering` */
};

struct sim;

/* Of the block of a record; valid until the next call. */
const struct block_info *sim_block(struct sim *s, const struct peet_record *block);

#endif
