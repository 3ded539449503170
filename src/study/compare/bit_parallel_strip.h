/* SPDX-License-Identifier: MIT */
/* A strip of the bit-parallel table, shared by the kernels of all vector widths. */
#ifndef STUDY_COMPARE_BIT_PARALLEL_STRIP_H
#define STUDY_COMPARE_BIT_PARALLEL_STRIP_H

#include <stddef.h>
#include <stdint.h>

enum { STRIP_MAX_WORDS = 16 }; /* words of 64 rows */

/* The two deltas that pass from a word to the next one below, in a byte. LCS uses CARRY_PLUS alone, for the carry of the addition. */
enum { CARRY_PLUS = 1, CARRY_MINUS = 2 };

struct strip {
    const uint64_t *match; /* [id × words + word]: rows of the strip with this symbol; id 0: no row */
    const uint16_t
        *id; /* by column; STRIP_MAX_WORDS zeros before column 0, and STRIP_MAX_WORDS + 4 after the last one */
    const uint8_t *in; /* by column: carries from the strip above; zeros after the last column, as of id */
    uint8_t *out;      /* by column: carries to the strip below */
    size_t columns;
    uint64_t plus[STRIP_MAX_WORDS];  /* result, by word: vertical deltas of +1 at the last column; LCS: 0 bits grow */
    uint64_t minus[STRIP_MAX_WORDS]; /* result, by word: vertical deltas of −1; edits only */
};

/* A kernel for strips of this number of words. */
struct strip_kernel {
    unsigned words;
    void (*run)(struct strip *s);
};

#endif
