/* SPDX-License-Identifier: MIT */
/* Locks: which thread has them, when, in which order, and with how many references. */
#include "sync_world.h"

/* Whether threads get a lock in the order in which they asked for it. A new lock needs its line here. */
static bool is_fifo(const struct lock_kind *kind, enum lock_grant grant)
{
    if (kind == &lock_ideal)
        return grant == GRANT_FIFO;
    if (kind == &lock_ticket || kind == &lock_mcs)
        return true;
    CHECK(kind == &lock_tas || kind == &lock_ttas);
    return false;
}

static void use_locks(struct world *w, const struct lock_kind *kind, uint32_t locks)
{
    w->locks = locks;
    w->is_fifo = is_fifo(kind, (enum lock_grant)w->config.grant);
    for (uint32_t i = 0; i < locks; i++)
        w->lock[i].lock =
            (struct sync_lock){ .kind = kind, .host = &w->host, .config = &w->config, .addr = OBJECT + 512 * i };
}

static void make_plan(struct world *w, struct actor *a)
{
    unsigned mask = w->locks == 1 ? 1 : 1 + (unsigned)(draw(w) % 3);

    a->plans = 0;
    for (unsigned i = 0; i < w->locks; i++)
        if (mask >> i & 1)
            a->plan[a->plans++] = i;
}

/* The waiter that a policy has to choose; NULL: any. */
static struct actor *expect(const struct world *w, const struct watched *l)
{
    struct actor *best = l->waits ? l->waiting[0] : NULL;

    if (strcmp(l->lock.kind->name, "ideal") != 0 || w->config.grant == GRANT_RANDOM || !best)
        return NULL;
    if (w->config.grant == GRANT_LIFO)
        return l->waiting[l->waits - 1];
    for (uint32_t i = 0; w->config.grant == GRANT_PRIORITY && i < l->waits; i++)
        best = l->waiting[i]->waiter.priority > best->waiter.priority ? l->waiting[i] : best;
    return best;
}

static void has_it(struct world *w, struct watched *l, struct actor *a, uint64_t when)
{
    uint32_t at = 0;

    CHECK(!l->holder);
    CHECK(when >= l->free_at);
    CHECK(!l->expected || l->expected == a);
    CHECK(!w->is_fifo || l->waiting[0] == a);
    while (at < l->waits && l->waiting[at] != a)
        at++;
    memmove(l->waiting + at, l->waiting + at + 1, (l->waits - at - 1) * sizeof *l->waiting);
    l->waits--;
    l->holder = a;
    l->expected = NULL;
    w->acquired++;
    a->uses++;
    a->held++;
}

static void try_it(struct world *w, struct actor *a)
{
    struct watched *l = &w->lock[a->plan[a->held]];
    enum sync_outcome outcome;

    if (a->state == COMES)
        l->waiting[l->waits++] = a;
    uint64_t done = l->lock.kind->attempt(&l->lock, &a->waiter, a->state == COMES, a->when, &outcome);
    CHECK(done >= a->when);
    if (outcome == SYNC_DONE) {
        w->waited += a->state == TRIES;
        has_it(w, l, a, done);
        if (a->held < a->plans)
            go_on_at(w, a, COMES, done);
        else
            go_on_at(w, a, HOLDS, done + (w->is_steady ? w->hold : draw(w) % (w->hold + 1)));
    } else {
        go_on_at(w, a, outcome == SYNC_AGAIN ? TRIES : IS_PARKED, done);
    }
}

static void give_back(struct world *w, struct actor *a)
{
    struct watched *l = &w->lock[a->plan[--a->held]];

    CHECK(l->holder == a);
    l->holder = NULL;
    l->expected = expect(w, l);
    l->free_at = l->lock.kind->release(&l->lock, &a->waiter, a->when);
    CHECK(l->free_at >= a->when);
    if (a->held > 0) {
        go_on_at(w, a, HOLDS, l->free_at);
        return;
    }
    make_plan(w, a);
    go_on_at(w, a, COMES, l->free_at + (w->is_steady ? w->think : draw(w) % (w->think + 1)));
}

