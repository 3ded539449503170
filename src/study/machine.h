/* SPDX-License-Identifier: MIT */
/* What a simulation yields, as tables. */
#ifndef STUDY_MACHINE_H
#define STUDY_MACHINE_H

#include "sim/sim.h"
#include "study/table.h"

/* Adds the tables of one run. Of several runs the first calls make one row each: cycles and speed-up. */
struct machine_study {
    struct result result;
    struct table *runs;
    uint64_t first_cycles; /* of the first run: what others are compared with */
    uint64_t stretches;    /* into which the fabric's time is cut, at most */
};

void machine_study_init(struct machine_study *m);
void machine_study_release(struct machine_study *m);

/* A row for the run. */
void machine_study_add(struct machine_study *m, const struct machine_config *c, const struct sim_result *r);

/* All else about it: processors, misses, locks and barriers, the fabric over time. */
void machine_study_detail(struct machine_study *m, const struct machine_config *c, const struct sim_result *r);

#endif
