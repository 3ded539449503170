/* SPDX-License-Identifier: MIT */
/* Views: formats in which a result is shown. A new view is a file that defines `const struct view view_NAME`, and a line in VIEWS: ARCHITECTURE.md, "Adding a thing".
 * Views write to a FILE without checks; view_show checks for write errors. See docs/design/views.md. */
#ifndef VIEW_VIEW_H
#define VIEW_VIEW_H

#include <stdbool.h>
#include <stdio.h>

#include "peet/err.h"
#include "study/table.h"

#define VIEWS(X) X(text) X(json) X(csv) X(html)

/* Properties of the output device. */
struct view_style {
    bool colour; /* escape sequences for colours are written */
    bool bars;   /* shares and series of numbers are drawn as bars */
    int width;   /* columns of the terminal; 0: no limit */
};

/* A format. */
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

/* Shows r by the named view. If out is a terminal, in its style. */
int view_show(const char *name, const struct result *r, FILE *out, struct peet_err *err);

/* Shows r by the named view in a given style. */
int view_show_in(const char *name, const struct result *r, const struct view_style *style, FILE *out,
                 struct peet_err *err);

/* Shows r by the named view in a new file, without style. */
int view_save(const char *name, const struct result *r, const char *path, struct peet_err *err);

/* Style of a terminal: bars and colour unless TERM is dumb, no colour if NO_COLOR is set, width as in COLUMNS or of the terminal. Else none. */
struct view_style view_style_of(FILE *out);

/* For formats that programs read: the shortest decimal number that is read as the same double; "" for NaN and infinity. */
const char *view_real(double real, char buffer[32]);

/* For formats that people read: the text of a cell, in buffer or in the cell; and whether a column is shown. Not shown are columns that are
 * empty in all rows, and folding columns with the same value in all rows. */
const char *view_cell(const struct cell *c, enum cell_type type, char buffer[40]);
bool view_column_shown(const struct table *t, size_t column);

#endif
