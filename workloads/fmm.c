/* SPDX-License-Identifier: MIT */
/* Two-dimensional N-body problem by the fast multipole method.
 *
 * The uniform algorithm of Greengard and Rokhlin (J. Comput. Phys. 73, 1987): a quadtree over the unit square; each
 * leaf forms the multipole expansion of its particles, expansions are shifted to parents, each box turns those of its
 * interaction list (children of its parent's neighbours, not touching it) and its parent's local expansion into its own
 * local expansion, and particles take the far field from that and the near one by direct summation over nine leaves.
 * The potential is the real part of sum q log(z - z_j), the field its derivative; particles then move a little.
 *
 * Boxes of a level are numbered along Morton's curve and shared among the threads in pieces, as are the particles, by
 * number, for the moves: so a particle's data wander between threads. Passes and levels are separated by barriers. A
 * box gathers from others and writes to itself only, and a leaf lists its particles by number: no result depends on
 * timing or on the thread count.
 *
 * The self-check: potential and field of some particles against direct summation over all.
 * Leaves out: adaptive refinement (so: even distributions only), and Newton's third law in the near field. */
#include "common.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TERMS = 40, MAX_LEVEL = 9, SAMPLES = 50, CROWD = 16 };

#define STEP 1e-5 /* of time */

struct z {
    double re, im;
};

struct particle {
    struct z at, velocity, field; /* field: derivative of the complex potential */
    double charge, potential;
};

struct box_range {
    int64_t first, end;
};

struct space {
    int64_t particles, terms, steps, leaf_level;
    int threads;
    struct particle *particle;
    int32_t *leaf_of;        /* [particle] */
    int32_t *member;         /* particles, leaf by leaf */
    int64_t *first_member;   /* [leaf], and one more */
    struct z *outer, *inner; /* multipole and local expansions, [box][0 … terms] */
    double binomial[2 * MAX_TERMS + 1][2 * MAX_TERMS + 1];
    pthread_barrier_t barrier;
};

static inline struct z z_add(struct z a, struct z b)
{
    return (struct z){ a.re + b.re, a.im + b.im };
}

static inline struct z z_sub(struct z a, struct z b)
{
    return (struct z){ a.re - b.re, a.im - b.im };
}

static inline struct z z_scale(struct z a, double f)
{
    return (struct z){ a.re * f, a.im * f };
}

