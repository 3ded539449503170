/* SPDX-License-Identifier: MIT */
/* Dependences and the synchronization that they rely on, against all pairs of accesses, ordered by a search that leaves the one unit out. */
#include "study/slack/dependences.h"

#include <stdlib.h>

#include "tests/unit/check.h"
#include "tests/unit/random.h"

enum {
    THREADS = 4,
    LOCKS = 3,
    BARRIERS = 3,
    UNIT_LOCK = 0,
    UNIT_BARRIER = LOCKS,
    UNIT_JOIN = LOCKS + BARRIERS,
    UNITS = UNIT_JOIN + THREADS,
    STEPS = 90,
    BYTES = 24,
    FIRST_BYTE = PAGE_BYTES - BYTES / 2 /* accesses cross a page */
};

/* Something that a thread did. */
struct step {
    uint32_t thread;
    bool is_access, writes;
    uint64_t addr, size;
    int held; /* lock that it holds; -1: none */
};

/* An order between two steps that a unit provides; UNIT_NONE: no unit. */
struct edge {
    int from, to;
    uint32_t unit;
    bool is_must;
};

/* A run of a random program, as the oracle sees it. */
struct run {
    struct step step[2 * STEPS + 64];
    int steps;
    struct edge edge[STEPS * STEPS];
    int edges;
    int last[THREADS]; /* last step of each thread; -1: none */
    bool needed[UNITS];
};

/* ---- the oracle ---- */

static bool may_use(const struct edge *e, bool must, uint32_t without)
{
    return (e->is_must || !must) && (e->unit != without || without == UNIT_NONE);
}

/* Whether a step precedes another one, without a unit. Steps are numbered in an order in which they happened. */
static bool precedes(const struct run *r, int a, int b, bool must, uint32_t without)
{
    bool reached[2 * STEPS + 64] = { false };

    reached[a] = true;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < r->edges; i++)
            if (reached[r->edge[i].from] && !reached[r->edge[i].to] && may_use(&r->edge[i], must, without))
                more = reached[r->edge[i].to] = true;
    }
    return reached[b];
}

static bool conflict(const struct step *a, const struct step *b)
{
    return a->is_access && b->is_access && a->thread != b->thread && (a->writes || b->writes)
           && a->addr < b->addr + b->size && b->addr < a->addr + a->size;
}

static void find_needed(struct run *r)
{
    for (int b = 0; b < r->steps; b++)
        for (int a = 0; a < b; a++) {
            if (!conflict(&r->step[a], &r->step[b]))
                continue;
            bool must = precedes(r, a, b, true, UNIT_NONE);
            for (uint32_t u = 0; u < UNITS; u++)
                if (!r->needed[u])
                    r->needed[u] = !precedes(r, a, b, must, u);
        }
}

/* Whether a step would race with an earlier one. */
static bool races(const struct run *r, int b)
{
    for (int a = 0; a < b; a++)
        if (conflict(&r->step[a], &r->step[b]) && !precedes(r, a, b, false, UNIT_NONE))
            return true;
    return false;
}

static void add_edge(struct run *r, int from, int to, uint32_t unit, bool is_must)
{
    if (from >= 0 && from != to)
        r->edge[r->edges++] = (struct edge){ from, to, unit, is_must };
}

static int add_step(struct run *r, struct step s)
{
    int n = r->steps++;

    r->step[n] = s;
    add_edge(r, r->last[s.thread], n, UNIT_NONE, true);
    r->last[s.thread] = n;
    return n;
}

static void remove_step(struct run *r, int last)
{
    r->last[r->step[r->steps - 1].thread] = last;
    while (r->edges && r->edge[r->edges - 1].to == r->steps - 1)
        r->edges--;
    r->steps--;
}

/* ---- random programs ---- */

/* A program while it runs: what the oracle and the product are given. */
struct world {
    struct run *run;
    struct dependences *d;
    struct sync_channel lock[LOCKS], end[THREADS];
    int released[LOCKS][STEPS], releases[LOCKS]; /* steps that released a lock */
    int holder[LOCKS];                           /* -1: free */
    int held[THREADS];                           /* -1: none */
    bool has_begun[THREADS], has_ended[THREADS], is_joined[THREADS];
    uint64_t random;
};

