/* SPDX-License-Identifier: MIT */
/* Schedulers on a machine that only counts cycles: threads run for a burst, wait for a pause, and have a total to do. */
#include <stdlib.h>

#include "check.h"
#include "map/sched/sched.h"

enum { CONTEXTS = 48, PLACES = 8, STARTS = 4096 };

enum state { IS_READY, RUNS, WAITS, IS_DONE };

struct job {
    struct sched_thread context; /* first, so that the one leads to the other */
    enum state state;
    uint64_t wants;         /* cycles, still */
    uint64_t burst, pause;  /* cycles of a run, then of a wait; burst 0: never waits */
    uint64_t since_pause;   /* it ran */
    uint64_t wake_at;       /* of the waiting thread */
    uint64_t ran, ended_at; /* in all */
    uint64_t longest;       /* wait for a place */
    uint64_t moves;         /* to another place than before */
};

struct machine {
    struct scheduler scheduler;
    struct job job[CONTEXTS], *on[PLACES];
    uint64_t began[PLACES];
    uint32_t jobs, places;
    uint64_t now, idle, switches;
    uint32_t start[STARTS]; /* threads that were picked, in order */
    uint32_t starts;
    void (*watch)(const struct machine *m); /* each cycle, when all places have decided */
};

static struct machine *machine_new(const struct sched_kind *kind, uint32_t jobs, uint32_t places, uint64_t quantum)
{
    struct machine *m = calloc(1, sizeof *m);

    if (!m)
        abort();
    m->jobs = jobs;
    m->places = places;
    sched_init(&m->scheduler, kind, &(struct sched_config){ .hw_threads = places, .quantum = quantum, .seed = 1 });
    for (uint32_t i = 0; i < jobs; i++) {
        m->job[i].context = (struct sched_thread){ .number = i, .members = jobs, .last = -1 };
        m->job[i].wants = 1000;
        m->job[i].state = WAITS;
    }
    return m;
}

static void leave(struct machine *m, uint32_t place, enum state state)
{
    m->on[place]->state = state;
    m->on[place]->ended_at = m->now;
    m->on[place] = NULL;
}

static void fill(struct machine *m, uint32_t place)
{
    size_t before = m->scheduler.count;
    struct job *j = (struct job *)sched_pick(&m->scheduler, place, m->now);

    CHECK_EQ(m->scheduler.count, before - (j != NULL));
    if (!j)
        return;
    CHECK_EQ(j->state, IS_READY); /* neither running already nor waiting */
    uint64_t waited = m->now - j->context.ready_at;
    j->longest = waited > j->longest ? waited : j->longest;
    j->moves += j->context.last >= 0 && j->context.last != (int)place;
    j->context.last = (int)place;
    j->state = RUNS;
    m->on[place] = j;
    m->began[place] = m->now;
    m->switches++;
    if (m->starts < STARTS)
        m->start[m->starts++] = j->context.number;
}

static void run_place(struct machine *m, uint32_t place)
{
    struct job *j = m->on[place];

    if (j && j->wants == 0) {
        leave(m, place, IS_DONE);
    } else if (j && j->burst && j->since_pause == j->burst) {
        j->since_pause = 0;
        j->wake_at = m->now + j->pause;
        leave(m, place, WAITS);
    } else if (j && sched_is_over(&m->scheduler, &j->context, place, m->now - m->began[place], m->now)) {
        CHECK(m->scheduler.count > 0);
        leave(m, place, IS_READY);
        sched_ready(&m->scheduler, &j->context, m->now);
    }
    if (!m->on[place])
        fill(m, place);
}

/* One cycle; false: all have ended. */
static bool cycle(struct machine *m)
{
    uint32_t ended = 0, ready = 0;

    for (uint32_t i = 0; i < m->jobs; i++)
        if (m->job[i].state == WAITS && m->job[i].wake_at <= m->now) {
            m->job[i].state = IS_READY;
            sched_ready(&m->scheduler, &m->job[i].context, m->now);
        }
    for (uint32_t p = 0; p < m->places; p++)
        run_place(m, p);
    for (uint32_t i = 0; i < m->jobs; i++) {
        ended += m->job[i].state == IS_DONE;
        ready += m->job[i].state == IS_READY;
    }
    CHECK_EQ(ready, m->scheduler.count); /* no thread is lost */
    if (m->watch)
        m->watch(m);
    for (uint32_t p = 0; p < m->places; p++) {
        struct job *j = m->on[p];
        CHECK(j || ready == 0); /* none of these leaves a place idle */
        m->idle += !j;
        if (j) {
            j->wants--;
            j->ran++;
            j->since_pause++;
        }
    }
    m->now++;
    return ended < m->jobs;
}

