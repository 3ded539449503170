/* SPDX-License-Identifier: MIT */
/* Text for people: aligned columns, numbers to the right with separators, sizes in KiB and MiB.
 * Left out: columns that are empty throughout, folding columns that say the same in every row, empty fields of records.
 * On a terminal that is too narrow, long texts are cut, then the last columns are left out, which is said; numbers never are cut.
 * A value over time that has many rows is one line: its range, and on a terminal its course. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "view/view.h"

enum { GAP = 2, NARROWEST = 12, BAR = 8, COURSE = 64, LONG_COURSE = 24 };

static const char BOLD[] = "\033[1m", DIM[] = "\033[2m", RED[] = "\033[31m", GREEN[] = "\033[32m",
                  YELLOW[] = "\033[33m", PLAIN[] = "\033[0m";

static void text_styled(const char *text, size_t limit, const char *how, const struct view_style *style, FILE *out)
{
    bool colour = how && style->colour;

    fputs(colour ? how : "", out);
    utf8_show(text, limit, out);
    fputs(colour ? PLAIN : "", out);
}

/* Colour of a cell: large shares and verdicts have one. */
static const char *colour_of(const struct cell *c, enum cell_type type)
{
    if (c->empty)
        return NULL;
    if (type == CELL_SHARE)
        return c->real >= 0.2 ? RED : c->real >= 0.05 ? YELLOW : NULL;
    if (type == CELL_VERDICT)
        return !strcmp(c->text, "better") ? GREEN : !strcmp(c->text, "worse") ? RED : DIM;
    return NULL;
}

/* Draws a bar of `share` times BAR characters, in eighths of a character. */
static size_t bar_show(double share, FILE *out)
{
    static const char *const EIGHTHS[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    int eighths = share > 0 ? (int)lround((share < 1 ? share : 1) * BAR * 8) : 0;

    for (int i = 0; i < eighths / 8; i++)
        fputs("█", out);
    fputs(EIGHTHS[eighths % 8], out);
    return (size_t)(eighths + 7) / 8;
}

static void text_blanks(size_t n, FILE *out)
{
    fprintf(out, "%*s", (int)n, "");
}

/* Width of each column in characters; 0: not shown. Bars follow the numbers of their column. */
static size_t *text_measure(const struct table *t, const struct view_style *style)
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
        if (style->bars && t->column[i].type == CELL_SHARE)
            width[i] += BAR + 1;
    }
    return width;
}

static size_t sum_of(const struct table *t, const size_t *width)
{
    size_t sum = 0;

    for (size_t i = 0; i < t->columns; i++)
        sum += width[i] ? width[i] + GAP : 0;
    return sum;
}

/* Takes columns away from the widest text until the table fits, or no text can give any. */
static void text_squeeze(const struct table *t, size_t *width, size_t limit)
{
    for (size_t sum = sum_of(t, width); sum > limit; sum--) {
        size_t *widest = NULL;
        for (size_t i = 0; i < t->columns; i++)
            if (cell_is_text(t->column[i].type) && width[i] > (widest ? *widest : NARROWEST))
                widest = &width[i];
        if (!widest)
            return;
        --*widest;
    }
}

/* Least width of a column. */
static size_t least_of(const struct table *t, const size_t *width, size_t i)
{
    bool can_shrink = cell_is_text(t->column[i].type) && width[i] > NARROWEST;

    return width[i] ? (can_shrink ? NARROWEST : width[i]) + GAP : 0;
}

static bool can_fit(const struct table *t, const size_t *width, size_t limit)
{
    size_t least = 0;

    for (size_t i = 0; i < t->columns; i++)
        least += least_of(t, width, i);
    return least <= limit;
}

/* Leaves the last columns out until the rest can fit; two stay in any case. */
static void leave_out(const struct table *t, size_t *width, size_t limit)
{
    size_t shown = 0;

    for (size_t i = 0; i < t->columns; i++)
        shown += width[i] > 0;
    for (size_t i = t->columns; i-- > 0 && shown > 2 && !can_fit(t, width, limit);) {
        shown -= width[i] > 0;
        width[i] = 0;
    }
}

static void left_out_show(const struct table *t, const size_t *width, const struct view_style *style, FILE *out)
{
    bool is_first = true;

    for (size_t i = 0; i < t->columns; i++) {
        if (width[i] || !view_column_shown(t, i))
            continue;
        text_styled(is_first ? "  too narrow for: " : ", ", SIZE_MAX, DIM, style, out);
        text_styled(t->column[i].title, SIZE_MAX, DIM, style, out);
        is_first = false;
    }
    fputs(is_first ? "" : "\n", out);
}

