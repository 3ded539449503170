/* SPDX-License-Identifier: MIT */
/* Barriers: no thread passes before the last one has arrived, all pass then, and what that costs. */
#include "sync_world.h"

static void use_barrier(struct world *w, const struct barrier_kind *kind)
{
    w->barrier = (struct sync_barrier){
        .kind = kind, .host = &w->host, .config = &w->config, .addr = OBJECT, .expected = w->actors
    };
}

/* No actor has passed a round at which another one has not arrived: in order of time, and in order of calls. */
static void pass(struct world *w, struct actor *a, uint64_t when)
{
    CHECK(when >= w->latest[a->passed % 2]);
    a->state = COMES;
    a->passed++;
    for (uint32_t i = 0; i < w->actors; i++) {
        const struct actor *other = &w->actor[i];
        if (!CHECK(a->passed <= other->passed + (other->state != COMES)))
            break;
    }
    go_on_at(w, a, COMES, when + draw(w) % (w->think + 1));
}

static void come_to_it(struct world *w, struct actor *a)
{
    struct sync_barrier *b = &w->barrier;
    uint64_t *latest = &w->latest[a->passed % 2];
    uint32_t before = b->arrived;
    enum sync_outcome outcome;

    *latest = before == 0 || a->when > *latest ? a->when : *latest;
    uint64_t done = b->kind->arrive(b, &a->waiter, a->when, &outcome);
    CHECK(done >= a->when);
    if (!w->has_any_numbers && (b->kind == &barrier_tree || b->kind == &barrier_dissemination))
        CHECK_EQ(a->waiter.slot, a->waiter.number); /* it finds its lines in its cache */
    CHECK_EQ(outcome, before + 1 == b->expected ? SYNC_DONE : SYNC_PARKED);
    CHECK_EQ(b->arrived, outcome == SYNC_DONE ? 0 : before + 1);
    if (outcome == SYNC_DONE)
        pass(w, a, done);
    else
        go_on_at(w, a, IS_PARKED, done);
}

/* Until each actor has passed `rounds` times. */
static void run_barrier(struct world *w, uint64_t rounds)
{
    struct sync_barrier *b = &w->barrier;
    struct actor *a;

    while ((a = next_of(w))) {
        if (a->state == TRIES) {
            uint64_t done = b->kind->resume ? b->kind->resume(b, &a->waiter, a->when) : a->when;
            CHECK(done >= a->when);
            pass(w, a, done);
        } else if (a->passed == rounds) {
            go_on_at(w, a, IS_GONE, 0);
        } else {
            come_to_it(w, a);
        }
    }
    for (uint32_t i = 0; i < w->actors; i++)
        CHECK_EQ(w->actor[i].passed, rounds);
    CHECK(!b->first);
    CHECK_EQ(b->arrived, 0);
    CHECK_EQ(b->round, rounds);
}

static void everybody_passes_a_barrier_when_the_last_one_has_come_and_not_before(void)
{
    for (int i = 0; barrier_kinds[i]; i++)
        for (int k = 0; k < 2 * SIZE_COUNT; k++) {
            struct world *w = world_new(SIZES[k / 2], &CONFIG);
            w->is_wild = k % 2;
            w->skew = k % 2 ? 50 : 0;
            use_barrier(w, barrier_kinds[i]);
            run_barrier(w, OPERATIONS / (w->is_wild ? 1u : 10u) / w->actors);
            free(w);
        }
}

static void threads_of_a_barrier_may_have_any_numbers(void)
{
    for (int i = 0; barrier_kinds[i]; i++)
        for (uint32_t n = 1; n <= MOST; n++) {
            struct world *w = world_new(n, &CONFIG);
            w->config.fan_in = n % 7; /* 0 and 1 are no fan-in, and mean 2 */
            w->is_wild = w->has_any_numbers = true;
            for (uint32_t k = 0; k < n; k++)
                w->actor[k].waiter.number = k * k * 3 + 1000 * (k % 2);
            use_barrier(w, barrier_kinds[i]);
            run_barrier(w, 20);
            free(w);
        }
}