/* Until locks were taken and given back that often. */
static void run_locks(struct world *w, uint64_t acquisitions)
{
    for (uint32_t i = 0; i < w->actors; i++)
        make_plan(w, &w->actor[i]);
    while (w->acquired < acquisitions) {
        struct actor *a = next_of(w);
        if (!CHECK(a) || !CHECK(w->steps++ < 100000000))
            return;
        if (a->state == HOLDS)
            give_back(w, a);
        else
            try_it(w, a);
    }
}

static void nobody_holds_a_lock_with_another_and_everybody_gets_it(void)
{
    for (int i = 0; lock_kinds[i]; i++)
        for (int k = 0; k < 2 * SIZE_COUNT; k++) {
            struct world *w = world_new(SIZES[k / 2], &CONFIG);
            w->is_wild = k % 2;
            w->skew = k % 2 ? 50 : 0;
            use_locks(w, lock_kinds[i], 1);
            run_locks(w, OPERATIONS / (w->is_wild ? 2u : 20u));
            for (uint32_t n = 0; n < w->actors; n++)
                if (!CHECK(w->actor[n].uses > 0))
                    printf("# %s: waiter %u of %u\n", lock_kinds[i]->name, n, w->actors);
            free(w);
        }
}

static void who_holds_a_lock_may_wait_for_another_one(void)
{
    for (int i = 0; lock_kinds[i]; i++)
        for (int k = 0; k < SIZE_COUNT; k++) {
            struct world *w = world_new(SIZES[k], &CONFIG);
            w->is_wild = true;
            w->skew = 50;
            use_locks(w, lock_kinds[i], 2);
            run_locks(w, 20000);
            CHECK(w->waited > 0 || SIZES[k] == 1);
            free(w);
        }
}

/* has_it compares with the policy. */
static void an_ideal_lock_goes_to_whom_the_policy_says(void)
{
    for (uint8_t grant = GRANT_FIFO; grant <= GRANT_RANDOM; grant++)
        for (int k = 0; k < SIZE_COUNT; k++) {
            struct sync_config config = { .grant = grant, .cost = (uint32_t)k };
            struct world *w = world_new(SIZES[k], &config);
            w->hold = 20;
            use_locks(w, &lock_ideal, 1);
            run_locks(w, 20000);
            CHECK(w->waited > 0 || SIZES[k] == 1);
            CHECK_EQ(w->references, 0);
            free(w);
        }
}

/* One holds it from 0 on, 1 to 8 come, and then it is given back again and again. */
static void order_of(uint8_t grant, uint64_t random, unsigned order[8])
{
    struct sync_config config = { .grant = grant };
    struct world *w = world_new(9, &config);
    enum sync_outcome outcome;

    use_locks(w, &lock_ideal, 1);
    w->random = random;
    struct sync_lock *l = &w->lock[0].lock;
    for (unsigned i = 0; i < 9; i++) {
        l->kind->attempt(l, &w->actor[i].waiter, true, i, &outcome);
        CHECK_EQ(outcome, i == 0 ? SYNC_DONE : SYNC_PARKED);
        go_on_at(w, &w->actor[i], i == 0 ? HOLDS : IS_PARKED, i);
    }
    struct actor *holder = &w->actor[0];
    for (unsigned i = 0; i < 8; i++) {
        go_on_at(w, holder, IS_GONE, 0);
        l->kind->release(l, &holder->waiter, 100 + i);
        holder = next_of(w);
        if (!CHECK(holder))
            break;
        l->kind->attempt(l, &holder->waiter, false, holder->when, &outcome);
        CHECK_EQ(outcome, SYNC_DONE);
        order[i] = holder->waiter.number;
    }
    l->kind->release(l, &holder->waiter, 200);
    CHECK(!l->taken);
    free(w);
}

