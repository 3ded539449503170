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

/* An access to the hierarchy, which the observer is notified of. */
static uint64_t sync_access_caches(struct sim *s, const struct sim_thread *t, const struct peet_record *r,
                                   uint64_t data, uint64_t now, struct sync_time *ret)
{
    const struct sim_observer *o = s->observer;
    struct sim_reference ref = { .thread = t->sched.number,
                                 .cpu = t->waiter.cpu,
                                 .insn = SIM_NO_INSN,
                                 .site = t->site,
                                 .addr = r->addr,
                                 .data = data,
                                 .now = now,
                                 .line = sim_line(s, r->addr),
                                 .own_line = sim_line(s, data),
                                 .is_first = true,
                                 .is_sync = true,
                                 .kind = r->kind,
                                 .issue = t->hw ? s->config.cost[PEET_CL_plain] : 0 };

    ref.tag = o && o->tag ? o->tag(o->self, &ref) : 0;
    ref.outcome = hierarchy_access(s->memory, &(struct memory_access){ .addr = r->addr,
                                                                       .now = now,
                                                                       .size = r->size,
                                                                       .tag = ref.tag,
                                                                       .kind = r->kind,
                                                                       .core = (uint8_t)t->waiter.cpu });
    uint64_t cycles = ref.outcome.latency, stall = access_stall(&s->config, r->kind, cycles);
    uint64_t bus = ref.outcome.contention < stall ? ref.outcome.contention : stall;
    *ret = (struct sync_time){ .compute = cycles - stall, .stall = stall - bus, .bus = bus };
    ref.outcome.latency = t->hw ? cycles : 0;
    if (o)
        o->reference(o->self, &ref);
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
