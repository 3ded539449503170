/* SPDX-License-Identifier: MIT */
/* Expansion of summarised loops, many iterations at a time. If the innermost body is a sequence of blocks, the records of its first iteration are
 * computed, and those of each further iteration by adding steps to their addresses. See docs/design/trace.md. */
#ifndef FORMAT_SCHEMA_LOOP_H
#define FORMAT_SCHEMA_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/schema/schema.h"
#include "peet/trace.h"

enum { FLAT_RECORDS = 512 };

/* A strided loop: records of its next iteration, and what each address grows by per iteration. */
struct flat_loop {
    uint64_t trips;        /* iterations that are left */
    size_t records;        /* of an iteration */
    uint64_t instructions; /* of an iteration */
    struct peet_record record[FLAT_RECORDS];
    const uint64_t *step;            /* by record: bytes per iteration; in a plan, or own_step */
    uint64_t own_step[FLAT_RECORDS]; /* room for steps that depend on values */
};

/* A node of a loop, prepared for expansion. PLAN_FLAT: a loop with a body of blocks only. */
enum plan_kind { PLAN_BLOCK, PLAN_FLAT, PLAN_LOOP };
/* A node of a loop's plan. */
struct plan_node {
    uint8_t kind;                      /* enum plan_kind */
    bool indexed;                      /* an operand has an index */
    const struct peet_loop_node *node; /* the node of the definition */
    struct peet_record head;           /* BLOCK: its record */
    const struct plan_op *op;          /* BLOCK: its operands, and zeros as in an item; FLAT: records of an iteration */
    unsigned operands;                 /* number of operands or records in op */
    uint32_t instructions;             /* of the block, or of an iteration */
    const uint64_t *step;              /* FLAT: by record, bytes per iteration; NULL: they depend on values */
};

/* A loop prepared for expansion (loop_plan.c). Its values and counts are in src, from PEET_SRC_SLOT on. */
struct loop_plan {
    const struct peet_loop *loop; /* NULL: it cannot be expanded by a plan */
    struct plan_node node[];
};

/* The position in an execution of a loop by its plan. */
struct loop_run {
    const struct loop_plan *plan;
    unsigned node;                  /* index of the next node */
    unsigned depth;                 /* open loops */
    unsigned open[PEET_LOOP_DEPTH]; /* their nodes */
    uint64_t left[PEET_LOOP_DEPTH]; /* iterations left of each, with the current one */
    uint64_t trips;                 /* iterations of the FLAT node returned last */
};

/* The plans of an expander, by item number. */
struct loop_plans {
    struct arena arena;
    const struct loop_plan **of; /* NULL: not made yet */
    size_t room;                 /* elements of `of` */
};
void loop_plans_release(struct loop_plans *p);

/* The plan of a loop, valid as long as p. NULL: the loop cannot be expanded by a plan, or there is no memory. */
const struct loop_plan *loop_plan(struct loop_plans *p, const struct schema *s, const struct peet_loop *l);

void loop_run_init(struct loop_run *r, const struct loop_plan *p, uint64_t *src);

/* The next block, or the next flat loop, with its iterations in r->trips; NULL at the end. */
const struct plan_node *loop_run_next(struct loop_run *r, uint64_t *src);

/* Moves all iterations of the flat loop that loop_run_next has just returned into f. */
void loop_run_flatten(const struct loop_run *r, const struct plan_node *n, uint64_t *src, struct flat_loop *f);

/* If the walk is at a flat loop, moves all its iterations out of the walk into f, and returns true. src has the registers; its slots are
 * overwritten. */
bool loop_flatten(struct peet_loop_walk *w, uint64_t *src, struct flat_loop *f);

/* Writes as many whole iterations as fit into `room` records; returns their number. */
size_t loop_flat_trips(struct flat_loop *f, struct peet_record *out, size_t room);

/* Advances the walk to the next block, or to the end, without executing it. */
void loop_settle(struct peet_loop_walk *w);

#endif
