/* SPDX-License-Identifier: MIT */
/* All outcomes of a litmus test under a memory order, by a search through its states. docs/design/orders.md */
#ifndef LITMUS_EXPLORE_H
#define LITMUS_EXPLORE_H

#include "litmus/litmus.h"

/* One step of an execution: an instruction, or the half of an atomic, performs. */
struct litmus_step {
    uint32_t thread;      /* index */
    uint32_t instruction; /* index in its thread */
    uint8_t access;       /* ORDER_LOAD, ORDER_STORE, ORDER_ATOMIC */
    bool forwarded;       /* the load read a store of its thread that had not performed */
    int32_t read, wrote;  /* values; as far as access says */
};

/* All outcomes of a test under an order. */
struct litmus_outcomes {
    int32_t *value;           /* outcome by outcome, a value for each observed; ascending, each once */
    size_t count;             /* outcomes */
    size_t matching;          /* of them: satisfy the proposition */
    uint64_t states;          /* that the search visited */
    struct litmus_step *step; /* an execution whose outcome satisfies the proposition; under forall: does not */
    uint32_t steps;           /* elements of `step`; 0: there is none */
};

/* The order, and the limit of the search. */
struct explore_config {
    const struct order_model *order;
    uint64_t most_states; /* 0: no limit */
};

/* Fails with PEET_ERR_LIMIT where the search has more states than it may have. */
int litmus_explore(const struct litmus_test *t, const struct explore_config *config, struct litmus_outcomes *ret,
                   struct peet_err *err);
void litmus_outcomes_release(struct litmus_outcomes *o);

/* Whether the test's condition holds: some outcome satisfies the proposition, none or all do. */
bool litmus_holds(const struct litmus_test *t, const struct litmus_outcomes *o);

/* An execution as lines for people. */
struct witness_line {
    int thread;     /* index */
    char text[200]; /* what happens */
};

/* The lines, *ret_count of them; to be freed by free(). */
struct witness_line *litmus_witness(const struct litmus_test *t, const struct litmus_step *step, uint32_t steps,
                                    size_t *ret_count);

#endif
