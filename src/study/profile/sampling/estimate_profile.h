/* SPDX-License-Identifier: MIT */
/* A profile from samples: estimates of the whole run from windows of it. See docs/design/sampling.md.
 *
 * The record executor's caches keep their contents from window to window, as if no reference were between them; those of the block executor are
 * emptied. Each core therefore also has the
 * cache of a sample (estimate.h), of the size of its last private cache; it is empty after a gap or a switch of threads. References of
 * unknown outcome are counted apart. At the end they become misses of unknown cause, as often as the age estimator says, with the stall of
 * known misses; then all counts are scaled to the whole run.
 *
 * Leaves out: what threads do to the caches of other cores between their windows. */
#ifndef STUDY_PROFILE_SAMPLING_ESTIMATE_PROFILE_H
#define STUDY_PROFILE_SAMPLING_ESTIMATE_PROFILE_H

#include "map/source/source_sample.h"
#include "study/profile/sampling/estimate.h"
#include "study/profile/profile.h"

struct sampled;

/* source: made by source_take_sample with that config. All pointers must outlive it. */
int sampled_new(const struct machine_config *machine, struct source *source, const struct objects *objects,
                const struct sample_config *config, struct sampled **ret, struct peet_err *err);
void sampled_free(struct sampled *s);

/* Sets line_bytes and sets of a config for source_take_sample: those of a core's last private cache. */
int sampled_geometry(const struct machine_config *machine, struct sample_config *ret, struct peet_err *err);

/* Before the run: the simulation whose clocks give the times of windows. */
void sampled_begin(struct sampled *s, const struct sim *machine);

void sampled_event(struct sampled *s, uint32_t process, const struct peet_event *e);
void sampled_gap(struct sampled *s, uint32_t thread, const struct peet_event *e);

/* One line of a reference of a thread on a core. */
struct sampled_reference {
    uint32_t thread;         /* index in the source */
    unsigned cpu;            /* number of the core */
    uint64_t line, own_line; /* as in struct sim_reference */
    bool is_first;           /* the first line of its reference */
};
enum estimate_outcome sampled_refer(struct sampled *s, const struct sampled_reference *r, uint32_t object);

/* Counts an unknown reference to an object, by the path counts to which it belongs. */
void sampled_unknown(struct sampled *s, uint32_t object, uint32_t path);

/* ---- from the block engine, which reports misses and some uses, not references (sim/exec/exec_blocks.h) ---- */

void sampled_observe_blocks(struct sampled *s); /* before the run */
struct exec_blocks;
/* A miss of the reference with that number. is_new: the line was never in the cache. Returns whether the outcome is known. */
bool sampled_classify(struct sampled *s, struct exec_blocks *by, uint32_t object, uint64_t line, bool is_new,
                      uint64_t number);
void sampled_use(struct sampled *s, struct exec_blocks *by, uint64_t line, uint64_t number,
                 uint64_t wait);                                                   /* estimate_clock.wait */
void sampled_add_log(struct sampled *s, const struct sample_entry *log, size_t n); /* as estimate_add_log */
void sampled_add_misses(struct sampled *s, uint32_t object, uint64_t misses);      /* as estimate_add_misses */
void sampled_add_cold(struct sampled *s, uint64_t maybe_cold);                     /* misses that may be cold */
struct logged_sets sampled_choose_logged_sets(struct sampled *s);                  /* as estimate_choose_logged_sets */

/* Whether a line that the simulated caches never had was referred to between windows. */
bool sampled_was_touched(const struct sampled *s, const struct sim_reference *r);

/* After the run: scales a profile of the windows to the whole run. */
void sampled_scale(struct sampled *s, struct profile *p);

/* Estimates for one object, or for all together. */
struct sampled_object {
    /* in windows and sampled sets: */
    uint64_t observed; /* references */
    uint64_t unknown;  /* references of unknown outcome */
    uint64_t low;      /* misses if no unknown reference missed */
    uint64_t high;     /* misses if all of them missed */
    double mu;         /* part of the unknown references that is taken for misses */
    /* of the whole run: */
    uint64_t references;
    double misses;
    double error;              /* misses: the longer side of the interval of 95 %; NAN: too few windows */
    double from, to;           /* misses: that interval; NAN: too few windows */
    struct estimate_sets sets; /* zeros if all sets are sampled */
};
void sampled_object(struct sampled *s, uint32_t object, struct sampled_object *ret); /* object: or ESTIMATE_ALL */

/* Whether the samples determine an estimate: its error is at most the estimate or, for a single object, a tenth of all misses. */
bool sampled_is_significant(struct sampled *s, const struct sampled_object *o);

/* Errors of the cycles of the whole run, and of their parts; NAN: too few windows. */
struct sampled_time {
    double error, compute_error, stall_error; /* cycles: half of the interval of 95 % */
};
struct sampled_time sampled_time(const struct sampled *s);

/* Misses of the whole run on lines to which no window had referred, and which may be cold: lines used between windows are unknown where the
 * source left references out (sampled_has_left_out). */
uint64_t sampled_maybe_cold(const struct sampled *s);
bool sampled_has_left_out(const struct sampled *s);

struct sample_counts sampled_counts(const struct sampled *s);
const struct sample_config *sampled_config(const struct sampled *s);

#endif
