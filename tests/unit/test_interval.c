/* SPDX-License-Identifier: MIT */
/* Intervals around totals that are estimated from windows, on populations whose totals are known: in how many of many samples do they hold the total? */
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "study/profile/sampling/interval.h"
#include "tests/unit/random.h"

enum { PARTS = 1000, ONE_IN = 10, WINDOWS = PARTS / ONE_IN, SEEDS = 1000, LENGTH = 1000 };

static uint64_t state = 1;

static double draw_real(void)
{
    return (double)draw(&state, 1u << 30) / (1u << 30);
}

/* A run is as many parts as a window is long; the total of what they hold is the truth. */
static double part[PARTS];

static void make_equal(void)
{
    for (unsigned i = 0; i < PARTS; i++)
        part[i] = 100 + 100 * draw_real();
}

/* Each is nearly what the one before was. */
static void make_correlated(void)
{
    double at = 0;

    for (unsigned i = 0; i < PARTS; i++) {
        at = 0.98 * at + draw_real() - 0.5;
        part[i] = fmax(0, 200 + 40 * at);
    }
}

/* The second phase, which holds twenty times as much, begins anywhere. */
static void make_phases(void)
{
    unsigned border = (unsigned)draw(&state, PARTS);

    for (unsigned i = 0; i < PARTS; i++)
        part[i] = (i < border ? 10 : 200) * (0.9 + 0.2 * draw_real());
}

/* A few parts hold all there is. */
static void make_bursts(void)
{
    for (unsigned i = 0; i < PARTS; i++)
        part[i] = draw(&state, 25) == 0 ? 500 * draw_real() : 0;
}

/* First the data are read, in a hundredth of the run that may be before the first window. */
static void make_beginning(void)
{
    for (unsigned i = 0; i < PARTS; i++)
        part[i] = i < ONE_IN / 2 ? 400 : 100 * (0.95 + 0.1 * draw_real());
}

/* Nothing, or next to nothing. */
static void make_zeros(void)
{
    for (unsigned i = 0; i < PARTS; i++)
        part[i] = 0;
    for (uint64_t left = draw(&state, 4); left > 0; left--)
        part[draw(&state, PARTS)] = LENGTH / 2;
}

static const struct population {
    const char *name;
    void (*make)(void);
    double widest; /* mean half-width by the truth, at most */
} POPULATIONS[] = {
    { "independent", make_equal, 0.1 },  { "correlated", make_correlated, 0.15 }, { "two phases", make_phases, 0.5 },
    { "rare bursts", make_bursts, 2.5 }, { "a beginning", make_beginning, 0.1 },  { "next to nothing", make_zeros, 40 },
};

/* The part that a window sees of a period, and how many windows there are. */
static unsigned place(bool is_random, unsigned begin, unsigned i, unsigned every)
{
    return i * every + (is_random ? (unsigned)draw(&state, every) : begin);
}

struct coverage {
    double held, width; /* part of the samples; mean half-width by the truth */
};

static struct coverage cover(const struct population *p, bool is_random, unsigned windows)
{
    struct coverage c = { 0 };
    double total = 0;
    unsigned every = PARTS / windows;

    for (unsigned seed = 0; seed < SEEDS; seed++) {
        double references[PARTS], held[PARTS], truth = 0, sum = 0;
        unsigned begin = every / 2;
        p->make();
        for (unsigned i = 0; i < PARTS; i++)
            truth += part[i];
        for (unsigned i = 0; i < windows; i++) {
            references[i] = LENGTH;
            sum += held[i] = part[place(is_random, begin, i, every)];
        }
        double error = interval_error(
            &(struct interval_windows){ windows, windows, references, held, LENGTH, (double)windows / PARTS, 0, 1 });
        c.held += fabs(sum * every - truth) <= error * PARTS * LENGTH ? 1.0 / SEEDS : 0;
        c.width += error * PARTS * LENGTH / SEEDS;
        total += truth / SEEDS;
    }
    c.width /= total > 0 ? total : 1;
    return c;
}

static void intervals_of_windows_hold_the_total_of_the_run(void)
{
    for (unsigned i = 0; i < sizeof POPULATIONS / sizeof *POPULATIONS; i++)
        for (unsigned is_random = 0; is_random < 2; is_random++) {
            struct coverage c = cover(&POPULATIONS[i], is_random, WINDOWS);
            printf("# %-16s %s: held %.3f, half-width %.3f\n", POPULATIONS[i].name, is_random ? "random" : "even  ",
                   c.held, c.width);
            CHECK(c.held >= 0.92);
            CHECK(c.width <= POPULATIONS[i].widest);
        }
}

static void as_few_as_six_windows_hold_it_too(void)
{
    static const unsigned WINDOWS_OF[] = { 6, 8, 10, 20 };

    for (unsigned i = 0; i < sizeof POPULATIONS / sizeof *POPULATIONS; i++)
        for (unsigned k = 0; k < 4; k++) {
            struct coverage c = cover(&POPULATIONS[i], k % 2, WINDOWS_OF[k]);
            printf("# %-16s %2u windows: held %.3f, half-width %.3f\n", POPULATIONS[i].name, WINDOWS_OF[k], c.held,
                   c.width);
            CHECK(c.held >= 0.92);
        }
}

static void few_windows_say_nothing_and_all_of_them_say_all(void)
{
    static const double REFERENCES[] = { 10, 10, 10, 10 }, HELD[] = { 1, 2, 3, 4 };
    struct interval_windows w = { 4, 4, REFERENCES, HELD, 10, 0.1, 0, 1 };

    CHECK(isnan(interval_error(&w)));
    w.windows = 6;
    CHECK(interval_error(&w) > 0.1);
    w.observed = 1;
    CHECK(interval_error(&w) == 0);
    w.missed = 0.5; /* what was to be seen is taken for as bad as the worst */
    CHECK(interval_error(&w) >= 0.5 * 0.4);
}

static void an_interval_is_what_one_reckons_by_hand(void)
{
    static const double REFERENCES[] = { 100, 100, 100 }, HELD[] = { 10, 20, 60 }, NONE[] = { 0, 0, 0 };
    struct interval_windows w = { 3, 6, REFERENCES, HELD, 50, 0.1, 0, 0.5 };
    /* Mean 30; differences -20, -10, 30: squares 1400, steps 100 / 2 + 1600 / 2 = 850. t of 0.95 with 2 degrees is 4.3027; 0.9 of the run is
     * unseen. A distance between windows is 0.15 of the run, and two of them may be hidden; the worst window holds 0.6 by reference. */
    double chance = 4.302653 * sqrt(0.9 * 1400 * 3 / 2) / 300, hidden = 2 * 0.15 * 0.6;

    CHECK(fabs(interval_error(&w) - hypot(chance, hidden)) < 1e-6);
    w.held = NONE;
    CHECK(fabs(interval_error(&w) - (3 * 0.15 * 0.5 + 3 * 0.9 / 300)) < 1e-9);
}

int main(void)
{
    RUN(an_interval_is_what_one_reckons_by_hand);
    RUN(few_windows_say_nothing_and_all_of_them_say_all);
    RUN(intervals_of_windows_hold_the_total_of_the_run);
    RUN(as_few_as_six_windows_hold_it_too);
    return check_done();
}