/* One line: the headings, or a row when row is not SIZE_MAX. */
static void line_show(const struct table *t, const size_t *width, size_t row, const struct view_style *style, FILE *out)
{
    static const struct cell none = { .empty = true };
    char buffer[40];
    size_t owed = 0; /* blanks that are written only if something follows */

    for (size_t i = 0; i < t->columns; i++) {
        const struct column *c = &t->column[i];
        if (!width[i])
            continue;
        const struct cell *cell = row == SIZE_MAX ? &none : &t->cell[row * t->columns + i];
        const char *text = row == SIZE_MAX ? c->title : view_cell(cell, c->type, buffer);
        size_t bar = style->bars && c->type == CELL_SHARE ? BAR + 1 : 0, room = width[i] - bar;
        size_t taken = utf8_show(text, room, NULL), pad = room - taken;

        owed += GAP + (cell_is_text(c->type) ? 0 : pad);
        if (taken) {
            text_blanks(owed, out);
            owed = 0;
            text_styled(text, room, row == SIZE_MAX ? DIM : colour_of(cell, c->type), style, out);
        }
        if (bar && !cell->empty && cell->real > 0) {
            text_blanks(owed + 1, out);
            fputs(style->colour ? DIM : "", out);
            owed = BAR - bar_show(cell->real, out);
            fputs(style->colour ? PLAIN : "", out);
            bar = 0;
        }
        owed += (cell_is_text(c->type) ? pad : 0) + bar;
    }
    fputc('\n', out);
}

static void text_grid_show(const struct table *t, const struct view_style *style, FILE *out)
{
    size_t *width = text_measure(t, style), limit = style->width > 0 ? (size_t)style->width : SIZE_MAX;
    struct view_style own = *style;

    if (!can_fit(t, width, limit)) { /* numbers say more than bars */
        own.bars = false;
        free(width);
        width = text_measure(t, &own);
    }
    leave_out(t, width, limit);
    text_squeeze(t, width, limit);
    line_show(t, width, SIZE_MAX, &own, out);
    for (size_t row = 0; row < t->rows; row++)
        line_show(t, width, row, &own, out);
    left_out_show(t, width, &own, out);
    free(width);
}

/* ---- values over time ---- */

/* The column whose course is shown in place of the rows; t->columns: none. */
static size_t course_of(const struct table *t)
{
    const struct plot *p = t->plot;
    size_t column = p && p->kind == PLOT_STEPS && t->rows > LONG_COURSE ? table_column(t, p->of) : t->columns;

    return column < t->columns && cell_is_real(t->column[column].type) ? column : t->columns;
}

static double value_at(const struct table *t, size_t row, size_t column)
{
    const struct cell *c = &t->cell[row * t->columns + column];

    return c->empty || isnan(c->real) ? 0 : c->real;
}

/* As many blocks as there is room for, each as high as the mean of its rows. */
static void blocks_show(const struct table *t, size_t column, double most, size_t room, FILE *out)
{
    static const char *const BLOCKS[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    size_t n = t->rows < room ? t->rows : room;

    text_blanks(GAP, out);
    for (size_t i = 0; i < n; i++) {
        size_t from = i * t->rows / n, to = (i + 1) * t->rows / n;
        double sum = 0;
        for (size_t row = from; row < to; row++)
            sum += value_at(t, row, column);
        int height = most > 0 ? (int)lround(7 * sum / (double)(to - from) / most) : 0;
        fputs(BLOCKS[height], out);
    }
    fputc('\n', out);
}

static void course_show(const struct table *t, size_t column, const struct view_style *style, FILE *out)
{
    size_t least = 0, most = 0;
    char low[40], high[40];

    for (size_t row = 1; row < t->rows; row++) {
        least = value_at(t, row, column) < value_at(t, least, column) ? row : least;
        most = value_at(t, row, column) > value_at(t, most, column) ? row : most;
    }
    size_t room = style->width > GAP && style->width < COURSE + GAP ? (size_t)style->width - GAP : COURSE;
    if (style->bars)
        blocks_show(t, column, value_at(t, most, column), room, out);
    const struct cell *cell = t->cell + column;
    enum cell_type type = t->column[column].type;
    fprintf(out, "  %s from %s to %s; all %zu rows are in --format csv, json and html\n", t->column[column].title,
            view_cell(&cell[least * t->columns], type, low), view_cell(&cell[most * t->columns], type, high), t->rows);
}

static void text_records_show(const struct table *t, const struct view_style *style, FILE *out)
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
            text_blanks(GAP, out);
            text_styled(t->column[i].title, SIZE_MAX, DIM, style, out);
            text_blanks(widest - utf8_show(t->column[i].title, SIZE_MAX, NULL) + GAP, out);
            utf8_show(view_cell(c, t->column[i].type, buffer), SIZE_MAX, out);
            fputc('\n', out);
        }
    }
}

static void text_table_show(const struct table *t, const struct view_style *style, FILE *out)
{
    text_styled(t->title, SIZE_MAX, BOLD, style, out);
    fputs(t->rows ? "\n" : ": none\n", out);
    if (t->rows && t->records)
        text_records_show(t, style, out);
    else if (course_of(t) < t->columns)
        course_show(t, course_of(t), style, out);
    else if (t->rows)
        text_grid_show(t, style, out);
    for (size_t i = 0; i < t->notes; i++) {
        fputs("  note: ", out);
        utf8_show(t->note[i], SIZE_MAX, out);
        fputc('\n', out);
    }
}

static int text_show(const struct result *r, const struct view_style *style, FILE *out, struct peet_err *err)
{
    (void)err;
    for (const struct table *t = r->first; t; t = t->next) {
        text_table_show(t, style, out);
        fputs(t->next ? "\n" : "", out);
    }
    return 0;
}

const struct view view_text = {
    .name = "text",
    .summary = "aligned text, for people",
    .show = text_show,
};
