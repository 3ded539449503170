/* SPDX-License-Identifier: MIT */
#include "study/run_report.h"

#include "tests/unit/check.h"

/* A run of that number of cycles on one processor, cut off or not. */
static void add_run(struct run_report *study, uint64_t cycles, bool is_part)
{
    struct memory_counts memory = { .misses = 1 };
    struct machine_config config = { .name = "test", .cpus = 1, .order.model = &order_sc };
    struct sim_result result = {
        .cycles = cycles, .instructions = 1, .is_interrupted = is_part, .cpus = 1, .memory = &memory
    };

    run_report_add(study, &config, &result);
}

static const struct cell *cell_of(const struct table *t, size_t row, const char *column)
{
    return &t->cell[row * t->columns + table_column(t, column)];
}

static void a_run_that_was_cut_off_has_no_speed_up(void)
{
    struct run_report study;

    run_report_init(&study, 0);
    add_run(&study, 1000, false);
    add_run(&study, 500, false);
    add_run(&study, 10, true);
    CHECK_EQ(study.runs->rows, (size_t)3);
    CHECK(cell_of(study.runs, 1, "speed_up")->real == 2);
    CHECK(cell_of(study.runs, 2, "speed_up")->empty);
    CHECK_EQ((const char *)cell_of(study.runs, 1, "extent")->text, "whole");
    CHECK_EQ((const char *)cell_of(study.runs, 2, "extent")->text, "part");
    CHECK_EQ(cell_of(study.runs, 2, "cycles")->count, (uint64_t)10);
    run_report_release(&study);
}

static void a_seed_that_was_cut_off_is_in_no_mean(void)
{
    struct run_report study;

    run_report_init(&study, 2);
    add_run(&study, 1000, false);
    add_run(&study, 3000, false);
    add_run(&study, 100, false);
    add_run(&study, 10, true);
    CHECK_EQ(study.single->rows, (size_t)4);
    CHECK(cell_of(study.single, 3, "speed_up")->empty);
    CHECK_EQ((const char *)cell_of(study.single, 3, "extent")->text, "part");
    CHECK_EQ(study.runs->rows, (size_t)1);
    CHECK_EQ(cell_of(study.runs, 0, "cycles")->count, (uint64_t)2000);
    run_report_release(&study);
}

int main(void)
{
    RUN(a_run_that_was_cut_off_has_no_speed_up);
    RUN(a_seed_that_was_cut_off_is_in_no_mean);
    return check_done();
}
