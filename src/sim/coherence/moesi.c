/* SPDX-License-Identifier: MIT */
/* MOESI: write-back and write-invalidate with owners, which supply lines to others and leave memory old. Sweazey and Smith (ISCA
 * 1986) described it as a class of protocols for the Futurebus.
 *
 * Assumes that a cache that reads learns whether other caches keep the line.
 * Choices: of the class, the member that invalidates where a line is written that others may hold; the class also allows updates.
 * Only owners (M, O) supply lines; clean ones come from memory, as in the class: E does not intervene. When an owner evicts its
 * line, memory is right again, and the other copies stay S.
 * Leaves out: transient states. */
#include "sim/coherence/protocol.h"

enum { I, S, E, O, M, STATES };

/* clang-format off */
const struct protocol protocol_moesi = {
    .name = "moesi",
    .summary = "MESI, and an owner supplies lines that memory does not have; Sweazey and Smith, 1986",
    .states = STATES,
    .state = { [I] = { "I", "not in this cache" },
               [S] = { "S", "shared: other caches may hold it; memory may be old, and then one of them is O" },
               [E] = { "E", "exclusive: as in memory; no other cache holds it" },
               [O] = { "O", "owned: other caches may hold it; memory is old, and this cache writes it back" },
               [M] = { "M", "modified: the only copy; memory is old" } },
    .flags = { [S] = STATE_READABLE,
               [E] = STATE_READABLE | STATE_WRITABLE,
               [O] = STATE_READABLE | STATE_DIRTY,
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
        [O] = { [OWN_READ]  = { .op = BUS_NONE,       .alone = O, .shared = O },
                [OWN_WRITE] = { .op = BUS_INVALIDATE, .alone = M, .shared = M },
                [OWN_EVICT] = { .op = BUS_WRITE_BACK, .alone = I, .shared = I } },
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
        [O] = { [BUS_READ]       = { O, SNOOP_SHARED | SNOOP_SUPPLY },
                [BUS_READ_OWN]   = { I, SNOOP_SUPPLY },
                [BUS_INVALIDATE] = { I, 0 },
                [BUS_WRITE_BACK] = { O, 0 } },
        [M] = { [BUS_READ]       = { O, SNOOP_SHARED | SNOOP_SUPPLY },
                [BUS_READ_OWN]   = { I, SNOOP_SUPPLY },
                [BUS_WRITE_BACK] = { M, 0 } },
    },
};
/* clang-format on */
