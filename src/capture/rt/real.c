/* SPDX-License-Identifier: MIT */
/* Finding the functions that the runtime stands in front of.
 *
 * The dynamic linker calls malloc of the program before anything of it runs, and dlsym may call calloc: what is asked for
 * while the real allocator is being looked for comes from a small arena (heap.c). */
#include <dlfcn.h>
#include <stdbool.h>

#include "capture/rt/real.h"
#include "capture/rt/rt.h"

struct peet_rt_real peet_rt_real_functions;

/* Of a function with several versions, dlsym may give an old one. */
static void *find(const char *name)
{
    static const char *const versions[] = { "GLIBC_2.3.2", "GLIBC_2.3.3" };
    bool is_cond = name[0] == 'p' && name[8] == 'c' && name[9] == 'o' && name[10] == 'n';

    for (int i = 0; is_cond && i < 2; i++) {
        void *f = dlvsym(RTLD_NEXT, name, versions[i]);
        if (f)
            return f;
    }
    return dlsym(RTLD_NEXT, name);
}

bool peet_rt_find_all(void)
{
    static RT_TLS bool at_work;

    if (at_work)
        return false;
    at_work = true;
#define X(name) *(void **)&peet_rt_real_functions.name = find(#name);
    RT_REALS(X)
#undef X
    at_work = false;
    return true;
}
