/* SPDX-License-Identifier: MIT */
/* The ocean model of ocean.h on ordinary two-dimensional arrays, coast included.
 *
 * A thread's block is a piece of each of its rows: pieces of different threads share cache lines and pages, and a block
 * on a large grid has rows that compete for the same sets of a cache. There is no frame: neighbours' points are read
 * where they lie. */
#include "ocean.h"

static void layout_new(struct ocean *o)
{
    for (int level = 0; level < o->levels; level++)
        for (int field = 0; field < (level ? TENDENCY : FIELDS); field++) {
            int64_t side = (o->cells >> level) + 1;
            double *grid = wl_alloc((size_t)(side * side) * sizeof *grid);
            for (int id = 0; id < o->threads; id++)
                *window_of(o, id, level, (enum field)field) = (struct window){ .at = grid, .stride = side };
        }
}

static void layout_free(struct ocean *o)
{
    for (int level = 0; level < o->levels; level++)
        for (int field = 0; field < FIELDS; field++)
            free(window_of(o, 0, level, (enum field)field)->at);
}

static void layout_frame(struct ocean *o, int id, int level, enum field field, int colours)
{
    (void)o, (void)id, (void)level, (void)field, (void)colours;
}

int main(int argc, char **argv)
{
    return ocean_main(argc, argv, "ocean circulation by multigrid, grids as plain two-dimensional arrays");
}
