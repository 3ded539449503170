/* SPDX-License-Identifier: MIT */
/* Makes and frees a hierarchy, and has its counts. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/coherence/step.h"
#include "sim/memory/core_caches.h"

static int init_cache(struct cache *c, const struct level_config *l, uint64_t seed)
{
    return cache_init(
        c, &(struct cache_config){
               .bytes = l->bytes, .ways = l->ways, .line = l->line, .replacement = l->replacement, .seed = seed });
}

static int init_processor(struct hierarchy *h, unsigned cpu)
{
    const struct machine_config *c = &h->config;
    struct core_caches *core = &h->cpu[cpu];
    int r = 0;

    core->number = cpu;
    core->last_fetch = UINT64_MAX;
    for (unsigned i = 0; r == 0 && i < h->private_levels; i++)
        r = init_cache(&core->level[i], &c->level[i], c->seed + cpu * CONFIG_LEVELS + i);
    if (r == 0 && c->instructions.bytes)
        r = init_cache(&core->instructions, &c->instructions, c->seed + cpu);
    if (r == 0 && c->tlb.entries)
        r = cache_init(&core->tlb, &(struct cache_config){ .bytes = (uint64_t)c->tlb.entries * c->tlb.page,
                                                           .ways = c->tlb.ways,
                                                           .line = c->tlb.page,
                                                           .replacement = c->tlb.replacement,
                                                           .seed = c->seed + cpu });
    return r;
}

/* The states of hits without side effect. A policy that notes every touch has none; with a TLB, tlb_hit_states alone are used. */
static void core_make_filter(struct hierarchy *h, unsigned cpu)
{
    static uint64_t nothing;
    const struct protocol *p = h->protocol;
    const struct cache *c = &h->cpu[cpu].level[0];
    struct l1_filter *f = &h->cpu[cpu].filter;
    *f = (struct l1_filter){ .mru = &nothing, .tlb_page = &nothing, .line = 1 };
    if (h->levels == 0)
        return;

    *f = (struct l1_filter){ .mask = c->mask,
                             .ways = c->ways,
                             .shift = c->shift,
                             .line = h->config.level[0].line,
                             .tlb_page = &nothing,
                             .page_shift = 63, /* programs are in the lower half */
                             .latency = h->config.level[0].latency };
    h->remote_read_keeps_readable = coherence_keeps_readable(p, BUS_READ);
    h->ignored_ops = 0;
    for (unsigned op = BUS_READ; op < BUS_OPS; op++)
        h->ignored_ops |= (uint32_t)coherence_is_ignored(p, op) << op;
    core_set_mode(h, &h->cpu[cpu], false);
}

void core_set_mode(struct hierarchy *h, struct core_caches *core, bool speculates)
{
    const struct protocol *p = h->protocol;
    const struct cache *c = &core->level[0];
    struct l1_filter *f = &core->filter;
    uint32_t *found = core->hit_states;
    bool is_noop = (c->replacement->mru_touch_is_noop || c->ways == 1) && (c->mask || c->sets == 1);
    bool usable = is_noop && !h->config.tlb.entries;
    enum own_event read = coherence_event(false, speculates), write = coherence_event(true, speculates);

    memset(found, 0, sizeof core->hit_states);
    for (unsigned s = 1; s < p->states; s++) {
        bool reads = coherence_is_hit(p, s, read), writes = coherence_is_hit(p, s, write);
        h->silent_next[speculates][s] = h->is_write_through_all ? 0 : (uint8_t)coherence_silent(p, s, write);
        found[PEET_LOAD] |= reads ? 1u << s | 1u << (s | TRACKED) : 0;
        found[PEET_STORE] |= writes && !h->config.level[0].is_write_through ? 1u << s : 0;
    }
    found[PEET_PREFETCH] = found[PEET_LOAD];
    found[PEET_UPDATE] = found[PEET_STORE];
    for (unsigned k = PEET_LOAD; k <= PEET_PREFETCH; k++) {
        f->hit_states[k] = usable ? found[k] : 0;
        f->tlb_hit_states[k] = is_noop ? found[k] : 0;
    }
    core->speculates = speculates;
    core->silent_next = h->silent_next[speculates];
}

