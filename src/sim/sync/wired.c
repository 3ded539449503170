/* SPDX-License-Identifier: MIT */
/* A hardware barrier by a wire to all cores (Sato, Nakashima, Ohno 1999): all threads, the last one included, continue `cost` cycles after the
 * last arrival. It makes no references: in time it equals the ideal barrier. */
#include <stddef.h>

#include "sim/sync/parts.h"

const struct barrier_kind barrier_wired = { .name = "wired",
                                            .summary = "a line that all processors see",
                                            .arrive = barrier_arrive_wired };
