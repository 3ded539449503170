/* SPDX-License-Identifier: MIT */
/* Parallelism of runs whose answers are known by a formula; and what holds for all studies. */
#include "tests/unit/random.h"
#include "tests/unit/study_program.h"

static uint64_t state = 7;

/* What holds for every run; then the answer is released. */
static void check_parallelism(uint64_t all, uint64_t span)
{
    uint64_t least = number("summary", 0, "span_least"), most = number("summary", 0, "span_most");

    CHECK_EQ(number("summary", 0, "work"), all);
    CHECK_EQ(number("summary", 0, "span"), span);
    CHECK(span <= least && least <= most);
    CHECK_EQ(sum("profile", "time"), span);
    CHECK_EQ(sum("critical", "instructions"), span);
    CHECK_EQ(sum("functions", "instructions"), span);
    CHECK_EQ(number("summary", 0, "lost"), sum("barriers", "lost"));
    study_release(&answer);
}

/* ---- parallelism ---- */

static void fork_and_join_has_the_span_of_one_thread(void)
{
    enum { THREADS = 9, W = 1000, BEFORE = 70, BEHIND = 30 };

    program_begin(THREADS);
    work(1, BEFORE);
    create_all(THREADS);
    for (unsigned i = 2; i <= THREADS; i++)
        work(i, W);
    join_all(THREADS);
    work(1, BEHIND);
    if (!program_end(THREADS) || !ask("parallelism"))
        return;
    CHECK_EQ(number("summary", 0, "span_most"), W + BEFORE + BEHIND);
    CHECK_EQ(number("profile", 0, "running"), 1);
    CHECK_EQ(number("profile", 0, "time"), BEFORE + BEHIND);
    CHECK_EQ(number("profile", 1, "running"), THREADS - 1);
    CHECK_EQ(number("profile", 1, "time"), W);
    CHECK_EQ(table_of("critical")->rows, 3);
    CHECK_EQ(cell_of("critical", 1, "entered_by")->text, "thread_create");
    CHECK_EQ(cell_of("critical", 2, "entered_by")->text, "thread_join");
    CHECK_EQ(cell_of("critical", 1, "function")->text, "work");
    CHECK_EQ(number("speedup", 3, "processors"), 8);
    CHECK_EQ(cell_of("speedup", 3, "time_brent")->real, 8100.0 / 8 + 1100);
    check_parallelism((THREADS - 1) * W + BEFORE + BEHIND, W + BEFORE + BEHIND);
}

/* Stages pass items on by semaphores, or by posting how many they have done. */
static void check_pipeline(bool semaphores)
{
    enum { STAGES = 5, ITEMS = 12, W = 10 };

    program_begin(STAGES + 1);
    for (unsigned i = 2; semaphores && i <= STAGES; i++)
        does(1, "sem_init 0x%x 0", 0x600000 + i * 32);
    create_all(STAGES + 1);
    for (unsigned i = 2; i <= STAGES + 1; i++) {
        for (unsigned item = 1; item <= ITEMS; item++) {
            if (i > 2 && semaphores)
                does(i, "sem_wait 0x%x", 0x600000 + (i - 1) * 32);
            else if (i > 2)
                does(i, "wait 0x%x %u", 0x600000 + (i - 1) * 32, item);
            work(i, W);
            if (i <= STAGES && semaphores)
                does(i, "sem_post 0x%x", 0x600000 + i * 32);
            else if (i <= STAGES)
                does(i, "post 0x%x %u", 0x600000 + i * 32, item);
        }
    }
    join_all(STAGES + 1);
    if (program_end(STAGES + 1) && ask("parallelism")) {
        CHECK_EQ(number("summary", 0, "span_most"), (STAGES + ITEMS - 1) * W);
        check_parallelism(STAGES * ITEMS * W, (STAGES + ITEMS - 1) * W);
    }
}

static void a_pipeline_of_semaphores_has_the_span_of_its_diagonal(void)
{
    check_pipeline(true);
}

