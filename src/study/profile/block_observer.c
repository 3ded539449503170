/* SPDX-License-Identifier: MIT */
/* The profiler as observer of the block engine, which counts references itself and reports totals (sim/exec/exec_blocks.h). */
#include "study/profile/profiler_in.h"

static void observe_object(void *context, uint32_t thread, uint32_t insn, uint64_t site, uint64_t addr,
                           struct object_bounds *ret)
{
    struct profiler *x = context;
    const struct object_cache *s =
        profiler_object_of(x, thread, addr, insn == SIM_NO_INSN ? profiler_call_place(x, site) : insn);

    *ret = (struct object_bounds){ s->start, s->end, s->origin, s->stride, s->access - 1, s->node != ANY_NODE };
}

static void observe_references(void *context, uint32_t access, uint64_t references, uint64_t writes, uint64_t compute)
{
    struct profiler *x = context;
    struct access_counts *c = &x->p->access[access];

    c->references += references;
    c->writes += writes;
    c->compute += compute;
}

static void observe_miss(void *context, const struct miss_report *m)
{
    struct profiler *x = context;
    struct profile *p = x->p;
    struct access_counts *c = &p->access[m->access];
    const struct sim_reference r = { .outcome = m->outcome };
    uint64_t misses = m->outcome.cause != MISS_KINDS ? m->count : 0;

    p->misses += misses;
    p->stall += m->stall;
    profiler_add_miss(x, c, m->outcome.removed_by, profile_cause_of(x, &r), misses, m->count, m->stall);
    if (m->offset != UINT64_MAX)
        member_costs_add(&p->members, c->object, m->offset, misses, m->stall);
}

static uint64_t observe_time_bin(void *context, uint64_t number, uint64_t misses, uint64_t stall)
{
    struct profiler *x = context;
    struct profile *p = x->p;

    if (x->bin) {
        x->bin->misses += misses;
        x->bin->stall += stall;
    }
    p->references = number;
    x->bin = profile_bin_now(p);
    return (uint64_t)(x->bin - p->over_time.bin + 1) * p->over_time.length;
}

static void observe_event(void *context, uint32_t thread, const struct peet_event *e)
{
    profiler_event(context, thread, e);
}

/* Path counts of library code for a thread that has not reached its first block. */
static uint32_t profiler_path_or_library(struct profiler *x, uint32_t path)
{
    return path == UINT32_MAX ? profiler_path(x, 0, PROFILE_NO_BLOCK) - 1 : path;
}

static bool observe_classify(void *context, struct exec_blocks *s, uint32_t access, uint32_t path, uint64_t line,
                             bool is_new, uint64_t number)
{
    struct profiler *x = context;
    struct access_counts *c = &x->p->access[access];
    bool is_known = sampled_classify(x->p->sampled, s, c->object, line, is_new, number);

    if (!is_known)
        profiler_add_unknown(x, c, profiler_path_or_library(x, path));
    return is_known;
}

static void observe_use(void *context, struct exec_blocks *s, uint64_t line, uint64_t number, uint64_t wait)
{
    struct profiler *x = context;

    sampled_use(x->p->sampled, s, line, number, wait);
}

static void observe_log(void *context, struct sample_entry *log, size_t n)
{
    struct profiler *x = context;

    for (size_t i = 0; i < n; i++) {
        if (log[i].what & SAMPLE_USE)
            continue;
        struct access_counts *c = &x->p->access[(uint32_t)log[i].what];
        if (log[i].what & SAMPLE_UNKNOWN)
            profiler_add_unknown(x, c, profiler_path_or_library(x, (uint32_t)log[i].last));
        log[i].what = (log[i].what & (SAMPLE_UNKNOWN | SAMPLE_MAYBE_COLD)) | c->object;
    }
    sampled_add_log(x->p->sampled, log, n);
}

static void observe_misses(void *context, const uint64_t *misses, uint32_t accesses, uint64_t maybe_cold)
{
    struct profiler *x = context;

    for (uint32_t i = 0; i < accesses; i++)
        if (misses[i])
            sampled_add_misses(x->p->sampled, x->p->access[i].object, misses[i]);
    sampled_add_cold(x->p->sampled, maybe_cold);
}

static struct logged_sets observe_choose_sets(void *context)
{
    const struct profiler *x = context;

    return sampled_choose_logged_sets(x->p->sampled);
}

static uint32_t observe_path_counts(void *context, uint32_t node, uint32_t block)
{
    return profiler_path(context, node, block) - 1;
}

static void observe_runs(void *context, uint32_t path, uint64_t runs, uint64_t cycles, uint64_t misses, uint64_t stall)
{
    struct profiler *x = context;

    x->p->compute += cycles;
    if (path != UINT32_MAX)
        profile_block_counts(x->p, x->p->paths.node[x->p->by_path[path].node].process, x->p->by_path[path].block)
            ->runs += runs;
    path = profiler_path_or_library(x, path);
    x->p->by_path[path].compute += cycles;
    x->p->by_path[path].misses += misses;
    x->p->by_path[path].stall += stall;
}

void profile_fill_bins(struct profile *p)
{
    profile_bin_now(p);
    for (unsigned i = 0; i < TIME_BINS; i++) {
        uint64_t before = i * p->over_time.length, left = p->references > before ? p->references - before : 0;
        p->over_time.bin[i].references = left < p->over_time.length ? left : p->over_time.length;
    }
}

struct block_observer profiler_block_observer(struct profiler *x)
{
    bool is_sampled = x->p->sampled != NULL;

    return (struct block_observer){ .self = x,
                                    .changes = objects_changes(x->p->objects),
                                    .object = observe_object,
                                    .references = observe_references,
                                    .miss = observe_miss,
                                    .time_bin = observe_time_bin,
                                    .paths = &x->p->paths,
                                    .source = x->source,
                                    .event = observe_event,
                                    .path_counts = observe_path_counts,
                                    .runs = observe_runs,
                                    .classify = is_sampled ? observe_classify : NULL,
                                    .use = is_sampled ? observe_use : NULL,
                                    .log = is_sampled ? observe_log : NULL,
                                    .misses = is_sampled ? observe_misses : NULL,
                                    .choose_sets = is_sampled ? observe_choose_sets : NULL,
                                    .jit_threshold = x->debug.jit_threshold };
}
