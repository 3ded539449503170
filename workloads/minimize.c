/* SPDX-License-Identifier: MIT */
/* Two-level minimisation of logic: few and large cubes (product terms) that cover the same function.
 *
 * The heuristic loop of Brayton, Hachtel, McMullen and Sangiovanni-Vincentelli ("Logic Minimization Algorithms for VLSI
 * Synthesis", 1984): the off-set is found by complementing; EXPAND makes cubes as large as the off-set allows and drops
 * those that they swallow, IRREDUNDANT drops cubes that the others cover, REDUCE shrinks cubes to what only they cover,
 * and the loop continues while the cover gets smaller. Containment is decided by the tautology test, which like the
 * complement splits by Shannon's expansion about the variable that most cubes depend on both ways.
 *
 * A cube has two bits for each variable: 01 it must be 0, 10 it must be 1, 11 it does not matter. The input is a random
 * table of cubes, each with a mask of the outputs that it belongs to, read by all threads. Each output is a function of
 * its own and minimised by one thread, outputs being dealt out in turn; after a barrier every thread checks the covers
 * that its neighbour has made. So no result depends on timing or on the thread count.
 *
 * The self-check: each cover agrees with the table on all minterms, or on a sample where there are many, and has no
 * more cubes than the table had.
 * Leaves out: don't-care sets, sharing of cubes between outputs, and essential primes. */
#include "common.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LOW_BITS UINT64_C(0x5555555555555555)

enum { PARTS = 3, MAX_INPUTS = 32 * PARTS, SAMPLES = 1024, CUTS = 2, PIECES = 1 << CUTS };

/* Bit 2 v + x of the parts: variable v may be x. */
struct cube {
    uint64_t part[PARTS];
    int64_t freedom; /* how many variables do not matter */
};

/* A stack of cubes; lists of cubes are stretches of it, named by index because it may move as it grows. */
struct stack {
    struct cube *cube;
    size_t top, room;
};

struct range {
    size_t first, end;
};

struct table {
    int64_t inputs, outputs, cubes;
    int threads, parts;
    struct cube full; /* the cube of all minterms */
    struct cube *cube;
    uint64_t *belongs; /* [cube][word]: to which outputs */
    int64_t mask_words;
    struct stack *result; /* [output] */
    size_t *begun_with;   /* [output]: cubes */
    pthread_barrier_t barrier;
    pthread_mutex_t lock;
    int64_t wrong, before, after, literals, rounds; /* under the lock */
};

/* One thread's work on one output. On the stack lie the on-set, the off-set, and what tautology and complement need. */
struct job {
    const struct table *t;
    struct stack stack;
    size_t on; /* cubes of the on-set, which begins at 0 */
    struct range off;
    int64_t rounds;
};

static void push(struct stack *s, const struct cube *cube) /* which must not be in the stack: it may move */
{
    if (s->top == s->room) {
        size_t room = s->room ? 2 * s->room : 256;
        struct cube *bigger = wl_alloc(room * sizeof *bigger);
        if (s->top)
            memcpy(bigger, s->cube, s->top * sizeof *bigger);
        free(s->cube);
        s->cube = bigger;
        s->room = room;
    }
    s->cube[s->top++] = *cube;
}

/* Cubes. */

static inline bool may(const struct cube *c, int bit)
{
    return c->part[bit / 64] >> (bit % 64) & 1;
}

