/* SPDX-License-Identifier: MIT */
/* The text form of a trace: for people to read and write, and for programs to read back. The language is
 * docs/text-format.md. */
#ifndef FORMAT_TEXT_TEXT_H
#define FORMAT_TEXT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "peet/trace.h"

struct text_options {
    const uint32_t *thread; /* which threads, in the order of the trace; none: all */
    size_t threads;
    bool calls;     /* only blocks that end in a call or a return, and events */
    bool events;    /* only events; calls is stronger */
    bool compact;   /* blocks, loops and registers as they were written; otherwise every number is an address */
    bool symbols;   /* comments that say where in the program a block or a call is */
    uint64_t from;  /* instructions of each thread that are left out first */
    uint64_t count; /* instructions of each thread that are wanted then; UINT64_MAX: all */
};

/* Writes t to out. What is damaged is left out, and *ret_damaged says how many chunks that were. */
int text_write(struct peet_trace *t, const struct text_options *o, FILE *out, uint64_t *ret_damaged,
               struct peet_err *err);

/* The same records as rows: CSV with a header, or one JSON object a line. `compact` and `symbols` do not apply. */
int text_records(struct peet_trace *t, const struct text_options *o, bool json, FILE *out, uint64_t *ret_damaged,
                 struct peet_err *err);

/* Reads text from in, which errors call `name`, and writes what it says to w. The streams of threads whose last event
 * is thread_end are closed; all others are left open, so that peet_writer_close marks them as cut off. After an error
 * what w has written is of no use: streams are open, and the caller closes w and removes its file. */
int text_read(FILE *in, const char *name, struct peet_writer *w, struct peet_err *err);

#endif
