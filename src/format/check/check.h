/* SPDX-License-Identifier: MIT */
/* Checks of a trace: whether it is well-formed, so that an execution of some program can have produced it.
 *
 * The order between events of different threads is unknown. Rules about several threads therefore compare counts over the whole trace,
 * and are checked only if the trace is complete. A stream is read once; streams of a file are read twice if memory ranges have to be
 * collected. Memory use does not depend on the length of streams. */
#ifndef FORMAT_CHECK_CHECK_H
#define FORMAT_CHECK_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/progress.h"
#include "peet/trace.h"

/* X(name, requirement). A new rule is a line here, and code in the family that checks it (family.h). */
/* clang-format off */
#define CHECK_RULES(X) \
    X(block,     "inside a block control goes from each instruction to the next, by branches and jumps at most") \
    X(flow,      "a block begins where the one before it lets control go") \
    X(return,    "a return goes back to where its call was") \
    X(lock,      "only a thread that holds a lock gives it back") \
    X(condition, "a thread that waits for a condition holds its lock") \
    X(held,      "a thread that ends holds no lock") \
    X(region,    "regions end in the reverse order of their beginnings") \
    X(doall,     "parallel loops and their iterations begin and end in pairs") \
    X(barrier,   "the threads of a barrier agree on their number, and all of them arrive") \
    X(semaphore, "a semaphore is not taken more often than it was given") \
    X(thread,    "a thread is created, starts, and is joined or detached, each once") \
    X(end,       "thread_end is the last record of a whole stream, and of no other") \
    X(free,      "memory is freed as often as it was allocated, at most") \
    X(mapped,    "references lie in memory that the program had")
/* clang-format on */

enum check_rule {
#define X(name, summary) CHECK_##name,
    CHECK_RULES(X) CHECK_RULE_COUNT
#undef X
};

const char *check_rule_name(enum check_rule rule);
const char *check_rule_summary(enum check_rule rule);

enum check_severity {
    CHECK_WARNING,   /* unusual, or wrong unless missing records explain it */
    CHECK_VIOLATION, /* no execution can produce it */
    CHECK_SEVERITIES
};

#define CHECK_NO_THREAD UINT32_MAX

/* A violated rule. */
struct check_finding {
    enum check_rule rule;
    enum check_severity severity;
    uint32_t thread;   /* number; CHECK_NO_THREAD: it concerns several threads */
    uint64_t position; /* instructions of the thread before it */
    bool has_addr;     /* the finding is about an address */
    uint64_t addr;     /* that address */
    const char *text;  /* valid until the callback returns */
};

/* How a trace is checked. */
struct check_config {
    uint64_t most; /* findings of each rule and severity that are reported; all are counted */
    void (*found)(const struct check_finding *f, void *context);
    void (*note)(const char *text, void *context); /* gets what was not checked, and why; NULL: no callback */
    void *context;
    struct progress *progress; /* may be NULL */
};

/* What was checked, and what was found. */
struct check_totals {
    uint64_t threads, instructions, references, events; /* that were read */
    uint64_t damaged;                                   /* chunks that could not be read */
    uint64_t found[CHECK_RULE_COUNT][CHECK_SEVERITIES]; /* findings, by rule and severity */
};

/* Fails only when the trace cannot be read; findings and damaged parts are in *ret. */
int check_trace(struct peet_trace *t, const struct check_config *config, struct check_totals *ret,
                struct peet_err *err);

#endif