static inline void forbid(struct cube *c, int bit) /* which the cube has, and its opposite too */
{
    c->part[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
    c->freedom--;
}

static inline void allow(struct cube *c, int bit) /* which the cube has not */
{
    c->part[bit / 64] |= UINT64_C(1) << (bit % 64);
    c->freedom++;
}

static inline bool is_free(const struct cube *c, int v)
{
    return may(c, 2 * v) && may(c, 2 * v + 1);
}

static inline bool meet(const struct table *t, const struct cube *a, const struct cube *b)
{
    for (int w = 0; w < t->parts; w++) {
        uint64_t both = a->part[w] & b->part[w], variables = t->full.part[w] & LOW_BITS;
        if (((both | both >> 1) & variables) != variables)
            return false;
    }
    return true;
}

static inline bool within(const struct table *t, const struct cube *a, const struct cube *b)
{
    for (int w = 0; w < t->parts; w++)
        if (a->part[w] & ~b->part[w])
            return false;
    return true;
}

/* Pushes the cofactor of a cube that meets c. */
static void push_cofactor(struct job *j, const struct cube *cube, const struct cube *c)
{
    const struct table *t = j->t;
    struct cube r = { .freedom = -t->inputs };

    for (int w = 0; w < t->parts; w++) {
        r.part[w] = (cube->part[w] | ~c->part[w]) & t->full.part[w];
        r.freedom += __builtin_popcountll(r.part[w]);
    }
    push(&j->stack, &r);
}

/* Pushes the cofactors of a list with respect to a variable's value. */
static struct range cofactors(struct job *j, struct range of, int v, int value)
{
    struct range r = { j->stack.top, 0 };

    for (size_t i = of.first; i < of.end; i++)
        if (may(&j->stack.cube[i], 2 * v + value)) {
            struct cube c = j->stack.cube[i];
            if (!may(&c, 2 * v + !value))
                allow(&c, 2 * v + !value);
            push(&j->stack, &c);
        }
    r.end = j->stack.top;
    return r;
}

/* Counts for every bit the cubes that forbid it. */
static void count_forbidden(const struct table *t, const struct cube *cube, size_t cubes, int *count)
{
    memset(count, 0, 2 * (size_t)t->inputs * sizeof *count);
    for (size_t i = 0; i < cubes; i++)
        for (int w = 0; w < t->parts; w++)
            for (uint64_t bound = ~cube[i].part[w] & t->full.part[w]; bound; bound &= bound - 1)
                count[64 * w + __builtin_ctzll(bound)]++;
}

/* The variable for which the fewer of its two literals are the most, or -1 if each variable has one kind at most. */
static int most_binate(const struct job *j, struct range r)
{
    int count[2 * MAX_INPUTS], best = -1, best_fewer = 0, best_all = 0;

    count_forbidden(j->t, j->stack.cube + r.first, r.end - r.first, count);
    for (int v = 0; v < (int)j->t->inputs; v++) {
        int zeros = count[2 * v + 1], ones = count[2 * v];
        int fewer = zeros < ones ? zeros : ones, all = zeros + ones;
        if (fewer > best_fewer || (fewer && fewer == best_fewer && all > best_all)) {
            best = v;
            best_fewer = fewer;
            best_all = all;
        }
    }
    return best;
}

/* Whether the cubes cover every minterm. Where no variable splits them they do only if one of them does alone. */
static bool tautology(struct job *j, struct range r)
{
    const struct table *t = j->t;
    struct cube any = { { 0 }, 0 };
    double share = 0; /* of all minterms, those in several cubes counted several times */

    for (size_t i = r.first; i < r.end; i++) {
        const struct cube *c = &j->stack.cube[i];
        if (c->freedom == t->inputs)
            return true;
        for (int w = 0; w < t->parts; w++)
            any.part[w] |= c->part[w];
        share += ldexp(1, (int)(c->freedom - t->inputs));
    }
    if (share < 1 || !within(t, &t->full, &any))
        return false;
    int v = most_binate(j, r);
    if (v < 0)
        return false;
    size_t top = j->stack.top;
    for (int value = 0; value < 2; value++) {
        bool holds = tautology(j, cofactors(j, r, v, value));
        j->stack.top = top;
        if (!holds)
            return false;
    }
    return true;
}

/* The complement. */

static void move_down(struct stack *s, size_t to, struct range from)
{
    memmove(s->cube + to, s->cube + from.first, (from.end - from.first) * sizeof *s->cube);
    s->top = to + (from.end - from.first);
}

/* Puts the halves of a complement together, on the stack's top: a cube in both need not depend on the variable. */
static void join_halves(struct job *j, struct range zero, struct range one, int v)
{
    struct cube *cube = j->stack.cube;
    size_t to = one.first;

    for (size_t i = one.first; i < one.end; i++) {
        struct cube c = cube[i];
        size_t k = zero.first;
        while (k < zero.end && !(within(j->t, &c, &cube[k]) && c.freedom == cube[k].freedom))
            k++;
        if (k < zero.end) { /* it goes to the beginning, among those that are joined */
            cube[k] = cube[zero.first];
            cube[zero.first++] = c;
        } else {
            forbid(&c, 2 * v);
            cube[to++] = c;
        }
    }
    for (size_t i = zero.first; i < zero.end; i++)
        forbid(&cube[i], 2 * v + 1);
    j->stack.top = to;
}

/* Pushes cubes that cover what those of the list do not. */
static struct range complement(struct job *j, struct range r)
{
    size_t base = j->stack.top;

    for (size_t i = r.first; i < r.end; i++)
        if (j->stack.cube[i].freedom == j->t->inputs)
            return (struct range){ base, base };
    if (r.first == r.end) {
        push(&j->stack, &j->t->full);
        return (struct range){ base, j->stack.top };
    }
    int v = most_binate(j, r);
    for (int other = 0; v < 0; other++) /* any variable that occurs will do */
        if (!is_free(&j->stack.cube[r.first], other))
            v = other;
    move_down(&j->stack, base, complement(j, cofactors(j, r, v, 0)));
    size_t middle = j->stack.top;
    move_down(&j->stack, middle, complement(j, cofactors(j, r, v, 1)));
    join_halves(j, (struct range){ base, middle }, (struct range){ middle, j->stack.top }, v);
    return (struct range){ base, j->stack.top };
}

/* The three operators. */

/* Whether the on-set without cube number skip covers c, which must not be in the stack. */
static bool covered(struct job *j, const struct cube *c, size_t skip)
{
    struct range r = { j->stack.top, 0 };

    for (size_t i = 0; i < j->on; i++)
        if (i != skip && meet(j->t, &j->stack.cube[i], c))
            push_cofactor(j, &j->stack.cube[i], c);
    r.end = j->stack.top;
    bool all = tautology(j, r);
    j->stack.top = r.first;
    return all;
}

/* Sorts the on-set, smallest cubes first (sign 1) or largest (-1); stable, so that the order is defined. */
static void sort_cubes(struct job *j, int64_t sign)
{
    struct cube *cube = j->stack.cube;

    for (size_t i = 1; i < j->on; i++) {
        struct cube c = cube[i];
        size_t at = i;
        for (; at > 0 && sign * cube[at - 1].freedom > sign * c.freedom; at--)
            cube[at] = cube[at - 1];
        cube[at] = c;
    }
}

static bool meets_off(const struct job *j, const struct cube *c)
{
    for (size_t i = j->off.first; i < j->off.end; i++)
        if (meet(j->t, &j->stack.cube[i], c))
            return true;
    return false;
}

/* Frees the cube of literals one by one, first of those that the fewest cubes have. */
static void enlarge(const struct job *j, struct cube *c)
{
    int count[2 * MAX_INPUTS], bits = 2 * (int)j->t->inputs;
    struct cube tried = *c;

    count_forbidden(j->t, j->stack.cube, j->on, count);
    while (tried.freedom < j->t->inputs) {
        int best = -1;
        for (int bit = 0; bit < bits; bit++)
            if (!may(&tried, bit) && (best < 0 || count[bit] < count[best]))
                best = bit;
        struct cube larger = *c;
        allow(&tried, best);
        allow(&larger, best);
        if (!meets_off(j, &larger))
            *c = larger;
    }
}

static void expand(struct job *j)
{
    sort_cubes(j, 1);
    for (size_t i = 0; i < j->on; i++) {
        struct cube c = j->stack.cube[i];
        size_t to = 0, self = i;
        enlarge(j, &c);
        j->stack.cube[i] = c;
        for (size_t k = 0; k < j->on; k++) {
            if (k == i)
                self = to;
            else if (within(j->t, &j->stack.cube[k], &c))
                continue;
            j->stack.cube[to++] = j->stack.cube[k];
        }
        j->on = to;
        i = self;
    }
}

static void irredundant(struct job *j)
{
    sort_cubes(j, 1);
    for (size_t i = 0; i < j->on;) {
        struct cube c = j->stack.cube[i];
        if (covered(j, &c, i)) {
            memmove(j->stack.cube + i, j->stack.cube + i + 1, (j->on - i - 1) * sizeof *j->stack.cube);
            j->on--;
        } else {
            i++;
        }
    }
}

/* A half of a cube that the others cover can go. */
static void reduce(struct job *j)
{
    sort_cubes(j, -1);
    for (size_t i = 0; i < j->on; i++)
        for (int bit = 0; bit < 2 * (int)j->t->inputs; bit++)
            if (is_free(&j->stack.cube[i], bit / 2)) {
                struct cube half = j->stack.cube[i];
                forbid(&half, bit ^ 1);
                if (covered(j, &half, i))
                    forbid(&j->stack.cube[i], bit);
            }
}

static int64_t literals(const struct table *t, const struct cube *cube, size_t cubes)
{
    int64_t sum = 0;

    for (size_t i = 0; i < cubes; i++)
        sum += t->inputs - cube[i].freedom;
    return sum;
}

/* Replaces a cover by the job's on-set. */
static void keep(const struct job *j, struct stack *cover)
{
    cover->top = 0;
    for (size_t i = 0; i < j->on; i++)
        push(cover, &j->stack.cube[i]);
}

static void minimize(struct job *j, struct stack *best)
{
    bool better = true;

    j->off = complement(j, (struct range){ 0, j->on });
    expand(j);
    irredundant(j);
    for (keep(j, best); better; j->rounds++) {
        reduce(j);
        expand(j);
        irredundant(j);
        better =
            j->on < best->top
            || (j->on == best->top && literals(j->t, j->stack.cube, j->on) < literals(j->t, best->cube, best->top));
        if (better)
            keep(j, best);
    }
}

/* Threads. */

static inline bool belongs(const struct table *t, int64_t cube, int64_t output)
{
    return t->belongs[cube * t->mask_words + output / 64] >> (output % 64) & 1;
}

static void minimize_output(struct table *t, struct job *j, int64_t output)
{
    j->stack.top = 0;
    for (int64_t i = 0; i < t->cubes; i++)
        if (belongs(t, i, output))
            push(&j->stack, &t->cube[i]);
    t->begun_with[output] = j->on = j->stack.top;
    minimize(j, &t->result[output]);
}

/* A cube of one minterm: each in turn if they are few, else random ones, half of them in a cube of the table. */
static struct cube minterm(const struct table *t, uint64_t number, bool sample, struct wl_random *r)
{
    struct cube c = t->full;
    const struct cube *near = &t->full;

    if (sample && number % 2)
        near = &t->cube[wl_random_next(r) % (uint64_t)t->cubes];
    for (int v = 0; v < (int)t->inputs; v++) {
        int value = (int)(sample ? wl_random_next(r) : number >> v) & 1;
        forbid(&c, 2 * v + !(may(near, 2 * v + value) ? value : !value));
    }
    return c;
}

static int64_t check_output(const struct table *t, int64_t output)
{
    const struct stack *c = &t->result[output];
    struct wl_random r = { (uint64_t)output };
    bool sample = t->inputs > 10;
    int64_t wrong = c->top > t->begun_with[output];

    for (uint64_t n = 0; n < (sample ? SAMPLES : UINT64_C(1) << t->inputs); n++) {
        struct cube m = minterm(t, n, sample, &r);
        bool wanted = false, given = false;
        for (int64_t i = 0; i < t->cubes && !wanted; i++)
            wanted = belongs(t, i, output) && within(t, &m, &t->cube[i]);
        for (size_t i = 0; i < c->top && !given; i++)
            given = within(t, &m, &c->cube[i]);
        wrong += wanted != given;
    }
    return wrong;
}

static void work(int id, void *arg)
{
    struct table *t = arg;
    struct job j = { .t = t };
    int64_t wrong = 0, before = 0, after = 0, left = 0;

    for (int64_t output = id; output < t->outputs; output += t->threads)
        minimize_output(t, &j, output);
    pthread_barrier_wait(&t->barrier);
    for (int64_t output = (id + 1) % t->threads; output < t->outputs; output += t->threads) {
        const struct stack *c = &t->result[output];
        wrong += check_output(t, output);
        before += (int64_t)t->begun_with[output];
        after += (int64_t)c->top;
        left += literals(t, c->cube, c->top);
    }
    free(j.stack.cube);
    pthread_mutex_lock(&t->lock);
    t->wrong += wrong;
    t->before += before;
    t->after += after;
    t->literals += left;
    t->rounds += j.rounds;
    pthread_mutex_unlock(&t->lock);
}

/* Every variable matters to a random cube with a likelihood of five eighths. */
static struct cube random_cube(const struct table *t, struct wl_random *r)
{
    struct cube c = t->full;

    for (int v = 0; v < (int)t->inputs; v++) {
        uint64_t chance = wl_random_next(r);
        if (chance % 8 < 5)
            forbid(&c, 2 * v + (int)(chance >> 3 & 1));
    }
    return c;
}

/* The table hides random cubes by cutting each into pieces, which belong to the same quarter of the outputs. */
static void fill_table(struct table *t)
{
    struct wl_random r = { 1984 };
    struct cube whole = t->full;
    int about[CUTS] = { 0 };

    for (int64_t i = 0; i < t->cubes; i++) {
        if (i % PIECES == 0) {
            whole = random_cube(t, &r);
            for (int cut = 0; cut < CUTS; cut++)
                about[cut] = (int)(wl_random_next(&r) % (uint64_t)t->inputs);
        }
        t->cube[i] = whole;
        for (int cut = 0; cut < CUTS; cut++)
            if (is_free(&t->cube[i], about[cut]))
                forbid(&t->cube[i], 2 * about[cut] + (i >> cut & 1));
        for (int64_t w = 0; w < t->mask_words; w++)
            t->belongs[i * t->mask_words + w] =
                i % PIECES ? t->belongs[(i - 1) * t->mask_words + w] : wl_random_next(&r) & wl_random_next(&r);
    }
}

static void table_init(struct table *t)
{
    t->parts = (int)(t->inputs + 31) / 32;
    t->full.freedom = t->inputs;
    for (int bit = 0; bit < 2 * (int)t->inputs; bit++)
        t->full.part[bit / 64] |= UINT64_C(1) << (bit % 64);
    t->mask_words = (t->outputs + 63) / 64;
    t->cube = wl_alloc((size_t)t->cubes * sizeof *t->cube);
    t->belongs = wl_alloc((size_t)(t->cubes * t->mask_words) * sizeof *t->belongs);
    t->result = wl_alloc((size_t)t->outputs * sizeof *t->result);
    t->begun_with = wl_alloc((size_t)t->outputs * sizeof *t->begun_with);
    fill_table(t);
    pthread_barrier_init(&t->barrier, NULL, (unsigned)t->threads);
}

static void table_release(struct table *t)
{
    pthread_barrier_destroy(&t->barrier);
    for (int64_t i = 0; i < t->outputs; i++)
        free(t->result[i].cube);
    free(t->result);
    free(t->begun_with);
    free(t->cube);
    free(t->belongs);
}

static uint64_t checksum(const struct table *t)
{
    struct wl_random mix = { 0 };

    for (int64_t i = 0; i < t->outputs; i++)
        for (size_t k = 0; k < t->result[i].top; k++)
            for (int w = 0; w < t->parts; w++)
                mix.state = wl_random_next(&mix) ^ t->result[i].cube[k].part[w];
    return mix.state;
}

int main(int argc, char **argv)
{
    static struct table t = { .inputs = 13, .outputs = 16, .cubes = 1200, .lock = PTHREAD_MUTEX_INITIALIZER };
    const struct wl_option options[] = {
        { 'o', &t.outputs, 1, 1 << 16,
          "outputs, one thread each: 4 with -i 8 -c 240 for 10^6 references, 1400 for 10^10" },
        { 'i', &t.inputs, 2, MAX_INPUTS, "inputs" },
        { 'c', &t.cubes, 1, 1 << 20, "cubes in the table, a quarter of which belong to an output" },
        { 0 },
    };

    t.threads = wl_parse(argc, argv, "two-level minimisation of logic, an output at a time", options);
    table_init(&t);
    wl_parallel(t.threads, work, &t);
    uint64_t sum = checksum(&t);
    table_release(&t);
    return wl_verdict(t.wrong == 0,
                      "%lld inputs, %lld outputs, %lld cubes made %lld with %lld literals, %lld rounds, %lld wrong, "
                      "checksum %016" PRIx64,
                      (long long)t.inputs, (long long)t.outputs, (long long)t.before, (long long)t.after,
                      (long long)t.literals, (long long)t.rounds, (long long)t.wrong, sum);
}
