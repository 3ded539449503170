/* SPDX-License-Identifier: MIT */
/* The state of a slack analysis, shared by slack.c and slack_report.c. */
#ifndef STUDY_SLACK_SLACK_IN_H
#define STUDY_SLACK_SLACK_IN_H

#include "study/slack/follow.h"
#include "study/slack/slack.h"
#include "study/symbols/symbols.h"

/* A change of a unit, and the simulated run with it. */
struct slack_prediction {
    uint32_t unit;
    struct slack_plan plan;
    uint64_t cycles;         /* 0: not simulated */
    uint64_t forced_wakeups; /* waits that were ended by force */
};

struct slack {
    struct peet_trace *trace;
    struct symbols *symbols;
    struct units units;
    struct machine_config machine; /* of the first run */
    uint32_t runs, threads;
    uint64_t cycles;         /* of the first run */
    uint64_t thread_cycles;  /* sum over runs: cycles × hardware threads that had work */
    uint64_t forced_wakeups; /* of the first run */
    uint64_t races;          /* of all runs */
    uint64_t bin_cycles;     /* of the first run */
    struct wait_bins *bins;  /* by thread: of the first run */
    struct slack_prediction *prediction;
    size_t predictions;
};

/* Numbers of units with waits or dependences, the one with most waited cycles first; to be freed. */
uint32_t *slack_order(struct slack *s, size_t *ret_count);

#endif
