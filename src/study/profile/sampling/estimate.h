/* SPDX-License-Identifier: MIT */
/* What a cache would have missed, from samples of a run (Martonosi, Gupta and Anderson, 1993).
 *
 * At the beginning of a sample nobody knows what the cache holds. A reference to a line that the sample has not seen, in a set of which fewer
 * lines are known than it has ways, is unknown: it may be a hit or a miss. All others are known. With k known misses and u unknown references of n, the
 * miss rate is (k + mu u) / n, where mu, the part of the unknown that miss, is between 0 and 1: these are bounds that always hold. For
 * mu itself there are three estimators, each for every data object:
 *
 *   half        mu = 0.5
 *   generation  MemSpy's: dead time by generation time. A generation goes from a known miss in a frame of the cache to the next one, and
 *               is dead from its last use on. Short samples see short generations only, so it is wrong where few misses are known; how many
 *               generations there were per frame and sample says how much it is worth.
 *   age         an unknown reference at time t after the beginning ends an interval in which its frame was not used, of which only
 *               the last t is seen. So it is a miss as often as known intervals that are at least that long end in misses. Long intervals fit
 *               less often into a sample of tau references than short ones do, so one of length x counts 1 / (tau - x).
 *
 * In a set of several ways, an unknown reference before which j lines of the set were seen is compared with intervals in which j other lines
 * of the set were used. Caches replace the line that was used least recently.
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

struct estimate_config {
    uint64_t sets; /* a power of two */
    uint32_t ways;
    uint64_t length; /* of a sample, in references */
};

struct estimate;

int estimate_new(const struct estimate_config *config, struct estimate **ret, struct peet_err *err);
void estimate_free(struct estimate *e);

/* Before the first sample: the group of each set, below ESTIMATE_GROUPS. Otherwise sets are put into groups in turn, as they come. */
void estimate_set_groups(struct estimate *e, const uint8_t *group);

void estimate_begin(struct estimate *e);
void estimate_begin_length(struct estimate *e,
                           uint64_t length); /* the same for one that is shorter than was said, and counts for less */

/* A line (address by the size of lines) is referred to, for an object (any small number), `now` references after the beginning. */
enum estimate_outcome estimate_refer(struct estimate *e, uint64_t line, uint32_t object, uint64_t now);

/* The reference just now, which was unknown, was to a line that nobody had used before in all of the run: it is a miss. */
void estimate_set_cold(struct estimate *e, uint64_t line, uint32_t object, uint64_t now);

/* The same from who gives only what matters: lines that a cache has lost, or has not had since the sample began, and, now and then, that it still
 * uses one. References are counted by themselves. */
struct estimate_clock {
    uint64_t now;
    uint64_t
        wait; /* of uses: those that come sooner than that after the last one are told only sometimes, the more often the later they come */
    uint64_t (*last)(const void *context, uint64_t line); /* when a line of the sample was used last */
    const void *context;
};
enum estimate_outcome estimate_miss(struct estimate *e, uint64_t line, uint32_t object, const struct estimate_clock *c);
void estimate_use(struct estimate *e, uint64_t line, const struct estimate_clock *c);
/* The same of sets of one way, from who knows what was missed since something else was there: many at once, which have the number of an object where
 * they had a cell. from: the number of the reference with which the sample begins. Returns how many may have been cold. */
uint64_t estimate_add_log(struct estimate *e, const struct sample_entry *seen, size_t n, uint64_t from);
/* Where much is missed, that is much to tell, and more than estimators need. So behind a sample of many misses comes one that is told of some sets only, other ones each time, which
 * stand for all; of the rest it is told what comes to a set first, and how many misses there were. Asked before a sample, it is for
 * that one. */
struct logged_sets estimate_choose_logged_sets(struct estimate *e);
void estimate_add_misses(struct estimate *e, uint32_t object, uint64_t misses); /* in other sets, in this sample */
void estimate_add_references(struct estimate *e, uint64_t references);          /* in this sample */
void estimate_add_object_references(struct estimate *e, uint32_t object, uint64_t references); /* of all samples */

/* The line that was given last is of the same reference as the one before it: the reference counts once, each of its lines has its
 * own outcome. */
void estimate_join_line(struct estimate *e, uint32_t object, uint64_t line);

/* others: references in the sample that were not given, since their sets were not chosen. */
void estimate_end(struct estimate *e, uint64_t others);

void estimate_add_time(struct estimate *e, double cycles);    /* in this sample */
void estimate_add_fresh(struct estimate *e, uint32_t object); /* a line that no sample had seen before */

/* How much of the run the samples are: for results. Without it, next to nothing. */
struct estimate_run {
    double observed;   /* part of the references of the run that are in samples */
    double missed; /* part of the references that should have been in samples and are not */
};
void estimate_set_run(struct estimate *e, const struct estimate_run *run);

struct estimate_result {
    uint64_t samples;
    uint64_t references, misses, unknown; /* n, k, u; misses: known ones */
    uint64_t generations;                 /* that were seen whole */
    double quality; /* of `generation`: generations per frame and sample; below 1 it is not to be trusted */
    double touched; /* part of the frames that a sample refers to */
    double mu[ESTIMATORS_COUNT];
    double rate[ESTIMATORS_COUNT], low, high; /* misses by references, and the bounds with mu = 0 and mu = 1 */
    double share[ESTIMATORS_COUNT];           /* misses by all references of the samples, of whatever object */
    double spread
        [ESTIMATORS_COUNT]; /* of share: half of the interval of 95 % by differences between samples (interval.h), as if mu were true; NAN: there are too few */
    double mu_low,
        mu_high; /* between which the samples show mu to be; `age` may be outside, where it goes beyond what they show */
    uint64_t
        fresh; /* lines that were seen in a sample for the first time: the run has missed each of them at least once */
};

/* Of an object, or of all. */
void estimate_result(struct estimate *e, uint32_t object, struct estimate_result *ret);

uint64_t estimate_references(struct estimate *e);  /* of all objects */
double estimate_largest(const struct estimate *e); /* references of the largest sample */

/* Cycles by reference, if an unknown reference that hits takes `less` than it took in the sample, in which mu of them miss; and half of their interval of 95 %. */
double estimate_time(struct estimate *e, double mu, double less, double *ret_spread);

/* mu of `age` as if all references were to one object: what it is worth to tell objects apart. */
double estimate_pooled_age(struct estimate *e);

uint32_t estimate_objects(const struct estimate *e); /* their numbers are below */

/* ---- samples of sets ---- */

/* Misses of the whole run, from those in chosen sets. Both are right if sets are alike; where they are not, they err in different ways. */
struct estimate_sets {
    double ratio,
        ratio_error; /* misses by references in chosen sets, times all references; wrong where few lines have many references */
    double fraction,
        fraction_error; /* misses in chosen sets by the part of the sets that was chosen; wrong where few sets have many misses */
    bool disagree; /* by more than a tenth */
};

/* From the groups of sets into which e deals them: `fraction` of all sets were chosen, run: references of the whole run. Errors are halves of
 * intervals of 95 %, from the differences between groups, but never less than what so few sets can say. */
void estimate_sets(struct estimate *e, uint32_t object, enum estimator by_which, double fraction, double run,
                   struct estimate_sets *ret);

#endif
