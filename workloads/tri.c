/* SPDX-License-Identifier: MIT */
/* TRI: solution of a sparse lower triangular system for several right-hand sides, parallel by levels.
 *
 * Models level scheduling (Anderson and Saad, "Solving sparse triangular linear systems on parallel computers", Int. J.
 * of High Speed Computing 1(1), 1989): a row's level is one more than the greatest level of the rows that it needs, so
 * the rows of one level are independent of each other; a barrier separates levels. The matrix has the pattern of an
 * incomplete factor without fill of the 27-point operator on a cube: a row needs up to 13 neighbours. Levels are skew
 * planes through the cube, small at its corners and large in its middle. Each repetition has three phases with
 * different miss rates: making right-hand sides by multiplying (in order, streaming), solving (short rows from all over
 * the matrix, in levels whose size grows and shrinks), checking. With the defaults one thread misses in about 6 % of
 * its data references in a direct-mapped cache of 128 KB with 32-byte lines.
 * Assumes: rows are compressed, strictly lower part and diagonal apart; the matrix is not reordered by levels; one
 * thread alone builds and analyses it, once for all repetitions.
 * Leaves out: flags in place of barriers; merging of small levels.
 *
 * Checked by a known solution, another one in each repetition. */
#include "common.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { SEED = 6, NEIGHBOURS = 13 };

/* One thread's, in a separate line. */
struct error {
    _Alignas(64) double greatest;
};

struct tri {
    int threads;
    int64_t edge, sides, repetitions; /* of the cube; right-hand sides solved together */
    int64_t n;
    int64_t *start; /* row i's entries are start[i] … start[i + 1] - 1 */
    int32_t *column;
    double *value, *diagonal;
    double *known; /* the known solutions: n rows of `sides` elements */
    double *x;     /* the right-hand sides, which the solution replaces; likewise */
    int64_t levels;
    int32_t *order;       /* rows by level, ascending within a level */
    int64_t *level_start; /* level l is order[level_start[l]] … order[level_start[l + 1] - 1] */
    struct error *error;
    pthread_barrier_t barrier;
};

/* Finds the neighbours of a row that come before it, ascending; returns their number. */
static int find_neighbours(int64_t edge, int64_t row, int32_t *ret_column)
{
    int64_t x = row % edge, y = row / edge % edge, z = row / edge / edge;
    int count = 0;

    for (int i = 0; i < NEIGHBOURS; i++) { /* the first 13 of the 27 cells around (x, y, z): those before its own */
        int64_t nx = x + i % 3 - 1, ny = y + i / 3 % 3 - 1, nz = z + i / 9 - 1;
        if (nx >= 0 && nx < edge && ny >= 0 && ny < edge && nz >= 0)
            ret_column[count++] = (int32_t)((nz * edge + ny) * edge + nx);
    }
    return count;
}

static void build(struct tri *t)
{
    struct wl_random random = { SEED };
    int64_t used = 0;

    for (int64_t i = 0; i < t->n; i++) {
        t->start[i] = used;
        int count = find_neighbours(t->edge, i, &t->column[used]);
        for (int c = 0; c < count; c++)
            t->value[used++] = (wl_random_unit(&random) - 0.5) / NEIGHBOURS;
        t->diagonal[i] = 1 + wl_random_unit(&random);
    }
    t->start[t->n] = used;
}

/* Sets levels, order and level_start: the level of each row, then a counting sort. */
static void analyse(struct tri *t)
{
    int32_t *level = wl_alloc((size_t)t->n * sizeof *level);

    for (int64_t i = 0; i < t->n; i++) {
        for (int64_t e = t->start[i]; e < t->start[i + 1]; e++)
            if (level[t->column[e]] >= level[i])
                level[i] = level[t->column[e]] + 1;
        if (level[i] >= t->levels)
            t->levels = level[i] + 1;
    }
    t->level_start = wl_alloc((size_t)(t->levels + 2) * sizeof *t->level_start);
    /* next[l] is where level l's next row goes and, in the end, where level l + 1 starts. */
    int64_t *next = t->level_start + 1;
    for (int64_t i = 0; i < t->n; i++)
        next[level[i] + 1]++;
    for (int64_t l = 1; l <= t->levels; l++)
        next[l] += next[l - 1];
    for (int64_t i = 0; i < t->n; i++)
        t->order[next[level[i]]++] = (int32_t)i;
    free(level);
}

/* The solution asked for: a pure function of row, side and repetition. */
static double known_x(int64_t row, int64_t side, int64_t repetition)
{
    return (double)(1 + (row + 3 * side + 5 * repetition) % 11);
}

static void make_known(struct tri *t, int64_t first, int64_t end, int64_t repetition)
{
    for (int64_t row = first; row < end; row++)
        for (int64_t s = 0; s < t->sides; s++)
            t->known[row * t->sides + s] = known_x(row, s, repetition);
}

