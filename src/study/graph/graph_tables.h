/* SPDX-License-Identifier: MIT */
/* Columns of the two tables of study graph: nodes, then arcs. Drawings and nets are made from them. */
#ifndef STUDY_GRAPH_GRAPH_TABLES_H
#define STUDY_GRAPH_GRAPH_TABLES_H

#include <stdio.h>

#include "study/table.h"

/* clang-format off */
enum graph_node_column { N_NODE, N_KIND, N_PROCESS, N_THREAD, N_NAME, N_POSITION, N_INSTRUCTIONS, N_REFERENCES, N_SEGMENTS, N_START,
                         N_FINISH, N_EVENT, N_OBJECT, N_LOCK, N_PLACE, N_FUNCTION, N_CRITICAL, N_COLUMNS };
enum graph_arc_column { A_FROM, A_TO, A_EVENT, A_KIND, A_COUNT, A_COLUMNS };
/* clang-format on */

static inline const struct cell *graph_cell(const struct table *t, size_t row, size_t column)
{
    return &t->cell[row * t->columns + column];
}

/* The text of a cell; `none` if it is empty. */
static inline const char *graph_cell_text(const struct table *t, size_t row, size_t column, const char *none)
{
    const struct cell *c = graph_cell(t, row, column);

    return c->empty ? none : c->text;
}

/* Writes the result of study graph as a Petri net in PNML (petri_net.c). */
void graph_petri_net(const struct result *r, FILE *out);

#endif
