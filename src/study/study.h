/* SPDX-License-Identifier: MIT */
/* Studies: questions about a run that do not depend on a machine. See docs/design/studies.md.
 *
 * A new study is one file that defines `const struct study study_NAME` as its last thing, and one line in STUDIES; see ARCHITECTURE.md, "Adding a thing". It owns its options and
 * its state; `peet study` finds it there, and merges its options. A study prints nothing, and changes nothing but its state and its answer.
 *
 * Life: study_state_new, options, study_run (or study_compare, study_program), look at the answer, study_release, study_state_free. */
#ifndef STUDY_STUDY_H
#define STUDY_STUDY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/opt.h"
#include "base/progress.h"
#include "peet/trace.h"
#include "study/table.h"

#define STUDIES(X) X(graph) X(parallelism) X(sharing) X(allocation) X(intrinsic)

/* X(name): formats that single studies add to those of all results. */
#define STUDY_FORMATS(X) X(pnml)

enum { STUDY_MAX_GRAIN = 4096, STUDY_MAX_ROWS = 512 };

struct study_state; /* completed by each study: its options, and what it needs besides */

/* The value of an option in a study's table: a member of its state. */
#define STUDY_OPTION(member) ((void *)offsetof(struct study_state, member))

/* What the answer is for. */
struct study_use {
    bool is_text;    /* people read it as text: tables are short unless an option says otherwise */
    bool is_program; /* a program is run, instead of a trace that is read */
};

/* The answer of a study. */
struct study_answer {
    struct result result;
    uint64_t damaged; /* parts of the trace that could not be read */
    bool differs;     /* the runs that were compared are not the same */
};

/* A format of one study. One with the name of a view is used in place of that view; another name is a line of STUDY_FORMATS. */
struct study_format {
    const char *name;
    void (*show)(const struct result *r, FILE *out);
};

/* A study. */
struct study {
    const char *name;
    const char *summary;                /* one line, no full stop */
    const struct opt *options;          /* values are STUDY_OPTION; ends with a NULL name; NULL: none */
    size_t state_size;                  /* bytes of struct study_state; 0: none */
    const struct study_state *defaults; /* NULL: zeros */
    /* Whether the options fit together and fit the use; sets those that depend on the use. Called before the others; NULL: they always do. */
    int (*check)(struct study_state *s, const struct study_use *use, struct peet_err *err);
    int (*run)(struct study_state *s, struct peet_trace *t, struct study_answer *answer, struct progress *progress,
               struct peet_err *err);
    /* Several traces of one program; NULL: it takes one only. */
    int (*compare)(struct study_state *s, struct peet_trace *const *t, size_t traces, struct study_answer *answer,
                   struct progress *progress, struct peet_err *err);
    /* Runs a program; NULL: it takes traces only. */
    int (*program)(struct study_state *s, char *const *argv, struct study_answer *answer, struct peet_err *err);
    const struct study_format *formats; /* of this study alone; ends with a NULL name; NULL: none */
};

#define X(name) extern const struct study study_##name;
STUDIES(X)
#undef X

const struct study *study_find(const char *name); /* NULL: there is none */
const struct study *study_at(size_t i);           /* NULL at the end */
const struct study_format *study_format_find(const struct study *s,
                                             const char *name); /* NULL: it adds no format of that name */

struct study_state *study_state_new(const struct study *s);
void study_state_free(struct study_state *state);
void *study_option(const struct study *s, struct study_state *state, const char *name); /* where its value is */

/* An error is one of usage: its text names the option. */
int study_check(const struct study *s, struct study_state *state, const struct study_use *use, struct peet_err *err);

/* progress may be NULL. After a failure the answer is empty. */
int study_run(const struct study *s, struct study_state *state, struct peet_trace *t, struct study_answer *ret,
              struct progress *progress, struct peet_err *err);
int study_compare(const struct study *s, struct study_state *state, struct peet_trace *const *t, size_t traces,
                  struct study_answer *ret, struct progress *progress, struct peet_err *err);
int study_program(const struct study *s, struct study_state *state, char *const *argv, struct study_answer *ret,
                  struct peet_err *err);
void study_release(struct study_answer *a);

#endif
