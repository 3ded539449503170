/* SPDX-License-Identifier: MIT */
/* Speculation past barriers in time: the scenarios of Sato, Nakashima and Ohno (1999), figures 1 to 3, on two processors of their machine; what
 * a speculating thread may not do; and random programs, which do the same with and without speculation. */
#include "sim/config/config.h"
#include "sim/engine/sim.h"
#include "tests/unit/random.h"
#include "tests/unit/study_program.h"

enum { X1 = 0x500000, X2 = 0x500100, Y1 = 0x500200, Y2 = 0x500300, BARRIER = 0x620000, LOCK = 0x630000 };

static struct sim_result result;

/* The trace "a" on a machine, into `result`. */
static bool run(unsigned cpus, bool speculates, const char *setting)
{
    char processors[20];
    const char *set[] = { processors, speculates ? "speculation.policy=barrier" : "speculation.policy=none", setting };
    struct machine_config config;
    struct source *source;
    struct peet_trace *t;
    struct peet_err err;
    struct sim *sim;

    snprintf(processors, sizeof processors, "cpus=%u", cpus);
    sim_result_release(&result);
    if (!fine(config_load(&config, "sato1999", set, setting ? 3 : 2, &err), &err)
        || !fine(peet_trace_open(path_of("a"), &t, &err), &err))
        return false;
    bool ok =
        fine(source_open_trace(t, false, &source, &err), &err) && fine(sim_new(&config, source, &sim, &err), &err);
    if (ok) {
        ok = fine(sim_run(sim, NULL, &err), &err);
        sim_result(sim, &result);
        sim_free(sim);
        source_free(source);
    }
    peet_trace_free(t);
    for (uint32_t i = 0; ok && i < result.hw_threads; i++) {
        uint64_t all = result.hw_thread[i].rollback;
        for (int k = 0; k < TIME_COUNT; k++)
            all += result.hw_thread[i].time[k];
        CHECK_EQ(all, result.cycles);
    }
    return ok;
}

static void start(void)
{
    program_begin(2);
    create_all(2);
}

static bool finish(void)
{
    join_all(2);
    return program_end(2);
}

static void meet(unsigned thread, unsigned threads)
{
    does(thread, "barrier_wait 0x%x %u", BARRIER, threads);
}

static uint64_t idle(unsigned i)
{
    return result.hw_thread[i].time[TIME_barrier];
}

static uint64_t failures(unsigned i)
{
    uint64_t n = result.speculation[i].forced;

    for (int k = 0; k < VIOLATION_KINDS; k++)
        n += result.speculation[i].roll_backs[k];
    return n;
}

/* Figures 1 and 2: P1 arrives first at one barrier and P2 at the next one, and what each reads was written before. */
static void idle_time_without_a_violated_dependence_disappears(void)
{
    start();
    does(1, "b3 0x%x", X1);
    does(2, "b3 0x%x", X2);
    work(1, 200);
    work(2, 900);
    meet(1, 2);
    meet(2, 2);
    work(1, 1500);
    work(2, 300);
    for (unsigned t = 1; t <= 2; t++) {
        does(t, "b2 0x%x", X1);
        does(t, "b2 0x%x", X2);
        meet(t, 2);
    }
    does(1, "b3 0x%x", X1); /* the anti-dependences hold, too */
    does(2, "b3 0x%x", X2);
    work(1, 200);
    work(2, 1200);
    if (!finish() || !run(2, false, NULL))
        return;
    uint64_t without = result.cycles;
    CHECK(idle(0) > 600 && idle(1) > 1000);
    if (!run(2, true, NULL))
        return;
    CHECK_EQ(idle(0), 0);
    CHECK_EQ(idle(1), 0);
    CHECK_EQ(failures(0) + failures(1), 0);
    CHECK_EQ(result.speculation[0].speculations, 2);
    CHECK(result.cycles + 600 < without);
    CHECK_EQ(result.hw_thread[0].rollback, 2 * 5); /* two states were saved */
}

/* Figure 3: P1 reads X2 before P2 writes it. P1 is rolled back, loses Y1, and reads X2 again when the barrier is open. */
static void a_flow_violation_rolls_back_and_resumes_after_the_confirmation(void)
{
    start();
    does(1, "b2 0x%x", X2);
    does(2, "b2 0x%x", X2);
    meet(1, 2);
    does(1, "b2 0x%x", X2);
    does(1, "b3 0x%x", Y1);
    work(1, 100);
    work(2, 1000);
    does(2, "b3 0x%x", X2);
    work(2, 50);
    meet(2, 2);
    work(2, 500);
    if (!finish() || !run(2, false, NULL))
        return;
    uint64_t instructions = result.instructions, references = result.references, without = result.cycles;
    if (!run(2, true, NULL))
        return;
    CHECK_EQ(result.speculation[0].roll_backs[VIOLATION_write], 1);
    CHECK_EQ(failures(0) + failures(1), 1);
    CHECK_EQ(result.instructions, instructions);
    CHECK_EQ(result.references, references);
    CHECK_EQ(result.speculation[0].undone_instructions, 102);
    CHECK_EQ(result.hw_thread[0].rollback, 5 + 10 + 102 + 5 * (result.speculation[0].speculations - 1));
    CHECK_EQ(result.memory[0].causes[MISS_true_sharing], 1); /* X2, after the confirmation */
    CHECK_EQ(result.speculation[0].rollback_misses, 1);      /* Y1 */
    CHECK_EQ(result.speculation[0].repeated_references, 2);
    CHECK_EQ(result.speculation[0].repeated_misses, 2);
    CHECK(result.cycles <= without + 20);
    /* only Y1 was written: without it, X2 alone is dropped */
    if (run(2, true, "speculation.drop=written"))
        CHECK_EQ(result.speculation[0].repeated_misses, 2);
}

