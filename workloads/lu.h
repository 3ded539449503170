/* SPDX-License-Identifier: MIT */
/* LU: blocked dense factorisation A = L U without pivoting, for lu-con.c and lu-non.c, which differ in where a block's
 * elements lie and in nothing else.
 *
 * Models the right-looking blocked algorithm (Golub and Van Loan, "Matrix Computations") with blocks dealt to a grid of
 * threads in both directions, the 2-D scatter (Dongarra, van de Geijn and Walker, "Scalability issues affecting the
 * design of a dense linear algebra library", JPDC 22(3), 1994). In each step the owner of the diagonal block factors
 * it; the owners of the blocks below and to the right of it divide by it; the owners of the rest subtract products.
 * Two barriers a step are enough: a block is written by its owner alone, and a finished block is never written again.
 * Assumes: the matrix needs no pivots: its diagonal dominates. L (unit diagonal, not stored) and U replace A.
 * Leaves out: pivoting; copying of blocks to where they are used; look-ahead.
 *
 * The grid has as many rows as the greatest divisor of the number of threads up to its root: 7 threads are 1 x 7.
 * Checked by solving A x = b for a b made from a known x; that uses every element of L and U. */
#ifndef PEET_WORKLOAD_LU_H
#define PEET_WORKLOAD_LU_H

#include "common.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { LU_SEED = 5 };

struct lu {
    int threads, grid_rows, grid_columns;
    int64_t n, edge; /* rows and columns of the matrix and of a block; the last blocks may be smaller */
    int64_t across;  /* blocks in a row of blocks */
    double *data;
    double **block; /* block[i * across + j]: its first element */
    int64_t stride; /* elements from one row of a block to the next */
    double *right;  /* b, later x */
    pthread_barrier_t barrier;
};

/* Allocates data and sets block[] and stride: the one thing in which the two programs differ. */
typedef void lu_place_blocks(struct lu *lu);

static inline double *lu_block(const struct lu *lu, int64_t i, int64_t j)
{
    return lu->block[i * lu->across + j];
}

static inline int lu_owner(const struct lu *lu, int64_t i, int64_t j)
{
    return (int)(i % lu->grid_rows * lu->grid_columns + j % lu->grid_columns);
}

/* Rows of the blocks in row i of blocks, which are also the columns of those in column i. */
static inline int64_t lu_extent(const struct lu *lu, int64_t i)
{
    return i < lu->across - 1 ? lu->edge : lu->n - i * lu->edge;
}

static inline double lu_known_x(int64_t i)
{
    return (double)(i % 7 + 1);
}

/* Element (i, j) of A: random in [0, 1), plus n on the diagonal; the same for every number of threads. */
static inline double lu_element(const struct lu *lu, int64_t i, int64_t j)
{
    struct wl_random random = { ((uint64_t)LU_SEED << 40) + (uint64_t)(i * lu->n + j) };

    return wl_random_unit(&random) + (i == j ? (double)lu->n : 0);
}

static inline void lu_fill_block(const struct lu *lu, int64_t i, int64_t j)
{
    double *a = lu_block(lu, i, j);

    for (int64_t r = 0; r < lu_extent(lu, i); r++)
        for (int64_t c = 0; c < lu_extent(lu, j); c++)
            a[r * lu->stride + c] = lu_element(lu, i * lu->edge + r, j * lu->edge + c);
}

static inline void lu_fill(const struct lu *lu, int id)
{
    for (int64_t i = 0; i < lu->across; i++)
        for (int64_t j = 0; j < lu->across; j++)
            if (lu_owner(lu, i, j) == id)
                lu_fill_block(lu, i, j);
}

/* row -= factor * other */
static inline void lu_subtract(double *row, double factor, const double *other, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        row[i] -= factor * other[i];
}

static inline void lu_factor_diagonal(const struct lu *lu, int64_t k)
{
    double *a = lu_block(lu, k, k);
    int64_t n = lu_extent(lu, k), s = lu->stride;

    for (int64_t p = 0; p < n; p++)
        for (int64_t r = p + 1; r < n; r++) {
            a[r * s + p] /= a[p * s + p];
            lu_subtract(&a[r * s + p + 1], a[r * s + p], &a[p * s + p + 1], n - p - 1);
        }
}

/* Block (i, k), below the diagonal: multiplies by the inverse of U of block (k, k), from the right. */
static inline void lu_divide_by_upper(const struct lu *lu, int64_t i, int64_t k)
{
    double *a = lu_block(lu, i, k), *u = lu_block(lu, k, k);
    int64_t n = lu_extent(lu, k), s = lu->stride;

    for (int64_t r = 0; r < lu_extent(lu, i); r++)
        for (int64_t p = 0; p < n; p++) {
            a[r * s + p] /= u[p * s + p];
            lu_subtract(&a[r * s + p + 1], a[r * s + p], &u[p * s + p + 1], n - p - 1);
        }
}

/* Block (k, j), right of the diagonal: multiplies by the inverse of L of block (k, k), from the left. */
static inline void lu_divide_by_lower(const struct lu *lu, int64_t k, int64_t j)
{
    double *a = lu_block(lu, k, j), *l = lu_block(lu, k, k);
    int64_t n = lu_extent(lu, k), s = lu->stride;

    for (int64_t p = 0; p < n; p++)
        for (int64_t r = p + 1; r < n; r++)
            lu_subtract(&a[r * s], l[r * s + p], &a[p * s], lu_extent(lu, j));
}

