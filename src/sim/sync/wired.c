/* SPDX-License-Identifier: MIT */
/* A barrier by a line that all processors see (Sato, Nakashima, Ohno 1999): `cost` cycles from the last arrival until everybody,
 * the last one included, knows. It makes no references, and differs from an ideal one in what it stands for only. */
#include <stddef.h>

#include "sim/sync/parts.h"

const struct barrier_kind barrier_wired = { .name = "wired",
                                            .summary = "a line that all processors see",
                                            .arrive = arrive_without_memory };
