/* SPDX-License-Identifier: MIT */
/* Numbers that were measured several times: their mean, and how far the true mean may be from it.
 *
 * Assumes that measurements do not depend on each other and that their mean is about normally distributed; a handful of runs of one
 * program are good enough for that, a handful with two very different outcomes are not. */
#ifndef BASE_SAMPLE_H
#define BASE_SAMPLE_H

#include <stdint.h>

/* A sample of numbers; begins as zeros. */
struct sample {
    uint64_t count; /* numbers so far */
    double mean;
    double squares; /* sum of the squares of the distances from the mean */
};

void sample_add(struct sample *s, double value);

/* Of what the values were drawn from, estimated; NAN with fewer than two. */
double sample_deviation(const struct sample *s);

/* Half the width of the interval around the mean that holds the true one with that confidence (0.95); NAN with fewer than two. */
double sample_error(const struct sample *s, double confidence);

/* t such that a variable of Student's distribution with `freedom` degrees of freedom, at least 1, lies in ±t with `probability`,
 * between 0 and 1. */
double sample_student(double probability, uint64_t freedom);

#endif
