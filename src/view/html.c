/* SPDX-License-Identifier: MIT */
/* One page of HTML that needs nothing else: its style, its script and the library that draws (D3) are in it, and its policy
 * forbids it to ask for anything. It is also well-formed XML, but for what is inside its scripts and its style.
 *
 * The tables are the page; all else is made from them in the browser. A plot is a figure that says which columns of the table
 * beside it are drawn how; the numbers are taken from the cells, so that no text of a program is ever part of a script,
 * and a reader that cannot see the plot has the table. Without scripts there are the tables only.
 * Columns are left out as in text; the constant value of a folding column of text is above the table. */
#include "view/html.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "base/version.h"
#include "view/view.h"

enum { LONG_TABLE = 24 }; /* rows; with a plot above it, a longer one is folded */

/* Text, also inside of quotes; controls and bytes that are no UTF-8 are made visible. */
static void html_escaped(const char *s, FILE *out)
{
    while (*s) {
        char one[5] = { *s };
        uint32_t c;
        size_t n = utf8_decode(s, &c);

        if (*s == '&' || *s == '<' || *s == '>' || *s == '"' || *s == '\'') {
            fprintf(out, "&#%d;", *s);
        } else {
            memcpy(one, s, n);
            utf8_show(one, SIZE_MAX, out);
        }
        s += n ? n : 1;
    }
}

static void html_element(const char *name, const char *text, FILE *out)
{
    fprintf(out, "<%s>", name);
    html_escaped(text, out);
    fprintf(out, "</%s>\n", name);
}

static void html_attribute(const char *name, const char *value, FILE *out)
{
    fprintf(out, " %s=\"", name);
    html_escaped(value, out);
    fputc('"', out);
}

/* The numbers that shown columns have in the page; SIZE_MAX: not shown. To be freed. */
static size_t *html_places(const struct table *t)
{
    size_t *place = mem_alloc(t->columns, sizeof *place), next = 0;

    for (size_t i = 0; i < t->columns; i++)
        place[i] = view_column_shown(t, i) ? next++ : SIZE_MAX;
    return place;
}

/* Writes the places of those of the named columns that are shown, and returns how many; out may be NULL. */
static size_t columns_named(const struct table *t, const size_t *place, const char *names, FILE *out)
{
    size_t found = 0;

    for (const char *s = names; *s; s += strspn(s, " ")) {
        size_t i = table_column(t, s);
        if (i < t->columns && place[i] != SIZE_MAX) {
            if (out)
                fprintf(out, "%s%zu", found ? " " : "", place[i]);
            found++;
        }
        s += strcspn(s, " ");
    }
    return found;
}

static bool plot_wanted(const struct table *t, const struct plot *p, const size_t *place)
{
    return !t->records && t->rows && t->rows >= p->least && columns_named(t, place, p->over, NULL)
           && columns_named(t, place, p->of, NULL);
}

static size_t plots_wanted(const struct table *t)
{
    size_t *place = html_places(t), n = 0;

    for (const struct plot *p = t->plot; p && p->kind != PLOT_NONE; p++)
        n += plot_wanted(t, p, place);
    free(place);
    return n;
}

static void plot_show(const struct table *t, const struct plot *p, const size_t *place, FILE *out)
{
    int number = (int)(p - t->plot);
    static const char *const KINDS[] = { [PLOT_LINES] = "lines",
                                         [PLOT_STEPS] = "steps",
                                         [PLOT_STACK] = "stack",
                                         [PLOT_BARS] = "bars",
                                         [PLOT_MATRIX] = "matrix" };

    fprintf(out, "<figure data-plot=\"%s\" data-over=\"", KINDS[p->kind]);
    columns_named(t, place, p->over, out);
    fputs("\" data-of=\"", out);
    columns_named(t, place, p->of, out);
    fputc('"', out);
    if (p->unit)
        html_attribute("data-unit", p->unit, out);
    if (p->error && columns_named(t, place, p->error, NULL)) {
        fputs(" data-error=\"", out);
        columns_named(t, place, p->error, out);
        fputc('"', out);
    }
    if (p->most)
        fprintf(out, " data-most=\"%zu\"", p->most);
    if (p->ideal)
        fputs(" data-ideal=\"yes\"", out);
    fprintf(out, " aria-labelledby=\"%s-plot-%d\">\n", t->name, number);
    fprintf(out, "<figcaption id=\"%s-plot-%d\">", t->name, number);
    html_escaped(p->title, out);
    fputs("</figcaption>\n</figure>\n", out);
}

