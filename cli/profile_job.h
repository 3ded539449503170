/* SPDX-License-Identifier: MIT */
/* Profiles of traces and programs, as `peet profile` asks for them. Parsing and printing are in cmd_profile.c. Functions that return int return
 * exit codes, after they have complained. */
#ifndef CLI_PROFILE_JOB_H
#define CLI_PROFILE_JOB_H

#include "cli/cli.h"
#include "cli/in_process_verb.h"
#include "study/profile/profile_study.h"

/* References of a window, unless an option says otherwise. */
enum { PROFILE_WINDOW = 500000 };

/* Which part of the references is observed. */
struct profile_sampling {
    const char *part; /* "1/N"; "auto"; NULL: all of them */
    const char *sets; /* "1/N": of the sets of the last private cache; NULL: all of them */
    uint64_t length;  /* references of a window */
    uint64_t seed;    /* for random windows, and for sets */
    bool is_random;   /* windows are at random places */
    bool is_steady;   /* of "auto": the program does the same all the time */
};

/* What is to be profiled, on which machine. Filled once from the options; copied for variants. */
struct profile_job {
    const char *machine;
    const char *cpus; /* NULL: as the machine says */
    struct opt_list settings;
    struct profile_sampling sampling;
    const struct run_study_state *study; /* options of the run study, which each run copies */
    bool is_cut;                         /* the recording was stopped before the program's end */
};

/* A trace or program and its profile. */
struct profile_subject {
    struct peet_trace *trace;      /* NULL: a program in whose process this is */
    struct source *source;         /* must outlive a sampled profile */
    struct run_study_state *study; /* of run_study_profile */
    size_t warned;                 /* problems of symbols that were reported */
};

bool profile_job_is_automatic(const struct profile_job *j);

/* Checks machine and sampling, before work begins; *ret is the machine. */
int profile_job_check(const struct profile_job *j, struct machine_config *ret);

/* Profiles a trace file; with --sample auto, several times, until the sample is large enough. title: its name for the user. */
int profile_job_trace(const struct profile_job *j, const char *path, const char *title, struct profile_subject *ret);

/* Profiles the program in whose process this is, to its end. */
int profile_job_program(const struct profile_job *j, const struct in_process_verb *here, const char *title,
                        struct profile_subject *ret);

/* Records a program to the file at path; *ret_status is that of the process. */
int profile_job_record(char **program, const char *path, int *ret_status);

/* Makes an empty file that only this user can read; to be freed and unlinked. NULL: see err. */
char *profile_job_new_file(struct peet_err *err);

/* Bytes of event words that a thread may write before the simulation stops it. */
uint32_t profile_job_ahead(const struct profile_job *j, const struct machine_config *c);

struct profile *profile_subject_profile(const struct profile_subject *s); /* NULL: none yet */
void profile_subject_warn(struct profile_subject *s);                     /* of symbols that are missing */
/* Reports damage of the trace and a stop by a signal, and frees all. Returns code, or the exit code for these. */
int profile_subject_close(struct profile_subject *s, int code);

#endif
