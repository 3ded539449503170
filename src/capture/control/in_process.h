/* SPDX-License-Identifier: MIT */
/* In-process simulation (docs/design/controlled-execution.md), as the starting process sees it. The program gets a library and a job
 * file, and leaves an answer file. Callers define the contents of job and answer.
 *
 * The job file holds the path of the answer file, a zero byte, and the job's bytes. The answer file is sparse, of the greatest length.
 * The library maps it at the beginning (in_process_answer_map); so programs that later change their root directory, rights or
 * descriptors can still leave an answer. */
#ifndef CAPTURE_CONTROL_IN_PROCESS_H
#define CAPTURE_CONTROL_IN_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "peet/err.h"

/* Whether this machine supports it: threads must be able to change their thread pointers without the kernel, and a process
 * its own code (traps.h). */
bool in_process_is_possible(void);

/* A program to be simulated in its process, and the simulator's input. */
struct in_process_job {
    char *const *argv;   /* the program */
    uint32_t ahead;      /* producer_config.ahead */
    const char *library; /* path of the simulator */
    const char *job;     /* bytes for the simulator */
    size_t bytes;        /* of `job` */
};

/* Runs the program to its end. *ret_status: as waitpid has it; *ret_answer: the answer's bytes, at their beginning, to be closed. */
int in_process_run(const struct in_process_job *job, int *ret_status, FILE **ret_answer, struct peet_err *err);

/* The contents of the answer file. */
struct in_process_answer {
    uint64_t bytes; /* of `text`; written last. 0: no answer */
    char text[];
};
enum { IN_PROCESS_ANSWER_GIB = 4 };
#define IN_PROCESS_ANSWER_BYTES ((uint64_t)IN_PROCESS_ANSWER_GIB << 30)

/* Maps the answer file in the program's process, until its end. NULL: it failed, and errno is set. */
struct in_process_answer *in_process_answer_map(const char *path);

#endif
