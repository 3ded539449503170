/* SPDX-License-Identifier: MIT */
/* Making caches and what connects them, and what others want to know of them. */
#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "sim/memory/core_local.h"

static int init_cache(struct cache *c, const struct level_config *l, uint64_t seed)
{
    return cache_init(
        c, &(struct cache_config){
               .bytes = l->bytes, .ways = l->ways, .line = l->line, .replacement = l->replacement, .seed = seed });
}

static int init_processor(struct memory *m, unsigned cpu)
{
    const struct machine_config *c = &m->config;
    struct processor *p = &m->cpu[cpu];
    int r = 0;

    p->number = cpu;
    p->last_fetch = UINT64_MAX;
    for (unsigned i = 0; r == 0 && i < m->private_levels; i++)
        r = init_cache(&p->level[i], &c->level[i], c->seed + cpu * CONFIG_LEVELS + i);
    if (r == 0 && c->instructions.bytes)
        r = init_cache(&p->instructions, &c->instructions, c->seed + cpu);
    if (r == 0 && c->tlb.entries)
        r = cache_init(&p->tlb, &(struct cache_config){ .bytes = (uint64_t)c->tlb.entries * c->tlb.page,
                                                        .ways = c->tlb.ways,
                                                        .line = c->tlb.page,
                                                        .replacement = c->tlb.replacement,
                                                        .seed = c->seed + cpu });
    return r;
}

/* What needs nobody's help. With a TLB every reference has to be looked at, and with a replacement that wants to know of each, too. */
static void find_front(struct memory *m, unsigned cpu)
{
    static uint64_t nothing;
    const struct protocol *p = m->protocol;
    const struct cache *c = &m->cpu[cpu].level[0];
    struct memory_front *f = &m->cpu[cpu].front;
    *f = (struct memory_front){ .top = &nothing, .page = &nothing, .line = 1 };
    if (m->levels == 0)
        return;
    bool calm = (c->replacement->is_calm || c->ways == 1) && (c->mask || c->sets == 1);
    bool usable = calm && !m->config.tlb.entries;

    *f = (struct memory_front){ .mask = c->mask,
                                .ways = c->ways,
                                .shift = c->shift,
                                .line = m->config.level[0].line,
                                .page = &nothing,
                                .page_shift = 63, /* programs are in the lower half */
                                .latency = m->config.level[0].latency };
    for (unsigned s = 1; s < p->states; s++)
        m->silent[s] = p->own[s][OWN_WRITE].op == BUS_NONE && !m->goes_through ? p->own[s][OWN_WRITE].alone : 0;
    uint32_t *found = m->cpu[cpu].found;
    for (unsigned s = 1; s < p->states; s++) {
        const struct own_cell *w = &p->own[s][OWN_WRITE];
        bool reads = p->flags[s] & STATE_READABLE, writes = p->flags[s] & STATE_WRITABLE && w->alone == s;
        found[PEET_LOAD] |= reads ? 1u << s | 1u << (s | WATCHED) : 0;
        found[PEET_STORE] |= writes && !m->config.level[0].is_write_through ? 1u << s : 0;
    }
    m->reads_stay = true;
    for (unsigned s = 1; s < p->states; s++)
        m->reads_stay &= !(p->flags[s] & STATE_READABLE) || p->flags[p->snoop[s][BUS_READ].next] & STATE_READABLE;
    found[PEET_PREFETCH] = found[PEET_LOAD];
    found[PEET_UPDATE] = found[PEET_STORE];
    for (unsigned k = PEET_LOAD; k <= PEET_PREFETCH; k++) {
        f->fast[k] = usable ? found[k] : 0;
        f->calm[k] = calm ? found[k] : 0;
    }
}

