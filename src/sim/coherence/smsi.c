/* SPDX-License-Identifier: MIT */
/* MSI extended by unsafe and expiring states, for accesses that a core makes before a barrier has opened: Sato, Nakashima and Ohno, table 1
 * (IPSJ SIG Notes, 1999). The first three states behave as in msi.c.
 *
 * The numbers of the states are the codes of the paper's table 2 (tag_store.h); no state has number 3.
 * Choices, where the paper says nothing: reads of other cores leave S, US and XP as they are. A tagged write leaves XP as it is. XP that a
 * speculating core reads rolls that core back, since it would lose the mark of the conflict; XP that it writes becomes UM. M that is
 * supplied for a speculative write also goes to memory, because memory must have the line as before that write. XP ends at the
 * confirmation and at a roll-back, as the bit operations of the paper do it.
 * Leaves out: transient states. */
#include "sim/coherence/protocol.h"

enum { I = 0, S = 1, M = 2, XP = 4, US = 5, UM = 6, STATES };

/* clang-format off */
const struct protocol protocol_smsi = {
    .name = "smsi",
    .summary = "MSI for cores that speculate past barriers; Sato, Nakashima and Ohno, 1999",
    .states = STATES,
    .state = { [I]  = { "I", "not in this cache" },
               [S]  = { "S", "shared: as in memory; other caches may hold it" },
               [M]  = { "M", "modified: the only copy; memory is old" },
               [XP] = { "XP", "expiring: as before the speculative write of another core; invalid after the barrier" },
               [US] = { "US", "unsafe shared: read by its speculating core; other caches may hold it" },
               [UM] = { "UM", "unsafe modified: written by its speculating core; memory has the line as before" } },
    .flags = { [S]  = STATE_READABLE,
               [M]  = STATE_READABLE | STATE_WRITABLE | STATE_DIRTY,
               [XP] = STATE_READABLE,
               [US] = STATE_READABLE | STATE_UNSAFE,
               [UM] = STATE_READABLE | STATE_UNSAFE },
    .own = {
        [I] = { [OWN_READ]       = { .op = BUS_READ, .alone = S, .shared = S, .old = XP },
                [OWN_WRITE]      = { .op = BUS_READ_OWN, .alone = M, .shared = M },
                [OWN_READ_SPEC]  = { .op = BUS_READ, .alone = US, .shared = US, .acts = OWN_ROLLS_BACK, .old = I },
                [OWN_WRITE_SPEC] = { .op = BUS_READ_OWN_SPEC, .alone = UM, .shared = UM } },
        [S] = { [OWN_READ]       = { .op = BUS_NONE, .alone = S, .shared = S },
                [OWN_WRITE]      = { .op = BUS_INVALIDATE, .alone = M, .shared = M },
                [OWN_EVICT]      = { .op = BUS_NONE, .alone = I, .shared = I },
                [OWN_READ_SPEC]  = { .op = BUS_NONE, .alone = US, .shared = US },
                [OWN_WRITE_SPEC] = { .op = BUS_INVALIDATE_SPEC, .alone = UM, .shared = UM } },
        [M] = { [OWN_READ]       = { .op = BUS_NONE, .alone = M, .shared = M },
                [OWN_WRITE]      = { .op = BUS_NONE, .alone = M, .shared = M },
                [OWN_EVICT]      = { .op = BUS_WRITE_BACK, .alone = I, .shared = I },
                [OWN_READ_SPEC]  = { .op = BUS_WRITE_BACK, .alone = US, .shared = US },
                [OWN_WRITE_SPEC] = { .op = BUS_WRITE_BACK, .alone = UM, .shared = UM } },
        [XP] = { [OWN_READ]       = { .op = BUS_NONE, .alone = XP, .shared = XP },
                [OWN_WRITE]      = { .op = BUS_INVALIDATE, .alone = M, .shared = M },
                [OWN_EVICT]      = { .op = BUS_NONE, .alone = I, .shared = I },
                [OWN_READ_SPEC]  = { .op = BUS_NONE, .alone = I, .shared = I, .acts = OWN_ROLLS_BACK },
                [OWN_WRITE_SPEC] = { .op = BUS_INVALIDATE_SPEC, .alone = UM, .shared = UM } },
        [US] = { [OWN_EVICT]      = { .op = BUS_NONE, .alone = I, .shared = I, .acts = OWN_ROLLS_BACK },
                [OWN_READ_SPEC]  = { .op = BUS_NONE, .alone = US, .shared = US },
                [OWN_WRITE_SPEC] = { .op = BUS_INVALIDATE_SPEC, .alone = UM, .shared = UM } },
        [UM] = { [OWN_EVICT]      = { .op = BUS_NONE, .alone = I, .shared = I, .acts = OWN_ROLLS_BACK },
                [OWN_READ_SPEC]  = { .op = BUS_NONE, .alone = UM, .shared = UM },
                [OWN_WRITE_SPEC] = { .op = BUS_NONE, .alone = UM, .shared = UM } },
    },
    .snoop = {
        [S] = { [BUS_READ]            = { S, 0 },
                [BUS_READ_OWN]        = { I, 0 },
                [BUS_INVALIDATE]      = { I, 0 },
                [BUS_WRITE_BACK]      = { S, 0 },
                [BUS_READ_OWN_SPEC]   = { XP, 0 },
                [BUS_INVALIDATE_SPEC] = { XP, 0 } },
        [M] = { [BUS_READ]            = { S, SNOOP_SUPPLY | SNOOP_FLUSH },
                [BUS_READ_OWN]        = { I, SNOOP_SUPPLY },
                [BUS_WRITE_BACK]      = { M, 0 },
                [BUS_READ_OWN_SPEC]   = { XP, SNOOP_SUPPLY | SNOOP_FLUSH } },
        [XP] = { [BUS_READ]            = { XP, 0 },
                [BUS_READ_OWN]        = { I, 0 },
                [BUS_INVALIDATE]      = { I, 0 },
                [BUS_WRITE_BACK]      = { XP, 0 },
                [BUS_READ_OWN_SPEC]   = { XP, 0 },
                [BUS_INVALIDATE_SPEC] = { XP, 0 } },
        [US] = { [BUS_READ]            = { US, 0 },
                [BUS_READ_OWN]        = { I, SNOOP_ROLLS_BACK },
                [BUS_INVALIDATE]      = { I, SNOOP_ROLLS_BACK },
                [BUS_WRITE_BACK]      = { US, 0 },
                [BUS_READ_OWN_SPEC]   = { I, SNOOP_ROLLS_BACK },
                [BUS_INVALIDATE_SPEC] = { I, SNOOP_ROLLS_BACK } },
        [UM] = { [BUS_READ]            = { UM, SNOOP_OLD },
                [BUS_READ_OWN]        = { I, SNOOP_ROLLS_BACK },
                [BUS_INVALIDATE]      = { I, SNOOP_ROLLS_BACK },
                [BUS_WRITE_BACK]      = { UM, 0 },
                [BUS_READ_OWN_SPEC]   = { I, SNOOP_ROLLS_BACK },
                [BUS_INVALIDATE_SPEC] = { I, SNOOP_ROLLS_BACK } },
    },
    .bulk = {
        [BULK_ARRIVE]            = { [S] = S, [M] = M },
        [BULK_CONFIRM]           = { [S] = S, [M] = M, [US] = S, [UM] = M },
        [BULK_ROLL_BACK]         = { [S] = S, [M] = M },
        [BULK_ROLL_BACK_WRITTEN] = { [S] = S, [M] = M, [US] = S },
    },
};
/* clang-format on */
