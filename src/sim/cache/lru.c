/* SPDX-License-Identifier: MIT */
/* The line that has not been used for the longest time goes. The ways of a set stand in this order, the newest first. */
#include "sim/cache/cache.h"

static unsigned victim(struct cache *c, uint64_t set)
{
    (void)set;
    return c->ways - 1;
}

static void to_front(struct cache *c, uint64_t set, unsigned way)
{
    uint64_t *e = c->entry + set * c->ways, kept = e[way];

    for (; way > 0; way--)
        e[way] = e[way - 1];
    e[0] = kept;
}

const struct replacement replacement_lru = { .name = "lru",
                                             .summary = "the line that was not used for the longest time",
                                             .moves = true,
                                             .is_calm = true,
                                             .victim = victim,
                                             .touch = to_front,
                                             .fill = to_front };