/* What the product found. */
struct seen {
    bool needed[UNITS];
};

static void note_dependence(void *self, const struct dependence *d)
{
    struct seen *seen = self;

    if (CHECK(d->unit < UNITS) && CHECK(d->from != d->to))
        seen->needed[d->unit] = true;
}

static void run_access(struct world *w, uint32_t thread)
{
    uint64_t size = 1 + draw(&w->random, 4), addr = FIRST_BYTE + draw(&w->random, BYTES - size + 1);
    bool writes = draw(&w->random, 2), updates = writes && draw(&w->random, 2);
    int last = w->run->last[thread];
    int n = add_step(
        w->run, (struct step){ .thread = thread, .is_access = true, .writes = writes, .addr = addr, .size = size });

    if (races(w->run, n))
        remove_step(w->run, last);
    else
        dependences_access(w->d, thread, addr, size, !writes || updates, writes);
}

static void run_lock(struct world *w, uint32_t thread)
{
    int lock = (int)draw(&w->random, LOCKS);

    if (w->held[thread] >= 0) {
        lock = w->held[thread];
        w->released[lock][w->releases[lock]++] = add_step(w->run, (struct step){ .thread = thread });
        dependences_publish(w->d, thread, &w->lock[lock], CHANNEL_LOCK);
        dependences_hold(w->d, thread, -1);
        w->holder[lock] = w->held[thread] = -1;
    } else if (w->holder[lock] < 0) {
        int n = add_step(w->run, (struct step){ .thread = thread });
        for (int i = 0; i < w->releases[lock]; i++)
            add_edge(w->run, w->released[lock][i], n, UNIT_LOCK + (uint32_t)lock, false);
        dependences_hold(w->d, thread, 1);
        dependences_acquire(w->d, thread, &w->lock[lock], UNIT_LOCK + (uint32_t)lock, CHANNEL_LOCK);
        w->holder[lock] = (int)thread;
        w->held[thread] = lock;
    }
}

/* Some of the running threads meet at a barrier. */
static void run_barrier(struct world *w)
{
    uint32_t unit = UNIT_BARRIER + (uint32_t)draw(&w->random, BARRIERS),
             members = (uint32_t)draw(&w->random, 1 << THREADS);
    struct sync_channel c = { 0 };
    int arrival[THREADS], departure[THREADS];

    members |= draw(&w->random, 2) ? (1 << THREADS) - 1 : 0;
    for (uint32_t i = 0; i < THREADS; i++)
        if (!w->has_begun[i] || w->has_ended[i] || w->held[i] >= 0)
            members &= ~(1U << i);
    for (uint32_t i = 0; i < THREADS; i++)
        if (members & 1U << i) {
            arrival[i] = add_step(w->run, (struct step){ .thread = i });
            dependences_publish(w->d, i, &c, CHANNEL_MUST);
        }
    for (uint32_t i = 0; i < THREADS; i++) {
        if (!(members & 1U << i))
            continue;
        departure[i] = add_step(w->run, (struct step){ .thread = i });
        for (uint32_t k = 0; k < THREADS; k++)
            if (members & 1U << k && k != i)
                add_edge(w->run, arrival[k], departure[i], unit, true);
        dependences_acquire(w->d, i, &c, unit, CHANNEL_MUST);
    }
    channel_release(&c);
}

static void run_create(struct world *w, uint32_t thread)
{
    for (uint32_t i = 1; i < THREADS; i++)
        if (!w->has_begun[i]) {
            int from = add_step(w->run, (struct step){ .thread = thread });
            add_edge(w->run, from, add_step(w->run, (struct step){ .thread = i }), UNIT_NONE, true);
            dependences_begin(w->d, i, 0, thread);
            w->has_begun[i] = true;
            return;
        }
}

