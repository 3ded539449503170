/* SPDX-License-Identifier: MIT */
/* What verbs have in common that run programs or play traces. */
#ifndef CLI_SUBJECT_H
#define CLI_SUBJECT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/opt.h"
#include "sim/config/config.h"

/* Whether operands are a program and its arguments: a file that can be executed, or a name that is looked for where programs are. Else the first is
 * a trace. */
bool subject_is_program(int operands, const char *name);

bool subject_is_trace(const char *name); /* it is called so */

/* Whether a file can be written, before much is done for it; if not, that is told. Nothing is changed. */
int subject_check_output(const char *path);

/* The status of a process as a shell tells it. */
int subject_exit_code(int status);

/* Whether a process was ended by a signal with which a user or a shell stops programs (SIGINT, SIGTERM, SIGKILL). */
bool subject_was_stopped(int status);

/* From now on SIGINT and SIGTERM do not end peet but make the number that of the signal (0: none came); the second one ends peet. */
extern volatile uint32_t subject_want_end;
void subject_expect_end(void);

/* What peet ends with when the signal of this number stopped its work. */
int subject_stopped_code(uint32_t number);

/* The machine with these settings, and so many processors if that is not NULL; an exit code. */
int subject_machine(struct machine_config *ret, const char *machine, const struct opt_list *settings, const char *cpus);

/* The options for it. */
#define SUBJECT_MACHINE_OPTIONS(machine, settings) \
    { .name = "machine", \
      .letter = 'm', \
      .type = OPT_STRING, \
      .arg = "MACHINE", \
      .value = &(machine), \
      .help = "a preset (peet list machines), or a file (modern)" }, \
    { \
        .name = "set", .type = OPT_LIST, .arg = "PATH=VALUE", .value = &(settings), \
        .help = "change one of the machine's settings (peet list settings)" \
    }

/* References of all threads of a trace. */
struct peet_trace;
uint64_t subject_references(const struct peet_trace *t);

#endif
