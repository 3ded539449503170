/* SPDX-License-Identifier: MIT */
/* Whether what threads do depends on how they were interleaved: runs of one program, compared. */
#ifndef STUDY_COMPARE_INTRINSIC_H
#define STUDY_COMPARE_INTRINSIC_H

#include "sim/config/config.h"
#include "study/compare/stream_observer.h"
#include "study/study.h"

/* Runs that can be had again and again. */
struct intrinsic_runs {
    size_t count; /* the first one is what others are compared with */
    void *context;
    /* What the run is called; lives as long as the runs. */
    const char *(*name)(void *context, size_t run);
    /* Lets `o` see each batch of the run, and calls `done` before what the batches came from is gone. */
    int (*play)(void *context, size_t run, const struct wanted_block *want, size_t wants, struct stream_observer *o,
                void (*done)(void *argument), void *argument, struct peet_err *err);
    struct peet_trace *trace; /* of the first, or NULL: where causes are looked for */
};

/* *ret_differs: whether there is a thread that is not the same in all of them. */
int intrinsic_compare(const struct intrinsic_runs *runs, struct result *result, bool *ret_differs,
                      struct peet_err *err);

/* A program built with peet cc, on a machine, with the seeds 1 to `seeds`. */
int intrinsic_program(char *const *argv, const struct machine_config *machine, uint64_t seeds, struct study_answer *ret,
                      struct peet_err *err);

#endif
