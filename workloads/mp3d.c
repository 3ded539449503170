/* SPDX-License-Identifier: MIT */
/* Rarefied flow in a wind tunnel, molecule by molecule.
 *
 * Direct simulation in the manner of McDonald and Baganoff ("Vectorization of a particle simulation method for
 * hypersonic rarefied flow", AIAA 88-2735; collision rule: Baganoff and McDonald, Phys. Fluids A 2, 1990): molecules
 * fly freely for one time step, then pairs within a space cell collide with a probability that grows with the cell's
 * population, after which the components of their relative velocity are permuted and change sign at random. The
 * tunnel's walls and a block on its floor reflect like mirrors; a molecule that leaves at either end is replaced by one of
 * the undisturbed stream.
 *
 * Molecules lie in memory in an order that has nothing to do with where they fly: locality is poor, and meant to be.
 * Each thread moves the molecules of its share and records them in the cells where they arrive, which all share:
 * head of the cell's list, population, momentum. After a barrier each collides the molecules in its own share of cells.
 *
 * Positions and velocities are integers, sums are exact, and recording is by atomic additions and exchanges; a cell's
 * list may come in any order and is sorted before pairs are drawn. So no result depends on timing or on the thread
 * count.
 * The self-check: every molecule is in one cell's list at each step; momentum and energy change by exactly what walls
 * and ends did; the cells' momentum is the molecules'.
 * Leaves out: inner degrees of freedom, chemistry, and collision rates that depend on speed (Maxwell molecules). */
#include "common.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_BITS = 16, STREAM_SPEED = 24000, NOBODY = -1 }; /* a cell is 2^16 long, speeds are lengths per step */

struct molecule {
    int32_t at[3], speed[3];
    int32_t cell, next; /* next in the cell's list */
};

struct cell {
    _Atomic int32_t head, population;
    _Atomic int64_t momentum[3]; /* summed over all steps: the mean flow */
};

struct ledger {
    int64_t momentum[3], energy;
}; /* energy: the sum of squared speeds */

/* What a thread counts, and what all have counted. */
struct tally {
    struct ledger gained; /* at walls and ends */
    int64_t flown[3];     /* momentum of the molecules recorded */
    int64_t visits, collisions, stray;
};

struct tunnel {
    int64_t molecules, steps, length;
    int threads;
    int64_t size[3];     /* in cells */
    int64_t block[3][2]; /* cells taken by the block, first and end */
    struct molecule *molecule;
    struct cell *cell;
    pthread_barrier_t barrier;
    pthread_mutex_t lock;
    struct tally total; /* under the lock */
};

static inline int64_t cells(const struct tunnel *t)
{
    return t->size[0] * t->size[1] * t->size[2];
}

static struct wl_random stream(uint64_t step, uint64_t number, uint64_t purpose)
{
    struct wl_random r = { step * 0xd1342543de82ef95u + number * 0x2545f4914f6cdd1du + purpose };

    r.state = wl_random_next(&r);
    return r;
}

/* About normal, with mean 0 and deviation 4700: the sum of four evenly distributed numbers. */
static int32_t thermal(struct wl_random *r)
{
    uint64_t bits = wl_random_next(r);
    int64_t sum = (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));

    return (int32_t)((sum - 0x1fffe) / 8);
}

static bool in_block(const struct tunnel *t, const int32_t *at)
{
    for (int k = 0; k < 3; k++)
        if (at[k] >> CELL_BITS < t->block[k][0] || at[k] >> CELL_BITS >= t->block[k][1])
            return false;
    return true;
}

/* Adds or takes away a molecule's momentum and energy. */
static inline void book(struct ledger *l, const struct molecule *m, int64_t sign)
{
    for (int k = 0; k < 3; k++) {
        l->momentum[k] += sign * m->speed[k];
        l->energy += sign * m->speed[k] * m->speed[k];
    }
}

static void replace(const struct tunnel *t, struct molecule *m, uint64_t step, uint64_t number, struct tally *tally)
{
    struct wl_random r = stream(step, number, 1);

    book(&tally->gained, m, -1);
    m->at[0] = (int32_t)(wl_random_next(&r) % STREAM_SPEED);
    m->speed[0] = thermal(&r) + STREAM_SPEED;
    for (int k = 1; k < 3; k++) {
        m->at[k] = (int32_t)(wl_random_next(&r) % (uint64_t)(t->size[k] << CELL_BITS));
        m->speed[k] = thermal(&r);
    }
    book(&tally->gained, m, 1);
}

static inline void turn_round(struct molecule *m, int k, struct tally *tally)
{
    tally->gained.momentum[k] -= 2 * (int64_t)m->speed[k];
    m->speed[k] = -m->speed[k];
}