static uint64_t nodes_of(uint64_t threads, uint64_t fan_in)
{
    uint64_t nodes = 0;

    do {
        threads = (threads + fan_in - 1) / fan_in;
        nodes += threads;
    } while (threads > 1);
    return nodes;
}

static void barriers_make_as_many_references_as_their_algorithms_say(void)
{
    for (uint32_t n = 1; n <= MOST; n++)
        for (uint32_t fan_in = 2; fan_in <= MOST; fan_in *= 2)
            for (int i = 0; barrier_kinds[i]; i++) {
                struct world *w = world_new(n, &(struct sync_config){ .fan_in = fan_in });
                uint64_t nodes = nodes_of(n, fan_in), rounds = 0;
                const char *name = barrier_kinds[i]->name;
                while ((uint64_t)1 << rounds < n)
                    rounds++;
                use_barrier(w, barrier_kinds[i]);
                run_barrier(w, 10);
                if (!strcmp(name, "central")) {
                    CHECK_EQ(w->count[PEET_UPDATE], 10 * n);
                    CHECK_EQ(w->references, 10 * 3 * n);
                } else if (!strcmp(name, "tree")) {
                    CHECK_EQ(w->count[PEET_UPDATE], 10 * (n + nodes - 1));
                    CHECK_EQ(w->count[PEET_STORE], 10 * 2 * nodes);
                    CHECK_EQ(w->count[PEET_LOAD], 10 * 2 * (n - 1));
                } else if (!strcmp(name, "dissemination")) {
                    CHECK_EQ(w->count[PEET_STORE], 10 * n * rounds);
                    CHECK(w->count[PEET_LOAD] >= 10 * n * rounds && w->count[PEET_LOAD] <= 20 * n * rounds);
                    CHECK_EQ(w->count[PEET_UPDATE], 0);
                } else {
                    CHECK_EQ(w->references, 0);
                }
                free(w);
            }
}

/* n actors arrive once, at these cycles; goes: cycle at which each continues. */
static struct world *meet(const struct barrier_kind *kind, uint32_t n, const uint64_t *comes, uint64_t *goes)
{
    struct sync_config config = { .cost = 10, .fan_in = 2 };
    struct world *w = world_new(n, &config);
    struct actor *a;
    enum sync_outcome outcome;

    use_barrier(w, kind);
    for (uint32_t i = 0; i < n; i++)
        go_on_at(w, &w->actor[i], COMES, comes[i]);
    while ((a = next_of(w))) {
        uint64_t *at = &goes[a - w->actor];
        if (a->state == TRIES) {
            *at = kind->resume ? kind->resume(&w->barrier, &a->waiter, a->when) : a->when;
            go_on_at(w, a, IS_GONE, 0);
            continue;
        }
        *at = kind->arrive(&w->barrier, &a->waiter, a->when, &outcome);
        go_on_at(w, a, outcome == SYNC_DONE ? IS_GONE : IS_PARKED, *at);
    }
    return w;
}

static void barriers_open_when_they_should(void)
{
    static const uint64_t COMES_AT[] = { 100, 300, 200, 1000 };
    const uint64_t root = 1000 + 2 * UPDATE + 3 * STORE; /* both counters, and the root's flag */
    uint64_t goes[4];

    free(meet(&barrier_ideal, 4, COMES_AT, goes));
    for (int i = 0; i < 4; i++)
        CHECK_EQ(goes[i], 1010);
    free(meet(&barrier_wired, 4, COMES_AT, goes));
    for (int i = 0; i < 4; i++)
        CHECK_EQ(goes[i], 1010);
    free(meet(&barrier_central, 4, COMES_AT, goes));
    for (int i = 0; i < 4; i++)
        CHECK_EQ(goes[i], 1000 + UPDATE + 2 * STORE + (i < 3 ? LOAD : 0));
    free(meet(&barrier_tree, 4, COMES_AT, goes));
    CHECK_EQ(goes[3], root + STORE);               /* it opens its own group, too */
    CHECK_EQ(goes[2], root + STORE + LOAD);        /*   in which this one waits */
    CHECK_EQ(goes[1], root + LOAD + STORE);        /* this one waits at the root, and opens its group */
    CHECK_EQ(goes[0], root + LOAD + STORE + LOAD); /*   in which this one waits */
}

