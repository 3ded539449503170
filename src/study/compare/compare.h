/* SPDX-License-Identifier: MIT */
/* How alike two traces are, thread by thread, and what makes one of the other. See docs/design/compare.md. */
#ifndef STUDY_COMPARE_COMPARE_H
#define STUDY_COMPARE_COMPARE_H

#include "study/compare/event_stream.h"
#include "study/table.h"

/* What a comparison is to do, from the options of the verb. */
struct compare_options {
    struct stream_wants wants;
    struct distance_effort effort;
    const char
        *program; /* file name, without folder, of the only program to compare; NULL: all programs of both traces */
    char *const *threads; /* pairs "T:U": numbers of threads of both traces; none: all threads */
    size_t thread_pairs;  /* elements of `threads` */
    bool by_content;      /* threads are matched by content, whatever the order of creation */
    bool has_edits;       /* tables of edits are wanted */
    uint64_t top;         /* rows of each of these tables for each pair of threads; 0: all */
};

/* The tables of a comparison, and what the exit code depends on. */
struct compare_answer {
    struct result result;
    uint64_t damaged[2]; /* parts that could not be read, by trace */
    double similarity;   /* over all threads, by edits: what is certain of it */
    bool is_exact;
};

/* progress may be NULL. After a failure the answer is empty. */
int compare_traces(struct peet_trace *const trace[2], const struct compare_options *o, struct compare_answer *ret,
                   struct progress *progress, struct peet_err *err);
void compare_release(struct compare_answer *a);

#endif