static void fly(const struct tunnel *t, struct molecule *m, uint64_t step, uint64_t number, struct tally *tally)
{
    int32_t old[3] = { m->at[0], m->at[1], m->at[2] };

    for (int k = 0; k < 3; k++)
        m->at[k] += m->speed[k];
    if (m->at[0] < 0 || m->at[0] >> CELL_BITS >= t->size[0]) {
        replace(t, m, step, number, tally);
        return;
    }
    for (int k = 1; k < 3; k++) {
        int32_t width = (int32_t)(t->size[k] << CELL_BITS);
        while (m->at[k] < 0 || m->at[k] >= width) {
            m->at[k] = (m->at[k] < 0 ? -1 : 2 * width - 1) - m->at[k];
            turn_round(m, k, tally);
        }
    }
    if (in_block(t, m->at)) /* it bounces off the faces that it has crossed, and stays where it was */
        for (int k = 0; k < 3; k++) {
            if (m->at[k] >> CELL_BITS != old[k] >> CELL_BITS)
                turn_round(m, k, tally);
            m->at[k] = old[k];
        }
}

static void record(struct tunnel *t, struct molecule *m, int32_t number, struct tally *tally)
{
    int64_t x = m->at[0] >> CELL_BITS, y = m->at[1] >> CELL_BITS, z = m->at[2] >> CELL_BITS;

    m->cell = (int32_t)((x * t->size[1] + y) * t->size[2] + z);
    struct cell *c = &t->cell[m->cell];
    atomic_fetch_add_explicit(&c->population, 1, memory_order_relaxed);
    m->next = atomic_exchange_explicit(&c->head, number, memory_order_relaxed);
    for (int k = 0; k < 3; k++) {
        atomic_fetch_add_explicit(&c->momentum[k], m->speed[k], memory_order_relaxed);
        tally->flown[k] += m->speed[k];
    }
}

static inline void swap(int32_t *a, int32_t *b)
{
    int32_t c = *a;

    *a = *b;
    *b = c;
}

/* New speeds by permuting the relative velocity, among components of one parity so that halves stay whole numbers. */
static void collide(struct molecule *a, struct molecule *b, uint64_t chance)
{
    int32_t sum[3], turn[3];

    for (int k = 0; k < 3; k++) {
        sum[k] = a->speed[k] + b->speed[k];
        turn[k] = a->speed[k] - b->speed[k];
    }
    for (int k = 0; k < 3; k++) {
        int other = (k + 1) % 3;
        if (chance >> k & 1 && !((turn[k] ^ turn[other]) & 1))
            swap(&turn[k], &turn[other]);
        if (chance >> (k + 3) & 1)
            turn[k] = -turn[k];
    }
    for (int k = 0; k < 3; k++) {
        a->speed[k] = (sum[k] + turn[k]) / 2;
        b->speed[k] = (sum[k] - turn[k]) / 2;
    }
}

/* The cell's list as an array in the order of the molecules' numbers; empties the cell. */
static int64_t gather(struct tunnel *t, int64_t number, int32_t *members, struct tally *tally)
{
    struct cell *c = &t->cell[number];
    int64_t found = 0;

    for (int32_t i = atomic_load_explicit(&c->head, memory_order_relaxed); i != NOBODY; i = t->molecule[i].next) {
        int64_t at = found++;
        for (; at > 0 && members[at - 1] > i; at--)
            members[at] = members[at - 1];
        members[at] = i;
        tally->stray += t->molecule[i].cell != number || (at > 0 && members[at - 1] == i);
    }
    tally->stray += found != atomic_load_explicit(&c->population, memory_order_relaxed);
    tally->visits += found;
    atomic_store_explicit(&c->head, NOBODY, memory_order_relaxed);
    atomic_store_explicit(&c->population, 0, memory_order_relaxed);
    return found;
}

static void collide_cell(struct tunnel *t, uint64_t step, int64_t number, int32_t *members, struct tally *tally)
{
    int64_t found = gather(t, number, members, tally);
    struct wl_random r = stream(step, (uint64_t)number, 2);
    double mean = (double)t->molecules / (double)cells(t), likelihood = (double)found / (2 * mean);

    for (int64_t i = found - 1; i > 0; i--)
        swap(&members[i], &members[wl_random_next(&r) % (uint64_t)(i + 1)]);
    for (int64_t i = 0; i + 1 < found; i += 2) {
        uint64_t chance = wl_random_next(&r);
        if ((double)(chance >> 40) * 0x1p-24 >= likelihood)
            continue;
        collide(&t->molecule[members[i]], &t->molecule[members[i + 1]], chance);
        tally->collisions++;
    }
}

static void hand_in(struct tunnel *t, const struct tally *own)
{
    pthread_mutex_lock(&t->lock);
    for (int k = 0; k < 3; k++) {
        t->total.gained.momentum[k] += own->gained.momentum[k];
        t->total.flown[k] += own->flown[k];
    }
    t->total.gained.energy += own->gained.energy;
    t->total.visits += own->visits;
    t->total.collisions += own->collisions;
    t->total.stray += own->stray;
    pthread_mutex_unlock(&t->lock);
}

