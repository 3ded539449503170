/* SPDX-License-Identifier: MIT */
/* Misses by data object and offset in one of its elements, which repeat every objects_stride bytes. A report adds them up by members. */
#ifndef STUDY_PROFILE_MEMBER_COSTS_H
#define STUDY_PROFILE_MEMBER_COSTS_H

#include <stdbool.h>

#include "base/map.h"

/* The cost of references to one offset of an object's elements. */
struct member_cost {
    uint32_t object;        /* index of the data object */
    uint64_t offset;        /* bytes, in an element */
    uint64_t misses, stall; /* lines missed; cycles */
};

/* Costs of all members that missed. */
struct member_costs {
    struct map numbers; /* uint32_t: 1 + index in cost, by offset and object */
    struct member_cost *cost;
    size_t count;
};

void member_costs_init(struct member_costs *m);
void member_costs_release(struct member_costs *m);

/* Adds references that waited; misses: of those, lines that no private cache had. */
void member_costs_add(struct member_costs *m, uint32_t object, uint64_t offset, uint64_t misses, uint64_t stall);

#endif
