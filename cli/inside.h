/* SPDX-License-Identifier: MIT */
/* Both ends of a simulation that is in the program's process. */
#ifndef CLI_INSIDE_H
#define CLI_INSIDE_H

#include <sys/wait.h>

#include "capture/control/in_process.h"
#include "capture/protocol/control.h"
#include "capture/protocol/shared_memory.h"
#include "sim/engine/sim.h"

/* ---- outside: the command that the user gave ---- */

/* Whether programs can be simulated in their own processes here. */
bool inside_is_here_to_run(void);

/* Runs the program with the machine of this command line in it. *ret_code is below 0 if there is a result; otherwise the code of what
 * went wrong inside, of which the user has been told. */
int inside_simulate(char *const *program, uint32_t ahead, size_t run, struct sim_result *ret, int *ret_code,
                    int *ret_status, struct peet_err *err);

/* The same for any other verb: *ret_answer has what the program's process answers, behind the code; to be closed. */
int inside_ask(char *const *program, uint32_t ahead, size_t run, FILE **ret_answer, int *ret_code, int *ret_status,
               struct peet_err *err);

/* ---- inside ---- */

struct inside {
    const struct raw_host *host;
    struct in_process_answer *answer; /* memory that the waiting command reads when the program has ended */
    size_t run;                       /* that is asked for, of those that the command line asks for */
};

const struct inside *inside_here(void); /* NULL: this is the user's command */

/* For who waits outside: a code, and if it is below 0 the result, or these bytes. */
int inside_answer(int code, const struct sim_result *r, struct peet_err *err);
int inside_answer_bytes(int code, const char *bytes, size_t count, struct peet_err *err);

#endif
