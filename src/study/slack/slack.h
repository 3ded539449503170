/* SPDX-License-Identifier: MIT */
/* Which synchronization of a recorded run was needed: waits, the dependences that required them, and what the run would gain without. See
 * docs/design/slack.md.
 *
 * Life: slack_new, slack_run once or more, slack_predict, slack_report, slack_free. */
#ifndef STUDY_SLACK_SLACK_H
#define STUDY_SLACK_SLACK_H

#include "base/progress.h"
#include "sim/engine/sim.h"
#include "study/slack/plan.h"
#include "study/table.h"

struct slack;

/* How a simulation is played. */
struct slack_play {
    const volatile uint32_t *stop; /* it ends soon after this is not 0 */
    struct progress *progress;     /* NULL: not shown */
};

/* What the report contains. */
struct slack_wants {
    uint64_t rows; /* of each table, at most */
    bool is_page;  /* with the tables of plots */
    bool is_data;  /* for programs: with all lines */
};

/* The trace is borrowed; it must not be a pipe. */
int slack_new(struct peet_trace *trace, struct slack **ret, struct peet_err *err);
void slack_free(struct slack *s);

/* Simulates the trace once more, in another schedule, on a machine that is copied. Returns 1 if it was stopped. */
int slack_run(struct slack *s, const struct machine_config *machine, const struct slack_play *play,
              struct peet_err *err);

/* After the runs: the number of predictions for the `most` units with the largest waits. */
size_t slack_predictions(struct slack *s, uint64_t most);

/* Simulates prediction number i, on the machine of the first run. Returns 1 if it was stopped. */
int slack_predict(struct slack *s, size_t i, const struct slack_play *play, struct peet_err *err);

void slack_report(struct slack *s, const struct slack_wants *wants, struct result *ret);

#endif
