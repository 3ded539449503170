/* SPDX-License-Identifier: MIT */
/* The model that ocean-con and ocean-non share; the two differ in how a grid lies in memory, which each defines itself.
 *
 * A wind-driven, single-layer ocean in a square basin: the quasi-geostrophic vorticity equation
 *     dz/dt = -J(psi, z) - beta dpsi/dx - drag z + F,    (laplace - lambda) psi = z,    psi = z = 0 on the coast.
 * J is Arakawa's Jacobian (J. Comput. Phys. 1, 1966), time goes by Adams-Bashforth of second order, and the Helmholtz
 * equation is solved by multigrid V-cycles (Brandt, Math. Comp. 31, 1977): red-black Gauss-Seidel, full weighting,
 * bilinear interpolation, down to a grid of one point. The forcing F is manufactured so that psi is known.
 *
 * The self-check: every solve ends with a small residual, and psi lies within O(h^2) of the manufactured solution.
 * Each new value depends on old ones only and norms are maxima, so no bit of the result depends on the thread count.
 *
 * Threads form a rectangle and own blocks of points; a coarse point belongs to the owner of the fine point on it. So
 * a thread needs no more than a frame of one point around its block. Blocks may be empty.
 * Leaves out: coastlines other than the square's, stratification, real winds. */
#ifndef PEET_WORKLOAD_OCEAN_H
#define PEET_WORKLOAD_OCEAN_H

#include "common.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define LAMBDA 10.0
#define BETA 5.0
#define DRAG 0.1
#define TOLERANCE 1e-8   /* of a solve: residual relative to the source */
#define ERROR_FACTOR 3.0 /* of the solution: times h squared, see error_allowed */

enum { MAX_LEVELS = 13, MAX_CYCLES = 12, SWEEPS_DOWN = 2, SWEEPS_UP = 1 };
enum { RED = 1, BLACK = 2, BOTH = RED | BLACK }; /* red: row + column is even */

/* STREAM and SOURCE of level 0 are psi and z; on coarser levels they are the correction and the residual it is for. */
enum field { STREAM, SOURCE, RESIDUAL, TENDENCY, OLD_TENDENCY, FIELDS };

/* The points r0 <= row < r1, c0 <= column < c1. */
struct part {
    int64_t r0, r1, c0, c1;
};

/* Where a thread sees a field: at is the point (row, column), the next row lies stride further. */
struct window {
    double *at;
    int64_t row, column, stride;
};

/* sin(pi x), sin(2 pi x) and their cosines at a row or column. */
struct wave {
    double s1, c1, s2, c2;
};

struct ocean {
    int64_t cells, steps;
    int levels, threads, thread_rows, thread_columns;
    struct part *part;     /* [thread][level] */
    struct window *window; /* [thread][level][field] */
    struct wave *wave;     /* [row or column] */
    pthread_barrier_t barrier;
    pthread_mutex_t lock;   /* over what follows */
    double peak[3];         /* of three successive reductions */
    double error, residual; /* the latter as a share of the allowed one */
    int64_t cycles;
    uint64_t checksum;
};

/* One thread's state. */
struct sailor {
    struct ocean *o;
    int id;
    unsigned reductions;
};

/* What a layout provides. */
static void layout_new(struct ocean *o); /* fills o->window, memory zeroed */
static void layout_free(struct ocean *o);
/* Makes the frame around a thread's block hold its neighbours' points of those colours, which no thread may be writing. */
static void layout_frame(struct ocean *o, int id, int level, enum field field, int colours);

static inline const struct part *part_of(const struct ocean *o, int id, int level)
{
    return &o->part[id * MAX_LEVELS + level];
}

static inline struct window *window_of(const struct ocean *o, int id, int level, enum field field)
{
    return &o->window[(id * MAX_LEVELS + level) * FIELDS + (int)field];
}

static inline double *point(const struct window *w, int64_t row, int64_t column)
{
    return w->at + (row - w->row) * w->stride + (column - w->column);
}

