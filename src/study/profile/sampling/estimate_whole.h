/* SPDX-License-Identifier: MIT */
/* The state of a sampled profile: estimate_profile.c takes references of windows, estimate_whole.c estimates the whole run. */
#ifndef STUDY_PROFILE_SAMPLING_ESTIMATE_WHOLE_H
#define STUDY_PROFILE_SAMPLING_ESTIMATE_WHOLE_H

#include "study/profile/sampling/estimate_profile.h"
#include "study/profile/sampling/footprint.h"

/* The cache of a sample beside a core's simulated caches, and the core's current window. */
struct core_estimator {
    struct estimate *estimate;
    bool is_open;             /* a window has begun and not ended */
    uint32_t thread;          /* of the window */
    uint64_t gaps;            /* gap events of the thread when the window began */
    uint64_t now;             /* references of the window; with the block engine, number of its first reference */
    uint64_t observed_before; /* references in all windows before this one */
    double began;             /* cycles of the core when the window began */
};

/* A sampled profile while windows are simulated, and its estimates. */
struct sampled {
    struct source *source;
    bool by_blocks; /* the block engine reports: there is one core */
    struct sample_config config;
    struct core_estimator *core; /* by core */
    unsigned cpus;
    uint64_t *gaps; /* gap events, by thread */
    uint32_t threads;
    uint64_t
        maybe_cold; /* misses of lines without an earlier reference in windows that may have had one between them */
    struct map observed_lines;     /* no values: lines that were referred to in windows, by process */
    struct map unknown;            /* uint64_t: unknown references, by path counts and object */
    const struct sim *machine;     /* whose clocks time the windows; NULL: windows have no times */
    const struct objects *objects; /* for their sizes */
    bool has_footprint;            /* there is one core, so that lines that fit into its cache stay there */
    struct footprint footprint;
    struct sampled_object *object; /* by object, and last of all together; NULL: before sampled_scale */
    uint32_t counted;              /* objects in it */
    struct sampled_time time;
};

/* Ends the window of a core, if one is open. */
void sampled_close(struct sampled *s, struct core_estimator *f);

#endif
