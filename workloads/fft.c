/* SPDX-License-Identifier: MIT */
/* FFT: one-dimensional complex Fourier transform of n = 2^m points by the six-step method, forward and back.
 *
 * Models Bailey's algorithm ("FFTs in external or hierarchical memory", Journal of Supercomputing 4, 1990): the points
 * are a square matrix; transpose, transform the rows, multiply by roots of unity, transpose, transform the rows,
 * transpose. Rows belong to threads in equal shares; a thread works on its own rows alone except in the transposes, in
 * which it reads from all the others, beginning with the thread after it so that not all read from the same one.
 * Assumes: m is even; the rows' transforms are in place, radix 2, decimation in time (Cooley and Tukey, 1965).
 * Leaves out: padding between rows, so rows a power of two apart meet in the cache; higher radices.
 *
 * Checked twice: some of the spectrum's points against the sum that defines them (which
 * shares no table with the transform), and the points after forward and inverse against the input. */
#include "common.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { SEED = 4, SAMPLES = 4, TILE = 8 };

static const double TURN = 6.283185307179586476925;

struct point {
    double re, im;
};

/* One thread's, in a separate line. */
struct error {
    _Alignas(64) double round_trip;
};

struct fft {
    int threads;
    int64_t log_n, repetitions;
    int64_t side, n;              /* n = side * side */
    struct point *x, *y;          /* the points, by rows; the input and the inverse's result are in x */
    struct point *root;           /* root[k] = exp(-2 pi i k / side), k < side */
    struct point *fine_root;      /* fine_root[k] = exp(-2 pi i k / n), k < side */
    struct point *twiddle;        /* row j, column k: exp(-2 pi i j k / n) */
    struct point sample[SAMPLES]; /* of the spectrum */
    struct error *error;
    pthread_barrier_t barrier;
};