static inline struct z z_mul(struct z a, struct z b)
{
    return (struct z){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

static inline struct z z_inverse(struct z a)
{
    double f = 1 / (a.re * a.re + a.im * a.im);

    return (struct z){ a.re * f, -a.im * f };
}

static inline struct z z_log(struct z a)
{
    return (struct z){ 0.5 * log(a.re * a.re + a.im * a.im), atan2(a.im, a.re) };
}

static void powers(struct z base, int64_t terms, struct z *power)
{
    power[0] = (struct z){ 1, 0 };
    for (int64_t k = 1; k <= terms; k++)
        power[k] = z_mul(power[k - 1], base);
}

/* Boxes: number within the level along Morton's curve, and place in the arrays of expansions. */

static inline int64_t boxes_above(int64_t level)
{
    return (((int64_t)1 << 2 * level) - 1) / 3;
}

static int64_t box_number(int64_t column, int64_t row)
{
    int64_t number = 0;

    for (int bit = 0; bit < MAX_LEVEL; bit++)
        number |= (column >> bit & 1) << 2 * bit | (row >> bit & 1) << (2 * bit + 1);
    return number;
}

static void box_place(int64_t number, int64_t *ret_column, int64_t *ret_row)
{
    *ret_column = *ret_row = 0;
    for (int bit = 0; bit < MAX_LEVEL; bit++) {
        *ret_column |= (number >> 2 * bit & 1) << bit;
        *ret_row |= (number >> (2 * bit + 1) & 1) << bit;
    }
}

static struct z box_centre(int64_t level, int64_t number)
{
    int64_t column, row;

    box_place(number, &column, &row);
    double side = 1 / (double)((int64_t)1 << level);
    return (struct z){ ((double)column + 0.5) * side, ((double)row + 0.5) * side };
}

static inline struct z *expansion(const struct space *s, struct z *of, int64_t level, int64_t number)
{
    return of + (boxes_above(level) + number) * (s->terms + 1);
}

static struct box_range share(const struct space *s, int64_t level, int id)
{
    struct box_range r;

    wl_share((int64_t)1 << 2 * level, s->threads, id, &r.first, &r.end);
    return r;
}

/* Building: every thread lists the particles in its leaves, looking through all of them. */

static void place_particles(struct space *s, int id)
{
    int64_t first, end, side = (int64_t)1 << s->leaf_level;

    wl_share(s->particles, s->threads, id, &first, &end);
    for (int64_t i = first; i < end; i++) {
        struct z at = s->particle[i].at;
        s->leaf_of[i] = (int32_t)box_number((int64_t)(at.re * (double)side), (int64_t)(at.im * (double)side));
    }
    pthread_barrier_wait(&s->barrier);
}

static void list_members(struct space *s, int id)
{
    struct box_range own = share(s, s->leaf_level, id);
    int64_t leaves = (int64_t)1 << 2 * s->leaf_level;

    for (int64_t b = own.first; b < own.end; b++)
        s->first_member[b + 1] = 0;
    for (int64_t i = 0; i < s->particles; i++)
        if (s->leaf_of[i] >= own.first && s->leaf_of[i] < own.end)
            s->first_member[s->leaf_of[i] + 1]++;
    pthread_barrier_wait(&s->barrier);
    if (id == 0)
        for (int64_t b = 0; b < leaves; b++)
            s->first_member[b + 1] += s->first_member[b];
    pthread_barrier_wait(&s->barrier);
    int64_t *next = wl_alloc((size_t)(own.end - own.first) * sizeof *next);
    for (int64_t b = own.first; b < own.end; b++)
        next[b - own.first] = s->first_member[b];
    for (int64_t i = 0; i < s->particles; i++)
        if (s->leaf_of[i] >= own.first && s->leaf_of[i] < own.end)
            s->member[next[s->leaf_of[i] - own.first]++] = (int32_t)i;
    free(next);
    pthread_barrier_wait(&s->barrier);
}

/* Upward pass. */

static void leaf_outer(struct space *s, int64_t leaf)
{
    struct z *a = expansion(s, s->outer, s->leaf_level, leaf), centre = box_centre(s->leaf_level, leaf);

    memset(a, 0, (size_t)(s->terms + 1) * sizeof *a);
    for (int64_t m = s->first_member[leaf]; m < s->first_member[leaf + 1]; m++) {
        const struct particle *p = &s->particle[s->member[m]];
        struct z d = z_sub(p->at, centre), power = { p->charge, 0 };
        a[0].re += p->charge;
        for (int64_t k = 1; k <= s->terms; k++) {
            power = z_mul(power, d);
            a[k] = z_sub(a[k], z_scale(power, 1 / (double)k));
        }
    }
}

static void outer_from_children(struct space *s, int64_t level, int64_t number)
{
    struct z *b = expansion(s, s->outer, level, number), centre = box_centre(level, number);

    memset(b, 0, (size_t)(s->terms + 1) * sizeof *b);
    for (int64_t child = 4 * number; child < 4 * number + 4; child++) {
        const struct z *a = expansion(s, s->outer, level + 1, child);
        struct z power[MAX_TERMS + 1];
        powers(z_sub(box_centre(level + 1, child), centre), s->terms, power);
        b[0] = z_add(b[0], a[0]);
        for (int64_t l = 1; l <= s->terms; l++) {
            struct z sum = z_scale(z_mul(a[0], power[l]), -1 / (double)l);
            for (int64_t k = 1; k <= l; k++)
                sum = z_add(sum, z_scale(z_mul(a[k], power[l - k]), s->binomial[l - 1][k - 1]));
            b[l] = z_add(b[l], sum);
        }
    }
}

static void upward(struct space *s, int id)
{
    struct box_range own = share(s, s->leaf_level, id);

    for (int64_t b = own.first; b < own.end; b++)
        leaf_outer(s, b);
    pthread_barrier_wait(&s->barrier);
    for (int64_t level = s->leaf_level - 1; level >= 2; level--) {
        own = share(s, level, id);
        for (int64_t b = own.first; b < own.end; b++)
            outer_from_children(s, level, b);
        pthread_barrier_wait(&s->barrier);
    }
}

/* Downward pass. */

static void inner_from_outer(const struct space *s, struct z *b, const struct z *a, struct z from)
{
    struct z inverse = z_inverse(from), power[MAX_TERMS + 1], c[MAX_TERMS + 1];

    powers(inverse, s->terms, power);
    b[0] = z_add(b[0], z_scale(z_log(z_scale(from, -1)), a[0].re)); /* charges are real */
    for (int64_t k = 1; k <= s->terms; k++) {
        c[k] = z_scale(z_mul(a[k], power[k]), k & 1 ? -1 : 1);
        b[0] = z_add(b[0], c[k]);
    }
    for (int64_t l = 1; l <= s->terms; l++) {
        struct z sum = { -a[0].re / (double)l, 0 };
        for (int64_t k = 1; k <= s->terms; k++)
            sum = z_add(sum, z_scale(c[k], s->binomial[l + k - 1][k - 1]));
        b[l] = z_add(b[l], z_mul(sum, power[l]));
    }
}

static void inner_from_parent(const struct space *s, struct z *b, const struct z *a, struct z shift)
{
    struct z power[MAX_TERMS + 1];

    powers(shift, s->terms, power);
    for (int64_t l = 0; l <= s->terms; l++)
        for (int64_t k = l; k <= s->terms; k++)
            b[l] = z_add(b[l], z_scale(z_mul(a[k], power[k - l]), s->binomial[k][l]));
}

static void make_inner(struct space *s, int64_t level, int64_t number)
{
    struct z *b = expansion(s, s->inner, level, number), centre = box_centre(level, number);
    int64_t column, row, side = (int64_t)1 << level;

    memset(b, 0, (size_t)(s->terms + 1) * sizeof *b);
    if (level > 2)
        inner_from_parent(s, b, expansion(s, s->inner, level - 1, number / 4),
                          z_sub(centre, box_centre(level - 1, number / 4)));
    box_place(number, &column, &row);
    for (int64_t r = (row & ~(int64_t)1) - 2; r < (row & ~(int64_t)1) + 4; r++)
        for (int64_t c = (column & ~(int64_t)1) - 2; c < (column & ~(int64_t)1) + 4; c++) {
            bool inside = r >= 0 && r < side && c >= 0 && c < side;
            bool touching = llabs(r - row) <= 1 && llabs(c - column) <= 1;
            if (!inside || touching)
                continue;
            int64_t other = box_number(c, r);
            inner_from_outer(s, b, expansion(s, s->outer, level, other), z_sub(box_centre(level, other), centre));
        }
}

static void downward(struct space *s, int id)
{
    for (int64_t level = 2; level <= s->leaf_level; level++) {
        struct box_range own = share(s, level, id);
        for (int64_t b = own.first; b < own.end; b++)
            make_inner(s, level, b);
        pthread_barrier_wait(&s->barrier);
    }
}

/* Evaluation. */

/* What q at from does to a particle at to. */
static inline void add_direct(struct z to, struct z from, double q, double *potential, struct z *field)
{
    double x = to.re - from.re, y = to.im - from.im, square = x * x + y * y;

    *potential += 0.5 * q * log(square);
    field->re += q * x / square;
    field->im -= q * y / square;
}

static void add_leaf(const struct space *s, int64_t leaf, int32_t self, double *potential, struct z *field)
{
    struct z at = s->particle[self].at;

    for (int64_t m = s->first_member[leaf]; m < s->first_member[leaf + 1]; m++)
        if (s->member[m] != self) {
            const struct particle *p = &s->particle[s->member[m]];
            add_direct(at, p->at, p->charge, potential, field);
        }
}

static void evaluate_leaf(struct space *s, int64_t leaf)
{
    const struct z *b = expansion(s, s->inner, s->leaf_level, leaf);
    struct z centre = box_centre(s->leaf_level, leaf);
    int64_t column, row, side = (int64_t)1 << s->leaf_level;

    box_place(leaf, &column, &row);
    for (int64_t m = s->first_member[leaf]; m < s->first_member[leaf + 1]; m++) {
        struct particle *p = &s->particle[s->member[m]];
        struct z d = z_sub(p->at, centre), value = b[s->terms], slope = { 0, 0 };
        for (int64_t k = s->terms; k-- > 0;) { /* Horner's scheme, for the derivative too */
            slope = z_add(z_mul(slope, d), value);
            value = z_add(z_mul(value, d), b[k]);
        }
        double potential = value.re;
        for (int64_t r = row - (row > 0); r <= row + (row + 1 < side); r++)
            for (int64_t c = column - (column > 0); c <= column + (column + 1 < side); c++)
                add_leaf(s, box_number(c, r), s->member[m], &potential, &slope);
        p->potential = potential;
        p->field = slope;
    }
}

/* Keeps a coordinate in [0, 1) by reflection. */
static void reflect(double *at, double *velocity)
{
    if (*at < 0 || *at >= 1) {
        *at = *at < 0 ? -*at : 2 - *at;
        *velocity = -*velocity;
    }
    if (!(*at >= 0 && *at < 1)) /* on the wall itself, or far outside */
        *at = 0.5;
}

static void move(struct space *s, int id)
{
    int64_t first, end;

    wl_share(s->particles, s->threads, id, &first, &end);
    for (int64_t i = first; i < end; i++) {
        struct particle *p = &s->particle[i];
        struct z pull = { -p->field.re, p->field.im }; /* minus the gradient: equal charges attract each other */
        p->velocity = z_add(p->velocity, z_scale(pull, STEP));
        p->at = z_add(p->at, z_scale(p->velocity, STEP));
        reflect(&p->at.re, &p->velocity.re);
        reflect(&p->at.im, &p->velocity.im);
    }
    pthread_barrier_wait(&s->barrier);
}

static void simulate(int id, void *arg)
{
    struct space *s = arg;

    for (int64_t step = 0; step < s->steps; step++) {
        if (step > 0)
            move(s, id);
        place_particles(s, id);
        list_members(s, id);
        upward(s, id);
        downward(s, id);
        struct box_range own = share(s, s->leaf_level, id);
        for (int64_t b = own.first; b < own.end; b++)
            evaluate_leaf(s, b);
        pthread_barrier_wait(&s->barrier);
    }
}

/* The larger of the relative errors of potential and field, in the mean square over the samples. */
static double sampled_error(const struct space *s)
{
    double wrong[2] = { 0 }, all[2] = { 0 };

    for (int64_t n = 0; n < SAMPLES; n++) {
        int64_t i = n * s->particles / SAMPLES;
        const struct particle *p = &s->particle[i];
        double potential = 0;
        struct z field = { 0, 0 };
        for (int64_t j = 0; j < s->particles; j++)
            if (j != i)
                add_direct(p->at, s->particle[j].at, s->particle[j].charge, &potential, &field);
        struct z d = z_sub(p->field, field);
        wrong[0] += (p->potential - potential) * (p->potential - potential);
        wrong[1] += d.re * d.re + d.im * d.im;
        all[0] += potential * potential;
        all[1] += field.re * field.re + field.im * field.im;
    }
    return sqrt(fmax(wrong[0] / all[0], wrong[1] / all[1]));
}

static uint64_t checksum(const struct space *s)
{
    struct wl_random mix = { 0 };

    for (int64_t i = 0; i < s->particles; i++) {
        uint64_t bits[2];
        memcpy(&bits[0], &s->particle[i].potential, sizeof bits[0]);
        memcpy(&bits[1], &s->particle[i].at.re, sizeof bits[1]);
        mix.state = wl_random_next(&mix) ^ bits[0] ^ bits[1] << 1;
    }
    return mix.state;
}

static void space_init(struct space *s)
{
    struct wl_random random = { 1987 };

    if (s->leaf_level == 0)
        for (s->leaf_level = 2; s->leaf_level < MAX_LEVEL && s->particles >> 2 * s->leaf_level > CROWD;)
            s->leaf_level++;
    size_t boxes = (size_t)boxes_above(s->leaf_level + 1), coefficients = boxes * (size_t)(s->terms + 1);
    s->particle = wl_alloc((size_t)s->particles * sizeof *s->particle);
    s->leaf_of = wl_alloc((size_t)s->particles * sizeof *s->leaf_of);
    s->member = wl_alloc((size_t)s->particles * sizeof *s->member);
    s->first_member = wl_alloc(((size_t)1 << 2 * s->leaf_level) * sizeof *s->first_member + sizeof *s->first_member);
    s->outer = wl_alloc(coefficients * sizeof *s->outer);
    s->inner = wl_alloc(coefficients * sizeof *s->inner);
    for (int n = 0; n <= 2 * MAX_TERMS; n++) {
        s->binomial[n][0] = s->binomial[n][n] = 1;
        for (int k = 1; k < n; k++)
            s->binomial[n][k] = s->binomial[n - 1][k - 1] + s->binomial[n - 1][k];
    }
    for (int64_t i = 0; i < s->particles; i++) {
        struct particle *p = &s->particle[i];
        p->at.re = wl_random_unit(&random);
        p->at.im = wl_random_unit(&random);
        p->velocity.re = wl_random_unit(&random) - 0.5;
        p->velocity.im = wl_random_unit(&random) - 0.5;
        p->charge = 0.5 + wl_random_unit(&random);
    }
    pthread_barrier_init(&s->barrier, NULL, (unsigned)s->threads);
}

static void space_release(struct space *s)
{
    pthread_barrier_destroy(&s->barrier);
    free(s->particle);
    free(s->leaf_of);
    free(s->member);
    free(s->first_member);
    free(s->outer);
    free(s->inner);
}

int main(int argc, char **argv)
{
    static struct space s = { .particles = 8192, .terms = 12, .steps = 2 };
    const struct wl_option options[] = {
        { 'n', &s.particles, SAMPLES, 1 << 24, "particles: 200 and -s 1 for 10^6 references, 512k and -s 3 for 10^10" },
        { 'k', &s.terms, 2, MAX_TERMS, "terms of an expansion" },
        { 'l', &s.leaf_level, 0, MAX_LEVEL, "level of the leaves, 2 at least: 4^l leaves; 0: up to 16 particles each" },
        { 's', &s.steps, 1, 1 << 20, "time steps" },
        { 0 },
    };

    s.threads = wl_parse(argc, argv, "N-body problem in two dimensions by the fast multipole method", options);
    if (s.leaf_level == 1)
        wl_usage_error("-l: 1 is no level for leaves, which begin at 2");
    space_init(&s);
    wl_parallel(s.threads, simulate, &s);
    double error = sampled_error(&s), allowed = fmax(0.1 * pow(0.4, (double)s.terms), 1e-13);
    uint64_t sum = checksum(&s);
    space_release(&s);
    return wl_verdict(error <= allowed,
                      "%lld particles, leaves of level %lld, %lld terms, %lld steps, error %.1e of %.1e, "
                      "checksum %016" PRIx64,
                      (long long)s.particles, (long long)s.leaf_level, (long long)s.terms, (long long)s.steps, error,
                      allowed, sum);
}
