/* SPDX-License-Identifier: MIT */
/* Distances of two strings by bit-parallel dynamic programming, exact, in time n × m / (bits of a vector).
 *
 * Longest common subsequence: Crochemore et al. (2001), Hyyrö (2004). Edit distance: Myers (1999) in Hyyrö's form with horizontal deltas.
 * A strip is the rows that vectors hold at a time. The words of a strip are skewed: word k computes column t − k in step t, so that the carry of a
 * word reaches the next one a step later, and all words compute at the same time. See docs/design/compare.md. */
#ifndef STUDY_COMPARE_BIT_PARALLEL_H
#define STUDY_COMPARE_BIT_PARALLEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A string of symbols: numbers below 2^31. */
struct string32 {
    const uint32_t *at;
    size_t count;
};

static inline struct string32 string32_part(struct string32 s, size_t first, size_t end)
{
    return (struct string32){ s.at + first, end - first };
}

/* Vectors that an engine computes with. Results do not depend on it. */
enum vector_width { VECTOR_PORTABLE, VECTOR_AVX2, VECTOR_AVX512, VECTOR_WIDTHS };

bool vector_width_is_supported(enum vector_width w);
enum vector_width vector_width_best(void); /* the widest that is supported */

/* Symbols of all strings of a call are below `symbols`. These return 0 or PEET_ERR_MEMORY. */

/* Length of the longest common subsequence of a and b. `grows`, unless NULL: bit i is set if LCS(a[0, i], b) > LCS(a[0, i − 1], b);
 * (a.count + 63) / 64 words. */
int bit_parallel_lcs(struct string32 a, struct string32 b, uint32_t symbols, enum vector_width w, uint64_t *grows,
                     uint64_t *ret);

/* Least number of insertions, deletions and replacements that make b of a. */
int bit_parallel_edits(struct string32 a, struct string32 b, uint32_t symbols, enum vector_width w, uint64_t *ret);

#endif