static void run_end(struct world *w, uint32_t thread)
{
    if (thread == 0 || w->held[thread] >= 0)
        return;
    add_step(w->run, (struct step){ .thread = thread });
    dependences_publish(w->d, thread, &w->end[thread], CHANNEL_MUST);
    dependences_end(w->d, thread);
    w->has_ended[thread] = true;
}

static void run_join(struct world *w, uint32_t thread)
{
    for (uint32_t i = 1; i < THREADS; i++)
        if (w->has_ended[i] && !w->is_joined[i]) {
            int last = w->run->last[i];
            add_edge(w->run, last, add_step(w->run, (struct step){ .thread = thread }), UNIT_JOIN + i, true);
            dependences_acquire(w->d, thread, &w->end[i], UNIT_JOIN + i, CHANNEL_MUST);
            w->is_joined[i] = true;
            return;
        }
}

static void run_step(struct world *w)
{
    uint32_t thread = (uint32_t)draw(&w->random, THREADS);
    uint64_t what = draw(&w->random, 100);

    if (!w->has_begun[thread] || w->has_ended[thread])
        thread = 0;
    if (what < 55)
        run_access(w, thread);
    else if (what < 75)
        run_lock(w, thread);
    else if (what < 84)
        run_barrier(w);
    else if (what < 90)
        run_create(w, thread);
    else if (what < 93)
        run_end(w, thread);
    else if (what < 97)
        run_join(w, thread);
    else
        dependences_flush(w->d, thread);
}

static bool check_program(uint64_t seed)
{
    struct seen seen = { 0 };
    const struct dependence_observer observer = { .self = &seen, .found = note_dependence };
    struct run *run = calloc(1, sizeof *run);
    struct world w = { .run = run, .d = dependences_new(&observer), .random = seed };
    bool all = true;

    for (int i = 0; i < LOCKS; i++)
        w.holder[i] = -1;
    for (int i = 0; i < THREADS; i++)
        run->last[i] = w.held[i] = -1;
    dependences_begin(w.d, 0, 0, UNIT_NONE);
    w.has_begun[0] = true;
    for (int i = 0; i < STEPS && run->steps < STEPS; i++)
        run_step(&w);
    for (uint32_t i = 0; i < THREADS; i++)
        if (w.has_begun[i])
            dependences_flush(w.d, i);
    find_needed(run);
    for (uint32_t u = 0; u < UNITS; u++)
        if (!CHECK_EQ(seen.needed[u], run->needed[u])) {
            printf("# seed %" PRIu64 ", unit %" PRIu32 "\n", seed, u);
            all = false;
        }
    CHECK_EQ(dependences_races(w.d), 0);
    for (int i = 0; i < LOCKS; i++)
        channel_release(&w.lock[i]);
    for (int i = 0; i < THREADS; i++)
        channel_release(&w.end[i]);
    dependences_free(w.d);
    free(run);
    return all;
}

static void needed_units_equal_those_of_all_pairs_in_random_programs(void)
{
    for (uint64_t seed = 1; seed <= 3000; seed++)
        if (!check_program(seed))
            return;
}

/* ---- single cases ---- */

static uint64_t found_bytes[DEPENDENCE_KINDS];
static uint32_t found_units;

static void count_bytes(void *self, const struct dependence *d)
{
    (void)self;
    found_units |= 1U << d->unit;
    for (int k = 0; k < DEPENDENCE_KINDS; k++)
        for (int i = 0; i < PAGE_WORDS; i++)
            found_bytes[k] += (uint64_t)__builtin_popcountll((*d->bytes)[k][i]);
}

static const struct dependence_observer counter = { .found = count_bytes };

static struct dependences *two_threads(void)
{
    struct dependences *d = dependences_new(&counter);

    memset(found_bytes, 0, sizeof found_bytes);
    found_units = 0;
    dependences_begin(d, 0, 0, UNIT_NONE);
    dependences_begin(d, 1, 0, 0);
    return d;
}

static void meet(struct dependences *d, uint32_t unit)
{
    struct sync_channel c = { 0 };

    for (uint32_t i = 0; i < 2; i++)
        dependences_publish(d, i, &c, CHANNEL_MUST);
    for (uint32_t i = 0; i < 2; i++)
        dependences_acquire(d, i, &c, unit, CHANNEL_MUST);
    channel_release(&c);
}

