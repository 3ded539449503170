/* SPDX-License-Identifier: MIT */
/* The result table and its views. */
#include <math.h>
#include <stdlib.h>

#include "study/table.h"
#include "tests/unit/check.h"
#include "view/html.h"
#include "view/view.h"

static const struct column COLUMNS[] = {
    { "file", "file", CELL_TEXT, true },     { "name", "name", CELL_TEXT, false },
    { "count", "count", CELL_COUNT, false }, { "addr", "address", CELL_HEX, false },
    { "real", "real", CELL_REAL, false },    { "rate", "rate", CELL_PERCENT, false },
    { "bytes", "size", CELL_BYTES, false },  { 0 },
};

static const struct column PAIR[] = { { "key", "key", CELL_TEXT, false },
                                      { "value", "value", CELL_COUNT, false },
                                      { 0 } };

static void row(struct table *t, const char *file, const char *name, uint64_t n, double x)
{
    table_text(t, file);
    table_text(t, name);
    table_count(t, n);
    table_count(t, n);
    table_real(t, x);
    table_real(t, x);
    table_count(t, n);
}

/* What a view makes of a result; to be freed. */
static char *shown(const char *view, const struct result *r, int width)
{
    struct view_style style = { .width = width };
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    CHECK_EQ(view_find(view)->show(r, &style, f, NULL), 0);
    fclose(f);
    return text;
}

static void shows(const char *view, const struct result *r, int width, const char *expected)
{
    char *text = shown(view, r, width);

    CHECK_EQ(text, expected);
    free(text);
}

static struct result pair(const char *key, uint64_t value)
{
    struct result r = { 0 };
    struct table *t = result_table(&r, "pairs", "Pairs", PAIR);

    table_text(t, key);
    table_count(t, value);
    return r;
}

static void rows_are_filled_from_left_to_right(void)
{
    struct result r = { 0 };
    struct table *t = result_table(&r, "t", "T", PAIR);

    for (uint64_t i = 0; i < 1000; i++) {
        i % 3 ? table_text(t, "x") : table_none(t);
        CHECK_EQ(t->filled, 1);
        table_count(t, i);
    }
    CHECK_EQ(t->rows, 1000);
    CHECK_EQ(t->filled, 0);
    for (uint64_t i = 0; i < 1000; i++) {
        CHECK_EQ(t->cell[2 * i].empty, i % 3 == 0);
        CHECK_EQ(t->cell[2 * i + 1].count, i);
    }
    table_text(t, "half a row is freed, too");
    result_release(&r);
    CHECK(!r.first && !r.last);
}

static void text_is_aligned_and_has_separators(void)
{
    struct result r = { 0 };
    struct table *t = result_table(&r, "t", "Things", COLUMNS);

    row(t, "f", "a", 1234567, 0.25);
    row(t, "f", "long name", 12, NAN);
    table_note(t, "seen %d", 2);
    shows("text", &r, 0,
          "Things\n"
          "  name           count   address   real     rate     size\n"
          "  a          1,234,567  0x12d687  0.250  25.00 %  1.2 MiB\n"
          "  long name         12       0xc      -        -     12 B\n"
          "  note: seen 2\n");
    result_release(&r);
}

static void text_shows_a_folding_column_only_when_rows_differ_in_it(void)
{
    struct result r = { 0 };
    struct table *t = result_table(&r, "t", "Things", COLUMNS);

    row(t, "f", "a", 1, 1);
    row(t, "g", "a", 1, 1);
    char *text = shown("text", &r, 0);
    CHECK(strstr(text, "  file  name"));
    free(text);
    result_release(&r);
}

static void text_leaves_out_columns_that_are_empty_throughout(void)
{
    struct result r = pair(NULL, 5);

    shows("text", &r, 0, "Pairs\n  value\n      5\n");
    result_release(&r);
}

