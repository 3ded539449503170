/* SPDX-License-Identifier: MIT */
/* What a machine with one processor tells who estimates from samples. */
#ifndef SIM_EXEC_SAMPLE_LOG_H
#define SIM_EXEC_SAMPLE_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* Something that a direct-mapped cache did that is alone, to a line at a reference. */
struct sample_entry {
    uint64_t line, number;
    uint64_t last; /* number of the last reference to what was there before; where nobody knows that: the leaf */
    uint64_t what; /* SAMPLE_USE and for how long it was not told, or the cell that missed it, and what is not known */
};
#define SAMPLE_USE (UINT64_C(1) << 63)
#define SAMPLE_UNKNOWN (UINT64_C(1) << 62)    /* what it had there before, so that perhaps it was no miss */
#define SAMPLE_MAYBE_COLD (UINT64_C(1) << 61) /* no sample has seen the line */

/* Sets of which it is told what they do; of the others it knows only what comes to them first in a sample, and how many misses there were, by cell. */
struct logged_sets {
    uint32_t turn; /* these are other ones in every sample */
    uint32_t limit;
};
#define LOGGED_SETS_HASH UINT32_C(0x9e3779a0) /* a multiple of what an entry has bytes: code has sets as bytes */
static inline bool logged_sets_has(struct logged_sets c, uint64_t set)
{
    return (uint32_t)set * LOGGED_SETS_HASH + c.turn <= c.limit;
}

#endif
