/* SPDX-License-Identifier: MIT */
/* What a simulation yields, as tables. */
#ifndef STUDY_RUN_REPORT_H
#define STUDY_RUN_REPORT_H

#include "base/sample.h"
#include "sim/engine/sim.h"
#include "study/table.h"

/* X(name, title, how a mean is shown): what runs are compared by. */
/* clang-format off */
#define RUN_MEASURES(X) \
    X(cycles, "Cycles", CELL_COUNT) X(speed_up, "Speed-up", CELL_REAL) X(instructions, "Instructions", CELL_COUNT) \
    X(references, "References", CELL_COUNT) X(misses, "Misses", CELL_COUNT) X(miss_rate, "Miss rate", CELL_PERCENT) \
    X(utilisation, "Fabric busy", CELL_PERCENT)
/* clang-format on */
enum run_measure {
#define X(name, title, type) MEASURE_##name,
    RUN_MEASURES(X) MEASURES
#undef X
};

/* Adds the tables of one run. Of several runs each call makes a row: cycles and speed-up. With seeds so many calls in a row make
 * one, of means with their errors, and a row each in a table of their own. */
struct run_report {
    struct result result;
    struct table *runs, *single; /* single: of each seed, or NULL */
    double *first_cycles;        /* of the first run, or of those of each seed: what others are compared with */
    uint64_t time_bins;          /* into which the fabric's time is cut, at most */
    uint64_t seeds, added;       /* added: runs, in all */
    struct sample sample[MEASURES];
};

void run_report_init(struct run_report *m, uint64_t seeds); /* 0: each run is a row */
void run_report_release(struct run_report *m);

/* A row for the run. With seeds runs come seed by seed, and then another machine's. */
void run_report_add(struct run_report *m, const struct machine_config *c, const struct sim_result *r);

/* All else about it: processors, misses, locks and barriers, the fabric over time. */
void run_report_add_details(struct run_report *m, const struct machine_config *c, const struct sim_result *r);

/* Of that, a row for each program, if there are several, and whose lines they evict (machine_programs.c). */
void run_report_add_programs(struct run_report *m, const struct machine_config *c, const struct sim_result *r);

#endif
