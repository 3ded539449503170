/* SPDX-License-Identifier: MIT */
/* What is kept of samples: estimate.c sees references, and estimate_results.c says what they stand for.
 *
 * Times and intervals are counted in bins whose widths grow with them. Intervals are kept as differences from bin to bin, so that one costs two additions however
 * long it is; a sum over them then has the weight of all that cover a bin. What is kept belongs to the object of the reference that ends an interval. */
#ifndef STUDY_PROFILE_SAMPLING_ESTIMATE_IN_H
#define STUDY_PROFILE_SAMPLING_ESTIMATE_IN_H

#include "study/profile/sampling/estimate.h"

struct sample_way {
    uint64_t line, last;
    uint64_t filled; /* 1 + when, by a known miss; 0: by something else */
    uint32_t object; /* that was referred to last */
};

struct sample_set {
    uint32_t sample; /* 1 + the one that it is of */
    uint16_t known;
    uint8_t group; /* 1 + its number */
};

/* By way and bin. */
struct age_bins {
    double *dead, *live, *open; /* differences; open: nobody knows how they ended */
    uint64_t *unknown;
};

struct set_group {
    uint64_t references, misses, unknown;
};

/* Of unknown references, how many intervals that were seen whole stand for; and the sum of the squares of what each of them stands for. An interval of length x that
 * began before a window would have ended in an unknown reference in x of the tau - x places in which it is seen whole. Those that are too long for that to be
 * known well (MASS_PARTS) stand for none. */
struct interval_mass {
    double sum, squares;
};
enum { MASS_PARTS = 4 }; /* an interval is at most 3/4 of its window */

/* Windows that follow each other, added up. */
struct sample_batch {
    uint64_t misses, unknown; /* known ones; references of which nothing is known */
};
enum { ESTIMATE_BATCHES = 64 };

struct object_tally { /* of an object */
    uint64_t references, misses, unknown;
    uint64_t before[3];                     /* the same, before this sample */
    uint64_t generations, dead, generation; /* times of these */
    uint64_t fresh;                         /* lines that no sample had seen before */
    struct sample_batch batch[ESTIMATE_BATCHES];
    struct interval_mass dead_mass, live_mass; /* of intervals that ended in a miss, and in a hit */
    double of_open; /* of the sum over all objects: the part of open intervals that ends in a miss */
    struct age_bins ages;
    struct set_group group[ESTIMATE_GROUPS];
};

struct estimate {
    struct estimate_config config;
    unsigned fine;
    size_t bins;
    struct sample_set *set;
    struct sample_way *way;
    uint32_t sample; /* 1 + its number */
    bool is_open;
    uint64_t length;            /* of the sample, */
    double part;                /*   by what was said: as much as it counts */
    double times;               /* what an interval stands for */
    bool has_groups;            /* sets were put into groups, in which misses are counted */
    struct logged_sets logged;  /* sets that are told of, */
    uint32_t one_in;            /*   of so many one, */
    uint64_t log_misses;        /*   so many misses in this sample, */
    uint64_t log_misses_before; /*   and in the last one in all sets */
    uint64_t bulk_references;   /* references of this sample that are counted by themselves */
    unsigned last_group;
    size_t unknown_at; /* where the last unknown line is counted */
    struct object_tally *tally;
    uint32_t objects;
    uint64_t references, others; /* of all samples that have ended */
    uint32_t batches;            /* in use; the last one is of `in_last` samples, the others of `in_each` */
    uint32_t in_each, in_last;
    double batch_references[ESTIMATE_BATCHES], batch_time[ESTIMATE_BATCHES]; /* of all objects; cycles */
    double largest;                                                          /* references of the largest sample */
    double time;                                                             /* cycles of the sample that is open */
    struct estimate_run run;
    struct object_tally all; /* sums over the objects, when they were asked for */
    bool has_all;
};

#endif
