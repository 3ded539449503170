/* SPDX-License-Identifier: MIT */
#include "capture/qemu/guest.h"

#include <string.h>

const struct guest_isa *guest_find(const char *name)
{
#define X(n) &guest_##n,
    static const struct guest_isa *const all[] = { GUESTS(X) };
#undef X

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}
