/* SPDX-License-Identifier: MIT */
/* What a trace holds, as tables. The totals come from the trace's index and cost nothing; what only the records know
 * (loads against stores, kinds of events, how threads ended) makes it decode the whole trace.
 *
 * Life: info_init, info_add for each trace, then look at result and problem, info_release. */
#ifndef STUDY_INFO_H
#define STUDY_INFO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/progress.h"
#include "peet/trace.h"
#include "study/table.h"

/* What `peet info` says of one or several traces. */
struct info {
    struct result result;
    struct table *summary, *processes, *threads, *modules, *meta;
    struct table *kinds; /* of events; NULL when they are not asked for */
    bool counts;
    char **problem; /* what is wrong with the traces, one line each, beginning with the name of the file */
    size_t problems;
};

/* What is counted in the records, which takes time. */
struct info_config {
    bool counts; /* loads, stores, updates, prefetches */
    bool events; /* events by kind */
};

void info_init(struct info *i, const struct info_config *config);
void info_release(struct info *i);

/* Adds the rows of one trace. A pipe is read to its end. Damage is no error but a problem. progress may be NULL. */
int info_add(struct info *i, struct peet_trace *t, struct progress *progress, struct peet_err *err);

#endif
