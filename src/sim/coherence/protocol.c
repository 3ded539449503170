/* SPDX-License-Identifier: MIT */
#include "sim/coherence/protocol.h"

#include <stddef.h>
#include <string.h>

#define X(name) &protocol_##name,
const struct protocol *const protocols[] = { PROTOCOLS(X) NULL };
const struct protocol *const speculative_protocols[] = { SPECULATIVE_PROTOCOLS(X) NULL };
#undef X

const struct protocol *protocol_find(const char *name)
{
    for (size_t i = 0; protocols[i]; i++)
        if (!strcmp(protocols[i]->name, name))
            return protocols[i];
    return NULL;
}
