/* SPDX-License-Identifier: MIT */
/* The report of a profile while it is made; shared by its files. */
#ifndef STUDY_PROFILE_REPORT_REPORT_IN_H
#define STUDY_PROFILE_REPORT_REPORT_IN_H

#include "study/profile/profile.h"
#include "study/profile/totals.h"

enum { REPORT_TEXT = 320 };

#define REPORT_UNKNOWN UINT32_MAX

/* How names match --focus: whole names; if there is none, names that contain it. */
enum focus { FOCUS_OFF, FOCUS_WHOLE, FOCUS_PART, FOCUS_NOTHING };

/* The waits of a line for one object. */
struct report_wait {
    uint32_t line, object; /* indices in totals.line, objects; object REPORT_UNKNOWN: none contains what it waits for */
    uint8_t kind, as;      /* as in struct profile_wait */
    uint64_t cycles;       /* sum of profile_wait.cycles */
};

/* A report while it is made. */
struct profile_report {
    const struct profile *p;
    const struct profile_wants *wants;
    struct totals t;
    struct result *result;    /* gets the tables */
    struct report_wait *wait; /* falling by cycles */
    size_t waits;
    enum focus focus;
    bool on_objects, on_functions; /* there are objects, functions that match */
};

double report_part(uint64_t a, uint64_t b);
const char *report_object(const struct profile_report *r, uint32_t object);
const char *report_base_name(const char *path);

/* "file.c:12"; the function's name where the line is unknown. */
const char *report_line(const struct profile_report *r, uint32_t line, char buffer[REPORT_TEXT]);
enum profile_cause report_cause(const uint64_t stall[CAUSES]); /* with most stall */

/* Whether an object or function is in focus; either may be NULL. */
bool report_wants(const struct profile_report *r, const char *object, const char *function);
size_t report_rows(const struct profile_report *r); /* rows of a table at most */

/* Whether a total has too little stall and wait for its row to be shown; false if all rows are wanted. */
bool report_is_small(const struct profile_report *r, const struct total *x);

/* report_time.c */
uint64_t report_time(const struct profile *p); /* cycles of all hardware threads, except idle ones */
/* The kind of time with the largest share, as text with that share; NULL: it is `reported`. To be freed. */
char *report_largest_time(const struct profile *p, enum time_kind reported);
void report_add_time(struct profile_report *r);
void report_find_waits(struct profile_report *r);
void report_add_waits(struct profile_report *r);
const char *report_wait_kind(const struct report_wait *w);  /* "lock" */
const char *report_wait_cause(const struct report_wait *w); /* "another thread has it" */
bool report_wants_wait(const struct profile_report *r, const struct report_wait *w);

/* report_tables.c */
void report_add_procedures(struct profile_report *r);
void report_add_objects(struct profile_report *r);
void report_add_cross(struct profile_report *r);
void report_add_lines(struct profile_report *r);
void report_add_bins(struct profile_report *r);

/* report_pairs.c */
void report_add_evictions(struct profile_report *r);
void report_add_sharing(struct profile_report *r);

/* report_programs.c: of several programs */
void report_add_programs(struct profile_report *r);
void report_add_program_pairs(struct profile_report *r);

/* report_members.c */
void report_add_members(struct profile_report *r);

/* report_estimates.c: of a sampled profile */
void report_add_estimates(struct profile_report *r);

#endif
