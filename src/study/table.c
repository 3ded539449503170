/* SPDX-License-Identifier: MIT */
#include "study/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct table *result_table(struct result *r, const char *name, const char *title, const struct column *columns)
{
    struct table *t = mem_alloc(1, sizeof *t);

    for (const struct table *other = r->first; other; other = other->next)
        assert(strcmp(other->name, name) != 0);
    t->name = mem_string(name);
    t->title = mem_string(title);
    t->column = columns;
    while (columns[t->columns].name)
        t->columns++;
    assert(t->columns);
    if (r->last)
        r->last->next = t;
    else
        r->first = t;
    r->last = t;
    return t;
}

void result_title(struct result *r, const char *title)
{
    free(r->title);
    r->title = mem_string(title);
}

size_t table_column(const struct table *t, const char *name)
{
    size_t length = strcspn(name, " "), i = 0;

    while (i < t->columns && (strncmp(t->column[i].name, name, length) != 0 || t->column[i].name[length]))
        i++;
    return i;
}

bool cell_is_text(enum cell_type type)
{
    return type == CELL_TEXT || type == CELL_CODE || type == CELL_VERDICT;
}

bool cell_is_real(enum cell_type type)
{
    return type == CELL_REAL || type == CELL_PERCENT || type == CELL_SHARE;
}

static void table_free(struct table *t)
{
    for (size_t i = 0; i < t->rows * t->columns + t->filled; i++)
        if (cell_is_text(t->column[i % t->columns].type))
            free(t->cell[i].text);
    for (size_t i = 0; i < t->notes; i++)
        free(t->note[i]);
    free(t->cell);
    free(t->note);
    free(t->name);
    free(t->title);
    free(t);
}

void result_append(struct result *r, struct result *from)
{
    if (from->first) {
        *(r->last ? &r->last->next : &r->first) = from->first;
        r->last = from->last;
    }
    if (r->title)
        free(from->title);
    else
        r->title = from->title;
    *from = (struct result){ 0 };
}

void result_release(struct result *r)
{
    while (r->first) {
        struct table *next = r->first->next;
        table_free(r->first);
        r->first = next;
    }
    r->last = NULL;
    free(r->title);
    r->title = NULL;
}

static void table_add_cell(struct table *t, struct cell cell)
{
    if (!t->filled)
        t->cell = mem_room(t->cell, t->rows, t->columns * sizeof *t->cell);
    t->cell[t->rows * t->columns + t->filled] = cell;
    if (++t->filled == t->columns) {
        t->filled = 0;
        t->rows++;
    }
}

static enum cell_type table_next_type(const struct table *t)
{
    return t->column[t->filled].type;
}

void table_text(struct table *t, const char *text)
{
    assert(cell_is_text(table_next_type(t)));
    table_add_cell(t, (struct cell){ .text = text ? mem_string(text) : NULL, .empty = !text });
}

void table_count(struct table *t, uint64_t count)
{
    assert(!cell_is_text(table_next_type(t)) && !cell_is_real(table_next_type(t)));
    table_add_cell(t, (struct cell){ .count = count });
}

void table_real(struct table *t, double real)
{
    assert(cell_is_real(table_next_type(t)));
    table_add_cell(t, (struct cell){ .real = real });
}

void table_none(struct table *t)
{
    table_add_cell(t, (struct cell){ .text = NULL, .empty = true });
}

void table_note(struct table *t, const char *format, ...)
{
    va_list ap;

    t->note = mem_room(t->note, t->notes, sizeof *t->note);
    va_start(ap, format);
    t->note[t->notes++] = mem_vformat(format, ap);
    va_end(ap);
}
