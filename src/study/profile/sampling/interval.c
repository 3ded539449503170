/* SPDX-License-Identifier: MIT */
/* The interval of a mean by windows (docs/design/sampling.md, "Intervals"). */
#include "study/profile/sampling/interval.h"

#include <math.h>
#include <stdint.h>

#include "base/sample.h"

enum {
    FEWEST = 6, /* windows for an interval, at least: fewer may all lie in one of two phases */
    SMALL = 8,  /* windows; with fewer, differences of neighbours are not significant */
};

static const double CONFIDENCE = 0.95;
static const double HIDDEN = 2; /* length of a hidden phase, in distances between windows */
static const double RULE_OF_THREE = 3;

/* Sums over windows. */
struct interval_sums {
    double references, held; /* sums over the windows; held: misses or cycles */
    double rate;             /* held by references */
    double squares, fourths; /* sums of powers of the deviations: what a window holds less its share of the total */
    double steps;            /* half the sum of the squared changes of the deviation from window to window */
    double effective;        /* windows of equal size with the same weight */
    double worst;            /* what one reference holds in the window that holds most by reference */
};

static struct interval_sums interval_sum(const struct interval_windows *w)
{
    struct interval_sums s = { 0 };
    double sizes = 0, before = 0;

    for (size_t i = 0; i < w->count; i++) {
        s.references += w->references[i];
        s.held += w->held[i];
        sizes += w->references[i] * w->references[i];
    }
    s.rate = s.held / s.references;
    s.effective = s.references * s.references / sizes;
    for (size_t i = 0; i < w->count; i++) {
        double off = w->held[i] - s.rate * w->references[i];
        s.squares += off * off;
        s.fourths += off * off * off * off;
        s.steps += i > 0 ? (off - before) * (off - before) / 2 : 0;
        before = off;
        if (2 * w->references[i] * (double)w->count >= s.references) /* a window that was cut off says little */
            s.worst = fmax(s.worst, w->held[i] / w->references[i]);
    }
    return s;
}

/* The error by chance of what the windows hold. */
static double interval_chance(const struct interval_windows *w, const struct interval_sums *s)
{
    double n = (double)w->count, squares = w->count < SMALL ? fmax(s->squares, s->steps) : s->steps;
    double few = s->fourths > 0 ? 1 + 2 * s->squares * s->squares / s->fourths : n - 1;
    double freedom = fmin(fmin(few, s->effective - 1), w->count < SMALL ? n - 1 : 2 * (n - 1) / 3);
    double t = sample_student(CONFIDENCE, freedom < 1 ? 1 : (uint64_t)freedom);

    return t * sqrt(fmax(0, 1 - w->observed) * squares * n / (n - 1));
}

double interval_error(const struct interval_windows *w)
{
    if (w->windows < FEWEST || w->count < 2)
        return (double)NAN;
    struct interval_sums s = interval_sum(w);
    double unseen = fmax(0, 1 - w->observed);
    double part = unseen * w->largest / s.references; /* of the run: distance between two windows */

    if (s.held <= 0)
        return fmin(1, RULE_OF_THREE * part + w->missed) * w->most + RULE_OF_THREE * unseen / s.references;
    return hypot(interval_chance(w, &s) / s.references, fmin(1, HIDDEN * part + w->missed) * s.worst);
}
