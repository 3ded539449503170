/* SPDX-License-Identifier: MIT */
/* Distances of two strings by wavefronts, in time proportional to length × distance: for strings that are alike (Ukkonen 1985; Myers 1986).
 *
 * Wavefront e is, for each diagonal, the furthest row that e edits reach. One edit more comes from the diagonal or a neighbour, and continues
 * for free while both strings are equal. See docs/design/compare.md. */
#ifndef STUDY_COMPARE_WAVEFRONT_H
#define STUDY_COMPARE_WAVEFRONT_H

#include "study/compare/bit_parallel.h"

/* When a search is given up. */
struct wavefront_limit {
    uint64_t edits; /* more are not searched */
    double work;    /* points of wavefronts, and vectors of symbols compared */
    bool predicts;  /* gives up early if the progress so far predicts that `edits` will not do */
};

/* What a search found. A point (a, b) stands for the first a symbols of one string and the first b of the other. */
struct wavefront_result {
    bool is_found;
    uint64_t edits; /* is_found: the distance; otherwise: it is at least this */
    size_t a,
        b; /* of a split: a point on a shortest path; of a distance not found: the point furthest from the start */
    double work; /* that was done */
};

/* These return 0 or PEET_ERR_MEMORY. Strings have less than 2^31 symbols. */

/* Least number of insertions and deletions, or with `replaces` of insertions, deletions and replacements. */
int wavefront_distance(struct string32 a, struct string32 b, bool replaces, struct wavefront_limit limit,
                       enum vector_width w, struct wavefront_result *ret);

/* Insertions and deletions, from both ends: also finds the point after half of the edits. */
int wavefront_split(struct string32 a, struct string32 b, struct wavefront_limit limit, enum vector_width w,
                    struct wavefront_result *ret);

/* Symbols that two strings have in common at their start, at their end; `most` symbols are compared. */
size_t equal_start(const uint32_t *a, const uint32_t *b, size_t most, enum vector_width w);
size_t equal_end(const uint32_t *a_end, const uint32_t *b_end, size_t most, enum vector_width w);

#endif
