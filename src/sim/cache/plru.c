/* SPDX-License-Identifier: MIT */
/* A binary tree over the ways of a set: each bit says in which half the older line is. What was used turns the bits on its way
 * away from itself. With a number of ways that is no power of two the tree has leaves without a way, and a walk that would end there
 * takes the other half. Bits are numbered as in a heap: 1 is the root. */
#include "sim/cache/cache.h"

/* How many bits a way's number has. */
static unsigned depth_of(const struct cache *c)
{
    return c->ways > 1 ? 32 - (unsigned)__builtin_clz(c->ways - 1) : 0;
}

static unsigned plru_victim(struct cache *c, uint64_t set)
{
    unsigned node = 1, low = 0;

    for (unsigned size = 1u << depth_of(c) >> 1; size; size /= 2) {
        unsigned right = (unsigned)(c->order[set] >> node & 1) && low + size < c->ways;
        node = 2 * node + right;
        low += right ? size : 0;
    }
    return low;
}

static void plru_touch(struct cache *c, uint64_t set, unsigned way)
{
    uint64_t order = c->order[set];

    for (unsigned left = depth_of(c), node = 1; left-- > 0;) {
        unsigned right = way >> left & 1;
        order = (order & ~((uint64_t)1 << node)) | (uint64_t)!right << node; /* the other half is older now */
        node = 2 * node + right;
    }
    c->order[set] = order;
}

const struct replacement replacement_plru = { .name = "plru",
                                              .summary = "nearly the oldest line, by a tree of bits",
                                              .most_ways = 64,
                                              .stays = true,
                                              .mru_touch_is_noop = true,
                                              .victim = plru_victim,
                                              .touch = plru_touch,
                                              .fill = plru_touch };
