/* SPDX-License-Identifier: MIT */
/* The machine as the modules of locks and barriers see it (struct sync_host): references to their words, and wake-ups. */
#include "sim/engine/simulation.h"

/* A reference by a lock or barrier changes the caches of a core, possibly for a thread that does not run there any more. */
static void host_before_access(struct sim *s, unsigned cpu)
{
    if (s->config.core_threads == 1)
        sim_roll_back(s, &s->hw_thread[cpu], s->step.now, s->step.number);
    hierarchy_filter(s->memory, cpu)->changes++;
}

/* The block executor makes the reference, and counts its cycles as compute and stall. */
static uint64_t sync_access_blocks(struct sim *s, const struct sim_thread *t, const struct peet_record *r,
                                   uint64_t data, uint64_t now, struct sync_time *ret)
{
    blocks_clock(s->block_exec)->clock = now;
    uint64_t cycles =
        blocks_sync_access(s->block_exec, t->sched.number, r, data, t->site, s->config.cost[PEET_CL_plain]);
    *ret = (struct sync_time){ .counted = cycles };
    return cycles;
}

/* The caches of the core make the reference. */
static uint64_t sync_access_caches(struct sim *s, const struct sim_thread *t, const struct peet_record *r,
                                   uint64_t data, uint64_t now, struct sync_time *ret)
{
    unsigned cpu = t->waiter.cpu;
    struct l1_filter *filter = hierarchy_filter(s->memory, cpu);
    const struct memory_counts *counts = hierarchy_counts(s->memory, cpu), before = *counts;
    uint64_t behind = filter->behind[r->kind];
    uint64_t cycles = hierarchy_access(s->memory, cpu, r->addr, r->size, (enum peet_kind)r->kind, now);
    uint64_t stall = sim_beyond(&s->config, r->kind, cycles), waited = counts->waited - before.waited;

    waited = waited < stall ? waited : stall;
    *ret = (struct sync_time){ .compute = cycles - stall, .stall = stall - waited, .bus = waited };
    if (s->observer)
        sim_observe_sync(s, t, r, data,
                         &(struct observed_line){ .line = sim_line(s, r->addr),
                                                  .own_line = sim_line(s, data),
                                                  .now = now,
                                                  .before = &before,
                                                  .is_first = true,
                                                  .is_l2_hit = filter->behind[r->kind] != behind },
                         t->hw ? cycles : 0);
    return cycles;
}

/* A reference of a lock or barrier. A thread without a hardware thread loses no time by it. */
static uint64_t host_access(void *self, const struct sync_waiter *waiter, uint64_t object, uint64_t addr,
                            enum peet_kind kind, uint64_t now)
{
    struct sim *s = self;
    struct sim_thread *t = &s->thread[waiter->number];
    uint32_t cost = s->config.cost[PEET_CL_plain];
    struct peet_record r = { .addr = addr, .id = SIM_NO_INSN, .size = SYNC_WORD, .kind = kind };
    struct sync_time took;

    s->counts.references++;
    s->counts.sync_references++;
    host_before_access(s, waiter->cpu);
    uint32_t space;
    uint64_t data = spaces_untag(&s->spaces, object, &space);
    if (s->mode.translates && sync_is_word(addr))
        hierarchy_filter(s->memory, waiter->cpu)->page_offset = 0;
    else if (s->mode.translates)
        r.addr = sim_translate(s, waiter->cpu, space, spaces_untag(&s->spaces, addr, &space));
    uint64_t cycles = (s->block_exec ? sync_access_blocks : sync_access_caches)(s, t, &r, data, now + cost, &took);
    if (t->hw) {
        t->hw->sync_time.compute += cost + took.compute;
        t->hw->sync_time.stall += took.stall;
        t->hw->sync_time.bus += took.bus;
        t->hw->sync_time.counted += took.counted;
    }
    return now + cost + cycles;
}

static void host_wake(void *self, struct sync_waiter *p, uint64_t when)
{
    struct sim *s = self;

    sim_wake(s, &s->thread[p->number], when);
}

static uint64_t host_random(void *self)
{
    struct sim *s = self;

    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return s->random >> 11;
}

void sim_init_sync_host(struct sim *s)
{
    s->host = (struct sync_host){ s, host_access, host_wake, host_random };
}
