/* SPDX-License-Identifier: MIT */
#include "sim/coherence/step.h"

bool coherence_is_ignored(const struct protocol *p, unsigned op)
{
    for (unsigned s = 1; s < p->states; s++)
        if (p->state[s].name && (p->snoop[s][op].acts || p->snoop[s][op].next != s))
            return false;
    return true;
}

bool coherence_keeps_readable(const struct protocol *p, unsigned op)
{
    for (unsigned s = 1; s < p->states; s++)
        if (p->flags[s] & STATE_READABLE && !(p->flags[p->snoop[s][op].next] & STATE_READABLE))
            return false;
    return true;
}
