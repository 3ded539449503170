/* SPDX-License-Identifier: MIT */
/* The line that came first goes, used or not. The word of a set counts victims. */
#include "sim/cache/cache.h"

static unsigned victim(struct cache *c, uint64_t set)
{
    return (unsigned)(c->order[set]++ % c->ways);
}

static void nothing(struct cache *c, uint64_t set, unsigned way)
{
    (void)c;
    (void)set;
    (void)way;
}

const struct replacement replacement_fifo = {
    .name = "fifo", .summary = "the line that came first", .victim = victim, .touch = nothing, .fill = nothing
};
