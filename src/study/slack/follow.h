/* SPDX-License-Identifier: MIT */
/* Follows a simulated run of a recording: finds waits of units and the dependences that rely on them. See docs/design/slack.md.
 *
 * The simulation runs on a source that passes records on and keeps each batch until its events happen. At an event, the records of its thread up
 * to it are taken as accesses; what the event does to order is applied when the thread continues. */
#ifndef STUDY_SLACK_FOLLOW_H
#define STUDY_SLACK_FOLLOW_H

#include "sim/engine/sim.h"
#include "study/objects/objects.h"
#include "study/slack/units.h"

enum { FOLLOW_BINS = 64 };

/* A thread's waits over time: cycles in each bin. */
struct wait_bins {
    uint64_t waited[FOLLOW_BINS];
};

/* What is known after a run. */
struct follow_result {
    uint64_t races;      /* pairs of segments with conflicting accesses that nothing orders */
    uint64_t bin_cycles; /* length of a bin */
    uint32_t threads;
    const struct wait_bins *bins; /* by thread; valid until the follower is freed */
};

struct follower;

/* Follows a source, of which it becomes the owner. units and symbols are borrowed; objects: of the run, made and freed by the follower. */
int follower_new(struct source *inner, struct units *units, struct symbols *symbols, struct follower **ret,
                 struct peet_err *err);
void follower_free(struct follower *f);

struct source *follower_source(struct follower *f); /* the one to simulate; belongs to the follower */
void follower_attach(struct follower *f, struct sim *sim);
void follower_finish(struct follower *f, struct follow_result *ret); /* after the run, before the simulation is freed */

/* Names of data objects in struct unit_line and struct section_objects. Valid until the follower is freed. */
struct objects *follower_objects(struct follower *f);

#endif
