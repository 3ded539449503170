/* SPDX-License-Identifier: MIT */
/* A profile added up: by function, by line, by data object, and by both. Each list is in the order that was asked for. */
#ifndef STUDY_PROFILE_TOTALS_H
#define STUDY_PROFILE_TOTALS_H

#include "study/profile/profile.h"

/* A function of a process. */
struct total_function {
    const char *name, *file; /* file is NULL: unknown */
    uint32_t process;        /* index, in the profile's paths */
    uint64_t compute, fetch; /* cycles; fetch: waited for instructions */
    uint64_t wait;           /* cycles for which its calls wait for other threads */
};

/* A source line of a function. */
struct total_line {
    const char *file;        /* NULL: unknown */
    uint32_t line, function; /* number of the line, 0: unknown; index of its function */
};

/* The function and line of a place. */
struct total_place {
    uint32_t function, line; /* indices in totals.function, totals.line */
    bool is_known;           /* false: nothing was executed there */
};

/* A sum of access counts. */
struct total {
    uint32_t function, line, object; /* indices; only those by which the list is made are meaningful */
    uint64_t references, writes, misses, cause[CAUSES], stall[CAUSES]; /* sums, as in struct access_counts */
    uint64_t wait;  /* cycles for which threads waited for it: it is a lock, a barrier, or the like */
    uint64_t other; /* of a function: cycles of compute, fetch and wait */
};

/* All sums of a profile. */
struct totals {
    const struct profile *p;
    struct total_function *function;
    uint32_t functions;
    struct total_line *line;
    uint32_t lines;
    struct total_place **place; /* by index of the process, and place: those that occur */
    struct total *by_function, *by_object, *by_both, *by_line; /* by_line: a line and an object */
    size_t by_function_count, by_object_count, by_both_count, by_line_count;
    struct map names, line_numbers; /* uint32_t: index + 1 of a function, of a line; by hash */
};

void totals_make(struct totals *t, const struct profile *p, const char *sort);
void totals_release(struct totals *t);

uint64_t total_stall(const struct total *x);
uint64_t total_cost(const struct total *x); /* cycles: stall and wait */

/* The number of the line of a process's frame, which has its function: one that was there, or a new one. */
uint32_t totals_line(struct totals *t, uint32_t process, const struct symbols_frame *f);

/* A place that refers to an object, in the object's process. */
const struct total_place *totals_place(const struct totals *t, uint32_t place, uint32_t object);

/* A table of the source lines of the functions that wait longest, as far as their files can be read (source.c). */
void profile_add_source(const struct totals *t, struct result *ret);

#endif
