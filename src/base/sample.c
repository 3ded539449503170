/* SPDX-License-Identifier: MIT */
/* Mean and squares are kept as Welford does (Technometrics 1962), so that large numbers that differ a little lose nothing. */
#include "base/sample.h"

#include <assert.h>
#include <math.h>

enum { HALVINGS = 60, LARGE = 10000 };

void sample_add(struct sample *s, double value)
{
    double before = value - s->mean;

    s->count++;
    s->mean += before / (double)s->count;
    s->squares += before * (value - s->mean);
}

double sample_deviation(const struct sample *s)
{
    return s->count < 2 ? (double)NAN : sqrt(s->squares / (double)(s->count - 1));
}

double sample_error(const struct sample *s, double confidence)
{
    if (s->count < 2)
        return (double)NAN;
    return sample_student(confidence, s->count - 1) * sample_deviation(s) / sqrt((double)s->count);
}

/* The probability of ±t, where t is tan(angle) times the root of the degrees of freedom, which are whole: then it is a finite sum
 * (Abramowitz and Stegun, 26.7.3 and 26.7.4). */
static double probability_within(double angle, uint64_t freedom)
{
    double cosine = cos(angle), sum = 0, term = freedom % 2 ? cosine : 1;

    for (uint64_t i = freedom % 2 ? 3 : 2; i <= freedom; i += 2) {
        sum += term;
        term *= cosine * cosine * (double)(i - 1) / (double)i;
    }
    return freedom % 2 ? (angle + sin(angle) * sum) / M_PI_2 : sin(angle) * sum;
}

double sample_student(double probability, uint64_t freedom)
{
    double low = 0, high = M_PI_2;

    assert(probability > 0 && probability < 1 && freedom > 0);
    freedom = freedom < LARGE ? freedom : LARGE; /* it hardly changes any more, and never gets smaller than it should */
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (probability_within(middle, freedom) < probability)
            low = middle;
        else
            high = middle;
    }
    return tan(high) * sqrt((double)freedom);
}
