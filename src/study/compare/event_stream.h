/* SPDX-License-Identifier: MIT */
/* The stream of a thread as a string of event numbers (code_match.h). */
#ifndef STUDY_COMPARE_EVENT_STREAM_H
#define STUDY_COMPARE_EVENT_STREAM_H

#include "base/progress.h"
#include "study/compare/code_match.h"

/* What is read of threads. */
struct stream_wants {
    enum compare_unit unit;
    enum compare_by by;
    char *const
        *from; /* names of functions: a thread begins where it first enters one of them, and ends where that returns */
    size_t froms; /* 0: whole threads */
    bool
        is_abstract; /* without code that waits for other threads or allocates memory, and without events of synchronisation */
};

struct event_stream {
    const struct peet_thread *thread;
    uint32_t *at;
    size_t count, room;
    bool is_cut;      /* it begins at one of the functions */
    uint64_t damaged; /* parts that could not be read */
};

/* Appends the thread's events. `done`: instructions of all streams that were read before, for progress. */
int event_stream_read(struct event_stream *s, struct code_match *m, unsigned side, struct peet_trace *t,
                      const struct stream_wants *wants, struct progress *progress, uint64_t *done,
                      struct peet_err *err);
void event_stream_release(struct event_stream *s);

#endif
