/* SPDX-License-Identifier: MIT */
/* Any line goes; the same one in every run with the same seed. */
#include "sim/cache/cache.h"

static unsigned victim(struct cache *c, uint64_t set)
{
    (void)set;
    c->random ^= c->random << 13;
    c->random ^= c->random >> 7;
    c->random ^= c->random << 17;
    return (unsigned)((c->random >> 16) % c->ways);
}

static void nothing(struct cache *c, uint64_t set, unsigned way)
{
    (void)c;
    (void)set;
    (void)way;
}

const struct replacement replacement_random = { .name = "random",
                                                .summary = "any line, by a seed",
                                                .stays = true,
                                                .is_calm = true,
                                                .victim = victim,
                                                .touch = nothing,
                                                .fill = nothing };