static struct point times(struct point a, struct point b)
{
    return (struct point){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

/* exp(-2 pi i numerator / n) */
static struct point unit(int64_t numerator, int64_t n)
{
    double angle = TURN * (double)numerator / (double)n;

    return (struct point){ cos(angle), -sin(angle) };
}

/* The input's points are pure functions of their places, so that the check need not keep a copy. */
static struct wl_random row_stream(int64_t row)
{
    return (struct wl_random){ ((uint64_t)SEED << 40) + (uint64_t)row };
}

static struct point next_input(struct wl_random *random)
{
    double re = wl_random_unit(random) - 0.5;

    return (struct point){ re, wl_random_unit(random) - 0.5 };
}

static int64_t sample_place(const struct fft *f, int sample)
{
    const int64_t place[SAMPLES] = { 0, 1, f->n / 3, f->n - 1 };

    return place[sample];
}

static void fill_rows(struct fft *f, int64_t first, int64_t end)
{
    for (int64_t row = first; row < end; row++) {
        struct wl_random random = row_stream(row);
        for (int64_t k = 0; k < f->side; k++) {
            f->x[row * f->side + k] = next_input(&random);
            f->twiddle[row * f->side + k] = times(f->root[row * k / f->side], f->fine_root[row * k % f->side]);
        }
    }
}

/* Writes rows first … end-1 of `to` from the same columns of `from`, in square tiles, one thread's rows at a time. */
static void transpose(const struct fft *f, int id, const struct point *from, struct point *to)
{
    int64_t first, end, other_first, other_end;

    wl_share(f->side, f->threads, id, &first, &end);
    for (int step = 1; step <= f->threads; step++) {
        wl_share(f->side, f->threads, (id + step) % f->threads, &other_first, &other_end);
        for (int64_t i0 = first; i0 < end; i0 += TILE)
            for (int64_t j0 = other_first; j0 < other_end; j0 += TILE)
                for (int64_t i = i0; i < i0 + TILE && i < end; i++)
                    for (int64_t j = j0; j < j0 + TILE && j < other_end; j++)
                        to[i * f->side + j] = from[j * f->side + i];
    }
}

static void reverse_bits(struct point *row, int64_t side)
{
    for (int64_t i = 0, reversed = 0; i < side; i++) {
        if (i < reversed) {
            struct point swap = row[i];
            row[i] = row[reversed];
            row[reversed] = swap;
        }
        int64_t bit = side >> 1;
        for (; reversed & bit; bit >>= 1)
            reversed ^= bit;
        reversed |= bit;
    }
}

/* Transforms one row in place; sign is 1 forward and -1 for the inverse, which is not scaled here. */
static void transform_row(const struct fft *f, struct point *row, double sign)
{
    reverse_bits(row, f->side);
    for (int64_t half = 1; half < f->side; half *= 2) {
        int64_t root_step = f->side / (2 * half);
        for (int64_t base = 0; base < f->side; base += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                struct point *low = &row[base + k], *high = low + half, root = f->root[k * root_step];
                root.im *= sign;
                struct point a = *low, b = times(*high, root);
                *low = (struct point){ a.re + b.re, a.im + b.im };
                *high = (struct point){ a.re - b.re, a.im - b.im };
            }
    }
}

static void multiply_by_twiddles(const struct fft *f, struct point *row, const struct point *twiddle, double sign)
{
    for (int64_t k = 0; k < f->side; k++)
        row[k] = times(row[k], (struct point){ twiddle[k].re, sign * twiddle[k].im });
}

/* The six steps, from `from` to `to`; `from` is overwritten. Ends with a barrier. */
static void transform(struct fft *f, int id, struct point *from, struct point *to, double sign)
{
    int64_t first, end, side = f->side;

    wl_share(side, f->threads, id, &first, &end);
    transpose(f, id, from, to);
    for (int64_t row = first; row < end; row++) {
        transform_row(f, to + row * side, sign);
        multiply_by_twiddles(f, to + row * side, f->twiddle + row * side, sign);
    }
    pthread_barrier_wait(&f->barrier);
    transpose(f, id, to, from);
    for (int64_t row = first; row < end; row++)
        transform_row(f, from + row * side, sign);
    pthread_barrier_wait(&f->barrier);
    transpose(f, id, from, to);
    if (sign < 0)
        for (int64_t i = first * side; i < end * side; i++)
            to[i] = (struct point){ to[i].re / (double)f->n, to[i].im / (double)f->n };
    pthread_barrier_wait(&f->barrier);
}

/* The greater of the two parts' differences; a NaN in either makes it a NaN. */
static double distance(struct point a, struct point b)
{
    double re = fabs(a.re - b.re), im = fabs(a.im - b.im);

    return re <= im || isnan(im) ? im : re;
}

/* The greatest distance of rows first … end-1 of x from the input. A NaN anywhere makes it a NaN. */
static double round_trip_error(const struct fft *f, int64_t first, int64_t end)
{
    double error = 0;

    for (int64_t row = first; row < end; row++) {
        struct wl_random random = row_stream(row);
        for (int64_t k = 0; k < f->side; k++) {
            double e = distance(f->x[row * f->side + k], next_input(&random));
            if (!(e <= error))
                error = e;
        }
    }
    return error;
}

static void forward_and_back(int id, void *arg)
{
    struct fft *f = arg;
    int64_t first, end;

    wl_share(f->side, f->threads, id, &first, &end);
    fill_rows(f, first, end);
    pthread_barrier_wait(&f->barrier);
    for (int64_t i = 0; i < f->repetitions; i++) {
        transform(f, id, f->x, f->y, 1);
        if (id == 0) /* the inverse writes to y only after its first barrier */
            for (int s = 0; s < SAMPLES; s++)
                f->sample[s] = f->y[sample_place(f, s)];
        transform(f, id, f->y, f->x, -1);
    }
    f->error[id].round_trip = round_trip_error(f, first, end);
}

/* The spectrum's point k by its definition: each row is a polynomial in z = exp(-2 pi i k / n). */
static struct point direct_sum(const struct fft *f, int64_t k)
{
    struct point sum = { 0, 0 }, z = unit(k, f->n);

    for (int64_t row = 0; row < f->side; row++) {
        struct wl_random random = row_stream(row);
        struct point power = unit(row * k % f->side, f->side); /* z^(row * side) */
        for (int64_t j = 0; j < f->side; j++) {
            struct point term = times(next_input(&random), power);
            sum = (struct point){ sum.re + term.re, sum.im + term.im };
            power = times(power, z);
        }
    }
    return sum;
}

/* The greatest distance of a sample from its direct sum, over the root of n: what a typical point measures. */
static double sample_error(const struct fft *f)
{
    double error = 0;

    for (int s = 0; s < SAMPLES; s++) {
        double e = distance(f->sample[s], direct_sum(f, sample_place(f, s))) / sqrt((double)f->n);
        if (!(e <= error))
            error = e;
    }
    return error;
}

static void set_up(struct fft *f)
{
    if (f->log_n % 2)
        wl_usage_error("-m: %" PRId64 " is odd", f->log_n);
    f->side = INT64_C(1) << f->log_n / 2;
    f->n = f->side * f->side;
    f->x = wl_alloc((size_t)f->n * sizeof *f->x);
    f->y = wl_alloc((size_t)f->n * sizeof *f->y);
    f->twiddle = wl_alloc((size_t)f->n * sizeof *f->twiddle);
    f->root = wl_alloc((size_t)f->side * sizeof *f->root);
    f->fine_root = wl_alloc((size_t)f->side * sizeof *f->fine_root);
    f->error = wl_alloc((size_t)f->threads * sizeof *f->error);
    for (int64_t k = 0; k < f->side; k++) {
        f->root[k] = unit(k, f->side);
        f->fine_root[k] = unit(k, f->n);
    }
    pthread_barrier_init(&f->barrier, NULL, (unsigned)f->threads);
}

static void release(struct fft *f)
{
    pthread_barrier_destroy(&f->barrier);
    free(f->error);
    free(f->fine_root);
    free(f->root);
    free(f->twiddle);
    free(f->y);
    free(f->x);
}

int main(int argc, char **argv)
{
    const double tolerance = 1e-11; /* a wrong step errs by about 1; rounding by some 1e-13 at m = 24 */
    struct fft f = { .log_n = 16, .repetitions = 1 };
    const struct wl_option options[] = {
        { 'm', &f.log_n, 2, 28, "2^m points, m even: 12 for 10^6 references, 24 and -r 3 for 10^10" },
        { 'r', &f.repetitions, 1, 1 << 20, "how often to transform forward and back" },
        { 0 },
    };

    f.threads = wl_parse(argc, argv, "six-step complex Fourier transform, forward and back", options);
    set_up(&f);
    wl_parallel(f.threads, forward_and_back, &f);

    double spectrum = sample_error(&f), round_trip = 0;
    for (int i = 0; i < f.threads; i++)
        if (!(f.error[i].round_trip <= round_trip))
            round_trip = f.error[i].round_trip;
    release(&f);
    return wl_verdict(spectrum <= tolerance && round_trip <= tolerance,
                      "%" PRId64 " points, %" PRId64 " times, error %.2g in the spectrum, %.2g after the inverse", f.n,
                      f.repetitions, spectrum, round_trip);
}
