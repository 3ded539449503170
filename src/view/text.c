/* SPDX-License-Identifier: MIT */
/* Text for people: aligned columns, numbers to the right with separators, sizes in KiB and MiB.
 * Left out: columns that are empty throughout, folding columns that say the same in every row, empty fields of records.
 * On a terminal that is too narrow, long texts are cut; numbers never are. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "view/view.h"

enum { GAP = 2, NARROWEST = 12 };

static const char BOLD[] = "\033[1m", DIM[] = "\033[2m", PLAIN[] = "\033[0m";

static void styled(const char *text, size_t limit, const char *how, const struct view_style *style, FILE *out)
{
    bool colour = how && style->colour;

    fputs(colour ? how : "", out);
    utf8_show(text, limit, out);
    fputs(colour ? PLAIN : "", out);
}

static void blanks(size_t n, FILE *out)
{
    fprintf(out, "%*s", (int)n, "");
}

/* How wide each column is; 0: not shown. */
static size_t *measure(const struct table *t)
{
    size_t *width = mem_alloc(t->columns, sizeof *width);
    char buffer[40];

    for (size_t i = 0; i < t->columns; i++) {
        if (!view_column_shown(t, i))
            continue;
        width[i] = utf8_show(t->column[i].title, SIZE_MAX, NULL);
        for (size_t row = 0; row < t->rows; row++) {
            const char *text = view_cell(&t->cell[row * t->columns + i], t->column[i].type, buffer);
            size_t w = utf8_show(text, SIZE_MAX, NULL);
            width[i] = w > width[i] ? w : width[i];
        }
    }
    return width;
}

/* Takes columns away from the widest text until the table fits, or no text can give any. */
static void squeeze(const struct table *t, size_t *width, size_t limit)
{
    size_t sum = 0;

    for (size_t i = 0; i < t->columns; i++)
        sum += width[i] ? width[i] + GAP : 0;
    while (sum > limit) {
        size_t *widest = NULL;
        for (size_t i = 0; i < t->columns; i++)
            if (t->column[i].type == CELL_TEXT && width[i] > (widest ? *widest : NARROWEST))
                widest = &width[i];
        if (!widest)
            return;
        --*widest;
        sum--;
    }
}

/* One line: the headings, or a row when row is not SIZE_MAX. */
static void line_show(const struct table *t, const size_t *width, size_t row, const struct view_style *style, FILE *out)
{
    char buffer[40];
    size_t owed = 0; /* blanks that are written only if something follows */

    for (size_t i = 0; i < t->columns; i++) {
        const struct column *c = &t->column[i];
        if (!width[i])
            continue;
        const char *text = row == SIZE_MAX ? c->title : view_cell(&t->cell[row * t->columns + i], c->type, buffer);
        size_t taken = utf8_show(text, width[i], NULL), pad = width[i] - taken;

        owed += GAP + (c->type == CELL_TEXT ? 0 : pad);
        if (taken) {
            blanks(owed, out);
            owed = 0;
            styled(text, width[i], row == SIZE_MAX ? DIM : NULL, style, out);
        }
        owed += c->type == CELL_TEXT ? pad : 0;
    }
    fputc('\n', out);
}

static void grid_show(const struct table *t, const struct view_style *style, FILE *out)
{
    size_t *width = measure(t);

    if (style->width > 0)
        squeeze(t, width, (size_t)style->width);
    line_show(t, width, SIZE_MAX, style, out);
    for (size_t row = 0; row < t->rows; row++)
        line_show(t, width, row, style, out);
    free(width);
}

static void records_show(const struct table *t, const struct view_style *style, FILE *out)
{
    char buffer[40];
    size_t widest = 0;

    for (size_t i = 0; i < t->columns; i++) {
        size_t w = utf8_show(t->column[i].title, SIZE_MAX, NULL);
        widest = w > widest ? w : widest;
    }
    for (size_t row = 0; row < t->rows; row++) {
        fputs(row ? "\n" : "", out);
        for (size_t i = 0; i < t->columns; i++) {
            const struct cell *c = &t->cell[row * t->columns + i];
            if (c->empty)
                continue;
            blanks(GAP, out);
            styled(t->column[i].title, SIZE_MAX, DIM, style, out);
            blanks(widest - utf8_show(t->column[i].title, SIZE_MAX, NULL) + GAP, out);
            utf8_show(view_cell(c, t->column[i].type, buffer), SIZE_MAX, out);
            fputc('\n', out);
        }
    }
}

static void table_show(const struct table *t, const struct view_style *style, FILE *out)
{
    styled(t->title, SIZE_MAX, BOLD, style, out);
    fputs(t->rows ? "\n" : ": none\n", out);
    if (t->rows && t->records)
        records_show(t, style, out);
    else if (t->rows)
        grid_show(t, style, out);
    for (size_t i = 0; i < t->notes; i++) {
        fputs("  note: ", out);
        utf8_show(t->note[i], SIZE_MAX, out);
        fputc('\n', out);
    }
}

static int show(const struct result *r, const struct view_style *style, FILE *out, struct peet_err *err)
{
    (void)err;
    for (const struct table *t = r->first; t; t = t->next) {
        table_show(t, style, out);
        fputs(t->next ? "\n" : "", out);
    }
    return 0;
}

const struct view view_text = {
    .name = "text",
    .summary = "aligned text, for people",
    .show = show,
};