static void plots_show(const struct table *t, const size_t *place, FILE *out)
{
    fputs("<div class=\"plots\">\n", out);
    for (const struct plot *p = t->plot; p->kind != PLOT_NONE; p++)
        if (plot_wanted(t, p, place))
            plot_show(t, p, place, out);
    fputs("</div>\n", out);
}

/* How a cell looks, by its type and by what it says. */
static const char *class_of(const struct cell *c, enum cell_type type)
{
    if (type == CELL_CODE)
        return "code";
    if (type == CELL_VERDICT && !c->empty)
        return !strcmp(c->text, "better") ? "better" : !strcmp(c->text, "worse") ? "worse" : "";
    return type == CELL_SHARE ? "number share" : cell_is_text(type) ? "" : "number";
}

/* The number by which a browser sorts and draws stands in an attribute, where the text does not say it. */
static void html_cell_show(const struct cell *c, enum cell_type type, bool is_heading, FILE *out)
{
    char buffer[40], number[32];
    const char *class = class_of(c, type);

    fputs(is_heading ? "<th scope=\"row\"" : "<td", out);
    if (*class)
        fprintf(out, " class=\"%s\"", class);
    if (!c->empty && cell_is_real(type))
        fprintf(out, " data-value=\"%s\"", view_real(c->real, number));
    else if (!c->empty && !cell_is_text(type))
        fprintf(out, " data-value=\"%llu\"", (unsigned long long)c->count);
    if (type == CELL_SHARE && !c->empty && c->real >= 0)
        fprintf(out, " style=\"--part: %.4f\"", c->real < 1 ? c->real : 1);
    fputc('>', out);
    html_escaped(view_cell(c, type, buffer), out);
    fputs(is_heading ? "</th>" : "</td>", out);
}

/* The column that names a row: its first text. */
static size_t heading_of(const struct table *t, const size_t *place)
{
    for (size_t i = 0; i < t->columns; i++)
        if (place[i] != SIZE_MAX && t->column[i].type == CELL_TEXT)
            return i;
    return SIZE_MAX;
}

static void caption_show(const struct table *t, FILE *out)
{
    fprintf(out, "<caption id=\"%s-caption\">", t->name);
    html_escaped(t->title, out);
    fprintf(out, ": %zu row%s</caption>\n", t->rows, t->rows == 1 ? "" : "s");
}

