/* SPDX-License-Identifier: MIT */
/* What is kept of a sampled profile: estimate_profile.c sees references, and estimate_whole.c says what the whole run was like. */
#ifndef STUDY_PROFILE_SAMPLING_ESTIMATE_WHOLE_H
#define STUDY_PROFILE_SAMPLING_ESTIMATE_WHOLE_H

#include "study/profile/sampling/estimate_profile.h"
#include "study/profile/sampling/footprint.h"

struct core_estimator { /* a processor */
    struct estimate *estimate;
    bool is_open;
    uint32_t thread;
    uint64_t gaps;        /* of the thread, when it came here */
    uint64_t now;         /* references in the sample */
    uint64_t observed_before; /* and in all before it */
    double began;         /* cycles of the processor when the window began */
};

struct sampled {
    struct source *source;
    bool by_blocks; /* there is one processor, and it tells less */
    struct sample_config config;
    struct core_estimator *core;
    unsigned cpus;
    uint64_t *gaps; /* by thread */
    uint32_t threads;
    uint64_t maybe_cold;           /* misses of lines that were not seen before, but perhaps used */
    struct map observed_lines;         /* lines that were referred to in windows, by process */
    struct map unknown;            /* uint64_t: references, by leaf and object */
    const struct sim *machine;     /* whose clock windows are timed with; NULL: of none */
    const struct objects *objects; /* what is known of their sizes */
    bool has_footprint;            /* there is one processor, so that lines that fit into its cache stay there */
    struct footprint footprint;
    struct sampled_object
        *object;      /* when all is known: of each object, and behind them of all together; NULL: before */
    uint32_t counted; /* how many objects these are */
    struct sampled_time time;
};

/* A processor's window ends, if one is open. */
void sampled_close(struct sampled *s, struct core_estimator *f);

#endif
