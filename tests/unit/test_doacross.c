/* SPDX-License-Identifier: MIT */
/* Iterations of parallel loops in a machine, one record at a time: so the order in which records are asked for is the order in
 * which they happen. */
#include "sim/engine/sim.h"
#include "tests/unit/loops.h"

/* Gives out one record at a time, and notes the thread that got it. */
struct tap {
    struct source source, *inner;
    struct peet_batch batch[256];
    size_t at[256];
    struct {
        uint32_t context, kind; /* kind: of an event, or PEET_EVENT_KINDS */
        uint64_t a, b;
    } log[20000];
    size_t count;
};

static int tap_next(struct source *s, uint32_t i, uint64_t reply, struct peet_batch *ret, struct peet_err *err)
{
    struct tap *t = (struct tap *)(void *)s;
    struct peet_batch *b = &t->batch[i];

    if (t->at[i] == b->count) {
        int r = source_next(t->inner, i, reply, b, err);
        t->source.threads = t->inner->threads;
        t->at[i] = 0;
        if (r <= 0) {
            b->count = 0;
            return r;
        }
    }
    const struct peet_record *r = &b->records[t->at[i]++];
    const struct peet_event *e = r->kind == PEET_EVENT ? &b->events[r->id] : NULL;
    *ret = *b;
    ret->records = r;
    ret->count = 1;
    if (CHECK(t->count < 20000)) {
        t->log[t->count].context = i;
        t->log[t->count].kind = e ? e->kind : PEET_EVENT_KINDS;
        t->log[t->count].a = e ? e->arg[0] : r->addr;
        t->log[t->count++].b = e ? e->arg[1] : 0;
    }
    return 1;
}

static void tap_free(struct source *s)
{
    source_free(((struct tap *)(void *)s)->inner);
    free(s);
}

static const struct source_kind TAP = { .next = tap_next, .free = tap_free };

/* The trace on a machine, with those settings; what happened, to be freed by source_free. */
static struct tap *play(struct peet_trace *t, const char *const *set, size_t sets, uint32_t window,
                        uint64_t *ret_cycles)
{
    struct tap *tap = calloc(1, sizeof *tap);
    struct machine_config config;
    struct peet_err err;
    struct sim *sim;

    if (!tap || !fine(config_load(&config, "ideal", set, sets, &err), &err))
        abort();
    tap->inner = deal(t, window, 100000);
    tap->source = (struct source){ &TAP,  t,    tap->inner->thread, tap->inner->threads, tap->inner->max_threads, false,
                                   false, false };
    if (fine(sim_new(&config, &tap->source, &sim, &err), &err)) {
        fine(sim_run(sim, NULL, &err), &err);
        struct sim_result result = { 0 };
        sim_result(sim, &result);
        *ret_cycles = result.cycles;
        sim_result_release(&result);
        sim_free(sim);
    }
    return tap;
}

static uint64_t hash_order(const struct tap *t)
{
    uint64_t hash = 1;

    for (size_t i = 0; i < t->count; i++)
        mix(&hash, t->log[i].a);
    return hash;
}

/* A record belongs to the iteration of the last start before it in its thread. */
static void hash_iterations(const struct tap *t, uint64_t *hash, unsigned count)
{
    uint64_t of[256] = { 0 };

    memset(hash, 0, count * sizeof *hash);
    for (size_t i = 0; i < t->count; i++) {
        uint32_t c = t->log[i].context;
        if (t->log[i].kind == PEET_EV_doall_start)
            of[c] = t->log[i].a;
        if (c > 0) /* the thread has none */
            mix(&hash[of[c]], t->log[i].a + t->log[i].kind);
    }
}

static void schedules_differ_and_iterations_do_not(void)
{
    static const char *const SETS[][4] = {
        { "cpus=1", "scheduler.kind=fcfs" },
        { "cpus=2", "scheduler.kind=robin", "scheduler.quantum=7" },
        { "cpus=2", "scheduler.kind=random", "scheduler.quantum=5", "seed=1" },
        { "cpus=2", "scheduler.kind=random", "scheduler.quantum=5", "seed=2" },
        { "cpus=2", "jitter=20", "seed=1" },
        { "cpus=2", "jitter=20", "seed=2" },
    };
    enum { WAYS = sizeof SETS / sizeof *SETS, COUNT = 12 };
    uint64_t order[WAYS], first[COUNT], hash[COUNT], cycles;
    struct peet_trace *t = long_loop(COUNT, 40);

    for (unsigned i = 0; t && i < WAYS; i++) {
        size_t sets = 0;
        while (sets < 4 && SETS[i][sets])
            sets++;
        struct tap *tap = play(t, SETS[i], sets, 4, &cycles);
        order[i] = hash_order(tap);
        hash_iterations(tap, i ? hash : first, COUNT);
        for (unsigned k = 0; i && k < COUNT; k++)
            CHECK_EQ(hash[k], first[k]);
        for (unsigned k = 0; k < i; k++)
            CHECK(order[k] != order[i]);
        source_free(&tap->source);
    }
    peet_trace_free(t);
}

/* `distance`: iteration i needs what i - distance has posted, in each of several sweeps; iterations are not equally long, so that late ones
 * overtake. */
