/* SPDX-License-Identifier: MIT */
/* The line that has not been used for the longest time goes. In sets of up to CACHE_RANKED_WAYS ways, which are most, lines stay where they
 * are, and a word has the numbers of the ways in this order (cache_rank). The ways of wider ones stand in it, the newest first. */
#include "sim/cache/cache.h"

static unsigned lru_victim(struct cache *c, uint64_t set)
{
    (void)set;
    return c->ways - 1;
}

const struct replacement replacement_lru = { .name = "lru",
                                             .summary = "the line that was not used for the longest time",
                                             .touch_reorders = true,
                                             .mru_touch_is_noop = true,
                                             .victim = lru_victim,
                                             .touch = cache_move_first,
                                             .fill = cache_move_first };
