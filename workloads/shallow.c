/* SPDX-License-Identifier: MIT */
/* Shallow-water equations on a doubly periodic plane.
 *
 * Sadourny's potential-enstrophy-conserving differences (J. Atmos. Sci. 32, 1975) on a staggered grid, leapfrog in time
 * with Robert's filter: the problem and the constants that Hoffmann, Swarztrauber and Sweet describe in "Aspects of
 * using multiprocessors for meteorological modelling" (1988), but eddies of one size on every grid. Of cell (i, j), i
 * being the column:
 *     p, h  geopotential and Bernoulli function   at the centre
 *     u, U  eastward velocity and mass flux       on the western side
 *     v, V  northward velocity and mass flux      on the southern side
 *     q     potential vorticity                   at the south-western corner
 *
 * A time step is four parallel loops over rows, each ended by a barrier: fluxes; vorticity and Bernoulli function; new
 * velocities and heights; time filter. Then thread 0 alone adds up the rows' masses and exchanges new and present
 * fields, while the others wait at a fifth barrier.
 *
 * The self-check: mass is conserved to rounding at every step, energy and potential enstrophy to the accuracy of the
 * scheme in time. Sums go over rows and then in the rows' order: no bit depends on the thread count. */
#include "common.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define SPACING 1e5    /* metres */
#define TIME_STEP 90.0 /* seconds; gravity waves go 0.2 cells in it */
#define DEPTH 5e4      /* mean geopotential, m^2/s^2 */
#define AMPLITUDE 1e7  /* of the stream function, m^2/s; the fastest winds are about 30 m/s */
#define FILTER 0.001

enum { WAVELENGTH = 32 };

enum { U_NOW, V_NOW, P_NOW, U_OLD, V_OLD, P_OLD, U_NEW, V_NEW, P_NEW, U_FLUX, V_FLUX, VORTICITY, BERNOULLI, FIELDS };

struct totals {
    double mass, energy, enstrophy;
};

struct plane {
    int64_t rows, columns, steps;
    int threads;
    double *field[FIELDS];
    double *wave_x, *wave_y; /* factors of the first stream function */
    double span;             /* what the leapfrog leaps over: one time step at first, then two */
    struct totals *row;      /* per row */
    double mass_drift;       /* largest so far, relative */
    struct totals begin, end;
    pthread_barrier_t barrier;
};

static inline double *row_of(const struct plane *s, int field, int64_t row)
{
    int64_t r = row < 0 ? row + s->rows : row >= s->rows ? row - s->rows : row;

    return s->field[field] + r * s->columns;
}

static inline int64_t west(const struct plane *s, int64_t i)
{
    return i ? i - 1 : s->columns - 1;
}

static inline int64_t east(const struct plane *s, int64_t i)
{
    return i + 1 < s->columns ? i + 1 : 0;
}

static void fluxes(const struct plane *s, int64_t j)
{
    const double *u = row_of(s, U_NOW, j), *v = row_of(s, V_NOW, j);
    const double *p = row_of(s, P_NOW, j), *p_south = row_of(s, P_NOW, j - 1);
    double *uf = row_of(s, U_FLUX, j), *vf = row_of(s, V_FLUX, j);

    for (int64_t i = 0; i < s->columns; i++) {
        uf[i] = 0.5 * (p[i] + p[west(s, i)]) * u[i];
        vf[i] = 0.5 * (p[i] + p_south[i]) * v[i];
    }
}

static void vorticity_and_bernoulli(const struct plane *s, int64_t j)
{
    const double *u = row_of(s, U_NOW, j), *u_south = row_of(s, U_NOW, j - 1);
    const double *v = row_of(s, V_NOW, j), *v_north = row_of(s, V_NOW, j + 1);
    const double *p = row_of(s, P_NOW, j), *p_south = row_of(s, P_NOW, j - 1);
    double *q = row_of(s, VORTICITY, j), *h = row_of(s, BERNOULLI, j);

    for (int64_t i = 0; i < s->columns; i++) {
        int64_t w = west(s, i), e = east(s, i);
        double curl = (v[i] - v[w] - u[i] + u_south[i]) / SPACING;
        q[i] = 4 * curl / (p[i] + p[w] + p_south[i] + p_south[w]);
        h[i] = p[i] + 0.25 * (u[i] * u[i] + u[e] * u[e] + v[i] * v[i] + v_north[i] * v_north[i]);
    }
}

