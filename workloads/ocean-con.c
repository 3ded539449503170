/* SPDX-License-Identifier: MIT */
/* The ocean model of ocean.h with each thread's block of each grid in contiguous memory.
 *
 * A block has a frame of one point, into which the thread copies its neighbours' outermost points before it reads them,
 * the coast's points being zeros that no thread writes. Before a sweep over one colour only the other is copied: the
 * neighbours are changing the first at that time. */
#include "ocean.h"

static void layout_new(struct ocean *o)
{
    for (int id = 0; id < o->threads; id++)
        for (int level = 0; level < o->levels; level++)
            for (int field = 0; field < (level ? TENDENCY : FIELDS); field++) {
                const struct part *p = part_of(o, id, level);
                int64_t rows = p->r1 - p->r0 + 2, columns = p->c1 - p->c0 + 2;
                *window_of(o, id, level, (enum field)field) = (struct window){
                    .at = wl_alloc((size_t)(rows * columns) * sizeof(double)),
                    .row = p->r0 - 1,
                    .column = p->c0 - 1,
                    .stride = columns,
                };
            }
}

static void layout_free(struct ocean *o)
{
    for (int i = 0; i < o->threads * MAX_LEVELS * FIELDS; i++)
        free(o->window[i].at);
}

/* Which row of threads holds that row of points, or -1 on the coast; a neighbour's block may be empty. */
static int row_owner(const struct ocean *o, int from, int toward, int level, int64_t row)
{
    for (int r = from; r >= 0 && r < o->thread_rows; r += toward) {
        const struct part *p = part_of(o, r * o->thread_columns, level);
        if (row >= p->r0 && row < p->r1)
            return r;
    }
    return -1;
}

static int column_owner(const struct ocean *o, int from, int toward, int level, int64_t column)
{
    for (int c = from; c >= 0 && c < o->thread_columns; c += toward) {
        const struct part *p = part_of(o, c, level);
        if (column >= p->c0 && column < p->c1)
            return c;
    }
    return -1;
}

static void copy(const struct window *to, const struct window *from, struct part p, int colours)
{
    int64_t step = colours == BOTH ? 1 : 2;

    for (int64_t i = p.r0; i < p.r1; i++)
        for (int64_t j = p.c0 + (colours == BOTH ? 0 : (i + p.c0 + (colours == BLACK)) & 1); j < p.c1; j += step)
            *point(to, i, j) = *point(from, i, j);
}

static void layout_frame(struct ocean *o, int id, int level, enum field field, int colours)
{
    const struct part *p = part_of(o, id, level);
    int row = id / o->thread_columns, column = id % o->thread_columns;
    int rows[3] = { row_owner(o, row - 1, -1, level, p->r0 - 1), row, row_owner(o, row + 1, 1, level, p->r1) };
    int columns[3] = { column_owner(o, column - 1, -1, level, p->c0 - 1), column,
                       column_owner(o, column + 1, 1, level, p->c1) };
    int64_t r[4] = { p->r0 - 1, p->r0, p->r1, p->r1 + 1 }, c[4] = { p->c0 - 1, p->c0, p->c1, p->c1 + 1 };

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            if ((i == 1 && j == 1) || rows[i] < 0 || columns[j] < 0)
                continue;
            const struct window *from = window_of(o, rows[i] * o->thread_columns + columns[j], level, field);
            copy(window_of(o, id, level, field), from, (struct part){ r[i], r[i + 1], c[j], c[j + 1] }, colours);
        }
}

int main(int argc, char **argv)
{
    return ocean_main(argc, argv, "ocean circulation by multigrid, each thread's part of a grid contiguous in memory");
}
