/* SPDX-License-Identifier: MIT */
/* Studies that observe a simulated run. See docs/design/studies.md.
 *
 * A new run study is a file in src/study that defines `const struct run_study run_study_NAME`, and a line in RUN_STUDIES (ARCHITECTURE.md). It owns
 * its options, its state, its observers and its report. A verb observes with it: it makes the state, merges the options into its own
 * (command_bind), lists study and state as a run_observer in its calls of run_studies_…, calls `report` and frees the state; see cmd_simulate.c.
 * Several run studies can observe one run. A run has one observer with `tag`, one waiter and one listener; other observers may be several.
 *
 * A live program that is simulated in its process: `begin` is called there, for a state that stays there. Here `end` gets struct sim_result, and no
 * run->sim. A study that adds observers needs --apart, or sends what it found, as cmd_profile does (cli/in_process_verb.h).
 *
 * Life: run_study_state_new, options; for each run run_studies_open, run_studies_play, run_studies_end; then `report`; run_study_state_free. */
#ifndef STUDY_RUN_STUDY_H
#define STUDY_RUN_STUDY_H

#include "base/opt.h"
#include "base/progress.h"
#include "sim/engine/sim.h"
#include "study/table.h"

#define RUN_STUDIES(X) X(report) X(profile)

struct run_study_state; /* completed by each study: its options, and what it observes */

/* The value of an option in a study's table: a member of its state. */
#define RUN_STUDY_OPTION(member) ((void *)offsetof(struct run_study_state, member))

/* One run of a program on a machine. */
struct observed_run {
    const struct machine_config *machine;
    struct source *source;
    struct sim *sim;          /* NULL: it ran in another process, the program's */
    struct sim_result result; /* after it */
    bool is_last;             /* no run follows: tables of its details are wanted */
};

/* A study of runs. */
struct run_study {
    const char *name;
    const char *summary;                    /* one line, no full stop */
    const struct opt *options;              /* values are RUN_STUDY_OPTION; ends with a NULL name; NULL: none */
    size_t state_size;                      /* bytes of struct run_study_state */
    const struct run_study_state *defaults; /* NULL: zeros */
    /* Whether the options make sense; NULL: they always do. An error is one of usage. */
    int (*check)(struct run_study_state *s, struct peet_err *err);
    /* Before the simulation is made: replaces the source by the part of it that the study observes. *ret owns the source then, also if this
     * fails. NULL: the source as it is. */
    int (*open)(struct run_study_state *s, const struct machine_config *machine, struct source *source,
                struct source **ret, struct peet_err *err);
    /* Before the run, in the process that simulates: attaches observers to run->sim. */
    int (*begin)(struct run_study_state *s, const struct observed_run *run, struct peet_err *err);
    /* After a run that came to its end: run->result is there, and for runs of this process run->sim. */
    void (*end)(struct run_study_state *s, const struct observed_run *run);
    void (*report)(struct run_study_state *s, struct result *ret); /* adds tables */
    void (*release)(struct run_study_state *s);                    /* what the state points to; NULL: nothing */
};

#define X(name) extern const struct run_study run_study_##name;
RUN_STUDIES(X)
#undef X

const struct run_study *run_study_at(size_t i); /* NULL at the end */

/* like: a state whose options are copied, before its first run; NULL: the defaults. */
struct run_study_state *run_study_state_new(const struct run_study *s, const struct run_study_state *like);
void run_study_state_free(const struct run_study *s, struct run_study_state *state);

/* A study that observes a run, with its state. */
struct run_observer {
    const struct run_study *study;
    struct run_study_state *state;
};

/* The source as the studies observe it; source is *ret's from then on, and freed after a failure. */
int run_studies_open(const struct run_observer *observers, size_t n, const struct machine_config *machine,
                     struct source *source, struct source **ret, struct peet_err *err);

/* How a run is played. */
struct run_play {
    const volatile uint32_t *stop; /* the run ends soon after this is not 0; NULL: at its end */
    struct remap *remap;           /* rules that move data, for the machine alone; NULL: none */
    struct progress *progress;     /* NULL: not shown */
};

/* Simulates run->source, observed by all n studies, and fills run->result. After success, run_studies_end. */
int run_studies_play(const struct run_observer *observers, size_t n, struct observed_run *run,
                     const struct run_play *play, struct peet_err *err);

/* Ends the studies of a run, with run->result as it is now, and frees its simulation and result. */
void run_studies_end(const struct run_observer *observers, size_t n, struct observed_run *run);

#endif