static void policies_make_the_orders_that_they_are_named_after(void)
{
    /* priorities are 7 i mod 5: 2 4 1 3 0 2 4 1 of the threads 1 to 8 */
    static const unsigned FIFO[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, LIFO[] = { 8, 7, 6, 5, 4, 3, 2, 1 };
    static const unsigned PRIORITY[] = { 2, 7, 4, 1, 6, 3, 8, 5 };
    unsigned order[8] = { 0 }, again[8] = { 0 }, other[8] = { 0 }, seen = 0;

    order_of(GRANT_FIFO, 1, order);
    CHECK(!memcmp(order, FIFO, sizeof order));
    order_of(GRANT_LIFO, 1, order);
    CHECK(!memcmp(order, LIFO, sizeof order));
    order_of(GRANT_PRIORITY, 1, order);
    CHECK(!memcmp(order, PRIORITY, sizeof order));
    order_of(GRANT_RANDOM, 1, order);
    order_of(GRANT_RANDOM, 1, again);
    order_of(GRANT_RANDOM, 2, other);
    CHECK(!memcmp(order, again, sizeof order));
    CHECK(memcmp(order, other, sizeof order) != 0);
    for (int i = 0; i < 8; i++)
        seen |= 1u << order[i];
    CHECK_EQ(seen, 0x1fe);
}

static void a_lock_that_nobody_else_wants_costs_what_its_algorithm_says(void)
{
    static const struct {
        const char *name;
        uint64_t loads, stores, updates;
    } COST[] = {
        { "ideal", 0, 0, 0 }, { "tas", 0, 1, 1 }, { "ttas", 1, 1, 1 }, { "ticket", 1, 1, 1 }, { "mcs", 1, 1, 2 }
    };

    for (size_t i = 0; i < sizeof COST / sizeof *COST; i++) {
        struct world *w = world_new(1, &CONFIG);
        use_locks(w, lock_kind_find(COST[i].name), 1);
        w->is_steady = true;
        uint64_t begin = w->actor[0].when;
        run_locks(w, 1000);
        give_back(w, &w->actor[0]);
        CHECK_EQ(w->count[PEET_LOAD], 1000 * COST[i].loads);
        CHECK_EQ(w->count[PEET_STORE], 1000 * COST[i].stores);
        CHECK_EQ(w->count[PEET_UPDATE], 1000 * COST[i].updates);
        uint64_t each = COST[i].loads * LOAD + COST[i].stores * STORE + COST[i].updates * UPDATE;
        each += i == 0 ? 2 * CONFIG.cost : 0;
        CHECK_EQ(w->actor[0].when - begin, 1000 * (each + w->think + w->hold));
        free(w);
    }
}

/* References per acquisition, while all others wait: hundredths. */
static uint64_t traffic(const struct lock_kind *kind, uint32_t threads)
{
    static const struct sync_config SPIN = { .spin = 40 };
    struct world *w = world_new(threads, &SPIN);

    use_locks(w, kind, 1);
    w->is_steady = true;
    w->think = 100;
    w->hold = 3000;
    run_locks(w, 200); /* all are in the queue by now */
    uint64_t before = w->references;
    run_locks(w, 600);
    uint64_t result = (w->references - before + 2) / 4;
    free(w);
    return result;
}

static void contention_costs_each_kind_what_its_algorithm_says(void)
{
    for (uint32_t n = 2; n <= MOST; n *= 2) {
        CHECK_EQ(traffic(&lock_ideal, n), 0);
        CHECK_EQ(traffic(&lock_mcs, n), 800);
        CHECK_EQ(traffic(&lock_ticket, n), 100 * (n + 2));
        CHECK_EQ(traffic(&lock_ttas, n), 100 * (3 * n - 2));
        /* each of the others tries every 60 cycles, for a little more than 3000 */
        uint64_t tas = traffic(&lock_tas, n), turns = 100 * (n - 1) * 3000 / (UPDATE + 40);
        if (!CHECK(tas > turns * 9 / 10 && tas < turns * 12 / 10 + 200))
            printf("# %u threads: %" PRIu64 " hundredths\n", n, tas);
    }
}

/* A has it; B, C and D come; each gives it back to the next. */
static void play_the_queue(struct world *w)
{
    struct sync_lock *l = &w->lock[0].lock;
    enum sync_outcome outcome;

    for (unsigned i = 0; i < 4; i++) {
        w->actor[i].waiter.number = 5 + i;
        uint64_t done = l->kind->attempt(l, &w->actor[i].waiter, true, 100 * i, &outcome);
        CHECK_EQ(outcome, i ? SYNC_PARKED : SYNC_DONE);
        go_on_at(w, &w->actor[i], i ? IS_PARKED : HOLDS, done);
    }
    for (unsigned i = 0; i < 4; i++) {
        l->kind->release(l, &w->actor[i].waiter, 1000 * (i + 1));
        if (i < 3)
            l->kind->attempt(l, &w->actor[i + 1].waiter, false, 1000 * (i + 1) + 500, &outcome);
        CHECK_EQ(outcome, SYNC_DONE);
    }
}

static void the_queue_uses_the_words_that_its_algorithm_says(void)
{
    struct world *w = world_new(4, &CONFIG);

    use_locks(w, &lock_mcs, 1);
    play_the_queue(w);
    uint64_t l = OBJECT, a = w->seen[0].addr - 8, b = w->seen[2].addr - 8, c = w->seen[7].addr - 8,
             d = w->seen[12].addr - 8;
    /* clang-format off */
    const struct reference expected[] = {
        { 0, PEET_STORE, a + 8 }, { 0, PEET_UPDATE, l },
        { 1, PEET_STORE, b + 8 }, { 1, PEET_UPDATE, l }, { 1, PEET_STORE, b }, { 1, PEET_STORE, a + 8 }, { 1, PEET_LOAD, b },
        { 2, PEET_STORE, c + 8 }, { 2, PEET_UPDATE, l }, { 2, PEET_STORE, c }, { 2, PEET_STORE, b + 8 }, { 2, PEET_LOAD, c },
        { 3, PEET_STORE, d + 8 }, { 3, PEET_UPDATE, l }, { 3, PEET_STORE, d }, { 3, PEET_STORE, c + 8 }, { 3, PEET_LOAD, d },
        { 0, PEET_LOAD, a + 8 }, { 0, PEET_STORE, b }, { 1, PEET_LOAD, b },
        { 1, PEET_LOAD, b + 8 }, { 1, PEET_STORE, c }, { 2, PEET_LOAD, c },
        { 2, PEET_LOAD, c + 8 }, { 2, PEET_STORE, d }, { 3, PEET_LOAD, d },
        { 3, PEET_LOAD, d + 8 }, { 3, PEET_UPDATE, l },
    };
    /* clang-format on */
    CHECK(a != b && b != c && c != d && a != c && (a | b | c | d) % 256 == 0);
    CHECK_EQ(w->references, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        CHECK_EQ(w->seen[i].cpu, expected[i].cpu);
        CHECK_EQ(w->seen[i].kind, expected[i].kind);
        CHECK_EQ(w->seen[i].addr, expected[i].addr);
    }
    free(w);
}

/* Threads that wait for their ticket read another line than the one from which tickets are drawn. */
static void locks_use_the_words_that_their_algorithms_say(void)
{
    static const struct lock_kind *const KINDS[] = { &lock_tas, &lock_ttas, &lock_ticket };

    for (int k = 0; k < 3; k++) {
        struct world *w = world_new(3, &CONFIG);
        use_locks(w, KINDS[k], 1);
        run_locks(w, 20);
        for (uint64_t i = 0; i < SEEN && i < w->references; i++) {
            bool apart = KINDS[k] == &lock_ticket && w->seen[i].kind != PEET_UPDATE;
            CHECK(apart ? w->seen[i].addr >> 57 != 0 : w->seen[i].addr == OBJECT);
        }
        free(w);
    }
}

static void backoff_makes_fewer_attempts(void)
{
    uint64_t references[3];

    for (uint32_t i = 0; i < 3; i++) {
        struct sync_config config = { .spin = 10, .backoff = 20 * i };
        struct world *w = world_new(16, &config);
        use_locks(w, &lock_tas, 1);
        run_locks(w, 5000);
        references[i] = w->references;
        free(w);
    }
    CHECK(references[1] < references[0] / 2);
    CHECK(references[2] < references[1]);
}

/* The holder never releases the lock, and each failure is noted. */
static void backoff_doubles_up_to_64_times(void)
{
    struct sync_config config = { .spin = 7, .backoff = 10 };
    struct world *w = world_new(2, &config);
    enum sync_outcome outcome;
    uint64_t now;

    use_locks(w, &lock_tas, 1);
    struct sync_lock *l = &w->lock[0].lock;
    l->kind->attempt(l, &w->actor[0].waiter, true, 0, &outcome);
    CHECK_EQ(outcome, SYNC_DONE);
    now = 100;
    for (unsigned i = 0; i < 12; i++) {
        uint64_t next = l->kind->attempt(l, &w->actor[1].waiter, i == 0, now, &outcome);
        CHECK_EQ(outcome, SYNC_AGAIN);
        CHECK_EQ(next - now, UPDATE + 7 + (10u << (i < 6 ? i : 6)));
        now = next;
    }
    free(w);
}

static void who_fails_on_a_machine_without_latencies_lets_time_pass(void)
{
    struct sync_config config = { 0 };
    struct world *w = world_new(2, &config);
    enum sync_outcome outcome;

    use_locks(w, &lock_tas, 1);
    struct sync_lock *l = &w->lock[0].lock;
    l->taken = true;
    w->is_instant = true;
    for (uint64_t now = 0, next; now < 20; now = next) {
        next = l->kind->attempt(l, &w->actor[1].waiter, now == 0, now, &outcome);
        CHECK_EQ(outcome, SYNC_AGAIN);
        if (!CHECK(next > now))
            break;
    }
    free(w);
}

static void the_same_run_gives_the_same_log(void)
{
    for (int i = 0; lock_kinds[i]; i++) {
        uint64_t log[3];
        for (int k = 0; k < 3; k++) {
            struct world *w = world_new(13, &CONFIG);
            w->config.grant = GRANT_RANDOM;
            w->random += k == 2;
            use_locks(w, lock_kinds[i], 2);
            run_locks(w, 2000);
            log[k] = w->log;
            free(w);
        }
        CHECK_EQ(log[0], log[1]);
        CHECK(log[0] != log[2]);
    }
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void no_two_words_share_a_line_and_no_program_has_them(void)
{
    enum { OBJECTS = 100, THREADS = 64, USES = 40, WORDS = OBJECTS * THREADS * USES };
    uint64_t *word = calloc(WORDS, sizeof *word), n = 0;

    if (!CHECK(word))
        return;
    for (unsigned o = 0; o < OBJECTS; o++)
        for (uint32_t p = 0; p < THREADS; p++)
            for (unsigned u = 0; u < USES; u++)
                word[n++] = sync_word(OBJECT + 8 * o, p, u % 4 | (u / 4) << 8);
    qsort(word, WORDS, sizeof *word, by_value);
    for (uint64_t i = 0; i < WORDS; i++) {
        if (!CHECK(i == 0 || word[i] != word[i - 1]) || !CHECK_EQ(word[i] % 256, 0) || !CHECK(word[i] >> 57 != 0))
            break;
        if (!CHECK(word[i] >> 60 == 0)) /* so that caches find room for states beside the number of a line */
            break;
    }
    free(word);
}

static void names_are_unique_and_found_and_explained(void)
{
    for (int i = 0; lock_kinds[i]; i++) {
        CHECK(lock_kind_find(lock_kinds[i]->name) == lock_kinds[i]); /* the first of that name */
        CHECK(strlen(lock_kinds[i]->summary) > 10);
    }
    CHECK(!lock_kind_find("wired"));
}

int main(void)
{
    RUN(nobody_holds_a_lock_with_another_and_everybody_gets_it);
    RUN(who_holds_a_lock_may_wait_for_another_one);
    RUN(an_ideal_lock_goes_to_whom_the_policy_says);
    RUN(policies_make_the_orders_that_they_are_named_after);
    RUN(a_lock_that_nobody_else_wants_costs_what_its_algorithm_says);
    RUN(contention_costs_each_kind_what_its_algorithm_says);
    RUN(the_queue_uses_the_words_that_its_algorithm_says);
    RUN(locks_use_the_words_that_their_algorithms_say);
    RUN(backoff_makes_fewer_attempts);
    RUN(backoff_doubles_up_to_64_times);
    RUN(who_fails_on_a_machine_without_latencies_lets_time_pass);
    RUN(the_same_run_gives_the_same_log);
    RUN(no_two_words_share_a_line_and_no_program_has_them);
    RUN(names_are_unique_and_found_and_explained);
    return check_done();
}