static void text_shows_records_as_lines_and_says_when_there_is_nothing(void)
{
    struct result r = pair("k", 4096);

    r.first->records = true;
    result_table(&r, "more", "More", PAIR);
    shows("text", &r, 0, "Pairs\n  key    k\n  value  4,096\n\nMore: none\n");
    result_release(&r);
}

static void text_makes_controls_visible_and_knows_wide_characters(void)
{
    struct result r = pair("a\x1b[1m\n\xff\u202e", 1);

    table_text(r.first, "日本 é e\u0301");
    table_count(r.first, 2);
    shows("text", &r, 0,
          "Pairs\n"
          "  key                     value\n"
          "  a\\x1b[1m\\n\\xff\\u{202e}      1\n"
          "  日本 é e\u0301                    2\n");
    result_release(&r);
}

static void a_narrow_terminal_cuts_text_but_no_numbers(void)
{
    struct result r = pair("a text that is much longer than the terminal", 123456789);

    shows("text", &r, 40,
          "Pairs\n"
          "  key                              value\n"
          "  a text that is much long…  123,456,789\n");
    result_release(&r);
}

/* What the text is in a style. */
static void shows_in(const struct result *r, const struct view_style *style, const char *expected)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    CHECK_EQ(view_text.show(r, style, f, NULL), 0);
    fclose(f);
    CHECK_EQ(text, expected);
    free(text);
}

static const struct column SHARES[] = { { "name", "name", CELL_TEXT, false },
                                        { "part", "part", CELL_SHARE, false },
                                        { "verdict", "verdict", CELL_VERDICT, false },
                                        { "code", "code", CELL_CODE, false },
                                        { 0 } };

static struct result shares(void)
{
    static const struct {
        const char *name, *verdict, *code;
        double part;
    } ROWS[] = { { "a", "better", "  x = 1;", 0.5 }, { "b", "worse", NULL, 0.01 }, { "c", "same", "}", 1 } };
    struct result r = { 0 };
    struct table *t = result_table(&r, "shares", "Shares", SHARES);

    for (size_t i = 0; i < 3; i++) {
        table_text(t, ROWS[i].name);
        table_real(t, ROWS[i].part);
        table_text(t, ROWS[i].verdict);
        table_text(t, ROWS[i].code);
    }
    return r;
}

static void shares_have_bars_and_verdicts_have_colours_where_the_style_says_so(void)
{
    struct result r = shares();

    shows_in(&r, &(struct view_style){ 0 },
             "Shares\n"
             "  name      part  verdict  code\n"
             "  a      50.00 %  better     x = 1;\n"
             "  b       1.00 %  worse\n"
             "  c     100.00 %  same     }\n");
    shows_in(&r, &(struct view_style){ .bars = true },
             "Shares\n"
             "  name      part           verdict  code\n"
             "  a      50.00 % ████      better     x = 1;\n"
             "  b       1.00 % ▏         worse\n"
             "  c     100.00 % ████████  same     }\n");
    shows_in(&r, &(struct view_style){ .colour = true },
             "\033[1mShares\033[0m\n"
             "  \033[2mname\033[0m      \033[2mpart\033[0m  \033[2mverdict\033[0m  \033[2mcode\033[0m\n"
             "  a      \033[31m50.00 %\033[0m  \033[32mbetter\033[0m     x = 1;\n"
             "  b       1.00 %  \033[31mworse\033[0m\n"
             "  c     \033[31m100.00 %\033[0m  \033[2msame\033[0m     }\n");
    result_release(&r);
}

static void a_narrow_terminal_gives_up_bars_then_the_last_columns_and_says_so(void)
{
    struct result r = shares();

    shows_in(&r, &(struct view_style){ .bars = true, .width = 40 },
             "Shares\n"
             "  name      part  verdict  code\n"
             "  a      50.00 %  better     x = 1;\n"
             "  b       1.00 %  worse\n"
             "  c     100.00 %  same     }\n");
    shows_in(&r, &(struct view_style){ .bars = true, .width = 20 },
             "Shares\n"
             "  name      part\n"
             "  a      50.00 %\n"
             "  b       1.00 %\n"
             "  c     100.00 %\n"
             "  too narrow for: verdict, code\n");
    result_release(&r);
}

