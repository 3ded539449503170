/* SPDX-License-Identifier: MIT */
/* Any line goes; the same one in every run with the same seed. */
#include "sim/cache/cache.h"

static unsigned random_victim(struct cache *c, uint64_t set)
{
    (void)set;
    c->random ^= c->random << 13;
    c->random ^= c->random >> 7;
    c->random ^= c->random << 17;
    return (unsigned)((c->random >> 16) % c->ways);
}

static void random_touch(struct cache *c, uint64_t set, unsigned way)
{
    (void)c;
    (void)set;
    (void)way;
}

const struct replacement replacement_random = { .name = "random",
                                                .summary = "any line, by a seed",
                                                .stays = true,
                                                .mru_touch_is_noop = true,
                                                .victim = random_victim,
                                                .touch = random_touch,
                                                .fill = random_touch };
