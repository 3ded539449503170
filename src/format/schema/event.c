/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "peet/record.h"

static const struct {
    const char *name, *args;
    int arity;
} EVENTS[] = {
#define X(name, n, args, text) { #name, args, n },
    PEET_EVENTS(X)
#undef X
};

const char *peet_event_name(uint32_t kind)
{
    return kind < PEET_EVENT_KINDS ? EVENTS[kind].name : NULL;
}

const char *peet_event_args(uint32_t kind)
{
    return kind < PEET_EVENT_KINDS ? EVENTS[kind].args : NULL;
}

int peet_event_arity(uint32_t kind)
{
    return kind < PEET_EVENT_KINDS ? EVENTS[kind].arity : -1;
}

int peet_event_find(const char *name)
{
    for (int i = 0; i < PEET_EVENT_KINDS; i++)
        if (!strcmp(EVENTS[i].name, name))
            return i;
    return -1;
}
