/* SPDX-License-Identifier: MIT */
/* A random sample of a cache's sets, by a hash of their numbers. A bit mask would not do: a stride that is a power of two would refer to
 * all sets of such a sample, or to none. */
#ifndef MAP_SOURCE_SET_SAMPLE_H
#define MAP_SOURCE_SET_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct set_sample {
    uint64_t *bits;     /* a bit per set: the set is in the sample; NULL: all sets are */
    uint64_t sets;      /* of the cache */
    uint64_t count;     /* sets of the sample */
    unsigned line_bits; /* log2 of the line size */
};

int set_sample_init(struct set_sample *c, uint64_t sets, uint32_t one_in, uint64_t seed,
                    unsigned line_bits); /* -1: no memory */
void set_sample_release(struct set_sample *c);

/* Distributes sets over `groups` groups (256 at most), by the same hash: groups are equal in size, also within any sample. Each group is a
 * random sample. -1: no memory. */
int set_sample_groups(uint64_t sets, uint64_t seed, unsigned groups, uint8_t *ret);

/* The hash; random windows use it, too. */
uint64_t set_sample_hash(uint64_t x);

/* Whether the sample lacks sets. The functions below are for this case only. */
static inline bool set_sample_is_partial(const struct set_sample *c)
{
    return c->bits != NULL;
}

static inline bool set_sample_has(const struct set_sample *c, uint64_t set)
{
    return c->bits[set / 64] >> set % 64 & 1;
}

/* The next piece of memory in sets of the sample: moves *at to its begin; false: there is none before `end`. */
bool set_sample_range(const struct set_sample *c, uint64_t *at, uint64_t end, uint64_t *ret_size);

#endif
