/* SPDX-License-Identifier: MIT */
/* A profile in other tools' formats. Both return -1 if it could not be written. */
#ifndef STUDY_PROFILE_EXPORT_EXPORT_H
#define STUDY_PROFILE_EXPORT_EXPORT_H

#include <stdio.h>

#include "study/profile/profile.h"

/* Callgrind's: costs by file, function and line, and calls with what they cost inclusively. An inlined function is a separate function, called from where it is
 * inlined. The number of calls is known if a call has one target; otherwise it is 1. */
int profile_callgrind(const struct profile *p, FILE *out);

/* "main;solve;row 1234" for each call path: cycles, compute and stall; functions that are inlined have their own frames. */
int profile_stacks(const struct profile *p, FILE *out);

#endif
