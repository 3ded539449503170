/* SPDX-License-Identifier: MIT */
/* Parent and child execute different code on a table that each has for itself since the fork. */
#include <sys/wait.h>
#include <unistd.h>

enum { INTS = 4096, TIMES = 10 };

static volatile int table[INTS];

__attribute__((noinline)) static void in_child(void)
{
    for (int k = 0; k < TIMES; k++)
        for (int i = 0; i < INTS; i++)
            table[i] += i;
}

__attribute__((noinline)) static void in_parent(void)
{
    for (int k = 0; k < TIMES; k++)
        for (int i = 0; i < INTS; i++)
            table[i] -= i;
}

int main(void)
{
    pid_t child = fork();

    if (child == 0) {
        in_child();
        _exit(0);
    }
    in_parent();
    return child < 0 || waitpid(child, NULL, 0) != child;
}
