/* SPDX-License-Identifier: MIT */
/* Expanding a summarised loop many trips at a time: where the innermost body is a row of blocks, one trip's records are
 * worked out once, and each further trip only adds to their addresses. */
#ifndef FORMAT_SCHEMA_LOOP_H
#define FORMAT_SCHEMA_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/schema/schema.h"
#include "peet/trace.h"

enum { FLAT_RECORDS = 512 };

struct flat_loop {
    uint64_t trips;        /* that are left */
    size_t records;        /* of one trip */
    uint64_t instructions; /* of one trip */
    struct peet_record record[FLAT_RECORDS];
    const uint64_t *step; /* of each record's address, per trip */
    uint64_t own_step[FLAT_RECORDS];
};

/* A loop that is ready to be expanded (loop_plan.c). Its values and counts are in src, from PEET_SRC_SLOT on. */
enum plan_kind { PLAN_BLOCK, PLAN_FLAT, PLAN_LOOP };
struct plan_node {
    uint8_t kind;                      /* FLAT: a loop whose body is a row of blocks */
    bool indexed;                      /* some operand has an index */
    const struct peet_loop_node *node; /* what it was made of */
    struct peet_record head;           /* BLOCK: its record */
    const struct plan_op *op;          /* BLOCK: its operands, and zeroes as in an item; FLAT: the records of a trip */
    unsigned operands;
    uint32_t instructions; /* BLOCK: its; FLAT: those of a trip */
    const uint64_t *step;  /* FLAT: of each record, per trip; NULL: it hangs on values */
};
struct loop_plan {
    const struct peet_loop *loop;
    struct plan_node node[];
};

/* One execution. */
struct loop_run {
    const struct loop_plan *plan;
    unsigned node, depth;
    unsigned open[PEET_LOOP_DEPTH];
    uint64_t left[PEET_LOOP_DEPTH];
    uint64_t trips; /* of the FLAT node that came last */
};

/* The plans of a cursor, by item. */
struct loop_plans {
    struct arena arena;
    const struct loop_plan **of; /* NULL: nobody has asked; without a loop: it cannot be done so */
    size_t room;
};
void loop_plans_release(struct loop_plans *p);

/* NULL: it cannot be done so, or there is no memory. Lives as long as the plans. */
const struct loop_plan *loop_plan(struct loop_plans *p, const struct schema *s, const struct peet_loop *l);

void loop_run_init(struct loop_run *r, const struct loop_plan *p, uint64_t *src);

/* The next block, or the next flat loop, of which there are r->trips; NULL at the end. */
const struct plan_node *loop_run_next(struct loop_run *r, uint64_t *src);

/* All trips of the flat loop that loop_run_next has just returned. */
void loop_run_flatten(const struct loop_run *r, const struct plan_node *n, uint64_t *src, struct flat_loop *f);

/* If the walk has come to a loop that can be done so, takes all of its trips out of the walk and puts them into f. src holds
 * the registers; its slots are overwritten. */
bool loop_flatten(struct peet_loop_walk *w, uint64_t *src, struct flat_loop *f);

/* As many whole trips as fit into room records; returns how many. */
size_t loop_flat_trips(struct flat_loop *f, struct peet_record *out, size_t room);

/* Goes on to the next block, or to the end, without executing it. */
void loop_settle(struct peet_loop_walk *w);

#endif
