/* SPDX-License-Identifier: MIT */
/* Estimates of a cache's misses, from samples of a run (Martonosi, Gupta and Anderson, 1993). See docs/design/sampling.md.
 *
 * A reference is unknown if its line was not referred to in the sample and the sample knows fewer lines of its set than the set has ways.
 * With k known misses and u unknown references of n, the miss rate is (k + mu u) / n, 0 <= mu <= 1. Three estimators find mu, for each data
 * object: half of the unknown references miss (`half`); dead time by generation time of cache frames, as MemSpy does (`generation`); known
 * intervals of equal age (`age`).
 *
 * Life: estimate_new; for each sample begin, references, end; then results; estimate_free. */
#ifndef STUDY_PROFILE_SAMPLING_ESTIMATE_H
#define STUDY_PROFILE_SAMPLING_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peet/err.h"
#include "sim/exec/sample_log.h"

/* X(name, what notes call it) */
#define ESTIMATORS(X) X(half, "half of the unknown references") X(generation, "generations") X(age, "ages")
enum estimator {
#define X(name, title) ESTIMATE_##name,
    ESTIMATORS(X) ESTIMATORS_COUNT
#undef X
};

enum estimate_outcome { OUTCOME_HIT, OUTCOME_MISS, OUTCOME_UNKNOWN };

enum { ESTIMATE_ALL = UINT32_MAX, ESTIMATE_GROUPS = 16 };

/* The cache of a sample. */
struct estimate_config {
    uint64_t sets; /* a power of two */
    uint32_t ways;
    uint64_t length; /* references of a sample, at most */
};

struct estimate;

int estimate_new(const struct estimate_config *config, struct estimate **ret, struct peet_err *err);
void estimate_free(struct estimate *e);

/* Before the first sample: the group of each set, below ESTIMATE_GROUPS. Otherwise a set is put into the next group when it is referred to first. */
void estimate_set_groups(struct estimate *e, const uint8_t *group);

void estimate_begin(struct estimate *e);
/* Begins a sample of `length` references, at most config.length; it counts by its length. */
void estimate_begin_length(struct estimate *e, uint64_t length);

/* A reference to a line (address / bytes of a line), for an object (a small number). now: references since the sample began. */
enum estimate_outcome estimate_refer(struct estimate *e, uint64_t line, uint32_t object, uint64_t now);

/* The last reference, which was unknown, is a miss: its line was never referred to before in the run. */
void estimate_set_cold(struct estimate *e, uint64_t line, uint32_t object, uint64_t now);

/* ---- instead of every reference: what a simulated cache reports. References are then counted by estimate_add_references. ---- */

/* Times of uses, for a cache that does not report each of them. */
struct estimate_clock {
    uint64_t now; /* references since the sample began */
    uint64_t
        wait; /* references; a use sooner than that after the last one is reported with probability interval / wait; 0: all are reported */
    uint64_t (*last)(const void *context, uint64_t line); /* time of the last use of a line of the sample */
    const void *context;
};
/* The cache missed a line that it removed, or did not yet have in this sample. */
enum estimate_outcome estimate_miss(struct estimate *e, uint64_t line, uint32_t object, const struct estimate_clock *c);
/* A line that the cache has was used. */
void estimate_use(struct estimate *e, uint64_t line, const struct estimate_clock *c);
/* Entries of the sample log of a direct-mapped cache, in the order of time; an entry's `what` holds the object of a miss. from: number of the
 * reference with which the sample begins. Returns the number of misses that may be cold. */
uint64_t estimate_add_log(struct estimate *e, const struct sample_entry *log, size_t n, uint64_t from);
/* Before a sample: the sets that the cache is to log in it. All, or after a sample of many misses some, which stand for all; they change from
 * sample to sample. Of the other sets, first misses are logged, and the number of all misses is reported. */
struct logged_sets estimate_choose_logged_sets(struct estimate *e);
void estimate_add_misses(struct estimate *e, uint32_t object,
                         uint64_t misses);                             /* of sets that are not logged, in this sample */
void estimate_add_references(struct estimate *e, uint64_t references); /* in this sample */
void estimate_add_object_references(struct estimate *e, uint32_t object, uint64_t references); /* of all samples */

/* ---- in both ways ---- */

/* The last line belongs to the same reference as the line before it: the reference counts once, each line has its own outcome. */
void estimate_join_line(struct estimate *e, uint32_t object, uint64_t line);

/* others: references of the sample to sets that are not sampled. */
void estimate_end(struct estimate *e, uint64_t others);

void estimate_add_time(struct estimate *e, double cycles);    /* in this sample */
void estimate_add_fresh(struct estimate *e, uint32_t object); /* a line to which no sample had referred before */

/* The part of the run that the samples are, for results; zeros unless estimate_set_run was called. */
struct estimate_run {
    double observed; /* part of the references of the run that are in samples */
    double missed;   /* part of the references that should have been in samples and are not */
};
void estimate_set_run(struct estimate *e, const struct estimate_run *run);

/* What the samples say of an object, or of all objects. */
struct estimate_result {
    uint64_t samples;
    uint64_t references, misses, unknown; /* n, k, u; misses: known ones */
    uint64_t generations;                 /* that began and ended in one sample */
    double quality; /* of `generation`: generations by frame and sample; below 1 the estimator is not to be trusted */
    double touched; /* part of the frames to which a sample refers */
    double mu[ESTIMATORS_COUNT];
    double rate[ESTIMATORS_COUNT], low, high; /* misses by references; low and high: bounds, with mu = 0 and mu = 1 */
    double share[ESTIMATORS_COUNT];           /* misses of the object by references of the samples to all objects */
    /* Half of the interval of 95 % of share, by differences between samples (interval.h), as if mu were exact; NAN: too few samples. */
    double spread[ESTIMATORS_COUNT];
    double mu_low, mu_high; /* bounds of mu by intervals within samples; `age` may be outside, where it extrapolates */
    uint64_t fresh; /* lines to which no earlier sample had referred: the run has missed each of them at least once */
};

/* object: ESTIMATE_ALL for all together. */
void estimate_result(struct estimate *e, uint32_t object, struct estimate_result *ret);

uint64_t estimate_references(struct estimate *e);  /* of all objects */
double estimate_largest(const struct estimate *e); /* references of the largest sample */

/* Cycles by reference, if an unknown reference that hits takes `less` cycles fewer than in the sample, where mu of them miss.
 * *ret_spread: half of the interval of 95 % of the cycles. */
double estimate_time(struct estimate *e, double mu, double less, double *ret_spread);

/* mu of `age` as if all references were to one object: to measure what separate objects gain. */
double estimate_pooled_age(struct estimate *e);

uint32_t estimate_objects(const struct estimate *e); /* their numbers are below */

/* ---- samples of sets ---- */

/* Two estimates of the misses of a run, from misses in sampled sets. Both are right if all sets are alike. */
struct estimate_sets {
    double
        ratio; /* misses by references in sampled sets, times all references; wrong where few lines have many references */
    double ratio_error; /* half of its interval of 95 % */
    double
        fraction; /* misses in sampled sets by the part of the sets that is sampled; wrong where few sets have many misses */
    double fraction_error; /* half of its interval of 95 % */
    bool disagree;         /* by more than a tenth */
};

/* fraction: sampled sets by all sets; run: references of the whole run. Errors come from differences between the groups of sets; they are
 * at least what so small a number of sets can hide. */
void estimate_sets(struct estimate *e, uint32_t object, enum estimator by_which, double fraction, double run,
                   struct estimate_sets *ret);

#endif
