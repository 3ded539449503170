/* SPDX-License-Identifier: MIT */
/* A program that is simulated in its own process (docs/design/controlled-execution.md), seen from the one that starts it: it gets a library and a job,
 * and leaves an answer. What these are is for others to say.
 *
 * The job file holds the path of the answer's file, a zero, and the job's bytes. The answer's file is sparse and as long as an answer may be: the library maps
 * it when it begins (in_process_answer_map), so that a program that gives up its root, its rights or its descriptors can still leave an answer. */
#ifndef CAPTURE_CONTROL_IN_PROCESS_H
#define CAPTURE_CONTROL_IN_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "peet/err.h"

/* Whether this machine can do it: threads must be able to change their thread pointers without the kernel, and a process
 * its own code (traps.h). */
bool in_process_is_possible(void);

struct in_process_job {
    char *const *argv; /* the program */
    uint32_t ahead;    /* struct producer_config */
    const char *library;
    const char *job;
    size_t bytes;
};

/* Runs the program to its end. *ret_status is as waitpid tells it; *ret_answer has what was left for us, from its beginning, and is to be closed. */
int in_process_run(const struct in_process_job *job, int *ret_status, FILE **ret_answer, struct peet_err *err);

/* What the library leaves: the number of bytes, which is written last, and the bytes. */
struct in_process_answer {
    uint64_t bytes;
    char text[];
};
enum { IN_PROCESS_ANSWER_GIB = 4 };
#define IN_PROCESS_ANSWER_BYTES ((uint64_t)IN_PROCESS_ANSWER_GIB << 30)

/* In the program's process: the file's memory, for good; NULL with errno set. */
struct in_process_answer *in_process_answer_map(const char *path);

#endif