static void a_pipeline_of_posts_has_the_span_of_its_diagonal(void)
{
    check_pipeline(false);
}

static void a_reduction_tree_has_the_span_of_its_height(void)
{
    enum { LEVELS = 5, LEAVES = 1 << LEVELS, W = 100 };

    program_begin(LEAVES);
    create_all(LEAVES);
    for (unsigned i = 0; i < LEAVES; i++) {
        work(i + 1, W);
        for (unsigned half = 1; half < LEAVES && i % (2 * half) == 0; half *= 2) {
            does(i + 1, "thread_join %u", i + half + 1);
            work(i + 1, W);
        }
    }
    if (program_end(LEAVES) && ask("parallelism"))
        check_parallelism((2 * LEAVES - 1) * W, (LEVELS + 1) * W);
}

/* Each round lasts as long as its slowest thread. */
static void barriers_cost_what_the_slowest_takes_longer(void)
{
    for (unsigned trial = 0; trial < 20; trial++) {
        unsigned threads = 2 + (unsigned)draw(&state, 6), rounds = 1 + (unsigned)draw(&state, 8);
        uint64_t slowest[8] = { 0 }, lost = 0, all = 0, span = 0, w[8][8];

        for (unsigned r = 0; r < rounds; r++) {
            for (unsigned i = 0; i < threads; i++) {
                w[i][r] = draw(&state, 4) ? draw(&state, 100) : 0;
                slowest[r] = w[i][r] > slowest[r] ? w[i][r] : slowest[r];
                all += w[i][r];
            }
            span += slowest[r];
        }
        program_begin(threads);
        create_all(threads);
        for (unsigned i = 0; i < threads; i++) {
            for (unsigned r = 0; r < rounds; r++) {
                work(i + 1, w[i][r]);
                does(i + 1, "barrier_wait 0x500010 %u @0x401004", threads);
                lost += slowest[r] - w[i][r];
            }
        }
        if (!program_end(threads) || !ask("parallelism"))
            return;
        CHECK_EQ(number("summary", 0, "rounds"), rounds);
        CHECK_EQ(number("barriers", 0, "lost"), lost);
        CHECK_EQ(number("barriers", 0, "waits"), rounds * threads);
        CHECK_EQ(number("barriers", 0, "rounds"), rounds);
        CHECK_EQ(cell_of("barriers", 0, "place")->text, "work+0x4");
        CHECK_EQ(number("summary", 0, "span_most"), span);
        check_parallelism(all, span);
    }
}

static void a_barrier_serves_one_team_after_another(void)
{
    program_begin(5);
    for (unsigned team = 0; team < 2; team++) {
        for (unsigned i = 2 + 2 * team; i < 4 + 2 * team; i++) {
            does(1, "thread_create %u", i);
            work(i, 10 * i);
            does(i, "barrier_wait 0x500010 2");
            work(i, 100 - 10 * i);
        }
        for (unsigned i = 2 + 2 * team; i < 4 + 2 * team; i++)
            does(1, "thread_join %u", i);
    }
    if (!program_end(5) || !ask("parallelism"))
        return;
    CHECK_EQ(number("summary", 0, "rounds"), 2);
    CHECK(has_note("summary", "more threads wait than one round takes"));
    check_parallelism(400, 30 + 80 + 50 + 60);
}

