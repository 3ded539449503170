/* SPDX-License-Identifier: MIT */
/* CSV as in RFC 4180, but lines end in a newline alone, which awk and cut need and every reader takes.
 *
 * A result of one table is a header and its rows. In a result of several tables each has its own header, an empty line
 * stands between tables, and the first column of every line, "table", is the table's name: `grep ^threads,` finds
 * the rows of one of them. Addresses are 0x…, percentages fractions of 1, numbers have no separators; empty cells, NaN
 * and infinity are empty, and an empty text is "". Control characters are made visible, and what a spreadsheet would
 * take for a formula has an apostrophe before it. Notes are left out: they are in the text and in JSON. */
#include <inttypes.h>

#include "base/utf8.h"
#include "view/view.h"

static void csv_cell_show(const struct cell *c, enum cell_type type, FILE *out)
{
    char buffer[32];

    if (c->empty)
        return;
    switch (type) {
    case CELL_CODE:
    case CELL_VERDICT:
    case CELL_TEXT: utf8_csv(c->text, out); break;
    case CELL_COUNT:
    case CELL_BYTES: fprintf(out, "%" PRIu64, c->count); break;
    case CELL_HEX: fprintf(out, "0x%" PRIx64, c->count); break;
    case CELL_REAL:
    case CELL_SHARE:
    case CELL_PERCENT: fputs(view_real(c->real, buffer), out); break;
    }
}

static void csv_table_show(const struct table *t, bool alone, FILE *out)
{
    fputs(alone ? "" : "table,", out);
    for (size_t i = 0; i < t->columns; i++) {
        fputs(i ? "," : "", out);
        utf8_csv(t->column[i].name, out);
    }
    fputc('\n', out);
    for (size_t row = 0; row < t->rows; row++) {
        if (!alone) {
            utf8_csv(t->name, out);
            fputc(',', out);
        }
        for (size_t i = 0; i < t->columns; i++) {
            fputs(i ? "," : "", out);
            csv_cell_show(&t->cell[row * t->columns + i], t->column[i].type, out);
        }
        fputc('\n', out);
    }
}

static int csv_show(const struct result *r, const struct view_style *style, FILE *out, struct peet_err *err)
{
    (void)style;
    (void)err;
    for (const struct table *t = r->first; t; t = t->next) {
        csv_table_show(t, r->first == r->last, out);
        fputs(t->next ? "\n" : "", out);
    }
    return 0;
}

const struct view view_csv = {
    .name = "csv",
    .summary = "comma-separated values, for spreadsheets and scripts",
    .show = csv_show,
};