static void many_rows_over_time_are_one_line(void)
{
    static const struct column OVER_TIME[] = { { "from", "from", CELL_COUNT, false },
                                               { "rate", "rate", CELL_PERCENT, false },
                                               { 0 } };
    static const struct plot PLOTS[] = { { .kind = PLOT_STEPS, .title = "p", .over = "from", .of = "rate" }, { 0 } };
    struct result r = { 0 };
    struct table *t = result_table(&r, "course", "Course", OVER_TIME);

    t->plot = PLOTS;
    for (uint64_t i = 0; i < 32; i++) {
        table_count(t, i);
        table_real(t, (double)i / 31);
    }
    shows_in(&r, &(struct view_style){ 0 },
             "Course\n  rate from 0.00 % to 100.00 %; all 32 rows are in --format csv, json and html\n");
    shows_in(&r, &(struct view_style){ .bars = true, .width = 10 },
             "Course\n  ▁▂▃▄▅▆▇█\n"
             "  rate from 0.00 % to 100.00 %; all 32 rows are in --format csv, json and html\n");
    result_release(&r);
}

static void sizes_round_to_the_unit_that_people_say(void)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        { 0, "0 B" },
        { 1023, "1023 B" },
        { 1024, "1.0 KiB" },
        { 1536, "1.5 KiB" },
        { (1 << 20) - 1, "1.0 MiB" },
        { 5ull << 30, "5.0 GiB" },
        { UINT64_MAX, "16.0 EiB" },
    };
    static const struct column SIZE[] = { { "size", "size", CELL_BYTES, false }, { 0 } };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct result r = { 0 };
        table_count(result_table(&r, "t", "T", SIZE), cases[i].bytes);
        r.first->records = true;
        char expected[40];
        snprintf(expected, sizeof expected, "T\n  size  %s\n", cases[i].text);
        shows("text", &r, 0, expected);
        result_release(&r);
    }
}

static void json_escapes_everything_and_keeps_every_digit(void)
{
    struct result r = { 0 };
    struct table *t = result_table(&r, "t", "T", COLUMNS);

    row(t, "a\"b\\c\n\x01", "\xff€\xed\xa0\x80", UINT64_MAX, 0.1);
    row(t, "", NULL, 0, INFINITY);
    table_note(t, "say \"hi\"");
    result_table(&r, "u", "U", PAIR);
    shows("json", &r, 0,
          "{\n"
          "  \"t\": {\n"
          "    \"notes\": [\"say \\\"hi\\\"\"],\n"
          "    \"rows\": [\n"
          "      {\"file\": \"a\\\"b\\\\c\\n\\u0001\", \"name\": \"\\ufffd€\\ufffd\\ufffd\\ufffd\","
          " \"count\": 18446744073709551615, \"addr\": \"0xffffffffffffffff\", \"real\": 0.1, \"rate\": 0.1,"
          " \"bytes\": 18446744073709551615},\n"
          "      {\"file\": \"\", \"name\": null, \"count\": 0, \"addr\": \"0x0\", \"real\": null, \"rate\": null,"
          " \"bytes\": 0}\n"
          "    ]\n"
          "  },\n"
          "  \"u\": {\n"
          "    \"notes\": [],\n"
          "    \"rows\": []\n"
          "  }\n"
          "}\n");
    result_release(&r);
}

