/* SPDX-License-Identifier: MIT */
/* MATMAT: blocked dense matrix multiplication C = A B, deliberately untuned.
 *
 * Models the blocked program whose blocks are chosen without regard to the cache: rows begin a power of two apart, so
 * in a direct-mapped cache the rows of one block of B evict each other, and A and C evict B (Lam, Rothberg and Wolf,
 * "The cache performance and optimizations of blocked algorithms", ASPLOS 1991, describe the effect). The defaults
 * are chosen so that one thread misses in about 18 % of its data references in a direct-mapped cache of 128 KB with
 * 32-byte lines.
 * Assumes: entries are small integers, so every product and sum is exact in a double and the check needs no tolerance.
 * The three matrices are one allocation, so that their places in the cache relative to each other are always the same.
 * Leaves out: copying of blocks, padding, unrolling, everything that a tuned program does about the above.
 *
 * The rows of A and C are shared among the threads, and each goes through all of B, block by block; no thread reads
 * what another writes, so the only synchronisation is the barrier between filling and multiplying. Checked after
 * Freivalds ("Probabilistic machines can use less running time", IFIP 1977): C v = A (B v) for a random v, in all rows. */
#include "common.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

enum { SEED = 1 };

struct matmat {
    int threads;
    int64_t n, block;
    int64_t stride; /* doubles from one row to the next: the power of two that holds n */
    double *a, *b, *c;
    pthread_barrier_t barrier;
};

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* Row i of A and of B: odd integers from -15 to 15, the same for every number of threads; odd, so that no product is 0
 * and none can be missing unnoticed. */
static void fill_row(struct matmat *m, int64_t i)
{
    struct wl_random random = { (uint64_t)(SEED + i) };

    for (int64_t j = 0; j < m->n; j++) {
        uint64_t bits = wl_random_next(&random);
        m->a[i * m->stride + j] = 2 * (double)(int)(bits & 15) - 15;
        m->b[i * m->stride + j] = 2 * (double)(int)(bits >> 4 & 15) - 15;
    }
}

/* Adds to rows first … end-1 of C what the block of B that begins at (k0, j0) contributes. */
static void multiply_by_block(struct matmat *m, int64_t first, int64_t end, int64_t j0, int64_t k0)
{
    int64_t j1 = least(j0 + m->block, m->n), k1 = least(k0 + m->block, m->n), stride = m->stride;

    for (int64_t i = first; i < end; i++)
        for (int64_t j = j0; j < j1; j++) {
            double sum = m->c[i * stride + j];
            for (int64_t k = k0; k < k1; k++)
                sum += m->a[i * stride + k] * m->b[k * stride + j];
            m->c[i * stride + j] = sum;
        }
}

static void multiply(int id, void *arg)
{
    struct matmat *m = arg;
    int64_t first, end;

    wl_share(m->n, m->threads, id, &first, &end);
    for (int64_t i = first; i < end; i++)
        fill_row(m, i);
    pthread_barrier_wait(&m->barrier);
    for (int64_t j = 0; j < m->n; j += m->block)
        for (int64_t k = 0; k < m->n; k += m->block)
            multiply_by_block(m, first, end, j, k);
}

/* ret = matrix times v */
static void apply(const struct matmat *m, const double *matrix, const double *v, double *ret)
{
    for (int64_t i = 0; i < m->n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < m->n; j++)
            sum += matrix[i * m->stride + j] * v[j];
        ret[i] = sum;
    }
}

/* The number of rows in which C v differs from A (B v). Exact: no value exceeds 15 * 15 * 1024 * n^2 < 2^53. */
static int64_t wrong_rows(const struct matmat *m)
{
    struct wl_random random = { SEED };
    double *v = wl_alloc((size_t)(4 * m->n) * sizeof *v);
    double *bv = v + m->n, *abv = bv + m->n, *cv = abv + m->n;
    int64_t wrong = 0;

    for (int64_t i = 0; i < m->n; i++)
        v[i] = (double)(1 + wl_random_next(&random) % 1024);
    apply(m, m->b, v, bv);
    apply(m, m->a, bv, abv);
    apply(m, m->c, v, cv);
    for (int64_t i = 0; i < m->n; i++)
        wrong += abv[i] != cv[i];
    free(v);
    return wrong;
}

int main(int argc, char **argv)
{
    struct matmat m = { .n = 256, .block = 78 };
    const struct wl_option options[] = {
        { 'n', &m.n, 1, 1 << 14, "rows and columns, about 2.2 n^3 references: 72 for 10^6, 1700 and -b 10 for 10^10" },
        { 'b', &m.block, 1, 1 << 14, "rows and columns of a block of B" },
        { 0 },
    };

    m.threads = wl_parse(argc, argv, "blocked matrix multiplication, deliberately untuned", options);
    for (m.stride = 1; m.stride < m.n; m.stride *= 2)
        ;
    size_t entries = (size_t)(m.n * m.stride);
    m.a = wl_alloc(3 * entries * sizeof *m.a);
    m.b = m.a + entries;
    m.c = m.b + entries;
    pthread_barrier_init(&m.barrier, NULL, (unsigned)m.threads);
    wl_parallel(m.threads, multiply, &m);
    pthread_barrier_destroy(&m.barrier);

    int64_t wrong = wrong_rows(&m);
    free(m.a);
    return wl_verdict(wrong == 0,
                      "%" PRId64 " x %" PRId64 ", blocks of %" PRId64 ", stride %" PRId64 ", %" PRId64 " rows wrong",
                      m.n, m.n, m.block, m.stride, wrong);
}