static void html_grid_show(const struct table *t, const size_t *place, FILE *out)
{
    size_t heading = heading_of(t, place);

    fputs("<table>\n", out);
    caption_show(t, out);
    fputs("<thead><tr>", out);
    for (size_t i = 0; i < t->columns; i++) {
        if (place[i] == SIZE_MAX)
            continue;
        fprintf(out, "<th scope=\"col\"%s>", cell_is_text(t->column[i].type) ? "" : " class=\"number\"");
        html_escaped(t->column[i].title, out);
        fputs("</th>", out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
    for (size_t row = 0; row < t->rows; row++) {
        fputs("<tr>", out);
        for (size_t i = 0; i < t->columns; i++)
            if (place[i] != SIZE_MAX)
                html_cell_show(&t->cell[row * t->columns + i], t->column[i].type, i == heading, out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody>\n</table>\n", out);
}

static void html_records_show(const struct table *t, FILE *out)
{
    char buffer[40];

    for (size_t row = 0; row < t->rows; row++) {
        fputs("<table class=\"record\">\n", out);
        if (row == 0)
            caption_show(t, out);
        fputs("<tbody>\n", out);
        for (size_t i = 0; i < t->columns; i++) {
            const struct cell *c = &t->cell[row * t->columns + i];
            if (c->empty)
                continue;
            fputs("<tr><th scope=\"row\">", out);
            html_escaped(t->column[i].title, out);
            fputs("</th><td>", out);
            html_escaped(view_cell(c, t->column[i].type, buffer), out);
            fputs("</td></tr>\n", out);
        }
        fputs("</tbody>\n</table>\n", out);
    }
}

/* What every row says of the columns of text that are left out for it. */
static void same_show(const struct table *t, const size_t *place, FILE *out)
{
    for (size_t i = 0; i < t->columns; i++) {
        if (place[i] != SIZE_MAX || t->column[i].type != CELL_TEXT || !t->rows || t->cell[i].empty)
            continue;
        fputs("<p class=\"same\"><b>", out);
        html_escaped(t->column[i].title, out);
        fputs("</b> ", out);
        html_escaped(t->cell[i].text, out);
        fputs("</p>\n", out);
    }
}

static void html_rows_show(const struct table *t, const size_t *place, bool fold, FILE *out)
{
    if (fold)
        fprintf(out, "<details>\n<summary>All %zu rows</summary>\n", t->rows);
    fprintf(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"%s-caption\">\n", t->name);
    t->records ? html_records_show(t, out) : html_grid_show(t, place, out);
    fputs(fold ? "</div>\n</details>\n" : "</div>\n", out);
}

static void html_table_show(const struct table *t, FILE *out)
{
    size_t *place = html_places(t), plots = *html_library ? plots_wanted(t) : 0;

    fprintf(out, "<section id=\"%s\">\n", t->name);
    html_element("h2", t->title, out);
    if (plots)
        plots_show(t, place, out);
    if (!t->records)
        same_show(t, place, out);
    if (t->rows)
        html_rows_show(t, place, plots && t->rows > LONG_TABLE, out);
    else
        html_element("p", "none", out);
    for (size_t i = 0; i < t->notes; i++) {
        fputs("<p class=\"note\">", out);
        html_escaped(t->note[i], out);
        fputs("</p>\n", out);
    }
    fputs("</section>\n", out);
    free(place);
}

static void head_show(const char *title, FILE *out)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
          "<meta charset=\"utf-8\"/>\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
          "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
          "<meta name=\"generator\" content=\"peet " PEET_VERSION "\"/>\n"
          "<link rel=\"icon\" href=\"data:,\"/>\n",
          out);
    html_element("title", title, out);
    fprintf(out, "<style>\n%s</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">To the tables</a>\n<header>\n",
            html_style);
    html_element("h1", title, out);
}

static void contents_show(const struct result *r, FILE *out)
{
    if (r->first == r->last)
        return;
    fputs("<nav aria-label=\"Tables\">\n<ul>\n", out);
    for (const struct table *t = r->first; t; t = t->next) {
        fprintf(out, "<li><a href=\"#%s\">", t->name);
        html_escaped(t->title, out);
        fputs("</a></li>\n", out);
    }
    fputs("</ul>\n</nav>\n", out);
}

static int html_show(const struct result *r, const struct view_style *style, FILE *out, struct peet_err *err)
{
    size_t plots = 0;

    (void)style;
    (void)err;
    for (const struct table *t = r->first; t; t = t->next)
        plots += plots_wanted(t);
    head_show(r->title ? r->title : r->first ? r->first->title : "Nothing", out);
    contents_show(r, out);
    fputs("</header>\n<main id=\"main\" tabindex=\"-1\">\n", out);
    if (plots && !*html_library)
        html_element(
            "p", "Plots were left out when this peet was built: D3 was not there. Install node-d3 and build it again.",
            out);
    for (const struct table *t = r->first; t; t = t->next)
        html_table_show(t, out);
    fputs("</main>\n<footer><p>peet " PEET_VERSION "</p></footer>\n", out);
    if (plots && *html_library)
        fprintf(out, "<noscript><p>Plots and sorting need scripts.</p></noscript>\n<script>\n%s</script>\n",
                html_library);
    fprintf(out, "<script>\n%s</script>\n</body>\n</html>\n", html_script);
    return 0;
}

const struct view view_html = {
    .name = "html",
    .summary = "one page with plots, for a browser",
    .show = html_show,
};
