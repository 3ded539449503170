/* SPDX-License-Identifier: MIT */
/* A profile from a machine that counts by itself (sim/exec/exec_blocks.h). */
#include "study/profile/profiler.h"

static void watch_data(void *context, uint32_t thread, uint32_t insn, uint64_t site, uint64_t addr,
                       struct object_bounds *ret)
{
    struct running *x = context;
    const struct site *s = profile_site_of(x, thread, addr, insn == SIM_NO_INSN ? profile_call_place(x, site) : insn);

    *ret = (struct object_bounds){ s->start, s->end, s->origin, s->stride, s->cell - 1 };
}

static void watch_refer(void *context, uint32_t cell, uint64_t references, uint64_t writes, uint64_t compute)
{
    struct running *x = context;
    struct profile_cell *c = &x->p.cell[cell];

    c->references += references;
    c->writes += writes;
    c->compute += compute;
}

static void watch_miss(void *context, const struct miss_report *m)
{
    struct running *x = context;
    struct profile *p = &x->p;
    struct profile_cell *c = &p->cell[m->cell];
    const struct profile_cell *by = m->by == UINT32_MAX ? NULL : &p->cell[m->by];
    const struct sim_reference r = { .level = m->level, .cause = m->cause, .is_upgrade = m->is_upgrade };
    const struct loss loss = by ? (struct loss){ by->place, by->object } : (struct loss){ 0 };
    uint64_t misses = m->cause != MISS_KINDS ? m->count : 0;

    p->misses += misses;
    p->stall += m->stall;
    profile_see_miss(x, c, by ? &loss : NULL, profile_cause_of(x, &r, m->was_recent), misses, m->count, m->stall);
    if (m->offset != UINT64_MAX)
        members_add(&p->members, c->object, m->offset, misses, m->stall);
}

static uint64_t watch_window(void *context, uint64_t number, uint64_t misses, uint64_t stall)
{
    struct running *x = context;
    struct profile *p = &x->p;

    if (x->window) {
        x->window->misses += misses;
        x->window->stall += stall;
    }
    p->references = number;
    x->window = profile_window_now(p);
    return (uint64_t)(x->window - p->window + 1) * p->window_length;
}

static void watch_event(void *context, uint32_t thread, const struct peet_event *e)
{
    profile_see_event(context, thread, e);
}

/* Also of a thread that has not come to its first block. */
static uint32_t leaf_there(struct running *x, uint32_t leaf)
{
    return leaf == UINT32_MAX ? profile_near_leaf(x, 0, PROFILE_NO_BLOCK) - 1 : leaf;
}

static bool watch_knows(void *context, struct exec_blocks *s, uint32_t cell, uint32_t leaf, uint64_t line, bool is_new,
                        uint64_t number)
{
    struct running *x = context;
    struct profile_cell *c = &x->p.cell[cell];
    bool is_known = sampled_knows(x->p.sampled, s, c->object, line, is_new, number);

    if (!is_known)
        profile_see_unknown(x, c, leaf_there(x, leaf));
    return is_known;
}

static void watch_use(void *context, struct exec_blocks *s, uint64_t line, uint64_t number, uint64_t wait)
{
    struct running *x = context;

    sampled_use(x->p.sampled, s, line, number, wait);
}

static void watch_see(void *context, struct sample_entry *seen, size_t n)
{
    struct running *x = context;

    for (size_t i = 0; i < n; i++) {
        if (seen[i].what & SAMPLE_USE)
            continue;
        struct profile_cell *c = &x->p.cell[(uint32_t)seen[i].what];
        if (seen[i].what & SAMPLE_UNKNOWN)
            profile_see_unknown(x, c, leaf_there(x, (uint32_t)seen[i].last));
        seen[i].what = (seen[i].what & (SAMPLE_UNKNOWN | SAMPLE_MAYBE_COLD)) | c->object;
    }
    sampled_see(x->p.sampled, seen, n);
}

static void watch_missed(void *context, const uint64_t *misses, uint32_t cells, uint64_t maybe_cold)
{
    struct running *x = context;

    for (uint32_t i = 0; i < cells; i++)
        if (misses[i])
            sampled_missed(x->p.sampled, x->p.cell[i].object, misses[i]);
    sampled_add_cold(x->p.sampled, maybe_cold);
}

static struct logged_sets watch_choose(void *context)
{
    const struct running *x = context;

    return sampled_choose(x->p.sampled);
}

static uint32_t watch_leaf(void *context, uint32_t node, uint32_t block)
{
    return profile_near_leaf(context, node, block) - 1;
}

static void watch_run(void *context, uint32_t leaf, uint64_t runs, uint64_t cycles, uint64_t misses, uint64_t stall)
{
    struct running *x = context;

    x->p.compute += cycles;
    if (leaf != UINT32_MAX)
        profile_block_at(&x->p, x->p.paths.node[x->p.leaf[leaf].node].process, x->p.leaf[leaf].block)->runs += runs;
    leaf = leaf_there(x, leaf);
    x->p.leaf[leaf].compute += cycles;
    x->p.leaf[leaf].misses += misses;
    x->p.leaf[leaf].stall += stall;
}

void profile_fill_windows(struct profile *p)
{
    profile_window_now(p);
    for (unsigned i = 0; i < PROFILE_WINDOWS; i++) {
        uint64_t before = i * p->window_length, left = p->references > before ? p->references - before : 0;
        p->window[i].references = left < p->window_length ? left : p->window_length;
    }
}

struct block_observer profile_watch(struct running *x)
{
    bool is_sampled = x->p.sampled != NULL;

    return (struct block_observer){ x,
                                    objects_changes(x->p.objects),
                                    watch_data,
                                    watch_refer,
                                    watch_miss,
                                    watch_window,
                                    &x->p.paths,
                                    x->source,
                                    watch_event,
                                    watch_leaf,
                                    watch_run,
                                    is_sampled ? watch_knows : NULL,
                                    is_sampled ? watch_use : NULL,
                                    is_sampled ? watch_see : NULL,
                                    is_sampled ? watch_missed : NULL,
                                    is_sampled ? watch_choose : NULL,
                                    x->p.often };
}
