/* SPDX-License-Identifier: MIT */
/* MSI: write-back and write-invalidate with as few states as possible. Silicon Graphics' 4D-MP had it (Baskett, Jermoluk and
 * Solomon, COMPCON 1988), and Culler and Singh (Parallel Computer Architecture, 1999) begin with it.
 *
 * Choices: a write to a shared line invalidates the other copies (an upgrade) and does not fetch the line. M supplies the line, and
 * memory takes it on the way, so that S always agrees with memory. A line that is fetched for a write is not put into memory, for
 * it is old at once. Clean lines come from memory. No cache answers whether it keeps a copy.
 * Leaves out: transient states. */
#include "sim/coherence/protocol.h"

enum { I, S, M, STATES };

/* clang-format off */
const struct protocol protocol_msi = {
    .name = "msi",
    .summary = "three states, other copies are invalidated; Baskett and others, 1988",
    .states = STATES,
    .extension = &protocol_smsi,
    .state = { [I] = { "I", "not in this cache" },
               [S] = { "S", "shared: as in memory; other caches may hold it" },
               [M] = { "M", "modified: the only copy; memory is old" } },
    .flags = { [S] = STATE_READABLE,
               [M] = STATE_READABLE | STATE_WRITABLE | STATE_DIRTY },
    .own = {
        [I] = { [OWN_READ]  = { .op = BUS_READ,       .alone = S, .shared = S },
                [OWN_WRITE] = { .op = BUS_READ_OWN,   .alone = M, .shared = M } },
        [S] = { [OWN_READ]  = { .op = BUS_NONE,       .alone = S, .shared = S },
                [OWN_WRITE] = { .op = BUS_INVALIDATE, .alone = M, .shared = M },
                [OWN_EVICT] = { .op = BUS_NONE,       .alone = I, .shared = I } },
        [M] = { [OWN_READ]  = { .op = BUS_NONE,       .alone = M, .shared = M },
                [OWN_WRITE] = { .op = BUS_NONE,       .alone = M, .shared = M },
                [OWN_EVICT] = { .op = BUS_WRITE_BACK, .alone = I, .shared = I } },
    },
    .snoop = {
        [S] = { [BUS_READ]       = { S, 0 },
                [BUS_READ_OWN]   = { I, 0 },
                [BUS_INVALIDATE] = { I, 0 },
                [BUS_WRITE_BACK] = { S, 0 } },
        [M] = { [BUS_READ]       = { S, SNOOP_SUPPLY | SNOOP_FLUSH },
                [BUS_READ_OWN]   = { I, SNOOP_SUPPLY },
                [BUS_WRITE_BACK] = { M, 0 } },
    },
};
/* clang-format on */
