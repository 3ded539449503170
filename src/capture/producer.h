/* SPDX-License-Identifier: MIT */
/* What runs a program and writes a trace of it. A new producer is one folder here that defines `const struct producer
 * producer_NAME`, and one line in PRODUCERS; the verb `record` then has an option --NAME. */
#ifndef CAPTURE_PRODUCER_H
#define CAPTURE_PRODUCER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/opt.h"
#include "base/progress.h"
#include "capture/level.h"
#include "peet/trace.h"

/* X(name, summary): the summary is what `peet record --help` says */
#define PRODUCERS(X) \
    X(live, "take what a program built with peet cc says of itself (fast; the default)") \
    X(step, "step through every instruction (any program; exact, and slow)") \
    X(system, "run programs in a guest of QEMU, with a kernel (several programs, other processors)")

/* What stays in a processor's cache between the program and the machine. */
enum { PRODUCER_AHEAD = 1 << 17, PRODUCER_AHEAD_LEAST = 1 << 12, PRODUCER_AHEAD_MOST = 1 << 20 };

/* What is loaded into the program, and the file that tells it what to do. */
struct producer_in_process {
    const char *library, *job;
};

struct producer_config {
    char *const *argv;       /* the program and its arguments; ends with NULL */
    uint64_t max;            /* stop recording after so many instructions; 0: never */
    enum level level;        /* record no more than that; LEVEL_NONE: what there is, but for values */
    struct opt_list regions; /* record instructions in regions of these names only; none: everywhere */
    struct opt_list only,
        skip;        /* …, and in functions whose names match one of `only`, if there are any, and none of `skip` */
    bool aslr;       /* leave the places of stack and libraries to chance */
    bool controlled; /* its threads run when they are told to (capture/control/control.h) */
    uint32_t ahead;  /* bytes that one of them says at most before it is stopped; 0: PRODUCER_AHEAD */
    const struct producer_in_process *in_process; /* … by a machine in its own process; or NULL */
    const struct system_config *system;           /* what producer_system needs beyond that (capture/system/system.h) */
    struct progress *progress;                    /* may be NULL */
};

/* What came of a recording. */
struct recording {
    bool ran;   /* the program did run; all else here is 0 if it did not */
    int status; /* of the program, as waitpid told it */
    uint64_t processes, threads, instructions, references;
    uint64_t undecoded; /* executed instructions that nobody could decode: their references are missing */
    uint64_t
        unrecorded; /* threads of which nothing is in the trace: too many at a time, or their buffers could not be mapped */
    uint64_t left_64_bit; /* threads that were not recorded to their end, because they run code for 32 bits */
    bool stopped;         /* by `max`; the program went on without being recorded */
    bool aslr_kept;       /* the system did not let us switch ASLR off */
    double seconds;
    char **warning; /* what else the user should know */
    size_t warnings;
};

void recording_warn(struct recording *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void recording_release(struct recording *r);

struct producer_state; /* a producer's own; begins as zeros */

struct producer {
    const char *name;
    size_t state_size;
    /* Comes first: makes the program ready. Nothing of it has run when this returns, so that the trace can be opened. */
    int (*start)(struct producer_state *s, const struct producer_config *config, struct peet_err *err);
    /* Lets it run to its end and writes what it does, and which levels that is (meta key `level`, once for each). When writing fails, the program goes on to its end without being
     * recorded; *ret is set in any case. */
    int (*run)(struct producer_state *s, struct peet_writer *w, struct recording *ret, struct peet_err *err);
    /* Comes last, also when `start` failed: ends a program that has been started and did not run. */
    void (*release)(struct producer_state *s);
    /* Instead of start and run, where the trace is written by somebody else: does it all. *ret is as after run; ret->ran is
     * false if the program could not be run. An error of PEET_ERR_INTERRUPTED: it was ended early, and the trace is whole up to there. */
    int (*record)(struct producer_state *s, const struct producer_config *config, const char *out,
                  struct recording *ret, struct peet_err *err);
};

#define X(name, summary) extern const struct producer producer_##name;
PRODUCERS(X)
#undef X

/* Runs the program of the config and makes the trace at `out`. If the program cannot be run, nothing happens to the file at
 * `out`. If the trace cannot be written, the program has run all the same (ret->ran), and the file holds what could be.
 * *ret is to be released in any case. */
int record_trace(const struct producer *producer, const struct producer_config *config, const char *out,
                 struct recording *ret, struct peet_err *err);

#endif
