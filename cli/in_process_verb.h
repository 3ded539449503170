/* SPDX-License-Identifier: MIT */
/* A verb whose simulation runs in the process of the simulated program. The user's command starts the program and waits; the program's runtime
 * loads peet as a library, which runs the same command line again and leaves an answer. See docs/design/command.md. */
#ifndef CLI_IN_PROCESS_VERB_H
#define CLI_IN_PROCESS_VERB_H

#include <sys/wait.h>

#include "capture/control/in_process.h"
#include "capture/protocol/control.h"
#include "capture/protocol/shared_memory.h"
#include "sim/engine/sim.h"

/* ---- in the user's command ---- */

/* Whether programs can be simulated in their own processes on this machine. */
bool in_process_verb_is_possible(void);

/* Runs the program and this command line in its process. run: number that the verb there finds in its in_process_verb. *ret_answer is read from after
 * the code, and to be closed. *ret_code below 0: there is an answer; otherwise the exit code of an error that was reported. */
int in_process_verb_ask(char *const *program, uint32_t ahead, size_t run, FILE **ret_answer, int *ret_code,
                        int *ret_status, struct peet_err *err);

/* As in_process_verb_ask, for an answer that is the result of a simulation. */
int in_process_verb_simulate(char *const *program, uint32_t ahead, size_t run, struct sim_result *ret, int *ret_code,
                             int *ret_status, struct peet_err *err);

/* ---- in the program's process ---- */

/* A verb that runs in the program's process. */
struct in_process_verb {
    const struct raw_host *host;
    struct in_process_answer *answer; /* memory that the user's command reads after the program's end */
    size_t run;                       /* as given to in_process_verb_ask */
};

const struct in_process_verb *in_process_verb(void); /* NULL: this is the user's command */

/* Leaves an answer: a code, and if it is below 0 a result, or bytes. */
int in_process_verb_answer_result(int code, const struct sim_result *r, struct peet_err *err);
int in_process_verb_answer_bytes(int code, const char *bytes, size_t count, struct peet_err *err);

#endif
