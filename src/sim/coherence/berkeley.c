/* SPDX-License-Identifier: MIT */
/* Berkeley's ownership protocol: write-back and write-invalidate; a line has one owner, a cache or else memory, and its owner
 * supplies it. Katz, Eggers, Wood, Perkins and Sheldon (ISCA 1985) described it, for SPUR.
 *
 * Transactions have other names there: Read-Shared is BUS_READ, Read-for-Ownership BUS_READ_OWN, Write-for-Invalidation
 * BUS_INVALIDATE, and Write-without-Invalidation, by which an owner evicts its line, BUS_WRITE_BACK.
 *
 * A reader does not learn from the bus whether other caches hold the line: no cache answers, and every line that is read is
 * UnOwned. An owner supplies lines and does not update memory.
 * Leaves out: reads for ownership of lines that are soon to be written (a hint of the program); input and output; transient
 * states. */
#include "sim/coherence/protocol.h"

enum { I, UO, OE, ON, STATES };

/* clang-format off */
const struct protocol protocol_berkeley = {
    .name = "berkeley",
    .summary = "the last writer owns a line and supplies it, memory stays old; Katz and others, 1985",
    .states = STATES,
    .state = { [I]  = { "I",  "Invalid: not in this cache" },
               [UO] = { "UO", "UnOwned: other caches may hold it, and one may own it; if none does, it is as in memory" },
               [OE] = { "OE", "Owned-Exclusively: the only copy; memory is old" },
               [ON] = { "ON", "Owned-NonExclusively: other caches may hold it; memory is old, and this cache writes it back" } },
    .flags = { [UO] = STATE_READABLE,
               [OE] = STATE_READABLE | STATE_WRITABLE | STATE_DIRTY,
               [ON] = STATE_READABLE | STATE_DIRTY },
    .own = {
        [I]  = { [OWN_READ]  = { .op = BUS_READ,       .alone = UO, .shared = UO },
                 [OWN_WRITE] = { .op = BUS_READ_OWN,   .alone = OE, .shared = OE } },
        [UO] = { [OWN_READ]  = { .op = BUS_NONE,       .alone = UO, .shared = UO },
                 [OWN_WRITE] = { .op = BUS_INVALIDATE, .alone = OE, .shared = OE },
                 [OWN_EVICT] = { .op = BUS_NONE,       .alone = I,  .shared = I } },
        [OE] = { [OWN_READ]  = { .op = BUS_NONE,       .alone = OE, .shared = OE },
                 [OWN_WRITE] = { .op = BUS_NONE,       .alone = OE, .shared = OE },
                 [OWN_EVICT] = { .op = BUS_WRITE_BACK, .alone = I,  .shared = I } },
        [ON] = { [OWN_READ]  = { .op = BUS_NONE,       .alone = ON, .shared = ON },
                 [OWN_WRITE] = { .op = BUS_INVALIDATE, .alone = OE, .shared = OE },
                 [OWN_EVICT] = { .op = BUS_WRITE_BACK, .alone = I,  .shared = I } },
    },
    .snoop = {
        [UO] = { [BUS_READ]       = { UO, 0 },
                 [BUS_READ_OWN]   = { I,  0 },
                 [BUS_INVALIDATE] = { I,  0 },
                 [BUS_WRITE_BACK] = { UO, 0 } },
        [OE] = { [BUS_READ]       = { ON, SNOOP_SUPPLY },
                 [BUS_READ_OWN]   = { I,  SNOOP_SUPPLY },
                 [BUS_WRITE_BACK] = { OE, 0 } },
        [ON] = { [BUS_READ]       = { ON, SNOOP_SUPPLY },
                 [BUS_READ_OWN]   = { I,  SNOOP_SUPPLY },
                 [BUS_INVALIDATE] = { I,  0 },
                 [BUS_WRITE_BACK] = { ON, 0 } },
    },
};
/* clang-format on */
