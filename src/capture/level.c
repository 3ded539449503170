/* SPDX-License-Identifier: MIT */
#include "capture/level.h"

#include <stddef.h>
#include <string.h>

const char *const LEVEL_NAMES[] = {
#define X(name, adds) #name,
    LEVELS(X)
#undef X
        NULL,
};

const char *level_name(enum level level)
{
    return LEVEL_NAMES[level - LEVEL_events];
}

enum level level_find(const char *name)
{
    for (int i = LEVEL_events; i < LEVEL_END; i++)
        if (!strcmp(name, level_name((enum level)i)))
            return (enum level)i;
    return LEVEL_NONE;
}