static void dependences_are_exact_to_the_byte(void)
{
    struct dependences *d = two_threads();

    dependences_access(d, 0, 100, 8, false, true);
    dependences_access(d, 0, 200, 4, true, false);
    meet(d, 3);
    dependences_access(d, 1, 107, 8, true, false);
    dependences_access(d, 1, 203, 1, false, true);
    dependences_access(d, 1, 103, 2, false, true);
    dependences_flush(d, 1);
    CHECK_EQ(found_bytes[DEPENDENCE_FLOW], 1);
    CHECK_EQ(found_bytes[DEPENDENCE_ANTI], 1);
    CHECK_EQ(found_bytes[DEPENDENCE_OUTPUT], 2);
    CHECK_EQ(found_units, 1U << 3);
    dependences_free(d);
}

static void neighbours_in_a_line_do_not_depend(void)
{
    struct dependences *d = two_threads();

    dependences_access(d, 0, 64, 8, true, true);
    meet(d, 1);
    dependences_access(d, 1, 72, 8, true, true);
    dependences_flush(d, 1);
    CHECK_EQ(found_units, 0);
    dependences_free(d);
}

static void one_of_two_barriers_is_enough(void)
{
    struct dependences *d = two_threads();

    dependences_access(d, 0, 64, 8, false, true);
    meet(d, 1);
    meet(d, 2);
    dependences_access(d, 1, 64, 8, true, false);
    dependences_flush(d, 1);
    CHECK_EQ(found_units, 0);
    dependences_free(d);
}

/* The order in which a lock was taken is an accident; the barrier is needed. */
static void order_by_a_lock_does_not_replace_a_barrier(void)
{
    struct dependences *d = two_threads();
    struct sync_channel lock = { 0 };

    dependences_access(d, 0, 64, 8, false, true);
    dependences_hold(d, 0, 1);
    dependences_acquire(d, 0, &lock, 0, CHANNEL_LOCK);
    dependences_publish(d, 0, &lock, CHANNEL_LOCK);
    dependences_hold(d, 0, -1);
    meet(d, 1);
    dependences_hold(d, 1, 1);
    dependences_acquire(d, 1, &lock, 0, CHANNEL_LOCK);
    dependences_access(d, 1, 64, 8, true, false);
    dependences_publish(d, 1, &lock, CHANNEL_LOCK);
    dependences_hold(d, 1, -1);
    CHECK_EQ(found_units, 1U << 1);
    channel_release(&lock);
    dependences_free(d);
}

static void new_memory_has_no_dependences(void)
{
    struct dependences *d = two_threads();

    dependences_access(d, 0, 1000, 600, false, true);
    dependences_discard(d, 0, 1000, 600);
    meet(d, 1);
    dependences_forget(d, 1, 1000, 600);
    dependences_access(d, 1, 1000, 600, true, true);
    dependences_flush(d, 1);
    CHECK_EQ(found_units, 0);
    dependences_access(d, 1, 999, 1, true, true);
    dependences_free(d);
}

static void accesses_without_order_are_counted_as_races(void)
{
    struct dependences *d = two_threads();

    dependences_access(d, 0, 64, 8, false, true);
    dependences_access(d, 1, 64, 8, true, false);
    dependences_flush(d, 0);
    dependences_flush(d, 1);
    CHECK_EQ(found_units, 0);
    CHECK_EQ(dependences_races(d), 1);
    dependences_free(d);
}

int main(void)
{
    RUN(dependences_are_exact_to_the_byte);
    RUN(neighbours_in_a_line_do_not_depend);
    RUN(one_of_two_barriers_is_enough);
    RUN(order_by_a_lock_does_not_replace_a_barrier);
    RUN(new_memory_has_no_dependences);
    RUN(accesses_without_order_are_counted_as_races);
    RUN(needed_units_equal_those_of_all_pairs_in_random_programs);
    return check_done();
}