/* The definition: the cycles at which flags are set, with fixed latencies. Returns the number of references. */
static uint64_t disseminate_slowly(uint32_t n, const uint64_t *comes, uint64_t *goes)
{
    uint64_t told[MOST], references = 0;

    memcpy(goes, comes, n * sizeof *goes);
    for (uint32_t step = 1; step < n; step *= 2) {
        for (uint32_t i = 0; i < n; i++)
            told[i] = goes[i] + STORE;
        for (uint32_t i = 0; i < n; i++) {
            uint64_t by = told[(i + n - step) % n], read = told[i] + LOAD;
            references += by <= told[i] ? 2 : 3;
            goes[i] = by <= told[i] ? read : (by > read ? by : read) + LOAD;
        }
    }
    return references;
}

static void dissemination_goes_on_as_soon_as_everybody_was_told(void)
{
    uint64_t comes[MOST], goes[MOST], expected[MOST];

    for (uint32_t round = 0; round < 2000; round++) {
        uint32_t n = 1 + round % MOST, spread = 2u << round % 11;
        struct world *random = world_new(MOST, &CONFIG);
        random->random = round;
        /* no two at the same time, for then the order of calls decides */
        for (uint32_t i = 0; i < n; i++)
            comes[i] = draw(random) % spread * MOST + i;
        free(random);
        struct world *w = meet(&barrier_dissemination, n, comes, goes);
        CHECK_EQ(w->references, disseminate_slowly(n, comes, expected));
        if (!CHECK(!memcmp(goes, expected, n * sizeof *goes)))
            printf("# %u threads, spread %u\n", n, spread);
        free(w);
    }
}

/* A fast thread may set the flag of the next opening before its partner has read the flag of this one. */
static void dissemination_has_other_flags_for_the_next_opening(void)
{
    struct world *w = world_new(2, &CONFIG);
    uint64_t told[3] = { 0 };
    uint32_t n = 0;

    use_barrier(w, &barrier_dissemination);
    run_barrier(w, 3);
    for (uint64_t i = 0; i < w->references && i < SEEN; i++)
        if (w->seen[i].kind == PEET_STORE && w->seen[i].cpu == 0 && n < 3)
            told[n++] = w->seen[i].addr;
    CHECK_EQ(n, 3);
    CHECK(told[0] != told[1]);
    CHECK(told[0] == told[2]);
    free(w);
}

static void the_same_run_gives_the_same_log(void)
{
    for (int i = 0; barrier_kinds[i]; i++) {
        uint64_t log[3];
        for (int k = 0; k < 3; k++) {
            struct world *w = world_new(13, &CONFIG);
            w->random += k == 2;
            use_barrier(w, barrier_kinds[i]);
            run_barrier(w, 200);
            log[k] = w->log;
            free(w);
        }
        CHECK_EQ(log[0], log[1]);
        CHECK(log[0] != log[2]);
    }
}

static void names_are_unique_and_found_and_explained(void)
{
    for (int i = 0; barrier_kinds[i]; i++) {
        CHECK(barrier_kind_find(barrier_kinds[i]->name) == barrier_kinds[i]); /* the first of that name */
        CHECK(strlen(barrier_kinds[i]->summary) > 10);
    }
    CHECK(!barrier_kind_find("mcs"));
}

int main(void)
{
    RUN(everybody_passes_a_barrier_when_the_last_one_has_come_and_not_before);
    RUN(threads_of_a_barrier_may_have_any_numbers);
    RUN(barriers_make_as_many_references_as_their_algorithms_say);
    RUN(barriers_open_when_they_should);
    RUN(dissemination_goes_on_as_soon_as_everybody_was_told);
    RUN(dissemination_has_other_flags_for_the_next_opening);
    RUN(the_same_run_gives_the_same_log);
    RUN(names_are_unique_and_found_and_explained);
    return check_done();
}
