/* SPDX-License-Identifier: MIT */
/* How alike two traces are, thread by thread, and what makes one of the other. See docs/design/compare.md. */
#ifndef STUDY_COMPARE_COMPARE_H
#define STUDY_COMPARE_COMPARE_H

#include "study/compare/event_stream.h"
#include "study/table.h"

struct compare_options {
    struct stream_wants wants;
    struct distance_effort effort;
    const char *program;  /* name of the only program to compare; NULL: all programs of both traces */
    char *const *threads; /* pairs "T:U": numbers of threads of both traces; none: all threads */
    size_t thread_pairs;
    bool by_content; /* threads are matched by content alone */
    bool has_edits;  /* tables of edits are wanted */
    uint64_t top;    /* rows of these; 0: all */
};

struct compare_answer {
    struct result result;
    uint64_t damaged[2];
    double similarity; /* over all threads, by edits: what is certain of it */
    bool is_exact;
};

/* progress may be NULL. After a failure the answer is empty. */
int compare_traces(struct peet_trace *const trace[2], const struct compare_options *o, struct compare_answer *ret,
                   struct progress *progress, struct peet_err *err);
void compare_release(struct compare_answer *a);

#endif
