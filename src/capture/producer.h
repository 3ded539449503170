/* SPDX-License-Identifier: MIT */
/* Producers: they run a program and write its trace (docs/design/recording.md). A new producer is a folder here with a file that defines `const
 * struct producer producer_NAME`, and a line in PRODUCERS (ARCHITECTURE.md, "Adding a thing"); the verb `record` then has an option --NAME, which docs/man/peet-record.1.scd describes. */
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

/* Bytes of a controlled thread's buffer: default, least, most. The default stays in a cache between the program and the simulator. */
enum { PRODUCER_AHEAD = 1 << 17, PRODUCER_AHEAD_LEAST = 1 << 12, PRODUCER_AHEAD_MOST = 1 << 20 };

/* The simulator in the program's process: its path, and the path of its job file. */
struct producer_in_process {
    const char *library, *job;
};

/* What is to be recorded. */
struct producer_config {
    char *const *argv;       /* the program and its arguments; ends with NULL */
    uint64_t max;            /* number of instructions after which recording stops; 0: none */
    enum level level;        /* the greatest level to be recorded; LEVEL_NONE: all but values */
    struct opt_list regions; /* names of regions whose instructions are recorded; none: all instructions */
    struct opt_list only,
        skip;        /* …, and in functions whose names match one of `only`, if there are any, and none of `skip` */
    bool aslr;       /* keep address space layout randomization */
    bool controlled; /* controlled execution (capture/control/control.h) */
    uint32_t ahead;  /* controlled: bytes of a thread's buffer; 0: PRODUCER_AHEAD */
    const struct producer_in_process *in_process; /* controlled, by a simulator in its process; NULL: not */
    const struct system_config *system;           /* further options of producer_system (capture/system/system.h) */
    struct progress *progress;                    /* may be NULL */
};

/* The result of a recording. */
struct recording {
    bool ran;                                              /* the program was run; otherwise all other fields are 0 */
    int status;                                            /* of the program, as waitpid has it */
    uint64_t processes, threads, instructions, references; /* recorded */
    uint64_t undecoded; /* number of executed instructions that could not be decoded: their references are missing */
    uint64_t
        unrecorded; /* threads of which nothing is in the trace: too many at a time, or their buffers could not be mapped */
    uint64_t left_64_bit; /* threads that were not recorded to their end, because they run code for 32 bits */
    bool stopped;         /* by `max`; the program continued unrecorded */
    bool aslr_kept;       /* the system did not let us switch ASLR off */
    double seconds;       /* from the start of the program to the end of the trace */
    char **warning;       /* what else the user should know */
    size_t warnings;
};

void recording_warn(struct recording *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void recording_release(struct recording *r);

struct producer_state; /* completed by each producer; begins as zeros */

/* A method of recording programs. */
struct producer {
    const char *name;
    size_t state_size;
    /* Called first: loads the program. None of it has run on return, so that the trace can be opened. */
    int (*start)(struct producer_state *s, const struct producer_config *config, struct peet_err *err);
    /* Runs the program to its end and records it. Writes its levels (meta key `level`, once for each). After a write error the program
     * continues unrecorded. *ret is set in any case. */
    int (*run)(struct producer_state *s, struct peet_writer *w, struct recording *ret, struct peet_err *err);
    /* Called last, also if `start` failed: kills a program that was started and did not run. */
    void (*release)(struct producer_state *s);
    /* In place of start and run, for producers that do not write the trace themselves. *ret is as after run; ret->ran is false if the
     * program could not be run. PEET_ERR_INTERRUPTED: it was ended early, and the trace is complete until then. */
    int (*record)(struct producer_state *s, const struct producer_config *config, const char *out,
                  struct recording *ret, struct peet_err *err);
};

#define X(name, summary) extern const struct producer producer_##name;
PRODUCERS(X)
#undef X

/* Runs the program of the config and writes the trace `out`. If the program cannot be run, the file `out` is not changed. If the trace
 * cannot be written, the program has run (ret->ran), and the file has the part that was written. *ret is to be released in any case. */
int record_trace(const struct producer *producer, const struct producer_config *config, const char *out,
                 struct recording *ret, struct peet_err *err);

#endif
