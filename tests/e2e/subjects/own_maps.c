/* SPDX-License-Identifier: MIT */
/* Walks through an array until the simulator has made machine code of that; then lists what its process has mapped. */
#include <stdio.h>

static volatile int data[1000];

int main(void)
{
    char line[600];
    int sum = 0;

    for (int k = 0; k < 100; k++)
        for (int i = 0; i < 1000; i++)
            if (data[i] % 3 == 0)
                sum += data[i]++;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f))
        fputs(line, stdout);
    return f ? sum & 0 : 1;
}
