/* SPDX-License-Identifier: MIT */
/* The line that came first goes, used or not. The ways of a set stand in this order, the newest first: a count of victims would not
 * do, for what comes after a line was dropped takes its way, and is new. */
#include "sim/cache/cache.h"

static unsigned fifo_victim(struct cache *c, uint64_t set)
{
    (void)set;
    return c->ways - 1;
}

static void fifo_touch(struct cache *c, uint64_t set, unsigned way)
{
    (void)c;
    (void)set;
    (void)way;
}

const struct replacement replacement_fifo = { .name = "fifo",
                                              .summary = "the line that came first",
                                              .mru_touch_is_noop = true,
                                              .victim = fifo_victim,
                                              .touch = fifo_touch,
                                              .fill = cache_move_first };
