/* SPDX-License-Identifier: MIT */
/* usage: plugins LIBRARY LIBRARY
 * With -DTABLE=name a library that has data; else the program that loads both in turn, and lets them go again: each time again, and mostly to where the other one was. */
#ifdef TABLE

enum { LENGTH = 20000 };
static int TABLE[LENGTH];

int plug(int n)
{
    for (int i = 0; i < LENGTH; i++)
        TABLE[i] += n;
    return TABLE[n];
}

#else

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int sum = 0;

    for (int round = 0; argc == 3 && round < 6; round++) {
        void *library = dlopen(argv[1 + round % 2], RTLD_NOW);
        int (*plug)(int);
        if (!library)
            return 3;
        *(void **)&plug = dlsym(library, "plug");
        for (int i = 0; i < 5; i++)
            sum += plug(i);
        dlclose(library);
    }
    printf("%d\n", sum);
    return 0;
}

#endif
