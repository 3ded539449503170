/* SPDX-License-Identifier: MIT */
/* Names of locks, barriers and other objects for which threads wait: the data object that contains each, and its declaration or allocation. */
#ifndef STUDY_SYNC_NAMES_H
#define STUDY_SYNC_NAMES_H

#include "sim/engine/sim.h"

struct objects;
struct sync_names;

/* Names for a simulation of a source, which must outlive them. The simulation must have sync_names_listener(*ret) as a listener. */
int sync_names_new(const struct source *source, struct sync_names **ret, struct peet_err *err);
void sync_names_free(struct sync_names *n);

struct sim_listener sync_names_listener(struct sync_names *n);

/* The name of the data object that contains an object for which threads wait, with the place of its declaration. thread: number in the trace; any: all elements of an array
 * have one name. False: it is in none, or in one that says less than an address. */
bool sync_name_find(struct objects *o, uint32_t process, uint32_t thread, uint64_t addr, bool any, char *ret,
                    size_t room);

#endif
