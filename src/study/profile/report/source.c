/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/profile/totals.h"

enum { FUNCTIONS = 8, AROUND = 2, LONGEST = 400, LINE = 512 };

static const struct column SOURCE[] = {
    { "file", "File", CELL_TEXT, true },       { "function", "Procedure", CELL_TEXT, false },
    { "line", "Line", CELL_COUNT, false },     { "stall_share", "Of stall", CELL_SHARE, false },
    { "misses", "Misses", CELL_COUNT, false }, { "miss_rate", "Rate", CELL_PERCENT, false },
    { "source", "Source", CELL_CODE, false },  { 0 }
};

/* Costs of a source line. */
struct line_cost {
    uint64_t stall, misses, references; /* cycles; lines missed; references */
};

/* The range of a function's executed lines, with AROUND lines on each side; false: unknown or too long. */
static bool source_find_lines(const struct totals *t, uint32_t function, uint32_t *ret_first, uint32_t *ret_last)
{
    uint32_t first = UINT32_MAX, last = 0;

    for (uint32_t i = 0; i < t->lines; i++)
        if (t->line[i].function == function && t->line[i].line) {
            first = t->line[i].line < first ? t->line[i].line : first;
            last = t->line[i].line > last ? t->line[i].line : last;
        }
    *ret_first = first > AROUND ? first - AROUND : 1;
    *ret_last = last + AROUND;
    return last > 0 && last - first < LONGEST;
}

static void source_add_costs(const struct totals *t, uint32_t function, uint32_t first, uint32_t last,
                             struct line_cost *cost)
{
    for (size_t i = 0; i < t->by_line_count; i++) {
        const struct total *x = &t->by_line[i];
        const struct total_line *l = &t->line[x->line];
        if (l->function != function || l->line < first || l->line > last)
            continue;
        cost[l->line - first].stall += total_stall(x);
        cost[l->line - first].misses += x->misses;
        cost[l->line - first].references += x->references;
    }
}

static void source_put_line(struct table *out, const struct totals *t, uint32_t function, uint32_t line,
                            const struct line_cost *c, const char *text)
{
    table_text(out, t->function[function].file);
    table_text(out, t->function[function].name);
    table_count(out, line);
    if (c->references == 0) {
        table_none(out);
        table_none(out);
        table_none(out);
    } else {
        table_real(out, t->p->stall ? (double)c->stall / (double)t->p->stall : 0);
        table_count(out, c->misses);
        table_real(out, (double)c->misses / (double)c->references);
    }
    table_text(out, text);
}

/* Expands tabs to columns of eight. */
static void source_expand_tabs(const char *from, char to[LINE])
{
    size_t n = 0;

    for (; *from && n + 9 < LINE; from++) {
        if (*from != '\t') {
            to[n++] = *from;
            continue;
        }
        do
            to[n++] = ' ';
        while (n % 8);
    }
    to[n] = 0;
}

static void source_add_function(struct table *out, const struct totals *t, uint32_t function)
{
    uint32_t first, last, line = 1;
    char text[LINE], expanded[LINE];
    const char *path = t->function[function].file;
    bool is_known =
        path && source_find_lines(t, function, &first, &last) && symbols_source_is_current(t->p->symbols, path);
    FILE *f = is_known ? fopen(path, "r") : NULL;

    if (!f)
        return;
    struct line_cost *cost = mem_alloc(last - first + 1, sizeof *cost);
    source_add_costs(t, function, first, last, cost);
    bool at_start = true;
    while (line <= last && fgets(text, sizeof text, f)) {
        bool is_whole = strchr(text, '\n') != NULL;
        text[strcspn(text, "\r\n")] = 0;
        source_expand_tabs(text, expanded);
        if (at_start && line >= first)
            source_put_line(out, t, function, line, &cost[line - first], expanded);
        at_start = is_whole;
        line += is_whole;
    }
    free(cost);
    fclose(f);
}

void profile_add_source(const struct totals *t, struct result *ret)
{
    struct table *out = result_table(ret, "source", "Source", SOURCE);
    unsigned shown = 0;

    for (size_t i = 0; i < t->by_function_count && shown < FUNCTIONS; i++) {
        const struct total *x = &t->by_function[i];
        if (total_stall(x) * 100 < t->p->stall || t->p->stall == 0)
            continue;
        source_add_function(out, t, x->function);
        shown++;
    }
    if (out->rows == 0)
        table_note(out, "no source was found: compile with -g, and keep the files where they were");
}
