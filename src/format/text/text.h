/* SPDX-License-Identifier: MIT */
/* The text form of a trace, which people and programs can read and write (docs/text-format.md). */
#ifndef FORMAT_TEXT_TEXT_H
#define FORMAT_TEXT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "peet/trace.h"

/* What of a trace is written as text, and how. */
struct text_options {
    const uint32_t *thread; /* numbers of threads to write, in the order of the trace */
    size_t threads;         /* 0: all */
    bool calls;             /* only blocks that end in a call or a return, and events */
    bool events;            /* only events; ignored if calls is set */
    bool compact;           /* blocks, loops and registers as in the trace; false: every number is an address */
    bool symbols;           /* comments with the symbols of blocks and calls */
    uint64_t from;          /* instructions of each thread that are left out at its begin */
    uint64_t count;         /* instructions of each thread to write after these; UINT64_MAX: all */
};

/* Writes t to out without its damaged chunks; *ret_damaged: their number. */
int text_write(struct peet_trace *t, const struct text_options *o, FILE *out, uint64_t *ret_damaged,
               struct peet_err *err);

/* Writes records as rows: CSV with a header, or one JSON object per line. `compact` and `symbols` are ignored. */
int text_records(struct peet_trace *t, const struct text_options *o, bool json, FILE *out, uint64_t *ret_damaged,
                 struct peet_err *err);

/* Reads text from in, which errors call `name`, and writes it as a trace to w. A stream that ends with thread_end is closed. Other
 * streams are left open, so that peet_writer_close marks them as truncated. After an error the file is incomplete:
 * the caller closes w and removes it. */
int text_read(FILE *in, const char *name, struct peet_writer *w, struct peet_err *err);

#endif
