/* SPDX-License-Identifier: MIT */
/* Firefly: write-update; lines that others hold are written through to memory, others are written back. DEC's Firefly had it
 * (Thacker, Stewart and Satterthwaite, IEEE Transactions on Computers 37, 1988), and Archibald and Baer (ACM TOCS 4, 1986) compare
 * it with others.
 *
 * Assumes that a cache that reads or updates learns whether other caches keep the line.
 * Choices: as there, all holders supply a line, for all supply the same; one of them counts as the supplier. D's line goes to
 * memory, too, when another cache reads it, and so do all updates: what is shared is always as in memory. A write that misses reads
 * first, as in Archibald and Baer, for lines here have several words; the machine had lines of one word, and wrote those without a
 * read. A writer finds out that its copy is the only one when no cache answers its update; the line is then V.
 * Leaves out: transient states. */
#include "sim/coherence/protocol.h"

enum { I, V, S, D, STATES };

/* clang-format off */
const struct protocol protocol_firefly = {
    .name = "firefly",
    .summary = "other copies and memory are updated; Thacker, Stewart and Satterthwaite, 1988",
    .states = STATES,
    .state = { [I] = { "I", "not in this cache" },
               [V] = { "V", "valid exclusive: as in memory; no other cache holds it" },
               [S] = { "S", "shared: as in memory; other caches may hold it" },
               [D] = { "D", "dirty: the only copy; memory is old" } },
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
