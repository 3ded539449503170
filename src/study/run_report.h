/* SPDX-License-Identifier: MIT */
/* Tables of simulated runs. */
#ifndef STUDY_RUN_REPORT_H
#define STUDY_RUN_REPORT_H

#include "base/sample.h"
#include "sim/engine/sim.h"
#include "study/run_study.h"
#include "study/table.h"

/* X(name, title, type of a cell): what runs are compared by. */
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

/* The tables of several runs. Without seeds, a run is a row. With seeds, as many consecutive runs as there are seeds are one row of means
 * and errors, and a row each in table "seeds". */
struct run_report {
    struct result result;
    struct table *runs;
    struct table *single; /* "seeds"; NULL: without seeds */
    double *first_cycles; /* of the first run, or of the first run with each seed: speed-up is against these */
    uint64_t time_bins;   /* of the fabric's table, at most */
    uint64_t seeds;       /* 0: without */
    uint64_t added;       /* runs so far */
    struct sample sample[MEASURES]; /* of the runs of the current row */
    struct table *orders;           /* runs with store buffers; NULL: none yet */
    double *sc_cycles;              /* of the last run without them, or of those with each seed */
    unsigned sc_cpus;               /* processors of these; 0: there is none */
};

void run_report_init(struct run_report *m, uint64_t seeds);
void run_report_release(struct run_report *m);

/* Adds a run to the tables "runs" and "seeds". With seeds, runs come seed by seed, and then those of the next machine. */
void run_report_add(struct run_report *m, const struct machine_config *c, const struct sim_result *r);

/* Adds the tables of one run: processors, misses, locks and barriers, the fabric over time, programs. */
void run_report_add_details(struct run_report *m, const struct machine_config *c, const struct sim_result *r);

/* Of these, the tables of programs, where there are several (run_report_programs.c). */
void run_report_add_programs(struct run_report *m, const struct machine_config *c, const struct sim_result *r);

/* Of these, those of store buffers (run_report_order.c). run: its number, from 0. */
void run_report_add_order(struct run_report *m, const struct machine_config *c, const struct sim_result *r,
                          uint64_t run);
void run_report_add_order_locations(struct run_report *m, const struct sim_result *r);
/* Of these, the table of speculation, if the machine speculates (run_report_speculation.c). */
void run_report_add_speculation(struct run_report *m, const struct sim_result *r);

/* Of the run study `report`: makes its tables, before its first run. */
struct run_report *run_report_study(struct run_study_state *s, uint64_t seeds);

#endif
