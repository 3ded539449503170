/* SPDX-License-Identifier: MIT */
/* Makes a profile: observes a simulation, and attributes its references to places and data objects. See docs/design/profile.md.
 *
 * Life: profiler_new (or profiler_open_trace, profiler_open_source), settings, then profiler_run, or profiler_attach, a run, profiler_finish.
 * Then profiler_take gives the profile away and frees the profiler; profiler_free frees both. */
#ifndef STUDY_PROFILE_PROFILER_H
#define STUDY_PROFILE_PROFILER_H

#include "map/source/source_sample.h"
#include "study/profile/profile.h"

struct profiler;

/* Switches for tests. */
struct profiler_debug {
    bool observe_all; /* observe every reference, also where totals of the block engine would do */
    uint32_t
        jit_threshold; /* executions after which an item becomes machine code, a long loop at once; 0: the default */
    uint64_t member_stride; /* bytes after which members of named objects repeat; 0: as their types say */
};

/* The source must not give strided loops, and must outlive the profiler; for a sampled profile, the profile, too. */
int profiler_new(const struct machine_config *machine, struct source *source, struct profiler **ret,
                 struct peet_err *err);

/* Opens a trace as a source (*ret_source), from samples if sampling is not NULL, and a profiler for it. After an error, free what is not NULL. */
int profiler_open_trace(struct peet_trace *t, const struct machine_config *machine,
                        const struct sample_config *sampling, struct source **ret_source, struct profiler **ret,
                        struct peet_err *err);

/* The source of a trace that a profiler observes. */
int profiler_open_trace_source(struct peet_trace *t, const struct machine_config *machine, bool is_sampled,
                               struct source **ret, struct peet_err *err);

/* A profiler for `inner`, which *ret_source owns from then on. After an error the caller frees those of *ret_source and *ret that are not NULL; if both are, inner has been freed. inner gives strided loops if it is to be sampled, and otherwise none. */
int profiler_open_source(struct source *inner, const struct machine_config *machine,
                         const struct sample_config *sampling, struct source **ret_source, struct profiler **ret,
                         struct peet_err *err);

/* Before the run, if the source is one of source_take_sample with that config. */
int profiler_set_sample(struct profiler *x, const struct sample_config *config, struct peet_err *err);

/* Before the run: heap objects are distinguished by `calls` more calls (objects_set_depth). */
void profiler_set_calls(struct profiler *x, unsigned calls);
void profiler_set_debug(struct profiler *x, const struct profiler_debug *debug);

/* Simulates the source to its end, or until *stop. */
int profiler_run(struct profiler *x, const volatile uint32_t *stop, struct progress *progress, struct peet_err *err);

/* The two halves of profiler_run, for a simulation that others observe, too: before and after sim_run. */
void profiler_attach(struct profiler *x, struct sim *sim);
void profiler_finish(struct profiler *x, struct sim *sim);

struct profile *profiler_profile(struct profiler *x); /* unfinished; belongs to the profiler */
struct profile *profiler_take(struct profiler *x);
void profiler_free(struct profiler *x);

#endif