/* Adds to row `row` of x, for all sides, sign times the strictly lower part of the row times `needed`. */
static void add_row(struct tri *t, int64_t row, double sign, const double *needed)
{
    double *x = t->x + row * t->sides;

    for (int64_t e = t->start[row]; e < t->start[row + 1]; e++) {
        const double *other = needed + t->column[e] * t->sides;
        double factor = sign * t->value[e];
        for (int64_t s = 0; s < t->sides; s++)
            x[s] += factor * other[s];
    }
}

static void multiply_row(struct tri *t, int64_t row)
{
    for (int64_t i = row * t->sides; i < (row + 1) * t->sides; i++)
        t->x[i] = t->diagonal[row] * t->known[i];
    add_row(t, row, 1, t->known);
}

static void solve_row(struct tri *t, int64_t row)
{
    add_row(t, row, -1, t->x);
    for (int64_t i = row * t->sides; i < (row + 1) * t->sides; i++)
        t->x[i] /= t->diagonal[row];
}

static void solve(struct tri *t, int id)
{
    for (int64_t level = 0; level < t->levels; level++) {
        int64_t base = t->level_start[level], first, end;
        wl_share(t->level_start[level + 1] - base, t->threads, id, &first, &end);
        for (int64_t i = base + first; i < base + end; i++)
            solve_row(t, t->order[i]);
        pthread_barrier_wait(&t->barrier);
    }
}

/* A NaN anywhere makes the error a NaN. */
static void check(struct tri *t, int64_t first, int64_t end, struct error *error)
{
    for (int64_t i = first * t->sides; i < end * t->sides; i++) {
        double e = fabs(t->x[i] - t->known[i]);
        if (!(e <= error->greatest))
            error->greatest = e;
    }
}

static void repeat(int id, void *arg)
{
    struct tri *t = arg;
    int64_t first, end;

    wl_share(t->n, t->threads, id, &first, &end);
    for (int64_t r = 0; r < t->repetitions; r++) {
        make_known(t, first, end, r);
        pthread_barrier_wait(&t->barrier);
        for (int64_t row = first; row < end; row++)
            multiply_row(t, row);
        pthread_barrier_wait(&t->barrier);
        solve(t, id);
        check(t, first, end, &t->error[id]);
    }
}

static void set_up(struct tri *t)
{
    t->n = t->edge * t->edge * t->edge;
    size_t n = (size_t)t->n, entries = n * NEIGHBOURS;
    t->start = wl_alloc((n + 1) * sizeof *t->start);
    t->column = wl_alloc(entries * sizeof *t->column);
    t->value = wl_alloc(entries * sizeof *t->value);
    t->diagonal = wl_alloc(n * sizeof *t->diagonal);
    t->known = wl_alloc(n * (size_t)t->sides * sizeof *t->known);
    t->x = wl_alloc(n * (size_t)t->sides * sizeof *t->x);
    t->order = wl_alloc(n * sizeof *t->order);
    t->error = wl_alloc((size_t)t->threads * sizeof *t->error);
    build(t);
    analyse(t);
    pthread_barrier_init(&t->barrier, NULL, (unsigned)t->threads);
}

static void release(struct tri *t)
{
    pthread_barrier_destroy(&t->barrier);
    free(t->level_start);
    free(t->error);
    free(t->order);
    free(t->x);
    free(t->known);
    free(t->diagonal);
    free(t->value);
    free(t->column);
    free(t->start);
}

int main(int argc, char **argv)
{
    const double tolerance = 1e-11; /* rounding errs by some 1e-15; a neglected entry by 1e-3 */
    struct tri t = { .edge = 24, .sides = 2, .repetitions = 10 };
    const struct wl_option options[] = {
        { 'g', &t.edge, 1, 512, "edge of the cube: 12 and -r 1 for 10^6 references, 128 and -r 17 for 10^10" },
        { 'k', &t.sides, 1, 64, "right-hand sides" },
        { 'r', &t.repetitions, 1, 1 << 20, "repetitions" },
        { 0 },
    };

    t.threads = wl_parse(argc, argv, "sparse triangular solution by levels", options);
    set_up(&t);
    wl_parallel(t.threads, repeat, &t);

    double error = 0;
    for (int i = 0; i < t.threads; i++)
        if (!(t.error[i].greatest <= error))
            error = t.error[i].greatest;
    int64_t entries = t.start[t.n];
    release(&t);
    return wl_verdict(error <= tolerance,
                      "%" PRId64 " rows, %" PRId64 " entries, %" PRId64 " levels, %" PRId64 " sides, %" PRId64
                      " times, error %.2g",
                      t.n, entries, t.levels, t.sides, t.repetitions, error);
}
