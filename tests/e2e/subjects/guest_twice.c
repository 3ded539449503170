/* SPDX-License-Identifier: MIT */
/* A thread that marks itself again while it is recorded, and again after an end; and a forked child that marks itself. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <peet/mark.h>

__attribute__((noipa)) static int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

int main(void)
{
    int sum = 0;

    PEET_THREAD_BEGIN(5);
    sum += fib(15);
    PEET_THREAD_BEGIN(5);
    sum += fib(15);
    PEET_THREAD_END();
    sum += fib(25); /* not recorded */
    PEET_THREAD_BEGIN(5);
    sum += fib(15);
    PEET_THREAD_END();
    if (fork() == 0) {
        PEET_THREAD_BEGIN(7);
        fib(15);
        _exit(0);
    }
    wait(NULL);
    printf("%d\n", sum);
    return 0;
}
