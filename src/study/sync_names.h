/* SPDX-License-Identifier: MIT */
/* Names of locks, barriers and what else threads wait for: the data object in which each lies, and where that is declared or allocated. */
#ifndef STUDY_SYNC_NAMES_H
#define STUDY_SYNC_NAMES_H

#include "sim/engine/sim.h"

struct sync_names;

/* Names for a simulation of that source, which must live as long; to be told of all that happens in it (sync_names_listener). */
int sync_names_new(const struct source *source, struct sync_names **ret, struct peet_err *err);
void sync_names_free(struct sync_names *n);

struct sim_listener sync_names_listener(struct sync_names *n);

#endif
