/* SPDX-License-Identifier: MIT */
/* A recording with one synchronization taken out or replaced: its events, and its time compared with that of a program that was written so. */
#include "map/source/source_relax.h"

#include <stdlib.h>

#include "sim/config/config.h"
#include "sim/engine/sim.h"
#include "tests/unit/random.h"
#include "tests/unit/study_program.h"

enum { LOCK = 0x600000, BARRIER = 0x620000, DATA = 0x500000, SITE = 0x401000, OTHER_SITE = 0x401010, THREADS = 3 };

static void note(struct map *keys, uint64_t key, uint32_t tag)
{
    keys->value_size = 1;
    *(uint8_t *)map_put(keys, key, tag) = 1;
}

/* ---- events ---- */

/* The lock and barrier events of a thread after the change, as "name(argument) …"; new objects are a, b, c … in the order of their addresses. */
static void events_of(const struct relaxation *r, uint32_t thread, char ret[500])
{
    struct peet_trace *t;
    struct peet_batch b;
    struct source *s;
    struct peet_err err;

    ret[0] = 0;
    if (!fine(peet_trace_open(path_of("a"), &t, &err), &err))
        return;
    if (fine(source_open_trace(t, true, &s, &err), &err)) {
        s = source_take_relaxed(s, r);
        while (source_next(s, thread, 0, &b, &err) > 0)
            for (size_t i = 0; i < b.event_count; i++) {
                const struct peet_event *e = &b.events[i];
                char name[40];
                if (e->kind == PEET_EV_thread_start || e->kind == PEET_EV_thread_end
                    || e->kind == PEET_EV_thread_create)
                    continue;
                if (e->arg[0] >> 47)
                    snprintf(name, sizeof name, "%c", (int)('a' + ((e->arg[0] ^ UINT64_C(1) << 47) >> 8)));
                else
                    snprintf(name, sizeof name, "%" PRIx64, e->arg[0]);
                snprintf(ret + strlen(ret), 500 - strlen(ret), "%s%s(%s", *ret ? " " : "", peet_event_name(e->kind),
                         name);
                snprintf(ret + strlen(ret), 500 - strlen(ret), e->args > 1 ? ",%" PRIu64 ")" : ")", e->arg[1]);
            }
        source_free(s);
    }
    peet_trace_free(t);
}

static void check_events(const struct relaxation *r, uint32_t thread, const char *expected)
{
    char found[500];

    events_of(r, thread, found);
    CHECK_EQ((const char *)found, expected);
}

static void section(unsigned thread, uint64_t lock)
{
    does(thread, "mutex_lock 0x%" PRIx64, lock);
    work(thread, 2);
    does(thread, "mutex_unlock 0x%" PRIx64, lock);
}

static void a_lock_is_split_by_acquisition(void)
{
    uint32_t part[] = { 1, 0, RELAX_NO_PART, 1 };
    struct relax_thread threads[2] = { { .part = part, .parts = 4 } };
    struct relaxation r = { .class = RELAX_LOCK, .change = RELAX_SPLIT, .thread = threads, .threads = 2 };

    program_begin(1);
    section(1, LOCK);
    section(1, LOCK);
    section(1, LOCK + 64);
    section(1, LOCK);
    does(1, "mutex_lock 0x%x", LOCK);
    does(1, "mutex_lock 0x%x", LOCK); /* recursive */
    does(1, "mutex_unlock 0x%x", LOCK);
    does(1, "mutex_unlock 0x%x", LOCK);
    if (!program_end(1))
        return;
    note(&r.addrs, LOCK, 1);
    check_events(&r, 0,
                 "mutex_lock(b) mutex_unlock(b) mutex_lock(c) mutex_unlock(c) mutex_lock(600040) mutex_unlock(600040) "
                 "mutex_lock(b) mutex_unlock(b)");
    r.change = RELAX_READERS;
    check_events(&r, 0,
                 "rwlock_rdlock(b) rwlock_unlock(b) rwlock_wrlock(b) rwlock_unlock(b) mutex_lock(600040) "
                 "mutex_unlock(600040) rwlock_rdlock(b) rwlock_unlock(b)");
    r.change = RELAX_REMOVE;
    check_events(&r, 0, "mutex_lock(600040) mutex_unlock(600040)");
    map_release(&r.addrs);
}

