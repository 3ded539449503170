/* SPDX-License-Identifier: MIT */
/* Any bytes as the cells of a result, in every view. Text and CSV have no control characters, and no cell of CSV begins
 * as a formula does. */
#include "fuzz.h"

#include <ctype.h>

#include "study/table.h"
#include "view/view.h"

static const struct column COLUMNS[] = {
    { "name", "name", CELL_TEXT, false },
    { "code", "code", CELL_CODE, false },
    { "count", "count", CELL_COUNT, false },
    { "part", "part", CELL_SHARE, false },
    { "verdict", "verdict", CELL_VERDICT, true },
    { "bytes", "bytes", CELL_BYTES, false },
    { 0 },
};
static const struct plot BARS[] = {
    { .kind = PLOT_BARS, .title = "bars", .over = "name code", .of = "part", .most = 20 },
    { 0 },
};

/* The next piece of the input, as a text without zeros that is to be freed. */
static char *next_text(const uint8_t **data, size_t *size)
{
    size_t n = *size ? strnlen((const char *)*data, *size) : 0;
    char *text = strndup((const char *)*data, n);

    n += n < *size;
    *data += n;
    *size -= n;
    return text;
}

static void fill(struct table *t, const uint8_t *data, size_t size)
{
    while (size) {
        for (int i = 0; COLUMNS[i].name; i++) {
            char *text = next_text(&data, &size);
            if (cell_is_text(COLUMNS[i].type))
                table_text(t, text);
            else if (cell_is_real(COLUMNS[i].type))
                table_real(t, strtod(text, NULL));
            else
                table_count(t, strtoull(text, NULL, 0));
            free(text);
        }
    }
}

/* What a field of CSV says first; a sign is fine before a number. */
static void look_at_field(const char *field)
{
    if (*field && strchr("=@", *field))
        abort();
    if (*field && strchr("+-", *field) && !isdigit((unsigned char)field[1]) && field[1] != '.')
        abort();
}

static void look_at_fields(const char *text)
{
    while (*text) {
        bool is_quoted = *text == '"';
        text += is_quoted;
        look_at_field(text);
        for (; is_quoted && *text && (*text != '"' || text[1] == '"'); text++)
            text += *text == '"';
        text += strcspn(text, ",\n");
        text += *text != '\0';
    }
}

static void look(const char *name, const char *text, size_t bytes)
{
    bool is_csv = !strcmp(name, "csv");

    for (size_t i = 0; i < bytes && (is_csv || !strcmp(name, "text")); i++)
        if (iscntrl((unsigned char)text[i]) && text[i] != '\n')
            abort();
    if (is_csv)
        look_at_fields(text);
}

/* A page is long, for it has a library in it, and is not looked at. */
static void show(const char *name, const struct result *r, int width)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = strcmp(name, "html") ? open_memstream(&text, &bytes) : fopen("/dev/null", "w");
    struct peet_err err;

    if (!out || view_show_in(name, r, &(struct view_style){ .width = width, .bars = width > 0 }, out, &err) < 0)
        abort();
    fclose(out);
    if (text)
        look(name, text, bytes);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct result r = { 0 };
    char *title = next_text(&data, &size), *note = next_text(&data, &size);

    result_title(&r, title);
    struct table *t = result_table(&r, "table", "Table", COLUMNS);
    t->plot = BARS;
    t->records = size % 5 == 0;
    table_note(t, "%s", note);
    fill(t, data, size);
    for (size_t i = 0; view_at(i); i++)
        show(view_at(i)->name, &r, size % 2 ? 60 : 0);
    result_release(&r);
    free(title);
    free(note);
    return 0;
}
