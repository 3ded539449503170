/* SPDX-License-Identifier: MIT */
/* Dragon: write-back and write-update; no write invalidates another cache's copy. McCreight described it (The Dragon Computer
 * System, Xerox PARC 1984), and Archibald and Baer (ACM TOCS 4, 1986) compare it with others.
 *
 * Assumes that a cache that reads or updates learns whether other caches keep the line.
 * Choices: as there, memory does not take updates. Only Sm and M supply lines; others come from memory. A write that misses reads
 * first, and sends the word if others hold the line. A writer finds out that its copy is the only one when no cache answers its
 * update.
 * Leaves out: transient states. */
#include "sim/coherence/protocol.h"

enum { I, E, SC, SM, M, STATES };

/* clang-format off */
const struct protocol protocol_dragon = {
    .name = "dragon",
    .summary = "other copies are updated, memory is not; McCreight, 1984",
    .states = STATES,
    .state = { [I]  = { "I",  "not in this cache" },
               [E]  = { "E",  "exclusive: as in memory; no other cache holds it" },
               [SC] = { "Sc", "shared clean: other caches may hold it; memory may be old, and then one of them is Sm" },
               [SM] = { "Sm", "shared modified: other caches may hold it; this cache wrote last, and writes it back" },
               [M]  = { "M",  "modified: the only copy; memory is old" } },
    .flags = { [E]  = STATE_READABLE | STATE_WRITABLE,
               [SC] = STATE_READABLE,
               [SM] = STATE_READABLE | STATE_DIRTY,
               [M]  = STATE_READABLE | STATE_WRITABLE | STATE_DIRTY },
    .own = {
        [I]  = { [OWN_READ]  = { .op = BUS_READ,       .alone = E,  .shared = SC },
                 [OWN_WRITE] = { .op = BUS_READ,       .alone = M,  .shared = SM, .then = BUS_UPDATE } },
        [E]  = { [OWN_READ]  = { .op = BUS_NONE,       .alone = E,  .shared = E },
                 [OWN_WRITE] = { .op = BUS_NONE,       .alone = M,  .shared = M },
                 [OWN_EVICT] = { .op = BUS_NONE,       .alone = I,  .shared = I } },
        [SC] = { [OWN_READ]  = { .op = BUS_NONE,       .alone = SC, .shared = SC },
                 [OWN_WRITE] = { .op = BUS_UPDATE,     .alone = M,  .shared = SM },
                 [OWN_EVICT] = { .op = BUS_NONE,       .alone = I,  .shared = I } },
        [SM] = { [OWN_READ]  = { .op = BUS_NONE,       .alone = SM, .shared = SM },
                 [OWN_WRITE] = { .op = BUS_UPDATE,     .alone = M,  .shared = SM },
                 [OWN_EVICT] = { .op = BUS_WRITE_BACK, .alone = I,  .shared = I } },
        [M]  = { [OWN_READ]  = { .op = BUS_NONE,       .alone = M,  .shared = M },
                 [OWN_WRITE] = { .op = BUS_NONE,       .alone = M,  .shared = M },
                 [OWN_EVICT] = { .op = BUS_WRITE_BACK, .alone = I,  .shared = I } },
    },
    .snoop = {
        [E]  = { [BUS_READ]       = { SC, SNOOP_SHARED },
                 [BUS_WRITE_BACK] = { E,  0 } },
        [SC] = { [BUS_READ]       = { SC, SNOOP_SHARED },
                 [BUS_UPDATE]     = { SC, SNOOP_SHARED | SNOOP_UPDATE },
                 [BUS_WRITE_BACK] = { SC, 0 } },
        [SM] = { [BUS_READ]       = { SM, SNOOP_SHARED | SNOOP_SUPPLY },
                 [BUS_UPDATE]     = { SC, SNOOP_SHARED | SNOOP_UPDATE },
                 [BUS_WRITE_BACK] = { SM, 0 } },
        [M]  = { [BUS_READ]       = { SM, SNOOP_SHARED | SNOOP_SUPPLY },
                 [BUS_WRITE_BACK] = { M,  0 } },
    },
};
/* clang-format on */