static void run(struct machine *m)
{
    while (cycle(m))
        if (!CHECK(m->now < 1000000))
            return;
}

static void run_until(struct machine *m, uint64_t end)
{
    while (m->now < end && cycle(m))
        ;
}

/* Runs and waits of all lengths. */
static void make_lively(struct machine *m, uint64_t random)
{
    for (uint32_t i = 0; i < m->jobs; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        m->job[i].wants = 100 + (random >> 33) % 900;
        m->job[i].burst = (random >> 43) % 60;
        m->job[i].pause = (random >> 53) % 90;
        m->job[i].context.group = (uint32_t)(random >> 60) % 5;
    }
}

static void nobody_is_lost_or_runs_twice_and_everybody_ends(void)
{
    for (int k = 0; schedulers[k]; k++)
        for (uint32_t round = 0; round < 60; round++) {
            uint32_t jobs = 1 + round * 7 % CONTEXTS, places = 1 + round % PLACES;
            struct machine *m = machine_new(schedulers[k], jobs, places, round % 3 * 20);
            make_lively(m, round);
            uint64_t wanted = 0, ran = 0;
            for (uint32_t i = 0; i < jobs; i++)
                wanted += m->job[i].wants;
            run(m);
            for (uint32_t i = 0; i < jobs; i++)
                ran += m->job[i].ran;
            CHECK_EQ(ran, wanted);
            CHECK(!m->scheduler.first && !m->scheduler.last);
            free(m);
        }
}

static void first_come_is_first_served_until_it_waits(void)
{
    struct machine *m = machine_new(&sched_fcfs, 6, 2, 10);

    for (uint32_t i = 0; i < 6; i++)
        m->job[i].wants = 100 * (i + 1);
    run(m);
    /* 0 and 1 begin; 0 ends at 100, and so on: each takes the place that is free first */
    static const uint64_t ENDS[] = { 100, 200, 400, 600, 900, 1200 };
    for (uint32_t i = 0; i < 6; i++) {
        CHECK_EQ(m->start[i], i);
        CHECK_EQ(m->job[i].ended_at, ENDS[i]);
    }
    CHECK_EQ(m->switches, 6);
    free(m);
}

static void round_robin_gives_equal_shares(void)
{
    enum { JOBS = 7, TURNS = 30, QUANTUM = 25 };
    struct machine *m = machine_new(&sched_robin, JOBS, 1, QUANTUM);

    for (uint32_t i = 0; i < JOBS; i++)
        m->job[i].wants = TURNS * QUANTUM;
    run(m);
    for (uint32_t i = 0; i < JOBS * TURNS; i++)
        CHECK_EQ(m->start[i], i % JOBS);
    for (uint32_t i = 0; i < JOBS; i++) {
        CHECK_EQ(m->job[i].ended_at, (TURNS - 1) * JOBS * QUANTUM + (i + 1) * QUANTUM);
        CHECK_EQ(m->job[i].longest, (JOBS - 1) * QUANTUM);
    }
    free(m);
}

static void round_robin_is_fair_with_any_number_of_places(void)
{
    for (uint32_t places = 1; places <= PLACES; places++) {
        struct machine *m = machine_new(&sched_robin, 19, places, 10);
        uint64_t least = UINT64_MAX, most = 0;
        for (uint32_t i = 0; i < m->jobs; i++)
            m->job[i].wants = UINT64_MAX;
        run_until(m, 5000);
        for (uint32_t i = 0; i < m->jobs; i++) {
            least = m->job[i].ran < least ? m->job[i].ran : least;
            most = m->job[i].ran > most ? m->job[i].ran : most;
            CHECK(m->job[i].longest <= (m->jobs + places - 1) / places * 10);
        }
        CHECK(most - least <= 10);
        free(m);
    }
}

static void without_a_quantum_nobody_is_interrupted(void)
{
    for (int k = 0; schedulers[k]; k++) {
        struct machine *m = machine_new(schedulers[k], 10, 3, 0);
        for (uint32_t i = 0; i < m->jobs; i++)
            m->job[i].context.group = i % 4;
        run(m);
        CHECK_EQ(m->switches, 10);
        free(m);
    }
}

static void who_is_alone_is_not_interrupted(void)
{
    for (int k = 0; schedulers[k]; k++) {
        struct machine *m = machine_new(schedulers[k], 3, 3, 10);
        run(m);
        CHECK_EQ(m->switches, 3);
        free(m);
    }
}

