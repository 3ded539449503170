/* SPDX-License-Identifier: MIT */
/* A page as a peet makes it that was built without D3: these strings stand in place of those that the Makefile makes. */
#include "view/html.h"
#include "view/view.h"

const char html_style[] = "", html_script[] = "", html_library[] = "";

static const struct column COLUMNS[] = { { "n", "N", CELL_COUNT, false },
                                         { "square", "Square", CELL_COUNT, false },
                                         { 0 } };
static const struct plot PLOTS[] = { { PLOT_LINES, "Squares", "n", "square", .least = 2 }, { 0 } };

int main(void)
{
    struct result r = { 0 };
    struct table *t = result_table(&r, "squares", "Squares", COLUMNS);
    struct peet_err err;

    t->plot = PLOTS;
    for (uint64_t i = 0; i < 100; i++) {
        table_count(t, i);
        table_count(t, i * i);
    }
    int code = view_show("html", &r, stdout, &err);
    result_release(&r);
    return code < 0;
}