static void relax(struct sailor *s, int level, int colour)
{
    const struct part *p = part_of(s->o, s->id, level);
    const struct window *stream = window_of(s->o, s->id, level, STREAM);
    const struct window *source = window_of(s->o, s->id, level, SOURCE);
    double h = (double)((int64_t)1 << level) / (double)s->o->cells;
    double inverse = 1 / (4 + LAMBDA * h * h);
    int64_t stride = stream->stride;

    layout_frame(s->o, s->id, level, STREAM, BOTH ^ colour);
    for (int64_t i = p->r0; i < p->r1; i++) {
        int64_t first = p->c0 + ((i + p->c0 + (colour == BLACK)) & 1);
        double *u = point(stream, i, first);
        const double *f = point(source, i, first);
        for (int64_t j = first; j < p->c1; j += 2, u += 2, f += 2)
            *u = (u[-stride] + u[-1] + u[1] + u[stride] - h * h * *f) * inverse;
    }
    pthread_barrier_wait(&s->o->barrier);
}

/* Returns the largest residual of the thread's own points. */
static double residual(struct sailor *s, int level)
{
    const struct part *p = part_of(s->o, s->id, level);
    const struct window *stream = window_of(s->o, s->id, level, STREAM);
    const struct window *source = window_of(s->o, s->id, level, SOURCE);
    const struct window *rest = window_of(s->o, s->id, level, RESIDUAL);
    double h = (double)((int64_t)1 << level) / (double)s->o->cells;
    double scale = 1 / (h * h), largest = 0;
    int64_t stride = stream->stride;

    layout_frame(s->o, s->id, level, STREAM, BOTH);
    for (int64_t i = p->r0; i < p->r1; i++) {
        const double *u = point(stream, i, p->c0);
        const double *f = point(source, i, p->c0);
        double *r = point(rest, i, p->c0);
        for (int64_t j = 0; j < p->c1 - p->c0; j++, u++) {
            double laplace = (u[-stride] + u[-1] + u[1] + u[stride] - 4 * u[0]) * scale;
            r[j] = f[j] - (laplace - LAMBDA * u[0]);
            if (fabs(r[j]) > largest)
                largest = fabs(r[j]);
        }
    }
    pthread_barrier_wait(&s->o->barrier);
    return largest;
}

/* The residual of a level becomes the source of the next coarser one, whose correction begins at zero. */
static void restrict_residual(struct sailor *s, int level)
{
    const struct part *p = part_of(s->o, s->id, level + 1);
    const struct window *rest = window_of(s->o, s->id, level, RESIDUAL);
    const struct window *source = window_of(s->o, s->id, level + 1, SOURCE);
    const struct window *stream = window_of(s->o, s->id, level + 1, STREAM);
    int64_t stride = rest->stride;

    layout_frame(s->o, s->id, level, RESIDUAL, BOTH);
    for (int64_t i = p->r0; i < p->r1; i++) {
        const double *r = point(rest, 2 * i, 2 * p->c0);
        double *f = point(source, i, p->c0);
        double *u = point(stream, i, p->c0);
        for (int64_t j = 0; j < p->c1 - p->c0; j++, r += 2) {
            double corners = r[-stride - 1] + r[-stride + 1] + r[stride - 1] + r[stride + 1];
            double sides = r[-stride] + r[-1] + r[1] + r[stride];
            f[j] = (corners + 2 * sides + 4 * r[0]) / 16;
            u[j] = 0;
        }
    }
    pthread_barrier_wait(&s->o->barrier);
}

/* Adds the coarser level's correction to a level. */
static void prolong(struct sailor *s, int level)
{
    const struct part *p = part_of(s->o, s->id, level);
    const struct window *fine = window_of(s->o, s->id, level, STREAM);
    const struct window *coarse = window_of(s->o, s->id, level + 1, STREAM);
    int64_t stride = coarse->stride;

    layout_frame(s->o, s->id, level + 1, STREAM, BOTH);
    for (int64_t i = p->r0; i < p->r1; i++) {
        int64_t up = (i & 1) * stride;
        double *u = point(fine, i, p->c0);
        for (int64_t j = p->c0; j < p->c1; j++, u++) {
            const double *c = point(coarse, i / 2, j / 2);
            if (j & 1)
                *u += (c[0] + c[1] + c[up] + c[up + 1]) / 4;
            else
                *u += (c[0] + c[up]) / 2;
        }
    }
    pthread_barrier_wait(&s->o->barrier);
}

