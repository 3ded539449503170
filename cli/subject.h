/* SPDX-License-Identifier: MIT */
/* Programs and traces as operands of verbs: what they are, how they end, on which machine they run. */
#ifndef CLI_SUBJECT_H
#define CLI_SUBJECT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "sim/config/config.h"

/* Whether operands are a program and its arguments: an executable file, or a name that is looked up in PATH. Otherwise the first is a trace. */
bool subject_is_program(int operands, const char *name);

bool subject_is_trace(const char *name); /* its name ends in ".peet" */

/* Checks that a file can be written, before long work begins, without changing it. Complains and returns EXIT_FAILED if not. */
int subject_check_output(const char *path);

/* The status of a process as an exit code of a shell: 128 + signal, or the code. */
int subject_exit_code(int status);

/* Whether a process was ended by SIGINT, SIGTERM or SIGKILL. */
bool subject_was_stopped(int status);

/* After subject_expect_end, the first SIGINT or SIGTERM only sets subject_want_end to its number (0: none yet); the second one ends peet. */
extern volatile uint32_t subject_want_end;
void subject_expect_end(void);

/* The exit code of peet after a signal of this number stopped its work. */
int subject_stopped_code(uint32_t number);

/* Loads the machine with these settings; cpus: number of processors, NULL: as the machine says. Returns an exit code. */
int subject_machine(struct machine_config *ret, const char *machine, const struct opt_list *settings, const char *cpus);

/* Its options: members `machine` and `settings` of the state. */
#define SUBJECT_MACHINE_OPTIONS(machine, settings) \
    { .name = "machine", \
      .letter = 'm', \
      .type = OPT_STRING, \
      .arg = "MACHINE", \
      .value = OPTION(machine), \
      .help = "a preset (peet list machines), or a file (modern)" }, \
    { \
        .name = "set", .type = OPT_LIST, .arg = "PATH=VALUE", .value = OPTION(settings), \
        .help = "change one of the machine's settings (peet list settings)" \
    }

/* Warns of what is wrong with a trace, and of parts that could not be read. Returns EXIT_DAMAGED if there is any of it, otherwise EXIT_OK. */
struct peet_trace;
int subject_warn_problems(const struct peet_trace *t, uint64_t damaged);

/* References of all threads of a trace. */
uint64_t subject_references(const struct peet_trace *t);

#endif