static void csv_of_one_table_is_a_header_and_its_rows(void)
{
    struct result r = pair("a,b", 1000000);

    table_text(r.first, "say \"hi\"\n");
    table_count(r.first, 2);
    table_text(r.first, "");
    table_none(r.first);
    table_none(r.first);
    table_count(r.first, 3);
    shows("csv", &r, 0, "key,value\n\"a,b\",1000000\n\"say \"\"hi\"\"\\n\",2\n\"\",\n,3\n");
    result_release(&r);
}

static void no_cell_of_csv_is_a_formula_or_changes_a_terminal(void)
{
    static const char *const TEXTS[][2] = {
        { "=1+1", "'=1+1" },
        { "+x", "'+x" },
        { "-x", "'-x" },
        { "@x,y", "\"'@x,y\"" },
        { "-5", "-5" },
        { "+1.5e3", "+1.5e3" },
        { "-.5", "-.5" },
        { "-5+1", "'-5+1" },
        { "-", "'-" },
        { "\t=1", "\\t=1" },
        { "\r=1", "\\r=1" },
        { "a\nb", "a\\nb" },
        { "\x1b[31m", "\\x1b[31m" },
        { "\xff", "\\xff" },
        { "\u202e", "\\u{202e}" },
        { "a=1", "a=1" },
        { " =1", "\" =1\"" },
    };

    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        struct result r = pair(TEXTS[i][0], 1);
        char expected[80];
        snprintf(expected, sizeof expected, "key,value\n%s,1\n", TEXTS[i][1]);
        shows("csv", &r, 0, expected);
        result_release(&r);
    }
}

static void csv_of_several_tables_names_the_table_in_each_line(void)
{
    struct result r = pair("a", 1);
    struct table *t = result_table(&r, "more", "More", PAIR);

    table_text(t, "b");
    table_count(t, 2);
    shows("csv", &r, 0, "table,key,value\npairs,a,1\n\ntable,key,value\nmore,b,2\n");
    result_release(&r);
}

static void html_escapes_every_text(void)
{
    static const char HARM[] = "</script><script>\"'&\x1b\xff\u202e€";
    static const char SAFE[] = "&#60;/script&#62;&#60;script&#62;&#34;&#39;&#38;\\x1b\\xff\\u{202e}€";
    static const struct column HARMFUL[] = { { "file", HARM, CELL_TEXT, true },
                                             { "key", HARM, CELL_TEXT, false },
                                             { 0 } };
    static const struct plot PLOTS[] = { { PLOT_BARS, HARM, "key", "key", .unit = HARM }, { 0 } };
    struct result r = { 0 };
    struct table *t = result_table(&r, "t", HARM, HARMFUL);

    t->plot = PLOTS;
    table_text(t, HARM);
    table_text(t, HARM);
    table_note(t, "%s", HARM);
    result_title(&r, HARM);
    for (int records = 0; records < 2; records++) {
        t->records = records;
        char *text = shown("html", &r, 0);
        size_t found = 0;
        for (const char *s = text; (s = strstr(s, SAFE)); s++)
            found++;
        CHECK(found >= (records ? 8 : 9));
        CHECK(!strstr(text, "</script><script>"));
        CHECK(!strstr(text, "\xff") && !strstr(text, "\x1b") && !strstr(text, "\u202e"));
        free(text);
    }
    result_release(&r);
}

/* Whether a page has a figure with these attributes; without D3 it never has one. */
static bool has_figure(const struct result *r, const char *attributes)
{
    char *text = shown("html", r, 0);
    bool found = strstr(text, attributes);

    CHECK_EQ(strstr(text, "<figure") != NULL, found);
    free(text);
    return found;
}

