/* SPDX-License-Identifier: MIT */
/* JSON (RFC 8259): one object, { table: { "notes": [text …], "rows": [{ column: value … } …] } … }.
 * Addresses are strings, "0x…". Counts and sizes are integers of up to 64 bits; readers that take all numbers for
 * doubles lose digits above 2^53. Percentages are fractions of 1. Empty cells, NaN and infinity are null. A byte that
 * is no UTF-8 becomes U+FFFD. */
#include <inttypes.h>

#include "base/utf8.h"
#include "view/view.h"

static void json_cell_show(const struct cell *c, enum cell_type type, FILE *out)
{
    char buffer[32];
    const char *number;

    if (c->empty) {
        fputs("null", out);
        return;
    }
    switch (type) {
    case CELL_CODE:
    case CELL_VERDICT:
    case CELL_TEXT: utf8_json(c->text, out); break;
    case CELL_COUNT:
    case CELL_BYTES: fprintf(out, "%" PRIu64, c->count); break;
    case CELL_HEX: fprintf(out, "\"0x%" PRIx64 "\"", c->count); break;
    case CELL_REAL:
    case CELL_SHARE:
    case CELL_PERCENT:
        number = view_real(c->real, buffer);
        fputs(*number ? number : "null", out);
        break;
    }
}

static void json_row_show(const struct table *t, size_t row, FILE *out)
{
    for (size_t i = 0; i < t->columns; i++) {
        fputs(i ? ", " : "{", out);
        utf8_json(t->column[i].name, out);
        fputs(": ", out);
        json_cell_show(&t->cell[row * t->columns + i], t->column[i].type, out);
    }
    fputc('}', out);
}

static void json_table_show(const struct table *t, FILE *out)
{
    fputs("  ", out);
    utf8_json(t->name, out);
    fputs(": {\n    \"notes\": [", out);
    for (size_t i = 0; i < t->notes; i++) {
        fputs(i ? ", " : "", out);
        utf8_json(t->note[i], out);
    }
    fputs("],\n    \"rows\": [", out);
    for (size_t i = 0; i < t->rows; i++) {
        fputs(i ? ",\n      " : "\n      ", out);
        json_row_show(t, i, out);
    }
    fputs(t->rows ? "\n    ]\n  }" : "]\n  }", out);
}

static int json_show(const struct result *r, const struct view_style *style, FILE *out, struct peet_err *err)
{
    (void)style;
    (void)err;
    fputs("{\n", out);
    for (const struct table *t = r->first; t; t = t->next) {
        json_table_show(t, out);
        fputs(t->next ? ",\n" : "\n", out);
    }
    fputs("}\n", out);
    return 0;
}

const struct view view_json = {
    .name = "json",
    .summary = "one JSON object, for programs",
    .show = json_show,
};
