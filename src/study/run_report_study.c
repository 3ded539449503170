/* SPDX-License-Identifier: MIT */
/* The run study `report`: tables of cycles, misses, locks and the fabric, a row for each run. */
#include "study/run_report.h"
#include "study/sync_names.h"

/* Options, and the tables so far. */
struct run_study_state {
    uint64_t time_bins; /* 0: as run_report_init sets them */
    struct run_report report;
    struct sync_names *names; /* of locks and barriers of the current run; NULL: none runs */
    struct sim_listener listener;
};

struct run_report *run_report_study(struct run_study_state *s, uint64_t seeds)
{
    run_report_init(&s->report, seeds);
    s->report.time_bins = s->time_bins ? s->time_bins : s->report.time_bins;
    return &s->report;
}

static int run_report_study_begin(struct run_study_state *s, const struct observed_run *run, struct peet_err *err)
{
    int r = sync_names_new(run->source, &s->names, err);

    if (r < 0)
        return r;
    s->listener = sync_names_listener(s->names);
    sim_set_listener(run->sim, &s->listener);
    return 0;
}

static void run_report_study_end(struct run_study_state *s, const struct observed_run *run)
{
    run_report_add(&s->report, run->machine, &run->result);
    if (run->is_last)
        run_report_add_details(&s->report, run->machine, &run->result);
    sync_names_free(s->names);
    s->names = NULL;
}

/* Gives the tables away. */
static void run_report_study_report(struct run_study_state *s, struct result *ret)
{
    result_append(ret, &s->report.result);
}

static void run_report_study_release(struct run_study_state *s)
{
    sync_names_free(s->names);
    run_report_release(&s->report);
}

static const struct opt options[] = {
    { .name = "stretches",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = RUN_STUDY_OPTION(time_bins),
      .help = "cut the fabric's time into at most N bins (64; 512 is the finest)" },
    { 0 },
};

const struct run_study run_study_report = {
    .name = "report",
    .summary = "cycles, speed-up, misses, locks, barriers and the fabric",
    .options = options,
    .state_size = sizeof(struct run_study_state),
    .begin = run_report_study_begin,
    .end = run_report_study_end,
    .report = run_report_study_report,
    .release = run_report_study_release,
};