static void a_barrier_becomes_posts_and_waits(void)
{
    struct relax_need need[] = { { 2, 1, 1 }, { 2, 2, 2 } };
    struct relax_thread threads[THREADS] = { { .need = need, .needs = 2, .is_needed = true } };
    struct relaxation r = {
        .class = RELAX_BARRIER, .change = RELAX_POINT_TO_POINT, .thread = threads, .threads = THREADS
    };

    program_begin(1);
    for (int i = 0; i < 3; i++)
        does(1, "barrier_wait 0x%x 3 @0x%x", BARRIER, SITE);
    does(1, "barrier_wait 0x%x 3 @0x%x", BARRIER, OTHER_SITE);
    if (!program_end(1))
        return;
    note(&r.sites, SITE, 0);
    check_events(&r, 0, "post(a,1) post(a,2) wait(b,1) wait(c,2) post(a,3) barrier_wait(620000,3)");
    threads[0] = (struct relax_thread){ .group = 1, .members = 2 };
    r.change = RELAX_GROUPS;
    check_events(&r, 0, "barrier_wait(b,2) barrier_wait(b,2) barrier_wait(b,2) barrier_wait(620000,3)");
    threads[0].members = 1;
    check_events(&r, 0, "barrier_wait(620000,3)");
    map_release(&r.sites);
}

/* ---- time ---- */

/* Simulated cycles; r NULL: as recorded. */
static uint64_t cycles_of(const struct relaxation *r)
{
    struct sim_result result = { 0 };
    struct machine_config config;
    struct peet_trace *t;
    struct source *s;
    struct peet_err err;
    struct sim *sim;
    uint64_t cycles = 0;

    if (!fine(config_load(&config, "sato1999", NULL, 0, &err), &err)
        || !fine(peet_trace_open(path_of("a"), &t, &err), &err))
        return 0;
    config.cpus = THREADS;
    if (fine(source_open_trace(t, true, &s, &err), &err)) {
        s = r ? source_take_relaxed(s, r) : s;
        if (fine(sim_new(&config, s, &sim, &err), &err)) {
            if (fine(sim_run(sim, NULL, &err), &err)) {
                sim_result(sim, &result);
                cycles = result.cycles;
                sim_result_release(&result);
            }
            sim_free(sim);
        }
        source_free(s);
    }
    peet_trace_free(t);
    return cycles;
}

/* A random program of phases, with a barrier and a lock that can be left out. */
static bool random_program(uint64_t seed, bool has_barrier, bool has_lock)
{
    program_begin(THREADS);
    create_all(THREADS);
    for (int phase = 0; phase < 12; phase++)
        for (unsigned i = 1; i <= THREADS; i++) {
            work(i, draw(&seed, 3000));
            if (phase % 3 == 1 && has_lock)
                does(i, "mutex_lock 0x%x @0x%x", LOCK, SITE);
            for (uint64_t k = draw(&seed, 40); k > 0; k--)
                does(i, "b%d 0x%" PRIx64, 2 + (int)draw(&seed, 3), DATA + 8 * draw(&seed, 200));
            if (phase % 3 == 1 && has_lock)
                does(i, "mutex_unlock 0x%x @0x%x", LOCK, SITE);
            if (phase % 3 == 2)
                does(i, "barrier_wait 0x%x %d @0x%x", BARRIER, THREADS, OTHER_SITE);
            else if (phase % 3 == 0 && has_barrier)
                does(i, "barrier_wait 0x%x %d @0x%x", BARRIER, THREADS, SITE);
        }
    return program_end(THREADS);
}

static void a_removed_unit_takes_the_time_of_a_program_without_it(void)
{
    struct relaxation barrier = { .class = RELAX_BARRIER }, lock = { .class = RELAX_LOCK },
                      none = { .class = RELAX_JOIN };

    note(&barrier.sites, SITE, 0);
    note(&barrier.addrs, BARRIER, 1);
    note(&lock.addrs, LOCK, 1);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        if (!random_program(seed, true, true))
            return;
        uint64_t all = cycles_of(NULL), same = cycles_of(&none), fewer = cycles_of(&barrier),
                 unlocked = cycles_of(&lock);
        CHECK_EQ(same, all);
        CHECK(fewer < all);
        if (random_program(seed, false, true))
            CHECK_EQ(cycles_of(NULL), fewer);
        if (random_program(seed, true, false))
            CHECK_EQ(cycles_of(NULL), unlocked);
    }
    map_release(&barrier.sites);
    map_release(&barrier.addrs);
    map_release(&lock.addrs);
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(a_lock_is_split_by_acquisition);
    RUN(a_barrier_becomes_posts_and_waits);
    RUN(a_removed_unit_takes_the_time_of_a_program_without_it);
    return end();
}
