/* SPDX-License-Identifier: MIT */
/* The result table: what every study yields and every view shows. Studies know nothing of text, JSON or HTML.
 *
 * A result is a list of named tables; a table has typed columns and rows of cells. Strings are copied. */
#ifndef STUDY_TABLE_H
#define STUDY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cell_type {
    CELL_TEXT,
    CELL_COUNT,   /* uint64_t, shown with thousands separators in text */
    CELL_HEX,     /* uint64_t: an address */
    CELL_REAL,    /* double */
    CELL_PERCENT, /* double, 0.25 is 25 % */
    CELL_BYTES,   /* uint64_t, shown as 1.5 MiB in text */
    CELL_SHARE,   /* as percent: the part of a whole that a row has; views for people draw it, too */
    CELL_CODE,    /* text whose blanks matter */
    CELL_VERDICT, /* text; "better" and "worse" catch the eye */
};

/* A column of a table. */
struct column {
    const char *name;  /* a key for JSON and CSV: lower case, words joined by '_' */
    const char *title; /* for people */
    enum cell_type type;
    bool fold; /* text leaves the column out when it says the same in every row: the file, the process */
};

/* How a table is best looked at, for views that can draw; all others show the table alone. */
enum plot_kind {
    PLOT_NONE,
    PLOT_LINES, /* a point for each row, over a column of numbers */
    PLOT_STEPS, /* a value that lasts until the next row's; rows are in the order of `over` */
    PLOT_STACK, /* a bar for each row, in which the columns are stacked */
    PLOT_BARS,  /* a bar for each row, named by columns of text; the longest first; several columns overlap */
    PLOT_MATRIX, /* a cell for each row, by two columns of text: the one that names its row, and the one that names its column */
};

/* How a table is drawn. */
struct plot {
    enum plot_kind kind;
    const char *title;
    const char *over;  /* the column along which it goes; of PLOT_BARS, those that name a row, with blanks between */
    const char *of;    /* names of the columns that are shown, with blanks between; a stack's in their order */
    const char *unit;  /* what their numbers count, for the axis; NULL: the title of the only column */
    const char *error; /* lines, bars of one column: the column that says ± how much, if the table has it; or NULL */
    bool ideal;        /* lines: also a line for the first row's value growing in proportion to `over` */
    size_t least;      /* rows without which there is no plot */
    size_t most;       /* rows that are shown at most; 0: all */
};

/* A cell. Its column says which member it has. */
struct cell {
    union {
        char *text;
        uint64_t count;
        double real;
    };
    bool empty; /* it has no value */
};

/* A table of a result. */
struct table {
    char *name, *title;
    char **note; /* what a reader must know: assumptions, error bars */
    size_t notes;
    const struct column *column;
    size_t columns;
    struct cell *cell; /* rows × columns, row by row */
    size_t rows;
    size_t filled;           /* cells of the row that is being made */
    bool records;            /* text shows each row as lines "title  value"; set by the caller that makes the table */
    const struct plot *plot; /* also to be set: ends with PLOT_NONE and must outlive the result; or NULL */
    struct table *next;
};

/* Tables, in the order in which they are shown. */
struct result {
    char *title;                /* what was asked about, for a page's heading; or NULL */
    struct table *first, *last; /* NULL: there is none */
};

/* Says what the result is about: the trace, the program. */
void result_title(struct result *r, const char *title);

/* Adds a table; columns ends with an entry whose name is NULL and must outlive the result. The name is a key like those
 * of columns, and no other table of the result has it. Start with an empty result, { 0 }. */
struct table *result_table(struct result *r, const char *name, const char *title, const struct column *columns);
/* Moves all tables of `from`, whose names `r` does not have, to the end of r, and its title if r has none. */
void result_append(struct result *r, struct result *from);
void result_release(struct result *r);

/* The number of the column so named, whose name may be followed by a blank; t->columns when there is none. */
size_t table_column(const struct table *t, const char *name);

bool cell_is_text(enum cell_type type); /* what table_text fills */
bool cell_is_real(enum cell_type type); /* and what table_real does; all others are counts */

/* Fill a row cell by cell, from left to right; the type must be the column's. */
void table_text(struct table *t, const char *text); /* NULL: an empty cell */
void table_count(struct table *t, uint64_t count);  /* also for hex and bytes */
void table_real(struct table *t, double real);      /* also for percent and share */
void table_none(struct table *t);                   /* an empty cell */
void table_note(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