/* The largest of all threads' values, in all threads. */
static double global_peak(struct sailor *s, double value)
{
    struct ocean *o = s->o;
    unsigned slot = s->reductions++ % 3;

    pthread_mutex_lock(&o->lock);
    if (value > o->peak[slot])
        o->peak[slot] = value;
    pthread_mutex_unlock(&o->lock);
    if (s->id == 0)
        o->peak[(slot + 1) % 3] = 0; /* read before the last barrier, written after the next: three slots, not two */
    pthread_barrier_wait(&o->barrier);
    return o->peak[slot];
}

static void cycle(struct sailor *s)
{
    int coarsest = s->o->levels - 1;

    for (int level = 0; level < coarsest; level++) {
        for (int sweep = 0; sweep < SWEEPS_DOWN; sweep++) {
            relax(s, level, RED);
            relax(s, level, BLACK);
        }
        residual(s, level);
        restrict_residual(s, level);
    }
    relax(s, coarsest, RED); /* its one point is red */
    for (int level = coarsest; level-- > 0;) {
        prolong(s, level);
        for (int sweep = 0; sweep < SWEEPS_UP; sweep++) {
            relax(s, level, RED);
            relax(s, level, BLACK);
        }
    }
}

static void solve(struct sailor *s)
{
    const struct part *p = part_of(s->o, s->id, 0);
    const struct window *source = window_of(s->o, s->id, 0, SOURCE);
    double largest = 0, left;
    int cycles = 0;

    for (int64_t i = p->r0; i < p->r1; i++)
        for (int64_t j = p->c0; j < p->c1; j++)
            largest = fmax(largest, fabs(*point(source, i, j)));
    double allowed = TOLERANCE * global_peak(s, largest);
    do {
        cycle(s);
        cycles++;
        left = global_peak(s, residual(s, 0));
    } while (left > allowed && cycles < MAX_CYCLES);
    if (s->id == 0) {
        s->o->cycles += cycles;
        s->o->residual = fmax(s->o->residual, left / allowed);
    }
}

/* Arakawa's Jacobian times 12 h^2, at one point of two fields. */
static inline double jacobian(const double *p, int64_t ps, const double *z, int64_t zs)
{
    /* clang-format off */
    double plain = (p[1] - p[-1]) * (z[zs] - z[-zs]) - (p[ps] - p[-ps]) * (z[1] - z[-1]);
    double by_p = p[1] * (z[zs + 1] - z[1 - zs]) - p[-1] * (z[zs - 1] - z[-zs - 1])
                - p[ps] * (z[zs + 1] - z[zs - 1]) + p[-ps] * (z[1 - zs] - z[-zs - 1]);
    double by_z = z[zs] * (p[ps + 1] - p[ps - 1]) - z[-zs] * (p[1 - ps] - p[-ps - 1])
                - z[1] * (p[ps + 1] - p[1 - ps]) + z[-1] * (p[ps - 1] - p[-ps - 1]);
    /* clang-format on */
    return plain + by_p + by_z;
}

/* The manufactured psi = a A + b B with A = sin(pi x) sin(pi y) and B = sin(2 pi x) sin(pi y), both eigenfunctions. */
struct truth {
    double a, b, a_rate, b_rate;
};

#define EIGEN_A (-2 * PI * PI - LAMBDA)
#define EIGEN_B (-5 * PI * PI - LAMBDA)

static struct truth truth_at(double time)
{
    return (struct truth){ cos(time), 0.5 * cos(time + 1), -sin(time), -0.5 * sin(time + 1) };
}

static inline double forcing(const struct truth *t, const struct wave *x, const struct wave *y)
{
    double a = x->s1 * y->s1, b = x->s2 * y->s1;
    double a_x = PI * x->c1 * y->s1, b_x = 2 * PI * x->c2 * y->s1;
    double a_y = PI * x->s1 * y->c1, b_y = PI * x->s2 * y->c1;

    return EIGEN_A * t->a_rate * a + EIGEN_B * t->b_rate * b
           + t->a * t->b * (EIGEN_B - EIGEN_A) * (a_x * b_y - a_y * b_x) + BETA * (t->a * a_x + t->b * b_x)
           + DRAG * (EIGEN_A * t->a * a + EIGEN_B * t->b * b);
}