static void advance(const struct plane *s, int64_t j)
{
    const double *uf = row_of(s, U_FLUX, j), *uf_south = row_of(s, U_FLUX, j - 1);
    const double *vf = row_of(s, V_FLUX, j), *vf_north = row_of(s, V_FLUX, j + 1);
    const double *q = row_of(s, VORTICITY, j), *q_north = row_of(s, VORTICITY, j + 1);
    const double *h = row_of(s, BERNOULLI, j), *h_south = row_of(s, BERNOULLI, j - 1);
    const double *u_old = row_of(s, U_OLD, j), *v_old = row_of(s, V_OLD, j), *p_old = row_of(s, P_OLD, j);
    double *u_new = row_of(s, U_NEW, j), *v_new = row_of(s, V_NEW, j), *p_new = row_of(s, P_NEW, j);
    double turn = s->span / 8, slope = s->span / SPACING;

    for (int64_t i = 0; i < s->columns; i++) {
        int64_t w = west(s, i), e = east(s, i);
        double v_around = vf[i] + vf[w] + vf_north[i] + vf_north[w];
        double u_around = uf[i] + uf[e] + uf_south[i] + uf_south[e];
        u_new[i] = u_old[i] + turn * (q[i] + q_north[i]) * v_around - slope * (h[i] - h[w]);
        v_new[i] = v_old[i] - turn * (q[i] + q[e]) * u_around - slope * (h[i] - h_south[i]);
        p_new[i] = p_old[i] - slope * (uf[e] - uf[i] + vf_north[i] - vf[i]);
    }
}

/* The present, smoothed over past and future, becomes the past. */
static void filter(const struct plane *s, int64_t j)
{
    double mass = 0;

    for (int k = 0; k < 3; k++) {
        const double *now = row_of(s, U_NOW + k, j), *new = row_of(s, U_NEW + k, j);
        double *old = row_of(s, U_OLD + k, j);
        for (int64_t i = 0; i < s->columns; i++)
            old[i] = now[i] + FILTER * (new[i] - 2 * now[i] + old[i]);
    }
    const double *p = row_of(s, P_NEW, j);
    for (int64_t i = 0; i < s->columns; i++)
        mass += p[i];
    s->row[j].mass = mass;
}

/* Mass, energy and potential enstrophy of a row of the present state. */
static void measure(const struct plane *s, int64_t j)
{
    const double *u = row_of(s, U_NOW, j), *v = row_of(s, V_NOW, j), *u_south = row_of(s, U_NOW, j - 1);
    const double *p = row_of(s, P_NOW, j), *p_south = row_of(s, P_NOW, j - 1);
    struct totals t = { 0 };

    for (int64_t i = 0; i < s->columns; i++) {
        int64_t w = west(s, i);
        double corner = 0.25 * (p[i] + p[w] + p_south[i] + p_south[w]);
        double curl = (v[i] - v[w] - u[i] + u_south[i]) / SPACING;
        t.mass += p[i];
        t.energy += 0.25 * ((p[i] + p[w]) * u[i] * u[i] + (p[i] + p_south[i]) * v[i] * v[i])
                    + 0.5 * (p[i] - DEPTH) * (p[i] - DEPTH); /* less what a flat sea holds, to see the rest */
        t.enstrophy += 0.5 * curl * curl / corner;
    }
    s->row[j] = t;
}

static struct totals sum_rows(const struct plane *s)
{
    struct totals t = { 0 };

    for (int64_t j = 0; j < s->rows; j++) {
        t.mass += s->row[j].mass;
        t.energy += s->row[j].energy;
        t.enstrophy += s->row[j].enstrophy;
    }
    return t;
}

/* The sequential part of a step. */
static void turn_over(struct plane *s)
{
    double mass = 0;

    for (int64_t j = 0; j < s->rows; j++)
        mass += s->row[j].mass;
    double drift = fabs(mass / s->begin.mass - 1);
    if (!(drift <= s->mass_drift))
        s->mass_drift = isnan(drift) ? INFINITY : drift;
    for (int k = 0; k < 3; k++) {
        double *now = s->field[U_NOW + k];
        s->field[U_NOW + k] = s->field[U_NEW + k];
        s->field[U_NEW + k] = now;
    }
    s->span = 2 * TIME_STEP;
}

/* Eddies of WAVELENGTH cells or up to twice that, whose pattern is not one that stands still. */
static void make_waves(struct plane *s)
{
    double across = 2 * PI * (double)(s->columns / WAVELENGTH), along = 2 * PI * (double)(s->rows / WAVELENGTH);

    s->wave_x = wl_alloc((size_t)(s->columns + 1) * sizeof(double));
    s->wave_y = wl_alloc((size_t)(s->rows + 1) * sizeof(double));
    for (int64_t i = 0; i <= s->columns; i++) {
        double x = across * (double)i / (double)s->columns;
        s->wave_x[i] = sin(x) + 0.5 * cos(2 * x);
    }
    for (int64_t j = 0; j <= s->rows; j++)
        s->wave_y[j] = sin(along * (double)j / (double)s->rows);
}

