/* SPDX-License-Identifier: MIT */
/* Of the report of a run: the table of speculation past barriers, with the parts of time of Sato, Nakashima and Ohno (1999), figure 4. */
#include "study/run_report.h"

/* clang-format off */
#define X(name, title) { #name, title, CELL_COUNT, false },
static const struct column SPECULATION[] = {
    { "processor",            "Processor",           CELL_COUNT, false },
    { "execution",            "Execution",           CELL_COUNT, false },
    { "miss_penalty",         "Miss penalty",        CELL_COUNT, false },
    { "idle",                 "Idle",                CELL_COUNT, false },
    { "rollback",             "Roll-back",           CELL_COUNT, false },
    { "barriers",             "Barriers",            CELL_COUNT, false },
    { "speculations",         "Speculations",        CELL_COUNT, false },
    { "roll_backs",           "Roll-backs",          CELL_COUNT, false },
    VIOLATIONS(X)
    { "forced",               "for another thread",  CELL_COUNT, true },
    { "undone_instructions",  "Instructions undone", CELL_COUNT, false },
    { "undone_stall",         "Miss penalty undone", CELL_COUNT, false },
    { "repeated_references",  "Repeated lines",      CELL_COUNT, false },
    { "repeated_misses",      "missed",              CELL_COUNT, false },
    { "repeated_miss_rate",   "of them",             CELL_PERCENT, false },
    { "other_miss_rate",      "of others",           CELL_PERCENT, false },
    { "rollback_misses",      "Misses by roll-backs", CELL_COUNT, false },
    { 0 },
};
#undef X
static const struct plot SPECULATION_PLOTS[] = {
    { PLOT_STACK, "Where each processor's cycles went", "processor", "execution miss_penalty idle rollback", .unit = "Cycles" },
    { 0 },
};
/* clang-format on */

static double report_rate(uint64_t part, uint64_t all)
{
    return all ? (double)part / (double)all : 0;
}

static void run_report_add_speculator(struct table *t, const struct sim_result *r, uint32_t i)
{
    const struct speculation_counts *n = &r->speculation[i];
    const struct time_account *a = &r->hw_thread[i];
    uint64_t misses = a->time[TIME_stall] + a->time[TIME_bus] + a->time[TIME_fetch], roll_backs = n->forced,
             all = a->rollback;

    for (int k = 0; k < TIME_COUNT; k++)
        all += a->time[k];
    for (int k = 0; k < VIOLATION_KINDS; k++)
        roll_backs += n->roll_backs[k];
    table_count(t, i);
    table_count(t, a->time[TIME_compute]);
    table_count(t, misses);
    table_count(t, all - a->time[TIME_compute] - misses - a->rollback);
    table_count(t, a->rollback);
    table_count(t, n->barriers);
    table_count(t, n->speculations);
    table_count(t, roll_backs);
    for (int k = 0; k < VIOLATION_KINDS; k++)
        table_count(t, n->roll_backs[k]);
    table_count(t, n->forced);
    table_count(t, n->undone_instructions);
    table_count(t, n->undone_stall);
    table_count(t, n->repeated_references);
    table_count(t, n->repeated_misses);
    table_real(t, report_rate(n->repeated_misses, n->repeated_references));
    table_real(t, report_rate(n->other_misses, n->other_references));
    table_count(t, n->rollback_misses);
}

void run_report_add_speculation(struct run_report *m, const struct sim_result *r)
{
    if (r->speculations == 0)
        return;
    struct table *t =
        result_table(&m->result, "speculation", "Speculation of each processor past barriers", SPECULATION);
    t->plot = SPECULATION_PLOTS;
    for (uint32_t i = 0; i < r->speculations; i++)
        run_report_add_speculator(t, r, i);
    table_note(
        t,
        "Execution, miss penalty, idle and roll-back add up to the run's cycles. Roll-back are the instructions that were undone, "
        "and the saving and restoring of states, also of speculations that succeed. The misses of undone sections are "
        "miss penalty. Repeated: executed again after a roll-back, up to where the speculation had failed.");
}
