/* SPDX-License-Identifier: MIT */
/* What the parts of a report share. */
#ifndef STUDY_PROFILE_REPORT_REPORT_IN_H
#define STUDY_PROFILE_REPORT_REPORT_IN_H

#include "study/profile/profile.h"
#include "study/profile/totals.h"

enum { REPORT_TEXT = 320 };

#define REPORT_UNKNOWN UINT32_MAX

/* How names have to match what one looks at: if nothing is called so, whatever has it in its name is meant. */
enum focus { FOCUS_OFF, FOCUS_WHOLE, FOCUS_PART, FOCUS_NOTHING };

struct report_wait {       /* all calls of a line that wait for one object */
    uint32_t line, object; /* object: REPORT_UNKNOWN: what is waited for lies in none */
    uint8_t kind, as;      /* as in struct profile_wait */
    uint64_t cycles;
};

struct profile_report {
    const struct profile *p;
    const struct profile_wants *wants;
    struct totals t;
    struct result *result;
    struct report_wait *wait; /* those with the most cycles first */
    size_t waits;
    enum focus focus;
    bool on_objects, on_functions; /* which of them match */
};

double report_part(uint64_t a, uint64_t b);
const char *report_object(const struct profile_report *r, uint32_t object);
const char *report_base_name(const char *path);

/* "file.c:12", or the function's name where no more is known. */
const char *report_line(const struct profile_report *r, uint32_t line, char buffer[REPORT_TEXT]);
enum profile_cause report_cause(const uint64_t stall[CAUSES]); /* the one with the most */

/* Whether a row is wanted: by the object or the function that one looks at; either may be NULL. */
bool report_wants(const struct profile_report *r, const char *object, const char *function);
size_t report_rows(const struct profile_report *r); /* of a table, at most */

/* What waits for nearly nothing is for those who want all. */
bool report_is_small(const struct profile_report *r, const struct total *x);

/* report_time.c */
uint64_t report_time(const struct profile *p); /* cycles of all hardware contexts but those in which they are idle */
/* What the largest part of that time goes into, in words, with the part; NULL: it is of the kind that was told. To be freed. */
char *report_largest_time(const struct profile *p, enum time_kind told);
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

/* report_programs.c: of several */
void report_add_programs(struct profile_report *r);
void report_add_program_pairs(struct profile_report *r);

/* report_members.c */
void report_add_members(struct profile_report *r);

/* report_estimates.c: of a profile from samples */
void report_add_estimates(struct profile_report *r);

#endif