static void tendency(struct sailor *s, double time, enum field into)
{
    struct ocean *o = s->o;
    const struct part *p = part_of(o, s->id, 0);
    const struct window *stream = window_of(o, s->id, 0, STREAM), *source = window_of(o, s->id, 0, SOURCE);
    struct truth t = truth_at(time);
    double h = 1 / (double)o->cells;

    layout_frame(o, s->id, 0, STREAM, BOTH);
    layout_frame(o, s->id, 0, SOURCE, BOTH);
    for (int64_t i = p->r0; i < p->r1; i++) {
        const double *psi = point(stream, i, p->c0), *z = point(source, i, p->c0);
        double *rate = point(window_of(o, s->id, 0, into), i, p->c0);
        for (int64_t j = p->c0; j < p->c1; j++, psi++, z++) {
            double advection = jacobian(psi, stream->stride, z, source->stride) / (12 * h * h);
            double planetary = BETA * (psi[1] - psi[-1]) / (2 * h);
            *rate++ = forcing(&t, &o->wave[j], &o->wave[i]) - advection - planetary - DRAG * *z;
        }
    }
    pthread_barrier_wait(&o->barrier);
}

/* Vorticity goes one step on: Adams-Bashforth, or Euler when there is no older tendency. */
static void advance(struct sailor *s, double step, enum field now, enum field before, bool first)
{
    const struct part *p = part_of(s->o, s->id, 0);
    double weight_now = first ? step : 1.5 * step, weight_before = first ? 0 : -0.5 * step;

    for (int64_t i = p->r0; i < p->r1; i++) {
        double *z = point(window_of(s->o, s->id, 0, SOURCE), i, p->c0);
        const double *rate = point(window_of(s->o, s->id, 0, now), i, p->c0);
        const double *old = point(window_of(s->o, s->id, 0, before), i, p->c0);
        for (int64_t j = 0; j < p->c1 - p->c0; j++)
            z[j] += weight_now * rate[j] + weight_before * old[j];
    }
    pthread_barrier_wait(&s->o->barrier);
}

static void begin(struct sailor *s)
{
    struct ocean *o = s->o;
    const struct part *p = part_of(o, s->id, 0);
    struct truth t = truth_at(0);

    for (int64_t i = p->r0; i < p->r1; i++)
        for (int64_t j = p->c0; j < p->c1; j++) {
            double a = o->wave[j].s1 * o->wave[i].s1, b = o->wave[j].s2 * o->wave[i].s1;
            *point(window_of(o, s->id, 0, SOURCE), i, j) = EIGEN_A * t.a * a + EIGEN_B * t.b * b;
        }
    pthread_barrier_wait(&o->barrier);
    solve(s);
}

/* As fmax, but a NaN stays: it must not pass for a small error. */
static inline double larger(double a, double b)
{
    return a >= b || isnan(a) ? a : b;
}

/* Compares the thread's points with the manufactured solution and adds them to the checksum. */
static void inspect(struct sailor *s, double time)
{
    struct ocean *o = s->o;
    const struct part *p = part_of(o, s->id, 0);
    struct truth t = truth_at(time);
    double error = 0;
    uint64_t sum = 0;

    for (int64_t i = p->r0; i < p->r1; i++)
        for (int64_t j = p->c0; j < p->c1; j++) {
            double psi = *point(window_of(o, s->id, 0, STREAM), i, j);
            double a = o->wave[j].s1 * o->wave[i].s1, b = o->wave[j].s2 * o->wave[i].s1;
            uint64_t bits;
            memcpy(&bits, &psi, sizeof bits);
            struct wl_random mix = { bits + (uint64_t)(i * o->cells + j) };
            sum += wl_random_next(&mix);
            error = larger(error, fabs(psi - t.a * a - t.b * b));
        }
    pthread_mutex_lock(&o->lock);
    o->error = larger(o->error, error);
    o->checksum += sum;
    pthread_mutex_unlock(&o->lock);
}

