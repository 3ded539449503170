/* SPDX-License-Identifier: MIT */
/* Anchors: runs of symbols that occur once in each of two strings, in the same order. They cut strings that are too long for a table into
 * parts that are compared one by one. The result is a bound: a shortest script need not pass through all anchors. */
#ifndef STUDY_COMPARE_ANCHORS_H
#define STUDY_COMPARE_ANCHORS_H

#include "study/compare/bit_parallel.h"

/* The first symbols of equal runs of both strings. */
struct anchor {
    size_t a, b;
};

/* Anchors in rising order of both strings; to be freed. Returns 0 or PEET_ERR_MEMORY. */
int anchors_find(struct string32 a, struct string32 b, struct anchor **ret, size_t *ret_count);

#endif
