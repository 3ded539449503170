/* SPDX-License-Identifier: MIT */
/* Whether all memory that a program ever allocates fits into a cache: then no line is evicted, and each line is missed at most once.
 *
 * Memory is counted in pages by colour: the sets of the cache to which a page's lines map. It fits if no colour has more pages than the cache has
 * ways less FOOTPRINT_SPARE, which are left for stacks, variables and data of the C library.
 *
 * Assumes caches that are indexed by virtual addresses, as simulated caches without a TLB are. */
#ifndef STUDY_PROFILE_SAMPLING_FOOTPRINT_H
#define STUDY_PROFILE_SAMPLING_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "peet/record.h"

enum { FOOTPRINT_SPARE = 2, FOOTPRINT_PAGE = 4096 };

/* All memory that was ever allocated, compared with a cache. */
struct footprint {
    struct map pages;    /* no values: pages that were ever allocated, by number and process */
    uint32_t *of_colour; /* number of these pages, by colour */
    uint64_t colours;    /* pages of a way of the cache */
    uint32_t ways;       /* of the cache */
    bool is_larger;      /* it does not fit; counting has stopped */
};

/* bytes, ways: of the cache. With up to FOOTPRINT_SPARE ways, nothing fits. */
void footprint_init(struct footprint *f, uint64_t bytes, uint32_t ways);
void footprint_release(struct footprint *f);

void footprint_event(struct footprint *f, uint32_t process, const struct peet_event *e); /* of any kind */

#endif