static void begin(const struct plane *s, int64_t j)
{
    const double *x = s->wave_x, *y = s->wave_y; /* the stream function at corner (i, j) is AMPLITUDE x[i] y[j] */

    for (int64_t i = 0; i < s->columns; i++) {
        row_of(s, U_NOW, j)[i] = AMPLITUDE / SPACING * x[i] * (y[j] - y[j + 1]);
        row_of(s, V_NOW, j)[i] = AMPLITUDE / SPACING * (x[i + 1] - x[i]) * y[j];
        row_of(s, P_NOW, j)[i] = DEPTH * (1 + 0.02 * x[i] * y[j]);
    }
    for (int k = 0; k < 3; k++)
        memcpy(row_of(s, U_OLD + k, j), row_of(s, U_NOW + k, j), (size_t)s->columns * sizeof(double));
}

/* One parallel loop over rows; no thread leaves before all are done. */
static void doall(struct plane *s, int id, void (*body)(const struct plane *s, int64_t j))
{
    int64_t first, end;

    wl_share(s->rows, s->threads, id, &first, &end);
    for (int64_t j = first; j < end; j++)
        body(s, j);
    pthread_barrier_wait(&s->barrier);
}

static void simulate(int id, void *arg)
{
    struct plane *s = arg;

    doall(s, id, begin);
    doall(s, id, measure);
    if (id == 0)
        s->begin = sum_rows(s);
    pthread_barrier_wait(&s->barrier);
    for (int64_t step = 0; step < s->steps; step++) {
        doall(s, id, fluxes);
        doall(s, id, vorticity_and_bernoulli);
        doall(s, id, advance);
        doall(s, id, filter);
        if (id == 0)
            turn_over(s);
        pthread_barrier_wait(&s->barrier);
    }
    doall(s, id, measure);
    if (id == 0)
        s->end = sum_rows(s);
}

static uint64_t checksum(const struct plane *s)
{
    struct wl_random mix = { 0 };

    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < s->rows * s->columns; i++) {
            uint64_t bits;
            memcpy(&bits, &s->field[U_NOW + k][i], sizeof bits);
            mix.state = wl_random_next(&mix) ^ bits;
        }
    return mix.state;
}

int main(int argc, char **argv)
{
    struct plane s = { .rows = 256, .columns = 256, .steps = 16, .span = TIME_STEP };
    const struct wl_option options[] = {
        { 'n', &s.rows, WAVELENGTH, 1 << 14,
          "rows: 64 with -m 64 -s 2 for 10^6 references, 2k with -m 2k -s 32 for 10^10" },
        { 'm', &s.columns, WAVELENGTH, 1 << 14, "columns" },
        { 's', &s.steps, 1, 1 << 20, "time steps" },
        { 0 },
    };

    s.threads = wl_parse(argc, argv, "shallow-water equations, four parallel loops a time step", options);
    for (int k = 0; k < FIELDS; k++)
        s.field[k] = wl_alloc((size_t)(s.rows * s.columns) * sizeof(double));
    s.row = wl_alloc((size_t)s.rows * sizeof *s.row);
    make_waves(&s);
    pthread_barrier_init(&s.barrier, NULL, (unsigned)s.threads);
    wl_parallel(s.threads, simulate, &s);
    pthread_barrier_destroy(&s.barrier);
    uint64_t sum = checksum(&s);
    for (int k = 0; k < FIELDS; k++)
        free(s.field[k]);
    free(s.row);
    free(s.wave_x);
    free(s.wave_y);
    double energy = s.end.energy / s.begin.energy - 1, enstrophy = s.end.enstrophy / s.begin.enstrophy - 1;
    double energy_allowed = fmin(0.2, 3e-4 + 1.2e-5 * (double)s.steps); /* measured, with a margin */
    double enstrophy_allowed = 4e-6 + 5e-7 * (double)s.steps;
    return wl_verdict(s.mass_drift < 1e-11 && fabs(energy) < energy_allowed && fabs(enstrophy) < enstrophy_allowed,
                      "%lld x %lld cells, %lld steps, changed: mass %.1e, energy %.1e, enstrophy %.1e, "
                      "checksum %016" PRIx64,
                      (long long)s.rows, (long long)s.columns, (long long)s.steps, s.mass_drift, energy, enstrophy,
                      sum);
}
