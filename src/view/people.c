/* SPDX-License-Identifier: MIT */
/* What views for people have in common: numbers as people write them, and which columns are worth their place. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "view/view.h"

static void count_text(uint64_t count, char *buffer, size_t size)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, count);
    size_t at = 0;

    for (int i = 0; i < n && at + 2 < size; i++) {
        if (i && (n - i) % 3 == 0)
            buffer[at++] = ',';
        buffer[at++] = digits[i];
    }
    buffer[at] = 0;
}

static void bytes_text(uint64_t bytes, char *buffer, size_t size)
{
    static const char *const UNITS[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double value = (double)bytes;
    size_t unit = 0;

    for (; value >= 1023.95 && unit < 6; unit++) /* 1023.95 would show as 1024.0 */
        value /= 1024;
    snprintf(buffer, size, "%.*f %s", unit ? 1 : 0, value, UNITS[unit]);
}

static void real_text(double real, char *buffer, size_t size)
{
    double x = fabs(real);

    if (isnan(real))
        snprintf(buffer, size, "-");
    else if (x == 0 || (x >= 0.001 && x < 100000))
        snprintf(buffer, size, "%.3f", real);
    else
        snprintf(buffer, size, "%.4g", real);
}

static void percent_text(double real, char *buffer, size_t size)
{
    if (isnan(real))
        snprintf(buffer, size, "-");
    else if (real != 0 && fabs(real) < 0.0001)
        snprintf(buffer, size, "%.2g %%", 100 * real);
    else
        snprintf(buffer, size, "%.2f %%", 100 * real);
}

const char *view_cell(const struct cell *c, enum cell_type type, char buffer[40])
{
    if (c->empty)
        return "";
    switch (type) {
    case CELL_CODE:
    case CELL_VERDICT:
    case CELL_TEXT: return c->text;
    case CELL_COUNT: count_text(c->count, buffer, 40); break;
    case CELL_HEX: snprintf(buffer, 40, "0x%" PRIx64, c->count); break;
    case CELL_BYTES: bytes_text(c->count, buffer, 40); break;
    case CELL_REAL: real_text(c->real, buffer, 40); break;
    case CELL_SHARE:
    case CELL_PERCENT: percent_text(c->real, buffer, 40); break;
    }
    return buffer;
}

static bool cells_equal(const struct cell *a, const struct cell *b, enum cell_type type)
{
    if (a->empty || b->empty)
        return a->empty && b->empty;
    if (cell_is_text(type))
        return !strcmp(a->text, b->text);
    return a->count == b->count;
}

bool view_column_shown(const struct table *t, size_t column)
{
    bool all_empty = true, all_same = true;

    for (size_t row = 0; row < t->rows; row++) {
        const struct cell *c = &t->cell[row * t->columns + column];
        all_empty = all_empty && c->empty;
        all_same = all_same && cells_equal(c, &t->cell[column], t->column[column].type);
    }
    return !all_empty && !(t->column[column].fold && all_same);
}