/* More contexts than places, and no rhythm that would bring each back to its place by itself. */
static uint64_t moves_of(const struct sched_kind *kind, uint64_t burst)
{
    struct machine *m = machine_new(kind, 13, 4, 20);
    uint64_t moves = 0;

    for (uint32_t i = 0; i < m->jobs; i++) {
        m->job[i].burst = burst ? burst + i * 5 % 7 : 0;
        m->job[i].pause = 5 + i;
    }
    run(m);
    for (uint32_t i = 0; i < m->jobs; i++)
        moves += m->job[i].moves;
    free(m);
    return moves;
}

static void affinity_moves_contexts_less_often(void)
{
    for (uint64_t burst = 0; burst < 60; burst += 15) {
        uint64_t robin = moves_of(&sched_robin, burst), affinity = moves_of(&sched_affinity, burst);
        if (!CHECK(affinity < robin / 2))
            printf("# burst %" PRIu64 ": %" PRIu64 " and %" PRIu64 "\n", burst, affinity, robin);
    }
}

/* Two are at home on place 0, one on place 1. */
static void affinity_prefers_who_was_here_and_else_who_waits_longest(void)
{
    struct scheduler s;
    struct sched_thread a = { .last = 1 }, b = { .last = 0 }, c = { .last = 0 }, d = { .last = -1 };

    sched_init(&s, &sched_affinity, &(struct sched_config){ .hw_threads = 2, .quantum = 100 });
    sched_ready(&s, &a, 0);
    sched_ready(&s, &b, 1);
    sched_ready(&s, &c, 2);
    sched_ready(&s, &d, 3);
    CHECK(sched_is_over(&s, &d, 0, 100, 10));
    CHECK(sched_pick(&s, 0, 10) == &b);
    CHECK(sched_pick(&s, 0, 10) == &c);
    CHECK(!sched_is_over(&s, &b, 0, 100, 10)); /* no thread that ran here last is left */
    CHECK(sched_pick(&s, 0, 10) == &a);
    CHECK(sched_pick(&s, 1, 10) == &d);
    CHECK(!sched_pick(&s, 1, 10));
}

static void nobody_waits_for_ever_under_affinity(void)
{
    for (uint32_t places = 1; places <= PLACES; places++)
        for (uint32_t jobs = places + 1; jobs <= 25; jobs += 4) {
            struct machine *m = machine_new(&sched_affinity, jobs, places, 10);
            uint64_t turns = jobs / places;
            for (uint32_t i = 0; i < jobs; i++)
                m->job[i].wants = UINT64_MAX;
            m->job[jobs - 1].wake_at = 100; /* it has no place that is its own */
            run_until(m, 4000);
            for (uint32_t i = 0; i < jobs; i++) {
                CHECK(m->job[i].longest <= 10 * (4 * (1 + turns) + turns + 2));
                CHECK(m->job[i].ran > 0);
            }
            free(m);
        }
}

/* In a group's turn, none of its threads waits while a thread of another group runs. */
static void watch_gang(const struct machine *m)
{
    bool has_turn = false, others_run = false, one_waits = false;

    for (uint32_t i = 0; i < m->jobs; i++) {
        const struct job *j = &m->job[i];
        bool is_member = j->context.group + (uint64_t)1 == m->scheduler.state;
        others_run |= j->state == RUNS && !is_member;
        one_waits |= j->state == IS_READY && is_member;
        has_turn |= is_member;
    }
    CHECK(has_turn);
    CHECK(!(one_waits && others_run));
}

/* Places decide one after the other, so what the first ones decide before the turn changes is seen one cycle later. */
static void members_of_a_gang_run_at_the_same_time(void)
{
    for (uint32_t size = 1; size <= 5; size++)
        for (uint32_t groups = 2; groups <= 4; groups++) {
            struct machine *m = machine_new(&sched_gang, size * groups, 4, 30);
            for (uint32_t i = 0; i < m->jobs; i++)
                m->job[i].context.group = i % groups; /* they become ready mixed */
            m->watch = watch_gang;
            run(m);
            free(m);
        }
}

static void gangs_that_fill_the_machine_take_turns(void)
{
    enum { QUANTUM = 50, GROUPS = 3 };
    struct machine *m = machine_new(&sched_gang, 4 * GROUPS, 4, QUANTUM);

    for (uint32_t i = 0; i < m->jobs; i++) {
        m->job[i].context.group = i % GROUPS;
        m->job[i].wants = 10 * QUANTUM;
    }
    run(m);
    for (uint32_t i = 0; i < m->starts; i++)
        CHECK_EQ(m->start[i] % GROUPS, i / 4 % GROUPS);
    CHECK_EQ(m->starts, 10 * 4 * GROUPS);
    CHECK_EQ(m->now - 1, 10 * GROUPS * QUANTUM);
    for (uint32_t i = 0; i < m->jobs; i++)
        CHECK_EQ(m->job[i].longest, (GROUPS - 1) * QUANTUM);
    free(m);
}

