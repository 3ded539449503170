/* SPDX-License-Identifier: MIT */
/* MOESI: write-back and write-invalidate with owners, who give lines to others and leave memory old. Sweazey and Smith (ISCA 1986)
 * described it as a class of protocols for the Futurebus.
 *
 *   I  not here
 *   S  shared: others may have it; memory may be old, and then one of them is O
 *   E  exclusive: as in memory, and nobody else has it
 *   O  owned: others may have it; memory is old, and this cache answers for it
 *   M  modified: the only copy, and memory is old
 *
 * Assumes that who reads hears whether others keep the line.
 * Choices: of the class, the one that invalidates where a line is written that others may have; the class also lets it update them.
 * Only owners (M, O) give lines; clean ones come from memory, as in the class: E does not intervene. When an owner pushes its
 * line out, memory is right again, and the others stay S.
 * Leaves out: transient states. */
#include "sim/coherence/protocol.h"

enum { I, S, E, O, M, STATES };

/* clang-format off */
const struct protocol protocol_moesi = {
    .name = "moesi",
    .summary = "MESI, and an owner gives lines that memory has not; Sweazey and Smith, 1986",
    .states = STATES,
    .state = { [I] = "I", [S] = "S", [E] = "E", [O] = "O", [M] = "M" },
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
