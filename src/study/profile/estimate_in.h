/* SPDX-License-Identifier: MIT */
/* What is kept of samples: estimate.c sees references, and estimate_results.c says what they stand for.
 *
 * Times and intervals are counted in bins whose widths grow with them. Intervals are kept as differences from bin to bin, so that one costs two additions however
 * long it is; a sum over them then has the weight of all that cover a bin. What is kept belongs to the object of the reference that ends an interval. */
#ifndef STUDY_PROFILE_ESTIMATE_IN_H
#define STUDY_PROFILE_ESTIMATE_IN_H

#include "study/profile/estimate.h"

struct way {
    uint64_t line, last;
    uint64_t filled; /* 1 + when, by a known miss; 0: by something else */
    uint32_t object; /* that was referred to last */
};

struct set {
    uint32_t sample; /* 1 + the one that it is of */
    uint16_t known;
    uint8_t group; /* 1 + its number */
};

/* By way and bin. */
struct ages {
    double *dead, *live, *open; /* differences; open: nobody knows how they ended */
    uint64_t *unknown;
};

struct group {
    uint64_t references, misses, unknown;
};

struct tally { /* of an object */
    uint64_t references, misses, unknown;
    uint64_t before[3];                     /* the same, before this sample */
    uint64_t generations, dead, generation; /* times of these */
    double kk, ku, uu, kn,
        un;         /* sums of products over the samples: k known misses, u unknown, n references of all objects */
    double of_open; /* of the sum over all objects: the part of open intervals that ends in a miss */
    struct ages ages;
    struct group group[ESTIMATE_GROUPS];
};

struct estimate {
    struct estimate_config config;
    unsigned fine;
    size_t bins;
    struct set *set;
    struct way *way;
    uint32_t sample; /* 1 + its number */
    bool is_open;
    uint64_t length;           /* of the sample, */
    double part;               /*   by what was said: as much as it counts */
    double times;              /* what an interval stands for */
    bool is_dealt;             /* sets were put into groups, in which misses are counted */
    struct solo_choice choice; /* sets that are told of, */
    uint32_t one_in;           /*   of so many one, */
    uint64_t told;             /*   so many misses in this sample, */
    uint64_t told_last;        /*   and in the last one in all sets */
    uint64_t apart;            /* references of this sample that are counted by themselves */
    unsigned last_group;
    size_t unknown_at; /* where the last unknown line is counted */
    struct tally *tally;
    uint32_t objects;
    uint64_t references, others; /* of all samples that have ended */
    double nn;
    struct tally all; /* sums over the objects, when they were asked for */
    bool has_all;
};

#endif
