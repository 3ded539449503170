/* SPDX-License-Identifier: MIT */
/* Dragon: write-back and write-update; nobody ever loses a line because another one writes. McCreight described it (The Dragon
 * Computer System, Xerox PARC 1984), and Archibald and Baer (ACM TOCS 4, 1986) compare it with others.
 *
 *   I   not here
 *   E   exclusive: as in memory, and nobody else has it
 *   Sc  shared clean: others may have it; memory may be old, and then one of them is Sm
 *   Sm  shared modified: others may have it; memory is old, and this cache, which wrote last, answers for it
 *   M   modified: the only copy, and memory is old
 *
 * Assumes that who reads or updates hears whether others keep the line.
 * Choices: as there, memory does not take updates. Only Sm and M give lines; others come from memory. Who has no copy and writes
 * reads first, and sends the word if others have the line. A write finds out that it is alone again when nobody answers its update.
 * Leaves out: transient states. */
#include "sim/coherence/protocol.h"

enum { I, E, SC, SM, M, STATES };

/* clang-format off */
const struct protocol protocol_dragon = {
    .name = "dragon",
    .summary = "others are updated, memory is not; McCreight, 1984",
    .states = STATES,
    .state = { [I] = "I", [E] = "E", [SC] = "Sc", [SM] = "Sm", [M] = "M" },
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
