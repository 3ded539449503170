/* SPDX-License-Identifier: MIT */
/* The sample log: what a single direct-mapped level did, for the estimator of samples. docs/design/sampling.md. */
#ifndef SIM_EXEC_SAMPLE_LOG_H
#define SIM_EXEC_SAMPLE_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* An entry of the sample log: a miss, or the first use of a line in an epoch. */
struct sample_entry {
    uint64_t line, number; /* number of the line; number of the touch */
    uint64_t last;         /* number of the last touch: of the line that was removed, or, with SAMPLE_USE, of this one;
                              with SAMPLE_UNKNOWN: index of the path counts */
    uint64_t what;         /* SAMPLE_USE + touches within which this is the first use of the line that is noted; or the
                              index of the access counts of a miss, and the flags below */
};
#define SAMPLE_USE (UINT64_C(1) << 63)
#define SAMPLE_UNKNOWN (UINT64_C(1) << 62)    /* the set had an unknown line, so that this may be a hit */
#define SAMPLE_MAYBE_COLD (UINT64_C(1) << 61) /* no sample has seen the line */

/* The sets that are logged. Of the others, the estimator gets the first line of a window, and the number of misses by index of access counts. */
struct logged_sets {
    uint32_t offset; /* added to the hash of a set; differs between windows */
    uint32_t limit;  /* sets with at most that sum are logged; UINT32_MAX: all */
};
#define LOGGED_SETS_HASH UINT32_C(0x9e3779a0) /* a multiple of sizeof(struct l1_entry): code has sets in bytes */
static inline bool logged_sets_has(struct logged_sets c, uint64_t set)
{
    return (uint32_t)set * LOGGED_SETS_HASH + c.offset <= c.limit;
}

#endif