static void critical_sections_bound_the_span_from_both_sides(void)
{
    enum { THREADS = 6, BEFORE = 50, INSIDE = 40, BEHIND = 7 };

    program_begin(THREADS + 1);
    create_all(THREADS + 1);
    for (unsigned i = 2; i <= THREADS + 1; i++) {
        work(i, BEFORE);
        does(i, "mutex_lock 0x500020");
        does(i, "mutex_lock 0x500020"); /* it may be a recursive one */
        work(i, INSIDE);
        does(i, "mutex_unlock 0x500020");
        does(i, "mutex_unlock 0x500020");
        work(i, BEHIND);
    }
    join_all(THREADS + 1);
    if (!program_end(THREADS + 1) || !ask("parallelism"))
        return;
    CHECK_EQ(number("locks", 0, "instructions"), THREADS * INSIDE);
    CHECK_EQ(number("locks", 0, "taken"), THREADS);
    CHECK_EQ(cell_of("locks", 0, "lock")->text, "table+0x20");
    CHECK_EQ(number("summary", 0, "span_least"), BEFORE + THREADS * INSIDE + BEHIND);
    CHECK_EQ(number("summary", 0, "span_most"), BEFORE + THREADS * INSIDE + BEHIND);
    check_parallelism(THREADS * (BEFORE + INSIDE + BEHIND), BEFORE + INSIDE + BEHIND);
    if (!ask_with("parallelism", "locks", true))
        return;
    CHECK_EQ(sum("critical", "instructions"), BEFORE + THREADS * INSIDE + BEHIND);
    CHECK_EQ(sum("profile", "time"), BEFORE + THREADS * INSIDE + BEHIND);
    study_release(&answer);
}

static void readers_of_a_lock_do_not_exclude_each_other(void)
{
    program_begin(4);
    create_all(4);
    for (unsigned i = 2; i <= 4; i++) {
        does(i, i == 4 ? "rwlock_wrlock 0x500020" : "rwlock_rdlock 0x500020");
        work(i, 10);
        does(i, "rwlock_unlock 0x500020");
    }
    if (!program_end(4) || !ask("parallelism"))
        return;
    CHECK_EQ(number("summary", 0, "span_most"), 20);
    CHECK_EQ(number("locks", 0, "shared"), 2);
    CHECK_EQ(number("locks", 0, "instructions"), 10);
    check_parallelism(30, 10);
}

static void a_binary_semaphore_forces_nothing_but_excludes(void)
{
    program_begin(3);
    does(1, "sem_init 0x500040 1");
    create_all(3);
    for (unsigned i = 2; i <= 3; i++) {
        does(i, "sem_wait 0x500040");
        work(i, 25);
        does(i, "sem_post 0x500040");
    }
    if (!program_end(3) || !ask("parallelism"))
        return;
    CHECK_EQ(number("summary", 0, "span_most"), 50);
    check_parallelism(50, 25);
}

static void the_last_of_several_posts_is_forced_only_for_who_takes_all(void)
{
    program_begin(3);
    does(1, "sem_init 0x500040 0");
    create_all(3);
    work(2, 30);
    does(2, "sem_post 0x500040");
    work(3, 90);
    does(3, "sem_post 0x500040");
    does(1, "sem_wait 0x500040"); /* either of them will do */
    work(1, 5);
    does(1, "sem_wait 0x500040");
    work(1, 1);
    if (program_end(3) && ask("parallelism"))
        check_parallelism(126, 91);
}

static void what_a_thread_has_given_it_may_have_taken_itself(void)
{
    program_begin(2);
    does(1, "sem_init 0x500040 0");
    create_all(2);
    work(2, 50);
    does(2, "sem_post 0x500040");
    does(1, "sem_post 0x500040");
    does(1, "sem_wait 0x500040");
    work(1, 20);
    if (program_end(2) && ask("parallelism"))
        check_parallelism(70, 50);
}

static void a_value_that_two_threads_post_forces_nothing(void)
{
    program_begin(3);
    create_all(3);
    work(2, 30);
    does(2, "post 0x500040 1");
    work(3, 40);
    does(3, "post 0x500040 1");
    does(1, "wait 0x500040 1");
    work(1, 20);
    if (!program_end(3) || !ask("parallelism"))
        return;
    CHECK(has_note("summary", "1 waits have no arc"));
    check_parallelism(90, 40);
}

static void a_wait_for_less_than_was_posted_is_over_with_the_first_that_is_enough(void)
{
    program_begin(2);
    create_all(2);
    for (unsigned i = 1; i <= 4; i++) {
        work(2, 10);
        does(2, "post 0x500040 %u", 10 * i);
    }
    does(1, "wait 0x500040 15");
    work(1, 100);
    if (program_end(2) && ask("parallelism"))
        check_parallelism(140, 120);
}