int memory_new(const struct machine_config *config, struct memory **ret, struct peet_err *err)
{
    struct memory *m = calloc(1, sizeof *m);
    int r = 0;

    if (!m)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a machine");
    m->config = *config;
    m->page_shift = config->tlb.page ? (unsigned)__builtin_ctz(config->tlb.page) : 12;
    m->protocol = config->protocol;
    m->cpus = config->cpus;
    while (m->levels < CONFIG_LEVELS && config->level[m->levels].bytes)
        m->levels++;
    m->goes_through = true;
    while (m->private_levels < m->levels && !config->level[m->private_levels].is_shared)
        m->goes_through &= config->level[m->private_levels++].is_write_through;
    assert((m->private_levels > 0 || m->levels == 0) && m->cpus > 0 && m->cpus <= CONFIG_MAX_CPUS);
    histories_init(&m->histories, m->cpus, config->level[0].line);
    m->homes.value_size = sizeof(uint32_t);
    m->has_directory = config->fabric_kind->has_directory;
    m->cpu = calloc(m->cpus, sizeof *m->cpu);
    for (unsigned i = 0; m->cpu && r == 0 && i < m->cpus; i++)
        if ((r = init_processor(m, i)) == 0) {
            find_front(m, i);
            r = near_init(m, &m->cpu[i]);
        }
    for (unsigned i = m->private_levels; r == 0 && i < m->levels; i++)
        r = init_cache(&m->shared[i], &config->level[i], config->seed + i);
    struct fabric_config fabric = config->fabric;
    fabric.cpus = m->cpus;
    fabric.line = m->levels ? config->level[0].line : 64;
    if (!m->cpu || r < 0 || fabric_init(&m->fabric, config->fabric_kind, &fabric) < 0) {
        memory_free(m);
        return err_set(err, PEET_ERR_MEMORY, "no memory for the caches of the machine");
    }
    *ret = m;
    return 0;
}

void memory_free(struct memory *m)
{
    if (!m)
        return;
    for (unsigned i = 0; m->cpu && i < m->cpus; i++) {
        for (unsigned k = 0; k < m->private_levels; k++)
            cache_release(&m->cpu[i].level[k]);
        near_release(&m->cpu[i]);
        cache_release(&m->cpu[i].tlb);
        cache_release(&m->cpu[i].instructions);
    }
    for (unsigned i = 0; i < CONFIG_LEVELS; i++)
        cache_release(&m->shared[i]);
    fabric_release(&m->fabric);
    histories_release(&m->histories);
    map_release(&m->homes);
    programs_release(m->programs);
    free(m->cpu);
    free(m);
}

struct memory_front *memory_front(struct memory *m, unsigned cpu)
{
    return &m->cpu[cpu].front;
}

void memory_set_watcher(struct memory *m, memory_watcher *watcher, void *context)
{
    m->watcher = watcher;
    m->watching = context;
}

void memory_set_loser(struct memory *m, void (*loser)(void *context, unsigned cpu, uint64_t line, enum lost how),
                      void *context)
{
    m->loser = loser;
    m->losing = context;
}

void memory_add_fetches(struct memory *m, unsigned cpu, uint64_t lines)
{
    m->cpu[cpu].counts.fetches += lines;
    m->cpu[cpu].counts.fetch_stall += lines * m->config.instructions.latency;
}

void memory_settle_one(struct memory *m, unsigned cpu)
{
    struct memory_counts *n = &m->cpu[cpu].counts;
    struct memory_front *f = &m->cpu[cpu].front;

    for (unsigned kind = PEET_LOAD; kind <= PEET_PREFETCH; kind++) {
        uint64_t first = f->easy[kind] + f->silent[kind], all = first + f->behind[kind];
        n->reads += kind == PEET_STORE ? 0 : all;
        n->writes += kind == PEET_STORE || kind == PEET_UPDATE ? all : 0;
        n->hits[0] += first;
        n->hits[1] += f->behind[kind];
        if (kind != PEET_PREFETCH)
            n->stall += first * f->latency + f->behind[kind] * m->config.level[1].latency;
        f->easy[kind] = f->silent[kind] = f->behind[kind] = 0;
    }
}

void memory_settle(struct memory *m)
{
    for (unsigned i = 0; i < m->cpus; i++)
        memory_settle_one(m, i);
}

const struct memory_counts *memory_counts(const struct memory *m, unsigned cpu)
{
    return &m->cpu[cpu].counts;
}

const struct fabric_use *memory_fabric(const struct memory *m)
{
    return &m->fabric.use;
}
