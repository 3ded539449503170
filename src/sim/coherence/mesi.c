/* SPDX-License-Identifier: MIT */
/* MESI: write-back and write-invalidate; a line of which there is no other copy is written without a transaction. Papamarcos and
 * Patel (ISCA 1984) described it, at Illinois.
 *
 * Assumes that a cache that reads learns whether other caches keep the line.
 * Choices: clean lines (E, S) come from memory, as in the processors that made the protocol common; in Illinois' own any cache that
 * has the line supplies it, and a bus must then choose among them. M supplies the line, and memory takes it on the way, so that S
 * always agrees with memory. A line that is fetched for a write is not put into memory. A write in S only invalidates. A line stays
 * S when the last other copy is evicted.
 * Leaves out: transient states. */
#include "sim/coherence/protocol.h"

enum { I, S, E, M, STATES };

/* clang-format off */
const struct protocol protocol_mesi = {
    .name = "mesi",
    .summary = "MSI, and lines without another copy are written silently; Papamarcos and Patel, 1984",
    .states = STATES,
    .extension = &protocol_smesi,
    .state = { [I] = { "I", "not in this cache" },
               [S] = { "S", "shared: as in memory; other caches may hold it" },
               [E] = { "E", "exclusive: as in memory; no other cache holds it" },
               [M] = { "M", "modified: the only copy; memory is old" } },
    .flags = { [S] = STATE_READABLE,
               [E] = STATE_READABLE | STATE_WRITABLE,
               [M] = STATE_READABLE | STATE_WRITABLE | STATE_DIRTY },
    .own = {
        [I] = { [OWN_READ]  = { .op = BUS_READ,       .alone = E, .shared = S },
                [OWN_WRITE] = { .op = BUS_READ_OWN,   .alone = M, .shared = M } },
        [S] = { [OWN_READ]  = { .op = BUS_NONE,       .alone = S, .shared = S },
                [OWN_WRITE] = { .op = BUS_INVALIDATE, .alone = M, .shared = M },
                [OWN_EVICT] = { .op = BUS_NONE,       .alone = I, .shared = I } },
        [E] = { [OWN_READ]  = { .op = BUS_NONE,       .alone = E, .shared = E },
                [OWN_WRITE] = { .op = BUS_NONE,       .alone = M, .shared = M },
                [OWN_EVICT] = { .op = BUS_NONE,       .alone = I, .shared = I } },
        [M] = { [OWN_READ]  = { .op = BUS_NONE,       .alone = M, .shared = M },
                [OWN_WRITE] = { .op = BUS_NONE,       .alone = M, .shared = M },
                [OWN_EVICT] = { .op = BUS_WRITE_BACK, .alone = I, .shared = I } },
    },
    .snoop = {
        [S] = { [BUS_READ]       = { S, SNOOP_SHARED },
                [BUS_READ_OWN]   = { I, 0 },
                [BUS_INVALIDATE] = { I, 0 },
                [BUS_WRITE_BACK] = { S, 0 } },
        [E] = { [BUS_READ]       = { S, SNOOP_SHARED },
                [BUS_READ_OWN]   = { I, 0 },
                [BUS_WRITE_BACK] = { E, 0 } },
        [M] = { [BUS_READ]       = { S, SNOOP_SHARED | SNOOP_SUPPLY | SNOOP_FLUSH },
                [BUS_READ_OWN]   = { I, SNOOP_SUPPLY },
                [BUS_WRITE_BACK] = { M, 0 } },
    },
};
/* clang-format on */
