/* SPDX-License-Identifier: MIT */
/* How a result is shown. A new view is one file that defines `const struct view view_NAME` and one line in VIEWS.
 * Views write to the FILE that they are given; whether writing worked is for view_show to find out. */
#ifndef VIEW_VIEW_H
#define VIEW_VIEW_H

#include <stdbool.h>
#include <stdio.h>

#include "peet/err.h"
#include "study/table.h"

#define VIEWS(X) X(text) X(json) X(csv) X(html)

struct view_style {
    bool colour;
    bool bars; /* shares and long rows of numbers are drawn */
    int width; /* columns of the terminal, 0: no limit */
};

struct view {
    const char *name;
    const char *summary;
    int (*show)(const struct result *r, const struct view_style *style, FILE *out, struct peet_err *err);
};

#define X(name) extern const struct view view_##name;
VIEWS(X)
#undef X

const struct view *view_find(const char *name); /* NULL when there is none */
const struct view *view_at(size_t i);           /* NULL at the end */

/* Shows r by the named view in the style of the terminal that out is, if it is one. */
int view_show(const char *name, const struct result *r, FILE *out, struct peet_err *err);

/* The same in a style of one's own. */
int view_show_in(const char *name, const struct result *r, const struct view_style *style, FILE *out,
                 struct peet_err *err);

/* The same into a new file, without style. */
int view_save(const char *name, const struct result *r, const char *path, struct peet_err *err);

/* On a terminal that can do it, bars, and colour unless NO_COLOR says no; the width of the terminal, which COLUMNS can overrule. */
struct view_style view_style_of(FILE *out);

/* For views that machines read: the shortest decimal that reads back as the same double; "" for NaN and infinity. */
const char *view_real(double real, char buffer[32]);

/* For views that people read: what a cell says, in buffer or in the cell, and whether a column says anything: one that is
 * empty throughout does not, nor a folding one that says the same in every row. */
const char *view_cell(const struct cell *c, enum cell_type type, char buffer[40]);
bool view_column_shown(const struct table *t, size_t column);

#endif
