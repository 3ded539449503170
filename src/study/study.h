/* SPDX-License-Identifier: MIT */
/* What can be asked of a run without a machine in mind. A new study is one file that defines `const struct study study_NAME` as
 * its last thing, and one line in STUDIES; `peet study` finds it there.
 *
 * Life: study_run once per trace, then look at the answer, study_release. A study says nothing and changes nothing but its answer. */
#ifndef STUDY_STUDY_H
#define STUDY_STUDY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/progress.h"
#include "peet/trace.h"
#include "study/table.h"

#define STUDIES(X) X(graph) X(parallelism) X(sharing) X(allocation) X(intrinsic)

struct study_config {
    uint64_t grain; /* sharing: bytes of a granule, a power of two up to STUDY_MAX_GRAIN */
    bool collapse;  /* graph: merge pieces until it can be looked at */
    bool locks;     /* parallelism: times are those of a run in which locks exclude each other */
    uint64_t rows;  /* parallelism: of a table at most; 0: as STUDY_MAX_ROWS */
};

enum { STUDY_MAX_GRAIN = 4096, STUDY_MAX_ROWS = 512 };

struct study_answer {
    struct result result;
    uint64_t damaged; /* parts of the trace that could not be read */
    bool differs;     /* what was compared is not the same */
};

struct study {
    const char *name;
    const char *summary; /* one line, no full stop */
    int (*run)(struct peet_trace *t, const struct study_config *config, struct study_answer *answer,
               struct progress *progress, struct peet_err *err);
    /* Several traces of one program; NULL: it takes one only. */
    int (*compare)(struct peet_trace *const *t, size_t traces, const struct study_config *config,
                   struct study_answer *answer, struct progress *progress, struct peet_err *err);
    void (*text)(const struct result *r, FILE *out); /* its own form of text; NULL: tables, as ever */
};

#define X(name) extern const struct study study_##name;
STUDIES(X)
#undef X

const struct study *study_find(const char *name); /* NULL when there is none */
const struct study *study_at(size_t i);           /* NULL at the end */

/* progress may be NULL. When it fails, the answer is empty. */
int study_run(const struct study *s, struct peet_trace *t, const struct study_config *config, struct study_answer *ret,
              struct progress *progress, struct peet_err *err);

/* The same for several traces; only if the study compares. */
int study_compare(const struct study *s, struct peet_trace *const *t, size_t traces, const struct study_config *config,
                  struct study_answer *ret, struct progress *progress, struct peet_err *err);
void study_release(struct study_answer *a);

/* ---- for studies ---- */

struct precedence;
struct schedule;

/* What a reader of times must know: what is certain, what was left out, what is missing in the trace. */
void study_notes(struct table *table, const struct precedence *p, const struct schedule *s);

#endif
