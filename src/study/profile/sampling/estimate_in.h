/* SPDX-License-Identifier: MIT */
/* An estimate while samples are added: estimate.c takes references, estimate_samples.c batches of samples, estimate_results.c computes results.
 *
 * Times and intervals are counted in bins whose widths grow with time. Counts of intervals are kept as differences from bin to bin, so that
 * an interval costs two additions; a running sum gives the weight of all intervals that contain a bin. */
#ifndef STUDY_PROFILE_SAMPLING_ESTIMATE_IN_H
#define STUDY_PROFILE_SAMPLING_ESTIMATE_IN_H

#include "study/profile/sampling/estimate.h"

/* A line of a set, in the cache of a sample. */
struct sample_way {
    uint64_t line;   /* number of the line */
    uint64_t last;   /* time of its last use: references since the sample began */
    uint64_t filled; /* 1 + time of the known miss that filled it; 0: filled by an unknown reference */
    uint32_t object; /* index of the data object that was referred to last */
};

/* A set of the cache of a sample; its ways are in the order of last use. */
struct sample_set {
    uint32_t sample; /* 1 + number of the sample to which its contents belong */
    uint16_t known;  /* lines */
    uint8_t group;   /* 1 + number of its group; 0: none yet */
};

/* Weights of intervals between uses, by way and bin; arrays of differences. */
struct age_bins {
    double *dead;      /* intervals that ended in a miss */
    double *live;      /* intervals that ended in a hit */
    double *open;      /* intervals whose end is unknown */
    uint64_t *unknown; /* unknown references, by time since the sample began */
};

/* Counts of a group of sets. */
struct set_group {
    uint64_t references, misses, unknown; /* misses: known ones; unknown: references of unknown outcome */
};

/* Unknown references for which intervals within samples stand. An interval of length x that began before a sample of tau references ends in
 * an unknown reference at x of the tau - x positions at which it lies within the sample. Intervals longer than (MASS_PARTS - 1) / MASS_PARTS of a sample stand for none. */
struct interval_mass {
    double sum;     /* unknown references */
    double squares; /* sum of the squares of what each interval stands for */
};
enum { MASS_PARTS = 4 };

/* Counts of an object in consecutive samples. */
struct sample_batch {
    uint64_t misses;  /* known ones */
    uint64_t unknown; /* references of unknown outcome */
};
enum { ESTIMATE_BATCHES = 64 };

/* Counts of an object in all samples. */
struct object_tally {
    uint64_t references, misses, unknown; /* as in struct set_group */
    uint64_t before[3];                   /* references, misses, unknown before the current sample */
    uint64_t generations;                 /* that began and ended in a sample */
    uint64_t dead, generation;            /* references: sums of dead times and of lengths of these generations */
    uint64_t fresh;                       /* lines to which no earlier sample had referred */
    struct sample_batch batch[ESTIMATE_BATCHES];
    struct interval_mass dead_mass, live_mass; /* of intervals that ended in a miss, in a hit */
    double of_open; /* in the sum over all objects: part of the open intervals that ends in a miss */
    struct age_bins ages;
    struct set_group group[ESTIMATE_GROUPS];
};

/* All samples in their order, in at most ESTIMATE_BATCHES batches of consecutive ones. */
struct sample_batches {
    uint32_t count;                                                /* batches in use */
    uint32_t in_each;                                              /* samples of a batch but the last one */
    uint32_t in_last;                                              /* samples of the last batch */
    double references[ESTIMATE_BATCHES], cycles[ESTIMATE_BATCHES]; /* by batch, of all objects */
    double largest;                                                /* references of the largest sample */
};

/* What a direct-mapped cache logs in a sample. */
struct set_log {
    struct logged_sets sets; /* that are logged in this sample */
    uint32_t one_in;         /* sets for which a logged set stands */
    uint64_t misses;         /* logged in this sample */
    uint64_t misses_before;  /* of all sets in the sample before, estimated */
};

/* The cache of a sample, and the counts of all samples. */
struct estimate {
    struct estimate_config config;
    unsigned fine;          /* log2 of the bins for a doubling of time */
    size_t bins;            /* of age_bins, for each way; one more ends the differences */
    struct sample_set *set; /* by number */
    struct sample_way *way; /* config.ways for each set */
    uint32_t sample;        /* samples begun; also 1 + number of the current one */
    bool is_open;           /* a sample has begun and not ended */
    uint64_t length;        /* references of the current sample, as planned */
    double part;            /* length / config.length: weight of the current sample */
    double times;           /* intervals for which an interval that is reported stands */
    bool has_groups;        /* sets were given groups: samples of sets */
    struct set_log log;
    uint64_t bulk_references;   /* of this sample: counted by estimate_add_references */
    unsigned last_group;        /* number of sets that were put into groups as they were referred to */
    size_t unknown_at;          /* index in ages.unknown of the last unknown line */
    struct object_tally *tally; /* by object */
    uint32_t objects;
    uint64_t references; /* of all samples that have ended */
    uint64_t others;     /* references of these samples to sets that are not sampled */
    struct sample_batches batches;
    double time; /* cycles of the current sample */
    struct estimate_run run;
    struct object_tally all; /* sums over all objects; valid if has_all */
    bool has_all;
};

#endif
