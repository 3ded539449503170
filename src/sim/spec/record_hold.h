/* SPDX-License-Identifier: MIT */
/* Batches of records that a thread may have to execute again: those since its last checkpoint. docs/design/speculation.md. */
#ifndef SIM_SPEC_RECORD_HOLD_H
#define SIM_SPEC_RECORD_HOLD_H

#include <stdbool.h>

#include "map/source/source.h"

/* The batches of a thread since its checkpoint, in program order. The first has the checkpoint. */
struct record_hold {
    struct peet_batch *batch; /* copies, owned: the source's own batches end with its next one */
    size_t count;
    size_t next;            /* number of the copy that follows the thread's batch */
    bool is_copy;           /* the thread's batch is the copy before `next`; else it is the source's last one */
    struct peet_batch last; /* has_last: the source's last batch, which follows all copies */
    bool has_last;
    bool is_on; /* there is a checkpoint */
};

/* A checkpoint within the thread's batch. */
void record_hold_begin(struct record_hold *h);

/* Back to the batch of the checkpoint, which then ends; the thread's batch is replaced. */
void record_hold_rewind(struct record_hold *h, struct peet_batch *batch);

/* The checkpoint ends: batches that the thread leaves are not kept any more. */
void record_hold_end(struct record_hold *h);

/* The thread has executed its batch. True: another copy replaces it. False: the source has to give the next one. */
bool record_hold_next(struct record_hold *h, struct peet_batch *batch);

void record_hold_release(struct record_hold *h);

#endif
