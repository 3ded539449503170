/* SPDX-License-Identifier: MIT */
/* A profile in other tools' formats. Both return -1 if it could not be written. */
#ifndef STUDY_PROFILE_EXPORT_EXPORT_H
#define STUDY_PROFILE_EXPORT_EXPORT_H

#include <stdio.h>

#include "study/profile/profile.h"

/* Callgrind's: costs by file, function and line, and calls with what they cost inclusively. A function that is inlined is one of its own, called from where it is
 * inlined. How often a call was made is known where it is one and has one target; else it is 1. */
int profile_callgrind(const struct profile *p, FILE *out);

/* "main;solve;row 1234" for each call path: cycles, compute and stall; functions that are inlined have their own frames. */
int profile_stacks(const struct profile *p, FILE *out);

#endif
