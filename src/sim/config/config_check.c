/* SPDX-License-Identifier: MIT */
/* Conflicts between settings: what the ranges in the table of settings do not exclude. */
#include <inttypes.h>

#include "base/err.h"
#include "sim/config/settings.h"

/* Sets and ways of a cache of lines or pages, and the paths of their settings. */
struct geometry {
    uint64_t lines; /* in all its sets */
    uint32_t ways;
    const struct replacement *replacement;
    const char *lines_path, *ways_path, *replacement_path;
};

static int check_geometry(const struct geometry *g, struct conflict *ret, struct peet_err *err)
{
    uint64_t ways = g->ways ? g->ways : g->lines;
    uint64_t most = g->replacement->most_ways ? g->replacement->most_ways : UINT64_MAX;

    *ret = (struct conflict){ g->ways_path, g->lines_path };
    if (g->lines % ways)
        return err_set(err, PEET_ERR_USAGE, "%s: %" PRIu64 " ways do not divide %" PRIu64 " lines into sets", ret->path,
                       ways, g->lines);
    *ret = (struct conflict){ g->replacement_path, g->ways_path };
    if (ways > most)
        return err_set(err, PEET_ERR_USAGE,
                       "%s: %s can have %" PRIu64 " ways at most, and here are %" PRIu64 "; take lru or fewer ways",
                       ret->path, g->replacement->name, most, ways);
    return 0;
}

/* Paths of the settings of a cache. */
struct cache_paths {
    const char *bytes, *ways, *line, *shared, *replacement;
};
#define CACHE_PATHS(c) \
    { \
        c ".bytes", c ".ways", c ".line", c ".shared", c ".replacement" \
    }
static const struct cache_paths LEVEL_PATHS[CONFIG_LEVELS] = { CACHE_PATHS("cache.l1"), CACHE_PATHS("cache.l2"),
                                                               CACHE_PATHS("cache.l3") };
static const struct cache_paths I1_PATHS = CACHE_PATHS("cache.i1");

static int check_cache(const struct level_config *l, const struct cache_paths *p, struct conflict *ret,
                       struct peet_err *err)
{
    *ret = (struct conflict){ p->bytes, p->line };
    if (l->bytes % l->line)
        return err_set(err, PEET_ERR_USAGE, "%s: %" PRIu64 " bytes are no whole number of lines of %" PRIu32 " bytes",
                       p->bytes, l->bytes, l->line);
    struct geometry g = { .lines = l->bytes / l->line,
                          .ways = l->ways,
                          .replacement = l->replacement,
                          .lines_path = p->bytes,
                          .ways_path = p->ways,
                          .replacement_path = p->replacement };
    return l->bytes ? check_geometry(&g, ret, err) : 0;
}

/* A level and the one before it. */
static int check_pair(const struct machine_config *c, unsigned i, struct conflict *ret, struct peet_err *err)
{
    const struct level_config *l = &c->level[i], *before = l - 1;
    const struct cache_paths *p = &LEVEL_PATHS[i], *p_before = p - 1;

    *ret = (struct conflict){ p->bytes, p_before->bytes };
    if (!before->bytes)
        return err_set(err, PEET_ERR_USAGE, "%s: there is no level before it; give %s a size, too", p->bytes,
                       p_before->bytes);
    *ret = (struct conflict){ p->line, p_before->line };
    if (l->line != before->line)
        return err_set(err, PEET_ERR_USAGE, "%s: %" PRIu32 " is not %s, %" PRIu32 "; all levels have the same line",
                       p->line, l->line, p_before->line, before->line);
    *ret = (struct conflict){ p_before->shared, p->shared };
    if (before->is_shared && !l->is_shared)
        return err_set(err, PEET_ERR_USAGE, "%s: a shared level cannot stand before a private one; set %s, too",
                       p_before->shared, p->shared);
    return 0;
}

/* What the model does not know. */
static int check_model(const struct machine_config *c, struct conflict *ret, struct peet_err *err)
{
    *ret = (struct conflict){ "cache.l1.shared", "cache.l1.bytes" };
    if (c->level[0].bytes && c->level[0].is_shared)
        return err_set(err, PEET_ERR_USAGE, "cache.l1.shared: the first level is each processor's own");
    return 0;
}

/* What speculation needs of the machine. */
static int check_speculation(const struct machine_config *c, struct conflict *ret, struct peet_err *err)
{
    if (c->speculation.policy == SPECULATE_NONE)
        return 0;
    *ret = (struct conflict){ "speculation.policy", "coherence.protocol" };
    if (!c->protocol->extension)
        return err_set(err, PEET_ERR_USAGE, "%s: %s has no speculative states; take msi or mesi", ret->path,
                       c->protocol->name);
    ret->other = "barrier.kind";
    if (c->barrier != &barrier_wired && c->barrier != &barrier_ideal)
        return err_set(err, PEET_ERR_USAGE, "%s: caches do not see when a %s barrier opens; take wired or ideal",
                       ret->path, c->barrier->name);
    ret->other = "cache.l1.bytes";
    if (!c->level[0].bytes)
        return err_set(err, PEET_ERR_USAGE, "%s: there are no caches that could hold speculative lines", ret->path);
    ret->other = "order.model";
    if (config_has_store_buffers(c))
        return err_set(err, PEET_ERR_USAGE, "%s: stores in buffers cannot be rolled back; take the memory order sc",
                       ret->path);
    ret->other = "contexts";
    if (c->core_threads > 1)
        return err_set(err, PEET_ERR_USAGE, "%s: contexts of a processor would share its speculative lines; take one",
                       ret->path);
    for (unsigned i = 0; i < CONFIG_LEVELS && c->level[i].bytes; i++) {
        ret->other = i == 0 ? "cache.l1.write_through" : i == 1 ? "cache.l2.write_through" : "cache.l3.write_through";
        if (!c->level[i].is_shared && (c->level[i].is_write_through || !c->level[i].allocates))
            return err_set(err, PEET_ERR_USAGE,
                           "%s: speculative writes stay in the cache; take caches that write back and allocate",
                           ret->path);
    }
    return 0;
}

int config_find_conflict(const struct machine_config *c, struct conflict *ret, struct peet_err *err)
{
    const struct setting *s;
    int r = 0;

    for (size_t i = 0; r == 0 && (s = setting_at(i)); i++) {
        *ret = (struct conflict){ s->path, NULL };
        r = setting_check(s, c, err);
    }
    for (unsigned i = 0; r == 0 && i < CONFIG_LEVELS; i++) {
        r = check_cache(&c->level[i], &LEVEL_PATHS[i], ret, err);
        if (r == 0 && i && c->level[i].bytes)
            r = check_pair(c, i, ret, err);
    }
    if (r == 0)
        r = check_model(c, ret, err);
    if (r == 0)
        r = check_speculation(c, ret, err);
    if (r == 0)
        r = check_cache(&c->instructions, &I1_PATHS, ret, err);
    if (r == 0 && c->tlb.entries) {
        struct geometry g = { .lines = c->tlb.entries,
                              .ways = c->tlb.ways,
                              .replacement = c->tlb.replacement,
                              .lines_path = "tlb.entries",
                              .ways_path = "tlb.ways",
                              .replacement_path = "tlb.replacement" };
        r = check_geometry(&g, ret, err);
    }
    return r;
}

int config_check(const struct machine_config *c, struct peet_err *err)
{
    struct conflict conflict;

    return config_find_conflict(c, &conflict, err);
}
