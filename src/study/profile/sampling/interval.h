/* SPDX-License-Identifier: MIT */
/* Confidence interval of the mean of a run, from windows of it: of misses or cycles by reference. See docs/design/sampling.md.
 *
 * The mean is a ratio: what the windows hold, by their references. Two errors are added as squares. Chance: Student's interval of 95 % from
 * differences between neighbouring windows (von Neumann, 1941), with the finite-population factor. Hidden phases: what can lie between two windows
 * is taken to be as bad as the worst window. Where no window holds anything, the rule of three bounds what the run can hold. */
#ifndef STUDY_PROFILE_SAMPLING_INTERVAL_H
#define STUDY_PROFILE_SAMPLING_INTERVAL_H

#include <stddef.h>
#include <stdint.h>

/* Windows, or neighbouring windows added up, in the order of time. */
struct interval_windows {
    size_t count;             /* elements of the arrays */
    uint64_t windows;         /* at least count: neighbouring windows may be added up in one element */
    const double *references; /* by element; more than 0 */
    const double *held;       /* misses or cycles, by element */
    double largest;           /* references of the largest single window */
    double observed;          /* part of the references of the run that are in windows, 0 to 1 */
    double missed;            /* part of the references that should have been in windows and were not, 0 to below 1 */
    double most;              /* what one reference of the run can hold at most; used where no window holds anything */
};

/* Half of the interval of 95 % around the mean; NAN: too few windows. */
double interval_error(const struct interval_windows *w);

#endif
