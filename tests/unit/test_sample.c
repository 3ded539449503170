/* SPDX-License-Identifier: MIT */
/* Means and intervals against tables, against the sums of the textbook, and against what they promise. */
#include <math.h>

#include "base/sample.h"
#include "check.h"

static bool is_near(double a, double b, double tolerance)
{
    bool near = fabs(a - b) <= tolerance;

    if (!near)
        printf("# %.17g is not %.17g\n", a, b);
    return near;
}

/* From the tables that stand in every book. */
static void students_t_is_that_of_the_tables(void)
{
    static const struct {
        uint64_t freedom;
        double p90, p95, p99;
    } TABLE[] = { { 1, 6.314, 12.706, 63.657 }, { 2, 2.920, 4.303, 9.925 },   { 3, 2.353, 3.182, 5.841 },
                  { 4, 2.132, 2.776, 4.604 },   { 5, 2.015, 2.571, 4.032 },   { 7, 1.895, 2.365, 3.499 },
                  { 9, 1.833, 2.262, 3.250 },   { 15, 1.753, 2.131, 2.947 },  { 29, 1.699, 2.045, 2.756 },
                  { 30, 1.697, 2.042, 2.750 },  { 120, 1.658, 1.980, 2.617 }, { 10000000, 1.645, 1.960, 2.576 } };

    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++) {
        CHECK(is_near(sample_student(0.90, TABLE[i].freedom), TABLE[i].p90, 0.00051));
        CHECK(is_near(sample_student(0.95, TABLE[i].freedom), TABLE[i].p95, 0.00051));
        CHECK(is_near(sample_student(0.99, TABLE[i].freedom), TABLE[i].p99, 0.00051));
    }
}

static void a_sample_worked_by_hand_has_its_mean_and_interval(void)
{
    struct sample s = { 0 };

    for (int i = 1; i <= 5; i++)
        sample_add(&s, 2 * i);
    CHECK_EQ(s.count, 5);
    CHECK(is_near(s.mean, 6, 1e-12));
    CHECK(is_near(sample_deviation(&s), sqrt(10), 1e-12));
    CHECK(is_near(sample_error(&s, 0.95), 2.7764451 * sqrt(2), 1e-6));
}

static void one_value_has_no_error_bar(void)
{
    struct sample s = { 0 };

    CHECK(isnan(sample_error(&s, 0.95)));
    sample_add(&s, 3);
    CHECK(isnan(sample_error(&s, 0.95)));
    CHECK(is_near(s.mean, 3, 0));
    sample_add(&s, 3);
    CHECK(is_near(sample_error(&s, 0.95), 0, 0));
}

static void large_numbers_that_differ_a_little_lose_nothing(void)
{
    struct sample s = { 0 };

    for (int i = 0; i < 1000; i++)
        sample_add(&s, 1e15 + i % 2);
    CHECK(is_near(s.mean, 1e15 + 0.5, 0.13));
    CHECK(is_near(sample_deviation(&s), sqrt(250.0 / 999), 0.01));
}

/* Numbers between 0 and 1, the sum of twelve of which is about normal. */
static double draw(uint64_t *state)
{
    double sum = 0;

    for (int i = 0; i < 12; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*state >> 11) / (double)(UINT64_C(1) << 53);
    }
    return sum;
}

static void nineteen_of_twenty_intervals_hold_the_true_mean(void)
{
    uint64_t state = 1;
    unsigned held = 0, samples = 4000;

    for (unsigned i = 0; i < samples; i++) {
        struct sample s = { 0 };
        for (int k = 0; k < 4; k++)
            sample_add(&s, draw(&state));
        held += fabs(s.mean - 6) <= sample_error(&s, 0.95);
    }
    CHECK(held > samples * 94 / 100);
    CHECK(held < samples * 96 / 100);
}

int main(void)
{
    RUN(students_t_is_that_of_the_tables);
    RUN(a_sample_worked_by_hand_has_its_mean_and_interval);
    RUN(one_value_has_no_error_bar);
    RUN(large_numbers_that_differ_a_little_lose_nothing);
    RUN(nineteen_of_twenty_intervals_hold_the_true_mean);
    return check_done();
}