static void simulate(int id, void *arg)
{
    struct tunnel *t = arg;
    struct tally tally = { 0 };
    int64_t first, end, first_cell, end_cell, room = 64;
    int32_t *members = wl_alloc((size_t)room * sizeof *members);

    wl_share(t->molecules, t->threads, id, &first, &end);
    wl_share(cells(t), t->threads, id, &first_cell, &end_cell);
    for (int64_t step = 0; step < t->steps; step++) {
        for (int64_t i = first; i < end; i++) {
            fly(t, &t->molecule[i], (uint64_t)step, (uint64_t)i, &tally);
            record(t, &t->molecule[i], (int32_t)i, &tally);
        }
        pthread_barrier_wait(&t->barrier);
        for (int64_t c = first_cell; c < end_cell; c++) {
            int64_t population = atomic_load_explicit(&t->cell[c].population, memory_order_relaxed);
            if (population > room) {
                free(members);
                members = wl_alloc((size_t)(room = 2 * population) * sizeof *members);
            }
            collide_cell(t, (uint64_t)step, c, members, &tally);
        }
        pthread_barrier_wait(&t->barrier);
    }
    free(members);
    hand_in(t, &tally);
}

static void tunnel_init(struct tunnel *t)
{
    struct wl_random r = { 1988 };

    const int64_t length = t->length;
    memcpy(t->size, (int64_t[]){ length, length / 2, length / 2 }, sizeof t->size);
    memcpy(t->block, (int64_t[][2]){ { length * 3 / 8, length / 2 }, { 0, length / 6 }, { 0, length / 2 } },
           sizeof t->block);
    t->molecule = wl_alloc((size_t)t->molecules * sizeof *t->molecule);
    t->cell = wl_alloc((size_t)cells(t) * sizeof *t->cell);
    for (int64_t i = 0; i < cells(t); i++)
        atomic_init(&t->cell[i].head, NOBODY);
    for (int64_t i = 0; i < t->molecules; i++) {
        struct molecule *m = &t->molecule[i];
        do
            for (int k = 0; k < 3; k++)
                m->at[k] = (int32_t)(wl_random_next(&r) % (uint64_t)(t->size[k] << CELL_BITS));
        while (in_block(t, m->at));
        for (int k = 0; k < 3; k++)
            m->speed[k] = thermal(&r) + (k == 0 ? STREAM_SPEED : 0);
    }
    pthread_barrier_init(&t->barrier, NULL, (unsigned)t->threads);
}

static struct ledger measure(const struct tunnel *t)
{
    struct ledger l = { 0 };

    for (int64_t i = 0; i < t->molecules; i++)
        book(&l, &t->molecule[i], 1);
    return l;
}

static bool check(const struct tunnel *t, const struct ledger *begin, const struct ledger *end)
{
    const struct tally *all = &t->total;
    bool ok = all->visits == t->molecules * t->steps && all->stray == 0;

    ok = ok && (all->collisions > 0 || t->molecules < cells(t)); /* an almost empty tunnel may see none */
    ok = ok && end->energy == begin->energy + all->gained.energy;
    for (int k = 0; k < 3; k++) {
        int64_t flow = 0;
        for (int64_t c = 0; c < cells(t); c++)
            flow += atomic_load_explicit(&t->cell[c].momentum[k], memory_order_relaxed);
        ok = ok && flow == all->flown[k];
        ok = ok && end->momentum[k] == begin->momentum[k] + all->gained.momentum[k];
    }
    return ok;
}

static uint64_t checksum(const struct tunnel *t)
{
    struct wl_random mix = { 0 };

    for (int64_t i = 0; i < t->molecules; i++)
        for (int k = 0; k < 3; k++) {
            const struct molecule *m = &t->molecule[i];
            mix.state = wl_random_next(&mix) ^ ((uint64_t)m->at[k] << 32 | (uint32_t)m->speed[k]);
        }
    return mix.state;
}

int main(int argc, char **argv)
{
    static struct tunnel t = { .molecules = 50000, .steps = 20, .length = 32, .lock = PTHREAD_MUTEX_INITIALIZER };
    const struct wl_option options[] = {
        { 'n', &t.molecules, 2, 1 << 26,
          "molecules: 5000 with -l 16 -s 2 for 10^6 references, 1m with -l 90 -s 120 for 10^10" },
        { 'l', &t.length, 8, 512, "length of the tunnel in cells; it is half as wide and half as high" },
        { 's', &t.steps, 1, 1 << 20, "time steps" },
        { 0 },
    };

    t.threads = wl_parse(argc, argv, "rarefied flow in a wind tunnel, a particle simulation of poor locality", options);
    tunnel_init(&t);
    struct ledger begin = measure(&t);
    wl_parallel(t.threads, simulate, &t);
    struct ledger end = measure(&t);
    bool ok = check(&t, &begin, &end);
    uint64_t sum = checksum(&t);
    pthread_barrier_destroy(&t.barrier);
    free(t.molecule);
    free(t.cell);
    return wl_verdict(ok,
                      "%lld molecules, %lld cells, %lld steps, %lld collisions, energy %lld + %lld = %lld, "
                      "checksum %016" PRIx64,
                      (long long)t.molecules, (long long)cells(&t), (long long)t.steps, (long long)t.total.collisions,
                      (long long)begin.energy, (long long)t.total.gained.energy, (long long)end.energy, sum);
}