static inline double time_step(const struct ocean *o)
{
    return 1 / (16 * (double)o->cells);
}

static void sail(int id, void *arg)
{
    struct sailor s = { .o = arg, .id = id };
    double step = time_step(s.o);
    int64_t n = 0;

    for (begin(&s); n < s.o->steps; n++) {
        enum field now = n % 2 ? OLD_TENDENCY : TENDENCY, before = n % 2 ? TENDENCY : OLD_TENDENCY;
        tendency(&s, (double)n * step, now);
        advance(&s, step, now, before, n == 0);
        solve(&s);
    }
    inspect(&s, (double)n * step);
}

static void divide(struct ocean *o)
{
    o->thread_rows = 1;
    for (int rows = 2; rows * rows <= o->threads; rows++)
        if (o->threads % rows == 0)
            o->thread_rows = rows;
    o->thread_columns = o->threads / o->thread_rows;
    for (int id = 0; id < o->threads; id++) {
        struct part p;
        wl_share(o->cells - 1, o->thread_rows, id / o->thread_columns, &p.r0, &p.r1);
        wl_share(o->cells - 1, o->thread_columns, id % o->thread_columns, &p.c0, &p.c1);
        p = (struct part){ p.r0 + 1, p.r1 + 1, p.c0 + 1, p.c1 + 1 };
        for (int level = 0; level < o->levels; level++) {
            o->part[id * MAX_LEVELS + level] = p;
            p = (struct part){ (p.r0 + 1) / 2, (p.r1 + 1) / 2, (p.c0 + 1) / 2, (p.c1 + 1) / 2 };
        }
    }
}

/* What the scheme's order allows: errors grow with time until the drag damps them as fast. */
static double error_allowed(const struct ocean *o)
{
    double time = time_step(o) * (double)o->steps;

    return ERROR_FACTOR * (1 + fmin(4 * time, 8)) / (double)(o->cells * o->cells);
}

static int ocean_main(int argc, char **argv, const char *summary)
{
    struct ocean o = { .cells = 256, .steps = 3, .lock = PTHREAD_MUTEX_INITIALIZER };
    const struct wl_option options[] = {
        { 'n', &o.cells, 8, 8192,
          "cells a side, a power of two: 64 and -s 0 for 10^6 references, 2k and -s 6 for 10^10" },
        { 's', &o.steps, 0, 1 << 20, "time steps after the first solve" },
        { 0 },
    };

    o.threads = wl_parse(argc, argv, summary, options);
    if (o.cells & (o.cells - 1))
        wl_usage_error("-n: %lld is not a power of two", (long long)o.cells);
    while ((int64_t)2 << o.levels <= o.cells)
        o.levels++;
    o.part = wl_alloc((size_t)o.threads * MAX_LEVELS * sizeof *o.part);
    o.window = wl_alloc((size_t)o.threads * MAX_LEVELS * FIELDS * sizeof *o.window);
    o.wave = wl_alloc((size_t)(o.cells + 1) * sizeof *o.wave);
    for (int64_t i = 0; i <= o.cells; i++) {
        double x = PI * (double)i / (double)o.cells;
        o.wave[i] = (struct wave){ sin(x), cos(x), sin(2 * x), cos(2 * x) };
    }
    divide(&o);
    layout_new(&o);
    pthread_barrier_init(&o.barrier, NULL, (unsigned)o.threads);
    wl_parallel(o.threads, sail, &o);
    pthread_barrier_destroy(&o.barrier);
    layout_free(&o);
    free(o.wave);
    free(o.window);
    free(o.part);
    return wl_verdict(o.error <= error_allowed(&o) && o.residual <= 1,
                      "%lld x %lld cells, %lld steps, %lld cycles, residual %.2g of the allowed, error %.2e of %.2e, "
                      "checksum %016" PRIx64,
                      (long long)o.cells, (long long)o.cells, (long long)o.steps, (long long)o.cycles, o.residual,
                      o.error, error_allowed(&o), o.checksum);
}

#endif
