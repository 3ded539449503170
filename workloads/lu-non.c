/* SPDX-License-Identifier: MIT */
/* LU with non-contiguous blocks: the matrix is an ordinary two-dimensional array, so the rows of a block lie a whole
 * row of the matrix apart: they may meet in the cache, and pages (and lines, where a block's row is not a whole number
 * of lines) are shared between threads. The algorithm, its assumptions and what it leaves out are in lu.h. */
#include "lu.h"

static void place_by_rows(struct lu *lu)
{
    lu->stride = lu->n;
    lu->data = wl_alloc((size_t)(lu->n * lu->n) * sizeof *lu->data);
    for (int64_t i = 0; i < lu->across; i++)
        for (int64_t j = 0; j < lu->across; j++)
            lu->block[i * lu->across + j] = lu->data + i * lu->edge * lu->n + j * lu->edge;
}

int main(int argc, char **argv)
{
    return lu_main(argc, argv, "blocked LU factorisation of an ordinary two-dimensional array", place_by_rows);
}
