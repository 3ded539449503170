/* SPDX-License-Identifier: MIT */
/* Many litmus tests under several memory orders, explored in parallel. */
#ifndef LITMUS_BATCH_H
#define LITMUS_BATCH_H

#include "base/progress.h"
#include "litmus/explore.h"

/* A file or a built-in test, and what was found. */
struct batch_entry {
    char *path;                      /* NULL: built in */
    struct litmus_test *test;        /* NULL: it could not be read */
    struct litmus_outcomes *outcome; /* for each order; states is 0: not explored */
    struct peet_err err;             /* code is 0 unless the test could not be read, or an order not be explored */
};

/* Tests to be explored under several orders. */
struct litmus_batch {
    const struct order_model *const *order;
    size_t orders;
    uint64_t most_states;      /* of each exploration; 0: no limit */
    unsigned jobs;             /* explorations at a time, at least 1 */
    struct progress *progress; /* or NULL */
    struct batch_entry *entry;
    size_t entries;
};

/* Reads a file and adds it, even if it could not be read. A file whose name begins with @ lists others, one on each line, relative to its folder; # begins a comment. */
int batch_add(struct litmus_batch *b, const char *path, struct peet_err *err);
void batch_add_builtins(struct litmus_batch *b);

/* Explores all tests. The orders may be set after tests were added. */
void batch_run(struct litmus_batch *b);
void batch_release(struct litmus_batch *b);

#endif
