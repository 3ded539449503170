/* SPDX-License-Identifier: MIT */
/* Whether all that a program has ever allocated fits into a cache: then no line is ever evicted, and the program misses each of them once at most.
 *
 * Memory is counted in pages, by the sets of the cache that a page's lines go to (its colour). It fits if no colour has more pages than the cache has ways, less
 * FOOTPRINT_SPARE, which are left for stacks, variables, and what the C library keeps for itself.
 *
 * Assumes that caches are indexed by virtual addresses, as simulated ones are without a TLB. */
#ifndef STUDY_PROFILE_SAMPLING_FOOTPRINT_H
#define STUDY_PROFILE_SAMPLING_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "peet/record.h"

enum { FOOTPRINT_SPARE = 2, FOOTPRINT_PAGE = 4096 };

struct footprint {
    struct map pages;    /* that were ever allocated, by number and process */
    uint32_t *of_colour; /* how many of them have a colour */
    uint64_t colours;
    uint32_t ways;
    bool is_larger; /* it does not fit, and is not counted any further */
};

/* bytes and ways: of the cache; one of fewer ways than FOOTPRINT_SPARE and one more never has room. */
void footprint_init(struct footprint *f, uint64_t bytes, uint32_t ways);
void footprint_release(struct footprint *f);

void footprint_event(struct footprint *f, uint32_t process, const struct peet_event *e); /* of any kind */

#endif
