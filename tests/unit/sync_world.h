/* SPDX-License-Identifier: MIT */
/* A machine for locks and barriers that is only an event loop: fixed or wild latencies, a processor for each waiter, and a log. */
#ifndef TESTS_SYNC_WORLD_H
#define TESTS_SYNC_WORLD_H

#include <stdlib.h>

#include "check.h"
#include "sim/sync/sync.h"

enum { MOST = 64, LOCKS = 2, LOAD = 3, STORE = 5, UPDATE = 20, SEEN = 50 };
enum { OPERATIONS = 100000 }; /* of each kind, with each number of threads */

static const uint32_t SIZES[] = { 1, 2, 3, 5, 8, 17, 33, 64 };
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

static const struct sync_config CONFIG = { .spin = 40, .backoff = 10, .cost = 4, .fan_in = 4 };

#define OBJECT UINT64_C(0x7f0012345678)

enum state { COMES, TRIES, HOLDS, IS_PARKED, IS_GONE };

struct actor {
    struct sync_waiter waiter; /* first, so that the one leads to the other */
    enum state state;
    uint64_t when, turn;         /* cycle of its next step, and number of its scheduling: the order of steps */
    unsigned plan[LOCKS], plans; /* locks that it takes, one inside the other */
    unsigned held;
    uint64_t uses;
    uint64_t passed; /* rounds of a barrier */
};

/* A lock and what must be true of it. */
struct watched {
    struct sync_lock lock;
    struct actor *holder, *expected;
    uint64_t free_at;
    struct actor *waiting[MOST]; /* as they came */
    uint32_t waits;
};

struct reference {
    unsigned cpu;
    enum peet_kind kind;
    uint64_t addr;
};

struct world {
    struct sync_host host;
    struct sync_config config;
    struct sync_barrier barrier;
    struct watched lock[LOCKS];
    struct actor actor[MOST];
    uint32_t actors, locks;
    uint64_t random, turns, log;
    bool is_wild;    /* references take any time */
    bool is_instant; /*   or none at all */
    bool is_fifo;
    uint64_t due[MOST];   /* cycle and skew of each actor with a next step */
    bool has_any_numbers; /* else actors are numbered from 0 on */
    uint64_t skew;        /* calls come out of the order of time by as much */
    uint64_t cpu_done[MOST], count[PEET_KINDS], references, acquired, waited;
    uint64_t think, hold; /* at most */
    bool is_steady;       /* exactly that long */
    uint64_t latest[2];   /* arrivals in even and odd rounds of the barrier */
    uint64_t steps;
    struct reference seen[SEEN]; /* the first ones */
};

static inline uint64_t draw(struct world *w)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return w->random >> 33;
}

static inline void note(struct world *w, uint64_t v)
{
    w->log = (w->log ^ v) * 0x100000001b3;
    w->log ^= w->log >> 29;
}

static inline uint64_t access(void *context, const struct sync_waiter *p, uint64_t object, uint64_t addr,
                              enum peet_kind kind, uint64_t now)
{
    static const uint64_t LATENCY[] = { [PEET_LOAD] = LOAD, [PEET_STORE] = STORE, [PEET_UPDATE] = UPDATE };
    struct world *w = context;
    unsigned cpu = p->cpu;

    CHECK(object == w->barrier.addr || object == w->lock[0].lock.addr || object == w->lock[1].lock.addr);
    CHECK(kind == PEET_LOAD || kind == PEET_STORE || kind == PEET_UPDATE);
    CHECK(now >= w->cpu_done[cpu]); /* a processor does one thing after the other */
    CHECK_EQ(addr % SYNC_WORD, 0);
    note(w, addr);
    note(w, now << 8 | cpu << 2 | kind);
    w->count[kind]++;
    if (w->references < SEEN)
        w->seen[w->references] = (struct reference){ cpu, kind, addr };
    w->references++;
    w->cpu_done[cpu] = now + (w->is_instant ? 0 : w->is_wild ? draw(w) % 200 : LATENCY[kind]);
    return w->cpu_done[cpu];
}

static inline void go_on_at(struct world *w, struct actor *a, enum state state, uint64_t when)
{
    size_t i = (size_t)(a - w->actor);

    a->state = state;
    a->when = when;
    a->turn = ++w->turns;
    w->due[i] = state < IS_PARKED ? when + w->skew * (i % 4) : UINT64_MAX;
}

static inline void wake(void *context, struct sync_waiter *p, uint64_t when)
{
    struct world *w = context;
    struct actor *a = (struct actor *)p;

    CHECK_EQ(a->state, IS_PARKED);
    CHECK(when >= a->when);
    go_on_at(w, a, TRIES, when);
    note(w, when);
}

static inline uint64_t any_number(void *context)
{
    return draw(context);
}

static inline struct world *world_new(uint32_t actors, const struct sync_config *config)
{
    struct world *w = calloc(1, sizeof *w);

    if (!w)
        abort();
    w->host = (struct sync_host){ w, access, wake, any_number };
    w->config = *config;
    w->actors = actors;
    w->locks = 1;
    w->random = actors;
    w->think = w->hold = 200;
    for (uint32_t i = 0; i < actors; i++) {
        w->actor[i].waiter = (struct sync_waiter){ .cpu = i, .number = i, .priority = i * 7 % 5 };
        go_on_at(w, &w->actor[i], COMES, draw(w) % 1000);
    }
    return w;
}

/* The actor with the first next step; NULL: none has one. */
static inline struct actor *next_of(struct world *w)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < w->actors; i++)
        if (w->due[i] < w->due[best] || (w->due[i] == w->due[best] && w->actor[i].turn < w->actor[best].turn))
            best = i;
    return w->due[best] == UINT64_MAX ? NULL : &w->actor[best];
}

#endif
