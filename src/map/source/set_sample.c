/* SPDX-License-Identifier: MIT */
#include "map/source/set_sample.h"

#include <stdlib.h>

uint64_t set_sample_hash(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* A set with its rank in the random order of sets. */
struct ranked {
    uint64_t hash, set; /* hash of seed and set; number of the set */
};

static int set_sample_compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    return (x->hash > y->hash) - (x->hash < y->hash);
}

/* All sets in the order in which a sample takes them; NULL: no memory. */
static struct ranked *set_sample_rank(uint64_t sets, uint64_t seed)
{
    struct ranked *ranked = calloc(sets, sizeof *ranked);

    for (uint64_t i = 0; ranked && i < sets; i++)
        ranked[i] = (struct ranked){ set_sample_hash(i + set_sample_hash(seed + 1)), i };
    if (ranked)
        qsort(ranked, sets, sizeof *ranked, set_sample_compare);
    return ranked;
}

int set_sample_init(struct set_sample *c, uint64_t sets, uint32_t one_in, uint64_t seed, unsigned line_bits)
{
    uint64_t wanted = sets / one_in;
    struct ranked *ranked = set_sample_rank(sets, seed);

    *c = (struct set_sample){ calloc(sets / 64 + 1, sizeof *c->bits), sets, wanted ? wanted : 1, line_bits };
    if (!ranked || !c->bits) {
        free(ranked);
        set_sample_release(c);
        return -1;
    }
    for (uint64_t i = 0; i < c->count; i++)
        c->bits[ranked[i].set / 64] |= (uint64_t)1 << ranked[i].set % 64;
    free(ranked);
    return 0;
}

int set_sample_groups(uint64_t sets, uint64_t seed, unsigned groups, uint8_t *ret)
{
    struct ranked *ranked = set_sample_rank(sets, seed);

    for (uint64_t i = 0; ranked && i < sets; i++)
        ret[ranked[i].set] = (uint8_t)(i % groups);
    if (!ranked)
        return -1;
    free(ranked);
    return 0;
}

void set_sample_release(struct set_sample *c)
{
    free(c->bits);
    *c = (struct set_sample){ 0 };
}

bool set_sample_range(const struct set_sample *c, uint64_t *at, uint64_t end, uint64_t *ret_size)
{
    uint64_t in_line = ((uint64_t)1 << c->line_bits) - 1, in_sets = c->sets - 1;

    while (*at < end && !set_sample_has(c, *at >> c->line_bits & in_sets))
        *at = (*at | in_line) + 1;
    uint64_t to = *at;
    while (to < end && set_sample_has(c, to >> c->line_bits & in_sets))
        to = (to | in_line) + 1;
    *ret_size = (to < end ? to : end) - *at;
    return *at < end;
}
