/* SPDX-License-Identifier: MIT */
/* Why the second of two simulated runs takes more cycles: instructions, misses, waiting; by function, data, cause and lock. */
#ifndef STUDY_COMPARE_WHY_H
#define STUDY_COMPARE_WHY_H

#include "study/profile/profile.h"

/* Adds tables to a result. allow: the second run may take this fraction more cycles; top: rows of a table, 0: all. Both profiles are of one
 * machine and not sampled. Returns whether the second run takes more than is allowed. */
bool why_report(const struct profile *before, const struct profile *after, double allow, uint64_t top,
                struct result *ret);

#endif