static void who_waits_at_a_condition_gives_up_the_lock(void)
{
    program_begin(3);
    create_all(3);
    does(2, "mutex_lock 0x500020");
    does(2, "lock_turn 0x500020 1");
    work(2, 10);
    does(2, "cond_wait 0x500060 0x500020");
    does(2, "lock_turn 0x500020 3");
    work(2, 10);
    does(2, "mutex_unlock 0x500020");
    work(3, 5);
    does(3, "mutex_lock 0x500020");
    does(3, "lock_turn 0x500020 2");
    work(3, 100);
    does(3, "cond_signal 0x500060");
    work(3, 7);
    does(3, "mutex_unlock 0x500020");
    if (!program_end(3) || !ask("parallelism"))
        return;
    CHECK_EQ(number("summary", 0, "span_most"), 10 + 107 + 10);
    check_parallelism(132, 5 + 107 + 10);
}

static void iterations_of_a_parallel_loop_run_beside_each_other(void)
{
    enum { ITERATIONS = 20, A = 3, B = 11 };

    for (unsigned doacross = 0; doacross < 2; doacross++) {
        program_begin(1);
        work(1, 100);
        does(1, "doall_fork %d", ITERATIONS);
        for (unsigned i = 1; i <= ITERATIONS; i++) {
            work(1, 2); /* control */
            does(1, "doall_start %u", i);
            work(1, A);
            if (doacross)
                does(1, "wait 0x500080 %u", i - 1);
            work(1, B);
            if (doacross)
                does(1, "post 0x500080 %u", i);
            does(1, "doall_finish %u", i);
        }
        work(1, 2);
        does(1, "doall_join %d", ITERATIONS);
        work(1, 50);
        if (!program_end(1) || !ask("parallelism"))
            return;
        uint64_t loop = doacross ? 2 + A + ITERATIONS * B : 2 + A + B;
        check_parallelism(150 + ITERATIONS * (2 + A + B) + 2, 150 + loop);
    }
}

static void who_waits_for_nobody_is_told_and_goes_on(void)
{
    program_begin(2);
    create_all(2);
    work(1, 10);
    does(1, "barrier_wait 0x500010 3");
    work(1, 20);
    does(2, "mutex_lock 0x500020");
    work(2, 5);
    does(1, "mutex_lock 0x500020");
    work(1, 1);
    if (!program_end(2) || !ask("parallelism"))
        return;
    CHECK(has_note("summary", "would never have ended"));
    check_parallelism(36, 31);
}

static void a_wait_that_is_left_out_takes_no_time(void)
{
    program_begin(2);
    create_all(2);
    work(1, 100);
    does(1, "barrier_wait 0x500010 3");
    work(1, 5);
    does(1, "thread_join 2");
    work(2, 10);
    does(2, "barrier_wait 0x500010 3");
    work(2, 50);
    if (!program_end(2) || !ask("parallelism"))
        return;
    CHECK(has_note("summary", "2 waits would never have ended"));
    check_parallelism(165, 105);
}

/* A thread that was let go long before the others came meets them when they are there. */
static void who_is_let_go_early_waits_for_others_as_ever(void)
{
    program_begin(2);
    create_all(2);
    work(1, 10);
    does(1, "barrier_wait 0x500010 3");
    work(1, 10);
    does(1, "barrier_wait 0x500020 2");
    work(1, 7);
    work(2, 500);
    does(2, "barrier_wait 0x500020 2");
    work(2, 3);
    if (!program_end(2) || !ask("parallelism"))
        return;
    CHECK_EQ(sum("barriers", "lost"), 480);
    check_parallelism(530, 507);
}

