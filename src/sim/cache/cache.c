/* SPDX-License-Identifier: MIT */
#include "sim/cache/cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define X(name) &replacement_##name,
const struct replacement *const replacements[] = { REPLACEMENTS(X) NULL };
#undef X

const struct replacement *replacement_find(const char *name)
{
    for (size_t i = 0; replacements[i]; i++)
        if (!strcmp(replacements[i]->name, name))
            return replacements[i];
    return NULL;
}

int cache_init(struct cache *c, const struct cache_config *config)
{
    assert(config->line && (config->line & (config->line - 1)) == 0);
    uint64_t lines = config->bytes / config->line;
    uint32_t ways = config->ways ? config->ways : (uint32_t)lines;

    assert(ways && lines % ways == 0);
    *c = (struct cache){ .sets = lines / ways,
                         .ways = ways,
                         .shift = (uint32_t)__builtin_ctz(config->line),
                         .replacement = config->replacement,
                         .random = config->seed * 2 + 1 };
    c->mask = (c->sets & (c->sets - 1)) == 0 ? c->sets - 1 : 0;
    c->entry = calloc(lines, sizeof *c->entry);
    c->order = calloc(c->sets, sizeof *c->order);
    c->recent = calloc(c->sets, sizeof *c->recent);
    c->is_full = calloc(c->sets, sizeof *c->is_full);
    if (c->entry && c->order && c->recent && c->is_full)
        return 0;
    cache_release(c);
    return -1;
}

void cache_release(struct cache *c)
{
    free(c->entry);
    free(c->order);
    free(c->recent);
    free(c->is_full);
    *c = (struct cache){ 0 };
}

uint64_t *cache_find(struct cache *c, uint64_t line)
{
    uint64_t *e = c->entry + cache_set(c, line) * c->ways, *end = e + c->ways;
    uint64_t first = line << CACHE_STATE_BITS | 1; /* its entry in the first state; those in the others follow */

    for (; e < end; e++)
        if (*e - first < CACHE_STATES - 1)
            return e;
    return NULL;
}

/* There is no need to know it of all ways of very wide sets. */
static void note_recent(struct cache *c, uint64_t set, unsigned way)
{
    c->recent[set] = way <= UINT8_MAX ? (uint8_t)way : 0;
}

uint64_t *cache_touch(struct cache *c, uint64_t *entry)
{
    uint64_t set = cache_set(c, *entry >> CACHE_STATE_BITS), *first = c->entry + set * c->ways;
    unsigned way = (unsigned)(entry - first);

    c->replacement->touch(c, set, way);
    way = c->replacement->moves ? 0 : way;
    note_recent(c, set, way);
    return first + way;
}

uint64_t cache_put(struct cache *c, uint64_t line, unsigned state)
{
    uint64_t set = cache_set(c, line), *e = c->entry + set * c->ways, gone = 0;
    unsigned way = 0;

    assert(state && state < CACHE_STATES);
    if (c->is_full[set])
        way = c->ways;
    while (way < c->ways && cache_state(e[way]))
        way++;
    if (way == c->ways) {
        c->is_full[set] = true;
        way = c->replacement->victim(c, set);
        gone = e[way];
    }
    e[way] = line << CACHE_STATE_BITS | state;
    c->replacement->fill(c, set, way);
    note_recent(c, set, e[way] >> CACHE_STATE_BITS == line ? way : 0);
    return gone;
}

void cache_drop(struct cache *c, uint64_t *entry)
{
    c->is_full[cache_set(c, *entry >> CACHE_STATE_BITS)] = false;
    *entry = 0;
}