int hierarchy_new(const struct machine_config *config, struct hierarchy **ret, struct peet_err *err)
{
    struct hierarchy *h = calloc(1, sizeof *h);
    int r = 0;

    if (!h)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a machine");
    h->config = *config;
    h->page_shift = config->tlb.page ? (unsigned)__builtin_ctz(config->tlb.page) : 12;
    h->protocol = config->protocol;
    h->cpus = config->cpus;
    while (h->levels < CONFIG_LEVELS && config->level[h->levels].bytes)
        h->levels++;
    h->is_write_through_all = true;
    while (h->private_levels < h->levels && !config->level[h->private_levels].is_shared)
        h->is_write_through_all &= config->level[h->private_levels++].is_write_through;
    assert((h->private_levels > 0 || h->levels == 0) && h->cpus > 0 && h->cpus <= CONFIG_MAX_CPUS);
    line_table_init(&h->line_table, h->cpus, config->level[0].line);
    h->homes.value_size = sizeof(uint32_t);
    h->has_directory = config->fabric_kind->has_directory;
    h->cpu = calloc(h->cpus, sizeof *h->cpu);
    for (unsigned i = 0; h->cpu && r == 0 && i < h->cpus; i++)
        if ((r = init_processor(h, i)) == 0) {
            core_make_filter(h, i);
            r = core_init_filter(h, &h->cpu[i]);
        }
    for (unsigned i = h->private_levels; r == 0 && i < h->levels; i++)
        r = init_cache(&h->shared[i], &config->level[i], config->seed + i);
    struct fabric_config fabric = config->fabric;
    fabric.cpus = h->cpus;
    fabric.line = h->levels ? config->level[0].line : 64;
    if (!h->cpu || r < 0 || fabric_init(&h->fabric, config->fabric_kind, &fabric) < 0) {
        hierarchy_free(h);
        return err_set(err, PEET_ERR_MEMORY, "no memory for the caches of the machine");
    }
    *ret = h;
    return 0;
}

void hierarchy_free(struct hierarchy *h)
{
    if (!h)
        return;
    for (unsigned i = 0; h->cpu && i < h->cpus; i++) {
        for (unsigned k = 0; k < h->private_levels; k++)
            cache_release(&h->cpu[i].level[k]);
        core_release_filter(&h->cpu[i]);
        cache_release(&h->cpu[i].tlb);
        cache_release(&h->cpu[i].instructions);
    }
    for (unsigned i = 0; i < CONFIG_LEVELS; i++)
        cache_release(&h->shared[i]);
    for (unsigned i = 0; h->shadow && i < h->cpus; i++)
        shadow_tags_release(&h->shadow[i]);
    free(h->shadow);
    fabric_release(&h->fabric);
    line_table_release(&h->line_table);
    map_release(&h->homes);
    speculative_release(h);
    program_counts_release(h->programs);
    free(h->cpu);
    free(h);
}

struct l1_filter *hierarchy_filter(struct hierarchy *h, unsigned cpu)
{
    return &h->cpu[cpu].filter;
}

void hierarchy_set_snoop_hook(struct hierarchy *h, snoop_hook *hook, void *self)
{
    h->snoop_hook = hook;
    h->snoop_self = self;
}

void hierarchy_keep_removals(struct hierarchy *h)
{
    const struct level_config *last = h->private_levels ? &h->config.level[h->private_levels - 1] : NULL;

    if (h->shadow || !last)
        return;
    h->line_table.keeps_tags = true;
    h->shadow = mem_alloc(h->cpus, sizeof *h->shadow);
    for (unsigned i = 0; i < h->cpus; i++) {
        shadow_tags_init(&h->shadow[i], (uint32_t)(last->bytes / last->line));
        h->cpu[i].filter.shadow = &h->shadow[i];
    }
}

void hierarchy_add_fetches(struct hierarchy *h, unsigned cpu, uint64_t lines)
{
    h->cpu[cpu].counts.fetches += lines;
    h->cpu[cpu].counts.fetch_stall += lines * h->config.instructions.latency;
}

void hierarchy_flush_core(struct hierarchy *h, unsigned cpu)
{
    struct memory_counts *n = &h->cpu[cpu].counts;
    struct l1_filter *f = &h->cpu[cpu].filter;

    for (unsigned kind = PEET_LOAD; kind <= PEET_PREFETCH; kind++) {
        uint64_t first = f->hits[kind] + f->silent_upgrades[kind], all = first + f->l2_hits[kind];
        n->reads += kind == PEET_STORE ? 0 : all;
        n->writes += kind == PEET_STORE || kind == PEET_UPDATE ? all : 0;
        n->hits[0] += first;
        n->hits[1] += f->l2_hits[kind];
        if (kind != PEET_PREFETCH)
            n->stall += first * f->latency + f->l2_hits[kind] * h->config.level[1].latency;
        f->hits[kind] = f->silent_upgrades[kind] = f->l2_hits[kind] = 0;
    }
}

void hierarchy_flush_counts(struct hierarchy *h)
{
    for (unsigned i = 0; i < h->cpus; i++)
        hierarchy_flush_core(h, i);
}

const struct memory_counts *hierarchy_counts(const struct hierarchy *h, unsigned cpu)
{
    return &h->cpu[cpu].counts;
}

const struct fabric_use *hierarchy_fabric(const struct hierarchy *h)
{
    return &h->fabric.use;
}