/* Block (i, j) -= block (i, k) * block (k, j) */
static inline void lu_subtract_product(const struct lu *lu, int64_t i, int64_t j, int64_t k)
{
    double *a = lu_block(lu, i, j), *l = lu_block(lu, i, k), *u = lu_block(lu, k, j);
    int64_t columns = lu_extent(lu, j), n = lu_extent(lu, k), s = lu->stride;

    for (int64_t r = 0; r < lu_extent(lu, i); r++)
        for (int64_t p = 0; p < n; p++)
            lu_subtract(&a[r * s], l[r * s + p], &u[p * s], columns);
}

/* One thread's part of step k of the factorisation. */
static inline void lu_step(struct lu *lu, int id, int64_t k)
{
    if (lu_owner(lu, k, k) == id)
        lu_factor_diagonal(lu, k);
    pthread_barrier_wait(&lu->barrier);
    for (int64_t i = k + 1; i < lu->across; i++) {
        if (lu_owner(lu, i, k) == id)
            lu_divide_by_upper(lu, i, k);
        if (lu_owner(lu, k, i) == id)
            lu_divide_by_lower(lu, k, i);
    }
    pthread_barrier_wait(&lu->barrier);
    for (int64_t i = k + 1; i < lu->across; i++)
        for (int64_t j = k + 1; j < lu->across; j++)
            if (lu_owner(lu, i, j) == id)
                lu_subtract_product(lu, i, j, k);
}

/* Element (i, j) wherever it lies; for the check, where speed does not matter. */
static inline double lu_at(const struct lu *lu, int64_t i, int64_t j)
{
    return lu_block(lu, i / lu->edge, j / lu->edge)[i % lu->edge * lu->stride + j % lu->edge];
}

/* b = A x for this thread's share of the rows */
static inline void lu_make_right(struct lu *lu, int id)
{
    int64_t first, end;

    wl_share(lu->n, lu->threads, id, &first, &end);
    for (int64_t i = first; i < end; i++)
        for (int64_t j = 0; j < lu->n; j++)
            lu->right[i] += lu_at(lu, i, j) * lu_known_x(j);
}

static inline void lu_factor(int id, void *arg)
{
    struct lu *lu = arg;

    lu_fill(lu, id);
    pthread_barrier_wait(&lu->barrier);
    lu_make_right(lu, id);
    pthread_barrier_wait(&lu->barrier);
    for (int64_t k = 0; k < lu->across; k++)
        lu_step(lu, id, k);
}

/* Solves L U x = b in place of b and returns the greatest error of x; a NaN anywhere makes it a NaN. */
static inline double lu_solve(struct lu *lu)
{
    double error = 0, *x = lu->right;

    for (int64_t i = 0; i < lu->n; i++)
        for (int64_t j = 0; j < i; j++)
            x[i] -= lu_at(lu, i, j) * x[j];
    for (int64_t i = lu->n - 1; i >= 0; i--) {
        for (int64_t j = i + 1; j < lu->n; j++)
            x[i] -= lu_at(lu, i, j) * x[j];
        x[i] /= lu_at(lu, i, i);
    }
    for (int64_t i = 0; i < lu->n; i++) {
        double e = fabs(x[i] - lu_known_x(i));
        if (!(e <= error))
            error = e;
    }
    return error;
}

static inline int lu_main(int argc, char **argv, const char *summary, lu_place_blocks *place_blocks)
{
    const double tolerance = 1e-11; /* rounding errs by some 1e-13 at n = 512; a missing product by 1e-6 and more */
    struct lu lu = { .n = 512, .edge = 16, .grid_rows = 1 };
    const struct wl_option options[] = {
        { 'n', &lu.n, 1, 1 << 15, "rows and columns, about 1.2 n^3 references: 86 for 10^6, 2k for 10^10" },
        { 'b', &lu.edge, 1, 1 << 15, "rows and columns of a block" },
        { 0 },
    };

    lu.threads = wl_parse(argc, argv, summary, options);
    for (int rows = 1; rows * rows <= lu.threads; rows++)
        if (lu.threads % rows == 0)
            lu.grid_rows = rows;
    lu.grid_columns = lu.threads / lu.grid_rows;
    lu.across = (lu.n + lu.edge - 1) / lu.edge;
    lu.block = wl_alloc((size_t)(lu.across * lu.across) * sizeof *lu.block);
    lu.right = wl_alloc((size_t)lu.n * sizeof *lu.right);
    place_blocks(&lu);
    pthread_barrier_init(&lu.barrier, NULL, (unsigned)lu.threads);
    wl_parallel(lu.threads, lu_factor, &lu);
    pthread_barrier_destroy(&lu.barrier);

    double error = lu_solve(&lu);
    free(lu.data);
    free(lu.right);
    free(lu.block);
    return wl_verdict(error <= tolerance,
                      "%" PRId64 " x %" PRId64 ", blocks of %" PRId64 ", threads %d x %d, error %.2g", lu.n, lu.n,
                      lu.edge, lu.grid_rows, lu.grid_columns, error);
}

#endif