static void a_member_that_comes_back_in_its_turn_gets_a_place_at_once(void)
{
    struct machine *m = machine_new(&sched_gang, 5, 2, 1000);

    for (uint32_t i = 0; i < 5; i++)
        m->job[i].context.group = i < 2 ? 0 : 1;
    m->job[1].burst = 10;
    m->job[1].pause = 15;
    run_until(m, 500);
    CHECK_EQ(m->job[0].ran, 500);
    CHECK_EQ(m->job[1].ran, 200); /* 10 of 25, for others make room */
    CHECK_EQ(m->job[1].longest, 0);
    CHECK_EQ(m->job[2].ran + m->job[3].ran + m->job[4].ran, 300);
    free(m);
}

static void nobody_waits_for_ever_for_its_gang(void)
{
    for (uint32_t places = 1; places <= PLACES; places++) {
        struct machine *m = machine_new(&sched_gang, 20, places, 10);
        for (uint32_t i = 0; i < m->jobs; i++) {
            m->job[i].wants = UINT64_MAX;
            m->job[i].context.group = i * i % 6;
        }
        run_until(m, 5000);
        for (uint32_t i = 0; i < m->jobs; i++)
            CHECK(m->job[i].longest <= 10 * m->jobs
                  && m->job[i].ran > 0); /* each turn begins with the thread that waits longest */
        free(m);
    }
}

static void a_gang_that_is_too_big_runs_in_parts(void)
{
    struct machine *m = machine_new(&sched_gang, 5, 2, 10);

    for (uint32_t i = 0; i < 5; i++)
        m->job[i].wants = UINT64_MAX;
    run_until(m, 1000);
    for (uint32_t i = 0; i < 5; i++) {
        CHECK(m->job[i].ran >= 360 && m->job[i].ran <= 440); /* two fifths */
        CHECK(m->job[i].longest <= 30);
    }
    free(m);
}

static struct machine *run_randomly(uint64_t seed)
{
    struct machine *m = machine_new(&sched_random, 10, 3, 10);

    m->scheduler.config.seed = seed;
    for (uint32_t i = 0; i < m->jobs; i++)
        m->job[i].wants = UINT64_MAX;
    run_until(m, 10000);
    return m;
}

static void chance_is_repeatable_and_depends_on_the_seed(void)
{
    struct machine *a = run_randomly(1), *b = run_randomly(1), *c = run_randomly(2), *zero = run_randomly(0);

    CHECK_EQ(a->starts, b->starts);
    CHECK(!memcmp(a->start, b->start, sizeof a->start));
    CHECK(memcmp(a->start, c->start, sizeof a->start) != 0);
    CHECK(memcmp(a->start, zero->start, sizeof a->start) != 0);
    /* 3000 turns, of which each thread has 300 on average: five times the spread of a fair draw */
    for (uint32_t i = 0; i < a->jobs; i++)
        CHECK(a->job[i].ran > 10 * 220 && a->job[i].ran < 10 * 380 && zero->job[i].ran > 10 * 220);
    free(a);
    free(b);
    free(c);
    free(zero);
}

static void names_are_unique_and_found_and_explained(void)
{
    for (int i = 0; schedulers[i]; i++) {
        CHECK(sched_find(schedulers[i]->name) == schedulers[i]); /* the first of that name */
        CHECK(strlen(schedulers[i]->summary) > 10);
    }
    CHECK(!sched_find("lottery"));
}

int main(void)
{
    RUN(nobody_is_lost_or_runs_twice_and_everybody_ends);
    RUN(first_come_is_first_served_until_it_waits);
    RUN(round_robin_gives_equal_shares);
    RUN(round_robin_is_fair_with_any_number_of_places);
    RUN(without_a_quantum_nobody_is_interrupted);
    RUN(who_is_alone_is_not_interrupted);
    RUN(affinity_moves_contexts_less_often);
    RUN(affinity_prefers_who_was_here_and_else_who_waits_longest);
    RUN(nobody_waits_for_ever_under_affinity);
    RUN(members_of_a_gang_run_at_the_same_time);
    RUN(gangs_that_fill_the_machine_take_turns);
    RUN(a_member_that_comes_back_in_its_turn_gets_a_place_at_once);
    RUN(nobody_waits_for_ever_for_its_gang);
    RUN(a_gang_that_is_too_big_runs_in_parts);
    RUN(chance_is_repeatable_and_depends_on_the_seed);
    RUN(names_are_unique_and_found_and_explained);
    return check_done();
}
