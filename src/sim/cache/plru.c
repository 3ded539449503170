/* SPDX-License-Identifier: MIT */
/* A binary tree over the ways of a set: each bit says in which half the older line is. What was used turns the bits on its way
 * away from itself. With a number of ways that is no power of two the tree has leaves without a way, and a walk that would end there
 * takes the other half. Bits are numbered as in a heap: 1 is the root. */
#include "sim/cache/cache.h"

static unsigned leaves_of(const struct cache *c)
{
    unsigned n = 1;

    while (n < c->ways)
        n *= 2;
    return n;
}

static unsigned victim(struct cache *c, uint64_t set)
{
    unsigned node = 1, low = 0, size = leaves_of(c);

    while (size > 1) {
        size /= 2;
        unsigned right = (unsigned)(c->order[set] >> node & 1) && low + size < c->ways;
        node = 2 * node + right;
        low += right ? size : 0;
    }
    return low;
}

static void touch(struct cache *c, uint64_t set, unsigned way)
{
    unsigned node = 1, low = 0, size = leaves_of(c);

    while (size > 1) {
        size /= 2;
        unsigned right = way >= low + size;
        uint64_t bit = (uint64_t)1 << node;
        c->order[set] = right ? c->order[set] & ~bit : c->order[set] | bit; /* the other half is older now */
        node = 2 * node + right;
        low += right ? size : 0;
    }
}

const struct replacement replacement_plru = { .name = "plru",
                                              .summary = "nearly the oldest line, by a tree of bits",
                                              .is_calm = true,
                                              .victim = victim,
                                              .touch = touch,
                                              .fill = touch };