/* Figure 3, its second part: P2 has written X1 speculatively when P1 reads the old value. P1 gets memory's, and its copy expires. */
static void an_early_write_leaves_an_expiring_copy_and_no_roll_back(void)
{
    start();
    meet(2, 2);
    does(2, "b3 0x%x", X1);
    work(2, 2000);
    work(1, 500);
    does(1, "b2 0x%x", X1);
    does(1, "b2 0x%x", X1);
    meet(1, 2);
    work(1, 50);
    does(1, "b2 0x%x", X1);
    if (!finish() || !run(2, true, NULL))
        return;
    CHECK_EQ(failures(0) + failures(1), 0);
    CHECK_EQ(idle(1), 0);
    CHECK_EQ(result.memory[0].misses, 2); /* memory's copy, and P2's after the barrier */
    CHECK_EQ(result.memory[0].from_caches, 1);
}

static void the_eviction_of_an_unsafe_line_rolls_back(void)
{
    start();
    meet(1, 2);
    for (unsigned i = 0; i < 5; i++) /* lines of one set of four ways */
        does(1, "b2 0x%x", X1 + i * 16384);
    work(1, 10);
    work(2, 1000);
    meet(2, 2);
    if (!finish() || !run(2, true, NULL))
        return;
    CHECK_EQ(result.speculation[0].roll_backs[VIOLATION_eviction], 1);
    CHECK_EQ(failures(0) + failures(1), 1);
    CHECK(idle(0) > 800);
}

/* Two lines that both processors read and the other one writes: each would roll the other back for ever, if it resumed before the barrier. */
static void an_event_that_cannot_be_undone_waits(void)
{
    start();
    meet(1, 2);
    does(1, "b3 0x%x", Y1);
    does(1, "mutex_lock 0x%x", LOCK);
    does(1, "b3 0x%x", Y2);
    does(1, "mutex_unlock 0x%x", LOCK);
    does(1, "range_write 0x%x 64", X1);
    work(2, 1000);
    meet(2, 2);
    does(2, "range_write 0x%x 64", X2);
    does(2, "mutex_lock 0x%x", LOCK);
    does(2, "mutex_unlock 0x%x", LOCK);
    if (!finish() || !run(2, true, NULL))
        return;
    CHECK_EQ(failures(0) + failures(1), 0);
    CHECK(idle(0) > 900 && idle(0) < 1010);
}

/* ---- random programs ---- */

static uint64_t random_state = 5;

/* Threads work, load and store among a few lines, move bytes, take a lock, and meet. */
static void make_random(unsigned threads, unsigned sections)
{
    program_begin(threads);
    create_all(threads);
    for (unsigned s = 0; s < sections; s++)
        for (unsigned t = 1; t <= threads; t++) {
            for (uint64_t n = draw(&random_state, 12); n > 0; n--) {
                unsigned addr = X1 + 8 * (unsigned)draw(&random_state, draw(&random_state, 2) ? 20 : 20000);
                uint64_t what = draw(&random_state, 20);
                if (what < 8)
                    does(t, "b2 0x%x", addr);
                else if (what < 12)
                    does(t, "b%u 0x%x", 3 + (unsigned)draw(&random_state, 2), addr);
                else if (what < 13)
                    does(t, "range_copy 0x%x 0x%x 40", addr, addr + 100);
                else if (what < 14) {
                    does(t, "mutex_lock 0x%x", LOCK);
                    work(t, draw(&random_state, 50));
                    does(t, "mutex_unlock 0x%x", LOCK);
                } else
                    work(t, draw(&random_state, 300));
            }
            meet(t, threads);
        }
    join_all(threads);
    program_end(threads);
}

static void programs_do_the_same_with_speculation(void)
{
    static const char *const SETTINGS[] = { NULL,
                                            "speculation.drop=written",
                                            "barrier.cost=200",
                                            "cache.l1.bytes=1K",
                                            "fabric.kind=bus",
                                            "fabric.kind=mesh",
                                            "turn=reference",
                                            "speculation.policy=adaptive" };
    uint64_t speculations = 0, roll_backs = 0;

    for (unsigned i = 0; i < 160; i++) {
        unsigned threads = 2 + (unsigned)draw(&random_state, 5),
                 cpus = i % 5 ? threads : 1 + (unsigned)draw(&random_state, threads);
        make_random(threads, 1 + (unsigned)draw(&random_state, 8));
        if (!run(cpus, false, SETTINGS[i % 8]))
            return;
        uint64_t instructions = result.instructions, references = result.references;
        uint64_t sync = result.sync_references;
        if (!run(cpus, true, SETTINGS[i % 8]))
            return;
        CHECK_EQ(result.instructions, instructions);
        CHECK_EQ(result.references - result.sync_references, references - sync);
        CHECK_EQ(result.forced_wakeups, 0);
        for (uint32_t k = 0; k < result.hw_threads; k++) {
            speculations += result.speculation[k].speculations;
            roll_backs += failures(k);
        }
    }
    printf("# %" PRIu64 " speculations, %" PRIu64 " roll-backs\n", speculations, roll_backs);
    CHECK(speculations > 1000 && roll_backs > 200);
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(idle_time_without_a_violated_dependence_disappears);
    RUN(a_flow_violation_rolls_back_and_resumes_after_the_confirmation);
    RUN(an_early_write_leaves_an_expiring_copy_and_no_roll_back);
    RUN(the_eviction_of_an_unsafe_line_rolls_back);
    RUN(an_event_that_cannot_be_undone_waits);
    RUN(programs_do_the_same_with_speculation);
    sim_result_release(&result);
    return end();
}