static void html_draws_shown_columns_of_tables_that_have_rows_enough(void)
{
    static const struct plot PLOTS[] = {
        { PLOT_LINES, "A", "count", "gone real file rate", .error = "bytes", .least = 2 }, { 0 }
    };
    static const char EXPECTED[] = "data-plot=\"lines\" data-over=\"1\" data-of=\"3 4\" data-error=\"5\"";
    struct result r = { 0 };
    struct table *t = result_table(&r, "t", "T", COLUMNS);
    bool can_draw = *html_library;

    t->plot = PLOTS;
    CHECK(!has_figure(&r, EXPECTED));
    row(t, "f", "a", 1, 1);
    CHECK(!has_figure(&r, EXPECTED));
    row(t, "f", "b", 2, 2);
    CHECK_EQ(has_figure(&r, EXPECTED), can_draw);
    t->records = true;
    CHECK(!has_figure(&r, EXPECTED));
    result_release(&r);
}

static void columns_are_found_by_their_whole_names(void)
{
    struct result r = pair("a", 1);

    CHECK_EQ(table_column(r.first, "key"), 0);
    CHECK_EQ(table_column(r.first, "value more"), 1);
    CHECK_EQ(table_column(r.first, "val"), 2);
    CHECK_EQ(table_column(r.first, "values"), 2);
    result_release(&r);
}

static void reals_read_back_as_they_were(void)
{
    uint64_t state = 1;
    char buffer[32];

    for (int i = 0; i < 100000; i++) {
        double x;
        state = state * 6364136223846793005u + 1442695040888963407u;
        memcpy(&x, &state, sizeof x);
        if (isfinite(x) && !CHECK(strtod(view_real(x, buffer), NULL) == x))
            return;
    }
    CHECK_EQ(view_real(0.1, buffer), "0.1");
    CHECK_EQ(view_real(NAN, buffer), "");
}

static void every_view_is_found_by_its_name_and_has_a_summary(void)
{
    for (size_t i = 0; view_at(i); i++) {
        CHECK(view_find(view_at(i)->name) == view_at(i));
        CHECK(view_at(i)->summary[0] && view_at(i)->show);
    }
    CHECK(!view_find("zebra"));
}

static void a_result_that_cannot_be_written_is_an_error(void)
{
    struct result r = pair("a", 1);
    struct peet_err err;
    FILE *f = fopen("/dev/full", "w");

    if (f)
        CHECK_EQ(view_show("json", &r, f, &err), PEET_ERR_IO);
    CHECK_EQ(view_show("zebra", &r, stdout, &err), PEET_ERR_USAGE);
    CHECK_EQ(view_save("csv", &r, "/no/such/folder/x", &err), PEET_ERR_IO);
    CHECK(strstr(err.text, "/no/such/folder/x"));
    if (f)
        fclose(f);
    result_release(&r);
}

int main(void)
{
    RUN(rows_are_filled_from_left_to_right);
    RUN(text_is_aligned_and_has_separators);
    RUN(text_shows_a_folding_column_only_when_rows_differ_in_it);
    RUN(text_leaves_out_columns_that_are_empty_throughout);
    RUN(text_shows_records_as_lines_and_says_when_there_is_nothing);
    RUN(text_makes_controls_visible_and_knows_wide_characters);
    RUN(a_narrow_terminal_cuts_text_but_no_numbers);
    RUN(shares_have_bars_and_verdicts_have_colours_where_the_style_says_so);
    RUN(a_narrow_terminal_gives_up_bars_then_the_last_columns_and_says_so);
    RUN(many_rows_over_time_are_one_line);
    RUN(sizes_round_to_the_unit_that_people_say);
    RUN(json_escapes_everything_and_keeps_every_digit);
    RUN(csv_of_one_table_is_a_header_and_its_rows);
    RUN(no_cell_of_csv_is_a_formula_or_changes_a_terminal);
    RUN(csv_of_several_tables_names_the_table_in_each_line);
    RUN(html_escapes_every_text);
    RUN(html_draws_shown_columns_of_tables_that_have_rows_enough);
    RUN(columns_are_found_by_their_whole_names);
    RUN(reals_read_back_as_they_were);
    RUN(every_view_is_found_by_its_name_and_has_a_summary);
    RUN(a_result_that_cannot_be_written_is_an_error);
    return check_done();
}
