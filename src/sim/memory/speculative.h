/* SPDX-License-Identifier: MIT */
/* Speculation in the hierarchy: cores whose accesses make lines unsafe, and what ends their speculation. docs/design/speculation.md. */
#ifndef SIM_MEMORY_SPECULATIVE_H
#define SIM_MEMORY_SPECULATIVE_H

#include <stdbool.h>
#include <stdint.h>

struct hierarchy;

/* X(name, title): why a speculation failed. write: another core wrote a line that the core had accessed; read: the core read a line that
 * another speculating core had written; expired: it read an expiring copy; eviction: an unsafe line was evicted. */
/* clang-format off */
#define VIOLATIONS(X) \
    X(write, "written by another") X(read, "reads an unsafe line") X(expired, "reads an expiring line") X(eviction, "eviction")
/* clang-format on */
enum violation {
#define X(name, title) VIOLATION_##name,
    VIOLATIONS(X) VIOLATION_KINDS
#undef X
};

/* The speculation of a core has failed: its unsafe lines are invalid, and it does not speculate any more. */
typedef void violation_hook(void *self, unsigned cpu, enum violation why);

/* From now on, which is before the first access, cores can speculate: the protocol is the extension of the machine's.
 * keeps_read: a roll-back leaves lines that were only read. A negative result is an error. */
int hierarchy_set_speculation(struct hierarchy *h, bool keeps_read, violation_hook *hook, void *self);

/* The core arrives at a barrier, and its accesses are speculative from now on, or not. */
void hierarchy_arrive(struct hierarchy *h, unsigned cpu, bool speculates);

/* The barrier opens: the core's accesses are final. */
void hierarchy_confirm(struct hierarchy *h, unsigned cpu);

/* The core's speculation ends without a violation. */
void hierarchy_roll_back(struct hierarchy *h, unsigned cpu);

/* Misses of a core on lines that its last roll-back made invalid. */
uint64_t hierarchy_rollback_misses(const struct hierarchy *h, unsigned cpu);

/* Invariants 1 to 3 of docs/design/speculation.md for a line: a complaint, or NULL. For tests. */
const char *hierarchy_check_line(struct hierarchy *h, uint64_t addr);

#endif
