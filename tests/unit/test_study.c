/* SPDX-License-Identifier: MIT */
/* Studies of runs whose answers are known: by a formula where there is one, else by slow and obvious code. */
#include "study/study.h"

#include <stdarg.h>

#include "study/schedule.h"
#include "tests/unit/text.h"

static uint64_t state = 7;

static uint64_t draw(uint64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

/* ---- programs ---- */

static char *program;
static size_t program_size;
static FILE *out;

/* The beginning of a program with so many threads; all but the first are created by it. b1 is one instruction, l1 a row of them;
 * b2, b3 and b4 load, store and update 8 bytes, b5 loads 4, b6 stores 64; b7 loads and b8 stores as many bytes as they are told. */
static void program_begin(unsigned threads)
{
    out = open_memstream(&program, &program_size);
    fputs("peet text 1\nprocess 1 parent 0 program \"a\" command \"a\"\n"
          "module process 1 path \"/bin/a\" build \"\" bias 0\n  segment 0x401000 0x1000 offset 0 r-x\n"
          "  symbol 0x401000 0x10 code \"work\"\n  symbol 0x401010 0x40 code \"share\"\n"
          "  symbol 0x500000 0x100 data \"table\"\n",
          out);
    for (unsigned i = 1; i <= threads; i++)
        fprintf(out, "thread %u process 1 parent %d ordinal %u name \"t%u\"\n", i, i > 1, i > 1 ? i - 2 : 0, i);
    fputs(
        "block b1\n  0x401000 4 plain\nblock b2 slots 1\n  0x401010 4 plain, load 8 [s0]\n"
        "block b3 slots 1\n  0x401014 4 plain, store 8 [s0]\nblock b4 slots 1\n  0x401018 4 plain, update 8 [s0]\n"
        "block b5 slots 1\n  0x40101c 4 plain, load 4 [s0]\nblock b6 slots 1\n  0x401020 4 plain, store 64 [s0]\n"
        "block b7 slots 2\n  0x401024 4 plain, load 1*s1 [s0]\nblock b8 slots 2\n  0x401028 4 plain, store 1*s1 [s0]\n"
        "loop l1 values 1 counts 1\n  repeat c0, step v0 = v0+1\n    b1\n  done\n",
        out);
    for (unsigned i = 2; i <= threads; i++)
        fprintf(out, "%u - thread_start 1\n", i);
}

static void work(unsigned thread, uint64_t instructions)
{
    if (instructions)
        fprintf(out, "%u - l1 0 %" PRIu64 "\n", thread, instructions);
}

static void __attribute__((format(printf, 2, 3))) does(unsigned thread, const char *format, ...)
{
    va_list ap;

    fprintf(out, "%u - ", thread);
    va_start(ap, format);
    vfprintf(out, format, ap);
    va_end(ap);
    fputc('\n', out);
}

static void create_all(unsigned threads)
{
    for (unsigned i = 2; i <= threads; i++)
        does(1, "thread_create %u", i);
}

static void join_all(unsigned threads)
{
    for (unsigned i = 2; i <= threads; i++)
        does(1, "thread_join %u", i);
}

/* Ends the program; it is then the trace "a". */
static bool program_end(unsigned threads)
{
    for (unsigned i = 1; i <= threads; i++)
        does(i, "thread_end 0 0");
    fputs("end\n", out);
    fclose(out);
    bool ok = import(program, "a");
    free(program);
    return ok;
}

/* ---- answers ---- */

static struct study_answer answer;

static bool ask(const char *name, const struct study_config *config)
{
    struct peet_trace *t;
    struct peet_err err;

    if (!fine(peet_trace_open(path_of("a"), &t, &err), &err))
        return false;
    bool ok = fine(study_run(study_find(name), t, config, &answer, NULL, &err), &err);
    peet_trace_free(t);
    return ok;
}

static const struct study_config USUAL = { .grain = 8 };

static const struct table *table_of(const char *name)
{
    for (const struct table *t = answer.result.first; t; t = t->next)
        if (!strcmp(t->name, name))
            return t;
    CHECK_EQ(name, "a table of the answer");
    return answer.result.first;
}

static const struct cell *cell_of(const char *table, size_t row, const char *column)
{
    static const struct cell NONE;
    const struct table *t = table_of(table);

    for (size_t i = 0; i < t->columns; i++)
        if (!strcmp(t->column[i].name, column) && CHECK(row < t->rows))
            return &t->cell[row * t->columns + i];
    CHECK_EQ(column, "a cell of the table");
    return &NONE;
}

static uint64_t number(const char *table, size_t row, const char *column)
{
    return cell_of(table, row, column)->count;
}

static uint64_t sum(const char *table, const char *column)
{
    uint64_t n = 0;

    for (size_t i = 0; i < table_of(table)->rows; i++)
        n += number(table, i, column);
    return n;
}

static bool has_note(const char *table, const char *words)
{
    const struct table *t = table_of(table);

    for (size_t i = 0; i < t->notes; i++)
        if (strstr(t->note[i], words))
            return true;
    return false;
}

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
    if (!program_end(THREADS) || !ask("parallelism", &USUAL))
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
    if (program_end(STAGES + 1) && ask("parallelism", &USUAL)) {
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
    if (program_end(LEAVES) && ask("parallelism", &USUAL))
        check_parallelism((2 * LEAVES - 1) * W, (LEVELS + 1) * W);
}

/* Each round lasts as long as its slowest thread. */
static void barriers_cost_what_the_slowest_takes_longer(void)
{
    for (unsigned trial = 0; trial < 20; trial++) {
        unsigned threads = 2 + (unsigned)draw(6), rounds = 1 + (unsigned)draw(8);
        uint64_t slowest[8] = { 0 }, lost = 0, all = 0, span = 0, w[8][8];

        for (unsigned r = 0; r < rounds; r++) {
            for (unsigned i = 0; i < threads; i++) {
                w[i][r] = draw(4) ? draw(100) : 0;
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
        if (!program_end(threads) || !ask("parallelism", &USUAL))
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
    if (!program_end(5) || !ask("parallelism", &USUAL))
        return;
    CHECK_EQ(number("summary", 0, "rounds"), 2);
    CHECK(has_note("summary", "more threads wait than meet"));
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
    if (!program_end(THREADS + 1) || !ask("parallelism", &USUAL))
        return;
    CHECK_EQ(number("locks", 0, "instructions"), THREADS * INSIDE);
    CHECK_EQ(number("locks", 0, "taken"), THREADS);
    CHECK_EQ(cell_of("locks", 0, "lock")->text, "table+0x20");
    CHECK_EQ(number("summary", 0, "span_least"), BEFORE + THREADS * INSIDE + BEHIND);
    CHECK_EQ(number("summary", 0, "span_most"), BEFORE + THREADS * INSIDE + BEHIND);
    check_parallelism(THREADS * (BEFORE + INSIDE + BEHIND), BEFORE + INSIDE + BEHIND);
    if (!ask("parallelism", &(struct study_config){ .grain = 8, .locks = true }))
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
    if (!program_end(4) || !ask("parallelism", &USUAL))
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
    if (!program_end(3) || !ask("parallelism", &USUAL))
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
    if (program_end(3) && ask("parallelism", &USUAL))
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
    if (program_end(2) && ask("parallelism", &USUAL))
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
    if (!program_end(3) || !ask("parallelism", &USUAL))
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
    if (program_end(2) && ask("parallelism", &USUAL))
        check_parallelism(140, 120);
}

static void who_waits_at_a_condition_gives_up_the_lock(void)
{
    program_begin(3);
    create_all(3);
    does(2, "mutex_lock 0x500020");
    work(2, 10);
    does(2, "cond_wait 0x500060 0x500020");
    work(2, 10);
    does(2, "mutex_unlock 0x500020");
    work(3, 5);
    does(3, "mutex_lock 0x500020");
    work(3, 100);
    does(3, "cond_signal 0x500060");
    work(3, 7);
    does(3, "mutex_unlock 0x500020");
    if (!program_end(3) || !ask("parallelism", &USUAL))
        return;
    CHECK_EQ(number("summary", 0, "span_most"), 10 + 107 + 10);
    check_parallelism(132, 112);
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
        if (!program_end(1) || !ask("parallelism", &USUAL))
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
    if (!program_end(2) || !ask("parallelism", &USUAL))
        return;
    CHECK(has_note("summary", "would never have ended"));
    check_parallelism(36, 31);
}

static void a_run_of_nothing_has_an_answer(void)
{
    for (size_t i = 0; study_at(i); i++) {
        program_begin(0);
        if (program_end(0) && ask(study_at(i)->name, &USUAL))
            study_release(&answer);
        program_begin(1);
        if (program_end(1) && ask(study_at(i)->name, &USUAL))
            study_release(&answer);
    }
}

/* ---- random runs ---- */

/* A run as one possible order of its steps, which then fall to threads. `when` is the number of the step that ends a piece. */
enum { RUN_THREADS = 6, RUN_OBJECTS = 3, RUN_PIECES = 400 };

struct random_run {
    unsigned threads; /* that have been created */
    bool ended[RUN_THREADS + 1], joined[RUN_THREADS + 1];
    uint64_t units[RUN_OBJECTS], posted[RUN_OBJECTS];
    unsigned steps, when[RUN_THREADS + 1][RUN_PIECES], cuts[RUN_THREADS + 1];
};

static void run_cut(struct random_run *r, unsigned thread)
{
    r->when[thread][r->cuts[thread]++] = r->steps++;
}

static void run_meet(struct random_run *r)
{
    unsigned alive = 0;

    for (unsigned t = 1; t <= r->threads; t++)
        alive += !r->ended[t];
    for (unsigned t = 1; t <= r->threads; t++) {
        if (!r->ended[t]) {
            does(t, "barrier_wait 0x%x %u", 0x800000 + r->steps, alive);
            r->when[t][r->cuts[t]++] = r->steps;
        }
    }
    r->steps++;
}

static void run_threads(struct random_run *r, unsigned thread)
{
    unsigned other = 2 + (unsigned)draw(RUN_THREADS - 1);

    if (draw(2) && r->threads < RUN_THREADS) {
        does(thread, "thread_create %u", ++r->threads);
        run_cut(r, thread);
    } else if (other <= r->threads && other != thread && !r->joined[other] && draw(2)) {
        r->ended[other] = r->joined[other] = true;
        does(thread, "thread_join %u", other);
        run_cut(r, thread);
    }
}

static void run_step(struct random_run *r)
{
    unsigned thread = 1 + (unsigned)draw(r->threads), object = (unsigned)draw(RUN_OBJECTS), what = (unsigned)draw(20);

    if (r->ended[thread] || r->cuts[thread] > RUN_PIECES - 10)
        return;
    work(thread, draw(2) ? draw(50) : 0);
    if (what == 0) {
        run_meet(r);
    } else if (what < 4) {
        run_threads(r, thread);
    } else if (what < 8 && (thread == 1 + object || draw(16) == 0)) { /* mostly one gives: then arcs are forced */
        does(thread, "sem_post 0x%x", 0x600000 + object);
        r->units[object]++;
        run_cut(r, thread);
    } else if (what >= 8 && what < 12 && r->units[object] && thread != 1 + object) {
        does(thread, "sem_wait 0x%x", 0x600000 + object);
        r->units[object]--;
        run_cut(r, thread);
    } else if (what >= 12 && what < 15) {
        does(thread, "post 0x%x %" PRIu64, 0x610000 + object, ++r->posted[object]);
        run_cut(r, thread);
    } else if (what >= 15 && r->posted[object]) {
        does(thread, "wait 0x%x %" PRIu64, 0x610000 + object, 1 + draw(r->posted[object]));
        run_cut(r, thread);
    }
}

static bool make_random_run(struct random_run *r)
{
    memset(r, 0, sizeof *r);
    program_begin(RUN_THREADS);
    for (unsigned i = 0; i < RUN_OBJECTS; i++) {
        r->units[i] = draw(2);
        does(1, "sem_init 0x%x %" PRIu64, 0x600000 + i, r->units[i]);
    }
    r->threads = 1;
    for (unsigned n = 20 + (unsigned)draw(150); n > 0; n--)
        run_step(r);
    while (r->threads < RUN_THREADS) {
        does(1, "thread_create %u", ++r->threads);
        run_cut(r, 1);
    }
    return program_end(RUN_THREADS);
}

/* By the arcs, who comes before whom, and how long the longest way is. */
static void check_schedule(const struct precedence *p, const struct schedule *s, const uint32_t *epoch,
                           const uint64_t *tail)
{
    uint32_t n = p->pieces;
    bool *reach = calloc((size_t)n * n, 1), changed = true;
    uint64_t *ends = calloc(n + 1, sizeof *ends), span = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (i + 1 < n && p->piece[i + 1].lane == p->piece[i].lane)
            reach[(size_t)i * n + i + 1] = true;
        for (uint32_t k = 0; k < n && s->meeting[i] != PIECE_NONE; k++)
            if (s->meeting[k] == s->meeting[i])
                reach[(size_t)i * n + k + 1] = true;
    }
    for (size_t i = 0; i < p->arcs; i++)
        reach[(size_t)p->arc[i].from * n + p->arc[i].to] = true;
    for (unsigned rounds = 0; changed && rounds <= n; rounds++) {
        changed = false;
        for (uint32_t i = 0; i < n; i++) {
            uint64_t begins = 0;
            for (uint32_t k = 0; k < n; k++)
                if (reach[(size_t)k * n + i] && ends[k] > begins)
                    begins = ends[k];
            changed = changed || ends[i] != begins + p->piece[i].instructions;
            ends[i] = begins + p->piece[i].instructions;
            span = ends[i] > span ? ends[i] : span;
        }
    }
    CHECK(!changed);
    CHECK_EQ(s->span, span);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n && reach[(size_t)i * n + k]; j++)
                reach[(size_t)i * n + j] |= reach[(size_t)k * n + j];
    for (uint32_t i = 0; i < n; i++) {
        uint64_t behind = 0;
        CHECK_EQ(s->finish[i], ends[i]);
        for (uint32_t j = 0; j < n; j++) {
            CHECK(i == j || epoch[i] >= epoch[j] || reach[(size_t)i * n + j]);
            behind = reach[(size_t)i * n + j] && tail[j] + p->piece[j].instructions > behind
                         ? tail[j] + p->piece[j].instructions
                         : behind;
        }
        CHECK_EQ(tail[i], behind);
    }
    free(reach);
    free(ends);
}

/* An arc is certain if it holds in every run that has these streams; so it holds in the one that they come from. */
static void check_arcs(const struct precedence *p, const struct random_run *r)
{
    for (size_t i = 0; i < p->arcs; i++) {
        const struct piece *from = &p->piece[p->arc[i].from], *to = &p->piece[p->arc[i].to];
        const struct lane *a = &p->lane[from->lane], *b = &p->lane[to->lane];
        if (p->arc[i].to == b->first || from->end == PEET_EV_thread_end)
            continue;
        CHECK(r->when[a->id][p->arc[i].from - a->first] < r->when[b->id][p->arc[i].to - 1 - b->first]);
    }
}

static void certain_arcs_hold_in_the_run_and_times_are_longest_ways(void)
{
    static struct random_run r;
    uint64_t semaphores = 0, epochs = 0;

    for (unsigned trial = 0; trial < 100; trial++) {
        struct precedence p;
        struct schedule s;
        struct peet_trace *t;
        struct peet_err err;
        uint32_t *epoch = NULL, count = 0;
        uint64_t *tail = NULL;

        if (!make_random_run(&r) || !fine(peet_trace_open(path_of("a"), &t, &err), &err))
            return;
        if (!fine(precedence_read(&p, t, NULL, &err), &err) || !fine(schedule_make(&s, &p, false, &err), &err)
            || !fine(schedule_epochs(&s, &p, &epoch, &count, &err), &err)
            || !fine(schedule_tails(&s, &p, &tail, &err), &err))
            return;
        CHECK_EQ(s.broken, 0);
        check_arcs(&p, &r);
        check_schedule(&p, &s, epoch, tail);
        for (size_t i = 0; i < p.arcs; i++)
            semaphores += p.arc[i].kind == PEET_EV_sem_wait;
        epochs += count;
        free(epoch);
        free(tail);
        schedule_release(&s);
        precedence_release(&p);
        peet_trace_free(t);
    }
    CHECK(semaphores > 100 && epochs > 200); /* there was something to look at */
}

/* ---- the graph ---- */

/* Nodes in an order in which every arc goes forward: false when there is none. */
static bool is_acyclic(void)
{
    size_t nodes = table_of("nodes")->rows, arcs = table_of("arcs")->rows, left = nodes;
    bool *gone = calloc(nodes + 1, 1), progress = true;

    while (left && progress) {
        bool *entered = calloc(nodes + 1, 1);
        progress = false;
        for (size_t i = 0; i < arcs; i++)
            if (!gone[number("arcs", i, "from")])
                entered[number("arcs", i, "to")] = true;
        for (size_t i = 0; i < nodes; i++) {
            if (!gone[i] && !entered[i]) {
                gone[i] = progress = true;
                left--;
            }
        }
        free(entered);
    }
    free(gone);
    return left == 0;
}

/* A run of many rounds with a lock in each. */
static bool make_rounds(unsigned threads, unsigned rounds)
{
    program_begin(threads);
    create_all(threads);
    for (unsigned i = 1; i <= threads; i++) {
        for (unsigned r = 0; r < rounds; r++) {
            work(i, 10 + draw(10));
            does(i, "mutex_lock 0x500020");
            work(i, 1);
            does(i, "mutex_unlock 0x500020");
            does(i, "barrier_wait 0x500010 %u", threads);
        }
    }
    join_all(threads);
    return program_end(threads);
}

static void merging_nodes_keeps_the_work_and_makes_no_cycle(void)
{
    static const unsigned ROUNDS[] = { 3, 30, 500 };
    static const struct study_config COLLAPSED = { .grain = 8, .collapse = true };

    for (unsigned i = 0; i < 3; i++) {
        if (!make_rounds(4, ROUNDS[i]) || !ask("graph", &USUAL))
            return;
        size_t nodes = table_of("nodes")->rows;
        uint64_t all = sum("nodes", "instructions");
        CHECK_EQ(nodes, 4 * (3 * ROUNDS[i] + 1) + 6 + ROUNDS[i]);
        CHECK(i > 1 || is_acyclic());
        study_release(&answer);
        if (!ask("graph", &COLLAPSED))
            return;
        CHECK(table_of("nodes")->rows < nodes && table_of("nodes")->rows <= 400);
        CHECK_EQ(sum("nodes", "instructions"), all);
        CHECK_EQ(sum("nodes", "pieces"), 4 * (3 * ROUNDS[i] + 1) + 6);
        CHECK(is_acyclic());
        study_release(&answer);
    }
}

static void the_drawing_has_every_node_and_arc(void)
{
    char *text = NULL;
    size_t size, nodes = 0, arcs = 0;

    if (!make_rounds(3, 2) || !ask("graph", &USUAL))
        return;
    FILE *drawing = open_memstream(&text, &size);
    study_graph.text(&answer.result, drawing);
    fclose(drawing);
    for (const char *p = text; (p = strstr(p, "[label=")); p++)
        nodes++;
    for (const char *p = text; (p = strstr(p, " -> ")); p++)
        arcs++;
    CHECK_EQ(arcs, table_of("arcs")->rows);
    CHECK_EQ(nodes - arcs, table_of("nodes")->rows);
    CHECK(strstr(text, "subgraph cluster_3") && strstr(text, "thread_create") && strstr(text, "color=red"));
    free(text);
    study_release(&answer);
}

/* ---- sharing ---- */

static void check_sums(void)
{
    static const char *const KINDS[] = { "bytes", "private", "read_only", "shared", "many", "ordered", "unordered" };

    for (unsigned i = 0; i < 7; i++)
        CHECK_EQ(sum("data", KINDS[i]), number("summary", 0, KINDS[i]));
    CHECK_EQ(sum("threads", "private"), number("summary", 0, "private"));
    CHECK_EQ(sum("threads", "references"), number("summary", 0, "references"));
    CHECK_EQ(sum("pairs", "ordered"), number("summary", 0, "ordered"));
    CHECK_EQ(sum("pairs", "unordered"), number("summary", 0, "unordered"));
    CHECK_EQ(sum("threads", "read"), sum("pairs", "ordered"));
    CHECK_EQ(sum("threads", "written"), sum("pairs", "ordered"));
    CHECK_EQ(number("summary", 0, "bytes"),
             number("summary", 0, "private") + number("summary", 0, "read_only") + number("summary", 0, "shared"));
}

static void what_one_writes_and_others_read_later_goes_to_each_of_them(void)
{
    enum { THREADS = 4, WORDS = 100 };

    for (unsigned grain = 4; grain <= 64; grain *= 2) {
        program_begin(THREADS);
        for (unsigned i = 0; i < WORDS; i++)
            does(1, "b3 0x%x", 0x700000 + 8 * i);
        create_all(THREADS);
        for (unsigned i = 2; i <= THREADS; i++)
            for (unsigned k = 0; k < 2 * WORDS; k++)
                does(i, "b2 0x%x", 0x700000 + 8 * (k % WORDS));
        if (!program_end(THREADS) || !ask("sharing", &(struct study_config){ .grain = grain }))
            return;
        uint64_t bytes = (8 * WORDS + grain - 1) / grain * grain;
        CHECK_EQ(number("summary", 0, "bytes"), bytes);
        CHECK_EQ(number("summary", 0, "shared"), bytes);
        CHECK_EQ(number("summary", 0, "many"), 0);
        CHECK_EQ(table_of("pairs")->rows, THREADS - 1);
        for (unsigned i = 0; i < THREADS - 1; i++) {
            CHECK_EQ(number("pairs", i, "writer"), 1);
            CHECK_EQ(number("pairs", i, "reader"), i + 2);
            CHECK_EQ(number("pairs", i, "ordered"), bytes);
            CHECK_EQ(number("pairs", i, "unordered"), 0);
        }
        check_sums();
        study_release(&answer);
    }
}

static void what_has_no_order_is_told_as_unordered(void)
{
    program_begin(3);
    create_all(3);
    does(2, "b3 0x500000");
    does(3, "b2 0x500000");
    does(2, "b2 0x500008"); /* only read */
    does(3, "b2 0x500008");
    does(3, "b3 0x500010"); /* private: written, then read */
    does(3, "b2 0x500010");
    does(2, "b4 0x500018"); /* both count on it */
    does(3, "b4 0x500018");
    does(2, "range_write 0x500020 16");
    does(3, "range_copy 0x500040 0x500020 16");
    if (!program_end(3) || !ask("sharing", &USUAL))
        return;
    CHECK_EQ(number("summary", 0, "read_only"), 8);
    CHECK_EQ(number("summary", 0, "private"), 8 + 16);
    CHECK_EQ(number("summary", 0, "shared"), 8 + 8 + 16);
    CHECK_EQ(number("summary", 0, "many"), 8);
    CHECK_EQ(number("summary", 0, "ordered"), 0);
    CHECK_EQ(number("pairs", 0, "unordered"), 8 + 8 + 16);
    CHECK_EQ(number("pairs", 1, "unordered"), 8);
    CHECK_EQ(cell_of("data", 0, "data")->text, "table");
    check_sums();
    study_release(&answer);
}

static void what_is_joined_or_met_by_all_is_in_order_and_nothing_else(void)
{
    program_begin(4);
    create_all(4);
    does(2, "b3 0x500000");
    does(2, "barrier_wait 0x500080 2"); /* thread 4 is not there, so that it orders nothing for all */
    does(3, "barrier_wait 0x500080 2");
    does(3, "b3 0x500008");
    does(4, "b2 0x500000");
    join_all(4);
    does(1, "b2 0x500000");
    does(1, "b2 0x500008");
    if (!program_end(4) || !ask("sharing", &USUAL))
        return;
    CHECK_EQ(table_of("pairs")->rows, 3);
    CHECK_EQ(number("pairs", 0, "reader"), 1);
    CHECK_EQ(number("pairs", 0, "ordered"), 8);
    CHECK_EQ(number("pairs", 1, "reader"), 4);
    CHECK_EQ(number("pairs", 1, "unordered"), 8);
    CHECK_EQ(number("pairs", 1, "ordered"), 0);
    CHECK_EQ(number("pairs", 2, "writer"), 3);
    CHECK_EQ(number("pairs", 2, "ordered"), 8);
    check_sums();
    study_release(&answer);
}

/* The same by definition: granules one by one, threads one by one. */
enum { AREA = 4096, MOST_THREADS = 5 };

struct oracle {
    unsigned threads;
    uint64_t grain;
    bool reads[AREA][MOST_THREADS], writes[AREA][MOST_THREADS]; /* in this epoch; reads: before its own write */
    bool read_ever[AREA][MOST_THREADS], wrote_ever[AREA][MOST_THREADS];
    bool wrote_last[AREA][MOST_THREADS], has_seen[AREA][MOST_THREADS];
    uint64_t ordered[MOST_THREADS][MOST_THREADS], unordered[MOST_THREADS][MOST_THREADS];
};

static void oracle_touch(struct oracle *o, unsigned thread, bool reads, bool writes, uint64_t offset, uint64_t size)
{
    for (uint64_t g = offset / o->grain; g <= (offset + size - 1) / o->grain; g++) {
        if (reads && !o->writes[g][thread])
            o->reads[g][thread] = true;
        if (writes)
            o->writes[g][thread] = true;
    }
}

static void oracle_granule(struct oracle *o, unsigned g)
{
    unsigned owners = 0;
    bool written = false;

    for (unsigned t = 0; t < o->threads; t++) {
        owners += o->wrote_last[g][t];
        written = written || o->writes[g][t];
    }
    for (unsigned r = 0; r < o->threads; r++) {
        bool others_write = false;
        for (unsigned t = 0; t < o->threads; t++)
            others_write = others_write || (t != r && o->writes[g][t]);
        for (unsigned w = 0; w < o->threads && o->reads[g][r]; w++) {
            bool old = o->wrote_last[g][w] && !o->has_seen[g][r] && !others_write;
            if (w != r && old && owners == 1)
                o->ordered[w][r]++;
            if (w != r && ((old && owners > 1) || o->writes[g][w]))
                o->unordered[w][r]++;
        }
    }
    for (unsigned t = 0; t < o->threads; t++) {
        o->has_seen[g][t] = !written && (o->has_seen[g][t] || o->reads[g][t]);
        o->wrote_last[g][t] = written ? o->writes[g][t] : o->wrote_last[g][t];
        o->read_ever[g][t] = o->read_ever[g][t] || o->reads[g][t];
        o->wrote_ever[g][t] = o->wrote_ever[g][t] || o->writes[g][t];
        o->reads[g][t] = o->writes[g][t] = false;
    }
}

static void oracle_compare(const struct oracle *o)
{
    uint64_t private = 0, read_only = 0, shared = 0, many = 0, flows = 0;

    for (unsigned g = 0; g < AREA; g++) {
        unsigned users = 0, writers = 0;
        for (unsigned t = 0; t < o->threads; t++) {
            users += o->read_ever[g][t] || o->wrote_ever[g][t];
            writers += o->wrote_ever[g][t];
        }
        private += users == 1;
        read_only += users > 1 && !writers;
        shared += users > 1 && writers;
        many += users > 1 && writers > 1;
    }
    CHECK_EQ(number("summary", 0, "private"), private * o->grain);
    CHECK_EQ(number("summary", 0, "read_only"), read_only * o->grain);
    CHECK_EQ(number("summary", 0, "shared"), shared * o->grain);
    CHECK_EQ(number("summary", 0, "many"), many * o->grain);
    for (unsigned w = 0; w < o->threads; w++)
        for (unsigned r = 0; r < o->threads; r++)
            flows += o->ordered[w][r] || o->unordered[w][r];
    CHECK_EQ(table_of("pairs")->rows, flows);
    for (size_t i = 0; i < table_of("pairs")->rows; i++) {
        uint64_t w = number("pairs", i, "writer") - 1, r = number("pairs", i, "reader") - 1;
        CHECK_EQ(number("pairs", i, "ordered"), o->ordered[w][r] * o->grain);
        CHECK_EQ(number("pairs", i, "unordered"), o->unordered[w][r] * o->grain);
    }
}

static void sharing_is_what_granules_one_by_one_tell(void)
{
    static struct oracle o;
    static const char *const KINDS[] = { "b7", "b8" };

    for (unsigned trial = 0; trial < 30; trial++) {
        unsigned epochs = 1 + (unsigned)draw(6), most = trial % 3 ? 20 : 200;
        memset(&o, 0, sizeof o);
        o.threads = 2 + (unsigned)draw(MOST_THREADS - 1);
        o.grain = UINT64_C(1) << draw(7);
        program_begin(o.threads);
        create_all(o.threads);
        /* All threads begin in one epoch: the first has created them before it did anything. */
        for (unsigned e = 0; e < epochs; e++) {
            for (unsigned t = 0; t < o.threads; t++) {
                for (unsigned n = (unsigned)draw(most); n > 0; n--) {
                    uint64_t size = draw(8) ? 1 + draw(16) : 1 + draw(300), at = draw(AREA - size);
                    bool writes = draw(3) == 0;
                    does(t + 1, "%s 0x%" PRIx64 " %" PRIu64, KINDS[writes], 0x4ff800 + at, size);
                    oracle_touch(&o, t, !writes, writes, at, size);
                }
                does(t + 1, "barrier_wait 0x900000 %u", o.threads);
            }
            for (unsigned g = 0; g < AREA; g++)
                oracle_granule(&o, g);
        }
        if (!program_end(o.threads) || !ask("sharing", &(struct study_config){ .grain = o.grain }))
            return;
        oracle_compare(&o);
        check_sums();
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
        struct study_config config = { .grain = BAD[i] };
        CHECK_EQ(study_run(&study_sharing, t, &config, &answer, NULL, &err), PEET_ERR_USAGE);
        CHECK(strstr(err.text, "a power of two"));
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
    RUN(a_run_of_nothing_has_an_answer);
    RUN(certain_arcs_hold_in_the_run_and_times_are_longest_ways);
    RUN(merging_nodes_keeps_the_work_and_makes_no_cycle);
    RUN(the_drawing_has_every_node_and_arc);
    RUN(what_one_writes_and_others_read_later_goes_to_each_of_them);
    RUN(what_has_no_order_is_told_as_unordered);
    RUN(what_is_joined_or_met_by_all_is_in_order_and_nothing_else);
    RUN(sharing_is_what_granules_one_by_one_tell);
    RUN(every_study_has_a_name_of_its_own_and_a_summary);
    RUN(a_granule_that_is_no_power_of_two_is_refused);
    return end();
}
