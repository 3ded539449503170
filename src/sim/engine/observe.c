/* SPDX-License-Identifier: MIT */
/* The outcome of a reference at a line, from the counts of the core before and after it. */
#include "sim/engine/simulation.h"

static void compare(const struct sim *s, const struct memory_counts *before, const struct memory_counts *after,
                    struct sim_reference *ret)
{
    ret->from_cache = after->from_caches != before->from_caches;
    ret->is_upgrade = after->upgrades != before->upgrades;
    ret->is_update = after->updates != before->updates;
    ret->waited = after->waited - before->waited;
    for (uint8_t level = 1; level < CONFIG_LEVELS; level++)
        if (after->hits[level] != before->hits[level])
            ret->level = level;
    if (after->misses == before->misses)
        return;
    if (!s->config.level[ret->level].is_shared)
        ret->level = SIM_BEYOND;
    for (uint8_t cause = 0; cause < MISS_KINDS; cause++)
        if (after->causes[cause] != before->causes[cause])
            ret->cause = cause;
}

void sim_observe(struct sim *s, const struct hw_thread *hw, const struct peet_record *r, const struct observed_line *at)
{
    bool crosses_only = r->id == SIM_NO_INSN;
    struct sim_reference ref = { .thread = hw->thread->sched.number,
                                 .cpu = hw->cpu,
                                 .insn = r->id,
                                 .site = crosses_only ? s->site : 0,
                                 .addr = r->addr,
                                 .data = r->addr,
                                 .now = at->now,
                                 .line = at->line,
                                 .own_line = at->own_line,
                                 .is_first = at->is_first,
                                 .kind = r->kind,
                                 .level = at->is_l2_hit,
                                 .cause = MISS_KINDS,
                                 .stall = hw->clock - at->now };

    if (crosses_only && at->is_first)
        ref.issue = (uint64_t)((r->size + 15u) / 16) * s->config.cost[PEET_CL_plain];
    if (at->before)
        compare(s, at->before, hw->counts, &ref);
    s->observer->reference(s->observer->self, &ref);
}

void sim_observe_sync(struct sim *s, const struct sim_thread *t, const struct peet_record *r, uint64_t data,
                      const struct observed_line *at, uint64_t stall)
{
    struct sim_reference ref = { .thread = t->sched.number,
                                 .cpu = t->waiter.cpu,
                                 .insn = SIM_NO_INSN,
                                 .site = t->site,
                                 .addr = r->addr,
                                 .data = data,
                                 .is_sync = true,
                                 .now = at->now,
                                 .line = at->line,
                                 .own_line = at->own_line,
                                 .is_first = true,
                                 .kind = r->kind,
                                 .level = at->is_l2_hit,
                                 .cause = MISS_KINDS,
                                 .issue = t->hw ? s->config.cost[PEET_CL_plain] : 0,
                                 .stall = stall };

    compare(s, at->before, hierarchy_counts(s->memory, t->waiter.cpu), &ref);
    s->observer->reference(s->observer->self, &ref);
}
