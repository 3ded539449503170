/* SPDX-License-Identifier: MIT */
/* Which threads of two traces correspond: by order of creation, and where that says nothing, by content. */
#ifndef STUDY_COMPARE_THREAD_MATCH_H
#define STUDY_COMPARE_THREAD_MATCH_H

#include "study/compare/event_stream.h"

enum matched_by { MATCHED_NOT, MATCHED_BY_CREATION, MATCHED_BY_CONTENT, MATCHED_BY_OPTION };
extern const char *const matched_by_names[];

/* A thread of one trace and its partner; SIZE_MAX: none. */
struct thread_pair {
    size_t a, b; /* index of the stream */
    enum matched_by by;
};

/* Threads of each process in the order of their creation, as far as the trace says it; list has `count` threads of the trace. */
size_t threads_of_process(const struct peet_trace *t, uint32_t process, const struct peet_thread ***ret);

/* Pairs streams of two processes; threads in `ret` already keep their partners. by_content: order of creation is not regarded.
 * Returns how many pairs there are, with those that have one thread only; ret has room for a + b. */
size_t threads_match(const struct event_stream *a, size_t a_count, const struct event_stream *b, size_t b_count,
                     uint32_t classes, bool by_content, struct thread_pair *ret, size_t known);

#endif
