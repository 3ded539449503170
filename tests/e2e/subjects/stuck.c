/* SPDX-License-Identifier: MIT */
/* Never ends. usage: stuck outside (in the C library) | ignoring (in its own code, and signals do not end it) */
#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile long count;
static char text[1 << 26];

int main(int argc, char **argv)
{
    signal(SIGTERM, SIG_IGN);
    puts("begun");
    fflush(stdout);
    memset(text, 'a', sizeof text - 1);
    if (argc > 1 && !strcmp(argv[1], "ignoring"))
        for (;;)
            count++;
    for (;;)
        count += (long)strspn(text, "cba") + (strstr(text, "aaaaaaaaab") != NULL);
}
