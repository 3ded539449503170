/* SPDX-License-Identifier: MIT */
/* LU with contiguous blocks: the elements of a block lie together, and so do the blocks of one thread, so a thread's
 * writes share no lines with another's (where a block is whole lines) and hardly any pages. The algorithm, its
 * assumptions and what it leaves out are in lu.h. */
#include "lu.h"

static void place_contiguous(struct lu *lu)
{
    int64_t elements = lu->edge * lu->edge, used = 0;

    lu->stride = lu->edge;
    lu->data = wl_alloc((size_t)(lu->across * lu->across * elements) * sizeof *lu->data);
    for (int id = 0; id < lu->threads; id++)
        for (int64_t i = id / lu->grid_columns; i < lu->across; i += lu->grid_rows)
            for (int64_t j = id % lu->grid_columns; j < lu->across; j += lu->grid_columns)
                lu->block[i * lu->across + j] = lu->data + used++ * elements;
}

int main(int argc, char **argv)
{
    return lu_main(argc, argv, "blocked LU factorisation, blocks contiguous in memory", place_contiguous);
}