static struct peet_trace *doacross(int sweeps, int first, int count, int distance)
{
    program_begin(1);
    for (int sweep = 0; sweep < sweeps; sweep++) {
        line("1 - doall_fork %d", count);
        for (int i = first; i < first + count; i++) {
            line("1 - doall_start %d", i);
            for (uint64_t k = draw(30); k > 0; k--)
                line("1 - b1");
            line("1 - wait 0x800000 %d", i - distance);
            line("1 - b2 0x500000");
            for (uint64_t k = draw(30); k > 0; k--)
                line("1 - b1");
            line("1 - post 0x800000 %d", i);
            line("1 - doall_finish %d", i);
        }
        line("1 - doall_join %d", count);
    }
    return program_end(1);
}

/* Goes through what happened: when a wait for an iteration's value is over, that iteration has posted it, in this sweep. */
static void check_waits(const struct tap *t, int first, unsigned *ret_waits)
{
    bool posted[200] = { false };
    int64_t waits[256];

    for (unsigned i = 0; i < 256; i++)
        waits[i] = INT64_MIN;
    for (size_t i = 0; i < t->count; i++) {
        uint32_t c = t->log[i].context;
        if (waits[c] >= first) {
            CHECK(posted[waits[c]]);
            ++*ret_waits;
        }
        waits[c] = t->log[i].kind == PEET_EV_wait ? (int64_t)t->log[i].b : INT64_MIN;
        if (t->log[i].kind == PEET_EV_post)
            posted[t->log[i].b] = true;
        if (t->log[i].kind == PEET_EV_doall_fork)
            memset(posted, 0, sizeof posted);
    }
}

static void nobody_goes_on_before_what_it_waits_for_is_posted(void)
{
    static const char *const SETS[][4] = { { "cpus=1" },
                                           { "cpus=4" },
                                           { "cpus=3", "scheduler.kind=random", "scheduler.quantum=5" },
                                           { "cpus=8", "jitter=50" },
                                           { "cpus=2", "scheduler.wait=busy", "scheduler.quantum=20" } };

    for (int round = 0; round < 60; round++) {
        int first = (int)draw(3), distance = 1 + (int)draw(4);
        const char *const *set = SETS[round % 5];
        size_t sets = 0;
        unsigned waits = 0;
        uint64_t cycles;
        struct peet_trace *t = doacross(2, first, 30, distance);
        while (sets < 4 && set[sets])
            sets++;
        if (!t)
            return;
        struct tap *tap = play(t, set, sets, 1 + (uint32_t)draw(8), &cycles);
        check_waits(tap, first, &waits);
        CHECK_EQ(waits, 2 * (30 - distance));
        source_free(&tap->source);
        peet_trace_free(t);
    }
}

/* Values that no iteration posts, or that are counts of iterations. */
static void whatever_iterations_wait_for_they_come_to_an_end(void)
{
    uint64_t cycles = 0;
    static const char *const SET[] = { "cpus=4" };

    program_begin(1);
    line("1 - doall_fork 10");
    for (int i = 0; i < 10; i++) {
        line("1 - doall_start %d", i);
        line("1 - wait 0x800000 %d", i);
        line("1 - wait 0x900000 77");
        line("1 - b1");
        line("1 - post 0x800000 %d", i + 1);
        line("1 - doall_finish %d", i);
    }
    line("1 - doall_join 10");
    struct peet_trace *t = program_end(1);
    if (!t)
        return;
    struct tap *tap = play(t, SET, 1, 4, &cycles);
    CHECK(cycles > 0);
    source_free(&tap->source);
    peet_trace_free(t);
}

/* Iterations of which each begins where the one before it ends. */
static struct peet_trace *chain(int count, int length)
{
    program_begin(1);
    line("1 - doall_fork %d", count);
    for (int i = 0; i < count; i++) {
        line("1 - doall_start %d", i);
        line("1 - wait 0x800000 %d", i - 1);
        for (int k = 0; k < length; k++)
            line("1 - b1");
        line("1 - post 0x800000 %d", i);
        line("1 - doall_finish %d", i);
    }
    line("1 - doall_join %d", count);
    return program_end(1);
}

static void more_processors_make_a_loop_faster_and_a_chain_not(void)
{
    static const char *const CPUS[] = { "cpus=1", "cpus=2", "cpus=4", "cpus=8" };
    struct peet_trace *t;
    uint64_t cycles[2][4] = { { 0 } };

    for (unsigned which = 0; which < 2; which++) {
        t = which ? chain(16, 100) : long_loop(16, 200);
        for (unsigned i = 0; t && i < 4; i++) {
            struct tap *tap = play(t, &CPUS[i], 1, 1U << i, &cycles[which][i]);
            source_free(&tap->source);
        }
        peet_trace_free(t);
    }
    for (unsigned i = 0; i < 4; i++) {
        CHECK(cycles[0][i] >= UINT64_C(1600) >> i);
        CHECK(cycles[0][i] <= (UINT64_C(1600) >> i) + 8);
        CHECK(cycles[1][i] >= 1600);
    }
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(schedules_differ_and_iterations_do_not);
    RUN(nobody_goes_on_before_what_it_waits_for_is_posted);
    RUN(whatever_iterations_wait_for_they_come_to_an_end);
    RUN(more_processors_make_a_loop_faster_and_a_chain_not);
    return end();
}
