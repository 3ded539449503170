/* SPDX-License-Identifier: MIT */
/* How a reference went, from what the processor has counted before it and behind it. */
#include "sim/state.h"

static void compare(const struct sim *s, const struct memory_counts *before, const struct memory_counts *after,
                    struct sim_reference *ret)
{
    ret->from_cache = after->from_caches != before->from_caches;
    ret->is_upgrade = after->upgrades != before->upgrades;
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

void sim_observe(struct sim *s, const struct place *p, const struct peet_record *r, const struct memory_counts *before,
                 uint64_t behind, uint64_t now)
{
    struct sim_reference seen = { .context = p->context->sched.number,
                                  .cpu = p->cpu,
                                  .insn = r->id,
                                  .site = r->id == SIM_NO_INSN ? s->site : 0,
                                  .addr = r->addr,
                                  .now = now,
                                  .size = r->size,
                                  .kind = r->kind,
                                  .level = behind > 0,
                                  .cause = MISS_KINDS,
                                  .stall = p->clock - now };

    if (r->id == SIM_NO_INSN)
        seen.issue = (uint64_t)((r->size + 15u) / 16) * s->config.cost[PEET_CL_plain];

    if (before)
        compare(s, before, p->counts, &seen);
    s->observer->reference(s->observer->context, &seen);
}
