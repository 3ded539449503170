/* SPDX-License-Identifier: MIT */
/* What a machine with one processor tells who estimates from samples. */
#ifndef SIM_SOLO_SEEN_H
#define SIM_SOLO_SEEN_H

#include <stdint.h>

/* Something that a direct-mapped cache did that is alone, to a line at a reference. */
struct solo_seen {
    uint64_t line, number;
    uint64_t last; /* number of the last reference to what was there before; where nobody knows that: the leaf */
    uint64_t what; /* SOLO_USES and for how long it was not told, or the cell that missed it, and what is not known */
};
#define SOLO_USES (UINT64_C(1) << 63)
#define SOLO_UNKNOWN (UINT64_C(1) << 62)    /* what it had there before, so that perhaps it was no miss */
#define SOLO_MAYBE_COLD (UINT64_C(1) << 61) /* no sample has seen the line */

#endif
