/* SPDX-License-Identifier: MIT */
#include "sim/cache/cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_LINE = 64 };

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

static void *some_host_lines(size_t bytes)
{
    size_t whole = (bytes + HOST_LINE - 1) / HOST_LINE * HOST_LINE;
    void *p = aligned_alloc(HOST_LINE, whole);

    if (p)
        memset(p, 0, whole);
    return p;
}

static int init_tags(struct cache *c)
{
    c->tags = (c->ways + CACHE_COMPARED - 1) / CACHE_COMPARED * CACHE_COMPARED;
    c->tag_shift = c->mask ? (uint32_t)__builtin_popcountll(c->mask) : 0;
    c->tag = some_host_lines(c->sets * c->tags * sizeof *c->tag);
    return c->tag ? 0 : -1;
}

/* A ranked set's first way is the one that was used last. */
static void init_ranks(struct cache *c)
{
    c->recent = c->order;
    c->recent_mask = CACHE_RANKED_WAYS - 1;
    for (uint64_t i = 0; i < c->sets; i++)
        c->order[i] = 0xfedcba9876543210;
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
                         .is_ranked = config->replacement->touch_reorders && ways <= CACHE_RANKED_WAYS,
                         .replacement = config->replacement,
                         .random = config->seed * 2 + 1 };
    c->mask = (c->sets & (c->sets - 1)) == 0 ? c->sets - 1 : 0;
    c->entry = some_host_lines((lines + CACHE_RANKED_WAYS)
                               * sizeof *c->entry); /* more tags are compared than there are ways */
    c->order = calloc(c->sets, sizeof *c->order);
    c->is_full = calloc(c->sets, sizeof *c->is_full);
    c->recent = c->is_ranked ? NULL : calloc(c->sets, sizeof *c->recent);
    c->recent_mask = UINT64_MAX;
    bool has_tags = c->is_ranked || (config->replacement->stays && ways <= CACHE_RANKED_WAYS);
    if (!c->entry || !c->order || !c->is_full || (!c->is_ranked && !c->recent) || (has_tags && init_tags(c) < 0)) {
        cache_release(c);
        return -1;
    }
    if (c->is_ranked)
        init_ranks(c);
    return 0;
}

void cache_release(struct cache *c)
{
    free(c->entry);
    free(c->tag);
    if (c->recent != c->order)
        free(c->recent);
    free(c->order);
    free(c->is_full);
    *c = (struct cache){ 0 };
}

uint64_t *cache_touch_other(struct cache *c, uint64_t set, uint64_t *entry)
{
    uint64_t *first = c->entry + set * c->ways;
    unsigned way = (unsigned)(entry - first);

    c->replacement->touch(c, set, way);
    way = c->replacement->touch_reorders ? 0 : way;
    c->recent[set] = way;
    return first + way;
}

/* A way of the set that has no line; c->ways: there is none. */
static unsigned free_way(struct cache *c, uint64_t set)
{
    const uint64_t *e = c->entry + set * c->ways;
    unsigned way = 0;

    if (c->is_full[set])
        return c->ways;
    while (way < c->ways && cache_state(e[way]))
        way++;
    c->is_full[set] = way == c->ways;
    return way;
}

static uint64_t put_ranked(struct cache *c, uint64_t set, uint64_t line, unsigned state)
{
    uint64_t *e = c->entry + set * c->ways;
    unsigned way = free_way(c, set);

    if (way < c->ways)
        cache_rank(c, set, way);
    else
        way = cache_rank_oldest(c, set);
    uint64_t victim = e[way];
    e[way] = line << CACHE_STATE_BITS | state;
    cache_set_tag(c, set, way, line);
    return cache_state(victim) ? victim : 0;
}

uint64_t cache_put(struct cache *c, uint64_t line, unsigned state)
{
    uint64_t set = cache_set(c, line), *e = c->entry + set * c->ways, victim = 0;

    assert(state && state < CACHE_STATES);
    if (c->is_ranked)
        return put_ranked(c, set, line, state);
    unsigned way = free_way(c, set);
    if (way == c->ways) {
        way = c->replacement->victim(c, set);
        victim = e[way];
    }
    e[way] = line << CACHE_STATE_BITS | state;
    cache_set_tag(c, set, way, line);
    c->replacement->fill(c, set, way);
    c->recent[set] = e[way] >> CACHE_STATE_BITS == line ? way : 0;
    return victim;
}

void cache_drop(struct cache *c, uint64_t *entry)
{
    c->is_full[cache_set(c, *entry >> CACHE_STATE_BITS)] = false;
    *entry = 0;
}

void cache_move_first(struct cache *c, uint64_t set, unsigned way)
{
    uint64_t *e = c->entry + set * c->ways, entry = e[way];

    memmove(e + 1, e, way * sizeof *e);
    e[0] = entry;
}