/* Whatever is left out, the path is as long as the span, which is that of some order. */
static void the_path_is_the_span_where_waits_are_left_out(void)
{
    for (unsigned trial = 0; trial < 200; trial++) {
        unsigned threads = 2 + (unsigned)draw(&state, 4);
        uint64_t all = 0, most = 0;

        program_begin(threads);
        create_all(threads);
        for (unsigned i = 1; i <= threads; i++) {
            uint64_t own = 0;
            for (unsigned k = (unsigned)draw(&state, 6); k > 0; k--) {
                uint64_t n = draw(&state, 50);
                uint64_t object = draw(&state, 3);
                own += n;
                work(i, n);
                does(i, "barrier_wait 0x5000%u0 %u", 1 + (unsigned)object, 2 + (unsigned)object);
            }
            all += own;
            most = own > most ? own : most;
        }
        join_all(threads);
        if (!program_end(threads) || !ask("parallelism"))
            return;
        CHECK(number("summary", 0, "span") >= most && number("summary", 0, "span") <= all);
        check_parallelism(all, number("summary", 0, "span"));
    }
}

static void a_run_of_nothing_has_an_answer(void)
{
    for (size_t i = 0; study_at(i); i++) {
        program_begin(0);
        if (program_end(0) && ask(study_at(i)->name))
            study_release(&answer);
        program_begin(1);
        if (program_end(1) && ask(study_at(i)->name))
            study_release(&answer);
    }
}

/* ---- all studies ---- */

static void every_study_has_a_name_of_its_own_and_a_summary(void)
{
    for (size_t i = 0; study_at(i); i++) {
        CHECK(study_at(i)->summary && *study_at(i)->summary && study_at(i)->run);
        CHECK_EQ(study_find(study_at(i)->name), study_at(i));
    }
    CHECK(!study_find("nothing"));
}

static void a_granule_that_is_no_power_of_two_is_refused(void)
{
    static const uint64_t BAD[] = { 0, 3, 8192 };
    struct peet_trace *t;
    struct peet_err err;

    program_begin(1);
    if (!program_end(1) || !fine(peet_trace_open(path_of("a"), &t, &err), &err))
        return;
    for (unsigned i = 0; i < 3; i++) {
        struct study_state *asked = study_state_new(&study_sharing);
        *(uint64_t *)study_option(&study_sharing, asked, "grain") = BAD[i];
        CHECK_EQ(study_run(&study_sharing, asked, t, &answer, NULL, &err), PEET_ERR_USAGE);
        CHECK(strstr(err.text, "a power of two"));
        study_state_free(asked);
    }
    peet_trace_free(t);
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(fork_and_join_has_the_span_of_one_thread);
    RUN(a_pipeline_of_semaphores_has_the_span_of_its_diagonal);
    RUN(a_pipeline_of_posts_has_the_span_of_its_diagonal);
    RUN(a_reduction_tree_has_the_span_of_its_height);
    RUN(barriers_cost_what_the_slowest_takes_longer);
    RUN(a_barrier_serves_one_team_after_another);
    RUN(critical_sections_bound_the_span_from_both_sides);
    RUN(readers_of_a_lock_do_not_exclude_each_other);
    RUN(a_binary_semaphore_forces_nothing_but_excludes);
    RUN(the_last_of_several_posts_is_forced_only_for_who_takes_all);
    RUN(what_a_thread_has_given_it_may_have_taken_itself);
    RUN(a_value_that_two_threads_post_forces_nothing);
    RUN(a_wait_for_less_than_was_posted_is_over_with_the_first_that_is_enough);
    RUN(who_waits_at_a_condition_gives_up_the_lock);
    RUN(iterations_of_a_parallel_loop_run_beside_each_other);
    RUN(who_waits_for_nobody_is_told_and_goes_on);
    RUN(a_wait_that_is_left_out_takes_no_time);
    RUN(who_is_let_go_early_waits_for_others_as_ever);
    RUN(the_path_is_the_span_where_waits_are_left_out);
    RUN(a_run_of_nothing_has_an_answer);
    RUN(every_study_has_a_name_of_its_own_and_a_summary);
    RUN(a_granule_that_is_no_power_of_two_is_refused);
    return end();
}
