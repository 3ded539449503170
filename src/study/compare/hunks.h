/* SPDX-License-Identifier: MIT */
/* Edit scripts for people: hunks folded by function and loop, and side by side. */
#ifndef STUDY_COMPARE_HUNKS_H
#define STUDY_COMPARE_HUNKS_H

#include "study/compare/event_stream.h"
#include "study/table.h"

/* What differs between two traces, folded. */
struct hunk_report {
    struct code_match *match;
    const char *unit;            /* plural of what the events are: "instructions" */
    uint64_t top;                /* rows of a table, and hunks side by side, at most; 0: all */
    struct table *edits, *hunks; /* to be filled */
    /* by number of a class; made when a class is first looked up */
    struct class_place *place;
    uint32_t places;
};

/* Adds the tables `edits` and `hunks` to a result that is empty, or has them already. */
void hunk_report_begin(struct hunk_report *r, struct code_match *m, const char *unit, uint64_t top, struct result *ret);

/* Adds what makes stream b of stream a. */
void hunk_report_add(struct hunk_report *r, const struct event_stream *a, const struct event_stream *b,
                     const struct edit_script *script);
void hunk_report_end(struct hunk_report *r);

#endif
