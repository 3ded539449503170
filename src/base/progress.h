/* SPDX-License-Identifier: MIT */
/* A progress line. It appears only on a terminal, only if the work takes longer than half a
 * second, and changes at most five times a second. Library functions get it from cli/, or NULL. */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A line that shows how far work has come. */
struct progress {
    FILE *out;
    const char *what;     /* "reading run.peet"; borrowed */
    uint64_t total;       /* units of the whole work; 0: unknown */
    const char *unit;     /* "instructions" */
    bool active;          /* `out` is a terminal, so that there is something to show */
    bool shown;           /* a line is shown, and has to be erased */
    uint64_t start, last; /* nanoseconds: time of the start, and of the last line */
};

void progress_init(struct progress *p, FILE *out, const char *what, uint64_t total, const char *unit);
void progress_total(struct progress *p, uint64_t total); /* when it becomes known later */
void progress_at(struct progress *p, uint64_t done);     /* cheap enough for every batch */
void progress_release(struct progress *p);               /* takes the line away */

#endif
