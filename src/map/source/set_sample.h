/* SPDX-License-Identifier: MIT */
/* Some of a cache's sets, by a hash of their numbers, exactly as many as were asked for: strides that are powers of two would meet either
 * all or none of those that a bit mask chooses. */
#ifndef MAP_SOURCE_SET_SAMPLE_H
#define MAP_SOURCE_SET_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct set_sample {
    uint64_t *bits; /* by set; NULL: all are */
    uint64_t sets, count;
    unsigned line_bits;
};

int set_sample_init(struct set_sample *c, uint64_t sets, uint32_t one_in, uint64_t seed,
                    unsigned line_bits); /* -1: no memory */
void set_sample_release(struct set_sample *c);

/* Puts each set into one of so many groups (256 at most), by the same hash: however few are chosen, groups have as many of them as others, and each group could have been chosen
 * in place of another. -1: no memory */
int set_sample_groups(uint64_t sets, uint64_t seed, unsigned groups, uint8_t *ret);

/* Also what decides where a window begins. */
uint64_t set_sample_hash(uint64_t x);

/* Whether it is not all of them; what follows is for this case. */
static inline bool set_sample_is_partial(const struct set_sample *c)
{
    return c->bits != NULL;
}

static inline bool set_sample_has(const struct set_sample *c, uint64_t set)
{
    return c->bits[set / 64] >> set % 64 & 1;
}

/* The next piece of memory, from *at on, that is in chosen sets; false: there is none before the end. */
bool set_sample_range(const struct set_sample *c, uint64_t *at, uint64_t end, uint64_t *ret_size);

#endif
