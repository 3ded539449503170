/* SPDX-License-Identifier: MIT */
/* Firefly: write-update; lines that others have are written through to memory, others are written back. DEC's Firefly had it
 * (Thacker, Stewart and Satterthwaite, IEEE Transactions on Computers 37, 1988), and Archibald and Baer (ACM TOCS 4, 1986) compare
 * it with others.
 *
 *   I  not here
 *   V  valid exclusive: as in memory, and nobody else has it
 *   S  shared: as in memory; others may have it, too
 *   D  dirty: the only copy, and memory is old
 *
 * Assumes that who reads or updates hears whether others keep the line.
 * Choices: as there, all who have a line give it, for all give the same; one of them counts as the one that did. D's line goes to
 * memory, too, when another one reads it, and so do all updates: what is shared is always as in memory. Who has no copy and writes
 * reads first, as in Archibald and Baer, for lines here have several words; the machine had lines of one word, and wrote those
 * without a read. A write finds out that it is alone again when nobody answers its update, and the line is then V.
 * Leaves out: transient states. */
#include "sim/coherence/protocol.h"

enum { I, V, S, D, STATES };

/* clang-format off */
const struct protocol protocol_firefly = {
    .name = "firefly",
    .summary = "others and memory are updated; Thacker, Stewart and Satterthwaite, 1988",
    .states = STATES,
    .state = { [I] = "I", [V] = "V", [S] = "S", [D] = "D" },
    .flags = { [V] = STATE_READABLE | STATE_WRITABLE,
               [S] = STATE_READABLE,
               [D] = STATE_READABLE | STATE_WRITABLE | STATE_DIRTY },
    .own = {
        [I] = { [OWN_READ]  = { .op = BUS_READ,       .alone = V, .shared = S },
                [OWN_WRITE] = { .op = BUS_READ,       .alone = D, .shared = S, .then = BUS_UPDATE, .acts = OWN_WRITES_MEMORY } },
        [V] = { [OWN_READ]  = { .op = BUS_NONE,       .alone = V, .shared = V },
                [OWN_WRITE] = { .op = BUS_NONE,       .alone = D, .shared = D },
                [OWN_EVICT] = { .op = BUS_NONE,       .alone = I, .shared = I } },
        [S] = { [OWN_READ]  = { .op = BUS_NONE,       .alone = S, .shared = S },
                [OWN_WRITE] = { .op = BUS_UPDATE,     .alone = V, .shared = S, .acts = OWN_WRITES_MEMORY },
                [OWN_EVICT] = { .op = BUS_NONE,       .alone = I, .shared = I } },
        [D] = { [OWN_READ]  = { .op = BUS_NONE,       .alone = D, .shared = D },
                [OWN_WRITE] = { .op = BUS_NONE,       .alone = D, .shared = D },
                [OWN_EVICT] = { .op = BUS_WRITE_BACK, .alone = I, .shared = I } },
    },
    .snoop = {
        [V] = { [BUS_READ]       = { S, SNOOP_SHARED | SNOOP_SUPPLY },
                [BUS_WRITE_BACK] = { V, 0 } },
        [S] = { [BUS_READ]       = { S, SNOOP_SHARED | SNOOP_SUPPLY },
                [BUS_UPDATE]     = { S, SNOOP_SHARED | SNOOP_UPDATE },
                [BUS_WRITE_BACK] = { S, 0 } },
        [D] = { [BUS_READ]       = { S, SNOOP_SHARED | SNOOP_SUPPLY | SNOOP_FLUSH },
                [BUS_WRITE_BACK] = { D, 0 } },
    },
};
/* clang-format on */
