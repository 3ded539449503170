/* SPDX-License-Identifier: MIT */
/* The machine as the modules of locks and barriers see it (struct sync_host): references to their words, and wake-ups. */
#include "sim/engine/executor.h"

/* A reference of a lock or barrier. A thread without a hardware thread loses no time by it. */
static uint64_t host_access(void *self, const struct sync_waiter *waiter, uint64_t object, uint64_t addr,
                            enum peet_kind kind, uint64_t now)
{
    struct sim *s = self;
    struct sim_thread *t = &s->thread[waiter->number];
    uint32_t cost = s->config.cost[PEET_CL_plain];
    const struct peet_record r = { .addr = addr, .id = SIM_NO_INSN, .size = SYNC_WORD, .kind = kind };
    struct sync_time took;

    s->counts.references++;
    s->counts.sync_references++;
    uint64_t cycles = s->executor->sync_access(s, t, object, &r, now + cost, &took);
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

    s->sync.random ^= s->sync.random << 13;
    s->sync.random ^= s->sync.random >> 7;
    s->sync.random ^= s->sync.random << 17;
    return s->sync.random >> 11;
}

void sim_init_sync_host(struct sim *s)
{
    s->sync.host = (struct sync_host){ s, host_access, host_wake, host_random };
}
