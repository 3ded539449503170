/* SPDX-License-Identifier: MIT */
/* How far the mean of a whole run may be from what windows of the run say: misses, or cycles, by reference.
 *
 * The mean is estimated by a ratio: what the windows hold, divided by their references. Two errors are added as squares:
 *
 *   chance   Student's interval of 95 % from differences between windows that follow each other (von Neumann, 1941), with the finite-population factor.
 *            Windows are spread over the run, so a slow change or a phase that many windows see is no error of the mean; only what changes between
 *            neighbours is. With fewer than SMALL windows, the differences from the mean are taken where they are larger. A few windows that
 *            hold most of the differences count as few degrees of freedom.
 *   hidden   Windows say nothing of a phase that fits between two of them. It is taken for as bad as the worst window, and for up to two
 *            distances between windows long: half of one each at the begin and the end of the run, and one elsewhere.
 *
 * Where no window holds anything, a part of 3/n of the run may hold something without being seen by n windows in 1 of 20 cases (the rule of
 * three); that part is taken to hold what the caller says a reference can hold at most. Three single misses may be unseen by as many references, too. */
#ifndef STUDY_PROFILE_SAMPLING_INTERVAL_H
#define STUDY_PROFILE_SAMPLING_INTERVAL_H

#include <stddef.h>
#include <stdint.h>

/* Windows, or neighbouring windows added up, in the order of time. */
struct interval_windows {
    size_t count;             /* of what the arrays have */
    uint64_t windows;         /* count, or more where some were added up */
    const double *references; /* of each, more than 0 */
    const double *held;       /* by each: misses, or cycles */
    double largest;           /* references of the largest single window */
    double observed;              /* part of the references of the run that are in windows, 0 to 1 */
    double missed;            /* part of the references that windows should have seen and did not, 0 to below 1 */
    double most;              /* what one reference of the run holds at most, where no window holds anything */
};

/* Half of the interval of 95 % around the mean. NAN: there are too few windows to say anything of the rest. */
double interval_error(const struct interval_windows *w);

#endif
