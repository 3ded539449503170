/* SPDX-License-Identifier: MIT */
/* A profile from samples: what a sampled run does not know, and what the whole run was like.
 *
 * The machine's own caches go on from window to window as if nothing had been between them. So each processor has the cache of a sample
 * (estimate.h) beside them, of the size of its last own cache; it forgets everything where a thread comes out of a gap, or another thread comes.
 * References whose outcome it does not know are counted by themselves. In the end they become misses as often as the age estimator says, which
 * cost what known misses cost, for a cause that is unknown; then all is scaled to the whole run.
 *
 * Leaves out: with several threads, what one does to another's caches between its windows. */
#ifndef STUDY_PROFILE_SAMPLING_ESTIMATE_PROFILE_H
#define STUDY_PROFILE_SAMPLING_ESTIMATE_PROFILE_H

#include "map/source/source_sample.h"
#include "study/profile/sampling/estimate.h"
#include "study/profile/profile.h"

struct sampled;

/* source: made by source_take_sample with that config. */
int sampled_new(const struct machine_config *machine, struct source *source, const struct objects *objects,
                const struct sample_config *config, struct sampled **ret, struct peet_err *err);
void sampled_free(struct sampled *s);

/* What must be given to source_take_sample for a machine: lines and sets of a processor's last own cache. */
int sampled_geometry(const struct machine_config *machine, struct sample_config *ret, struct peet_err *err);

/* Before it runs: the machine that runs it, whose clock windows are timed with. */
void sampled_begin(struct sampled *s, const struct sim *machine);

void sampled_event(struct sampled *s, uint32_t process, const struct peet_event *e);
void sampled_gap(struct sampled *s, uint32_t thread, const struct peet_event *e);
struct sampled_reference { /* of a thread on a processor, at one of its lines */
    uint32_t thread;
    unsigned cpu;
    uint64_t line, own_line; /* as in struct sim_reference */
    bool is_first;           /* the reference's first line */
};
enum estimate_outcome sampled_refer(struct sampled *s, const struct sampled_reference *r, uint32_t object);

/* A reference to an object is unknown that was in a leaf of the profile. */
void sampled_unknown(struct sampled *s, uint32_t object, uint32_t path);

/* The same with a machine that tells less (sim/exec/exec_blocks.h), which has to be said before. */
void sampled_observe_blocks(struct sampled *s);
struct exec_blocks;
bool sampled_classify(struct sampled *s, struct exec_blocks *by, uint32_t object, uint64_t line, bool is_new,
                      uint64_t number);
void sampled_use(struct sampled *s, struct exec_blocks *by, uint64_t line, uint64_t number, uint64_t wait);
void sampled_add_log(struct sampled *s, const struct sample_entry *log, size_t n); /* as in estimate_add_log */
void sampled_add_misses(struct sampled *s, uint32_t object, uint64_t misses);      /* as in estimate_add_misses, */
void sampled_add_cold(struct sampled *s, uint64_t maybe_cold);                     /*   so many of them perhaps cold */
struct logged_sets sampled_choose_logged_sets(struct sampled *s); /* as in estimate_choose_logged_sets */

/* Whether a line that the machine has not had was used between windows. */
bool sampled_was_touched(const struct sampled *s, const struct sim_reference *r);

/* At the end: a profile of what was seen becomes one of the whole run. */
void sampled_scale(struct sampled *s, struct profile *p);

struct sampled_object {
    uint64_t observed,
        unknown; /* references in windows and chosen sets; and those of them of which it is unknown whether they missed */
    uint64_t low, high; /* misses in windows and chosen sets: if none or all of the unknown references missed */
    double mu;          /* part of the unknown that is taken for misses */
    /* Of the whole run: */
    uint64_t references;
    double misses,
        error; /* error: as far as the interval of 95 % reaches on its longer side; NAN: there are too few windows */
    double from, to;           /* that interval; NAN as well */
    struct estimate_sets sets; /* with chosen sets */
};
void sampled_object(struct sampled *s, uint32_t object, struct sampled_object *ret); /* or ESTIMATE_ALL */

/* Whether the samples say how much it is: the interval is not wider than the estimate, or, of a single object, than a tenth of all misses. */
bool sampled_is_significant(struct sampled *s, const struct sampled_object *o);

/* How far the cycles of the whole run may be off, and their parts; NAN: there are too few windows. */
struct sampled_time {
    double error, compute_error, stall_error;
};
struct sampled_time sampled_time(const struct sampled *s);

/* Where references were left out, nobody knows which lines they used: so many misses of the whole run were of lines that no window had seen before, and may be cold. */
uint64_t sampled_maybe_cold(const struct sampled *s);
bool sampled_has_left_out(const struct sampled *s);

struct sample_counts sampled_counts(const struct sampled *s);
const struct sample_config *sampled_config(const struct sampled *s);

#endif
