/* SPDX-License-Identifier: MIT */
/* Runs of one program, compared: whether what threads do depends on how they were interleaved. */
#ifndef STUDY_COMPARE_INTRINSIC_H
#define STUDY_COMPARE_INTRINSIC_H

#include "sim/config/config.h"
#include "study/compare/stream_observer.h"
#include "study/study.h"

/* Runs of a program, each of which can be repeated. */
struct intrinsic_runs {
    size_t count; /* the others are compared with run 0 */
    void *context;
    const char *(*name)(void *context, size_t run); /* of a run; valid until the next call */
    /* Passes each batch of a run to `o`, and calls `done` before the source of the batches is freed. */
    int (*play)(void *context, size_t run, const struct wanted_block *want, size_t wants, struct stream_observer *o,
                void (*done)(void *argument), void *argument, struct peet_err *err);
    struct peet_trace *trace; /* of run 0, to search for unordered reads; NULL: none */
};

/* Adds the tables; *ret_differs: some thread is not the same in all runs. */
int intrinsic_compare(const struct intrinsic_runs *runs, struct result *result, bool *ret_differs,
                      struct peet_err *err);

/* Compares runs of a program that was built with peet cc, on a machine, with the seeds 1 to `seeds`. */
int intrinsic_program(char *const *argv, const struct machine_config *machine, uint64_t seeds,
                      struct study_answer *answer, struct peet_err *err);

#endif
