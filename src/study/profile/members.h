/* SPDX-License-Identifier: MIT */
/* Misses by where in an element of a data object they are: which members of a struct cost most.
 *
 * Who runs a profile tells each miss by the object and the offset in one of its elements, which repeat every objects_stride bytes. */
#ifndef STUDY_PROFILE_MEMBERS_H
#define STUDY_PROFILE_MEMBERS_H

#include <stdbool.h>

#include "base/map.h"

struct member_cost {
    uint32_t object;
    uint64_t offset; /* in an element */
    uint64_t misses, stall;
};

struct members {
    struct map numbers; /* uint32_t: 1 + index, by offset and object */
    struct member_cost *cost;
    size_t count;
};

void members_init(struct members *m);
void members_release(struct members *m);

/* References that waited; misses: of those no own cache had the line. */
void members_add(struct members *m, uint32_t object, uint64_t offset, uint64_t misses, uint64_t stall);

#endif
