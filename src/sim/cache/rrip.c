/* SPDX-License-Identifier: MIT */
/* Static re-reference interval prediction (Jaleel and others, 2010) with two bits for each line: one that comes is expected to be
 * used in a long while (2), one that is used again soon (0), and the first that is not expected any more (3) goes. The bits of a set
 * are in two words' halves: its word holds 32 ways, and sets with more ways share bits between way i and i + 32. */
#include "sim/cache/cache.h"

enum { SOON = 0, LONG = 2, NEVER = 3, PER_WORD = 32 };

static unsigned rrip_get(const struct cache *c, uint64_t set, unsigned way)
{
    return c->order[set] >> way % PER_WORD * 2 & 3;
}

static void rrip_put(struct cache *c, uint64_t set, unsigned way, unsigned value)
{
    unsigned at = way % PER_WORD * 2;

    c->order[set] = (c->order[set] & ~((uint64_t)3 << at)) | (uint64_t)value << at;
}

static unsigned rrip_victim(struct cache *c, uint64_t set)
{
    unsigned ways = c->ways < PER_WORD ? c->ways : PER_WORD;

    for (;;) {
        for (unsigned i = 0; i < c->ways; i++)
            if (rrip_get(c, set, i) == NEVER)
                return i;
        for (unsigned i = 0; i < ways; i++)
            rrip_put(c, set, i, rrip_get(c, set, i) + 1);
    }
}

static void rrip_touch(struct cache *c, uint64_t set, unsigned way)
{
    rrip_put(c, set, way, SOON);
}

static void rrip_fill(struct cache *c, uint64_t set, unsigned way)
{
    rrip_put(c, set, way, LONG);
}

const struct replacement replacement_rrip = { .name = "rrip",
                                              .summary = "the line that is expected to be used last, by two bits",
                                              .most_ways = PER_WORD,
                                              .stays = true,
                                              .victim = rrip_victim,
                                              .touch = rrip_touch,
                                              .fill = rrip_fill };
