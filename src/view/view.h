/* SPDX-License-Identifier: MIT */
/* How a result is shown. A new view is one file that defines `const struct view view_NAME` and one line in VIEWS.
 * Views write to the FILE that they are given; whether writing worked is for view_show to find out. */
#ifndef VIEW_VIEW_H
#define VIEW_VIEW_H

#include <stdbool.h>
#include <stdio.h>

#include "peet/err.h"
#include "study/table.h"

#define VIEWS(X) X(text) X(json) X(csv)

struct view_style {
    bool colour;
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

/* Colour on a terminal unless NO_COLOR says no; the width of the terminal, which COLUMNS can overrule. */
struct view_style view_style_of(FILE *out);

/* For views that machines read: the shortest decimal that reads back as the same double; "" for NaN and infinity. */
const char *view_real(double real, char buffer[32]);

#endif
